#include "tests/stage_suite.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <set>

#include "common/harness/check/device_tensors.hpp"
#include "common/harness/files/errors.hpp"
#include "common/harness/files/problem_io.hpp"
#include "common/harness/ladder/tuning_log.hpp"
#include "common/harness/ladder/workloads.hpp"
#include "tests/usage_error.hpp"

namespace convladder {
namespace {

constexpr std::uint64_t kSeed = 20240607;
constexpr std::int64_t kManyOutputs = 1000;  // so many that their root mean square error is no accident
constexpr Padding kPaddings[] = {Padding::zero, Padding::replicate, Padding::reflect};

ConvProblem shape(std::string_view text) {
  const ConvProblem problem = parse_shape(text);
  validate(problem, device_info().memory_bytes);
  return problem;
}

/// The value of a knob that the run was made with, or 0 if the stage has no such knob.
int knob_of(const RunResult& result, std::string_view name) {
  if (!result.configuration) return 0;
  const auto& [configuration, origin] = *result.configuration;
  for (int i = 0; i < configuration.knobs.count; ++i)
    if (configuration.knobs.knobs[i].name == name) return configuration.values[i];
  return 0;
}

/// What the project promises of the relative root mean square error for normal inputs.
double promised_error(const StageInfo& stage, const RunResult& result) {
  if (const int bound = knob_of(result, "bound"); bound > 0) return bound * 1e-6;
  if (stage.dtype == "int8") return 2.5e-2;
  if (stage.dtype == "bf16") return 1e-2;
  if (stage.dtype == "fp16") return 4e-3;
  return knob_of(result, "m") > 2 ? 2e-5 : track_of(stage).fp32_error;
}

/// Reflect padding must be smaller than the input.
bool defined(const ConvProblem& problem) {
  return problem.padding != Padding::reflect || (problem.pad_w < problem.w && problem.pad_h < problem.h);
}

/// Each shape with every padding mode, and with normal inputs and others: integers, whose sums are exact as long as
/// nobody divides them, and uniform ones where a stage splits the filter. Both with zeros around, one with each other
/// mode: the simulator takes its time.
std::vector<SuiteCase> with_every_padding(const std::vector<std::string>& shapes, FilterForm filter) {
  std::vector<SuiteCase> suite;
  for (const std::string& text : shapes) {
    ConvProblem problem = parse_shape(text);
    for (const Padding padding : kPaddings) {
      problem.padding = padding;
      if (!defined(problem)) continue;
      if (padding != Padding::replicate) suite.push_back({problem, InputKind::normal, filter});
      if (padding == Padding::reflect) continue;
      suite.push_back({problem, filter == FilterForm::dense ? InputKind::integers : InputKind::uniform, filter});
    }
  }
  return suite;
}

/// The inputs that show other mistakes, with every padding mode.
void add_other_inputs(std::string_view text, FilterForm filter, std::vector<SuiteCase>& suite) {
  ConvProblem problem = parse_shape(text);
  for (const Padding padding : kPaddings) {
    problem.padding = padding;
    for (const InputKind kind : {InputKind::uniform, InputKind::impulse, InputKind::constant, InputKind::large,
                                 InputKind::nan, InputKind::infinity})
      suite.push_back({problem, kind, filter});
  }
}

}  // namespace

std::string to_string(const SuiteCase& suite_case) {
  constexpr const char* kNames[] = {"normal", "uniform",        "integers", "impulse", "constant",
                                    "large",  "large for fp16", "nan",      "infinity"};
  return to_string(suite_case.problem) + " " + to_string(suite_case.problem.padding) + " " +
         kNames[static_cast<int>(suite_case.inputs)] +
         (suite_case.filter == FilterForm::rank_one ? " rank-one filter" : "");
}

std::vector<SuiteCase> signal_suite() {
  std::vector<SuiteCase> suite = with_every_padding(
      {
          "w=1",       // radius 0: a plain product
          "w=1,s=3",   // shorter than the filter
          "w=3,s=11",  // shorter than the radius
          "w=7,s=3",   // shorter than a warp
          "w=255,s=11", "w=256,s=11",
          "w=257,s=11",          // around the tile
          "w=521,s=1",           // prime, radius 0, several blocks
          "w=1021,s=63",         // prime
          "n=3,w=257,s=5",       // batch
          "n=2,w=300,s=1025",    // radius 512: halos longer than the tile, and than the signal
          "w=1300,s=1025",       // radius 512 inside the signal
          "w=600,s=11,pad_w=0",  // "valid": the output is shorter than the input
          "w=600,s=11,pad_w=9",  // more padding than the radius: the output is longer
          "w=40,s=5,pad_w=8",    // more padding than the filter
      },
      FilterForm::dense);
  add_other_inputs("n=2,w=389,s=11", FilterForm::dense, suite);
  return suite;
}

std::vector<SuiteCase> image_suite(FilterForm filter) {
  std::vector<SuiteCase> suite = with_every_padding(
      {
          "h=1,w=1",                // a plain product
          "h=1,w=1,r=3,s=3",        // smaller than the filter
          "h=2,w=3,r=5,s=7",        // smaller than the radius
          "h=1,w=40,r=3,s=3",       // a single row
          "h=40,w=1,r=3,s=3",       // a single column
          "h=31,w=33,r=3,s=3",      // around a tile of 32
          "h=32,w=64,r=3,s=3",      // whole tiles
          "h=33,w=65,r=5,s=5",      // one more
          "h=67,w=131,r=5,s=3",     // primes
          "n=3,h=17,w=19,r=3,s=5",  // batch
          "n=2,h=20,w=36,r=5,s=5",  // a batch with rows of whole vectors
          "h=37,w=41,r=2,s=2",      // even
          "h=24,w=44,r=4,s=6",      // even
          "h=29,w=23,r=1,s=7",      // a row
          "h=23,w=29,r=7,s=1",      // a column
          "h=41,w=71,r=11,s=11",    // a common size
          "h=44,w=264,r=5,s=5",     // several warps of vectors across
          "h=20,w=132,r=3,s=3",     // one vector more than a warp
          "h=25,w=136,r=7,s=7",
          "h=270,w=40,r=5,s=3",  // higher than the tallest tile
          "h=70,w=600,r=3,s=6",  // wider than the widest
          "h=20,w=70,r=3,s=19",  // lengths that leave every rest of 16, 8 and 4
          "h=20,w=70,r=3,s=14",
          "h=25,w=70,r=3,s=9",
          "h=20,w=70,r=3,s=15",
          "h=20,w=70,r=3,s=13",
          "h=9,w=70,r=31,s=31",                 // a halo larger than the image
          "h=70,w=68,r=33,s=31",                // inside the image
          "h=20,w=90,r=65,s=65",                // the largest
          "h=48,w=50,r=7,s=5,pad_h=0,pad_w=0",  // "valid": the output is smaller than the input
          "h=30,w=37,r=3,s=5,pad_h=4,pad_w=1",  // more padding than the radius, and less
          "h=12,w=19,r=3,s=3,pad_h=6,pad_w=9",  // more padding than the filter
      },
      filter);
  add_other_inputs("n=2,h=37,w=43,r=5,s=7", filter, suite);
  return suite;
}

std::string depthwise_shape(int channels, const std::string& sizes) {
  const std::string count = std::to_string(channels);
  return "c=" + count + ",k=" + count + ",groups=" + count + "," + sizes;
}

std::vector<SuiteCase> depthwise_suite() {
  std::vector<SuiteCase> suite = with_every_padding(
      {
          depthwise_shape(1, "h=1,w=1"),                                      // a plain product
          depthwise_shape(3, "h=1,w=1,r=3,s=3"),                              // smaller than the filter
          depthwise_shape(2, "n=2,h=2,w=3,r=5,s=7"),                          // smaller than the radius
          depthwise_shape(2, "h=1,w=40,r=3,s=3"),                             // a single row
          depthwise_shape(2, "h=40,w=1,r=3,s=3"),                             // a single column
          depthwise_shape(4, "n=3,h=16,w=32,r=7,s=7"),                        // of the TVM post
          depthwise_shape(3, "n=2,h=7,w=7,r=7,s=7"),                          // the last layers of a network
          depthwise_shape(3, "h=15,w=16,r=3,s=3"),                            // around a tile of 16
          depthwise_shape(3, "h=17,w=15,r=5,s=5"),                            // in both directions
          depthwise_shape(2, "h=31,w=33,r=3,s=3"),                            // around two
          depthwise_shape(2, "h=33,w=32,r=5,s=3"),                            // one row more
          depthwise_shape(2, "h=65,w=68,r=3,s=3"),                            // around four
          depthwise_shape(3, "n=2,h=29,w=31,r=5,s=5"),                        // primes
          depthwise_shape(1, "n=3,h=19,w=23,r=3,s=5"),                        // one channel
          depthwise_shape(37, "n=2,h=6,w=8,r=3,s=3"),                         // more channels than a warp has threads
          depthwise_shape(67, "h=5,w=3,r=3,s=1"),                             // than two warps, and a prime
          depthwise_shape(2, "h=13,w=67,r=1,s=9"),                            // a filter of one row
          depthwise_shape(2, "h=67,w=13,r=9,s=1"),                            // of one column
          depthwise_shape(2, "n=2,h=11,w=20,r=1,s=1"),                        // of one tap
          depthwise_shape(2, "h=5,w=270,r=3,s=3"),                            // a plane wider than a block has threads
          depthwise_shape(1, "h=270,w=5,r=3,s=3"),                            // higher
          depthwise_shape(2, "h=12,w=19,r=31,s=31"),                          // a halo larger than the plane
          depthwise_shape(1, "h=6,w=70,r=3,s=65"),                            // filters longer than a tile
          depthwise_shape(2, "h=70,w=6,r=67,s=1"),                            // down
          depthwise_shape(1, "h=40,w=44,r=31,s=29,pad_h=0,pad_w=0"),          // the filter inside the plane
          depthwise_shape(2, "n=2,h=20,w=24,r=5,s=7,pad_h=0,pad_w=0"),        // "valid": the output is smaller
          depthwise_shape(2, "h=10,w=21,r=3,s=5,pad_h=4,pad_w=1"),            // more padding than the radius, and less
          depthwise_shape(2, "n=2,h=12,w=19,r=3,s=3,pad_h=6,pad_w=9"),        // more padding than the filter
          depthwise_shape(3, "n=2,h=28,w=28,r=3,s=3,stride_h=2,stride_w=2"),  // even, halved
          depthwise_shape(3, "h=27,w=29,r=5,s=5,stride_h=2,stride_w=2"),      // odd
          depthwise_shape(2, "h=31,w=40,r=7,s=7,stride_h=3,stride_w=3"),
          depthwise_shape(2, "h=30,w=37,r=3,s=5,stride_h=2"),                     // down only
          depthwise_shape(2, "h=23,w=50,r=5,s=3,stride_w=3"),                     // across only
          depthwise_shape(2, "h=24,w=70,r=3,s=3,stride_h=3,stride_w=2,pad_h=0"),  // unlike
          depthwise_shape(2, "h=20,w=24,r=1,s=1,stride_h=2,stride_w=2"),          // pixels that no output needs
          depthwise_shape(2, "n=2,h=3,w=4,r=3,s=3,stride_h=5,stride_w=5"),        // one output a plane
          depthwise_shape(2, "h=20,w=36,r=3,s=3,dilation_h=2,dilation_w=2,pad_h=2,pad_w=2"),
          depthwise_shape(2, "h=24,w=25,r=5,s=3,dilation_w=3,pad_w=3"),  // across only
          depthwise_shape(2, "h=29,w=18,r=3,s=3,dilation_h=2,pad_h=0"),  // down only
          depthwise_shape(2, "h=25,w=28,r=3,s=5,stride_h=2,stride_w=2,dilation_h=2,dilation_w=2,pad_h=2,pad_w=4"),
          depthwise_shape(2, "h=19,w=33,r=3,s=3,stride_h=3,stride_w=2,dilation_h=2,dilation_w=3,pad_h=3,pad_w=3"),
          depthwise_shape(2, "h=9,w=17,r=1,s=1,dilation_h=4,dilation_w=5"),  // of no effect
      },
      FilterForm::dense);
  add_other_inputs(depthwise_shape(5, "n=2,h=13,w=22,r=5,s=7"), FilterForm::dense, suite);
  return suite;
}

namespace {

/// A shape with normal inputs and with integers, and where it has padding, with every mode.
void add_layer(std::string_view text, std::vector<SuiteCase>& suite) {
  ConvProblem problem = parse_shape(text);
  suite.push_back({problem, InputKind::normal});
  suite.push_back({problem, InputKind::integers});
  for (const Padding padding : {Padding::replicate, Padding::reflect}) {
    problem.padding = padding;
    if (problem.pad_h + problem.pad_w > 0 && defined(problem)) suite.push_back({problem, InputKind::integers});
  }
}

}  // namespace

std::vector<SuiteCase> lowering_suite() {
  std::vector<SuiteCase> suite;
  for (const char* text : {
           "h=1,w=1",                                // a plain product
           "c=3,k=2,h=1,w=1,r=3,s=3",                // smaller than the filter
           "n=2,c=2,k=3,h=2,w=3,r=5,s=7",            // smaller than the radius
           "n=2,c=2,k=4,h=1,w=40,r=3,s=3",           // a single row
           "c=2,k=5,h=40,w=1,r=3,s=3",               // a single column
           "n=70,c=1,k=7,h=1,w=1",                   // an output an image, more images than a tile has outputs
           "n=33,c=8,k=17,h=2,w=2",                  // a vector an image; products: a step of 8
           "n=3,c=7,k=1,h=5,w=5",                    // images that share tiles; one product less than a step
           "n=2,c=9,k=16,h=7,w=7",                   // one more
           "n=2,c=5,k=15,h=8,w=8,r=1,s=3",           // 15 products; an image is a tile of 64
           "c=16,k=64,h=7,w=9",                      // 16 products, one step; 63 outputs, one less than a tile
           "c=17,k=65,h=5,w=13",                     // 17, two steps; 65 outputs, 65 filters
           "n=3,c=1,k=96,h=6,w=6,r=3,s=3",           // tiles that begin inside an image, at a vector
           "c=3,k=97,h=9,w=7,r=3,s=3",               // one filter more than 96
           "n=2,c=8,k=128,h=9,w=9,r=2,s=2,pad_h=0",  // 32 products; even
           "n=2,c=33,k=6,h=8,w=8",                   // more channels than a warp has lanes
           "c=2,k=130,h=5,w=9,r=5,s=3,stride_w=2",   // one tile of filters and two more
           "n=2,c=2,k=200,h=5,w=5,r=3,s=1",          // two tiles of 128
           "n=2,c=1,k=290,h=3,w=3,r=3,s=3",          // five of 64
           "c=3,k=3,h=1,w=127",                      // 127 outputs
           "c=1,k=9,h=16,w=8,r=3,s=5",               // 128
           "c=2,k=2,h=3,w=43,r=1,s=2,pad_w=0",       // 126
           "c=1,k=2,h=3,w=43",                       // 129
           "c=12,k=8,h=9,w=11,r=2,s=2",              // 48 products, three steps
           "n=2,c=2,k=3,h=11,w=12,r=1,s=7",          // a filter of one row
           "n=2,c=2,k=3,h=12,w=11,r=7,s=1",          // of one column
           "c=2,k=5,h=10,w=11,r=4,s=4",              // even, with padding
           "n=2,c=3,k=4,h=23,w=23,r=11,s=11,stride_h=4,stride_w=4,pad_h=0,pad_w=0",  // the first layer of a network
           "n=2,c=5,k=3,h=30,w=20,r=12,s=2",                                         // the most rows that im2win turns
           "n=2,c=3,k=4,h=20,w=9,r=13,s=3",                                          // one more
           "n=2,c=3,k=6,h=14,w=14,r=7,s=7,stride_h=2,stride_w=2",                    // of another
           "n=2,c=2,k=8,h=13,w=16,r=3,s=3,stride_h=2,stride_w=2",
           "n=2,c=2,k=3,h=12,w=11,r=3,s=5,stride_h=2",         // down only
           "n=2,c=2,k=3,h=9,w=22,r=5,s=3,stride_w=3,pad_w=0",  // across only
           "c=2,k=5,h=15,w=18,r=3,s=4,stride_h=3,stride_w=2",  // unlike
           "n=3,c=3,k=2,h=9,w=11,stride_h=2,stride_w=4",       // pixels that no output needs
           "n=2,c=2,k=3,h=13,w=16,r=2,s=3,stride_h=5,stride_w=4,pad_h=1",
           "n=2,c=2,k=3,h=4,w=5,r=3,s=3,stride_h=7,stride_w=7",  // one output an image, stride longer than the image
           "n=2,c=2,k=5,h=9,w=12,r=3,s=3,dilation_h=2,dilation_w=2,pad_h=2,pad_w=2",
           "n=2,c=2,k=3,h=8,w=13,r=3,s=3,dilation_w=3,pad_w=3",  // across only
           "n=2,c=2,k=3,h=13,w=8,r=3,s=2,dilation_h=3",          // down only
           "c=3,k=4,h=15,w=17,r=3,s=3,stride_h=2,stride_w=3,dilation_h=3,dilation_w=2,pad_h=1,pad_w=4",
           "n=2,c=2,k=3,h=5,w=4,r=3,s=2,pad_h=1000000000,dilation_h=1000000000,stride_w=2147418111",  // sums near 2^31
           "n=2,c=2,k=5,h=9,w=8,r=5,s=3,pad_h=0,pad_w=0",  // "valid": the output is smaller
           "n=2,c=2,k=5,h=7,w=9,r=3,s=5,pad_h=4,pad_w=1",  // more padding than the radius, and less
           "c=2,k=3,h=5,w=8,r=3,s=3,pad_h=4,pad_w=7",      // more padding than the filter
       }) {
    add_layer(text, suite);
  }
  add_other_inputs("n=2,c=3,k=7,h=6,w=7,r=3,s=5", FilterForm::dense, suite);
  add_other_inputs("c=1,k=3,h=5,w=6,r=3,s=5", FilterForm::dense, suite);  // some window begins with the infinity
  return suite;
}

std::string winograd_shape(const std::string& sizes) { return sizes + ",r=3,s=3"; }

namespace {

/// Each shape with normal inputs and zeros around them.
void add_winograd_cases(const std::vector<const char*>& shapes, std::vector<SuiteCase>& suite) {
  for (const char* sizes : shapes) suite.push_back({parse_shape(winograd_shape(sizes)), InputKind::normal});
}

/// Also with the other padding modes.
void add_padded_winograd_cases(const std::vector<const char*>& shapes, std::vector<SuiteCase>& suite) {
  add_winograd_cases(shapes, suite);
  for (const char* sizes : shapes) {
    ConvProblem problem = parse_shape(winograd_shape(sizes));
    for (const Padding padding : {Padding::replicate, Padding::reflect}) {
      problem.padding = padding;
      if (defined(problem))
        suite.push_back({problem, padding == Padding::reflect ? InputKind::normal : InputKind::integers});
    }
  }
}

void add_winograd_inputs(const std::string& sizes, std::initializer_list<InputKind> kinds,
                         std::vector<SuiteCase>& suite) {
  for (const InputKind kind : kinds) suite.push_back({parse_shape(winograd_shape(sizes)), kind});
}

}  // namespace

std::vector<SuiteCase> winograd_suite() {
  std::vector<SuiteCase> suite;
  add_padded_winograd_cases(
      {
          "h=1,w=1",                              // an output, and a tile that the image does not fill
          "n=3,c=2,k=3,h=2,w=1",                  // smaller than the filter
          "c=2,k=2,h=1,w=13",                     // a single row
          "c=3,k=1,h=13,w=2",                     // two columns
          "c=2,k=15,h=3,w=11",                    // remainders of 2, 4 and 6 down, and others across
          "c=3,k=1,h=4,w=10",                     //
          "c=7,k=16,h=5,w=9",                     //
          "n=3,c=5,k=6,h=7,w=9",                  // blocks that span images
          "n=2,c=4,k=3,h=5,w=8,pad_h=2,pad_w=0",  // more padding down, none across
          "n=2,c=2,k=5,h=7,w=9,pad_h=0,pad_w=2",  // and the other way round
          "c=3,k=2,h=6,w=7,pad_h=3,pad_w=1",
          "c=2,k=3,h=4,w=3,pad_h=3,pad_w=2",      // as much as can be reflected
          "n=2,c=2,k=3,h=4,w=3,pad_h=6,pad_w=9",  // more than the image: tiles that see none of it
      },
      suite);
  add_winograd_cases(
      {
          "n=2,c=2,k=3,h=3,w=3,pad_h=0,pad_w=0",  // one output an image
          "n=2,c=3,k=4,h=9,w=8,pad_h=0,pad_w=0",  // "valid": the output is smaller
          "c=1,k=2,h=2,w=12",                     // the other remainders
          "c=15,k=17,h=6,w=8",                    // channels and filters around 16
          "c=16,k=31,h=7,w=7",                    // around 32
          "c=17,k=33,h=8,w=6",
          "c=31,k=63,h=9,w=5",  // around 64
          "c=33,k=64,h=10,w=4",
          "c=64,k=65,h=11,w=3",
          "c=65,k=130,h=12,w=2",     // around 128
          "c=65,k=3,h=3,w=3",        // one channel more than a step of 64
          "c=70,k=7,h=13,w=13",      // a second step of 64 channels, with six
          "n=2,c=16,k=16,h=4,w=12",  // whole fragments, whole tiles of every size
          "n=15,c=2,k=3,h=1,w=2",    // a tile an image: tiles around 16
          "n=16,c=1,k=2,h=2,w=1",
          "n=17,c=3,k=1,h=2,w=2",
          "n=31,c=1,k=1,h=1,w=1",  // around 32
          "n=32,c=2,k=1,h=2,w=2",
          "n=33,c=9,k=18,h=1,w=2",
          "n=63,c=1,k=2,h=2,w=2",  // around 64
          "n=64,c=1,k=1,h=2,w=2",
          "n=65,c=2,k=5,h=2,w=1",
          "n=128,c=1,k=1,h=1,w=2",  // around 128
          "n=129,c=1,k=2,h=2,w=2",
          "n=2,c=3,k=5,h=17,w=19",  // several blocks of tiles
          "n=2,c=18,k=9,h=33,w=34",
      },
      suite);
  add_winograd_inputs("n=2,c=3,k=5,h=7,w=6",
                      {InputKind::uniform, InputKind::impulse, InputKind::constant, InputKind::large, InputKind::nan,
                       InputKind::infinity},
                      suite);
  add_winograd_inputs("c=34,k=18,h=5,w=8", {InputKind::uniform, InputKind::large, InputKind::nan}, suite);
  // One channel, and an infinity that lies just beside the tile before.
  add_winograd_inputs("c=1,k=3,h=5,w=10", {InputKind::nan, InputKind::infinity}, suite);
  return suite;
}

std::vector<SuiteCase> short_winograd_suite() {
  std::vector<SuiteCase> suite;
  add_padded_winograd_cases({"c=7,k=16,h=5,w=9", "n=2,c=2,k=2,h=5,w=6,pad_h=3,pad_w=2"}, suite);
  add_winograd_cases(
      {
          "h=1,w=1",                              // an output
          "c=65,k=130,h=12,w=2",                  // several steps, several blocks of filters
          "n=33,c=9,k=18,h=1,w=2",                // a tile an image, more than 32
          "n=3,c=5,k=65,h=7,w=9",                 // blocks that span images
          "n=2,c=18,k=3,h=33,w=34",               // many tiles of one image
          "n=2,c=3,k=4,h=9,w=8,pad_h=0,pad_w=0",  // "valid"
      },
      suite);
  add_winograd_inputs("n=2,c=3,k=5,h=7,w=6", {InputKind::uniform, InputKind::infinity}, suite);
  return suite;
}

std::vector<SuiteCase> implicit_gemm_suite() {
  std::vector<SuiteCase> suite;
  for (const char* text : {
           "h=1,w=1",                            // a plain product
           "c=3,k=2,h=1,w=1,r=3,s=3",            // smaller than the filter
           "n=2,c=8,k=8,h=2,w=3,r=5,s=5",        // smaller than the radius, in whole chunks
           "c=8,k=8,h=1,w=40,r=3,s=3",           // a single row
           "c=8,k=9,h=40,w=1,r=3,s=3",           // a single column
           "n=70,c=1,k=7,h=1,w=1",               // an output an image
           "n=3,c=7,k=5,h=5,w=5,r=3,s=3",        // images that share a tile; one channel less than a chunk
           "n=2,c=9,k=16,h=7,w=9",               // one more; 126 outputs
           "c=15,k=17,h=3,w=43",                 // around 16; 129
           "c=16,k=15,h=16,w=8,r=2,s=2",         // 128; even
           "c=31,k=63,h=9,w=14,r=1,s=3",         // around 32 and 64; a filter of one row
           "c=32,k=65,h=5,w=7,r=3,s=1",          // of one column
           "c=33,k=64,h=8,w=8",                  // a second step with one channel
           "n=2,c=40,k=72,h=5,w=7,r=3,s=3",      // with a chunk; a second block of filters with one
           "c=64,k=64,h=8,w=12,r=3,s=3",         // whole tiles of everything but outputs
           "n=2,c=65,k=8,h=4,w=6",               // one more
           "c=16,k=127,h=3,w=5",                 // around 128 filters
           "c=8,k=130,h=5,w=5,r=1,s=2",          // three blocks of them
           "c=8,k=16,h=257,w=3",                 // long and narrow
           "c=5,k=3,h=3,w=257,r=3,s=3",          // wide and low
           "c=8,k=8,h=17,w=16,r=1,s=1,pad_h=1",  // 1x1 with padding
           "c=24,k=40,h=11,w=13,r=5,s=5",        // 143 outputs
           "c=8,k=5,h=10,w=11,r=4,s=4",          // even, with padding
           "n=2,c=3,k=4,h=13,w=14,r=7,s=7,stride_h=2,stride_w=2",  // the first layer of a network
           "n=2,c=8,k=8,h=13,w=16,r=3,s=3,stride_h=2,stride_w=2",
           "n=2,c=16,k=24,h=9,w=11,stride_h=2,stride_w=2",       // pixels that no output needs
           "c=8,k=8,h=12,w=11,r=3,s=5,stride_h=2",               // down only
           "n=2,c=2,k=3,h=9,w=22,r=5,s=3,stride_w=3,pad_w=0",    // across only
           "n=2,c=8,k=8,h=4,w=5,r=3,s=3,stride_h=7,stride_w=7",  // one output an image
           "n=2,c=8,k=8,h=9,w=12,r=3,s=3,dilation_h=2,dilation_w=2,pad_h=2,pad_w=2",
           "c=3,k=4,h=15,w=17,r=3,s=3,stride_h=2,stride_w=3,dilation_h=3,dilation_w=2,pad_h=1,pad_w=4",
           "n=2,c=8,k=3,h=5,w=4,r=3,s=2,pad_h=1000000000,dilation_h=1000000000,stride_w=2147418111",  // sums near 2^31
           "n=2,c=8,k=8,h=9,w=8,r=5,s=3,pad_h=0,pad_w=0",  // "valid": the output is smaller
           "n=2,c=8,k=8,h=7,w=9,r=3,s=5,pad_h=4,pad_w=1",  // more padding than the radius, and less
           "c=8,k=8,h=5,w=8,r=3,s=3,pad_h=4,pad_w=7",      // more padding than the filter
       })
    add_layer(text, suite);
  add_other_inputs("n=2,c=3,k=7,h=6,w=7,r=3,s=5", FilterForm::dense, suite);
  add_other_inputs("n=2,c=16,k=8,h=6,w=7,r=3,s=3", FilterForm::dense, suite);
  return suite;
}

std::vector<SuiteCase> short_implicit_gemm_suite() {
  std::vector<SuiteCase> suite;
  for (const char* text : {
           "h=1,w=1",                          // an output
           "c=31,k=63,h=9,w=14,r=1,s=3",       // a step that is not full
           "n=2,c=40,k=136,h=17,w=8,r=3,s=3",  // several blocks both ways
           "n=2,c=64,k=64,h=16,w=8",           // whole tiles
           "n=2,c=8,k=8,h=13,w=16,r=3,s=3,stride_h=2,stride_w=2",
       })
    add_layer(text, suite);
  return suite;
}

std::vector<SuiteCase> near_taps_suite() {
  std::vector<SuiteCase> suite = implicit_gemm_suite();
  std::erase_if(suite, [](const SuiteCase& each) {
    const ConvProblem& p = each.problem;
    return p.padding != Padding::zero || p.stride_h > 2 || p.stride_w > 2 || p.dilation_h > 2 || p.dilation_w > 2;
  });
  return suite;
}

namespace {

std::vector<SuiteCase> line_tiles(std::initializer_list<const char*> shapes, bool many_filters) {
  std::vector<SuiteCase> suite;
  for (const char* text : shapes) {
    ConvProblem problem = parse_shape(text);
    if (many_filters && problem.k <= 64) problem.k += 64;
    suite.push_back({problem, InputKind::normal});
  }
  return suite;
}

}  // namespace

std::vector<SuiteCase> line_tiles_suite(bool many_filters) {
  std::vector<SuiteCase> suite = line_tiles(
      {
          "n=3,c=72,k=24,h=9,w=31",                                // 1 x 1: all images are one row
          "n=2,c=130,k=130,h=1,w=129",                             // three blocks of channels and of filters
          "c=8,k=8,h=5,w=8,pad_h=1,pad_w=2",                       // with padding
          "c=72,k=16,h=1,w=67,stride_w=2,pad_h=0,pad_w=3",         // one row, of which every other pixel is read
          "n=2,c=65,k=16,h=9,w=12,stride_h=2,stride_w=2",          // a phase of four
          "n=5,c=72,k=136,h=7,w=7,r=3,s=3,stride_h=2,stride_w=2",  // four phases; images share a tile
          "n=2,c=24,k=8,h=14,w=15,r=3,s=3,stride_h=2,stride_w=2",  // even and odd
          "n=3,c=32,k=1,h=1,w=1,r=3,s=3,stride_h=2,stride_w=2",    // phases without a pixel
          "c=32,k=8,h=3,w=601,r=3,s=3,stride_h=2,stride_w=2",      // strips
          "c=32,k=9,h=257,w=2,r=3,s=3,stride_h=2,stride_w=2",      // many rows
          "n=2,c=32,k=8,h=9,w=8,r=3,s=3,stride_h=2,stride_w=2,pad_h=0,pad_w=0",
          "n=2,c=32,k=8,h=3,w=4,r=3,s=3,stride_h=2,stride_w=2,pad_h=4,pad_w=3",
          "n=2,c=16,k=8,h=9,w=10,r=3,s=5,stride_h=2",      // down only
          "n=2,c=32,k=8,h=9,w=10,r=2,s=3,stride_w=2",      // across only
          "n=2,c=40,k=72,h=9,w=11,r=5,s=5",                // 25 taps in one box
          "n=2,c=32,k=8,h=2,w=3,r=5,s=5",                  // smaller than the radius
          "n=3,c=72,k=8,h=6,w=7,r=5,s=5,pad_h=0,pad_w=1",  // no zeros to share down, some across
          "c=32,k=8,h=3,w=257,r=5,s=5,pad_h=4,pad_w=6",    // more padding than the radius
          "n=2,c=72,k=66,h=9,w=12,r=3,s=3,dilation_h=2,dilation_w=2,pad_h=2,pad_w=2",
          "n=2,c=8,k=8,h=9,w=12,r=3,s=3,dilation_h=2,dilation_w=2,stride_h=2,stride_w=2,pad_h=1,pad_w=2",
          "n=2,c=8,k=8,h=9,w=12,r=3,s=3,dilation_h=3,stride_h=2,stride_w=1",
          "n=2,c=3,k=64,h=23,w=21,r=7,s=7,stride_h=2,stride_w=2",  // the first layer of a network
      },
      many_filters);
  for (const InputKind kind : {InputKind::integers, InputKind::impulse, InputKind::large, InputKind::nan}) {
    suite.push_back({suite[0].problem, kind});
    suite.push_back({suite[4].problem, kind});
  }
  return suite;
}

std::vector<SuiteCase> short_line_tiles_suite(bool many_filters) {
  return line_tiles({"n=3,c=72,k=24,h=9,w=31", "n=5,c=72,k=72,h=7,w=7,r=3,s=3,stride_h=2,stride_w=2",
                     "n=2,c=8,k=65,h=11,w=23,r=5,s=5"},
                    many_filters);
}

std::vector<SuiteCase> columns_suite(bool many_filters) {
  std::vector<SuiteCase> suite = line_tiles(
      {
          "n=3,c=72,k=16,h=9,w=11,r=3,s=3",                        // a tile has images, and parts of them
          "n=5,c=72,k=144,h=7,w=7,r=3,s=3,stride_h=2,stride_w=2",  // several blocks of filters
          "n=2,c=65,k=16,h=9,w=12,stride_h=2,stride_w=2",          // 1 x 1
          "n=3,c=72,k=144,h=9,w=31",                               // the same with stride 1: boxes of the line
          "n=70,c=65,k=16,h=1,w=1,r=3,s=3",                        // an output an image; eight taps see none of it
          "n=2,c=272,k=64,h=3,w=5,r=3,s=3",                        // channels in blocks, the last one not full
          "c=72,k=16,h=3,w=257,r=3,s=3",                           // a row is longer than a tile
          "n=2,c=72,k=16,h=130,w=1,r=3,s=3",                       // a single column
          "n=2,c=24,k=16,h=14,w=15,r=3,s=3,stride_h=2,stride_w=2",
          "n=3,c=32,k=16,h=1,w=1,r=3,s=3,stride_h=2,stride_w=2",
          "n=2,c=32,k=16,h=9,w=8,r=3,s=3,stride_h=2,stride_w=2,pad_h=0,pad_w=0",
          "n=2,c=32,k=16,h=3,w=4,r=3,s=3,stride_h=2,stride_w=2,pad_h=4,pad_w=3",  // outputs that see none of it
          "n=2,c=40,k=16,h=9,w=10,r=3,s=5,stride_h=2",
          "n=2,c=72,k=16,h=9,w=10,r=2,s=3,stride_w=2",
          "n=2,c=40,k=80,h=9,w=11,r=5,s=5",
          "n=3,c=72,k=16,h=6,w=7,r=5,s=5,pad_h=0,pad_w=1",
          "n=2,c=72,k=16,h=8,w=5,pad_h=1,pad_w=2",
          "n=2,c=72,k=80,h=9,w=12,r=3,s=3,dilation_h=2,dilation_w=2,pad_h=2,pad_w=2",
          "n=2,c=72,k=16,h=13,w=12,r=3,s=3,dilation_h=3,stride_h=2",
          "c=72,k=16,h=3,w=140,r=1,s=2,dilation_w=128,pad_w=127",  // the most padding that TMA's corners can say
      },
      many_filters);
  for (const InputKind kind : {InputKind::integers, InputKind::impulse, InputKind::large, InputKind::nan}) {
    suite.push_back({suite[0].problem, kind});
    suite.push_back({suite[1].problem, kind});
  }
  return suite;
}

std::vector<SuiteCase> short_columns_suite(bool many_filters) {
  std::vector<SuiteCase> suite = columns_suite(many_filters);
  suite.resize(3);
  return suite;
}

std::vector<SuiteCase> few_channels_suite() {
  std::vector<SuiteCase> suite = line_tiles(
      {
          "n=2,c=3,k=64,h=23,w=21,r=7,s=7,stride_h=2,stride_w=2",  // the first layer of a network
          "n=2,c=3,k=70,h=8,w=9,r=3,s=3,stride_h=2,stride_w=2",
          "c=1,k=5,h=9,w=10,r=2,s=2",
          "n=2,c=2,k=7,h=7,w=15,r=3,s=5",
          "c=4,k=8,h=11,w=33,r=5,s=5,stride_w=2",                               // across only
          "n=2,c=5,k=66,h=12,w=13,r=5,s=5,stride_h=2",                          // down only
          "n=2,c=6,k=9,h=5,w=8,r=1,s=7",                                        // one row
          "c=7,k=16,h=9,w=19,r=7,s=7,pad_h=0,pad_w=0",                          // no padding
          "c=7,k=16,h=9,w=18,r=5,s=7,stride_h=2,stride_w=2,pad_h=1,pad_w=2",    // less than the radius
          "n=2,c=8,k=3,h=6,w=7,r=2,s=2,stride_h=2,stride_w=2,pad_h=1,pad_w=0",  // a column that no output reads
          "n=3,c=8,k=1,h=1,w=1,r=3,s=3,stride_h=2,stride_w=2",                  // an output an image
          "c=3,k=8,h=3,w=601,r=3,s=3,stride_h=2,stride_w=2",                    // strips
          "c=3,k=9,h=257,w=2,r=3,s=3,stride_h=2,stride_w=2",                    // many rows
          "n=2,c=3,k=8,h=2,w=3,r=5,s=5,pad_h=4,pad_w=9",                        // windows that see none of the image
          "n=2,c=3,k=8,h=9,w=12,r=3,s=7,dilation_h=2,stride_h=2,stride_w=2",
          "c=3,k=8,h=12,w=18,r=3,s=3,dilation_w=2",
      },
      false);
  for (const InputKind kind : {InputKind::integers, InputKind::impulse, InputKind::large, InputKind::nan})
    for (const std::size_t i : {0, 1, 2}) suite.push_back({suite[i].problem, kind});
  return suite;
}

std::vector<SuiteCase> pointwise_suite() {
  std::vector<SuiteCase> suite;
  for (const char* text : {
           "c=8,h=1,w=1,k=8",          // a pixel
           "c=64,h=8,w=8,k=64",        // whole tiles
           "c=136,h=5,w=13,k=72",      // a pixel more, and a step and a tile of filters that are not full
           "n=3,c=24,h=5,w=13,k=136",  // several blocks both ways
           "c=328,h=3,w=3,k=8"         // six steps: a ring of two buffers goes round three times
       })
    suite.push_back({parse_shape(text), InputKind::normal});
  const ConvProblem problem = parse_shape("n=2,c=72,h=7,w=9,k=40");
  for (const InputKind kind : {InputKind::normal, InputKind::integers, InputKind::impulse, InputKind::large,
                               InputKind::nan, InputKind::infinity})
    suite.push_back({problem, kind});
  return suite;
}

std::vector<SuiteCase> with_epilogues(const std::vector<SuiteCase>& suite) {
  std::vector<SuiteCase> result;
  for (SuiteCase each : suite) {
    for (const Epilogue epilogue : {Epilogue::bias, Epilogue::bias_relu, Epilogue::bias_residual_relu}) {
      each.problem.epilogue = epilogue;
      result.push_back(each);
    }
  }
  return result;
}

std::vector<SuiteCase> epilogue_suite() {
  std::vector<SuiteCase> suite;
  for (const char* sizes : {
           "h=1,w=1",                                             // a single output
           "c=5,k=9,h=3,w=11,r=3,s=3",                            // odd filters, two blocks of 8
           "n=3,c=16,k=16,h=5,w=7,r=3,s=3",                       // a batch
           "n=2,c=9,k=65,h=4,w=3,r=3,s=3",                        // a filter more than 64
           "n=2,c=24,k=72,h=7,w=5",                               // 1 x 1
           "n=2,c=16,k=24,h=9,w=8,r=3,s=3,stride_h=2,stride_w=2"  //
       })
    suite.push_back({parse_shape(sizes), InputKind::normal});
  for (const InputKind kind : {InputKind::integers, InputKind::impulse, InputKind::large, InputKind::nan})
    suite.push_back({parse_shape("n=2,c=7,k=10,h=4,w=5,r=3,s=3"), kind});
  return with_epilogues(suite);
}

std::vector<SuiteCase> suite_of_track(const Track& track) {
  struct Suite {
    std::string_view name;
    std::vector<SuiteCase> (*make)();
  };
  constexpr Suite kSuites[] = {
      {"signals", &signal_suite},      {"images", [] { return image_suite(FilterForm::dense); }},
      {"depthwise", &depthwise_suite}, {"lowering", &lowering_suite},
      {"winograd", &winograd_suite},   {"implicit_gemm", &implicit_gemm_suite}};
  for (const Suite& suite : kSuites)
    if (suite.name == track.suite) return suite.make();
  FAIL("the track " << track.name << " names the suite " << track.suite << ", and there is none");
  return {};
}

TEST_CASE("every track has a suite") {
  for (const Track& track : tracks()) CHECK_FALSE(suite_of_track(track).empty());
}

SuitePart parse_suite_part(const char* text) {
  if (text == nullptr) return {};
  SuitePart part;
  int end = 0;
  if (std::sscanf(text, "%d/%d%n", &part.index, &part.count, &end) != 2 || text[end] != '\0' || part.index < 0 ||
      part.index >= part.count)
    throw UsageError(std::string("CONVLADDER_SUITE must be a part of the cases, as 0/3, 1/3 or 2/3; got '") + text +
                     "'");
  return part;
}

namespace {

/// Of this program's loops. .ci/run looks for the line.
struct LeftOut {
  int cases = 0;
  ~LeftOut() {
    if (cases > 0) std::printf("cases left out by CONVLADDER_SUITE=%s: %d\n", std::getenv("CONVLADDER_SUITE"), cases);
  }
} left_out;

}  // namespace

SuiteShare::SuiteShare(std::string_view loop, SuitePart part) : part_(part), first_(2166136261) {
  for (const char letter : loop) first_ = (first_ ^ static_cast<unsigned char>(letter)) * 16777619;  // FNV-1a
}

bool SuiteShare::takes(const ConvProblem& problem, InputKind inputs) {
  // Case after case of the same kind in the parts by turns; and of one shape, each kind in another part.
  const std::array kind{static_cast<int>(inputs), static_cast<int>(problem.padding),
                        static_cast<int>(problem.epilogue)};
  const unsigned place = first_ % part_.count + kind[0] + kind[1] + kind[2] + seen_[kind]++;
  const bool taken = static_cast<int>(place % part_.count) == part_.index;
  if (!taken) ++left_out.cases;
  return taken;
}

TEST_CASE("a part of the cases is none of those that are not there") {
  CHECK(parse_suite_part(nullptr).count == 1);
  CHECK(parse_suite_part("2/3").index == 2);
  for (const char* text : {"", "3/3", "-1/3", "1", "1/", "0/0", "1/3 "})
    CHECK(usage_error([&] { parse_suite_part(text); }) ==
          std::string("CONVLADDER_SUITE must be a part of the cases, as 0/3, 1/3 or 2/3; got '") + text + "'");
}

TEST_CASE("each case of a suite is in one part, and each part has every padding mode and every usual kind of inputs") {
  const int before = left_out.cases;
  for (const Track& track : tracks()) {
    const std::vector<SuiteCase> suite = suite_of_track(track);
    std::map<InputKind, int> kinds;
    for (const SuiteCase& each : suite) ++kinds[each.inputs];
    std::size_t cases = 0;
    for (int index = 0; index < 3; ++index) {
      CAPTURE(std::string(track.name));
      CAPTURE(index);
      SuiteShare share(track.name, {index, 3});
      std::set<InputKind> inputs;
      std::set<Padding> paddings;
      for (const SuiteCase& each : suite) {
        if (!share.takes(each.problem, each.inputs)) continue;
        ++cases;
        inputs.insert(each.inputs);
        paddings.insert(each.problem.padding);
      }
      CHECK(paddings.size() == 3);
      for (const auto& [kind, count] : kinds) CHECK((count < 3 || inputs.contains(kind)));
    }
    CHECK(cases == suite.size());
  }
  left_out.cases = before;
}

RunResult run_case(const StageInfo& stage, const SuiteCase& suite_case, std::string_view settings) {
  RunOptions options;
  options.time = false;
  options.settings = settings;
  const bool too_large = takes_halves(stage) && suite_case.inputs == InputKind::large;
  const InputKind inputs = too_large ? InputKind::large_half : suite_case.inputs;
  return run_stage(stage, make_workload("", suite_case.problem, inputs, suite_case.filter, kSeed), options);
}

RunResult run_stage_of(std::string_view designation, std::string_view text, InputKind inputs) {
  RunOptions options;
  options.time = false;
  return run_stage(find_stage(designation), make_workload("", parse_shape(text), inputs, FilterForm::dense, kSeed),
                   options);
}

void check_suite(std::string_view designation, const std::vector<SuiteCase>& suite, std::string_view settings) {
  const StageInfo& stage = find_stage(designation);
  REQUIRE(!suite.empty());
  SuiteShare share(fmt::format("{} {} {}", designation, settings, to_string(suite.front())));
  for (const SuiteCase& suite_case : suite) {
    if (!share.takes(suite_case.problem, suite_case.inputs)) continue;
    CAPTURE(to_string(suite_case));
    CAPTURE(std::string(settings));
    const RunResult result = run_case(stage, suite_case, settings);
    CHECK_MESSAGE(result.status == Status::ok, result.reason);
    CHECK(result.verified);
    if (result.check && suite_case.inputs == InputKind::normal && suite_case.problem.output_size() >= kManyOutputs)
      CHECK(result.check->rel_l2_err <= promised_error(stage, result));
  }
}

void check_refusal(std::string_view stage, std::string_view text, std::string_view rule) {
  const RunResult result = run_case(find_stage(stage), {shape(text), InputKind::normal});
  CAPTURE(text);
  CHECK(std::string(to_string(result.status)) == "refused");
  CHECK_MESSAGE(result.reason.find(rule) != std::string::npos, result.reason);
}

void check_refusals_of_lowering(std::string_view stage) {
  struct Refusal {
    const char* shape;
    const char* rule;
  };
  for (const auto& [text, rule] : {
           Refusal{"c=4,k=4,groups=2,h=8,w=8,r=3,s=3", "want groups = 1; got groups=2"},
           Refusal{"c=4,k=4,groups=4,h=8,w=8,r=3,s=3", "want groups = 1; got groups=4"},
           Refusal{"h=2147483647", "index with 32 bits"},
           Refusal{"h=8,w=8,pad_w=1073741823", "index with 32 bits"},
           Refusal{"h=8,w=8,stride_h=4294967297", "index with 32 bits"},
           Refusal{"h=8,w=8,dilation_w=4294967297", "index with 32 bits"},
           Refusal{"c=65536,k=32768", "the filters, their number rounded up to 128"},
           Refusal{"n=65536,h=256,w=128", "positions n p q"},
           Refusal{"n=65536,c=32768", "planes, n c and n k"},
           Refusal{"n=65536,k=32768", "planes, n c and n k"},
           Refusal{"k=32768,h=256,w=256", "outputs k p q"},
           Refusal{"c=32768,h=256,w=256", "one image's rearrangement"},
           Refusal{"c=256,h=1024,w=1024,r=3", "one image's rearrangement"},
       }) {
    CAPTURE(text);
    const std::string reason = refusal(find_stage(stage), parse_shape(text), nullptr);
    CHECK_MESSAGE(reason.find(rule) != std::string::npos, reason);
  }
}

Configuration with_values(const Knobs& knobs, std::initializer_list<int> values) {
  Configuration configuration(knobs);
  std::copy(values.begin(), values.end(), configuration.values);
  return configuration;
}

void check_refusals_of_winograd(std::string_view stage) {
  struct Refusal {
    const char* shape;
    const char* rule;
  };
  for (const auto& [text, rule] : {
           Refusal{"c=4,k=4,groups=2,h=8,w=8,r=3,s=3", "groups must be 1; got groups=2"},
           Refusal{"c=4,k=4,groups=4,h=8,w=8,r=3,s=3", "groups must be 1; got groups=4"},
           Refusal{"h=8,w=8", "must be 3 x 3; got r=1, s=1"},
           Refusal{"h=8,w=8,r=3", "must be 3 x 3; got r=3, s=1"},
           Refusal{"h=8,w=8,r=3,s=5", "must be 3 x 3; got r=3, s=5"},
           Refusal{"h=8,w=8,r=5,s=3", "must be 3 x 3; got r=5, s=3"},
           Refusal{"h=8,w=8,r=2,s=2", "must be 3 x 3; got r=2, s=2"},
           Refusal{"h=8,w=8,r=3,s=3,stride_h=2", "the stride must be 1; got stride_h=2, stride_w=1"},
           Refusal{"h=8,w=8,r=3,s=3,stride_w=4294967297", "the stride must be 1; got stride_h=1, stride_w=4294967297"},
           Refusal{"h=8,w=8,r=3,s=3,dilation_h=2,pad_h=2", "the dilation must be 1; got dilation_h=2, dilation_w=1"},
           Refusal{"h=8,w=8,r=3,s=3,dilation_w=2,pad_w=2", "the dilation must be 1; got dilation_h=1, dilation_w=2"},
           Refusal{"h=2147483647,r=3,s=3", "a padded side must be below 2^31 - 8; got 2147483649 x 3"},
           Refusal{"h=8,w=8,r=3,s=3,pad_w=1073741823", "a padded side must be below 2^31 - 8; got 10 x 2147483654"},
           Refusal{"n=65536,h=256,w=256,r=3,s=3", "fewer than 2^31 elements"},
           Refusal{"n=1024,c=64,h=224,w=224,r=3,s=3", "fewer than 2^31 elements"},
           Refusal{"c=16384,k=16384,r=3,s=3", "fewer than 2^31 elements"},
           Refusal{"n=2147483647,r=3,s=3", "fewer than 2^31 elements"},
       }) {
    CAPTURE(text);
    const std::string reason = refusal(find_stage(stage), parse_shape(text), nullptr);
    CHECK_MESSAGE(reason.find(rule) != std::string::npos, reason);
  }
}

void check_refusals_of_pointwise(std::string_view stage, int unit) {
  const std::string some = "c=" + std::to_string(unit) + ",k=" + std::to_string(unit) + ",h=8,w=8";
  check_refusal(stage, some + ",r=3,s=3", "the filter must be 1 x 1; got r=3, s=3");
  check_refusal(stage, some + ",stride_w=2", "the stride must be 1; got stride_h=1, stride_w=2");
  check_refusal(stage, some + ",pad_h=1", "there must be no padding; got pad_h=1, pad_w=0");
  check_refusal(stage, "c=4,k=8,h=8,w=8", "c and k must be multiples of " + std::to_string(unit) + "; got c=4, k=8");
  check_refusal(stage, "c=8,k=9,h=8,w=8", "c=8, k=9");
  check_refusal(stage, "c=8,k=8,groups=2,h=8,w=8", "want groups = 1; got groups=2");
  const std::string reason = refusal(find_stage(stage), parse_shape("n=65536,c=32768,k=8"), nullptr);
  CHECK_MESSAGE(reason.find("elements n c h w") != std::string::npos, reason);
}

void check_refusals_of_implicit_gemm(std::string_view stage) {
  struct Refusal {
    const char* shape;
    const char* rule;
  };
  for (const auto& [text, rule] : {
           Refusal{"c=4,k=4,groups=2,h=8,w=8,r=3,s=3", "want groups = 1; got groups=2"},
           Refusal{"c=4,k=4,groups=4,h=8,w=8,r=3,s=3", "want groups = 1; got groups=4"},
           Refusal{"h=2147483647", "index with 32 bits"},
           Refusal{"h=8,w=8,pad_w=1073741823", "index with 32 bits"},
           Refusal{"h=8,w=8,stride_h=4294967297", "index with 32 bits"},
           Refusal{"h=8,w=8,dilation_w=4294967297", "index with 32 bits"},
           Refusal{"c=65536,k=32768", "must have at most"},
           Refusal{"c=1,k=1,r=1024,s=1024,h=1024,w=1024", "must have at most"},
           Refusal{"n=65536,c=32768", "elements n c h w; got 65536 x 32768 x 1 x 1"},
           Refusal{"n=1024,c=64,h=256,w=128", "elements n c h w"},
           Refusal{"n=65536,k=32768", "outputs n k p q; got 65536 x 32768 x 1 x 1"},
           Refusal{"k=32768,h=256,w=256", "outputs n k p q"},
       }) {
    CAPTURE(text);
    const std::string reason = refusal(find_stage(stage), parse_shape(text), nullptr);
    CHECK_MESSAGE(reason.find(rule) != std::string::npos, reason);
  }
}

void check_product_alone(std::string_view designation, const std::vector<std::string>& shapes) {
  for (const std::string& text : shapes) {
    CAPTURE(text);
    const ConvProblem problem = shape(text);
    const HostTensors tensors = make_inputs(problem, InputKind::normal, FilterForm::dense, kSeed);
    const auto bytes = [](std::int64_t floats) { return static_cast<std::size_t>(floats) * sizeof(float); };
    DeviceBuffer input(bytes(problem.input_size()), "input"), filter(bytes(problem.filter_size()), "filter"),
        output(bytes(problem.output_size()), "output");
    input.upload(tensors.input.data());
    filter.upload(tensors.filter.data());
    const Tensors view{input.floats(), filter.floats(), output.floats()};
    const std::unique_ptr<Stage> stage(find_stage(designation).make());
    run_and_wait([&](Stream stream) { stage->prepare(problem, view, stream); });

    std::vector<float> whole(static_cast<std::size_t>(problem.output_size())), product(whole.size());
    const auto run = [&](const std::function<void(Stream)>& launch, std::vector<float>& result) {
      output.poison();
      const Observation seen = observe(launch, false);
      CHECK(seen.faults.empty());
      output.download(result.data());
      return seen.counters.global_store_bytes;
    };
    const std::int64_t stored = run([&](Stream stream) { stage->launch(problem, view, stream); }, whole);
    bool has_product = false;
    const std::int64_t stored_by_product =
        run([&](Stream stream) { has_product = stage->launch_without_transform(problem, view, stream); }, product);
    REQUIRE(has_product);
    CHECK(std::memcmp(whole.data(), product.data(), bytes(problem.output_size())) == 0);
    if (backend() == Backend::gpu) continue;
    CHECK(stored_by_product == problem.output_size() * 4);
    CHECK(stored > stored_by_product);
  }
}

void check_bits_of_one_device(std::string_view designation, const std::vector<std::string>& shapes) {
  if (backend() == Backend::gpu) return;
  SuiteShare share(fmt::format("{} {}", designation, shapes.front()));
  for (const std::string& text : shapes) {
    for (const Padding padding : kPaddings) {
      ConvProblem problem = shape(text);
      problem.padding = padding;
      if (!defined(problem) || !share.takes(problem, InputKind::normal)) continue;
      CAPTURE(text);
      CAPTURE(static_cast<int>(padding));
      const HostTensors host = make_inputs(problem, InputKind::normal, FilterForm::dense, kSeed);
      DeviceTensors tensors(problem, Elements::floats, host.input.data(), host.filter.data());
      const auto output_of = [&](Stage& stage) {
        run_and_wait([&](Stream stream) { stage.prepare(problem, tensors.view(), stream); });
        for (int launch = 0; launch < 2; ++launch) {  // the second finds what the first has left
          tensors.poison_output();
          const Observation seen =
              observe([&](Stream stream) { stage.launch(problem, tensors.view(), stream); }, false);
          if (!seen.faults.empty()) FAIL(seen.faults.front().kind << ": " << seen.faults.front().other);
        }
        std::vector<float> output(static_cast<std::size_t>(problem.output_size()));
        tensors.download_output(output.data());
        return output;
      };
      const std::unique_ptr<Stage> single(find_stage("09").make());
      const std::vector<float> expected = output_of(*single);
      for (const int devices : {1, 2, 3, 4, 8}) {
        CAPTURE(devices);
        const std::unique_ptr<Stage> made(find_stage(designation).make());
        auto& stage = dynamic_cast<TunableStage&>(*made);
        stage.use(with_values(stage.knobs(), {devices}));
        const std::vector<float> output = output_of(stage);
        CHECK(std::memcmp(output.data(), expected.data(), output.size() * sizeof(float)) == 0);
      }
    }
  }
}

void check_prediction(std::string_view stage, const std::vector<std::string>& shapes) {
  check_prediction(stage, shapes, FilterForm::dense);
}

int check_configurations(std::string_view stage) {
  constexpr std::size_t kSample = 12;
  const std::string shape = winograd_shape("n=3,c=18,k=25,h=17,w=18");
  const std::unique_ptr<Stage> made(find_stage(stage).make());
  const auto& tunable = dynamic_cast<const TunableStage&>(*made);
  Configuration point(tunable.knobs());
  std::vector<std::string> accepted;
  const auto choose = [&](const auto& next, int k) -> void {
    if (k < point.knobs.count) {
      const Knob& knob = point.knobs.knobs[k];
      for (int i = 0; i < knob.count; ++i) {
        point.values[k] = knob.values[i];
        next(next, k + 1);
      }
    } else if (tunable.check_configuration(parse_shape(shape), device_limits(), point).accepted()) {
      std::string& text = accepted.emplace_back();
      for (int i = 0; i < point.knobs.count; ++i) {
        const Knob& knob = point.knobs.knobs[i];
        text += (i ? "," : "") + std::string(knob.name) + "=" + value_text(knob, point.values[i]);
      }
    }
  };
  choose(choose, 0);
  REQUIRE(accepted.size() >= kSample);
  for (std::size_t i = 0; i < kSample; ++i)
    check_prediction(stage, {shape}, FilterForm::dense, accepted[i * accepted.size() / kSample]);
  return static_cast<int>(accepted.size());
}

void check_winograd_prediction(std::string_view stage, std::string_view settings) {
  std::vector<std::string> shapes;
  for (const char* sizes :
       {"n=3,c=2,k=3,h=2,w=1", "n=2,c=64,k=64,h=8,w=16", "n=3,c=17,k=65,h=7,w=9", "c=2,k=2,h=13,w=5,pad_h=3,pad_w=0"})
    shapes.push_back(winograd_shape(sizes));
  check_prediction(stage, shapes, FilterForm::dense, settings);
}

void check_prediction(std::string_view stage, const std::vector<std::string>& shapes, FilterForm filter,
                      std::string_view settings) {
  SuiteShare share(fmt::format("{} {} {}", stage, settings, shapes.front()));
  for (const std::string& text : shapes) {
    for (const Padding padding : kPaddings) {
      ConvProblem problem = parse_shape(text);
      problem.padding = padding;
      if (!defined(problem)) continue;
      CAPTURE(text);
      CAPTURE(std::string(to_string(padding)));
      CAPTURE(std::string(settings));
      if (padding != Padding::zero && !refusal(find_stage(stage), problem, nullptr).empty())
        continue;  // a rule's matter
      if (!share.takes(problem, InputKind::normal)) continue;
      const RunResult result = run_case(find_stage(stage), {problem, InputKind::normal, filter}, settings);
      CHECK_MESSAGE(result.status == Status::ok, result.reason);
      REQUIRE(result.counters);
      REQUIRE(result.prediction);
      int predicted = 0;
      for (const CounterField& field : kCounterFields) {
        const std::int64_t expected = (*result.prediction).*field.member;
        if (expected < 0) continue;
        CAPTURE(std::string(field.name));
        CHECK((*result.counters).*field.member == expected);
        ++predicted;
      }
      CHECK(predicted >= 3);
    }
  }
}

std::vector<LineCounters> lines_of(std::string_view designation, std::string_view text, std::string_view settings) {
  const StageInfo& stage = find_stage(designation);
  RunOptions options;
  options.time = false;
  options.lines = true;
  options.settings = settings;
  const RunResult result =
      run_stage(stage, make_workload("", shape(text), InputKind::normal, track_of(stage).filter, kSeed), options);
  std::vector<LineCounters> lines;
  for (const LineCounters& line : result.lines)
    if (line.file.find(stage.folder) != std::string::npos) lines.push_back(line);
  return lines;
}

}  // namespace convladder
