#include <doctest/doctest.h>

#include "common/harness/files/problem_io.hpp"
#include "tests/stage_suite.hpp"

using namespace convladder;

TEST_CASE("15a hand-unrolled: every plane is right") { check_suite("15a", depthwise_suite()); }

TEST_CASE("15a hand-unrolled: counters are what the lesson predicts (simulator)") {
  check_prediction("15a", {depthwise_shape(1, "h=1,w=1"), depthwise_shape(4, "n=3,h=16,w=32,r=7,s=7"),
                           depthwise_shape(3, "h=33,w=45,r=5,s=3,pad_h=0,pad_w=4"),
                           depthwise_shape(2, "n=2,h=37,w=50,r=3,s=5,stride_h=2,stride_w=3"),
                           depthwise_shape(2, "h=39,w=36,r=3,s=3,stride_w=2,dilation_h=2,dilation_w=3,pad_w=3")});
}

TEST_CASE("15a hand-unrolled: refuses by rule") {
  check_refusal("15a", "c=4,k=8,groups=4,h=8,w=8,r=3,s=3", "groups = c = k");
  check_refusal("15a", depthwise_shape(1, "h=999,w=999,r=3,s=3,stride_h=20,stride_w=20"),
                "bytes of shared memory; got a tile of 303 x 623 floats");
}
