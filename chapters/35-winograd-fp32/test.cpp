#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "common/harness/files/problem_io.hpp"
#include "common/harness/ladder/tuning_log.hpp"
#include "common/kernel/tracks/winograd.hpp"
#include "common/stage/tunable.hpp"
#include "tests/stage_suite.hpp"

using namespace convladder;

namespace {

RunResult run(const std::string& sizes, std::string_view settings = {}) {
  return run_case(find_stage("35"), {parse_shape(winograd_shape(sizes)), InputKind::normal}, settings);
}

constexpr const char* kTiles[] = {"2x2", "4x4", "6x6", "7x4", "7x7"};

/// A tile, whatever its error.
std::string with_tile(const std::string& tile) { return "bound=1e-4,tile=" + tile; }

/// The stage with a bound, in 1e-6, and a tile by its number: 0 is auto, 1 the first of kTiles.
struct Asked {
  std::unique_ptr<Stage> stage{find_stage("35").make()};
  const TunableStage& tunable = dynamic_cast<const TunableStage&>(*stage);
  ConvProblem problem;
  Configuration configuration;

  Asked(const std::string& sizes, int bound, int tile)
      : problem(parse_shape(winograd_shape(sizes))), configuration(with_values(tunable.knobs(), {bound, tile})) {}

  std::string tile() const {
    const int decided = tunable.decided(problem, device_limits(), configuration)["tile"];
    return std::string(value_text(tunable.knobs().knobs[1], decided));
  }
  std::string refusal() const { return tunable.check_configuration(problem, device_limits(), configuration).reason(); }
};
std::string tile_for(const std::string& sizes, int bound) { return Asked(sizes, bound, 0).tile(); }

}  // namespace

TEST_CASE("35 winograd-fp32: every image is right, and within the bound") { check_suite("35", winograd_suite()); }

// Most images of the suite are computed with 2 x 2 as it is: these tiles fill the fewest blocks. The product is the
// same for every tile, so few channels and filters do.
TEST_CASE("35 winograd-fp32: every image is right with the larger tiles") {
  std::vector<SuiteCase> suite = short_winograd_suite();
  std::erase_if(suite, [](const SuiteCase& one) { return one.problem.c > 32 || one.problem.k > 64; });
  REQUIRE(suite.size() >= 10);
  for (const char* tile : {"4x4", "6x6", "7x4", "7x7"}) check_suite("35", suite, with_tile(tile));
}

TEST_CASE("35 winograd-fp32: every image is within the smallest bound") {
  check_suite("35", short_winograd_suite(), "bound=1e-6");
}

TEST_CASE("35 winograd-fp32: counters are what the lesson predicts (simulator)") {
  check_winograd_prediction("35");
  for (const char* tile : kTiles)
    check_prediction("35", {winograd_shape("n=2,c=17,k=5,h=13,w=9,pad_h=0")}, FilterForm::dense, with_tile(tile));
}

TEST_CASE("35 winograd-fp32: refuses by rule") {
  check_refusals_of_winograd("35");
  constexpr int kAuto = 0, k4x4 = 2, k7x7 = 5;
  CHECK(Asked("n=128,c=64,k=64,h=56,w=56", 10, k7x7).refusal() ==
        "tiles of 7x7 have relative RMS errors of up to 1.2e-05 with c=64; the bound is 1e-05");
  // 65,536 tiles and filters.
  const auto refusal = [](int channels, int bound, int tile) {
    return Asked("n=128,k=512,h=3,w=2,c=" + std::to_string(channels), bound, tile).refusal();
  };
  CHECK(refusal(36, 10, k7x7) == "");
  CHECK(refusal(37, 10, k7x7).find("of up to 1.0e-05 with c=37") != std::string::npos);
  CHECK(refusal(37, 20, k7x7) == "");
  CHECK(refusal(800, 1, kAuto) ==
        "tiles of 2x2 have relative RMS errors of up to 1.0e-06 with c=800; the bound is 1e-06");
  CHECK(refusal(8400, 10, k4x4) == "");
  CHECK(refusal(8500, 10, k4x4) != "");
  // With few of them chance weighs more.
  CHECK(Asked("c=36,h=3,w=3", 10, k7x7).refusal() != "");
  // 81 positions of 4096 x 8192 numbers are more than 2^31, and 36 are not.
  CHECK(Asked("c=4096,k=8192,h=1,w=1", 100, k7x7).refusal().find("fewer than 2^31 elements") != std::string::npos);
  CHECK(Asked("c=4096,k=8192,h=1,w=1", 100, k4x4).refusal() == "");
  // By name, as a user would.
  const RunResult result = run("c=64,h=3,w=3", "tile=7x7");
  CHECK(result.status == Status::refused);
  CHECK(result.reason.find("the bound is 1e-05") != std::string::npos);
}

TEST_CASE("35 winograd-fp32: of the tiles within the bound, the one with the least work") {
  const auto square = [](int n, int channels, int size) {
    const std::string c = std::to_string(channels), s = std::to_string(size);
    return "n=" + std::to_string(n) + ",c=" + c + ",k=" + c + ",h=" + s + ",w=" + s;
  };
  constexpr int kDefault = 10;
  // 7 divides the sides of these layers.
  CHECK(tile_for(square(128, 64, 56), kDefault) == "7x4");
  CHECK(tile_for(square(128, 128, 28), kDefault) == "7x4");
  CHECK(tile_for(square(128, 256, 14), kDefault) == "7x4");
  CHECK(tile_for(square(128, 512, 7), kDefault) == "7x4");
  CHECK(tile_for(square(128, 512, 7), 50) == "7x7");
  CHECK(tile_for(square(128, 32, 56), kDefault) == "7x7");
  CHECK(tile_for(square(128, 64, 56), 20) == "7x7");
  CHECK(tile_for(square(128, 64, 56), 2) == "4x4");
  CHECK(tile_for(square(128, 64, 56), 1) == "4x4");
  CHECK(tile_for(square(128, 128, 28), 1) == "2x2");
  // 32 images of one tile of 7 x 7 fill a quarter of a block of 128 tiles; 128 of 4 x 4 fill it.
  CHECK(tile_for(square(32, 512, 7), kDefault) == "4x4");
  // More channels than any tile's error allows.
  CHECK(tile_for("c=1000,h=1,w=1", 1) == "auto");
}

TEST_CASE("35 winograd-fp32: the chosen tile is in the result") {
  const RunResult result = run("n=2,c=5,k=3,h=9,w=9", "bound=2e-5");
  REQUIRE(result.configuration);
  const auto& [configuration, origin] = *result.configuration;
  const Knobs& knobs = configuration.knobs;
  CHECK(origin == "given");
  CHECK(value_text(knobs.knobs[0], configuration["bound"]) == "2e-5");
  CHECK(value_text(knobs.knobs[1], configuration["tile"]) != "auto");
  const RunResult usual = run("n=2,c=5,k=3,h=9,w=9");
  REQUIRE(usual.configuration);
  CHECK(usual.configuration->origin == "default");
  CHECK(value_text(knobs.knobs[1], usual.configuration->configuration["tile"]) != "auto");
}

TEST_CASE("35 winograd-fp32: errors are below what is predicted, and not far below") {
  const double two = winograd_amplification<F2>(), four = winograd_amplification<F4Fractions>(),
               six = winograd_amplification<F6>(), seven = winograd_amplification<F7>();
  const double amplifications[] = {two * two, four * four, six * six, seven * four, seven * seven};
  for (int i = 0; i < 5; ++i) {
    SuiteShare share(std::string("35 errors ") + kTiles[i]);
    for (const int channels : {1, 20, 70}) {
      CAPTURE(std::string(kTiles[i]));
      CAPTURE(channels);
      // 14 x 14 outputs.
      const std::string sizes = "c=" + std::to_string(channels) + ",k=8,h=16,w=16,pad_h=0,pad_w=0";
      if (!share.takes(parse_shape(sizes), InputKind::normal)) continue;
      const RunResult result = run(sizes, with_tile(kTiles[i]));
      REQUIRE(result.check);
      const double tiles[] = {49, 16, 9, 8, 4};
      const double predicted = winograd_error(amplifications[i], channels, 8 * tiles[i]);
      CHECK(result.check->rel_l2_err < predicted);
      CHECK(result.check->rel_l2_err > 0.45 * predicted);
    }
  }
}

TEST_CASE("35 winograd-fp32: workspace is what the lesson says") {
  // V, M and U at 6 x 6 and 9 x 6 positions: tiles padded to 128, channels to 16, filters to 64.
  CHECK(run("n=2,c=3,k=5,h=9,w=7", with_tile("4x4")).workspace_bytes == 4 * 36 * (128 * 16 + 128 * 64 + 16 * 64));
  CHECK(run("n=2,c=17,k=65,h=8,w=5", with_tile("7x4")).workspace_bytes == 4 * 54 * (128 * 32 + 128 * 128 + 32 * 128));
}

TEST_CASE("35 winograd-fp32: no bank conflict (simulator)") {
  const RunResult result = run("n=2,c=40,k=70,h=9,w=11");
  REQUIRE(result.counters);
  CHECK(result.counters->shared_load_requests > 0);
  CHECK(result.counters->shared_load_conflicts == 0);
  CHECK(result.counters->shared_store_conflicts == 0);
}

TEST_CASE("35 winograd-fp32: everything moves in whole sectors (simulator)") {
  // Tiles without a border: 16 x 16 of 4 x 4 outputs, 16 channels and 64 filters.
  const RunResult result = run("c=16,k=64,h=66,w=66,pad_h=0,pad_w=0", with_tile("4x4"));
  REQUIRE(result.counters);
  const Counters& counters = *result.counters;
  CHECK(counters.global_load_sectors * 32 == counters.global_load_bytes);
  CHECK(counters.global_store_sectors * 32 == counters.global_store_bytes);
}
