#include <doctest/doctest.h>

#include "common/harness/files/problem_io.hpp"
#include "tests/stage_suite.hpp"

using namespace convladder;

TEST_CASE("14 depthwise-outer-fused: every plane is right") { check_suite("14", depthwise_suite()); }

TEST_CASE("14 depthwise-outer-fused: counters are what the lesson predicts (simulator)") {
  check_prediction("14", {depthwise_shape(1, "h=1,w=1"), depthwise_shape(4, "n=3,h=16,w=32,r=7,s=7"),
                          depthwise_shape(3, "h=33,w=45,r=5,s=3,pad_h=0,pad_w=4"),
                          depthwise_shape(2, "n=2,h=37,w=50,r=3,s=5,stride_h=2,stride_w=3"),
                          depthwise_shape(2, "h=39,w=36,r=3,s=3,stride_w=2,dilation_h=2,dilation_w=3,pad_w=3")});
}

TEST_CASE("14 depthwise-outer-fused: refuses by rule") {
  check_refusal("14", "c=4,k=8,groups=4,h=8,w=8,r=3,s=3", "groups = c = k");
  check_refusal("14", depthwise_shape(4, "h=8,w=8,r=3,s=2"), "odd filters");
}

TEST_CASE("14 depthwise-outer-fused: more tiles than a grid has blocks in y") {
  check_suite("14", {{parse_shape(depthwise_shape(1, "h=524289,w=17")), InputKind::integers}});
}

TEST_CASE("14 depthwise-outer-fused: reads and stores as 13 does, with more blocks (simulator)") {
  const SuiteCase suite_case{parse_shape(depthwise_shape(4, "n=3,h=16,w=64,r=7,s=7")), InputKind::normal};
  const RunResult before = run_case(find_stage("13"), suite_case), after = run_case(find_stage("14"), suite_case);
  REQUIRE(before.counters);
  REQUIRE(after.counters);
  CHECK(after.counters->global_load_requests == before.counters->global_load_requests);
  CHECK(after.counters->global_load_sectors == before.counters->global_load_sectors);
  CHECK(after.counters->global_store_sectors == before.counters->global_store_sectors);
}
