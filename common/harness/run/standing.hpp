/// @file
/// Where a result stands: against the hardware's ceilings, the other stages and cuDNN.
#pragma once
#include <vector>

#include "common/harness/device/timing.hpp"
#include "common/harness/run/run_result.hpp"

namespace convladder {

/// Ceilings and the cache size that decides between them. Measured on a GPU only.
struct Limits {
  Ceilings ceilings;
  std::int64_t l2_bytes = 0;
};
/// Measures the ceilings, and asks the device for its cache.
Limits measure_limits();

/// Fills in result.roofline: bytes and flops always, floor, share and bound where there are limits (share only with a
/// time) and a rate for the stage's element type. The bandwidth is L2's where the tensors fit it, else DRAM's.
/// Operations are those of the direct form; of a stage of the winograd track those that it states, if they are fewer.
void add_roofline(RunResult& result, const Limits* limits);

/// cuDNN on the workload; where the device or its memory fails, that is why it is unavailable.
/// @param search_seconds as measure_cudnn() takes them
CudnnBaseline cudnn_beside(const Workload& workload, Precision precision, std::optional<double> search_seconds = {},
                           const CudnnBaseline* in_halves = nullptr);

/// Fills in the speedups of stages that ran the same workload, over each other (the first of a track: 1 over itself)
/// and over result.cudnn. Over the previous stage: over the fastest of its results, those of its other settings among
/// them. Rows that are no stages get the speedups over cuDNN only.
void add_speedups(std::vector<RunResult>& results);

/// The number of the first stage of the stage's track.
int first_of_track(const StageInfo& stage);

}  // namespace convladder
