#include <doctest/doctest.h>
#include <fmt/format.h>

#include <functional>
#include <memory>

#include "common/harness/files/problem_io.hpp"
#include "common/harness/ladder/tuning_log.hpp"
#include "common/stage/tunable.hpp"
#include "tests/stage_suite.hpp"

using namespace convladder;

namespace {

std::unique_ptr<TunableStage> make_tunable() {
  return std::unique_ptr<TunableStage>(dynamic_cast<TunableStage*>(find_stage("15").make()));
}

/// Every combination of the knobs' values, from `first` on, `step` apart.
template <class Visit>
void for_configurations(const Knobs& knobs, std::size_t first, std::size_t step, const Visit& visit) {
  std::size_t points = 1;
  for (int i = 0; i < knobs.count; ++i) points *= static_cast<std::size_t>(knobs.knobs[i].count);
  for (std::size_t point = first; point < points; point += step) {
    Configuration configuration(knobs);
    std::size_t rest = point;
    for (int i = 0; i < knobs.count; ++i) {
      const auto count = static_cast<std::size_t>(knobs.knobs[i].count);
      configuration.values[i] = knobs.knobs[i].values[rest % count];
      rest /= count;
    }
    visit(configuration);
  }
}

std::string words(const Configuration& configuration) {
  const Knobs& knobs = configuration.knobs;
  std::string text;
  for (int i = 0; i < knobs.count; ++i)
    text += fmt::format("{}={} ", knobs.knobs[i].name, value_text(knobs.knobs[i], configuration.values[i]));
  return text;
}

/// Runs valid points of the space that `wanted` takes, `step` apart, and requires each to be right and to do what it
/// predicts.
void check_points(const char* shape, Padding padding, std::size_t first, std::size_t step,
                  const std::function<bool(const Configuration&)>& wanted) {
  const StageInfo& stage = find_stage("15");
  const auto tunable = make_tunable();
  ConvProblem problem = parse_shape(shape);
  problem.padding = padding;
  const Workload workload = make_workload("", problem, InputKind::normal, FilterForm::dense, 7);
  SuiteShare share(fmt::format("15 {} {} {}", shape, first, step));
  int valid = 0;
  for_configurations(tunable->knobs(), first, step, [&](const Configuration& configuration) {
    if (!wanted(configuration)) return;
    if (!tunable->check_configuration(problem, device_limits(), configuration).accepted()) return;
    ++valid;
    if (!share.takes(problem, InputKind::normal)) return;
    RunOptions options;
    options.time = false;
    options.configuration = configuration;
    const RunResult result = run_stage(stage, workload, options);
    CAPTURE(shape);
    CAPTURE(words(configuration));
    CHECK_MESSAGE(result.status == Status::ok, result.reason);
    if (!result.counters) return;
    for (const CounterField* field : broken_claims(*result.counters, *result.prediction)) {
      CAPTURE((*result.counters).*field->member);
      CAPTURE((*result.prediction).*field->member);
      FAIL_CHECK(field->name);
    }
  });
  CHECK(valid > 0);
}

/// One stage.
void check_points(const char* shape, Padding padding, std::size_t first, std::size_t step) {
  check_points(shape, padding, first, step, [](const Configuration& c) { return c["stages"] == 1; });
}

/// On a GPU each point is compiled first, which takes a third of a second.
std::size_t sparse(std::size_t step) { return backend() == Backend::gpu ? 11 * step : step; }

/// Two stages, which only tiles in shared memory have. A GPU takes many blocks at a time: with a batch so large, each
/// of them has several tiles. There the points are few, since each is compiled, and picked among those that are valid.
void check_stages(const char* shape, Padding padding, std::size_t step) {
  constexpr int kShared = 2, kManyImages = 600;  // of input; for some ten thousand tiles
  const bool gpu = backend() == Backend::gpu;
  const auto tunable = make_tunable();
  ConvProblem problem = parse_shape(shape);
  if (gpu) problem.n = kManyImages;
  std::size_t place = 0;  // among these points
  check_points(to_string(problem).c_str(), padding, 0, 1, [&](const Configuration& c) {
    if (c["stages"] != 2 || c["input"] != kShared) return false;
    if (gpu && !tunable->check_configuration(problem, device_limits(), c).accepted()) return false;
    return place++ % (gpu ? 3 * step : step) == 0;
  });
}

}  // namespace

TEST_CASE("15 depthwise-tuned: every plane is right") { check_suite("15", depthwise_suite()); }

TEST_CASE("15 depthwise-tuned: counters are what the lesson predicts (simulator)") {
  check_prediction("15", {"h=1,w=1", "c=4,k=4,groups=4,h=16,w=32,r=7,s=7", "n=2,c=3,k=3,groups=3,h=17,w=19,r=3,s=5",
                          "c=2,k=2,groups=2,h=33,w=40,r=5,s=3,stride_h=2,stride_w=2",
                          "c=40,k=40,groups=40,h=7,w=7,r=3,s=3", "h=24,w=30,r=3,s=3,dilation_h=2,dilation_w=3"});
}

TEST_CASE("15 depthwise-tuned: any point of the space is right") {
  // Steps that are prime to the knobs' counts, so that all values of each knob meet.
  check_points("n=3,c=2,k=2,groups=2,h=18,w=36,r=3,s=3", Padding::zero, 0, sparse(31));
  check_points("n=3,c=2,k=2,groups=2,h=18,w=36,r=3,s=3", Padding::reflect, 5, sparse(97));
  check_points("n=2,c=5,k=5,groups=5,h=13,w=17,r=5,s=7", Padding::replicate, 3, sparse(53));
  check_points("c=3,k=3,groups=3,h=37,w=70,r=3,s=5,stride_h=2,stride_w=2", Padding::zero, 1, sparse(101));
  check_points("c=2,k=2,groups=2,h=40,w=44,r=3,s=3,stride_h=3,stride_w=1,dilation_h=2,dilation_w=3", Padding::reflect,
               2, sparse(101));
}

TEST_CASE("15 depthwise-tuned: two stages are right wherever a block has several tiles") {
  // Vectors inside a row and across its ends, planes left over, filters from each memory, strides and dilations.
  for (const Padding padding : {Padding::zero, Padding::replicate, Padding::reflect}) {
    check_stages("n=3,c=7,k=7,groups=7,h=18,w=36,r=3,s=3", padding, 211);
    check_stages("n=3,c=7,k=7,groups=7,h=13,w=17,r=5,s=7", padding, 223);
    check_stages("n=2,c=13,k=13,groups=13,h=37,w=30,r=3,s=5,stride_h=2,stride_w=2", padding, 227);
    check_stages("n=2,c=9,k=9,groups=9,h=20,w=24,r=3,s=3,stride_h=3,dilation_h=2,dilation_w=3", padding, 229);
  }
}

TEST_CASE("15 depthwise-tuned: the default is valid, whatever the problem") {
  const auto tunable = make_tunable();
  for (const char* shape :
       {"h=1,w=1", "h=1,w=1,r=3,s=3", "n=32,c=96,k=96,groups=96,h=56,w=56,r=7,s=7", "h=4000,w=4000,r=3,s=3",
        "c=1000,k=1000,groups=1000,h=7,w=7,r=9,s=9", "h=300,w=300,r=255,s=255", "h=500,w=500,r=401,s=401",
        "h=90,w=5000,r=3,s=65,stride_w=40", "n=700,c=9,k=9,groups=9,h=1,w=3",
        // More blocks than 32 bits hold, had they one plane; tiles that no 64 bits count; rows without taps.
        "n=2147483647,h=1,w=17,s=9", "n=2147483643,h=1,w=1",
        "n=8,h=1,w=1,r=3,s=1,pad_h=1050000000,dilation_h=1050000000,pad_w=500500000,stride_w=143000000",
        "n=8,h=1,w=1,r=3,s=1,pad_h=500000000,dilation_h=500000000", "h=2100,w=64,r=3,s=3,dilation_h=1000,pad_h=1000"}) {
    CAPTURE(shape);
    const ConvProblem problem = parse_shape(shape);
    REQUIRE(tunable->check(problem, device_limits()).accepted());
    const Configuration configuration = tunable->default_configuration(problem, device_limits());
    const Verdict verdict = tunable->check_configuration(problem, device_limits(), configuration);
    CHECK_MESSAGE(verdict.accepted(), verdict.reason());
    tunable->use(configuration);
    CHECK(tunable->predict(problem).barriers >= 0);  // one a block, where anything is in shared memory
  }
}

TEST_CASE("15 depthwise-tuned: rules of the space") {
  const auto tunable = make_tunable();
  const auto refusal_of = [&](const char* shape, std::initializer_list<int> values) {
    const Configuration configuration = with_values(tunable->knobs(), values);
    return std::string(tunable->check_configuration(parse_shape(shape), device_limits(), configuration).reason());
  };
  const char* const small = "c=4,k=4,groups=4,h=16,w=32,r=7,s=7";
  // block_planes, block_rows, block_columns, thread_rows, thread_columns, order, input, filter, unroll, stages
  CHECK(refusal_of(small, {1, 16, 32, 1, 1, 0, 2, 2, 1, 1}) == "");
  CHECK(refusal_of(small, {8, 16, 32, 1, 1, 0, 2, 2, 1, 1}).find("half of it") != std::string::npos);
  CHECK(refusal_of(small, {1, 64, 32, 1, 1, 0, 2, 2, 1, 1}).find("half of it") != std::string::npos);
  CHECK(refusal_of(small, {1, 4, 32, 8, 1, 0, 2, 2, 1, 1}).find("a thread has 8 rows") != std::string::npos);
  CHECK(refusal_of(small, {4, 16, 32, 1, 1, 0, 2, 2, 1, 1}).find("at most 1024 threads") != std::string::npos);
  CHECK(refusal_of("h=80,w=300,r=3,s=201", {1, 4, 16, 1, 1, 0, 1, 2, 0, 1}).find("window") != std::string::npos);
  CHECK(refusal_of("c=400,k=400,groups=400,h=9,w=9,r=7,s=7", {1, 4, 16, 1, 1, 0, 0, 1, 0, 1}).find("constant memory") !=
        std::string::npos);
  CHECK(refusal_of("h=600,w=64,r=301,s=3,stride_h=9", {1, 64, 64, 8, 4, 0, 2, 0, 0, 1}).find("shared memory") !=
        std::string::npos);
  CHECK(refusal_of("h=99,w=99,r=3,s=3,dilation_h=4", {1, 16, 16, 2, 1, 1, 0, 0, 0, 1}).find("walk over 10 rows") !=
        std::string::npos);
  CHECK(refusal_of("n=9000,c=4,k=4,groups=4,h=16,w=32,r=7,s=7", {1, 4, 32, 1, 1, 0, 2, 2, 1, 2}) == "");
  CHECK(refusal_of(small, {1, 4, 32, 1, 1, 0, 1, 2, 1, 2}).find("only tiles in shared memory") != std::string::npos);
  CHECK(refusal_of(small, {1, 16, 32, 1, 1, 0, 2, 2, 1, 2}).find("one tile") != std::string::npos);
  CHECK(refusal_of("h=99,w=99,r=15,s=15", {1, 64, 64, 8, 4, 0, 2, 2, 1, 1}).find("unrolled") != std::string::npos);
}

TEST_CASE("15 depthwise-tuned: taps far apart cost no more than taps side by side") {
  check_suite("15", {{parse_shape("n=8,h=1,w=1,r=3,s=1,pad_h=500000000,dilation_h=500000000"), InputKind::normal},
                     {parse_shape("n=8,h=1,w=1,r=3,s=1,pad_h=1050000000,dilation_h=1050000000,pad_w=500500000,"
                                  "stride_w=143000000"),
                      InputKind::normal},
                     {parse_shape("h=2100,w=64,r=3,s=3,dilation_h=1000,pad_h=1000"), InputKind::normal}});
}

TEST_CASE("15 depthwise-tuned: refuses by rule") {
  check_refusal("15", "c=2,k=2,groups=2,h=8,w=8,r=2,s=3", "odd filters");
  check_refusal("15", "c=2,k=2,h=8,w=8,r=3,s=3", "groups = c = k");
  check_refusal("15", "h=8,w=8,r=3,s=3,stride_h=300000000", "8 stride_h");
}
