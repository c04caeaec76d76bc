/// @file
/// Runs a stage of the track cpu: in the host's memory, by the host's clock, with every program.
#pragma once
#include <functional>
#include <string_view>

#include "common/harness/run/run_result.hpp"

namespace convladder {

/// The times of a launch, by the host's clock. @param what is timed, for a warning where other programs spoil the times
TimeSummary time_on_host(std::string_view what, const std::function<void()>& launch);

/// Runs the stage, into `result`: checked, timed and checked again, as on a GPU. Its tensors are aligned to 64 bytes.
/// A sample is as many launches as fill about 2 ms; there are 20 samples, or fewer where these take more than 0.3 s.
/// @throws std::bad_alloc if the memory does not hold the tensors
void run_on_host(const Workload& workload, const RunOptions& options, RunResult& result);

}  // namespace convladder
