#include <doctest/doctest.h>

#include <vector>

#include "common/harness/files/problem_io.hpp"
#include "tests/stage_suite.hpp"

using namespace convladder;

TEST_CASE("09 register-2d: every image is right") { check_suite("09", image_suite(FilterForm::dense)); }

TEST_CASE("09 register-2d: every image is right with other blocks and stores") {
  std::vector<SuiteCase> small;
  for (const char* shape : {"h=1,w=4,r=3,s=3", "h=61,w=252,r=5,s=5", "n=2,h=33,w=124,r=7,s=7", "h=130,w=240,r=5,s=5",
                            "h=40,w=256,r=5,s=5,pad_h=0", "h=70,w=120,r=3,s=3,pad_h=4"}) {
    ConvProblem problem = parse_shape(shape);
    for (const Padding padding : {Padding::zero, Padding::replicate, Padding::reflect}) {
      problem.padding = padding;
      if (padding == Padding::reflect && (problem.pad_h >= problem.h || problem.pad_w >= problem.w)) continue;
      small.push_back({problem, InputKind::normal});
    }
  }
  for (const char* settings : {"warps=4,stores=streaming", "warps=8", "warps=8,stores=streaming", "warps=16"})
    check_suite("09", small, settings);
  check_prediction("09", {"h=1,w=4", "h=64,w=256,r=5,s=5", "n=2,h=61,w=500,r=3,s=3"}, FilterForm::dense,
                   "warps=8,stores=streaming");
}

TEST_CASE("09 register-2d: counters are what the lesson predicts (simulator)") {
  check_prediction(
      "09", {"h=1,w=1", "h=64,w=256,r=5,s=5", "n=2,h=61,w=500,r=3,s=3", "h=64,w=257,r=5,s=5", "n=2,h=33,w=45,r=4,s=3",
             "h=30,w=40,r=7,s=9,pad_h=0,pad_w=0", "h=80,w=70,r=65,s=33", "h=70,w=600,r=3,s=6"});
}

TEST_CASE("09 register-2d: refuses by rule") {
  check_refusal("09", "h=8,w=8,c=3,r=3,s=3", "one channel");
  check_refusal("09", "h=80,w=80,r=3,s=66", "at most 65x65");
}
