#include <doctest/doctest.h>

#include "tests/stage_suite.hpp"

using namespace convladder;

TEST_CASE("03 tiled-1d: every shape is right") { check_suite("03", signal_suite()); }

TEST_CASE("03 tiled-1d: counters are what the lesson predicts (simulator)") {
  check_prediction("03", {"w=1", "w=4096,s=11", "n=3,w=257,s=5", "w=100,s=1025", "w=600,s=11,pad_w=0"});
}

TEST_CASE("03 tiled-1d: refuses by rule") {
  check_refusal("03", "w=64,s=16385", "constant memory");
  check_refusal("03", "w=64,s=4", "odd filter");
  // 256 + 16383 - 1 floats are a tile of 66 KB, which a block may have.
  check_suite("03", {{[] {
                        ConvProblem problem;
                        problem.w = 300;
                        problem.s = 16383;
                        problem.pad_w = 8191;
                        return problem;
                      }(),
                      InputKind::normal}});
}

TEST_CASE("03 tiled-1d: the tile's loads straddle a fifth sector (simulator)") {
  std::int64_t requests = 0, sectors = 0;
  for (const LineCounters& line : lines_of("03", "w=65536,s=11")) {
    requests += line.counters.global_load_requests;
    sectors += line.counters.global_load_sectors;
  }
  // A block's 266 elements are 8 whole warps, of 5 sectors each, and 10 lanes of 2; the first and last block lack 5.
  CHECK(requests == 65536 / 256 * 9);
  CHECK(sectors == 65536 / 256 * (8 * 5 + 2) - 2);
}
