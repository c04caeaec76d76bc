#include <doctest/doctest.h>

#include "common/harness/files/problem_io.hpp"
#include "tests/stage_suite.hpp"

using namespace convladder;

TEST_CASE("12 depthwise-block-fused: every plane is right") { check_suite("12", depthwise_suite()); }

TEST_CASE("12 depthwise-block-fused: counters are what the lesson predicts (simulator)") {
  check_prediction("12", {depthwise_shape(1, "h=1,w=1"), depthwise_shape(4, "n=3,h=16,w=32,r=7,s=7"),
                          depthwise_shape(3, "h=10,w=13,r=5,s=3,pad_h=0,pad_w=4"),
                          depthwise_shape(2, "n=2,h=17,w=20,r=3,s=5,stride_h=2,stride_w=3"),
                          depthwise_shape(2, "h=19,w=16,r=3,s=3,stride_w=2,dilation_h=2,dilation_w=3,pad_w=3")});
}

TEST_CASE("12 depthwise-block-fused: refuses by rule") {
  check_refusal("12", "c=4,k=8,groups=4,h=8,w=8,r=3,s=3", "groups = c = k");
  check_refusal("12", depthwise_shape(4, "h=8,w=8,r=3,s=2"), "odd filters");
}

TEST_CASE("12 depthwise-block-fused: channels have a dimension of the grid that 65535 does not end") {
  check_suite("12", {{parse_shape(depthwise_shape(65537, "h=1,w=2,s=3")), InputKind::integers}});
}

TEST_CASE("12 depthwise-block-fused: more rows of outputs than a grid has blocks in y") {
  check_suite("12", {{parse_shape(depthwise_shape(1, "h=131075,w=1,r=3,stride_h=2")), InputKind::integers}});
}
