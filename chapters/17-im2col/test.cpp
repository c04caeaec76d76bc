#include <doctest/doctest.h>

#include "common/harness/files/problem_io.hpp"
#include "tests/stage_suite.hpp"

using namespace convladder;

namespace {

RunResult run(const char* shape) { return run_case(find_stage("17"), {parse_shape(shape), InputKind::normal}); }

}  // namespace

TEST_CASE("17 im2col: every image is right") { check_suite("17", lowering_suite()); }

TEST_CASE("17 im2col: counters are what the lesson predicts (simulator)") {
  check_prediction("17", {"h=1,w=1", "n=2,c=3,k=2,h=1,w=1,r=3,s=3", "n=3,c=5,k=7,h=5,w=5,r=3,s=3",
                          "n=2,c=2,k=70,h=9,w=11,r=5,s=3,pad_h=0,pad_w=4", "c=17,k=97,h=7,w=9",
                          "n=2,c=3,k=5,h=15,w=18,r=4,s=2,stride_h=2,stride_w=3",
                          "c=2,k=3,h=11,w=13,r=3,s=3,stride_w=2,dilation_h=2,dilation_w=3,pad_w=3",
                          "n=2,c=2,k=4,h=4,w=6,r=2,s=3,stride_h=5,stride_w=4,pad_h=3,pad_w=5"});
}

TEST_CASE("17 im2col: refuses by rule") { check_refusals_of_lowering("17"); }

TEST_CASE("17 im2col: the product alone gives the same again") {
  check_product_alone("17",
                      {"n=2,c=3,k=5,h=9,w=7,r=3,s=3", "n=3,c=2,k=70,h=8,w=11,r=3,s=5,stride_h=2,stride_w=3,pad_w=6",
                       "n=2,c=9,k=3,h=5,w=5,r=2,s=2,dilation_h=2"});
}

TEST_CASE("17 im2col: workspace is what the lesson says") {
  CHECK(run("n=2,c=3,k=5,h=9,w=7,r=3,s=3").workspace_bytes == 4 * 2 * (3 * 3 * 3) * (9 * 7));
  CHECK(run("n=3,c=2,k=70,h=8,w=11,r=3,s=5,stride_h=2,stride_w=3,pad_w=6").workspace_bytes ==
        4 * 3 * (2 * 3 * 5) * (4 * 7));
  CHECK(run("n=2,c=9,k=130,h=5,w=5,r=2,s=2,dilation_h=2").workspace_bytes == 4 * 2 * (9 * 2 * 2) * (3 * 4));
}

TEST_CASE("17 im2col: tiles are written and read without a bank conflict (simulator)") {
  for (const char* shape : {"n=2,c=4,k=128,h=8,w=8,r=3,s=3", "n=2,c=4,k=96,h=9,w=7,r=3,s=3", "c=16,k=64,h=16,w=8"}) {
    CAPTURE(shape);
    const RunResult result = run(shape);
    REQUIRE(result.counters);
    CHECK(result.counters->shared_load_conflicts == 0);
    CHECK(result.counters->shared_store_conflicts == 0);
  }
}

TEST_CASE("17 im2col: the matrix is written in whole rows of outputs (simulator)") {
  // 8 x 8 outputs: a warp's columns lie side by side, 4 sectors a request, in the matrix as in the output.
  const RunResult result = run("n=2,c=4,k=128,h=8,w=8,r=3,s=3");
  REQUIRE(result.counters);
  const std::int64_t matrix = 2 * (4 * 3 * 3) * (8 * 8), output = 2 * 128 * (8 * 8);
  CHECK(result.counters->global_store_requests == matrix / 32 + output / 32);
  CHECK(result.counters->global_store_sectors == 4 * result.counters->global_store_requests);
}
