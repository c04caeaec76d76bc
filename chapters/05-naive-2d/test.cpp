#include <doctest/doctest.h>

#include <memory>

#include "tests/stage_suite.hpp"

using namespace convladder;

TEST_CASE("05 naive-2d: every image is right") { check_suite("05", image_suite(FilterForm::dense)); }

TEST_CASE("05 naive-2d: counters are what the lesson predicts (simulator)") {
  check_prediction("05",
                   {"h=1,w=1", "h=64,w=64,r=5,s=5", "n=2,h=33,w=45,r=4,s=3", "h=30,w=40,r=7,s=7,pad_h=0,pad_w=0"});
}

TEST_CASE("05 naive-2d: batches end where the grid does") {
  const std::unique_ptr<Stage> stage(find_stage("05").make());
  ConvProblem problem;
  problem.n = std::int64_t{65535} * 32768;
  CHECK(stage->check(problem, device_limits()).accepted());
  ++problem.n;
  CHECK_FALSE(stage->check(problem, device_limits()).accepted());
}

TEST_CASE("05 naive-2d: refuses by rule") {
  check_refusal("05", "h=8,w=8,c=3,r=3,s=3", "one channel");
  check_refusal("05", "h=80,w=80,r=66,s=3", "at most 65x65");
  check_refusal("05", "h=8,w=8,r=3,s=3,stride_w=2", "stride 1");
  check_refusal("05", "h=8,w=8,r=3,s=3,dilation_h=2", "dilation 1");
}
