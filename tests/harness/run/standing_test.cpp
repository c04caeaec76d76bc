#include "common/harness/run/standing.hpp"

#include <doctest/doctest.h>

#include "common/harness/baselines/settings_rows.hpp"
#include "common/harness/files/problem_io.hpp"

namespace convladder {
namespace {

/// A result of the stage that took so long.
RunResult timed(const StageInfo& stage, double median) {
  RunResult result;
  result.stage = &stage;
  result.status = Status::ok;
  result.problem = parse_shape("w=1000,s=3");
  result.time_us = TimeSummary{median, median, 0};
  return result;
}

TEST_CASE("speedups: over the previous stage, the first of the track, and cuDNN") {
  std::vector<RunResult> results{timed(find_stage("1"), 12), timed(find_stage("2"), 6), timed(find_stage("3"), 2)};
  results[2].cudnn.emplace();
  results[2].cudnn->trials = {{"WINOGRAD_NONFUSED", "NCHW", "ok", 8.0, 0}, {"FFT", "NCHW", "ok", 1.0, 0}};
  add_speedups(results);
  CHECK_FALSE(results[0].speedup.previous);
  CHECK(results[0].speedup.first == 1.0);
  CHECK(results[1].speedup.previous == 2.0);
  CHECK(results[2].speedup.previous == 3.0);
  CHECK(results[2].speedup.first == 6.0);
  CHECK(results[2].speedup.cudnn_winograd == 4.0);
  CHECK(results[2].speedup.cudnn_best == 0.5);
}

TEST_CASE("no speedup over a stage that was not right") {
  std::vector<RunResult> results{timed(find_stage("1"), 12), timed(find_stage("2"), 6)};
  results[0].status = Status::wrong;
  add_speedups(results);
  CHECK_FALSE(results[1].speedup.previous);
}

TEST_CASE("the speedup over the previous stage is over its fastest configuration, which it names") {
  const std::vector<const StageInfo*> bgemm = configurations_of(24);
  REQUIRE(bgemm.size() == 3);  // by default, m=4, m=6
  std::vector<RunResult> results{timed(*bgemm[0], 8), timed(find_stage("25"), 2), timed(*bgemm[1], 4),
                                 timed(*bgemm[2], 1)};
  results[2].tile = "4x4";
  results[3].status = Status::wrong;
  add_speedups(results);
  CHECK(results[1].speedup.previous == 2.0);
  REQUIRE(results[1].speedup.over);
  CHECK(results[1].speedup.over->stage->name == "winograd-bgemm m=4");
  CHECK(results[1].speedup.over->tile == "4x4");
  CHECK(results[1].speedup.over->time_us == 4.0);
  CHECK_FALSE(results[0].speedup.over);
  CHECK_FALSE(results[2].speedup.previous);  // a row that is no stage
  results[0].time_us->median = 3;
  add_speedups(results);
  CHECK(results[1].speedup.previous == 1.5);
  CHECK(results[1].speedup.over->stage->name == "winograd-bgemm");
}

TEST_CASE("the first stage is compared as it comes") {
  const std::vector<const StageInfo*> winograd = configurations_of(23);
  std::vector<RunResult> results{timed(*winograd[0], 8), timed(*winograd[1], 4), timed(find_stage("24"), 2)};
  add_speedups(results);
  CHECK(results[2].speedup.first == 4.0);
  CHECK(results[2].speedup.previous == 2.0);
}

TEST_CASE("the roofline: L2 for small tensors, DRAM for large ones, fp32 for long filters") {
  Limits limits{{1e12, 2e12, 1e12, 1}, 1 << 20};
  RunResult result = timed(find_stage("1"), 10);
  add_roofline(result, nullptr);
  CHECK(result.roofline->bytes == 4 * (1000 + 3 + 1000));
  CHECK(result.roofline->flops == 2 * 1000 * 3);
  CHECK_FALSE(result.roofline->floor_us);

  limits.ceilings.fp32_flops_per_s = 1e15;
  add_roofline(result, &limits);
  CHECK(result.roofline->bound == "L2");
  CHECK(*result.roofline->floor_us == doctest::Approx(8012 / 2e12 * 1e6));
  CHECK(*result.roofline->share == doctest::Approx(8012 / 2e12 * 1e6 / 10));
  result.problem = parse_shape("w=1000000,s=3");
  add_roofline(result, &limits);
  CHECK(result.roofline->bound == "DRAM");
  limits.ceilings.fp32_flops_per_s = 1e9;
  add_roofline(result, &limits);
  CHECK(result.roofline->bound == "fp32");
}

TEST_CASE("the roofline of other element types: their bytes, and their rate where there is one") {
  StageInfo stage = find_stage("1");
  RunResult result = timed(stage, 10);
  Limits limits{{1e12, 2e12, 1e12, 1}, 1 << 20};
  stage.dtype = "fp16";
  stage.tensors = Elements::halves;
  add_roofline(result, &limits);
  CHECK(result.roofline->bytes == 2 * (1000 + 3 + 1000));
  CHECK_FALSE(result.roofline->floor_us);
  limits.ceilings.fp16_flops_per_s = 1e9;
  add_roofline(result, &limits);
  CHECK(result.roofline->bound == "fp16");
  CHECK(*result.roofline->floor_us == doctest::Approx(6000 / 1e9 * 1e6));
  stage.dtype = "int8";
  stage.tensors = Elements::bytes;
  add_roofline(result, nullptr);
  CHECK(result.roofline->bytes == 1000 + 1000 + 3);
  stage.tensors = Elements::halves;  // as those of Winograd's algorithm
  limits.ceilings.int8_ops_per_s = 2e9;
  add_roofline(result, &limits);
  CHECK(result.roofline->bytes == 2 * (1000 + 1000) + 3);
  CHECK(result.roofline->bound == "int8");
  CHECK(*result.roofline->floor_us == doctest::Approx(6000 / 2e9 * 1e6));
}

TEST_CASE("the roofline of fp32 from products of halves: so many of them, at the rate of halves") {
  const StageInfo& stage = find_stage("36");
  CHECK(stage.half_products == 3);
  RunResult result = timed(stage, 10);
  Limits limits{{1e12, 2e12, 1e12, 1}, 1 << 20};
  limits.ceilings.fp16_flops_per_s = 2e9;
  add_roofline(result, &limits);
  CHECK(result.roofline->bytes == 4 * (1000 + 3 + 1000));
  CHECK(result.roofline->flops == 6000);
  CHECK(result.roofline->bound == "fp16");
  CHECK(*result.roofline->floor_us == doctest::Approx(3 * 6000 / 2e9 * 1e6));
}

TEST_CASE("the roofline of a Winograd stage: its own operations, if they are fewer") {
  StageInfo stage = find_stage("1");
  RunResult result = timed(stage, 10);
  result.prediction.emplace();
  result.prediction->flops = 4000;
  add_roofline(result, nullptr);
  CHECK(result.roofline->flops == 6000);
  stage.track = "winograd";
  add_roofline(result, nullptr);
  CHECK(result.roofline->flops == 4000);
  result.prediction->flops = 7000;
  add_roofline(result, nullptr);
  CHECK(result.roofline->flops == 6000);
  result.prediction->flops = -1;
  add_roofline(result, nullptr);
  CHECK(result.roofline->flops == 6000);
}

}  // namespace
}  // namespace convladder
