#include <doctest/doctest.h>

#include "common/harness/files/problem_io.hpp"
#include "tests/stage_suite.hpp"

using namespace convladder;

namespace {

RunResult run(const std::string& sizes) {
  return run_case(find_stage("27"), {parse_shape(winograd_shape(sizes)), InputKind::normal});
}

}  // namespace

TEST_CASE("27 winograd-sync-free: every image is right") { check_suite("27", winograd_suite()); }

TEST_CASE("27 winograd-sync-free: counters are what the lesson predicts (simulator)") {
  check_winograd_prediction("27");
}

TEST_CASE("27 winograd-sync-free: configurations are right and counted as predicted (simulator)") {
  CHECK(check_configurations("27") == 240);
}

TEST_CASE("27 winograd-sync-free: refuses by rule") { check_refusals_of_winograd("27"); }

TEST_CASE("27 winograd-sync-free: workspace is what the lesson says") {
  CHECK(run("n=2,c=3,k=5,h=9,w=7").workspace_bytes == 2 * 36 * (16 * 16 + 16 * 32 + 16 * 32));
  CHECK(run("n=33,c=17,k=33,h=2,w=1").workspace_bytes == 2 * 36 * (32 * 48 + 32 * 64 + 48 * 64));
}

// That none is needed either, the suite shows: no warp reads what another has written, or the simulator tells of a
// race.
TEST_CASE("27 winograd-sync-free: no barrier (simulator)") {
  for (const char* sizes : {"h=1,w=1", "n=2,c=70,k=130,h=8,w=16", "n=33,c=17,k=65,h=2,w=1"}) {
    CAPTURE(std::string(sizes));
    const RunResult result = run(sizes);
    REQUIRE(result.counters);
    CHECK(result.counters->barriers == 0);
  }
}

TEST_CASE("27 winograd-sync-free: each warp loads what it multiplies (simulator)") {
  // 32 tiles, 64 filters, 16 channels: one block. Both matrices of each position are read once, and the sums of 32
  // tiles and 32 pairs of filters by the output transform.
  const RunResult result = run("n=2,c=16,k=64,h=16,w=16");
  REQUIRE(result.counters);
  const std::int64_t input = 2 * 16 * (5 + 6 + 6 + 5) * (5 + 6 + 6 + 5);
  CHECK(result.counters->global_load_bytes == 2 * input + 2 * 36 * 16 * (32 + 64) + 4 * 36 * 32 * 32);
  CHECK(result.counters->shared_load_requests == 36 * (32 / 16) * (64 / 16) * 2);  // of the sums, eight a lane
}
