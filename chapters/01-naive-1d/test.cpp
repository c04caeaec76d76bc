#include <doctest/doctest.h>

#include "tests/stage_suite.hpp"

using namespace convladder;

TEST_CASE("01 naive-1d: every shape is right") { check_suite("01", signal_suite()); }

TEST_CASE("01 naive-1d: counters are what the lesson predicts (simulator)") {
  check_prediction("01", {"w=1", "w=4096,s=11", "n=3,w=257,s=5", "w=100,s=1025", "w=600,s=11,pad_w=0"});
}

TEST_CASE("01 naive-1d: refuses what is no signal") {
  check_refusal("01", "h=2,w=64,s=3", "h=1");
  check_refusal("01", "c=2,k=2,w=64,s=3", "one channel");
  check_refusal("01", "w=64,s=4", "odd filter");
  check_refusal("01", "w=64,s=3,stride_w=2", "stride 1");
  check_refusal("01", "w=64,s=3,dilation_w=2", "dilation 1");
}

TEST_CASE("01 naive-1d: input and filter are re-read for every tap (simulator)") {
  int loading = 0;
  for (const LineCounters& line : lines_of("01", "w=4096,s=11")) {
    // One line loads sample and tap: 11 steps a warp, two requests each.
    if (line.counters.global_load_requests == 0) continue;
    CHECK(line.counters.global_load_requests == 4096 / 32 * 11 * 2);
    ++loading;
  }
  CHECK(loading == 1);
}
