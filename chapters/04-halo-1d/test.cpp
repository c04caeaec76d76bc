#include <doctest/doctest.h>

#include "tests/stage_suite.hpp"

using namespace convladder;

TEST_CASE("04 halo-1d: every shape is right") { check_suite("04", signal_suite()); }

TEST_CASE("04 halo-1d: counters are what the lesson predicts (simulator)") {
  check_prediction("04", {"w=1", "w=4096,s=11", "n=3,w=257,s=5", "w=100,s=1025", "w=600,s=11,pad_w=0"});
}

TEST_CASE("04 halo-1d: padding far beyond the filter takes no more shared memory") {
  ConvProblem problem;
  problem.w = 1000;
  problem.s = 3;
  problem.pad_w = 40000;
  check_suite("04", {{problem, InputKind::normal}});
}

TEST_CASE("04 halo-1d: refuses by rule") {
  check_refusal("04", "w=64,s=16385", "constant memory");
  check_refusal("04", "w=64,s=4", "odd filter");
}

TEST_CASE("04 halo-1d: the body's loads are aligned (simulator)") {
  const std::int64_t blocks_inside = 65536 / 512 - 2;
  int bodies = 0;
  for (const LineCounters& line : lines_of("04", "w=65536,s=11")) {
    if (line.counters.global_load_requests != blocks_inside * 512 / 32) continue;
    CHECK(line.counters.global_load_sectors == 4 * line.counters.global_load_requests);
    ++bodies;
  }
  CHECK(bodies == 1);
}

TEST_CASE("04 halo-1d: fewer sectors than 03 for the same bytes (simulator)") {
  ConvProblem problem;
  problem.w = 65536;
  problem.s = 11;
  problem.pad_w = 5;
  const RunResult tiled = run_case(find_stage("03"), {problem, InputKind::normal});
  const RunResult halo = run_case(find_stage("04"), {problem, InputKind::normal});
  CHECK(halo.counters->global_load_bytes == tiled.counters->global_load_bytes);
  CHECK(halo.counters->global_load_sectors * 10 < tiled.counters->global_load_sectors * 9);
}
