#include <doctest/doctest.h>

#include <algorithm>
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

std::string positions(int count) { return "positions=" + std::to_string(count); }

constexpr int kStrips[] = {64, 112, 160, 240};
constexpr int kTiles[] = {64, 128, 208, 224, 240, 256};

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

TEST_CASE("34 int8-hopper: counters are what the lesson predicts (simulator)") {
  for (const char* sizes : {"h=1,w=1", "n=3,c=7,k=5,h=5,w=5", "n=2,c=40,k=72,h=9,w=130,pad_w=0",
                            "c=64,k=64,h=15,w=18,pad_h=3", "n=2,c=8,k=8,h=4,w=60,pad_h=3,pad_w=70"}) {
    for (const int strip : kStrips) check_prediction("34", {shape(sizes)}, FilterForm::dense, positions(strip));
  }
  for (const char* sizes : {"n=9,c=65,k=8,h=1,w=1", "n=5,c=72,k=136,h=9,w=7", "c=128,k=5,h=7,w=60,pad_h=0",
                            "n=2,c=130,k=8,h=3,w=257,pad_w=0", "n=2,c=72,k=8,h=1,w=1,pad_h=3,pad_w=70"}) {
    for (const int tile : kTiles) check_prediction("34", {shape(sizes)}, FilterForm::dense, positions(tile));
  }
}

TEST_CASE("34 int8-hopper: refuses by rule (sm_90)") {
  for (const auto& [sizes, rule] : {std::pair{"h=8,w=8", "must be 3 x 3; got r=1, s=1"},
                                    {"h=8,w=8,r=3", "must be 3 x 3; got r=3, s=1"},
                                    {"h=8,w=8,r=3,s=5", "must be 3 x 3; got r=3, s=5"},
                                    {"h=8,w=8,r=3,s=3,stride_h=2", "the stride must be 1; got stride_h=2, stride_w=1"},
                                    {"h=8,w=8,r=3,s=3,stride_w=4294967297", "got stride_h=1, stride_w=4294967297"},
                                    {"h=8,w=8,r=3,s=3,dilation_w=2", "the dilation must be 1; got dilation_h=1"},
                                    {"c=4,k=4,groups=2,h=8,w=8,r=3,s=3", "want groups = 1; got groups=2"},
                                    {"h=2147483647,r=3,s=3", "index with 32 bits"},
                                    {"c=14794,r=3,s=3", "kept in 32 bits: c at most 14793; got 14794"},
                                    {"c=8192,k=262144,r=3,s=3", "k to one of 64, must have at most"},
                                    {"n=1024,c=64,h=256,w=128,r=3,s=3", "elements n c h w"},
                                    {"k=32768,h=256,w=256,r=3,s=3", "outputs n k p q"}}) {
    CAPTURE(std::string(sizes));
    const std::string reason = refusal(find_stage("34"), parse_shape(sizes), nullptr);
    CHECK_MESSAGE(reason.find(rule) != std::string::npos, reason);
  }
  check_refusal("34", "h=8,w=8", "must be 3 x 3");
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
  CHECK(run("c=144,k=65,h=3,w=2").workspace_bytes == 9 * 256 * 128 + 4 * 128);
  // And the input, its channels rounded up to 16, where they are not a multiple.
  CHECK(run("n=2,c=3,k=5,h=9,w=7").workspace_bytes == 9 * 64 * 64 + 4 * 64 + 2 * 9 * 7 * 16);
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
  CHECK(chosen("n=32,c=128,k=128,h=28,w=28") == 208);
  CHECK(chosen("n=32,c=256,k=256,h=14,w=14") == 224);
  CHECK(chosen("n=32,c=512,k=512,h=7,w=7") == 128);
}

TEST_CASE("34 int8-hopper: each row of pixels is loaded once (simulator)") {
  // A block a strip: 16 rows of its 112 pixels and the one beside them; 36 KB of filters; 256 pairs of scales.
  const Counters counters = counters_of("c=64,k=64,h=16,w=224", positions(112));
  CHECK(counters.global_load_bytes == 2 * (16 * 113 * 64 + 9 * 64 * 64 + 256 * 8));
  CHECK(counters.global_store_bytes == 16 * 224 * 64);
  CHECK(counters.global_store_sectors * 32 == counters.global_store_bytes);
}

TEST_CASE("34 int8-hopper: no bank conflict, and one barrier a block (simulator)") {
  for (const char* sizes : {"c=64,k=64,h=16,w=60", "n=3,c=72,k=144,h=8,w=9", "n=2,c=5,k=7,h=9,w=11"}) {
    CAPTURE(std::string(sizes));
    const Counters counters = counters_of(sizes);
    CHECK(counters.shared_store_requests > 0);
    CHECK(counters.shared_load_conflicts == 0);
    CHECK(counters.shared_store_conflicts == 0);
    CHECK(counters.barriers == 2);
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
