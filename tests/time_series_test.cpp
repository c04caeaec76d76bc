// The statistics of TimeSeries, which need no device.
#include <doctest/doctest.h>

#include "common/device.hpp"

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
