// The statistics of TimeSeries, and how many copies are timed; neither needs a GPU.
#include <doctest/doctest.h>

#include <cstdint>

#include "common/harness/device/device.hpp"
#include "common/harness/device/timing.hpp"

using convladder::TimeSeries;

TEST_CASE("TimeSeries of none, one, two and several groups") {
  CHECK(TimeSeries{}.median() == 0);
  CHECK(TimeSeries{}.min() == 0);
  CHECK(TimeSeries{}.spread() == 0);
  CHECK(TimeSeries{{3}}.median() == 3);
  CHECK(TimeSeries{{3}}.spread() == 0);
  CHECK(TimeSeries{{4, 2}}.median() == 3);
  CHECK(TimeSeries{{4, 2}}.min() == 2);
  CHECK(TimeSeries{{4, 2}}.spread() == doctest::Approx(1.0 / 3));
  const TimeSeries several{{5, 1, 4, 2, 3}};
  CHECK(several.median() == 3);
  CHECK(several.min() == 1);
  CHECK(several.spread() == doctest::Approx(2.0 / 3));
  CHECK(TimeSeries{{1, 1, 1, 1, 100}}.spread() == 0);
}

TEST_CASE("copies that are timed cold exceed L2 three times over, and are at least two") {
  using convladder::cold_copies;
  CHECK(cold_copies(100, 100) == 4);
  CHECK(cold_copies(99, 100) == 4);
  CHECK(cold_copies(101, 100) == 3);
  CHECK(cold_copies(1, 100) == 301);
  CHECK(cold_copies(1000, 100) == 2);
  CHECK(cold_copies(1000, 0) == 2);
  CHECK(cold_copies(std::int64_t{1} << 20, std::int64_t{1} << 40) == 3 * (1 << 20) + 1);
}
