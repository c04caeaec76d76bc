#include "common/harness/report/comparison.hpp"

#include <doctest/doctest.h>

#include "common/harness/files/problem_io.hpp"
#include "tests/usage_error.hpp"

namespace convladder {
namespace {

TEST_CASE("a comparison names what changed most, what is new and what is gone") {
  std::vector<RunResult> results(2);
  results[0].stage = &find_stage("1");
  results[1].stage = &find_stage("3");
  for (RunResult& result : results) {
    result.status = Status::ok;
    result.problem = parse_shape("w=1000,s=3");
    result.counters.emplace();
  }
  results[0].counters->global_load_bytes = 100;
  results[1].counters->global_load_bytes = 10;
  results[0].counters->atomic_requests = 1;
  results[1].counters->barriers = 4;
  const std::string text = comparison_text(results);
  CHECK(has(text,
            "03-tiled-1d against 01-naive-1d: global_load_bytes falls 10.0x; new: barriers; gone: atomic_requests"));
  CHECK(has(text, "0.100x"));
}

}  // namespace
}  // namespace convladder
