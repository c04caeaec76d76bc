/// @file
/// The filters of sounds: low-pass, echo and equaliser, designed in double for a sample rate.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace convladder {

/// What the command line may say about a filter of sounds.
struct SoundFilterOptions {
  std::string name;                               ///< lowpass, echo or equalise
  std::optional<double> cutoff{};                 ///< Hz, of lowpass
  std::optional<double> delay{};                  ///< milliseconds, of echo
  std::optional<double> bass{}, mid{}, treble{};  ///< dB, of equalise
};

/// The names, for messages.
inline constexpr std::string_view kSoundFilterNames = "lowpass, echo, equalise";
/// The lowpass's cut-off where no option says otherwise, in Hz.
inline constexpr double kDefaultCutoff = 1000;
/// The echo's delay where no option says otherwise, in milliseconds.
inline constexpr double kDefaultDelay = 150;
/// Where the equaliser's bass ends, in Hz.
inline constexpr double kBassEnd = 250;
/// Where its treble begins, in Hz.
inline constexpr double kTrebleBegin = 4000;
/// The least of the equaliser's gains, in dB.
inline constexpr double kLeastGain = -60;
/// The most of them, in dB.
inline constexpr double kMostGain = 20;
/// How much more quiet an echo is: half.
inline constexpr double kEchoGain = 0.5;

/// A filter for one sample rate.
struct SoundFilter {
  std::string name;         ///< "lowpass, cut-off 1000 Hz"
  std::vector<float> taps;  ///< an odd number, at most as many as the stages with a filter in constant memory hold
  std::int64_t pad = 0;     ///< output i begins to read at input i - pad; it is as much longer as the padding allows
};

/// Checks what does not depend on the sample rate. @throws UsageError for an unknown name, an option that is not the
/// filter's or out of range, and equalise without any
void require_usable(const SoundFilterOptions& options);

/// The filter.
///
/// lowpass: a sinc under a Blackman window, whose transition from pass to stop is half as wide as the cut-off; its taps
/// sum to 1. equalise: three bands that are differences of such filters, each with its gain; with 0 dB in each it is an
/// impulse. Both are symmetric: every frequency is late by the same time, and the padding takes that back. echo: the
/// sound and, `delay` later, half of it; the output is as much longer.
/// @throws UsageError as require_usable(), and for what the sample rate forbids
SoundFilter sound_filter(const SoundFilterOptions& options, int sample_rate);

}  // namespace convladder
