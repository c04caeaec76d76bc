#include "common/harness/files/sound.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <complex>
#include <fstream>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "common/harness/commands/filter_command.hpp"
#include "common/harness/commands/sound_command.hpp"
#include "common/harness/commands/sound_filters.hpp"
#include "common/harness/device/device.hpp"
#include "common/kernel/tracks/signal.hpp"
#include "tests/folder.hpp"
#include "tests/usage_error.hpp"

namespace convladder {
namespace {

constexpr int kRate = 44100;

SoundFilter lowpass(double cutoff) { return sound_filter({.name = "lowpass", .cutoff = cutoff}, kRate); }

/// What a filter does to a tone of so many Hz: 1 leaves it as it is.
double gain(const SoundFilter& filter, double hz, int rate = kRate) {
  std::complex<double> sum = 0;
  for (std::size_t i = 0; i < filter.taps.size(); ++i)
    sum += static_cast<double>(filter.taps[i]) *
           std::polar(1.0, 2 * std::numbers::pi * hz / rate * static_cast<double>(i));
  return std::abs(sum);
}

double decibels(double gain) { return 20 * std::log10(gain); }

std::string filter_error(const SoundFilterOptions& options, int rate = kRate) {
  return usage_error([&] { sound_filter(options, rate); });
}

TEST_CASE("sound filters: lowpass passes to three quarters of the cut-off and stops from five quarters on") {
  for (const double cutoff : {30.0, 1000.0, 15000.0}) {
    CAPTURE(cutoff);
    const SoundFilter filter = lowpass(cutoff);
    CHECK(filter.taps.size() % 2 == 1);
    CHECK(filter.pad == static_cast<std::int64_t>(filter.taps.size() / 2));
    for (std::size_t i = 0; i < filter.taps.size(); ++i)
      CHECK(filter.taps[i] == filter.taps[filter.taps.size() - 1 - i]);
    CHECK(std::abs(gain(filter, 0) - 1) < 1e-6);
    CHECK(std::abs(decibels(gain(filter, 0.75 * cutoff))) < 0.01);
    CHECK(std::abs(decibels(gain(filter, cutoff)) + 6) < 0.1);
    CHECK(decibels(gain(filter, 1.25 * cutoff)) < -70);
  }
}

TEST_CASE("sound filters: the equaliser's bands have their gains") {
  for (const int rate : {8001, 44100, 192000}) {
    CAPTURE(rate);
    const SoundFilter filter = sound_filter({.name = "equalise", .bass = -12, .mid = 3, .treble = 6}, rate);
    CHECK(std::abs(decibels(gain(filter, 60, rate)) + 12) < 0.02);
    CHECK(std::abs(decibels(gain(filter, 1000, rate)) - 3) < 0.02);
    if (rate > 10000) CHECK(std::abs(decibels(gain(filter, 5000, rate)) - 6) < 0.02);
  }
  const SoundFilter same = sound_filter({.name = "equalise", .mid = 0}, kRate);
  for (std::size_t i = 0; i < same.taps.size(); ++i)
    CHECK(std::abs(same.taps[i] - (i == same.taps.size() / 2 ? 1 : 0)) < 1e-7);
}

TEST_CASE("sound filters: an echo is the sound and half of it later") {
  for (const int later : {1, 2, 3, 100, kMaxConstantTaps - 2}) {
    CAPTURE(later);
    const SoundFilter filter = sound_filter({.name = "echo", .delay = later / 8.0}, 8000);
    REQUIRE(filter.taps.size() % 2 == 1);
    REQUIRE(filter.taps.size() <= kMaxConstantTaps);
    CHECK(filter.pad == static_cast<std::int64_t>(filter.taps.size()) - 1);
    double sum = 0;
    for (const float tap : filter.taps) sum += tap;
    CHECK(sum == 1.5);
    CHECK(filter.taps.back() == 1);
    CHECK(filter.taps[filter.taps.size() - 1 - static_cast<std::size_t>(later)] == 0.5f);
  }
}

TEST_CASE("sound filters: what is refused") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(has(filter_error({.name = "lowpas"}), "unknown filter 'lowpas', did you mean lowpass?"));
  CHECK(has(filter_error({.name = "echo", .cutoff = 1000}), "--cutoff does not belong to echo"));
  CHECK(has(filter_error({.name = "lowpass", .delay = 100}), "--delay does not belong to lowpass"));
  CHECK(has(filter_error({.name = "lowpass", .bass = 1}), "--bass does not belong to lowpass"));
  CHECK(has(filter_error({.name = "echo", .mid = 1}), "--mid does not belong to echo"));
  CHECK(has(filter_error({.name = "echo", .treble = 1}), "--treble does not belong to echo"));
  CHECK(has(filter_error({.name = "equalise"}), "give --bass, --mid or --treble"));
  CHECK(has(filter_error({.name = "lowpass", .cutoff = 0}), "above 0"));
  CHECK(has(filter_error({.name = "echo", .delay = nan}), "above 0"));
  CHECK(has(filter_error({.name = "equalise", .bass = 20.5}), "--bass must be from -60 to 20 dB"));
  CHECK(has(filter_error({.name = "equalise", .mid = nan}), "--mid must be from -60 to 20 dB"));
  CHECK(has(filter_error({.name = "equalise", .treble = -61}), "--treble must be from -60 to 20 dB"));
  CHECK(has(filter_error({.name = "lowpass", .cutoff = 22050}), "below half the sample rate, 22050 Hz here"));
  CHECK(filter_error({.name = "lowpass", .cutoff = 22049}) == "");
  CHECK(has(filter_error({.name = "lowpass", .cutoff = 29.6}), "use at least 29.62"));
  CHECK(filter_error({.name = "lowpass", .cutoff = 29.62}) == "");
  CHECK(has(filter_error({.name = "echo", .delay = 372}), "give from 0.03 to 371.47 ms"));
  CHECK(filter_error({.name = "echo", .delay = 371.47}) == "");
  CHECK(has(filter_error({.name = "echo", .delay = 0.01}), "is 0 samples"));
  CHECK(has(filter_error({.name = "equalise", .mid = 1}, 8000), "a sample rate above 8000 Hz and up to 372318"));
  CHECK(filter_error({.name = "equalise", .mid = 1}, 372318) == "");
  CHECK(has(filter_error({.name = "equalise", .mid = 1}, 372319), "this sound has 372319"));
}

// ---- Sounds ---------------------------------------------------------------------------------------------------------

/// Gives zeros.
class SilentStage final : public Stage {
  Verdict check(const ConvProblem&, const DeviceLimits&) const override { return Verdict::accept(); }
  void launch(const ConvProblem& problem, const Tensors& tensors, Stream) override {
    for (std::int64_t i = 0; i < problem.output_size(); ++i) tensors.output[i] = 0;
  }
};

TEST_CASE("filtered sounds: a wrong result is told") {
  Sound sound{.sample_rate = 8000, .channels = 2, .frames = 5, .samples = std::vector<float>(10, 0.25f)};
  const SoundFilter filter = sound_filter({.name = "echo", .delay = 0.25}, 8000);
  const ConvProblem problem = sound_problem(sound, filter);
  CHECK(problem.n == 2);
  CHECK(problem.q() == 7);
  Sound same = sound;
  filter_sound(find_stage("4"), problem, filter, same);
  CHECK(same.frames == 7);
  CHECK(same.samples == std::vector<float>{0.25f, 0.25f, 0.375f, 0.375f, 0.375f, 0.125f, 0.125f,  //
                                           0.25f, 0.25f, 0.375f, 0.375f, 0.375f, 0.125f, 0.125f});
  StageInfo silent = find_stage("1");
  silent.folder = "99-silent";
  silent.make = [] { return static_cast<Stage*>(new SilentStage); };
  std::string error;
  try {
    filter_sound(silent, problem, filter, sound);
  } catch (const DeviceError& wrong) {
    error = wrong.what();
  }
  CHECK(has(error, "99-silent gave no sound to be written: wrong: 14 of 14 outputs are wrong"));
}

TEST_CASE("WAV: what does not fit the file's sizes is refused") {
  if (!usage_error(require_sound_files).empty()) return;  // built without libsndfile
  const Folder folder;
  std::ofstream(folder / "in.wav", std::ios::binary) << std::string(
      "RIFF\x26\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0data\2\0\0\0\0\x40", 46);
  Sound sound = read_sound(folder / "in.wav", [](const Sound&) {});
  CHECK(to_string(sound) == "8000 Hz, 1 channel of 0.000 s, 16 bits");
  REQUIRE(sound.samples == std::vector<float>{0.5f});
  sound.frames = std::int64_t{1} << 31;
  CHECK(has(usage_error([&] { write_sound(folder / "out.wav", sound); }), "a WAV holds at most 4 GB"));
  CHECK(folder.entries() == 1);
}

}  // namespace
}  // namespace convladder
