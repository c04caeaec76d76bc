#include <doctest/doctest.h>

#include "common/harness/files/problem_io.hpp"
#include "tests/stage_suite.hpp"

using namespace convladder;

namespace {

RunResult run(const char* shape) { return run_case(find_stage("16"), {parse_shape(shape), InputKind::normal}); }

}  // namespace

TEST_CASE("16 direct: every image is right") { check_suite("16", lowering_suite()); }

TEST_CASE("16 direct: counters are what the lesson predicts (simulator)") {
  check_prediction("16", {"h=1,w=1", "n=2,c=3,k=2,h=1,w=1,r=3,s=3", "n=3,c=5,k=7,h=5,w=5,r=3,s=3",
                          "n=2,c=2,k=70,h=9,w=11,r=5,s=3,pad_h=0,pad_w=4", "c=17,k=97,h=7,w=9",
                          "n=2,c=3,k=5,h=15,w=18,r=4,s=2,stride_h=2,stride_w=3",
                          "c=2,k=3,h=11,w=13,r=3,s=3,stride_w=2,dilation_h=2,dilation_w=3,pad_w=3",
                          "n=2,c=2,k=4,h=4,w=6,r=2,s=3,stride_h=5,stride_w=4,pad_h=3,pad_w=5"});
}

TEST_CASE("16 direct: refuses by rule") { check_refusals_of_lowering("16"); }

TEST_CASE("16 direct: more images than a grid has blocks in y") {
  check_suite("16", {{parse_shape("n=65538,c=2,h=1,w=1"), InputKind::integers}});
}

TEST_CASE("16 direct: takes no memory") { CHECK(run("n=2,c=3,k=5,h=9,w=7,r=3,s=3").workspace_bytes == 0); }

TEST_CASE("16 direct: every product reads a pixel and a tap from global memory (simulator)") {
  const RunResult result = run("n=2,c=3,k=5,h=9,w=7,r=3,s=3,pad_h=0,pad_w=0");
  REQUIRE(result.counters);
  CHECK(result.counters->global_load_bytes == result.problem.flops() * 4);
}
