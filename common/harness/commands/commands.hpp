/// @file
/// The commands that need no timing framework: list, run, compare. Each returns the exit status: 0 if all was right, 1
/// for a wrong result, a fault or an error, 3 for a refusal.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "common/harness/run/user_problem.hpp"

namespace convladder {

/// Prints the stages, as a table or as JSON.
int list_stages(bool json);

/// What `run` was asked for.
struct RunCommand {
  ProblemOptions problem;
  std::optional<std::filesystem::path> output;  ///< .npy, written on success only
  std::string configuration;                    ///< settings of its knobs ("m=4"); "" for none
  bool lines = false, json = false;
  bool beside = false;  ///< also the previous stage and cuDNN
};
/// Runs one stage on one problem, and prints the result; with `beside` also its ratios over the previous stage and over
/// cuDNN, on the same problem.
int run_command(const StageInfo& stage, const RunCommand& command);

/// Prints the SASS of the stage's kernels.
int print_sass(const StageInfo& stage);

/// What `compare` was asked for.
struct CompareCommand {
  ProblemOptions problem;
  std::string configuration;  ///< settings of knobs, for the stages that have them; "" for none
  bool json = false;
};
/// Runs the stages on one problem, and prints their results side by side.
int compare_command(const std::vector<const StageInfo*>& stages, const CompareCommand& command);

/// 0, 1 or 3: the worst of what the results ask for, a failure before a refusal.
int exit_status(const std::vector<RunResult>& results);

}  // namespace convladder
