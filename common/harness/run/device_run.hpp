/// @file
/// A run on the program's device: a GPU or the simulator.
#pragma once
#include "common/harness/run/run_result.hpp"

namespace convladder {

/// Runs the result's stage on the workload and fills in what came of it.
/// @throws MachineError if the device's memory does not hold the tensors; DeviceError if a CUDA call fails
void run_on_device(const Workload& workload, const RunOptions& options, RunResult& result);

}  // namespace convladder
