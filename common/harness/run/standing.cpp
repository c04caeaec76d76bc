#include "common/harness/run/standing.hpp"

#include <algorithm>

#include "common/harness/files/errors.hpp"

namespace convladder {
namespace {

/// The fastest right result of those that are `chosen`, or null.
template <class Chosen>
const RunResult* fastest(const std::vector<RunResult>& results, const Chosen& chosen) {
  const RunResult* best = nullptr;
  for (const RunResult& result : results) {
    if (result.status != Status::ok || !result.time_us || !chosen(*result.stage)) continue;
    if (!best || result.time_us->median < best->time_us->median) best = &result;
  }
  return best;
}

void add_speedup(std::optional<double>& speedup, const RunResult& result, const RunResult* base) {
  if (base) speedup = base->time_us->median / result.time_us->median;
}

void add_speedup(std::optional<double>& speedup, const RunResult& result, const CudnnTrial* trial) {
  if (trial) speedup = *trial->time_us / result.time_us->median;
}

/// Each tensor once. The filter of a stage of int8 is of int8, even where it reads and writes halves.
std::int64_t bytes_of(const ConvProblem& problem, const StageInfo& stage) {
  const std::int64_t activation = takes_bytes(stage) ? 1 : takes_halves(stage) || takes_bf16(stage) ? 2 : 4;
  const std::int64_t tap = precision_of(stage) == Precision::int8 ? 1 : activation;
  const std::int64_t residual = problem.has_residual() ? problem.output_size() : 0,
                     biases = problem.has_bias() ? problem.k : 0;
  return activation * (problem.input_size() + problem.output_size() + residual) + tap * problem.filter_size() +
         static_cast<std::int64_t>(sizeof(float)) * biases;
}

/// Those of the direct form, or of Winograd's algorithm where the stage uses it and states fewer.
std::int64_t operations_of(const RunResult& result) {
  const std::int64_t direct = result.problem.flops();
  const std::int64_t claimed = result.prediction ? result.prediction->flops : -1;
  return track_of(*result.stage).uses_winograd && claimed > 0 ? std::min(claimed, direct) : direct;
}

/// Tensor Cores multiply bf16 as fast as fp16.
double rate_of(const Ceilings& ceilings, Precision precision) {
  return precision == Precision::fp32   ? ceilings.fp32_flops_per_s
         : precision == Precision::int8 ? ceilings.int8_ops_per_s
                                        : ceilings.fp16_flops_per_s;
}

}  // namespace

Limits measure_limits() { return {measure_ceilings(), device_info().l2_bytes}; }

void add_roofline(RunResult& result, const Limits* limits) {
  const int half_products = result.stage->half_products;
  const Precision precision = half_products > 0 ? Precision::fp16 : precision_of(*result.stage);
  Roofline roofline;
  roofline.bytes = bytes_of(result.problem, *result.stage);
  roofline.flops = operations_of(result);
  const double rate = limits ? rate_of(limits->ceilings, precision) : 0;
  if (limits && rate > 0) {
    const bool in_l2 = roofline.bytes <= limits->l2_bytes;  // hot buffers stay there
    const double bandwidth = in_l2 ? limits->ceilings.l2_bytes_per_s : limits->ceilings.dram_bytes_per_s;
    const double memory_us = 1e6 * static_cast<double>(roofline.bytes) / bandwidth;
    const double arithmetic_us = 1e6 * std::max(half_products, 1) * static_cast<double>(roofline.flops) / rate;
    roofline.floor_us = std::max(memory_us, arithmetic_us);
    roofline.bound = arithmetic_us > memory_us ? to_string(precision) : in_l2 ? "L2" : "DRAM";
    if (result.time_us) roofline.share = *roofline.floor_us / result.time_us->median;
  }
  result.roofline = roofline;
}

CudnnBaseline cudnn_beside(const Workload& workload, Precision precision, std::optional<double> search_seconds,
                           const CudnnBaseline* in_halves) {
  CudnnBaseline failed;
  try {
    return measure_cudnn(workload.problem, workload.tensors, workload.reference, precision, search_seconds, in_halves);
  } catch (const DeviceError& error) {  // the stages that follow say so themselves
    failed.unavailable = error.what();
  } catch (const MachineError& error) {  // of cuDNN's own buffers
    failed.unavailable = error.what();
  }
  return failed;
}

void add_speedups(std::vector<RunResult>& results) {
  for (RunResult& result : results) {
    if (result.status != Status::ok || !result.time_us) continue;
    if (on_ladder(*result.stage)) {
      const int previous = result.stage->previous, first = first_of_track(*result.stage);
      const auto is_alike = [&](const StageInfo& stage) { return takes_bf16(stage) == takes_bf16(*result.stage); };
      const RunResult* const over = fastest(results, [&](const StageInfo& stage) {
        return previous > 0 && (stage.number == previous || stage.settings_of == previous) && is_alike(stage);
      });
      add_speedup(result.speedup.previous, result, over);
      if (over) result.speedup.over = ComparedWith{over->stage, over->configuration, over->tile, over->time_us->median};
      add_speedup(result.speedup.first, result,
                  fastest(results, [&](const StageInfo& stage) { return stage.number == first && is_alike(stage); }));
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
