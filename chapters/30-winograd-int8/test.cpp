#include <doctest/doctest.h>

#include <algorithm>

#include "common/harness/files/problem_io.hpp"
#include "tests/stage_suite.hpp"

using namespace convladder;

namespace {

RunResult run(const std::string& sizes, std::string_view settings = {}) {
  return run_case(find_stage("30"), {parse_shape(winograd_shape(sizes)), InputKind::normal}, settings);
}

/// Blocks that a launch of so many parts starts, with buffers of so many bytes.
std::int64_t blocks(std::int64_t parts, std::int64_t buffer) {
  const DeviceLimits limits = device_limits();
  return std::min({parts, std::int64_t{2} * limits.multiprocessors, limits.l2_bytes / 2 / buffer});
}

}  // namespace

TEST_CASE("30 winograd-int8: every image is right") { check_suite("30", winograd_suite()); }

// The simulator has two multiprocessors, so blocks use their buffers again.
TEST_CASE("30 winograd-int8: every image is right through L2") { check_suite("30", winograd_suite(), "fusion=llc"); }

TEST_CASE("30 winograd-int8: every image is right with 32 tiles a block") {
  for (const char* settings : {"tbm=32", "fusion=llc,tbm=32"}) check_suite("30", short_winograd_suite(), settings);
}

TEST_CASE("30 winograd-int8: more tiles than the calibration looks at") {
  check_suite("30", {{parse_shape("n=2,c=3,k=5,h=50,w=47,r=3,s=3"), InputKind::normal},
                     {parse_shape("c=1,k=2,h=70,w=66,r=3,s=3"), InputKind::normal},
                     {parse_shape("c=2,k=2,h=66,w=70,r=3,s=3"), InputKind::uniform}});
}

TEST_CASE("30 winograd-int8: counters are what the lesson predicts (simulator)") {
  for (const char* settings : {"", "tbm=32", "fusion=llc", "fusion=llc,tbm=32"})
    check_winograd_prediction("30", settings);
}

TEST_CASE("30 winograd-int8: configurations are right and counted as predicted (simulator)") {
  CHECK(check_configurations("30") == 84);
}

TEST_CASE("30 winograd-int8: refuses by rule") {
  check_refusals_of_winograd("30");
  // 127 x 127 x 133144 is the last sum that 31 bits hold.
  const auto reason = [](const char* sizes) {
    return refusal(find_stage("30"), parse_shape(winograd_shape(sizes)), nullptr);
  };
  CHECK(reason("c=133144,h=2,w=2") == "");
  CHECK(reason("c=133145,h=2,w=2") == "32-bit sums of products of bytes take 133144 channels; got c=133145");
}

TEST_CASE("30 winograd-int8: workspace is what the lesson says") {
  // At 16 positions: U in bytes, its scales, M in halves; 16 scales of the input and their inverses; with llc the
  // blocks' buffers, 64 channels of their tiles.
  const auto expected = [](std::int64_t channels, std::int64_t filters, std::int64_t tiles) {
    return 16 * (channels * filters + 4 * filters + 2 * filters * tiles) + 4 * 2 * 16;
  };
  const std::int64_t small = 16 * 64 * 16, large = 16 * 64 * 32;
  CHECK(run("n=2,c=3,k=5,h=9,w=7").workspace_bytes == expected(16, 16, 64));
  CHECK(run("n=33,c=17,k=33,h=2,w=1", "tbm=32").workspace_bytes == expected(32, 48, 64));
  CHECK(run("n=33,c=17,k=33,h=2,w=1", "fusion=llc").workspace_bytes == expected(32, 48, 64) + blocks(4, small) * small);
  CHECK(run("n=2,c=3,k=5,h=9,w=7", "fusion=llc,tbm=32").workspace_bytes ==
        expected(16, 16, 64) + blocks(2, large) * large);
}

TEST_CASE("30 winograd-int8: through L2 a byte an element goes to memory, once for each part (simulator)") {
  // 32 tiles, 64 channels, 130 filters in parts of 64.
  const char* const sizes = "n=2,c=64,k=130,h=8,w=8";
  const RunResult shared = run(sizes), llc = run(sizes, "fusion=llc");
  REQUIRE(shared.counters);
  REQUIRE(llc.counters);
  CHECK(llc.counters->global_store_bytes - shared.counters->global_store_bytes == 16 * 64 * 32 * 3);
}

TEST_CASE("30 winograd-int8: two barriers for each 64 channels of a part (simulator)") {
  const auto barriers = [](const char* sizes, const std::string& settings) {
    const RunResult result = run(sizes, settings);
    REQUIRE(result.counters);
    return result.counters->barriers;
  };
  for (const std::string fusion : {"fusion=shmem", "fusion=llc"}) {
    CAPTURE(fusion);
    CHECK(barriers("n=2,c=64,k=64,h=8,w=8", fusion + ",tbm=16") == 2 * 2);
    CHECK(barriers("n=2,c=65,k=65,h=8,w=8", fusion + ",tbm=16") == 2 * 2 * 4);
    CHECK(barriers("n=2,c=65,k=65,h=8,w=8", fusion + ",tbm=32") == 3 * 4);
  }
}

TEST_CASE("30 winograd-int8: shared memory is written and read without a bank conflict (simulator)") {
  for (const std::string tbm : {"tbm=16", "tbm=32"}) {
    for (const char* sizes : {"n=2,c=64,k=64,h=8,w=8", "c=100,k=65,h=9,w=7"}) {
      CAPTURE(tbm);
      CAPTURE(std::string(sizes));
      const RunResult shared = run(sizes, tbm), llc = run(sizes, "fusion=llc," + tbm);
      REQUIRE(shared.counters);
      REQUIRE(llc.counters);
      for (const Counters& counters : {*shared.counters, *llc.counters}) {
        CHECK(counters.shared_load_conflicts == 0);
        CHECK(counters.shared_store_conflicts == 0);
      }
      // Through L2 nothing but the sums is in shared memory.
      CHECK(shared.counters->shared_load_requests > llc.counters->shared_load_requests);
    }
  }
}
