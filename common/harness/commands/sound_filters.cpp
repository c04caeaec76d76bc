#include "common/harness/commands/sound_filters.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "common/harness/commands/filter_command.hpp"
#include "common/harness/files/errors.hpp"
#include "common/kernel/tracks/signal.hpp"

namespace convladder {
namespace {

/// Odd, as the stages want it.
constexpr std::int64_t kMostTaps = kMaxConstantTaps - 1;
constexpr double kMostReach = (kMostTaps - 1) / 2.0;
/// A Blackman window's transition, in taps times the part of the sample rate.
constexpr double kBlackmanWidth = 5.5;

/// Taps on each side of the middle, for a transition of half of `frequency`.
double reach_for(double frequency, int sample_rate) { return std::ceil(kBlackmanWidth * sample_rate / frequency); }

/// The lowest frequency, in Hz, whose filter is no longer than the stages take.
double lowest_frequency(int sample_rate) { return kBlackmanWidth * sample_rate / kMostReach; }

/// The taps of a low-pass; they sum to 1.
std::vector<double> windowed_sinc(double cutoff, std::int64_t reach, int sample_rate) {
  using std::numbers::pi;
  std::vector<double> taps;
  double sum = 0;
  for (std::int64_t i = -reach; i <= reach; ++i) {
    const double angle = 2 * pi * cutoff / sample_rate * static_cast<double>(i);
    const double sinc = i == 0 ? 1 : std::sin(angle) / angle;
    const double turn = pi * static_cast<double>(i) / static_cast<double>(reach + 1);
    taps.push_back(sinc * (0.42 + 0.5 * std::cos(turn) + 0.08 * std::cos(2 * turn)));
    sum += taps.back();
  }
  for (double& tap : taps) tap /= sum;
  return taps;
}

std::vector<float> rounded(const std::vector<double>& taps) { return {taps.begin(), taps.end()}; }

SoundFilter lowpass(double cutoff, int sample_rate) {
  if (cutoff >= sample_rate / 2.0) {
    throw UsageError(
        fmt::format("--cutoff must be below half the sample rate, {} Hz here; got {}", sample_rate / 2.0, cutoff));
  }
  const double reach = reach_for(cutoff, sample_rate);
  if (reach > kMostReach) {
    throw UsageError(
        fmt::format("--cutoff {} needs more than the {} taps that the stages hold; at {} Hz use at least "
                    "{:.2f}",
                    cutoff, kMostTaps, sample_rate, lowest_frequency(sample_rate) + 0.005));
  }
  const auto side = static_cast<std::int64_t>(reach);
  return {fmt::format("lowpass, cut-off {} Hz", cutoff), rounded(windowed_sinc(cutoff, side, sample_rate)), side};
}

SoundFilter echo(double delay, int sample_rate) {
  const double samples = std::round(delay / 1000 * sample_rate);
  if (samples < 1 || samples >= kMostTaps) {
    throw UsageError(
        fmt::format("--delay {} is {:.10g} samples at {} Hz, and the stages reach from 1 to {}; give from "
                    "{:.2f} to {:.2f} ms",
                    delay, samples, sample_rate, kMostTaps - 1, 1000.0 / sample_rate + 0.005,
                    1000.0 * (kMostTaps - 1) / sample_rate - 0.005));
  }
  const auto later = static_cast<std::size_t>(samples);
  std::vector<float> taps(later + 1 + later % 2, 0.0f);  // an odd number
  taps.back() = 1;
  taps[taps.size() - 1 - later] = static_cast<float>(kEchoGain);
  return {fmt::format("echo, delay {} ms", delay), taps, static_cast<std::int64_t>(taps.size()) - 1};
}

double factor(double decibels) { return std::pow(10, decibels / 20); }

SoundFilter equalise(double bass, double mid, double treble, int sample_rate) {
  const double reach = reach_for(kBassEnd, sample_rate);
  if (sample_rate <= 2 * kTrebleBegin || reach > kMostReach) {
    throw UsageError(fmt::format("equalise wants a sample rate above {} Hz and up to {:.0f}; this sound has {}",
                                 2 * kTrebleBegin, std::floor(kMostReach * kBassEnd / kBlackmanWidth), sample_rate));
  }
  const auto side = static_cast<std::int64_t>(reach);
  const std::vector<double> low = windowed_sinc(kBassEnd, side, sample_rate);
  const std::vector<double> not_high = windowed_sinc(kTrebleBegin, side, sample_rate);
  std::vector<double> taps(low.size());
  for (std::size_t i = 0; i < taps.size(); ++i) {
    const double all = i == static_cast<std::size_t>(side) ? 1 : 0;
    taps[i] = factor(bass) * low[i] + factor(mid) * (not_high[i] - low[i]) + factor(treble) * (all - not_high[i]);
  }
  return {fmt::format("equalise, bass {} dB, mid {} dB, treble {} dB", bass, mid, treble), rounded(taps), side};
}

void require_above_0(const std::optional<double>& value, const char* option) {
  if (value && !(*value > 0 && std::isfinite(*value)))
    throw UsageError(fmt::format("{} must be a finite number above 0; got {}", option, *value));
}

void require_gain(const std::optional<double>& value, const char* option) {
  if (value && !(*value >= kLeastGain && *value <= kMostGain))
    throw UsageError(fmt::format("{} must be from {} to {} dB; got {}", option, kLeastGain, kMostGain, *value));
}

}  // namespace

void require_usable(const SoundFilterOptions& options) {
  const std::string& name = options.name;
  require_filter_name(name, {"lowpass", "echo", "equalise"});
  refuse_option(options.cutoff && name != "lowpass", "--cutoff", name, "lowpass");
  refuse_option(options.delay && name != "echo", "--delay", name, "echo");
  refuse_option(options.bass && name != "equalise", "--bass", name, "equalise");
  refuse_option(options.mid && name != "equalise", "--mid", name, "equalise");
  refuse_option(options.treble && name != "equalise", "--treble", name, "equalise");
  require_above_0(options.cutoff, "--cutoff");
  require_above_0(options.delay, "--delay");
  require_gain(options.bass, "--bass");
  require_gain(options.mid, "--mid");
  require_gain(options.treble, "--treble");
  if (name == "equalise" && !options.bass && !options.mid && !options.treble)
    throw UsageError("equalise without a gain changes nothing; give --bass, --mid or --treble in dB");
}

SoundFilter sound_filter(const SoundFilterOptions& options, int sample_rate) {
  require_usable(options);
  if (options.name == "lowpass") return lowpass(options.cutoff.value_or(kDefaultCutoff), sample_rate);
  if (options.name == "echo") return echo(options.delay.value_or(kDefaultDelay), sample_rate);
  return equalise(options.bass.value_or(0), options.mid.value_or(0), options.treble.value_or(0), sample_rate);
}

}  // namespace convladder
