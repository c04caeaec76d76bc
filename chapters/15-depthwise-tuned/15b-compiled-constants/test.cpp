#include <doctest/doctest.h>

#include "common/harness/files/problem_io.hpp"
#include "tests/stage_suite.hpp"

using namespace convladder;

TEST_CASE("15b compiled-constants: planes are right, with constants and without") {
  std::vector<SuiteCase> suite;
  for (const std::string& shape :
       {depthwise_shape(1, "h=1,w=1"), depthwise_shape(3, "n=2,h=29,w=33,r=5,s=5"),
        depthwise_shape(2, "h=18,w=37,r=3,s=7,stride_h=2,stride_w=3,dilation_h=2,pad_h=4,pad_w=1")}) {
    for (const Padding padding : {Padding::zero, Padding::replicate, Padding::reflect}) {
      ConvProblem problem = parse_shape(shape);
      problem.padding = padding;
      suite.push_back({problem, InputKind::normal});
    }
  }
  suite.push_back({parse_shape(depthwise_shape(1, "h=8,w=33,r=31,s=31")), InputKind::normal});
  for (const InputKind kind : {InputKind::integers, InputKind::impulse, InputKind::large, InputKind::nan})
    suite.push_back({parse_shape(depthwise_shape(4, "n=3,h=16,w=32,r=7,s=7")), kind});
  for (const char* settings : {"constants=yes", "constants=no"}) check_suite("15b", suite, settings);
}

TEST_CASE("15b compiled-constants: counters are what the lesson predicts (simulator)") {
  check_prediction(
      "15b", {depthwise_shape(4, "n=3,h=16,w=32,r=7,s=7"), depthwise_shape(3, "h=33,w=45,r=5,s=3,pad_h=0,pad_w=4")});
}

TEST_CASE("15b compiled-constants: refuses by rule") {
  check_refusal("15b", "c=4,k=8,groups=4,h=8,w=8,r=3,s=3", "groups = c = k");
  check_refusal("15b", depthwise_shape(1, "h=99,w=99,r=33,s=33"),
                "up to 1024 taps, which are all written out; got 1089");
}
