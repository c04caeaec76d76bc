/// @file
/// `tune`: searches a stage's configuration space for one problem on this device.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "common/harness/commands/shard.hpp"
#include "common/harness/run/run_result.hpp"
#include "common/harness/run/user_problem.hpp"
#include "common/stage/counters.hpp"

namespace convladder {

/// What `tune` was asked for.
struct TuneCommand {
  std::optional<std::string> stage;  ///< default: the one that can be tuned
  ProblemOptions problem;            ///< its seed is the searches' too
  std::optional<std::string> workload;
  std::string search = "annealing";  ///< a search's name, or "all"
  std::string configuration;  ///< knobs that stay as they are set, "filter=shared,unroll=rows"; the others are searched
  std::optional<std::string> kernel_tuner;  ///< a file for the trials in the format of Kernel Tuner's caches
  std::optional<std::string> replay;        ///< a log whose trials stand for those of a device
  std::int64_t trials = 60;                 ///< of each search; 0: as many as there are valid points
  bool json = false;
  Shard shard;  ///< of the valid points: searched are those that are dealt to it
};

/// Checks what can be told wrong without a device. @throws UsageError
void require_usable(const TuneCommand& command);

/// Searches, keeps what is faster than the default, and reports. SIGINT and SIGTERM end the search after the trial that
/// runs; what was found is kept.
/// With `replay` it makes no trial: it runs random, annealing and model over the configurations of a log, ten times
/// each, and reports the best that they have seen after 20, 40 and 60 trials.
/// @return exit status: 130 if it was interrupted, 1 if no trial was right
/// @throws UsageError, RefusedError, MachineError
int tune_command(const TuneCommand& command);

/// How a trial is run: so many samples of its hot time, and no cold one.
RunOptions trial_options(int samples);

/// The simulator has no time. A configuration's cost there: the cycles that the load and store path of one
/// multiprocessor would be busy with these requests, if it did them all. A request takes a cycle; two sectors of global
/// memory take one, and so does each extra pass over shared memory.
double estimated_cycles(const Counters& counters);

}  // namespace convladder
