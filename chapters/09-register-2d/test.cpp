#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "common/harness/files/problem_io.hpp"
#include "tests/stage_suite.hpp"

using namespace convladder;

TEST_CASE("09 register-2d: every image is right") { check_suite("09", image_suite(FilterForm::dense)); }

TEST_CASE("09 register-2d: every image that rows=rolling takes is right") {
  std::vector<SuiteCase> taken;
  for (const SuiteCase& image : image_suite(FilterForm::dense)) {
    const ConvProblem& p = image.problem;
    if (p.r == p.s && (p.s == 3 || p.s == 5 || p.s == 7) && p.pad_w == p.s / 2 && p.w % 4 == 0) taken.push_back(image);
  }
  // Rows of strips at and around the end of one; rows of segments; fewer rows than the filter has; other padding above.
  for (const char* shape :
       {"n=3,h=61,w=500,r=3,s=3", "h=64,w=256,r=5,s=5", "n=2,h=1,w=4,r=7,s=7", "h=3,w=120,r=5,s=5",
        "h=90,w=124,r=7,s=7,pad_h=0", "h=40,w=484,r=5,s=5,pad_h=4", "n=5,h=333,w=8,r=3,s=3", "h=140,w=240,r=7,s=7"})
    for (const Padding padding : {Padding::zero, Padding::replicate, Padding::reflect}) {
      ConvProblem problem = parse_shape(shape);
      problem.padding = padding;
      if (padding != Padding::reflect || (problem.pad_h < problem.h && problem.pad_w < problem.w))
        taken.push_back({problem, InputKind::normal});
    }
  check_suite("09", taken, "rows=rolling");
}

TEST_CASE("09 register-2d: counters are what the lesson predicts (simulator)") {
  check_prediction(
      "09", {"h=1,w=1", "h=64,w=256,r=5,s=5", "n=2,h=61,w=500,r=3,s=3", "h=64,w=257,r=5,s=5", "n=2,h=33,w=45,r=4,s=3",
             "h=30,w=40,r=7,s=9,pad_h=0,pad_w=0", "h=80,w=70,r=65,s=33", "h=70,w=600,r=3,s=6"});
}

TEST_CASE("09 register-2d: and with rows=rolling (simulator)") {
  check_prediction(
      "09", {"h=64,w=256,r=5,s=5", "n=2,h=61,w=500,r=3,s=3", "h=300,w=124,r=7,s=7", "h=40,w=484,r=5,s=5,pad_h=4"},
      FilterForm::dense, "rows=rolling");
}

TEST_CASE("09 register-2d: refuses by rule") {
  const RunResult result =
      run_case(find_stage("09"), {parse_shape("h=8,w=9,r=3,s=3"), InputKind::normal}, "rows=rolling");
  CHECK(result.reason.find("rows of whole vectors; got r=3, s=3, pad_w=1, w=9") != std::string::npos);
  check_refusal("09", "h=8,w=8,c=3,r=3,s=3", "one channel");
  check_refusal("09", "h=80,w=80,r=3,s=66", "at most 65x65");
}
