#include <doctest/doctest.h>

#include <algorithm>

#include "common/harness/files/problem_io.hpp"
#include "tests/stage_suite.hpp"

using namespace convladder;

namespace {

RunResult run(const std::string& sizes, std::string_view settings = {}, std::string_view stage = "29") {
  return run_case(find_stage(stage), {parse_shape(winograd_shape(sizes)), InputKind::normal}, settings);
}

/// Blocks that a launch of so many parts starts, with buffers of so many bytes.
std::int64_t blocks(std::int64_t parts, std::int64_t buffer) {
  const DeviceLimits limits = device_limits();
  return std::min({parts, std::int64_t{limits.multiprocessors}, limits.l2_bytes / 2 / buffer});
}

}  // namespace

// The simulator has two multiprocessors, so most of the suite's images make blocks use their buffers again.
TEST_CASE("29 winograd-pkf-llc: every image is right") { check_suite("29", winograd_suite()); }

TEST_CASE("29 winograd-pkf-llc: every image is right with 32 tiles a block") {
  check_suite("29", short_winograd_suite(), "tbm=32");
}

TEST_CASE("29 winograd-pkf-llc: counters are what the lesson predicts (simulator)") {
  check_winograd_prediction("29");
  check_winograd_prediction("29", "tbm=32");
}

TEST_CASE("29 winograd-pkf-llc: configurations are right and counted as predicted (simulator)") {
  CHECK(check_configurations("29") == 57);
}

TEST_CASE("29 winograd-pkf-llc: refuses by rule") { check_refusals_of_winograd("29"); }

TEST_CASE("29 winograd-pkf-llc: workspace is 28's and a buffer a block") {
  // A buffer: 64 channels of the block's tiles at 36 positions, as halves.
  const std::int64_t small = 2 * 36 * 64 * 16, large = 2 * 36 * 64 * 32;
  CHECK(run("n=2,c=3,k=5,h=9,w=7").workspace_bytes == 2 * 36 * (16 * 16 + 16 * 32) + blocks(2, small) * small);
  CHECK(run("n=33,c=17,k=33,h=2,w=1").workspace_bytes == 2 * 36 * (32 * 48 + 48 * 64) + blocks(4, small) * small);
  CHECK(run("n=33,c=17,k=33,h=2,w=1", "tbm=32").workspace_bytes ==
        2 * 36 * (32 * 48 + 48 * 64) + blocks(4, large) * large);
  CHECK(run("n=2,c=3,k=5,h=9,w=7", "tbm=32").workspace_bytes == 2 * 36 * (16 * 16 + 16 * 32) + large);
}

TEST_CASE(
    "29 winograd-pkf-llc: the transformed input goes to memory once for each part, and is read twice (simulator)") {
  // 32 tiles in parts of 16, 130 filters in parts of 64, 32 channels.
  const char* const sizes = "n=2,c=32,k=130,h=16,w=16";
  const RunResult before = run(sizes, "fused=input", "28"), now = run(sizes);
  REQUIRE(before.counters);
  REQUIRE(now.counters);
  const std::int64_t transformed = 2 * 36 * 32 * 32 * 3;
  CHECK(now.counters->global_store_bytes - before.counters->global_store_bytes == transformed);
  CHECK(now.counters->global_load_bytes - before.counters->global_load_bytes == 2 * transformed);
}

TEST_CASE("29 winograd-pkf-llc: two barriers for each 64 channels of a part (simulator)") {
  const auto barriers = [](const char* sizes, const char* settings) {
    const RunResult result = run(sizes, settings);
    REQUIRE(result.counters);
    return result.counters->barriers;
  };
  CHECK(barriers("n=2,c=64,k=64,h=16,w=16", "tbm=16") == 2 * 2);
  CHECK(barriers("n=2,c=65,k=65,h=16,w=16", "tbm=16") == 2 * 2 * 4);
  CHECK(barriers("n=2,c=65,k=65,h=16,w=16", "tbm=32") == 3 * 4);
}

TEST_CASE("29 winograd-pkf-llc: shared memory holds sums alone (simulator)") {
  // 16 x 16 sums leave as 8 a thread: two requests of a warp, at 36 positions.
  const RunResult result = run("n=2,c=64,k=64,h=16,w=16");
  REQUIRE(result.counters);
  CHECK(result.counters->shared_load_requests == 36 * (32 / 16) * (64 / 16) * 2);
}
