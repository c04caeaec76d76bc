#include <doctest/doctest.h>

#include "common/harness/files/problem_io.hpp"
#include "tests/stage_suite.hpp"

using namespace convladder;

namespace {

RunResult run(const std::string& sizes, std::string_view settings = {}) {
  return run_case(find_stage("26"), {parse_shape(winograd_shape(sizes)), InputKind::normal}, settings);
}

}  // namespace

TEST_CASE("26 winograd-tensor-core: every image is right") { check_suite("26", winograd_suite()); }

TEST_CASE("26 winograd-tensor-core: every image is right without the row offset") {
  check_suite("26", short_winograd_suite(), "row_offset=0");
}

TEST_CASE("26 winograd-tensor-core: counters are what the lesson predicts (simulator)") {
  check_winograd_prediction("26");
  check_winograd_prediction("26", "row_offset=0");
}

TEST_CASE("26 winograd-tensor-core: configurations are right and counted as predicted (simulator)") {
  CHECK(check_configurations("26") == 120);
}

TEST_CASE("26 winograd-tensor-core: refuses by rule") { check_refusals_of_winograd("26"); }

TEST_CASE("26 winograd-tensor-core: workspace is what the lesson says") {
  // Halves at 36 positions: U, V and M. Channels and filters in blocks of 16, tiles of 32.
  CHECK(run("n=2,c=3,k=5,h=9,w=7").workspace_bytes == 2 * 36 * (16 * 16 + 16 * 32 + 16 * 32));
  CHECK(run("n=33,c=17,k=33,h=2,w=1").workspace_bytes == 2 * 36 * (32 * 48 + 32 * 64 + 48 * 64));
}

TEST_CASE("26 winograd-tensor-core: two barriers for each 64 channels of a block (simulator)") {
  const auto barriers = [](const char* sizes) {
    const RunResult result = run(sizes);
    REQUIRE(result.counters);
    return result.counters->barriers;
  };
  CHECK(barriers("n=2,c=64,k=64,h=8,w=16") == 36 * 2);
  CHECK(barriers("n=2,c=65,k=64,h=8,w=16") == 36 * 4);
  CHECK(barriers("n=65,c=65,k=65,h=2,w=2") == 36 * 4 * 4);  // 2 x 2 blocks
}

TEST_CASE("26 winograd-tensor-core: with the row offset, fragments are loaded without a bank conflict (simulator)") {
  for (const char* sizes : {"n=2,c=64,k=64,h=16,w=32", "n=2,c=70,k=130,h=16,w=32"}) {
    CAPTURE(std::string(sizes));
    const RunResult with = run(sizes, "row_offset=8"), without = run(sizes, "row_offset=0");
    REQUIRE(with.counters);
    REQUIRE(without.counters);
    CHECK(with.counters->shared_load_conflicts == 0);
    CHECK(without.counters->shared_load_conflicts > 10'000);
    CHECK(with.counters->shared_store_conflicts > 0);  // of the copies: lab 26
    CHECK(without.counters->shared_store_conflicts > 2 * with.counters->shared_store_conflicts);
    CHECK(with.counters->shared_load_requests == without.counters->shared_load_requests);
  }
}
