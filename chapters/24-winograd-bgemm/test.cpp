#include <doctest/doctest.h>

#include "common/harness/files/problem_io.hpp"
#include "tests/stage_suite.hpp"

using namespace convladder;

namespace {

RunResult run(const std::string& sizes, std::string_view settings = {}, std::string_view stage = "24") {
  return run_case(find_stage(stage), {parse_shape(winograd_shape(sizes)), InputKind::normal}, settings);
}

}  // namespace

TEST_CASE("24 winograd-bgemm: every image is right") { check_suite("24", winograd_suite()); }

TEST_CASE("24 winograd-bgemm: every image is right with larger tiles") {
  for (const char* settings : {"m=4", "m=6"}) check_suite("24", short_winograd_suite(), settings);
}

TEST_CASE("24 winograd-bgemm: counters are what the lesson predicts (simulator)") {
  for (const char* settings : {"m=2", "m=4", "m=6"}) check_winograd_prediction("24", settings);
}

TEST_CASE("24 winograd-bgemm: refuses by rule") { check_refusals_of_winograd("24"); }

TEST_CASE("24 winograd-bgemm: workspace is what the lesson says") {
  CHECK(run("n=2,c=3,k=5,h=9,w=7").workspace_bytes == 4 * 16 * (3 * 5 + 3 * 2 * 5 * 4 + 5 * 2 * 5 * 4));
  CHECK(run("n=2,c=3,k=5,h=9,w=7", "m=4").workspace_bytes == 4 * 36 * (3 * 5 + 3 * 2 * 3 * 2 + 5 * 2 * 3 * 2));
  CHECK(run("n=2,c=3,k=5,h=9,w=7", "m=6").workspace_bytes == 4 * 64 * (3 * 5 + 3 * 2 * 2 * 2 + 5 * 2 * 2 * 2));
}

TEST_CASE("24 winograd-bgemm: a number from memory is used 64 or 128 times where 23 uses it once (simulator)") {
  // 64 filters and 128 tiles, 16 channels: one block a position.
  const RunResult before = run("n=2,c=16,k=64,h=16,w=16", {}, "23"), now = run("n=2,c=16,k=64,h=16,w=16");
  REQUIRE(before.counters);
  REQUIRE(now.counters);
  const std::int64_t products = 16 * 16 * 64 * 128;  // positions, channels, filters, tiles
  CHECK(before.counters->global_load_bytes - now.counters->global_load_bytes ==
        4 * (2 * products - products / 128 - products / 64));
  CHECK(now.counters->global_store_bytes == before.counters->global_store_bytes);
  CHECK(now.counters->barriers == 16);
}

TEST_CASE("24 winograd-bgemm: tiles are written and read without a bank conflict (simulator)") {
  for (const char* sizes : {"n=2,c=16,k=64,h=16,w=16", "n=3,c=17,k=65,h=9,w=7"}) {
    CAPTURE(std::string(sizes));
    const RunResult result = run(sizes);
    REQUIRE(result.counters);
    CHECK(result.counters->shared_load_conflicts == 0);
    CHECK(result.counters->shared_store_conflicts == 0);
  }
}
