#include <doctest/doctest.h>
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "common/harness/files/problem_io.hpp"
#include "common/harness/ladder/settings.hpp"
#include "common/stage/tunable.hpp"
#include "tests/stage_suite.hpp"

using namespace convladder;

namespace {

RunResult run(const std::string& shape, std::string_view settings = {}) {
  return run_case(find_stage("31"), {parse_shape(shape), InputKind::normal}, settings);
}

void check_refusal_with(const char* settings, const char* shape, const char* rule) {
  const std::unique_ptr<Stage> stage(find_stage("31").make());
  const auto& tunable = dynamic_cast<const TunableStage&>(*stage);
  Configuration configuration(tunable.knobs());
  REQUIRE(apply_settings(settings, configuration));
  const std::string reason = tunable.check_configuration(parse_shape(shape), device_limits(), configuration).reason();
  CHECK_MESSAGE(reason.find(rule) != std::string::npos, reason);
}

Counters counters_of(const std::string& shape, std::string_view settings) {
  const RunResult result = run(shape, settings);
  CHECK_MESSAGE(result.status == Status::ok, result.reason);
  REQUIRE(result.counters);
  return *result.counters;
}

constexpr const char* kTiles[] = {"tile=128x64", "tile=256x64", "tile=128x128", "tile=192x128"};

}  // namespace

TEST_CASE("31 implicit-gemm: every image is right") { check_suite("31", implicit_gemm_suite(), kTiles[0]); }

TEST_CASE("31 implicit-gemm: every image is right with the other tiles") {
  check_suite("31", short_implicit_gemm_suite(), kTiles[1]);
  check_suite("31", short_implicit_gemm_suite(), kTiles[2]);
  check_suite("31", short_implicit_gemm_suite(), kTiles[3]);
}

TEST_CASE("31 implicit-gemm: channels in slices are right") {
  for (const char* tile : kTiles) {
    for (const int slices : {2, 4, 8}) {
      const std::string settings = fmt::format("{},split={}", tile, slices);
      std::vector<SuiteCase> suite;
      for (const char* sizes : {
               "n=2,c=264,k=72,h=3,w=5,r=3,s=3",  // of unlike length
               "c=256,k=130,h=9,w=23,r=3,s=3",    // three taps together
               "n=3,c=256,k=9,h=9,w=7,r=2,s=5,stride_h=2,stride_w=2",
           })
        suite.push_back({parse_shape(sizes), InputKind::normal});
      suite.push_back({suite.front().problem, InputKind::nan});
      check_suite("31", suite, settings);
      check_suite("31:bf16", suite, settings);
    }
  }
}

TEST_CASE("31 implicit-gemm: counters of slices are what the lesson predicts (simulator)") {
  for (const char* tile : kTiles) {
    for (const char* sizes : {"n=2,c=264,k=72,h=3,w=5,r=3,s=3", "c=136,k=130,h=9,w=23,r=3,s=3"}) {
      const RunResult result = run(sizes, fmt::format("{},split=4", tile));
      REQUIRE(result.counters);
      REQUIRE(result.prediction);
      for (const CounterField& field : kCounterFields) {
        const std::int64_t expected = (*result.prediction).*field.member;
        CAPTURE(std::string(field.name));
        if (expected >= 0) CHECK((*result.counters).*field.member == expected);
      }
    }
  }
}

TEST_CASE("31 implicit-gemm: refuses slices by rule") {
  check_refusal_with("split=4", "c=96,k=8,h=9,w=9,r=3,s=3", "split=4 wants as many blocks of 32 channels; got c=96");
  check_refusal_with("split=2", "c=65,k=8,h=9,w=9,r=3,s=3",
                     "channels in whole multiples of 8 and zero padding; got c=65");
  check_refusal_with("split=8", "n=64,c=256,k=512,h=56,w=56,r=3,s=3", "at most 268435456 sums");
}

TEST_CASE("31 implicit-gemm: slices where blocks are few") {
  DeviceLimits limits = device_limits();
  limits.multiprocessors = 132;
  const std::unique_ptr<Stage> stage(find_stage("31").make());
  const auto& tunable = dynamic_cast<const TunableStage&>(*stage);
  const auto choice = [&](const char* shape) { return tunable.default_configuration(parse_shape(shape), limits); };
  const auto slices = [&](const char* shape) { return choice(shape)["split"]; };
  CHECK(slices("n=32,c=512,k=512,h=7,w=7,r=3,s=3") == 4);  // 208 blocks of 128 x 128, instead of 104 of 128 x 64
  CHECK(choice("n=32,c=512,k=512,h=7,w=7,r=3,s=3")["tile"] == 2);
  CHECK(slices("c=512,k=512,h=7,w=7,r=3,s=3") == 8);  // eight of 128 x 64
  CHECK(slices("c=64,k=64,h=224,w=224,r=3,s=3") == 1);
  CHECK(slices("n=128,c=512,k=512,h=7,w=7,r=3,s=3") == 1);
  CHECK(slices("n=32,c=256,k=256,h=14,w=14,r=3,s=3") == 1);
  CHECK(slices("c=3,k=64,h=224,w=224,r=7,s=7,stride_h=2,stride_w=2") == 1);
}

TEST_CASE("31 implicit-gemm: every image is right in bf16, and numbers that fp16 does not hold") {
  for (const char* tile : kTiles) check_suite("31:bf16", short_implicit_gemm_suite(), tile);
  for (const char* shape : {"n=2,c=40,k=72,h=9,w=8,r=3,s=3", "c=5,k=7,h=9,w=11,r=3,s=3"}) {
    CHECK(run_stage_of("31:bf16", shape, InputKind::large).verified);
    CHECK(run_stage_of("31", shape, InputKind::large).status == Status::refused);
  }
}

TEST_CASE("31 implicit-gemm: bf16 has the counters of fp16 (simulator)") {
  for (const char* tile : kTiles)
    check_prediction("31:bf16", {"n=3,c=7,k=5,h=5,w=5,r=3,s=3", "n=3,c=40,k=72,h=9,w=23,r=3,s=3"}, FilterForm::dense,
                     tile);
}

TEST_CASE("31 implicit-gemm: counters are what the lesson predicts (simulator)") {
  for (const char* tile : kTiles)
    check_prediction(
        "31",
        {"h=1,w=1", "n=3,c=7,k=5,h=5,w=5,r=3,s=3", "n=2,c=40,k=72,h=9,w=8,r=3,s=3", "n=3,c=40,k=72,h=9,w=23,r=3,s=3",
         "c=16,k=130,h=19,w=64,r=2,s=3,stride_h=2,dilation_h=2", "c=8,k=136,h=15,w=18,r=4,s=2,stride_h=2,stride_w=3",
         "n=2,c=16,k=9,h=11,w=13,r=3,s=3,stride_w=2,dilation_h=2,dilation_w=3,pad_w=3"},
        FilterForm::dense, tile);
}

TEST_CASE("31 implicit-gemm: refuses by rule") { check_refusals_of_implicit_gemm("31"); }

TEST_CASE("31 implicit-gemm: more images than a grid has blocks in y") {
  check_suite("31", {{parse_shape("n=65538,c=8,h=1,w=1"), InputKind::integers}});
}

TEST_CASE("31 implicit-gemm: workspace is what the lesson says") {
  // Halves: taps, channels rounded up to 32, filters to whole blocks.
  CHECK(run("n=2,c=3,k=5,h=9,w=7,r=3,s=3", kTiles[0]).workspace_bytes == 2 * 9 * 32 * 64);
  CHECK(run("c=33,k=65,h=3,w=2,r=1,s=2", kTiles[1]).workspace_bytes == 2 * 2 * 64 * 128);
  CHECK(run("c=33,k=129,h=3,w=2,r=1,s=2", kTiles[2]).workspace_bytes == 2 * 2 * 64 * 256);
}

TEST_CASE("31 implicit-gemm: the tile that is done first") {
  DeviceLimits limits = device_limits();
  limits.multiprocessors = 132;
  const std::unique_ptr<Stage> stage(find_stage("31").make());
  const auto* tunable = dynamic_cast<const TunableStage*>(stage.get());
  REQUIRE(tunable);
  const auto tile = [&](const char* shape) {
    return tunable->default_configuration(parse_shape(shape), limits)["tile"];
  };
  CHECK(tile("h=1,w=1") == 0);
  CHECK(tile("n=8,c=512,k=512,h=7,w=7,r=3,s=3") == 0);      // a block for a multiprocessor, with any tile
  CHECK(tile("c=64,k=64,h=224,w=224,r=3,s=3") == 0);        // 392 blocks, three rounds of 10; 196, two of 18
  CHECK(tile("c=64,k=64,h=960,w=960,r=3,s=3") == 1);        // 7200, 55 rounds of 10; 3600, 28 of 18
  CHECK(tile("n=32,c=128,k=128,h=28,w=28,r=3,s=3") == 3);   // 131, one of 25
  CHECK(tile("n=32,c=256,k=256,h=14,w=14,r=3,s=3") == 2);   // 98, one of 16; 196, two of 10
  CHECK(tile("n=128,c=128,k=128,h=28,w=28,r=3,s=3") == 2);  // 784, six of 16; 523, four of 25
}

TEST_CASE("31 implicit-gemm: no bank conflict, however the tiles are filled (simulator)") {
  for (const char* tile : kTiles) {
    for (const char* shape : {"n=2,c=64,k=64,h=16,w=8,r=3,s=3", "c=5,k=7,h=9,w=11,r=3,s=3"}) {
      CAPTURE(tile);
      CAPTURE(shape);
      const Counters counters = counters_of(shape, tile);
      CHECK(counters.shared_load_requests > 0);
      CHECK(counters.shared_load_conflicts == 0);
      CHECK(counters.shared_store_conflicts == 0);
    }
  }
}

TEST_CASE("31 implicit-gemm: a larger part of a warp loads less from shared memory (simulator)") {
  // Without the epilogue: 128 x 64 and 256 x 64 outputs x filters of one step.
  constexpr std::int64_t kWayOut = 256 * 64 / (32 * 8);
  const char* shape = "n=2,c=32,k=64,h=16,w=8";
  const Counters smaller = counters_of(shape, kTiles[0]), larger = counters_of(shape, kTiles[1]);
  CHECK(smaller.shared_load_requests - kWayOut == 2 * 4 * 12);
  CHECK(larger.shared_load_requests - kWayOut == 4 * 16);
  CHECK(larger.global_load_bytes < smaller.global_load_bytes);
}

TEST_CASE("31 implicit-gemm: three taps share their pixels (simulator)") {
  const auto counted = [](const char* shape) { return counters_of(shape, kTiles[0]); };
  const auto steps = [&](const char* shape) { return counted(shape).barriers - 1; };  // of one block
  CHECK(steps("c=32,k=64,h=8,w=16,r=3,s=3") == 3);
  CHECK(steps("c=32,k=64,h=8,w=16,r=5,s=5") == 25);
  CHECK(steps("c=32,k=64,h=16,w=32,r=3,s=3,stride_h=2,stride_w=2") == 9);
  CHECK(steps("c=33,k=64,h=8,w=16,r=3,s=3") == 18);  // pixels that are not aligned
  // 14 rows of 9 outputs and the next two have 158 slots, of 160; 15 of 8 and 8 more have 160, but could be 16 and 162.
  CHECK(steps("c=32,k=64,h=14,w=9,r=3,s=3") == 3);
  CHECK(steps("c=32,k=64,h=16,w=8,r=3,s=3") == 9);
  CHECK(steps("c=32,k=64,h=4,w=32,r=3,s=3,dilation_w=3,pad_w=3") == 3);
  CHECK(steps("c=32,k=64,h=4,w=32,r=3,s=3,dilation_w=4,pad_w=4") == 9);

  const Counters counters = counted("c=64,k=64,h=8,w=32,r=3,s=3");
  CHECK(counters.global_load_bytes == 2 * 64 * ((4 + 4 + 3) * 32 * 2 + 2 * 9 * 64));
  CHECK(counters.shared_load_conflicts == 0);  // rows of a multiple of eight
  CHECK(counted("c=64,k=64,h=8,w=31,r=3,s=3").shared_load_conflicts > 0);
}

TEST_CASE("31 implicit-gemm: pixels arrive in whole sectors (simulator)") {
  // 128 outputs and 64 filters of 32 channels, 64 bytes each.
  const Counters counters = counters_of("c=32,k=64,h=16,w=8", kTiles[0]);
  CHECK(counters.global_load_bytes == (128 + 64) * 64);
  CHECK(counters.global_load_sectors == (128 + 64) * 2);
  CHECK(counters.global_load_requests == (128 + 64) * 4 / 32);
  CHECK(counters.global_store_sectors == 128 * 64 * 2 / 32);
}
