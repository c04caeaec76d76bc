#include <doctest/doctest.h>

#include "common/harness/files/problem_io.hpp"
#include "tests/stage_suite.hpp"

using namespace convladder;

TEST_CASE("11 depthwise-block-2d: every plane is right") { check_suite("11", depthwise_suite()); }

TEST_CASE("11 depthwise-block-2d: counters are what the lesson predicts (simulator)") {
  check_prediction("11", {depthwise_shape(1, "h=1,w=1"), depthwise_shape(4, "n=3,h=16,w=32,r=7,s=7"),
                          depthwise_shape(3, "h=10,w=13,r=5,s=3,pad_h=0,pad_w=4"),
                          depthwise_shape(2, "n=2,h=17,w=20,r=3,s=5,stride_h=2,stride_w=3"),
                          depthwise_shape(2, "h=19,w=16,r=3,s=3,stride_w=2,dilation_h=2,dilation_w=3,pad_w=3")});
}

TEST_CASE("11 depthwise-block-2d: refuses by rule") {
  check_refusal("11", "c=4,k=8,groups=4,h=8,w=8,r=3,s=3", "groups = c = k");
  check_refusal("11", depthwise_shape(4, "h=8,w=8,r=3,s=2"), "odd filters");
}

TEST_CASE("11 depthwise-block-2d: more channels than a grid has blocks in y") {
  check_suite("11", {{parse_shape(depthwise_shape(65537, "h=1,w=2,s=3")), InputKind::integers}});
}
