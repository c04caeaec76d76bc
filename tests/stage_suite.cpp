#include "tests/stage_suite.hpp"

#include <doctest/doctest.h>

#include "common/problem_io.hpp"

namespace convladder {
namespace {

constexpr std::uint64_t kSeed = 20240607;
constexpr Padding kPaddings[] = {Padding::zero, Padding::replicate, Padding::reflect};

ConvProblem shape(std::string_view text) {
  const ConvProblem problem = parse_shape(text);
  validate(problem, device_info().memory_bytes);
  return problem;
}

}  // namespace

std::string to_string(const SuiteCase& suite_case) {
  constexpr const char* kNames[] = {"normal", "uniform", "integers", "impulse", "constant", "large", "nan", "infinity"};
  return to_string(suite_case.problem) + " " + to_string(suite_case.problem.padding) + " " +
         kNames[static_cast<int>(suite_case.inputs)];
}

std::vector<SuiteCase> signal_suite() {
  const char* const shapes[] = {
      "w=1",       // radius 0: a plain product
      "w=1,s=3",   // shorter than the filter
      "w=3,s=11",  // shorter than the radius
      "w=7,s=3",   // shorter than a warp
      "w=255,s=11",
      "w=256,s=11",
      "w=257,s=11",          // around the tile
      "w=521,s=1",           // prime, radius 0, several blocks
      "w=1021,s=63",         // prime
      "n=3,w=257,s=5",       // batch
      "n=2,w=300,s=1025",    // radius 512: halos longer than the tile, and than the signal
      "w=1300,s=1025",       // radius 512 inside the signal
      "w=600,s=11,pad_w=0",  // "valid": the output is shorter than the input
      "w=600,s=11,pad_w=9",  // more padding than the radius: the output is longer
      "w=40,s=5,pad_w=8",    // more padding than the filter
  };
  std::vector<SuiteCase> suite;
  for (const char* text : shapes) {
    for (const Padding padding : kPaddings) {
      ConvProblem problem = parse_shape(text);
      problem.padding = padding;
      if (padding == Padding::reflect && problem.pad_w >= problem.w) continue;
      suite.push_back({problem, InputKind::normal});
      suite.push_back({problem, InputKind::integers});
    }
  }
  ConvProblem several_blocks = parse_shape("n=2,w=389,s=11");
  for (const Padding padding : kPaddings) {
    several_blocks.padding = padding;
    for (const InputKind kind : {InputKind::uniform, InputKind::impulse, InputKind::constant, InputKind::large,
                                 InputKind::nan, InputKind::infinity})
      suite.push_back({several_blocks, kind});
  }
  return suite;
}

RunResult run_case(const StageInfo& stage, const SuiteCase& suite_case) {
  RunOptions options;
  options.time = false;
  return run_stage(stage, make_workload("", suite_case.problem, suite_case.inputs, kSeed), options);
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
  CAPTURE(std::string(text));
  CHECK(std::string(to_string(result.status)) == "refused");
  CHECK_MESSAGE(result.reason.find(rule) != std::string::npos, result.reason);
}

void check_prediction(std::string_view stage, const std::vector<std::string>& shapes) {
  for (const std::string& text : shapes) {
    for (const Padding padding : kPaddings) {
      ConvProblem problem = parse_shape(text);
      problem.padding = padding;
      if (padding == Padding::reflect && problem.pad_w >= problem.w) continue;
      CAPTURE(text);
      CAPTURE(std::string(to_string(padding)));
      const RunResult result = run_case(find_stage(stage), {problem, InputKind::normal});
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
  const RunResult result = run_stage(stage, make_workload("", shape(text), InputKind::normal, kSeed), options);
  std::vector<LineCounters> lines;
  for (const LineCounters& line : result.lines)
    if (line.file.find(stage.folder) != std::string::npos) lines.push_back(line);
  return lines;
}

}  // namespace convladder
