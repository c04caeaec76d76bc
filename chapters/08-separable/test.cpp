#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "common/harness/files/problem_io.hpp"
#include "common/harness/ladder/settings.hpp"
#include "common/harness/ladder/tuning_log.hpp"
#include "common/stage/tunable.hpp"
#include "tests/stage_suite.hpp"

using namespace convladder;

namespace {

/// The stage on a 3x3 filter.
RunResult run_with(const std::vector<float>& filter) {
  ConvProblem problem;
  problem.h = 40;
  problem.w = 50;
  problem.r = problem.s = 3;
  problem.pad_h = problem.pad_w = 1;
  Workload workload{"", problem, InputKind::normal, make_inputs(problem, InputKind::normal, FilterForm::dense, 3), {}};
  workload.tensors.filter = filter;
  workload.reference = convolve_reference(problem, workload.tensors.input, filter);
  RunOptions options;
  options.time = false;
  return run_stage(find_stage("08"), workload, options);
}

/// The product of a column and a row, with one tap changed by a share of the largest.
std::vector<float> product_but_for(double share) {
  std::vector<float> filter;
  for (const double column : {0.3, -2.0, 0.7})
    for (const double row : {1.1, 0.4, -0.9}) filter.push_back(static_cast<float>(column * row));
  filter[8] += static_cast<float>(share * 2.2);
  return filter;
}

/// A part of the suite with every padding.
std::vector<SuiteCase> every_fifth_image() {
  const std::vector<SuiteCase> suite = image_suite(FilterForm::rank_one);
  std::vector<SuiteCase> part;
  for (std::size_t i = 0; i < suite.size(); i += 5) part.push_back(suite[i]);
  return part;
}

/// What one kernel takes, with every padding and each side of a filter: images around a strip of 128 columns, lower and
/// higher than the filter, with rows of whole vectors and others; padding other than the radius; batches.
std::vector<SuiteCase> squares() {
  std::vector<std::string> shapes = {"h=1,w=1,r=3,s=3",
                                     "h=2,w=3,r=5,s=5",
                                     "h=40,w=1,r=3,s=3",
                                     "h=31,w=127,r=3,s=3",
                                     "h=32,w=128,r=5,s=5",
                                     "h=33,w=132,r=7,s=7",
                                     "n=3,h=17,w=129,r=5,s=5",
                                     "n=2,h=20,w=264,r=9,s=9",
                                     "h=9,w=72,r=31,s=31",
                                     "h=200,w=260,r=31,s=31",
                                     "h=131,w=130,r=31,s=31",
                                     "h=48,w=152,r=7,s=7,pad_h=0,pad_w=0",
                                     "h=70,w=180,r=17,s=17,pad_h=3,pad_w=8",
                                     "h=70,w=168,r=15,s=15,pad_h=9,pad_w=4",
                                     "h=12,w=20,r=3,s=3,pad_h=6,pad_w=9"};
  for (int side = 3; side <= 31; side += 2)
    shapes.push_back("h=67,w=196,r=" + std::to_string(side) + ",s=" + std::to_string(side));
  std::vector<SuiteCase> suite;
  for (const std::string& shape : shapes) {
    ConvProblem problem = parse_shape(shape);
    for (const Padding padding : {Padding::zero, Padding::replicate, Padding::reflect}) {
      problem.padding = padding;
      if (padding == Padding::reflect && (problem.pad_h >= problem.h || problem.pad_w >= problem.w)) continue;
      suite.push_back({problem, InputKind::normal, FilterForm::rank_one});
    }
  }
  return suite;
}

/// The lines that load from global memory in many requests, in their order: where pixels are staged.
std::vector<int> staging_lines(std::string_view settings) {
  std::vector<int> lines;
  for (const LineCounters& line : lines_of("08", "h=300,w=40,r=5,s=5", settings))
    if (line.counters.global_load_requests > 100) lines.push_back(line.line);
  std::sort(lines.begin(), lines.end());
  return lines;
}

/// Every configuration.
std::vector<std::string> configurations() {
  std::vector<std::string> all;
  for (const char* rows : {"rows=1", "rows=2", "rows=4"})
    for (const char* threads : {",threads=64", ",threads=256"})
      for (const char* loads : {",loads=together", ",loads=in-turn"})
        for (const char* index : {",index=border", ",index=every"})
          for (const char* rest : {",rest=groups", ",rest=single"})
            all.push_back(std::string(rows) + threads + loads + index + rest);
  return all;
}

}  // namespace

TEST_CASE("08 separable: every image is right") { check_suite("08", image_suite(FilterForm::rank_one)); }

TEST_CASE("08 separable: every image is right with each choice made otherwise, and with all") {
  for (const char* settings : {"rows=1", "rows=4", "threads=256", "loads=in-turn", "index=every", "rest=single",
                               "rows=1,threads=256,loads=in-turn,index=every,rest=single"})
    check_suite("08", every_fifth_image(), settings);
}

TEST_CASE("08 separable: counters are what the lesson predicts (simulator)") {
  check_prediction("08",
                   {"h=1,w=1", "h=64,w=300,r=5,s=5", "h=4,w=800,r=1,s=5", "h=300,w=8,r=7,s=3", "n=2,h=133,w=45,r=4,s=3",
                    "h=30,w=40,r=7,s=9,pad_h=0,pad_w=0", "h=80,w=70,r=65,s=33"},
                   FilterForm::rank_one);
}

TEST_CASE("08 separable: and with every configuration (simulator)") {
  for (const std::string& settings : configurations())
    check_prediction("08", {"h=9,w=270,r=7,s=11", "h=133,w=5,r=12,s=4,pad_h=0"}, FilterForm::rank_one, settings);
}

TEST_CASE("08 separable: every image is right in one kernel") {
  check_suite("08", squares(), "fused=yes");
  check_suite("08", {{parse_shape("h=150,w=140,r=31,s=31"), InputKind::normal, FilterForm::rank_one}},
              "fused=yes,warps=4");
}

TEST_CASE("08 separable: a NaN or an infinity reaches the outputs whose windows have it, in one kernel too") {
  const StageInfo& stage = find_stage("08");
  for (const float value : {NAN, INFINITY}) {
    Workload workload =
        make_workload("", parse_shape("h=70,w=140,r=17,s=17"), InputKind::normal, FilterForm::rank_one, 3);
    workload.tensors.input[40 * 140 + 127] = value;
    workload.reference = convolve_reference(workload.problem, workload.tensors.input, workload.tensors.filter);
    RunOptions options;
    options.time = false;
    options.settings = "fused=yes";
    const RunResult result = run_stage(stage, workload, options);
    CHECK_MESSAGE(result.status == Status::ok, result.reason);
  }
}

TEST_CASE("08 separable: counters are what the lesson predicts of one kernel (simulator)") {
  // One strip and several, segments of one row and more; copies of 16 bytes and of 4.
  check_prediction("08",
                   {"h=1,w=1,r=3,s=3", "h=64,w=300,r=5,s=5", "h=4,w=800,r=5,s=5", "h=300,w=8,r=7,s=7",
                    "n=2,h=133,w=45,r=3,s=3", "h=30,w=40,r=9,s=9,pad_h=0,pad_w=0", "h=330,w=290,r=31,s=31",
                    "h=200,w=292,r=31,s=31", "h=70,w=140,r=17,s=17,pad_h=2"},
                   FilterForm::rank_one, "fused=yes");
}

TEST_CASE("08 separable: one kernel for large images and the filters that it takes") {
  const std::unique_ptr<Stage> stage(find_stage("08").make());
  const auto& tunable = dynamic_cast<const TunableStage&>(*stage);
  const auto decided = [&](const char* shape, const char* settings, const char* knob) {
    const ConvProblem problem = parse_shape(shape);
    Configuration configuration(tunable.knobs());
    if (*settings) apply_settings(settings, configuration);
    const Configuration c = tunable.decided(problem, device_limits(), configuration);
    for (int k = 0; k < c.knobs.count; ++k)
      if (c.knobs.knobs[k].name == std::string(knob)) return value_text(c.knobs.knobs[k], c.values[k]);
    return std::string("no such knob");
  };
  CHECK(decided("h=2160,w=3840,r=31,s=31", "", "fused") == "yes");
  CHECK(decided("h=1080,w=1920,r=31,s=31", "", "fused") == "yes");
  CHECK(decided("h=256,w=256,r=11,s=11", "", "fused") == "no");
  CHECK(decided("n=16,h=256,w=256,r=11,s=11", "", "fused") == "yes");
  CHECK(decided("h=2160,w=3840,r=33,s=33", "", "fused") == "no");
  CHECK(decided("h=2160,w=3840,r=8,s=8", "", "fused") == "no");
  CHECK(decided("h=2160,w=3840,r=3,s=5", "", "fused") == "no");
  CHECK(decided("h=2160,w=3840,r=31,s=31", "rows=1", "fused") == "no");  // a choice of the two passes
  CHECK(decided("h=256,w=256,r=31,s=31", "fused=yes", "fused") == "yes");
  CHECK(decided("h=256,w=256,r=31,s=31", "fused=yes", "warps") == "1");
  CHECK(decided("h=256,w=256,r=31,s=31", "fused=yes,warps=4", "warps") == "4");
  CHECK(decided("h=256,w=256,r=31,s=31", "", "warps") == "auto");
  const auto refusal = [&](const char* shape, const char* settings) {
    Configuration configuration(tunable.knobs());
    apply_settings(settings, configuration);
    return std::string(tunable.check_configuration(parse_shape(shape), device_limits(), configuration).reason());
  };
  CHECK(refusal("h=9,w=9,r=31,s=31", "fused=no,rows=1") == "");
  CHECK(refusal("h=9,w=9,r=31,s=31", "fused=yes,rows=1").find("choices of the two passes") != std::string::npos);
  CHECK(refusal("h=9,w=9,r=31,s=31", "fused=no,warps=2").find("choice of the one kernel") != std::string::npos);
  for (const char* shape : {"h=9,w=9,r=1,s=1", "h=9,w=9,r=4,s=4", "h=9,w=9,r=3,s=5", "h=9,w=9,r=33,s=33"})
    CHECK(refusal(shape, "fused=yes") == "one kernel takes square filters with an odd side from 3 to 31: set fused=no");
}

TEST_CASE("08 separable: each setting changes what it is about (simulator)") {
  const auto counters = [](std::string_view settings) {
    const SuiteCase image{parse_shape("h=128,w=64,r=15,s=15,pad_h=7,pad_w=7"), InputKind::normal, FilterForm::rank_one};
    const RunResult result = run_case(find_stage("08"), image, settings);
    CHECK_MESSAGE(result.status == Status::ok, result.reason);
    REQUIRE(result.counters);
    return *result.counters;
  };
  const std::int64_t columns = 2;  // blocks of the second pass, a barrier each
  CHECK(counters("").barriers == 64 + columns);
  CHECK(counters("rows=1").barriers == 128 + columns);
  CHECK(counters("rows=4").barriers == 32 + columns);
  CHECK(counters("rows=1,threads=256").barriers == 32 + columns);
  // 15 taps, 16 outputs a thread: 8, 4 and 3 taps meet 23, 19 and 18 pixels; single ones 16 each.
  const std::int64_t warps = columns * 8;
  CHECK(counters("rest=single").shared_load_requests - counters("").shared_load_requests == warps * (7 * 16 - 19 - 18));
  // The row pass; the column pass inside the image, and at its border.
  const std::vector<int> usual = staging_lines(""), in_turn = staging_lines("loads=in-turn"),
                         every = staging_lines("index=every");
  REQUIRE(usual.size() == 3);
  REQUIRE(in_turn.size() == 3);
  CHECK(in_turn[0] != usual[0]);
  CHECK((in_turn[1] == usual[1] && in_turn[2] == usual[2]));
  CHECK(every == std::vector<int>{usual[0], usual[2]});
}

TEST_CASE("08 separable: refuses by rule") {
  check_refusal("08", "h=8,w=8,c=3,r=3,s=3", "one channel");
  check_refusal("08", "h=80,w=80,r=66,s=3", "at most 65x65");
  check_refusal("08", "h=16,w=16,r=3,s=3", "not of rank one");
}

TEST_CASE("08 separable: the rank test draws the line at 1e-6 of the largest tap") {
  CHECK(run_with(product_but_for(0)).status == Status::ok);
  CHECK(run_with(product_but_for(5e-7)).status == Status::ok);
  CHECK(run_with(product_but_for(2e-6)).status == Status::refused);
  CHECK(run_with({1, 2, 1, 0, 0, 0, -1, -2, -1}).status == Status::ok);        // a zero row
  CHECK(run_with({0, 0, 0, 0, 0, 0, 0, 0, 0}).status == Status::ok);           // nothing to divide by
  CHECK(run_with({0, -1, 0, -1, 5, -1, 0, -1, 0}).status == Status::refused);  // sharpen
  CHECK(run_with({1, 1, 1, 1, NAN, 1, 1, 1, 1}).status == Status::refused);
}

TEST_CASE("08 separable: what the rank test lets pass is no error") {
  // A cross in the middle, and next to nothing everywhere else.
  for (const auto& [rows, columns] : {std::pair{7, 7}, {7, 8}, {31, 31}}) {  // of the last, too much is left out
    ConvProblem problem;
    problem.h = problem.w = 70;
    problem.r = rows;
    problem.s = columns;
    problem.pad_h = rows / 2;
    problem.pad_w = columns / 2;
    Workload workload{
        "", problem, InputKind::uniform, make_inputs(problem, InputKind::uniform, FilterForm::dense, 3), {}};
    for (int i = 0; i < rows * columns; ++i) {
      const bool row = i / columns == rows / 2, column = i % columns == columns / 2;
      workload.tensors.filter[static_cast<std::size_t>(i)] = row && column ? 1.0f : row || column ? 0.0f : 9e-7f;
    }
    workload.reference = convolve_reference(problem, workload.tensors.input, workload.tensors.filter);
    RunOptions options;
    options.time = false;
    const RunResult result = run_stage(find_stage("08"), workload, options);
    CHECK_MESSAGE(result.status == (rows < 31 ? Status::ok : Status::refused), result.reason);
  }
}

TEST_CASE("08 separable: a row or a column is a product, whatever it holds") {
  check_suite("08", {{[] {
                        ConvProblem row;
                        row.h = 20;
                        row.w = 300;
                        row.s = 9;
                        row.pad_w = 4;
                        return row;
                      }(),
                      InputKind::normal}});
}
