/// @file
/// The commands that need no timing framework: list, run, compare. Each returns the exit status: 0 if all was right, 1
/// for a wrong result, a fault or an error, 3 for a refusal.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "common/user_problem.hpp"

namespace convladder {

int list_stages(bool json);

struct RunCommand {
  std::string stage;
  ProblemOptions problem;
  std::optional<std::filesystem::path> output;  ///< .npy, written on success only
  bool lines = false, json = false;
};
int run_command(const RunCommand& command);

/// Prints the SASS of the stage's kernels.
int print_sass(const std::string& stage);

struct CompareCommand {
  std::vector<std::string> stages;  ///< two or more
  ProblemOptions problem;
  bool json = false;
};
int compare_command(const CompareCommand& command);

/// 0, 1 or 3: the worst of what the results ask for, a failure before a refusal.
int exit_status(const std::vector<RunResult>& results);

}  // namespace convladder
