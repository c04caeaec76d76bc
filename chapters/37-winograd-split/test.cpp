#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "common/harness/check/reference.hpp"
#include "common/harness/files/problem_io.hpp"
#include "common/harness/ladder/tuning_log.hpp"
#include "common/kernel/tracks/winograd.hpp"
#include "common/stage/tunable.hpp"
#include "tests/stage_suite.hpp"

using namespace convladder;

namespace {

RunResult run(const std::string& sizes, std::string_view settings = {}) {
  return run_case(find_stage("37"), {parse_shape(winograd_shape(sizes)), InputKind::normal}, settings);
}

/// With numbers of its own, changed by `change` after they were drawn.
template <class Change>
RunResult run_changed(const std::string& sizes, const Change& change, std::string_view settings = {}) {
  Workload workload = make_workload("", parse_shape(winograd_shape(sizes)), InputKind::normal, FilterForm::dense, 7);
  change(workload.tensors);
  workload.reference = convolve_reference(workload.problem, workload.tensors.input, workload.tensors.filter);
  RunOptions options;
  options.time = false;
  options.settings = settings;
  return run_stage(find_stage("37"), workload, options);
}

void check_right(const RunResult& result) {
  CHECK_MESSAGE(result.status == Status::ok, result.reason);
  CHECK(result.verified);
}

constexpr const char* kTiles[] = {"2x2", "4x4", "6x6", "7x4", "7x7"};
constexpr const char* kShape = "n=2,c=70,k=66,h=9,w=11";  // the second channel block nearly empty

/// A tile, whatever its error.
std::string with_tile(const std::string& tile) { return "bound=1e-4,tile=" + tile; }

/// The stage with a bound, in 1e-6, and a tile by its number: 0 is auto, 1 the first of kTiles. On a GPU of 132
/// multiprocessors.
struct Asked {
  std::unique_ptr<Stage> stage{find_stage("37").make()};
  const TunableStage& tunable = dynamic_cast<const TunableStage&>(*stage);
  DeviceLimits limits = device_limits();
  ConvProblem problem;
  Configuration configuration;

  Asked(const std::string& sizes, int bound, int tile)
      : problem(parse_shape(winograd_shape(sizes))), configuration(with_values(tunable.knobs(), {bound, tile, 0})) {
    limits.multiprocessors = 132;
  }

  std::string decided(int knob) const {
    const Configuration decided = tunable.decided(problem, limits, configuration);
    return std::string(value_text(tunable.knobs().knobs[knob], decided[tunable.knobs().knobs[knob].name]));
  }
  std::string refusal() const { return tunable.check_configuration(problem, limits, configuration).reason(); }
};
std::string tile_for(const std::string& sizes, int bound) { return Asked(sizes, bound, 0).decided(1); }

/// The sizes that are cheap to simulate.
std::vector<SuiteCase> small_suite() {
  std::vector<SuiteCase> suite = short_winograd_suite();
  std::erase_if(suite, [](const SuiteCase& one) { return one.problem.c > 32 || one.problem.k > 64; });
  return suite;
}

}  // namespace

TEST_CASE("37 winograd-split: every image is right, and within the bound (sm_90)") {
  check_suite("37", winograd_suite());
}

TEST_CASE("37 winograd-split: every image is right with the larger tiles (sm_90)") {
  const std::vector<SuiteCase> suite = small_suite();
  REQUIRE(suite.size() >= 10);
  for (const char* tile : {"4x4", "6x6", "7x4", "7x7"}) check_suite("37", suite, with_tile(tile));
}

TEST_CASE("37 winograd-split: blocks of any number of tiles are right (sm_90)") {
  // More tiles than a block, more filters than 128, more stages than the ring has slots; and several works a block.
  std::vector<SuiteCase> suite;
  for (const char* sizes : {"n=3,c=130,k=130,h=13,w=19", "n=2,c=330,k=5,h=5,w=5", "n=65,c=3,k=3,h=2,w=3"})
    suite.push_back({parse_shape(winograd_shape(sizes)), InputKind::normal});
  for (const char* block : {"64", "88", "112", "128"}) check_suite("37", suite, std::string("tile=4x4,block=") + block);
}

TEST_CASE("37 winograd-split: numbers of any size are right (sm_90)") {
  const auto scaled = [](float input, float filter) {
    return run_changed(kShape, [&](HostTensors& tensors) {
      for (float& value : tensors.input) value *= input;
      for (float& value : tensors.filter) value *= filter;
    });
  };
  for (const auto& [input, filter] : {std::pair{1e30f, 1e-30f},
                                      {1e-30f, 1e30f},
                                      {1e-20f, 1e-15f},
                                      {1e18f, 1e18f},
                                      {1e-36f, 1.0f},
                                      {1e-41f, 1e30f},
                                      {1e37f, 1e-10f},
                                      {1.0f, 1e-41f},
                                      {0.0f, 1.0f}}) {
    CAPTURE(input);
    CAPTURE(filter);
    check_right(scaled(input, filter));
  }
}

TEST_CASE("37 winograd-split: numbers of all sizes in one image are right (sm_90)") {
  // From 1e-30 to 1e30, a row each; and a pixel far above all others.
  check_right(run_changed(kShape, [](HostTensors& tensors) {
    for (std::size_t i = 0; i < tensors.input.size(); ++i)
      tensors.input[i] *= std::pow(10.0f, static_cast<float>(i / 11 % 9) * 7.5f - 30.0f);
  }));
  check_right(run_changed(kShape, [](HostTensors& tensors) { tensors.input[500] = 1e30f; }));
}

TEST_CASE("37 winograd-split: NaN and infinity arrive where the reference has them (sm_90)") {
  const float infinity = std::numeric_limits<float>::infinity();
  check_right(run_changed(kShape, [&](HostTensors& tensors) { tensors.filter[tensors.filter.size() - 5] = infinity; }));
  check_right(run_changed(kShape, [&](HostTensors& tensors) { tensors.filter[40] = std::nanf(""); }));
  check_right(run_changed(kShape, [&](HostTensors& tensors) {
    tensors.input[3] = -infinity, tensors.input.back() = infinity, tensors.filter[40] = std::nanf("");
  }));
}

TEST_CASE("37 winograd-split: counters are what the lesson predicts (simulator)") {
  check_winograd_prediction("37");
  for (const char* tile : kTiles)
    check_prediction("37", {winograd_shape("n=2,c=17,k=5,h=13,w=9,pad_h=0")}, FilterForm::dense, with_tile(tile));
  check_prediction("37", {winograd_shape("n=3,c=70,k=130,h=13,w=19")}, FilterForm::dense, "tile=4x4,block=64");
}

TEST_CASE("37 winograd-split: refuses by rule (sm_90)") {
  check_refusals_of_winograd("37");
  constexpr int kAuto = 0, k4x4 = 2, k7x7 = 5;
  CHECK(Asked("n=128,c=64,k=64,h=56,w=56", 5, k7x7).refusal() ==
        "tiles of 7x7 have relative RMS errors of up to 7.9e-06 with c=64; the bound is 5e-06");
  CHECK(Asked("n=128,c=64,k=64,h=56,w=56", 10, k7x7).refusal() == "");
  CHECK(Asked("n=128,c=512,k=512,h=7,w=7", 1, k4x4).refusal() == "");
  // 81 positions of 4096 x 8192 numbers are more than 2^31, and 36 are not.
  CHECK(Asked("c=4096,k=8192,h=1,w=1", 100, k7x7).refusal().find("fewer than 2^31 elements") != std::string::npos);
  CHECK(Asked("c=4096,k=8192,h=1,w=1", 100, k4x4).refusal() == "");
  CHECK(Asked("c=64,h=3,w=3", 1, kAuto).refusal() == "");
  // By name, as a user would.
  const RunResult result = run("c=64,h=3,w=3", "tile=7x7");
  CHECK(result.status == Status::refused);
  CHECK(result.reason.find("the bound is 5e-06") != std::string::npos);
}

TEST_CASE("37 winograd-split: of the tiles within the bound, the one with the least time (sm_90)") {
  const auto square = [](int n, int channels, int size) {
    const std::string c = std::to_string(channels), s = std::to_string(size);
    return "n=" + std::to_string(n) + ",c=" + c + ",k=" + c + ",h=" + s + ",w=" + s;
  };
  constexpr int kDefault = 5;
  // 7 divides the sides of these layers.
  for (const auto& [n, channels, size] : {std::array{128, 128, 28}, {128, 256, 14}, {128, 512, 7}, {32, 256, 56}}) {
    CAPTURE(channels);
    CHECK(tile_for(square(n, channels, size), kDefault) == "7x4");
    CHECK(tile_for(square(n, channels, size), 10) == "7x7");
    CHECK(tile_for(square(n, channels, size), 1) == "4x4");
  }
  // Blocks that fill their last round.
  CHECK(Asked(square(128, 256, 14), kDefault, 0).decided(2) == "128");
  CHECK(Asked(square(128, 512, 7), kDefault, 0).decided(2) == "88");
  CHECK(Asked(square(32, 512, 7), kDefault, 0).decided(2) == "64");
}

TEST_CASE("37 winograd-split: errors are below what is predicted, and not far below (sm_90)") {
  const double two = winograd_amplification<F2>(), four = winograd_amplification<F4Fractions>(),
               six = winograd_amplification<F6>(), seven = winograd_amplification<F7>();
  const double amplifications[] = {two * two, four * four, six * six, seven * four, seven * seven};
  for (int i = 0; i < 5; ++i) {
    SuiteShare share(std::string("37 errors ") + kTiles[i]);
    for (const int channels : {1, 20, 70}) {
      CAPTURE(std::string(kTiles[i]));
      CAPTURE(channels);
      // 14 x 14 outputs.
      const std::string sizes = "c=" + std::to_string(channels) + ",k=8,h=16,w=16,pad_h=0,pad_w=0";
      if (!share.takes(parse_shape(sizes), InputKind::normal)) continue;
      const RunResult result = run(sizes, with_tile(kTiles[i]));
      REQUIRE(result.check);
      const double tiles[] = {49, 16, 9, 8, 4};
      const double roundings = 16 + channels / 128.0, chance = 1 + 2 / std::sqrt(8 * tiles[i]);
      const double predicted = 0x1p-24 * std::sqrt(amplifications[i] * roundings / 4 * chance);
      CHECK(result.check->rel_l2_err < predicted);
      CHECK(result.check->rel_l2_err > 0.45 * predicted);
    }
  }
}

TEST_CASE("37 winograd-split: workspace is what the lesson says (sm_90)") {
  // At 36 positions: V of 64 tiles and 64 channels, M of 64 tiles and 128 filters, and U; a number for each tile, two
  // for each filter and position, and one for each filter.
  CHECK(run("n=2,c=3,k=5,h=9,w=7", "tile=4x4,block=64").workspace_bytes ==
        4 * 36 * (64 * 64 + 64 * 128 + 64 * 128) + 4 * 64 + 8 * 36 * 128 + 4 * 128);
}

TEST_CASE("37 winograd-split: no bank conflict, and everything moves in whole sectors (simulator)") {
  // Tiles without a border: 16 x 16 of 4 x 4 outputs.
  const RunResult result = run("c=64,k=128,h=66,w=66,pad_h=0,pad_w=0", "tile=4x4");
  REQUIRE(result.counters);
  const Counters& counters = *result.counters;
  CHECK(counters.shared_load_conflicts == 0);
  CHECK(counters.global_load_sectors * 32 == counters.global_load_bytes);
  // But for the number that scales each tile's sums back.
  CHECK(counters.global_store_sectors * 32 == counters.global_store_bytes + 256 * (32 - 4));
}
