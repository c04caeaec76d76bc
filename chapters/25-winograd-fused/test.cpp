#include <doctest/doctest.h>

#include <memory>
#include <utility>

#include "common/harness/files/problem_io.hpp"
#include "tests/stage_suite.hpp"

using namespace convladder;

namespace {

RunResult run(const std::string& sizes, std::string_view settings = {}) {
  return run_case(find_stage("25"), {parse_shape(winograd_shape(sizes)), InputKind::normal}, settings);
}

std::vector<SuiteCase> without_other_paddings(std::vector<SuiteCase> suite) {
  std::erase_if(suite, [](const SuiteCase& suite_case) { return suite_case.problem.padding != Padding::zero; });
  return suite;
}

/// Without the images of so many tiles that a block for each of them takes the simulator long.
std::vector<SuiteCase> with_few_tiles(std::vector<SuiteCase> suite) {
  std::erase_if(suite, [](const SuiteCase& suite_case) { return suite_case.problem.output_size() > 3000; });
  return suite;
}

std::string refusal_of(const ConvProblem& problem, int buffers, const DeviceLimits& limits) {
  const std::unique_ptr<Stage> stage(find_stage("25").make());
  const auto& tunable = dynamic_cast<const TunableStage&>(*stage);
  Configuration configuration = tunable.knobs();
  configuration["buffers"] = buffers;
  return tunable.check_configuration(problem, limits, configuration).reason();
}

}  // namespace

TEST_CASE("25 winograd-fused: every image is right") { check_suite("25", winograd_suite()); }

TEST_CASE("25 winograd-fused: every image is right with any number of buffers") {
  for (const char* settings : {"buffers=1", "buffers=3"}) check_suite("25", short_winograd_suite(), settings);
}

TEST_CASE("25 winograd-fused: every image is right with a padded copy") {
  for (const char* settings : {"padding=copy", "padding=copy,buffers=1", "padding=copy,buffers=3"})
    check_suite("25", without_other_paddings(short_winograd_suite()), settings);
}

TEST_CASE("25 winograd-fused: every image is right with blocks that end with their image") {
  for (const char* settings : {"tiles=per-image", "tiles=per-image,buffers=3"})
    check_suite("25", short_winograd_suite(), settings);
  check_suite("25", without_other_paddings(short_winograd_suite()), "tiles=per-image,buffers=1,padding=copy");
}

TEST_CASE("25 winograd-fused: every image is right with blocks of one place of many images") {
  check_suite("25", with_few_tiles(short_winograd_suite()), "tiles=per-place");
  const auto zeros = with_few_tiles(without_other_paddings(short_winograd_suite()));
  check_suite("25", zeros, "tiles=per-place,buffers=1,registers=3");
  check_suite("25", zeros, "tiles=per-place,buffers=3,padding=copy");
}

TEST_CASE("25 winograd-fused: every image is right with any number of register buffers") {
  const auto zeros = with_few_tiles(without_other_paddings(short_winograd_suite()));
  for (const char* settings : {"registers=1", "registers=2,buffers=1", "registers=3,buffers=3"})
    check_suite("25", zeros, settings);
}

TEST_CASE("25 winograd-fused: counters are what the lesson predicts (simulator)") {
  for (const char* settings : {"", "buffers=1", "buffers=3", "tiles=per-image"})
    check_winograd_prediction("25", settings);
}

TEST_CASE("25 winograd-fused: so they are with other blocks and register buffers (simulator)") {
  struct Case {
    const char *settings, *sizes;
    bool whole;  // blocks: then the bytes loaded are predicted too
  };
  for (const auto& [settings, sizes, whole] :
       {Case{"tiles=per-image", "n=2,c=9,k=3,h=8,w=16", true},
        {"tiles=per-place", "n=32,c=9,k=3,h=5,w=4", true},
        {"tiles=per-place", "n=33,c=3,k=65,h=3,w=2", false},
        {"registers=1", "n=3,c=17,k=65,h=7,w=9", false},
        {"registers=2", "n=2,c=9,k=3,h=8,w=16", true},
        {"registers=3", "n=3,c=17,k=65,h=7,w=9", false},
        {"tiles=per-place,buffers=1,registers=3", "n=32,c=9,k=3,h=5,w=4", true}}) {
    CAPTURE(std::string(settings));
    const RunResult result = run(sizes, settings);
    REQUIRE(result.prediction);
    CHECK((result.prediction->global_load_bytes > 0) == whole);
    REQUIRE(result.counters);
    for (const CounterField* field : broken_claims(*result.counters, *result.prediction)) FAIL_CHECK(field->name);
  }
}

TEST_CASE("25 winograd-fused: refuses by rule") { check_refusals_of_winograd("25"); }

TEST_CASE("25 winograd-fused: zeros by default through the mask, other paddings through a copy") {
  ConvProblem problem = parse_shape("c=2,k=3,h=5,w=6,r=3,s=3");
  for (const Padding padding : {Padding::zero, Padding::replicate, Padding::reflect}) {
    problem.padding = padding;
    CAPTURE(std::string(to_string(padding)));
    const RunResult result = run_case(find_stage("25"), {problem, InputKind::normal});
    REQUIRE(result.configuration);
    CHECK(result.configuration->configuration["padding"] == (padding == Padding::zero ? 0 : 1));
    const bool refused = padding != Padding::zero;
    const RunResult masked = run_case(find_stage("25"), {problem, InputKind::normal}, "padding=mask");
    CHECK(std::string(to_string(masked.status)) == (refused ? "refused" : "ok"));
    CHECK(masked.reason == (refused ? "padding=mask is for padding with zeros; padding=copy takes every padding" : ""));
  }
}

TEST_CASE("25 winograd-fused: buffers are refused where shared memory does not hold them") {
  const ConvProblem problem = parse_shape("c=2,k=3,h=5,w=6,r=3,s=3");
  DeviceLimits limits = device_limits();
  // A buffer of filters takes 16 x 8 x 64 floats, one of the input 16 x 8 x 32; the sums of 32 filters 16 x 32 x 32.
  const std::int64_t one = 16 * 32 * 32 * 4, two = (2 * 16 * 8 * 64 + 2 * 16 * 8 * 32) * 4,
                     three = two + 16 * 8 * 64 * 4;
  const auto refused = [&](int buffers, std::int64_t bytes) {
    limits.shared_bytes_per_block = bytes;
    return refusal_of(problem, buffers, limits);
  };
  CHECK(refused(1, one) == "");
  CHECK(refused(2, two) == "");
  CHECK(refused(3, three) == "");
  CHECK(refused(3, three - 1) == "buffers=3 takes 131072 bytes of shared memory; a block may have 131071");
  CHECK(refused(2, two - 1) == "buffers=2 takes 98304 bytes of shared memory; a block may have 98303");
  CHECK(refused(1, one - 1) == "buffers=1 takes 65536 bytes of shared memory; a block may have 65535");
  const std::unique_ptr<Stage> stage(find_stage("25").make());
  CHECK(std::string(stage->check(problem, limits).reason()) ==
        "a block needs 65536 bytes of shared memory; it may have 65535");
}

TEST_CASE("25 winograd-fused: a copy is read by unrolled rows alone") {
  const RunResult result = run("c=2,k=3,h=5,w=6", "padding=copy,registers=2");
  CHECK(std::string(to_string(result.status)) == "refused");
  CHECK(result.reason == "registers=2 is for padding=mask; padding=copy takes registers=unrolled");
}

TEST_CASE("25 winograd-fused: the default takes one buffer where shared memory does not hold two") {
  const ConvProblem problem = parse_shape("c=2,k=3,h=5,w=6,r=3,s=3");
  const std::unique_ptr<Stage> stage(find_stage("25").make());
  const auto& tunable = dynamic_cast<const TunableStage&>(*stage);
  DeviceLimits limits = device_limits();
  for (const auto& [bytes, buffers] : {std::pair{64 << 10, 1}, {96 << 10, 2}, {(96 << 10) - 1, 1}, {227 << 10, 2}}) {
    limits.shared_bytes_per_block = bytes;
    const Configuration usual = tunable.default_configuration(problem, limits);
    CHECK(usual["buffers"] == buffers);
    CHECK(tunable.check_configuration(problem, limits, usual).accepted());
  }
}

TEST_CASE("25 winograd-fused: more rows of padded planes than a grid has blocks in y") {
  check_suite("25", {{parse_shape("n=16390,h=1,w=1,r=3,s=3"), InputKind::normal}}, "padding=copy");
}

TEST_CASE("25 winograd-fused: workspace is what the lesson says") {
  // Filters in blocks of 64, channels in steps of 8; the padded copy is as large as whole tiles want it.
  CHECK(run("n=2,c=3,k=5,h=9,w=7").workspace_bytes == 4 * 16 * 8 * 64);
  CHECK(run("n=2,c=9,k=65,h=9,w=7").workspace_bytes == 4 * 16 * 16 * 128);
  CHECK(run("n=2,c=3,k=5,h=9,w=7", "padding=copy").workspace_bytes == 4 * (16 * 8 * 64 + 2 * 3 * 12 * 10));
}

TEST_CASE("25 winograd-fused: a barrier a step, with one buffer two, and four for the sums (simulator)") {
  const auto barriers = [](std::string_view settings) {
    const RunResult result = run("n=2,c=20,k=65,h=8,w=10", settings);  // 40 tiles: 2 x 2 blocks; 3 steps
    REQUIRE(result.counters);
    return result.counters->barriers;
  };
  CHECK(barriers("") == 4 * (3 + 4));
  CHECK(barriers("buffers=3") == 4 * (3 + 4));
  CHECK(barriers("buffers=1") == 4 * (6 + 4));
}

TEST_CASE("25 winograd-fused: images of a few tiles fill blocks together, and alone do not (simulator)") {
  const auto blocks = [](std::string_view settings) {
    const RunResult result = run("n=8,c=8,k=64,h=8,w=4", settings);  // 8 images of 8 tiles
    REQUIRE(result.counters);
    return result.counters->barriers / 5;
  };
  CHECK(blocks("") == 2);
  CHECK(blocks("tiles=per-image") == 8);
  CHECK(blocks("tiles=per-place") == 8);  // 8 images at each of 8 places: a quarter of a block
}

TEST_CASE("25 winograd-fused: the mask leaves zeros unread, the copy is written and read (simulator)") {
  const char* const sizes = "n=2,c=8,k=64,h=8,w=16";  // 64 tiles: two blocks
  const RunResult mask = run(sizes), copy = run(sizes, "padding=copy");
  REQUIRE(mask.counters);
  REQUIRE(copy.counters);
  const std::int64_t copied = 2 * 8 * 10 * 18, tiles = 2 * 4 * 8;
  const std::int64_t inside = 2 * 8 * (3 + 4 + 4 + 3) * (3 + 6 * 4 + 3), filters = 2 * 16 * 8 * 64;
  CHECK(mask.counters->global_load_bytes == 4 * (inside + filters));
  CHECK(copy.counters->global_load_bytes == 4 * (2 * 8 * 8 * 16 + tiles * 8 * 16 + filters));
  CHECK(copy.counters->global_store_bytes - mask.counters->global_store_bytes == 4 * copied);
}

TEST_CASE("25 winograd-fused: buffers and sums are written and read without a bank conflict (simulator)") {
  for (const char* settings : {"", "buffers=1", "buffers=3", "padding=copy", "tiles=per-place", "registers=3"}) {
    for (const char* sizes : {"n=2,c=16,k=64,h=8,w=8", "n=3,c=17,k=65,h=9,w=7"}) {
      CAPTURE(std::string(settings));
      CAPTURE(std::string(sizes));
      const RunResult result = run(sizes, settings);
      REQUIRE(result.counters);
      CHECK(result.counters->shared_load_conflicts == 0);
      CHECK(result.counters->shared_store_conflicts == 0);
    }
  }
}
