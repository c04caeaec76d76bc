#include <doctest/doctest.h>

#include "common/harness/files/problem_io.hpp"
#include "tests/stage_suite.hpp"

using namespace convladder;

namespace {

RunResult run(const std::string& sizes, std::string_view settings = {}) {
  return run_case(find_stage("23"), {parse_shape(winograd_shape(sizes)), InputKind::normal}, settings);
}

}  // namespace

TEST_CASE("23 winograd: every image is right") { check_suite("23", winograd_suite()); }

TEST_CASE("23 winograd: every image is right with larger tiles") {
  for (const char* settings : {"m=4", "m=6"}) check_suite("23", short_winograd_suite(), settings);
}

TEST_CASE("23 winograd: counters are what the lesson predicts (simulator)") {
  for (const char* settings : {"m=2", "m=4", "m=6"}) check_winograd_prediction("23", settings);
}

TEST_CASE("23 winograd: refuses by rule") { check_refusals_of_winograd("23"); }

TEST_CASE("23 winograd: larger tiles are refused where their transforms are too large") {
  // Transformed filters: 16 c k elements, 36 or 64.
  const char* const sizes = "c=8192,k=8192,h=1,w=1";
  const ConvProblem problem = parse_shape(winograd_shape(sizes));
  CHECK(refusal(find_stage("23"), problem, nullptr) == "");
  RunOptions options;
  options.time = false;
  options.settings = "m=4";
  Workload workload;  // without tensors: it is refused before they are looked at
  workload.problem = problem;
  const RunResult result = run_stage(find_stage("23"), workload, options);
  CHECK(std::string(to_string(result.status)) == "refused");
  CHECK_MESSAGE(result.reason.find("fewer than 2^31 elements; got 2415919104") != std::string::npos, result.reason);
}

TEST_CASE("23 winograd: more rows of sums than a grid has blocks in y") {
  check_suite("23", {{parse_shape("k=4100,h=1,w=1,r=3,s=3"), InputKind::normal}});
}

TEST_CASE("23 winograd: workspace is what the lesson says") {
  // U, V and M: (m + 2)^2 positions of c k, c tiles and k tiles.
  CHECK(run("n=2,c=3,k=5,h=9,w=7").workspace_bytes == 4 * 16 * (3 * 5 + 3 * 2 * 5 * 4 + 5 * 2 * 5 * 4));
  CHECK(run("n=2,c=3,k=5,h=9,w=7", "m=4").workspace_bytes == 4 * 36 * (3 * 5 + 3 * 2 * 3 * 2 + 5 * 2 * 3 * 2));
  CHECK(run("n=2,c=3,k=5,h=9,w=7", "m=6").workspace_bytes == 4 * 64 * (3 * 5 + 3 * 2 * 2 * 2 + 5 * 2 * 2 * 2));
}

TEST_CASE("23 winograd: multiplications per output fall from 9 to 4, 2.25 and 1.8 (simulator)") {
  const char* const sizes = "c=5,k=3,h=12,w=24";  // whole tiles of every size
  const std::int64_t direct = parse_shape(winograd_shape(sizes)).flops();
  const auto flops = [&](std::string_view settings) {
    const RunResult result = run(sizes, settings);
    REQUIRE(result.counters);
    return result.counters->flops;
  };
  CHECK(36 * flops("m=2") == 16 * direct);
  CHECK(144 * flops("m=4") == 36 * direct);
  CHECK(324 * flops("m=6") == 64 * direct);
}
