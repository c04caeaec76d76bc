#include <doctest/doctest.h>

#include "common/harness/files/problem_io.hpp"
#include "tests/stage_suite.hpp"

using namespace convladder;

namespace {

RunResult run(const char* shape) { return run_case(find_stage("19"), {parse_shape(shape), InputKind::normal}); }

}  // namespace

TEST_CASE("19 im2win-tiled: every image is right") { check_suite("19", lowering_suite()); }

TEST_CASE("19 im2win-tiled: counters are what the lesson predicts (simulator)") {
  check_prediction("19", {"h=1,w=1", "n=2,c=3,k=2,h=1,w=1,r=3,s=3", "n=3,c=5,k=7,h=5,w=5,r=3,s=3",
                          "n=2,c=2,k=70,h=9,w=11,r=5,s=3,pad_h=0,pad_w=4", "c=17,k=97,h=7,w=9",
                          "n=2,c=3,k=5,h=15,w=18,r=4,s=2,stride_h=2,stride_w=3",
                          "c=2,k=3,h=11,w=13,r=3,s=3,stride_w=2,dilation_h=2,dilation_w=3,pad_w=3",
                          "n=2,c=2,k=4,h=4,w=6,r=2,s=3,stride_h=5,stride_w=4,pad_h=3,pad_w=5"});
}

TEST_CASE("19 im2win-tiled: refuses by rule") { check_refusals_of_lowering("19"); }

TEST_CASE("19 im2win-tiled: the product alone gives the same again") {
  check_product_alone("19",
                      {"n=2,c=3,k=5,h=9,w=7,r=3,s=3", "n=3,c=2,k=70,h=8,w=11,r=3,s=5,stride_h=2,stride_w=3,pad_w=6",
                       "n=2,c=9,k=3,h=5,w=5,r=2,s=2,dilation_h=2"});
}

TEST_CASE("19 im2win-tiled: more images than a grid has blocks in y") {
  check_suite("19", {{parse_shape("n=65538,c=2,h=1,w=1"), InputKind::integers}});
}

TEST_CASE("19 im2win-tiled: workspace is what the lesson says") {
  CHECK(run("n=2,c=3,k=5,h=9,w=7,r=3,s=3").workspace_bytes ==
        4 * 2 * 3 * 9 * 3 * (7 + 2 * 1) + 4 * (5 + 1) * (3 * 3 * 3));
  CHECK(run("n=3,c=2,k=70,h=8,w=11,r=3,s=5,stride_h=2,stride_w=3,pad_w=6").workspace_bytes ==
        4 * 3 * 2 * 4 * 3 * (11 + 2 * 6) + 4 * (70 + 1) * (2 * 3 * 5));
  CHECK(run("n=2,c=9,k=130,h=5,w=5,r=2,s=2,dilation_h=2").workspace_bytes ==
        4 * 2 * 9 * 3 * 2 * 5 + 4 * (130 + 1) * (9 * 2 * 2));
}

TEST_CASE("19 im2win-tiled: tiles are written and read without a bank conflict (simulator)") {
  for (const char* shape : {"n=2,c=4,k=128,h=8,w=8,r=3,s=3", "n=2,c=4,k=96,h=9,w=7,r=3,s=3", "c=16,k=64,h=16,w=8"}) {
    CAPTURE(shape);
    const RunResult result = run(shape);
    REQUIRE(result.counters);
    CHECK(result.counters->shared_load_conflicts == 0);
    CHECK(result.counters->shared_store_conflicts == 0);
  }
}
