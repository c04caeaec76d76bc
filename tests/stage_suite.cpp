#include "tests/stage_suite.hpp"

#include <doctest/doctest.h>

#include "common/problem_io.hpp"
#include "common/workloads.hpp"

namespace convladder {
namespace {

constexpr std::uint64_t kSeed = 20240607;
constexpr Padding kPaddings[] = {Padding::zero, Padding::replicate, Padding::reflect};

ConvProblem shape(std::string_view text) {
  const ConvProblem problem = parse_shape(text);
  validate(problem, device_info().memory_bytes);
  return problem;
}

/// Reflect padding must be smaller than the input.
bool defined(const ConvProblem& problem) {
  return problem.padding != Padding::reflect || (problem.pad_w < problem.w && problem.pad_h < problem.h);
}

/// Each shape with every padding mode, with normal inputs and with others: integers, whose sums are exact as long as
/// nobody divides them, and uniform ones where a stage splits the filter.
std::vector<SuiteCase> with_every_padding(const std::vector<std::string>& shapes, FilterForm filter) {
  std::vector<SuiteCase> suite;
  for (const std::string& text : shapes) {
    ConvProblem problem = parse_shape(text);
    for (const Padding padding : kPaddings) {
      problem.padding = padding;
      if (!defined(problem)) continue;
      suite.push_back({problem, InputKind::normal, filter});
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
  constexpr const char* kNames[] = {"normal", "uniform", "integers", "impulse", "constant", "large", "nan", "infinity"};
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
          depthwise_shape(4, "n=3,h=16,w=32,r=7,s=7"),                        // the source's
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

RunResult run_case(const StageInfo& stage, const SuiteCase& suite_case) {
  RunOptions options;
  options.time = false;
  return run_stage(stage, make_workload("", suite_case.problem, suite_case.inputs, suite_case.filter, kSeed), options);
}

void check_suite(std::string_view designation, const std::vector<SuiteCase>& suite) {
  const StageInfo& stage = find_stage(designation);
  REQUIRE(!suite.empty());
  for (const SuiteCase& suite_case : suite) {
    CAPTURE(to_string(suite_case));
    const RunResult result = run_case(stage, suite_case);
    CHECK_MESSAGE(result.status == Status::ok, result.reason);
    CHECK(result.verified);
  }
}

void check_refusal(std::string_view stage, std::string_view text, std::string_view rule) {
  const RunResult result = run_case(find_stage(stage), {shape(text), InputKind::normal});
  CAPTURE(text);
  CHECK(std::string(to_string(result.status)) == "refused");
  CHECK_MESSAGE(result.reason.find(rule) != std::string::npos, result.reason);
}

void check_prediction(std::string_view stage, const std::vector<std::string>& shapes) {
  check_prediction(stage, shapes, FilterForm::dense);
}

void check_prediction(std::string_view stage, const std::vector<std::string>& shapes, FilterForm filter) {
  for (const std::string& text : shapes) {
    for (const Padding padding : kPaddings) {
      ConvProblem problem = parse_shape(text);
      problem.padding = padding;
      if (!defined(problem)) continue;
      CAPTURE(text);
      CAPTURE(std::string(to_string(padding)));
      const RunResult result = run_case(find_stage(stage), {problem, InputKind::normal, filter});
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

std::vector<LineCounters> lines_of(std::string_view designation, std::string_view text) {
  const StageInfo& stage = find_stage(designation);
  RunOptions options;
  options.time = false;
  options.lines = true;
  const RunResult result =
      run_stage(stage, make_workload("", shape(text), InputKind::normal, filter_form(stage.track), kSeed), options);
  std::vector<LineCounters> lines;
  for (const LineCounters& line : result.lines)
    if (line.file.find(stage.folder) != std::string::npos) lines.push_back(line);
  return lines;
}

}  // namespace convladder
