#include <doctest/doctest.h>

#include "common/harness/files/problem_io.hpp"
#include "tests/stage_suite.hpp"

using namespace convladder;

namespace {

RunResult run(const char* shape) { return run_case(find_stage("20"), {parse_shape(shape), InputKind::normal}); }

}  // namespace

TEST_CASE("20 im2win-vectorised: every image is right") { check_suite("20", lowering_suite()); }

TEST_CASE("20 im2win-vectorised: counters are what the lesson predicts (simulator)") {
  check_prediction("20", {"h=1,w=1", "n=2,c=3,k=2,h=1,w=1,r=3,s=3", "n=3,c=5,k=7,h=5,w=5,r=3,s=3",
                          "n=2,c=2,k=70,h=9,w=11,r=5,s=3,pad_h=0,pad_w=4", "c=17,k=97,h=7,w=9",
                          "n=2,c=3,k=5,h=15,w=18,r=4,s=2,stride_h=2,stride_w=3",
                          "c=2,k=3,h=11,w=13,r=3,s=3,stride_w=2,dilation_h=2,dilation_w=3,pad_w=3",
                          "n=2,c=2,k=4,h=4,w=6,r=2,s=3,stride_h=5,stride_w=4,pad_h=3,pad_w=5"});
}

TEST_CASE("20 im2win-vectorised: refuses by rule") { check_refusals_of_lowering("20"); }

TEST_CASE("20 im2win-vectorised: the product alone gives the same again") {
  check_product_alone("20",
                      {"n=2,c=3,k=5,h=9,w=7,r=3,s=3", "n=3,c=2,k=70,h=8,w=11,r=3,s=5,stride_h=2,stride_w=3,pad_w=6",
                       "n=2,c=9,k=3,h=5,w=5,r=2,s=2,dilation_h=2"});
}

TEST_CASE("20 im2win-vectorised: more images than a grid has blocks in y") {
  check_suite("20", {{parse_shape("n=65538,c=2,h=1,w=1"), InputKind::integers}});
}

TEST_CASE("20 im2win-vectorised: workspace is what the lesson says") {
  CHECK(run("n=2,c=3,k=5,h=9,w=7,r=3,s=3").workspace_bytes == 4 * 2 * 3 * 9 * 3 * (7 + 2 * 1) + 4 * (64 + 1) * 32);
  CHECK(run("n=3,c=2,k=70,h=8,w=11,r=3,s=5,stride_h=2,stride_w=3,pad_w=6").workspace_bytes ==
        4 * 3 * 2 * 4 * 3 * (11 + 2 * 6) + 4 * (96 + 1) * 32);
  CHECK(run("n=2,c=9,k=130,h=5,w=5,r=2,s=2,dilation_h=2").workspace_bytes ==
        4 * 2 * 9 * 3 * 2 * 5 + 4 * (2 * 96 + 1) * 48);
}

TEST_CASE("20 im2win-vectorised: tiles are written and read without a bank conflict (simulator)") {
  for (const char* shape : {"n=2,c=4,k=128,h=8,w=8,r=3,s=3", "n=2,c=4,k=96,h=9,w=7,r=3,s=3", "c=16,k=64,h=16,w=8"}) {
    CAPTURE(shape);
    const RunResult result = run(shape);
    REQUIRE(result.counters);
    CHECK(result.counters->shared_load_conflicts == 0);
    CHECK(result.counters->shared_store_conflicts == 0);
  }
}

TEST_CASE("20 im2win-vectorised: a quarter of 19's requests to shared memory (simulator)") {
  for (const char* shape : {"c=16,k=128,h=8,w=8", "c=16,k=96,h=8,w=8", "n=3,c=4,k=64,h=8,w=8,r=2,s=2"}) {
    CAPTURE(shape);
    // 18 has them for the transform alone, which all share.
    const auto requests = [&](std::string_view stage) {
      const RunResult result = run_case(find_stage(stage), {parse_shape(shape), InputKind::normal});
      REQUIRE(result.counters);
      return result.counters->shared_load_requests;
    };
    CHECK(4 * (requests("20") - requests("18")) == requests("19") - requests("18"));
  }
}

TEST_CASE("20 im2win-vectorised: outputs are stored in vectors where four divide an image (simulator)") {
  // 64 outputs an image, and 63: a tile has as many. The transform of 1x1 filters stores 32 floats a request.
  const auto requests = [](const char* shape, std::int64_t of_transform) {
    const RunResult result = run(shape);
    REQUIRE(result.counters);
    return result.counters->global_store_requests - of_transform;
  };
  CHECK(requests("c=16,k=128,h=8,w=8", 16 * 64 / 32) == 128 * 64 / 4 / 32);
  CHECK(requests("c=16,k=128,h=7,w=9", 16 * 63 / 32 + 1) == 128 * 64 / 32);
}
