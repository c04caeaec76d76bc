// The statistics of TimeSeries, and how many copies are timed; neither needs a GPU.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>

#include "common/device.hpp"
#include "common/timing.hpp"

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
  const std::int64_t l2 = std::max<std::int64_t>(convladder::device_info().l2_bytes, 0);
  for (const std::int64_t bytes : {std::int64_t{1000}, l2 / 7 + 1, l2 + 1, 3 * l2 + 1, 100 * l2 + 1}) {
    CAPTURE(bytes);
    const std::int64_t copies = convladder::cold_copies(bytes);
    CHECK(copies >= 2);
    CHECK(copies * bytes > 3 * l2);
    CHECK((copies == 2 || (copies - 1) * bytes <= 3 * l2));
  }
}
