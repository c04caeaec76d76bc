#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "common/harness/check/quantise.hpp"
#include "common/harness/files/problem_io.hpp"
#include "common/stage/tunable.hpp"
#include "tests/stage_suite.hpp"

using namespace convladder;

namespace {

std::string shape(const std::string& sizes) { return sizes + ",r=3,s=3"; }

std::vector<SuiteCase> suite_of(const std::vector<const char*>& shapes) {
  std::vector<SuiteCase> suite;
  for (const char* sizes : shapes) suite.push_back({parse_shape(shape(sizes)), InputKind::normal});
  for (const InputKind kind : {InputKind::integers, InputKind::impulse, InputKind::constant, InputKind::large,
                               InputKind::nan, InputKind::infinity})
    suite.push_back({parse_shape(shape(shapes.front())), kind});
  return suite;
}

/// Up to 64 channels: strips of 64, 112, 160 and 240 columns.
std::vector<SuiteCase> rows_suite() {
  return suite_of({
      "n=2,c=48,k=16,h=5,w=66",                   // two columns more than a strip
      "h=1,w=1",                                  //
      "n=7,c=16,k=16,h=1,w=3",                    // a row of outputs an image
      "n=5,c=64,k=64,h=2,w=64",                   // whole channels and filters
      "c=16,k=80,h=9,w=63",                       // two blocks of filters, the second with one chunk
      "c=63,k=65,h=4,w=65",                       // odd channels, filters and columns
      "c=33,k=16,h=13,w=3",                       // a channel more than a wgmma takes; more rows than the ring
      "n=2,c=1,k=1,h=3,w=113",                    // around 112
      "c=16,k=16,h=2,w=161",                      // around 160
      "c=16,k=16,h=2,w=239",                      // around 240
      "c=16,k=16,h=2,w=241",                      //
      "c=8,k=3,h=1,w=257",                        //
      "c=32,k=16,h=257,w=1",                      // a single column
      "n=3,c=40,k=8,h=6,w=7,pad_h=0,pad_w=0",     // "valid"
      "n=2,c=16,k=16,h=4,w=60,pad_h=3,pad_w=70",  // strips that see none of the image
      "c=8,k=8,h=1,w=1,pad_h=9,pad_w=2",
  });
}

/// More channels: tiles.
std::vector<SuiteCase> tiles_suite() {
  return suite_of({
      "n=2,c=72,k=16,h=9,w=11",                 // two images, or a part of one
      "n=70,c=65,k=1,h=1,w=1",                  // more images than a tile has
      "n=9,c=80,k=144,h=7,w=7",                 // images share a tile; two blocks of filters
      "n=3,c=128,k=64,h=14,w=14",               // whole channels; one image a tile, or less
      "n=2,c=65,k=7,h=13,w=28",                 // rows of an image
      "c=72,k=8,h=5,w=57",                      //
      "c=72,k=8,h=3,w=257",                     // strips
      "c=72,k=9,h=257,w=2",                     // many rows
      "n=2,c=272,k=130,h=3,w=5",                // three blocks of channels, the last of one chunk
      "n=5,c=72,k=8,h=6,w=7,pad_h=0,pad_w=0",   // no zeros between the rows, none between the images
      "n=5,c=72,k=8,h=6,w=7,pad_h=0",           // or between the images alone
      "n=5,c=72,k=8,h=6,w=7,pad_w=0",           // or the rows
      "n=3,c=72,k=8,h=2,w=3,pad_h=4,pad_w=2",   // more padding than the image has rows
      "n=2,c=72,k=8,h=1,w=1,pad_h=3,pad_w=70",  // strips and rows that see none of it
      "n=2,c=72,k=8,h=3,w=3,pad_h=0,pad_w=0",   // an output an image
  });
}

std::string tiles_of(int count, const char* whose, int slices, const char* loads = "boxes") {
  return "positions=" + std::to_string(count) + ",tiles=" + whose + ",split=" + std::to_string(slices) +
         ",loads=" + loads;
}
std::string positions(int count) { return tiles_of(count, "own", 1); }
std::string any_tiles(int count, bool shared) { return tiles_of(count, shared ? "shared" : "own", 1); }
std::string columns(int count, bool shared) { return tiles_of(count, shared ? "shared" : "own", 1, "columns"); }

constexpr int kStrips[] = {64, 112, 160, 240};
constexpr int kTiles[] = {64, 128, 208, 224, 240, 256};
constexpr int kAnyTiles[] = {64, 96, 128, 192, 256};
constexpr int kLines[] = {32, 64, 96, 112, 128, 192, 224, 256};

RunResult run(const std::string& sizes, const std::string& settings = "") {
  return run_case(find_stage("34"), {parse_shape(shape(sizes)), InputKind::normal}, settings);
}

Counters counters_of(const std::string& sizes, const std::string& settings = "") {
  const RunResult result = run(sizes, settings);
  CHECK_MESSAGE(result.status == Status::ok, result.reason);
  REQUIRE(result.counters);
  return *result.counters;
}

}  // namespace

TEST_CASE("34 int8-hopper: every image is right, zeros around it (sm_90)") {
  std::vector<SuiteCase> suite = winograd_suite();
  suite.erase(std::remove_if(suite.begin(), suite.end(),
                             [](const SuiteCase& each) { return each.problem.padding != Padding::zero; }),
              suite.end());
  check_suite("34", suite);
}

TEST_CASE("34 int8-hopper: rows are right, however wide the strips (sm_90)") {
  for (const int strip : kStrips) check_suite("34", rows_suite(), positions(strip));
}

TEST_CASE("34 int8-hopper: tiles are right, whatever fits in one (sm_90)") {
  for (const int tile : kTiles) check_suite("34", tiles_suite(), positions(tile));
}

TEST_CASE("34 int8-hopper: every filter is right, as the stage chooses to take it (sm_90)") {
  check_suite("34", near_taps_suite());
}

TEST_CASE("34 int8-hopper: tiles of any filter are right, whatever fits in one (sm_90)") {
  for (const bool shared : {false, true}) {
    check_suite("34", line_tiles_suite(shared), any_tiles(128, shared));
    for (const int tile : kAnyTiles) check_suite("34", short_line_tiles_suite(shared), any_tiles(tile, shared));
  }
  std::vector<SuiteCase> suite = tiles_suite();
  for (SuiteCase& each : suite) each.problem.k += 64;
  check_suite("34", suite, any_tiles(192, true));
}

TEST_CASE("34 int8-hopper: columns of im2col's matrix are right, whatever fits in a tile (sm_90)") {
  for (const bool shared : {false, true}) {
    check_suite("34", columns_suite(shared), columns(112, shared));
    for (const int tile : kLines) {
      check_suite("34", short_columns_suite(shared), columns(tile, shared));
    }
  }
}

TEST_CASE("34 int8-hopper: few channels are right, whatever fits in a tile (sm_90)") {
  check_suite("34", few_channels_suite());
  std::vector<SuiteCase> suite = few_channels_suite();
  for (const int tile : {64, 192}) check_suite("34", suite, any_tiles(tile, false));
  for (SuiteCase& each : suite) each.problem.k += 64;
  check_suite("34", suite, any_tiles(96, true));
}

TEST_CASE("34 int8-hopper: tiles in slices are right (sm_90)") {
  std::vector<SuiteCase> suite;
  for (const char* sizes : {"n=2,c=400,k=80,h=3,w=5", "n=5,c=272,k=144,h=3,w=5,stride_h=2,stride_w=2"})
    suite.push_back({parse_shape(shape(sizes)), InputKind::normal});
  for (const int slices : {2, 4, 8}) {
    for (const int tile : {32, 64}) check_suite("34", suite, tiles_of(tile, "own", slices, "columns"));
  }
}

TEST_CASE("34 int8-hopper: every epilogue is right, as the stage chooses to take it (sm_90)") {
  check_suite("34", epilogue_suite());
}

TEST_CASE("34 int8-hopper: an epilogue is right, whatever fits in a strip or tile (sm_90)") {
  const auto check = [](const std::string& sizes, const std::string& settings) {
    CAPTURE(settings);
    check_suite("34", with_epilogues({{parse_shape(sizes), InputKind::normal}}), settings);
  };
  for (const int strip : kStrips) {
    check(shape("c=16,k=80,h=3,w=58"), positions(strip));      // two blocks of filters
    check(shape("n=2,c=9,k=65,h=2,w=113"), positions(strip));  // no whole chunks of filters
    check(shape("c=8,k=16,h=2,w=241"), positions(strip));
  }
  for (const int tile : kTiles) {
    check(shape("n=3,c=72,k=16,h=9,w=11"), positions(tile));  // images share a tile
    check(shape("n=2,c=65,k=7,h=13,w=28"), positions(tile));
  }
  for (const int tile : kLines) {
    check("n=2,c=72,k=144,h=9,w=8,r=3,s=3,stride_h=2", columns(tile, false));
    check("n=3,c=24,k=80,h=9,w=31", columns(tile, true));
  }
  for (const int tile : kAnyTiles) {
    check("n=3,c=24,k=80,h=9,w=31", any_tiles(tile, false));
    check("n=2,c=72,k=130,h=9,w=8,r=3,s=3,stride_h=2", any_tiles(tile, true));
  }
  for (const int slices : {2, 8}) check(shape("n=3,c=400,k=80,h=5,w=7"), tiles_of(64, "own", slices, "columns"));
}

TEST_CASE("34 int8-hopper: counters are what the lesson predicts (simulator)") {
  for (const char* epilogue : {"bias", "bias_residual_relu"}) {
    for (const char* sizes :
         {"n=2,c=40,k=72,h=9,w=130,r=3,s=3", "n=5,c=72,k=136,h=9,w=7,r=3,s=3", "n=3,c=72,k=256,h=9,w=31"})
      check_prediction("34", {sizes + std::string(",epilogue=") + epilogue}, FilterForm::dense);
  }
  for (const char* sizes : {"h=1,w=1", "n=3,c=7,k=5,h=5,w=5", "n=2,c=40,k=72,h=9,w=130,pad_w=0",
                            "c=64,k=64,h=15,w=18,pad_h=3", "n=2,c=8,k=8,h=4,w=60,pad_h=3,pad_w=70"}) {
    for (const int strip : kStrips) check_prediction("34", {shape(sizes)}, FilterForm::dense, positions(strip));
  }
  for (const char* sizes : {"n=9,c=65,k=8,h=1,w=1", "n=5,c=72,k=136,h=9,w=7", "c=128,k=5,h=7,w=60,pad_h=0",
                            "n=2,c=130,k=8,h=3,w=257,pad_w=0", "n=2,c=72,k=8,h=1,w=1,pad_h=3,pad_w=70"}) {
    for (const int tile : kTiles) check_prediction("34", {shape(sizes)}, FilterForm::dense, positions(tile));
  }
  for (const SuiteCase& each : line_tiles_suite(true)) {
    if (each.inputs != InputKind::normal) continue;
    for (const bool shared : {false, true})
      check_prediction("34", {to_string(each.problem)}, FilterForm::dense, any_tiles(shared ? 192 : 96, shared));
  }
  for (const SuiteCase& each : columns_suite(true)) {
    if (each.inputs != InputKind::normal) continue;
    for (const bool shared : {false, true})
      check_prediction("34", {to_string(each.problem)}, FilterForm::dense, columns(shared ? 96 : 112, shared));
  }
  for (const SuiteCase& each : few_channels_suite()) {
    if (each.inputs == InputKind::normal)
      check_prediction("34", {to_string(each.problem)}, FilterForm::dense, any_tiles(96, false));
  }
  for (const std::string& split : {tiles_of(64, "own", 2, "columns"), tiles_of(32, "own", 8, "columns")})
    check_prediction("34", {shape("n=2,c=520,k=80,h=7,w=9,stride_h=2")}, FilterForm::dense, split);
}

TEST_CASE("34 int8-hopper: refuses by rule (sm_90)") {
  check_refusals_of_implicit_gemm("34");
  for (const auto& [sizes, rule] :
       {std::pair{"h=9,w=9,r=7,s=8", "at most 49 taps; got r=7, s=8"},
        {"h=60,w=9,r=50", "at most 49 taps; got r=50, s=1"},
        {"h=8,w=8,stride_h=3", "the stride must be 1 or 2; got stride_h=3, stride_w=1"},
        {"h=8,w=8,r=3,s=3,stride_w=4", "the stride must be 1 or 2; got stride_h=1, stride_w=4"},
        {"h=900,w=9,r=3,s=3,dilation_h=256", "lie too far apart for a tile's pixels to fit in shared memory; got r=3"},
        {"h=99,w=900,r=7,s=7,dilation_h=9,dilation_w=40,pad_h=30", "dilation_h=9, dilation_w=40"},
        {"c=14794,h=3,w=3,r=3,s=3", "kept in 32 bits: at most 133144 of them; got 133146"},
        {"c=133145", "kept in 32 bits: at most 133144 of them; got 133145"}}) {
    CAPTURE(std::string(sizes));
    const std::string reason = refusal(find_stage("34"), parse_shape(sizes), nullptr);
    CHECK_MESSAGE(reason.find(rule) != std::string::npos, reason);
  }
  check_refusal("34", "h=8,w=8,stride_h=3", "the stride must be 1 or 2");
  ConvProblem problem = parse_shape(shape("h=8,w=8"));
  for (const auto& [padding, rule] : {std::pair{Padding::replicate, "the padding must be zeros, which TMA"},
                                      {Padding::reflect, "fills in; got reflect"}}) {
    problem.padding = padding;
    const std::string reason = refusal(find_stage("34"), problem, nullptr);
    CHECK_MESSAGE(reason.find(rule) != std::string::npos, reason);
  }
}

TEST_CASE("34 int8-hopper: workspace is what the lesson says (sm_90)") {
  // Bytes: taps, channels rounded up to 64, with more than 64 to 128, filters to 64. A scale a filter.
  CHECK(run("n=2,c=16,k=5,h=9,w=7").workspace_bytes == 9 * 64 * 64 + 4 * 64);
  CHECK(run("c=64,k=65,h=3,w=2").workspace_bytes == 9 * 64 * 128 + 4 * 128);
  CHECK(run("c=144,k=65,h=3,w=2", positions(64)).workspace_bytes == 9 * 256 * 128 + 4 * 128);
  // And the input, its channels rounded up to 16, where they are not a multiple.
  CHECK(run("n=2,c=3,k=5,h=9,w=7").workspace_bytes == 9 * 64 * 64 + 4 * 64 + 2 * 9 * 7 * 16);
}

TEST_CASE("34 int8-hopper: a filter is folded where that saves products (sm_90)") {
  // Taps of 128 channels and 64 filters, a scale a filter, and rows of the copy: a row of the filter is one tap where
  // it is folded. With stride 2 a pixel has half of 16 channels.
  const auto workspace = [](const char* sizes) {
    return run_case(find_stage("34"), {parse_shape(sizes), InputKind::normal}).workspace_bytes;
  };
  const auto taps = [](int count) { return count * 64 * 128 + 4 * 64; };
  CHECK(workspace("n=2,c=3,h=13,w=14,r=7,s=7,stride_h=2,stride_w=2") == taps(7) + 2 * 13 * 20 * 8);
  CHECK(workspace("c=20,h=5,w=9,r=3,s=5,stride_w=2") == taps(3) + 5 * 14 * 24);
  CHECK(workspace("c=3,h=5,w=9,r=5,s=7") == taps(5) + 5 * 15 * 16);
  CHECK(workspace("c=48,h=5,w=9,r=2,s=2,pad_h=0,pad_w=0") == taps(2) + 5 * 9 * 48);
  CHECK(workspace("c=3,h=5,w=9,r=3,s=3,dilation_w=2") == taps(9) + 5 * 9 * 16);  // no window of neighbours
  CHECK(workspace("c=32,h=5,w=9,r=3,s=3,stride_w=2") == taps(9));                // 3 * 3 wgmmas either way
  CHECK(workspace("c=3,h=5,w=9,r=2,s=9") == taps(18) + 5 * 9 * 16);              // 9 * 16 = 144 bytes
}

TEST_CASE("34 int8-hopper: a strip or tile of a size that the kernel has") {
  const std::unique_ptr<Stage> stage(find_stage("34").make());
  const auto* tunable = dynamic_cast<const TunableStage*>(stage.get());
  REQUIRE(tunable);
  DeviceLimits limits = device_limits();
  const auto accepts = [&](const char* sizes, int count) {
    return tunable->check_configuration(parse_shape(shape(sizes)), limits, with_values(tunable->knobs(), {count}))
        .accepted();
  };
  for (const int strip : kStrips) CHECK(accepts("c=64,h=9,w=9", strip));
  for (const int tile : kTiles) CHECK(accepts("c=65,h=9,w=9", tile));
  CHECK(!accepts("c=64,h=9,w=9", 128));
  CHECK(!accepts("c=64,h=9,w=9", 56));
  CHECK(!accepts("c=65,h=9,w=9", 160));

  const auto refuses = [&](const char* sizes, std::initializer_list<int> values) -> std::string {
    return tunable->check_configuration(parse_shape(sizes), limits, with_values(tunable->knobs(), values)).reason();
  };
  CHECK(refuses("c=65,k=64,h=9,w=9", {128, 2, 1}) ==
        "a shared tile has 128 filters, so k must be more than 64; got k=64");
  CHECK(refuses("c=512,k=65,h=9,w=9", {128, 1, 2}) == "boxes have all channels: split=2 wants loads=columns");
  CHECK(refuses("c=64,k=65,h=9,w=9,r=3,s=3", {64, 2, 1}) ==
        "3 x 3 filters of up to 64 channels have strips: tiles=own, split=1 and loads=boxes");
  CHECK(refuses("c=9,k=65,h=9,w=9", {208, 1, 1}).starts_with("tiles of any filter, and shared ones, have"));
  CHECK(refuses("c=9,k=65,h=9,w=99,r=5,s=5,dilation_w=18", {256, 1, 1}).starts_with("no tile of"));
  CHECK(refuses("c=9,k=65,h=9,w=9", {96, 2, 1}).empty());

  // What the lesson's arithmetic says of 132 multiprocessors.
  limits.multiprocessors = 132;
  const auto chosen = [&](const char* sizes) {
    return tunable->default_configuration(parse_shape(shape(sizes)), limits)["positions"];
  };
  CHECK(chosen("c=64,k=64,h=224,w=224") == 112);
  CHECK(chosen("c=64,k=64,h=448,w=448") == 240);
  CHECK(chosen("c=64,k=64,h=960,w=960") == 240);
  CHECK(chosen("c=64,k=64,h=320,w=320") == 160);
  CHECK(chosen("n=32,c=64,k=64,h=56,w=56") == 64);
  CHECK(chosen("n=32,c=128,k=128,h=112,w=112") == 208);
  CHECK(chosen("n=32,c=512,k=512,h=7,w=7") == 112);
  // Boxes where planes are large; slices where tiles are few.
  const auto choice = [&](const char* sizes) {
    const Configuration all = tunable->default_configuration(parse_shape(sizes), limits);
    return std::array{all["tiles"], all["split"], all["loads"]};
  };
  CHECK(choice("n=32,c=128,k=128,h=112,w=112,r=3,s=3") == std::array{1, 1, 1});
  CHECK(choice("n=32,c=512,k=512,h=7,w=7,r=3,s=3") == std::array{1, 1, 2});
  CHECK(choice("n=128,c=512,k=512,h=7,w=7,r=3,s=3") == std::array{2, 1, 2});
  CHECK(choice("n=1,c=512,k=512,h=7,w=7,r=3,s=3") == std::array{1, 4, 2});
  CHECK(choice("n=32,c=256,k=1024,h=14,w=14") == std::array{1, 1, 2});
  CHECK(choice("n=32,c=2048,k=512,h=7,w=7") == std::array{1, 1, 2});
  CHECK(choice("n=32,c=48,k=64,h=35,w=35,r=5,s=5") == std::array{1, 1, 1});
}

TEST_CASE("34 int8-hopper: each row of pixels is loaded once (simulator)") {
  // A block a strip: 16 rows of its 112 pixels and the one beside them; 36 KB of filters; 256 pairs of scales.
  const Counters counters = counters_of("c=64,k=64,h=16,w=224", positions(112));
  CHECK(counters.global_load_bytes == 2 * (16 * 113 * 64 + 9 * 64 * 64 + 256 * 8));
  CHECK(counters.global_store_bytes == 16 * 224 * 64);
  CHECK(counters.global_store_sectors * 32 == counters.global_store_bytes);
}

TEST_CASE("34 int8-hopper: windows of a folded filter are loaded as pixels (simulator)") {
  // As in 32, with 8 channels where that has 4; and 128 pairs of scales.
  const RunResult result =
      run_case(find_stage("34"), {parse_shape("c=3,k=64,h=8,w=8,r=7,s=7,stride_h=2,stride_w=2"), InputKind::normal});
  REQUIRE(result.counters);
  CHECK(result.counters->global_load_bytes == 8 * 8 * 3 + 8 * 4 * 7 * 8 + 7 * 64 * 128 + 128 * 8);
  CHECK(result.counters->global_store_bytes == 8 * 14 * 8 + 4 * 4 * 64);
}

TEST_CASE("34 int8-hopper: no bank conflict, and at most one barrier a block (simulator)") {
  for (const char* sizes : {"c=64,k=64,h=16,w=60", "n=3,c=72,k=144,h=8,w=9", "n=2,c=5,k=7,h=9,w=11"}) {
    CAPTURE(std::string(sizes));
    const Counters counters = counters_of(sizes);
    CHECK(counters.shared_store_requests > 0);
    CHECK(counters.shared_load_conflicts == 0);
    CHECK(counters.shared_store_conflicts == 0);
    // One in each of two blocks of `rows`; those of `tiles` have named ones alone.
    CHECK(counters.barriers == (parse_shape(shape(sizes)).c > 64 ? 0 : 2));
  }
}

TEST_CASE("34 int8-hopper: an output is the exact sum, scaled and rounded once (simulator)") {
  const ConvProblem problem = parse_shape(shape("n=2,c=70,k=21,h=9,w=13"));
  const Workload workload = make_workload("", problem, InputKind::normal, FilterForm::dense, 1);
  RunOptions options;
  options.time = false;
  options.keep_output = true;
  const RunResult result = run_stage(find_stage("34"), workload, options);
  REQUIRE(result.status == Status::ok);

  const float input_step = int8_step(workload.tensors.input), output_step = int8_step(workload.reference.output);
  const std::vector<float> steps = int8_steps(workload.tensors.filter, problem.k);
  HostTensors rounded = workload.tensors;
  for (float& value : rounded.input) value = int8_of(value, input_step);
  const std::size_t taps = rounded.filter.size() / steps.size(), plane = 9 * 13;
  for (std::size_t i = 0; i < rounded.filter.size(); ++i)
    rounded.filter[i] = std::nearbyint(rounded.filter[i] / steps[i / taps]);  // in fp32, as the kernel does
  const std::vector<double> sums = convolve_reference(problem, rounded.input, rounded.filter).output;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const double share = sums[i] * input_step * steps[i / plane % steps.size()] / output_step;
    CHECK(std::abs(result.output[i] / output_step - std::clamp(share, -127.0, 127.0)) <= 0.5 + 1e-4);
  }
}
