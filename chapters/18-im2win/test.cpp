#include <doctest/doctest.h>

#include "common/harness/files/problem_io.hpp"
#include "tests/stage_suite.hpp"

using namespace convladder;

namespace {

RunResult run(const char* shape) { return run_case(find_stage("18"), {parse_shape(shape), InputKind::normal}); }

}  // namespace

TEST_CASE("18 im2win: every image is right") { check_suite("18", lowering_suite()); }

TEST_CASE("18 im2win: counters are what the lesson predicts (simulator)") {
  check_prediction("18", {"h=1,w=1", "n=2,c=3,k=2,h=1,w=1,r=3,s=3", "n=3,c=5,k=7,h=5,w=5,r=3,s=3",
                          "n=2,c=2,k=70,h=9,w=11,r=5,s=3,pad_h=0,pad_w=4", "c=17,k=97,h=7,w=9",
                          "n=2,c=3,k=5,h=15,w=18,r=4,s=2,stride_h=2,stride_w=3",
                          "c=2,k=3,h=11,w=13,r=3,s=3,stride_w=2,dilation_h=2,dilation_w=3,pad_w=3",
                          "n=2,c=2,k=4,h=4,w=6,r=2,s=3,stride_h=5,stride_w=4,pad_h=3,pad_w=5",
                          "n=2,c=3,k=4,h=20,w=9,r=12,s=3", "n=2,c=3,k=4,h=20,w=9,r=13,s=3"});
}

TEST_CASE("18 im2win: refuses by rule") { check_refusals_of_lowering("18"); }

TEST_CASE("18 im2win: the product alone gives the same again") {
  check_product_alone("18",
                      {"n=2,c=3,k=5,h=9,w=7,r=3,s=3", "n=3,c=2,k=70,h=8,w=11,r=3,s=5,stride_h=2,stride_w=3,pad_w=6",
                       "n=2,c=9,k=3,h=5,w=5,r=2,s=2,dilation_h=2"});
}

TEST_CASE("18 im2win: more images than a grid has blocks in y") {
  check_suite("18", {{parse_shape("n=65538,c=2,h=1,w=1"), InputKind::integers}});
}

TEST_CASE("18 im2win: workspace is what the lesson says") {
  CHECK(run("n=2,c=3,k=5,h=9,w=7,r=3,s=3").workspace_bytes == 4 * 2 * 3 * 9 * 3 * (7 + 2 * 1) + 4 * 5 * (3 * 3 * 3));
  CHECK(run("n=3,c=2,k=70,h=8,w=11,r=3,s=5,stride_h=2,stride_w=3,pad_w=6").workspace_bytes ==
        4 * 3 * 2 * 4 * 3 * (11 + 2 * 6) + 4 * 70 * (2 * 3 * 5));
  CHECK(run("n=2,c=9,k=130,h=5,w=5,r=2,s=2,dilation_h=2").workspace_bytes ==
        4 * 2 * 9 * 3 * 2 * 5 + 4 * 130 * (9 * 2 * 2));
}

TEST_CASE("18 im2win: windows lie `rows` apart, so that a warp touches more sectors than in 16 (simulator)") {
  // Stride 2 and 7 rows: neighbouring lanes are 14 floats apart, each in a sector of its own.
  const char* const shape = "c=3,k=8,h=33,w=33,r=7,s=7,stride_h=2,stride_w=2";
  const RunResult direct = run_case(find_stage("16"), {parse_shape(shape), InputKind::normal}), here = run(shape);
  REQUIRE(direct.counters);
  REQUIRE(here.counters);
  CHECK(here.counters->global_load_sectors > 3 * direct.counters->global_load_sectors);
}
