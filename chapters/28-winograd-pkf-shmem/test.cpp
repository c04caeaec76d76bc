#include <doctest/doctest.h>

#include <memory>

#include "common/harness/files/problem_io.hpp"
#include "tests/stage_suite.hpp"

using namespace convladder;

namespace {

RunResult run(const std::string& sizes, std::string_view settings = {}, std::string_view stage = "28") {
  return run_case(find_stage(stage), {parse_shape(winograd_shape(sizes)), InputKind::normal}, settings);
}

}  // namespace

TEST_CASE("28 winograd-pkf-shmem: every image is right") { check_suite("28", winograd_suite()); }

TEST_CASE("28 winograd-pkf-shmem: every image is right with 32 tiles a block") {
  check_suite("28", short_winograd_suite(), "tbm=32");
}

TEST_CASE("28 winograd-pkf-shmem: every image is right with the output transform fused") {
  check_suite("28", short_winograd_suite(), "fused=output");
  check_suite("28", short_winograd_suite(), "fused=output,tbm=32");
}

TEST_CASE("28 winograd-pkf-shmem: counters are what the lesson predicts (simulator)") {
  check_winograd_prediction("28");
  check_winograd_prediction("28", "tbm=32");
  check_winograd_prediction("28", "fused=output");
  check_winograd_prediction("28", "fused=output,tbm=32");
}

TEST_CASE("28 winograd-pkf-shmem: refuses by rule") { check_refusals_of_winograd("28"); }

TEST_CASE("28 winograd-pkf-shmem: refused where shared memory does not hold the transformed tiles") {
  const ConvProblem problem = parse_shape("c=2,k=3,h=5,w=6,r=3,s=3");
  const std::unique_ptr<Stage> stage(find_stage("28").make());
  const auto& tunable = dynamic_cast<const TunableStage&>(*stage);
  DeviceLimits limits = device_limits();
  const auto refused = [&](int tbm, std::int64_t bytes, int fused = 0) {
    limits.shared_bytes_per_block = bytes;
    return std::string(
        tunable.check_configuration(problem, limits, with_values(tunable.knobs(), {tbm, fused})).reason());
  };
  // 36 positions, rows of 64 + 8 halves; 12 warps with 16 x 24 floats.
  const std::int64_t small = 36 * 16 * 72 * 2 + 12 * 384 * 4, large = 36 * 32 * 72 * 2 + 12 * 384 * 4;
  CHECK(refused(16, small) == "");
  CHECK(refused(32, large) == "");
  CHECK(refused(32, large - 1) == "tbm=32,fused=input takes 184320 bytes of shared memory; a block may have 184319");
  CHECK(refused(16, small - 1) == "tbm=16,fused=input takes 101376 bytes of shared memory; a block may have 101375");
  const std::int64_t output = 36 * 16 * 80 * 2 + 12 * 384 * 4;
  CHECK(refused(16, output, 1) == "");
  CHECK(refused(16, output - 1, 1) ==
        "tbm=16,fused=output takes 110592 bytes of shared memory; a block may have 110591");
  limits.shared_bytes_per_block = small - 1;
  CHECK(std::string(stage->check(problem, limits).reason()) ==
        "a block needs 101376 bytes of shared memory; it may have 101375");
}

TEST_CASE("28 winograd-pkf-shmem: workspace is 27's without the transformed input") {
  CHECK(run("n=2,c=3,k=5,h=9,w=7").workspace_bytes == 2 * 36 * (16 * 16 + 16 * 32));
  CHECK(run("n=33,c=17,k=33,h=2,w=1", "tbm=32").workspace_bytes == 2 * 36 * (32 * 48 + 48 * 64));
  // With the output transform fused, the transformed input instead of the products.
  CHECK(run("n=33,c=17,k=49,h=2,w=1", "fused=output").workspace_bytes == 2 * 36 * (32 * 64 + 32 * 64));
}

TEST_CASE("28 winograd-pkf-shmem: the transformed input does not go to memory (simulator)") {
  const char* const sizes = "n=2,c=32,k=64,h=16,w=16";  // 32 tiles
  const RunResult before = run(sizes, {}, "27"), now = run(sizes);
  REQUIRE(before.counters);
  REQUIRE(now.counters);
  CHECK(before.counters->global_store_bytes - now.counters->global_store_bytes == 2 * 36 * 32 * 32);
  const RunResult of_output = run(sizes, "fused=output");
  REQUIRE(of_output.counters);
  CHECK(before.counters->global_store_bytes - of_output.counters->global_store_bytes == 2 * 36 * 32 * 64);
}

TEST_CASE("28 winograd-pkf-shmem: more tiles a block read filters less often, and the input more often (simulator)") {
  // 32 tiles and 64 filters: two blocks of 16 x 64, or two of 32 x 32.
  const char* const sizes = "n=2,c=32,k=64,h=16,w=16";
  const RunResult small = run(sizes, "tbm=16"), large = run(sizes, "tbm=32");
  REQUIRE(small.counters);
  REQUIRE(large.counters);
  const std::int64_t input = 2 * 2 * 32 * (5 + 6 + 6 + 5) * (5 + 6 + 6 + 5), filters = 2 * 36 * 32 * 64;
  CHECK(large.counters->global_load_bytes - small.counters->global_load_bytes == input - filters);
}

TEST_CASE("28 winograd-pkf-shmem: two barriers for each 64 channels of a block (simulator)") {
  const auto barriers = [](const char* sizes, const char* settings) {
    const RunResult result = run(sizes, settings);
    REQUIRE(result.counters);
    return result.counters->barriers;
  };
  CHECK(barriers("n=2,c=64,k=64,h=16,w=16", "tbm=16") == 2 * 2);
  CHECK(barriers("n=2,c=65,k=65,h=16,w=16", "tbm=16") == 2 * 2 * 4);
  CHECK(barriers("n=2,c=65,k=65,h=16,w=16", "tbm=32") == 3 * 4);
}

TEST_CASE("28 winograd-pkf-shmem: shared memory is written and read without a bank conflict (simulator)") {
  for (const char* settings : {"tbm=16", "tbm=32", "fused=output", "fused=output,tbm=32"}) {
    for (const char* sizes : {"n=2,c=64,k=64,h=16,w=16", "n=3,c=17,k=65,h=9,w=7"}) {
      CAPTURE(std::string(settings));
      CAPTURE(std::string(sizes));
      const RunResult result = run(sizes, settings);
      REQUIRE(result.counters);
      CHECK(result.counters->shared_load_conflicts == 0);
      CHECK(result.counters->shared_store_conflicts == 0);
      CHECK(result.counters->shared_load_requests > 0);
    }
  }
}
