#include "common/kernel/tracks/taps.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace convladder;

namespace {

/// Whether each output of a row of a line gets its pixels: what it reads behind the row's end, in the next row, must be
/// zero in both.
bool row_is_right(int taps, int dilation, int stride, int size, int pad) {
  const int outputs = (size + 2 * pad - (taps - 1) * dilation - 1) / stride + 1;
  const Reach reach = reach_of(taps, dilation, stride, size, pad, outputs, true);
  const int pitch = outputs + reach.further - reach.shared;
  if (reach.shared < 0 || reach.shared > reach.further) return false;
  const auto inside = [&](int pixel) { return pixel >= 0 && pixel < size; };
  for (int x = 0; x < outputs; ++x) {
    for (int t = 0; t < taps; ++t) {
      const int position = x + t * dilation / stride, phase = t * dilation % stride;
      const int wanted = x * stride + t * dilation - pad, read = position % pitch * stride + phase - pad;
      if (inside(wanted) ? read != wanted : position >= pitch && inside(read)) return false;
    }
  }
  return true;
}

}  // namespace

TEST_CASE("taps: a row of a line shares only zeros with the next") {
  for (int taps = 1; taps <= 5; ++taps)
    for (int dilation = 1; dilation <= 3; ++dilation)
      for (int stride = 1; stride <= 3; ++stride)
        for (int size = 1; size <= 9; ++size)
          for (int pad = 0; pad <= 5; ++pad) {
            if (size + 2 * pad < (taps - 1) * dilation + 1) continue;
            CAPTURE(taps);
            CAPTURE(dilation);
            CAPTURE(stride);
            CAPTURE(size);
            CAPTURE(pad);
            CHECK(row_is_right(taps, dilation, stride, size, pad));
          }
  const Reach same = reach_of(3, 1, 1, 7, 1, 7, true), part = reach_of(3, 1, 1, 7, 1, 7, false);
  CHECK((same.further == 2 && same.shared == 1));
  CHECK((part.further == 2 && part.shared == 0));
}

TEST_CASE("taps: nine taps are one phase with stride 1 or dilation 2, and four with stride 2") {
  Lowering l{};
  l.rows = l.columns = 3;
  l.stride_y = l.stride_x = l.dilation_y = l.dilation_x = 1;
  const TapOrder one = tap_order(l);
  CHECK((one.taps == 9 && one.phases == 1 && one.first_tap[1] == 9));
  for (int i = 0; i < 9; ++i) CHECK(one.tap_of[i] == i);

  l.stride_y = l.stride_x = 2;
  const TapOrder four = tap_order(l);
  REQUIRE((four.taps == 9 && four.phases == 4));
  CHECK(std::vector<int>(four.first_tap, four.first_tap + 5) == std::vector<int>{0, 4, 6, 8, 9});
  CHECK(std::vector<int>(four.tap_of, four.tap_of + 9) == std::vector<int>{0, 2, 6, 8, 1, 7, 3, 5, 4});
  CHECK(std::vector<int>(four.phase_y, four.phase_y + 4) == std::vector<int>{0, 0, 1, 1});
  CHECK(std::vector<int>(four.phase_x, four.phase_x + 4) == std::vector<int>{0, 1, 0, 1});

  l.dilation_y = l.dilation_x = 2;
  CHECK(tap_order(l).phases == 1);
}

TEST_CASE("taps: a place's fields are compared all at once") {
  const auto at_most = [](unsigned place, unsigned most) { return (((kGuards | most) - place) & kGuards) == kGuards; };
  const unsigned most = packed_place(1, 5, 255);
  CHECK(at_most(packed_place(1, 5, 255), most));
  CHECK(at_most(packed_place(0, 0, 0), most));
  CHECK(!at_most(packed_place(2, 0, 0), most));
  CHECK(!at_most(packed_place(0, 6, 0), most));
  CHECK(!at_most(packed_place(0, 0, 256), most));
  CHECK(!at_most(packed_place(kNowhere, kNowhere, kNowhere), most));
}
