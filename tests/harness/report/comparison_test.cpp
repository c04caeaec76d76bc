#include "common/harness/report/comparison.hpp"

#include <doctest/doctest.h>

#include "common/harness/baselines/settings_rows.hpp"
#include "common/harness/files/problem_io.hpp"
#include "common/harness/run/standing.hpp"
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

/// Of the stage by its number, right.
RunResult right(const char* number) {
  RunResult result;
  result.stage = &find_stage(number);
  result.status = Status::ok;
  result.problem = parse_shape("c=4,h=9,w=9,k=4,r=3,s=3");
  return result;
}

TEST_CASE("beside a result stand the previous stage in its configurations, and cuDNN, each with its ratio") {
  RunResult result = right("25");
  result.time_us = TimeSummary{2, 2, 0};
  result.tile = "2x2";
  result.cudnn.emplace();
  result.cudnn->version = "9.19.0";
  result.cudnn->trials = {{"FFT", "NCHW", "ok", 5.0, 0}, {"WINOGRAD", "NCHW", "CUDNN_STATUS_NOT_SUPPORTED", {}, 0}};
  std::vector<RunResult> results{result};
  for (const StageInfo* stage : configurations_of(24)) {
    results.push_back(right("24"));
    results.back().stage = stage;
    results.back().time_us = TimeSummary{8, 8, 0.01};
  }
  results[2].time_us->median = 3;
  results[2].tile = "4x4";
  results[3].status = Status::refused;
  results[3].reason = "too large";
  add_speedups(results);
  result = results.front();
  results.erase(results.begin());
  const std::string text = beside_text(result, results);
  for (const char* part :
       {"25-winograd-fused vs this", "24-winograd-bgemm ", "4.00x", "winograd-bgemm m=4 ", "refused [1]",
        "[1] too large", "cuDNN 9.19.0 best: FFT (NCHW)  5.00 us", "[2] no Winograd algorithm of cuDNN 9.19.0",
        "25-winograd-fused: 1.50x over the previous stage (winograd-bgemm m=4; tiles of 2x2 against 4x4), n/a over "
        "cuDNN's Winograd, 2.50x over cuDNN's best\n"}) {
    CAPTURE(part);
    CHECK(has(text, part));
  }
  result.cudnn.reset();
  CHECK(has(beside_text(result, results), "cuDNN runs on GPUs alone\n"));
}

TEST_CASE("beside a result of the simulator stand the previous stage's counters") {
  RunResult result = right("3"), previous = right("2");
  for (RunResult* each : {&result, &previous}) each->counters.emplace();
  previous.counters->global_load_bytes = 100;
  result.counters->global_load_bytes = 10;
  CHECK(has(beside_text(result, {previous}), "03-tiled-1d against 02-constant-1d: global_load_bytes falls 10.0x\n"));
  CHECK(has(beside_text(result, {previous}), "the simulator takes no times; cuDNN runs on GPUs alone\n"));
  previous.status = Status::refused;
  previous.reason = "so";
  const std::string refused = beside_text(result, {previous});
  CHECK(has(refused, "beside 02-constant-1d: refused: so\n"));
  CHECK_FALSE(has(refused, "against"));
  CHECK(has(beside_text(right("1"), {}), "\n01-naive-1d follows no stage\n"));
  CHECK(has(beside_text(right("3"), {}), "stage 02, which it follows, is not in this program\n"));
}

}  // namespace
}  // namespace convladder
