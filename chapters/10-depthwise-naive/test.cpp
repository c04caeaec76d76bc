#include <doctest/doctest.h>

#include "common/harness/files/problem_io.hpp"
#include "tests/stage_suite.hpp"

using namespace convladder;

TEST_CASE("10 depthwise-naive: every plane is right") { check_suite("10", depthwise_suite()); }

TEST_CASE("10 depthwise-naive: counters are what the lesson predicts (simulator)") {
  check_prediction("10", {depthwise_shape(1, "h=1,w=1"), depthwise_shape(4, "n=3,h=16,w=32,r=7,s=7"),
                          depthwise_shape(3, "h=10,w=13,r=5,s=3,pad_h=0,pad_w=4"),
                          depthwise_shape(2, "n=2,h=17,w=20,r=3,s=5,stride_h=2,stride_w=3"),
                          depthwise_shape(2, "h=19,w=16,r=3,s=3,stride_w=2,dilation_h=2,dilation_w=3,pad_w=3")});
}

TEST_CASE("10 depthwise-naive: refuses by rule") {
  check_refusal("10", "c=4,k=8,groups=4,h=8,w=8,r=3,s=3", "groups = c = k; got groups=4, c=4, k=8");
  check_refusal("10", "c=4,k=4,groups=2,h=8,w=8,r=3,s=3", "groups = c = k; got groups=2, c=4, k=4");
  check_refusal("10", depthwise_shape(4, "h=8,w=8,r=4,s=3"), "odd filters; got r=4, s=3");
  check_refusal("10", depthwise_shape(4, "h=8,w=8,r=3,s=2"), "odd filters; got r=3, s=2");
  check_refusal("10", depthwise_shape(4, "h=8,w=8,r=3,s=3,stride_h=2147483648"), "32 bits");
}

TEST_CASE("10 depthwise-naive: an access of its one thread is a request of its own (simulator)") {
  const SuiteCase suite_case{parse_shape(depthwise_shape(4, "n=3,h=16,w=32,r=7,s=7")), InputKind::normal};
  const RunResult result = run_case(find_stage("10"), suite_case);
  REQUIRE(result.counters);
  CHECK(result.counters->global_load_requests * 4 == result.counters->global_load_bytes);
  CHECK(result.counters->global_load_sectors == result.counters->global_load_requests);
  CHECK(result.counters->global_store_requests == suite_case.problem.output_size());
}
