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

TEST_CASE("28 winograd-pkf-shmem: every image is right") { check_suite("28", winograd_suite(), "fused=input"); }

TEST_CASE("28 winograd-pkf-shmem: every image is right with 32 tiles a block") {
  check_suite("28", short_winograd_suite(), "fused=input,tbm=32");
}

TEST_CASE("28 winograd-pkf-shmem: every image is right with the output transform fused") {
  check_suite("28", short_winograd_suite(), "fused=output");
  check_suite("28", short_winograd_suite(), "fused=output,tbm=32");
}

TEST_CASE("28 winograd-pkf-shmem: counters are what the lesson predicts (simulator)") {
  check_winograd_prediction("28");
  check_winograd_prediction("28", "fused=input");
  check_winograd_prediction("28", "fused=input,tbm=32");
  check_winograd_prediction("28", "fused=output");
  check_winograd_prediction("28", "fused=output,tbm=32");
}

TEST_CASE("28 winograd-pkf-shmem: refuses by rule") { check_refusals_of_winograd("28"); }

TEST_CASE("28 winograd-pkf-shmem: configurations are right and counted as predicted (simulator)") {
  CHECK(check_configurations("28") == 75);
}

TEST_CASE("28 winograd-pkf-shmem: configurations are refused by rule") {
  const ConvProblem problem = parse_shape("c=2,k=3,h=5,w=6,r=3,s=3");
  const std::unique_ptr<Stage> stage(find_stage("28").make());
  const auto& tunable = dynamic_cast<const TunableStage&>(*stage);
  DeviceLimits limits = device_limits();
  enum { k16x16x16, k32x8x16, k8x32x16 };
  enum { kAuto, kInput, kOutput };
  const auto refused = [&](std::initializer_list<int> values, std::int64_t bytes = 227 << 10) {
    limits.shared_bytes_per_block = bytes;
    return std::string(tunable.check_configuration(problem, limits, with_values(tunable.knobs(), values)).reason());
  };
  // 36 positions, rows of 64 + 8 halves; 12 warps with 16 x 24 floats.
  const std::int64_t small = 36 * 16 * 72 * 2 + 12 * 384 * 4, large = 36 * 32 * 72 * 2 + 12 * 384 * 4;
  CHECK(refused({16, 64, 64, 4, k16x16x16, kInput}, small) == "");
  CHECK(refused({32, 32, 64, 4, k16x16x16, kInput}, large) == "");
  CHECK(refused({32, 32, 64, 4, k16x16x16, kInput}, large - 1) ==
        "tbm=32,tbn=32,tbk=64,fused=input takes 184320 bytes of shared memory; a block may have 184319");
  const std::int64_t output = 36 * 16 * 80 * 2 + 12 * 384 * 4;
  CHECK(refused({16, 64, 16, 4, k16x16x16, kOutput}, output) == "");
  CHECK(refused({16, 64, 16, 4, k16x16x16, kOutput}, output - 1) ==
        "tbm=16,tbn=64,tbk=16,fused=output takes 110592 bytes of shared memory; a block may have 110591");
  CHECK(refused({16, 64, 64, 4, k16x16x16, kOutput}) == "with fused=output no channels are kept for a step: tbk is 16");
  CHECK(refused({16, 64, 64, 4, k16x16x16, kAuto}) == "auto stands for one of the other values");
  CHECK(refused({16, 0, 64, 4, k16x16x16, kInput}) == "auto stands for one of the other values");
  CHECK(refused({32, 64, 16, 4, k16x16x16, kInput}) ==
        "tbm=32,tbn=64 gives a thread 192 sums; its registers have room for 128");
  CHECK(refused({32, 64, 16, 2, k16x16x16, kInput}) == "");
  CHECK(refused({16, 16, 64, 4, k16x16x16, kInput}) ==
        "a warp has 16 tiles x 8 filters of a block of 16 x 16; whole fragments have 16 x 16");
  CHECK(refused({16, 64, 64, 4, k32x8x16, kInput}) ==
        "a warp has 16 tiles x 32 filters of a block of 16 x 64; whole fragments have 32 x 8");
  CHECK(refused({16, 64, 64, 4, k8x32x16, kInput}) ==
        "k, rounded up to a multiple of 16, must be one of 32 for fragment=8x32x16; got 16");
  limits.shared_bytes_per_block = 46080 - 1;
  CHECK(std::string(stage->check(problem, limits).reason()) ==
        "a block needs 46080 bytes of shared memory; it may have 46079");
}

TEST_CASE("28 winograd-pkf-shmem: the default fits the GPU and the problem") {
  const std::unique_ptr<Stage> stage(find_stage("28").make());
  const auto& tunable = dynamic_cast<const TunableStage&>(*stage);
  const auto chosen = [&](const char* sizes, std::int64_t bytes, int multiprocessors) {
    const ConvProblem problem = parse_shape(winograd_shape(sizes));
    DeviceLimits limits{75, bytes, multiprocessors, 4 << 20};
    const Configuration configuration =
        tunable.decided(problem, limits, tunable.default_configuration(problem, limits));
    CHECK(std::string(tunable.check_configuration(problem, limits, configuration).reason()) == "");
    return std::pair(configuration["fused"] == 2, configuration["tbk"]);
  };
  const char* const image = "c=64,k=64,h=960,w=960";
  CHECK(chosen(image, 64 << 10, 68) == std::pair(false, 32));  // RTX 2080 Ti
  CHECK(chosen(image, 96 << 10, 80) == std::pair(false, 32));  // V100
  CHECK(chosen(image, 227 << 10, 132) == std::pair(false, 64));
  CHECK(chosen("n=32,c=128,k=128,h=28,w=28", 64 << 10, 40) == std::pair(false, 32));  // the output's needs more
  // On an H200: two parts of the filters; fewer than four blocks a multiprocessor; and more.
  CHECK(chosen("n=128,c=128,k=128,h=56,w=56", 227 << 10, 132).first);
  CHECK(chosen("c=64,k=64,h=224,w=224", 227 << 10, 132).first);
  CHECK(chosen("c=64,k=64,h=320,w=320", 227 << 10, 132).first);
  CHECK_FALSE(chosen("c=64,k=64,h=448,w=448", 227 << 10, 132).first);
}

TEST_CASE("28 winograd-pkf-shmem: workspace is 27's without the transformed input") {
  CHECK(run("n=2,c=3,k=5,h=9,w=7", "fused=input").workspace_bytes == 2 * 36 * (16 * 16 + 16 * 32));
  CHECK(run("n=33,c=17,k=33,h=2,w=1", "fused=input,tbm=32").workspace_bytes == 2 * 36 * (32 * 48 + 48 * 64));
  // With the output transform fused, the transformed input instead of the products.
  CHECK(run("n=33,c=17,k=49,h=2,w=1", "fused=output").workspace_bytes == 2 * 36 * (32 * 64 + 32 * 64));
}

TEST_CASE("28 winograd-pkf-shmem: the transformed input does not go to memory (simulator)") {
  const char* const sizes = "n=2,c=32,k=64,h=16,w=16";  // 32 tiles
  const RunResult before = run(sizes, {}, "27"), now = run(sizes, "fused=input");
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
  const RunResult small = run(sizes, "fused=input"), large = run(sizes, "fused=input,tbm=32");
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
  CHECK(barriers("n=2,c=64,k=64,h=16,w=16", "fused=input") == 2 * 2);
  CHECK(barriers("n=2,c=65,k=65,h=16,w=16", "fused=input") == 2 * 2 * 4);
  CHECK(barriers("n=2,c=65,k=65,h=16,w=16", "fused=input,tbm=32") == 3 * 4);
}

TEST_CASE("28 winograd-pkf-shmem: shared memory is written and read without a bank conflict (simulator)") {
  for (const char* settings : {"fused=input", "fused=input,tbk=32", "fused=input,tbk=16", "fused=input,tbm=32",
                               "fused=output", "fused=output,tbm=32"}) {
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
