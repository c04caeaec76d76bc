#include "common/harness/run/standing.hpp"

#include <algorithm>

namespace convladder {
namespace {

/// The stage's result, if it ran and was timed. @param number 0: there is none
const RunResult* timed_result(const std::vector<RunResult>& results, int number) {
  const auto found = std::find_if(results.begin(), results.end(), [&](const RunResult& result) {
    return on_ladder(*result.stage) && result.stage->number == number;
  });
  return found != results.end() && found->status == Status::ok && found->time_us ? &*found : nullptr;
}

void add_speedup(std::optional<double>& speedup, const RunResult& result, const RunResult* base) {
  if (base) speedup = base->time_us->median / result.time_us->median;
}

void add_speedup(std::optional<double>& speedup, const RunResult& result, const CudnnTrial* trial) {
  if (trial) speedup = *trial->time_us / result.time_us->median;
}

/// Each tensor once. The filter of a stage of int8 is of int8, even where it reads and writes halves.
std::int64_t bytes_of(const ConvProblem& problem, const StageInfo& stage) {
  const std::int64_t activation = takes_bytes(stage) ? 1 : takes_halves(stage) ? 2 : 4;
  const std::int64_t tap = precision_of(stage) == Precision::int8 ? 1 : activation;
  return activation * (problem.input_size() + problem.output_size()) + tap * problem.filter_size();
}

/// Those of the direct form, or of Winograd's algorithm where the stage uses it and states fewer.
std::int64_t operations_of(const RunResult& result) {
  const std::int64_t direct = result.problem.flops();
  const std::int64_t claimed = result.prediction ? result.prediction->flops : -1;
  return track_of(*result.stage).uses_winograd && claimed > 0 ? std::min(claimed, direct) : direct;
}

double rate_of(const Ceilings& ceilings, Precision precision) {
  return precision == Precision::fp32   ? ceilings.fp32_flops_per_s
         : precision == Precision::fp16 ? ceilings.fp16_flops_per_s
                                        : ceilings.int8_ops_per_s;
}

}  // namespace

Limits measure_limits() { return {measure_ceilings(), device_info().l2_bytes}; }

void add_roofline(RunResult& result, const Limits* limits) {
  const Precision precision = precision_of(*result.stage);
  Roofline roofline;
  roofline.bytes = bytes_of(result.problem, *result.stage);
  roofline.flops = operations_of(result);
  const double rate = limits ? rate_of(limits->ceilings, precision) : 0;
  if (limits && rate > 0) {
    const bool in_l2 = roofline.bytes <= limits->l2_bytes;  // hot buffers stay there
    const double bandwidth = in_l2 ? limits->ceilings.l2_bytes_per_s : limits->ceilings.dram_bytes_per_s;
    const double memory_us = 1e6 * static_cast<double>(roofline.bytes) / bandwidth;
    const double arithmetic_us = 1e6 * static_cast<double>(roofline.flops) / rate;
    roofline.floor_us = std::max(memory_us, arithmetic_us);
    roofline.bound = arithmetic_us > memory_us ? to_string(precision) : in_l2 ? "L2" : "DRAM";
    if (result.time_us) roofline.share = *roofline.floor_us / result.time_us->median;
  }
  result.roofline = roofline;
}

void add_speedups(std::vector<RunResult>& results) {
  for (RunResult& result : results) {
    if (result.status != Status::ok || !result.time_us) continue;
    if (on_ladder(*result.stage)) {
      add_speedup(result.speedup.previous, result, timed_result(results, result.stage->previous));
      add_speedup(result.speedup.first, result, timed_result(results, first_of_track(*result.stage)));
    }
    if (!result.cudnn) continue;
    add_speedup(result.speedup.cudnn_winograd, result, result.cudnn->best_of(kWinogradFamily));
    add_speedup(result.speedup.cudnn_best, result, result.cudnn->best());
    add_speedup(result.speedup.cudnn_gemm, result, result.cudnn->best_of(kGemmFamily));
    add_speedup(result.speedup.cudnn_fft, result, result.cudnn->best_of(kFftFamily));
  }
}

int first_of_track(const StageInfo& stage) {
  const auto same_track = [&](const StageInfo& other) { return other.track == stage.track; };
  return std::find_if(stages().begin(), stages().end(), same_track)->number;
}

}  // namespace convladder
