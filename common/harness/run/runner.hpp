/// @file
/// Runs one stage on one problem: checked, then counted (simulator) or timed (GPU, and on the CPU the stages of the
/// track cpu), then checked again.
#pragma once
#include <string>

#include "common/harness/run/run_result.hpp"

namespace convladder {

/// A refusal, a fault, a wrong result or a failed launch is the result's status, never an exception.
/// @throws MachineError if the device's memory does not hold the tensors; std::bad_alloc if the host's does not
RunResult run_stage(const StageInfo& stage, const Workload& workload, const RunOptions& options);

/// The result of a run that a rule forbids before it begins.
RunResult refused(const StageInfo& stage, const ConvProblem& problem, std::string rule);

}  // namespace convladder
