/// @file
/// `best`: the fastest stage and configuration for a layer on this device.
#pragma once
#include <optional>
#include <string>

#include "common/harness/run/user_problem.hpp"

namespace convladder {

/// What `best` was asked for.
struct BestCommand {
  ProblemOptions problem;
  std::string dtype = "fp32";   ///< what a stage computes in: "fp32", "fp16", "bf16" or "int8"
  std::optional<double> error;  ///< the largest relative error (L2) of a result; none: 1e-5 in fp32, else any
  bool again = false;           ///< measure, whatever was kept
  bool json = false;
};

/// Checks what can be told wrong without a device. @throws UsageError
void require_usable(const BestCommand& command);

/// Runs every stage of the type that takes the layer, in each configuration that its lesson speaks of or that `tune`
/// found, and prints them in the order of their times. The table is kept in the folder of tune's logs; a later call
/// with the same layer, type and device prints it again, for any error. SIGINT and SIGTERM end the program, and nothing
/// is kept.
/// @return exit status: 0, or 3 where no stage takes the layer or none meets the error
/// @throws UsageError, RefusedError, MachineError
int best_command(const BestCommand& command);

}  // namespace convladder
