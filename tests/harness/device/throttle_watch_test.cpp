// Which samples are taken again, and what is told of the GPU; its states are made up.
#include "common/harness/device/throttle_watch.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace convladder;

namespace {

/// Samples of 1, 2, 3, ... while the GPU is in one state after the other, and in the last from then on.
struct Series {
  std::vector<GpuMoment> states;
  std::size_t taken = 0;
  int pauses = 0;
  ThrottleWatch watch{[this] { return std::optional(states[std::min(taken, states.size()) - 1]); },
                      [this] { ++pauses; }};

  double sample() {
    return watch.sample([this](const std::function<void()>& meanwhile) {
      ++taken;
      meanwhile();
      return static_cast<double>(taken);
    });
  }
};

}  // namespace

TEST_CASE("a GPU at its clocks: every sample counts, with means and extremes") {
  Series series{{{1980, 600}, {1900, 700, kPowerCap}, {1940, 650}}};
  for (const double expected : {1, 2, 3}) CHECK(series.sample() == expected);
  const auto seen = series.watch.conditions();
  REQUIRE(seen);
  CHECK(seen->samples == 3);
  CHECK(seen->sm_clock_mhz == doctest::Approx(1940));
  CHECK(seen->least_sm_clock_mhz == 1900);
  CHECK(seen->power_w == doctest::Approx(650));
  CHECK(seen->most_power_w == 700);
  CHECK(seen->clock_reasons == kPowerCap);  // noted, and no reason to repeat
  CHECK(seen->repeated == 0);
  CHECK(seen->slowed == 0);
  CHECK(series.pauses == 0);
}

TEST_CASE("a sample of a slowed GPU is taken again, after a pause, for each of the reasons") {
  for (const std::uint64_t reason : {kHardwareSlowdown, kThermalSlowdown, kHardwareThermal, kHardwarePowerBrake}) {
    CAPTURE(reason);
    Series series{{{1980, 600}, {900, 500, reason}, {1000, 500, reason | kPowerCap}, {1970, 600}}};
    CHECK(series.sample() == 1);
    CHECK(series.sample() == 4);
    CHECK(series.pauses == 2);
    const auto seen = series.watch.conditions();
    CHECK(seen->samples == 2);
    CHECK(seen->least_sm_clock_mhz == 1970);  // of what counts
    CHECK(seen->clock_reasons == (reason | kPowerCap));
    CHECK(seen->repeated == 2);
    CHECK(seen->slowed == 0);
  }
}

TEST_CASE("a GPU that stays slowed ends no series: from the bound on its samples count, and are told") {
  Series series{{{700, 400, kHardwareThermal | kHardwareSlowdown}}};
  CHECK(series.sample() == ThrottleWatch::kMostRepeated + 1);
  CHECK(series.sample() == ThrottleWatch::kMostRepeated + 2);
  const auto seen = series.watch.conditions();
  CHECK(seen->samples == 2);
  CHECK(seen->repeated == ThrottleWatch::kMostRepeated);
  CHECK(seen->slowed == 2);
  CHECK(series.pauses == ThrottleWatch::kMostRepeated);
}

TEST_CASE("where the GPU's state cannot be told, samples count as they are") {
  ThrottleWatch watch([] { return std::optional<GpuMoment>(); }, [] { FAIL("a pause"); });
  CHECK(watch.sample([](const std::function<void()>& meanwhile) {
    meanwhile();
    return 5.0;
  }) == 5);
  CHECK_FALSE(watch.conditions());
}
