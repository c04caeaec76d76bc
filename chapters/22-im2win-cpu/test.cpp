#include <doctest/doctest.h>
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "common/harness/baselines/cpu_rows.hpp"
#include "common/harness/files/problem_io.hpp"
#include "common/kernel/tracks/lowering.hpp"
#include "common/stage/tunable.hpp"
#include "tests/stage_suite.hpp"

using namespace convladder;

namespace {

std::unique_ptr<TunableStage> make_tunable() {
  return std::unique_ptr<TunableStage>(dynamic_cast<TunableStage*>(find_stage("22").make()));
}

/// Every combination of the switches that this CPU can run: order, unroll, simd, blocking, threads.
std::vector<Configuration> configurations() {
  const auto stage = make_tunable();
  std::vector<Configuration> valid;
  for (int point = 0; point < 2 * 2 * 3 * 2 * 2; ++point) {
    const Configuration c =
        with_values(stage->knobs(), {point & 1, point >> 1 & 1, point >> 4, point >> 2 & 1, point >> 3 & 1});
    if (stage->check_configuration({}, {}, c).accepted()) valid.push_back(c);
  }
  return valid;
}

std::string words(const Configuration& c) {
  return fmt::format("order={} unroll={} simd={} blocking={} threads={}", c["order"], c["unroll"], c["simd"],
                     c["blocking"], c["threads"]);
}

/// Shapes around the tiles of every instruction set (4, 8, 16, 32 filters by 6 and 14 pixels), the bands and the
/// blocks.
const std::vector<std::string> kShapes = {
    "h=1,w=1",
    "c=3,k=17,h=1,w=1,r=3,s=3",                      // smaller than the filter
    "n=2,c=5,k=7,h=9,w=11,r=3,s=3,pad_h=0,pad_w=0",  // primes
    "n=3,c=2,k=33,h=7,w=7,r=3,s=3,pad_h=0,pad_w=0",  // bands of several images
    "n=2,c=16,k=64,h=13,w=14,r=3,s=3",               // whole tiles
    "c=1,k=1,h=23,w=29,r=5,s=5",                     // one filter
    "n=2,c=37,k=13,h=6,w=5,r=1,s=1",                 // one tap
    "n=2,c=3,k=40,h=41,w=43,r=11,s=11,stride_h=4,stride_w=4,pad_h=0,pad_w=0",
    "c=4,k=19,h=30,w=33,r=7,s=7,stride_h=2,stride_w=2",
    "c=3,k=18,h=25,w=31,r=3,s=5,stride_h=3,stride_w=1,dilation_h=2,dilation_w=3",
    "c=2,k=5,h=12,w=19,r=4,s=2,pad_h=6,pad_w=9",        // even, more padding than filter
    "n=2,c=3,k=6,h=9,w=40,r=2,s=3,stride_w=5,pad_h=0",  // columns that no window has
    "c=200,k=70,h=6,w=7,r=3,s=3",                       // several chunks of channels
    "n=9,c=96,k=48,h=12,w=12,r=3,s=3,pad_h=0,pad_w=0",  // several bands
    "c=2,k=3,h=40,w=5,r=31,s=3,pad_h=15,pad_w=4",       // a filter of many rows
};

RunResult run_configuration(const Workload& workload, const Configuration& configuration) {
  RunOptions options;
  options.time = false;
  options.configuration = configuration;
  return run_stage(find_stage("22"), workload, options);
}

}  // namespace

TEST_CASE("22 im2win-cpu: every image is right") { check_suite("22", lowering_suite()); }

TEST_CASE("22 im2win-cpu: every switch is right") {
  const std::vector<Configuration> points = configurations();
  CHECK(points.size() >= 12);  // two without tiles, four with tiles on any CPU; each by one thread and by all
  for (const std::string& shape : kShapes)
    for (const Padding padding : {Padding::zero, Padding::replicate, Padding::reflect}) {
      ConvProblem problem = parse_shape(shape);
      problem.padding = padding;
      if (padding == Padding::reflect && (problem.pad_h >= problem.h || problem.pad_w >= problem.w)) continue;
      const Workload workload = make_workload("", problem, InputKind::normal, FilterForm::dense, 7);
      for (const Configuration& point : points) {
        CAPTURE(shape);
        CAPTURE(static_cast<int>(padding));
        CAPTURE(words(point));
        const RunResult result = run_configuration(workload, point);
        CHECK_MESSAGE(result.status == Status::ok, result.reason);
      }
    }
}

TEST_CASE("22 im2win-cpu: NaN, infinity and large numbers arrive where the reference has them") {
  for (const InputKind inputs : {InputKind::nan, InputKind::infinity, InputKind::large, InputKind::integers})
    for (const char* shape : {"n=2,c=3,k=17,h=11,w=13,r=3,s=5", "c=2,k=3,h=9,w=9,r=3,s=3,stride_h=2,stride_w=2"}) {
      const Workload workload = make_workload("", parse_shape(shape), inputs, FilterForm::dense, 7);
      for (const Configuration& point : configurations()) {
        CAPTURE(shape);
        CAPTURE(words(point));
        const RunResult result = run_configuration(workload, point);
        CHECK_MESSAGE(result.status == Status::ok, result.reason);
      }
    }
}

TEST_CASE("22 im2win-cpu: workspace is the packed filters and the im2win tensor, or its bands") {
  const ConvProblem problem = parse_shape("n=4,c=96,k=50,h=40,w=41,r=3,s=3,pad_h=1,pad_w=2");
  std::vector<float> filter(static_cast<std::size_t>(problem.filter_size()));
  const auto workspace = [&](const Configuration& configuration) {
    const auto stage = make_tunable();
    stage->use(configuration);
    stage->prepare(problem, {nullptr, filter.data(), nullptr}, nullptr);
    return stage->workspace_bytes();
  };
  const auto workspace_with = [&](std::initializer_list<int> values) {
    return workspace(with_values(make_tunable()->knobs(), values));
  };
  const std::int64_t taps = 96 * 3 * 3, tensor = 4 * im2win_size(problem);
  CHECK(tensor == 4 * 4 * 96 * 40 * 3 * 45);
  CHECK(workspace_with({0, 0, 0, 0, 0}) == tensor + 4 * 50 * taps);
  CHECK(workspace_with({1, 0, 0, 0, 1}) == tensor + 4 * 50 * taps);
  CHECK(workspace_with({1, 1, 0, 0, 0}) == tensor + 4 * 52 * taps);  // whole groups of 4 filters
  const std::int64_t band = workspace_with({1, 1, 0, 1, 0}) - 4 * 52 * taps;
  CHECK(band > 0);
  CHECK(band < tensor / 4);
  for (const Configuration& point : configurations()) {
    if (!point["unroll"] || point["blocking"]) continue;
    CAPTURE(words(point));
    const std::int64_t lanes = point["simd"] == 2 ? 16 : point["simd"] == 1 ? 8 : 4;
    CHECK(workspace(point) == tensor + 4 * ((50 + lanes - 1) / lanes * lanes) * taps);
  }
}

TEST_CASE("22 im2win-cpu: the default has every switch on") {
  const auto stage = make_tunable();
  const ConvProblem problem = parse_shape("c=3,k=4,h=8,w=8,r=3,s=3");
  const Configuration configuration = stage->default_configuration(problem, {});
  CHECK(stage->check_configuration(problem, {}, configuration).accepted());
  for (const char* knob : {"order", "unroll", "blocking", "threads"}) CHECK(configuration[knob] == 1);
}

TEST_CASE("22 im2win-cpu: rules of the switches") {
  const auto stage = make_tunable();
  const auto rule = [&](std::initializer_list<int> values) {
    return std::string(stage->check_configuration({}, {}, with_values(stage->knobs(), values)).reason());
  };
  CHECK(rule({0, 0, 0, 0, 0}) == "");
  CHECK(rule({0, 1, 0, 0, 0}).find("order=source") != std::string::npos);
  CHECK(rule({1, 0, 1, 0, 0}).find("simd wants unroll=on") != std::string::npos);
  CHECK(rule({1, 0, 0, 1, 0}).find("blocking wants unroll=on") != std::string::npos);
}

TEST_CASE("22 im2win-cpu: refuses by rule") { check_refusal("22", "c=4,k=4,groups=2,h=8,w=8,r=3,s=3", "groups = 1"); }

TEST_CASE("22 im2win-cpu: the rows beside it are right") {
  CHECK(cpu_rows().size() == 8);
  for (const StageInfo& row : cpu_rows())
    for (const char* shape : {"n=2,c=3,k=18,h=13,w=15,r=3,s=5", "n=3,c=5,k=7,h=12,w=19,r=3,s=3,pad_h=4,pad_w=0",
                              "c=4,k=5,h=21,w=20,r=4,s=3,stride_h=3,stride_w=2,dilation_h=2,pad_h=0,pad_w=2"}) {
      CAPTURE(row.name);
      CAPTURE(shape);
      const RunResult result = run_case(row, {parse_shape(shape), InputKind::normal});
      const bool missing = result.reason.find("built without") != std::string::npos;
      CHECK_MESSAGE((result.status == Status::ok || missing), result.reason);
    }
}
