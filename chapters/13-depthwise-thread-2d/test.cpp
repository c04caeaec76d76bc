#include <doctest/doctest.h>

#include "common/harness/files/problem_io.hpp"
#include "tests/stage_suite.hpp"

using namespace convladder;

TEST_CASE("13 depthwise-thread-2d: every plane is right") { check_suite("13", depthwise_suite()); }

TEST_CASE("13 depthwise-thread-2d: counters are what the lesson predicts (simulator)") {
  check_prediction("13", {depthwise_shape(1, "h=1,w=1"), depthwise_shape(4, "n=3,h=16,w=32,r=7,s=7"),
                          depthwise_shape(3, "h=33,w=45,r=5,s=3,pad_h=0,pad_w=4"),
                          depthwise_shape(2, "n=2,h=37,w=50,r=3,s=5,stride_h=2,stride_w=3"),
                          depthwise_shape(2, "h=39,w=36,r=3,s=3,stride_w=2,dilation_h=2,dilation_w=3,pad_w=3")});
}

TEST_CASE("13 depthwise-thread-2d: refuses by rule") {
  check_refusal("13", "c=4,k=8,groups=4,h=8,w=8,r=3,s=3", "groups = c = k");
  check_refusal("13", depthwise_shape(4, "h=8,w=8,r=3,s=2"), "odd filters");
}

TEST_CASE("13 depthwise-thread-2d: more tiles of rows than a grid has blocks in y") {
  check_suite("13", {{parse_shape(depthwise_shape(1, "h=1048577,w=1")), InputKind::integers}});
}

TEST_CASE("13 depthwise-thread-2d: a warp stores two pieces of 16 outputs (simulator)") {
  const RunResult result =
      run_case(find_stage("13"), {parse_shape(depthwise_shape(4, "n=3,h=16,w=32,r=7,s=7")), InputKind::normal});
  REQUIRE(result.counters);
  CHECK(result.counters->global_store_requests == 3 * 4 * 16 * 32 / 32);
  CHECK(result.counters->global_store_sectors == 4 * result.counters->global_store_requests);
}
