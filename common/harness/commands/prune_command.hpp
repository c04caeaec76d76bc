/// @file
/// The command prune: which block barriers of a stage's kernels are needed.
#pragma once
#include <string>

namespace convladder {

/// What `prune` was asked for.
struct PruneCommand {
  std::string stage;
  std::string configuration;  ///< settings of its knobs ("tbm=32"); "" for none
  bool greedy = false;        ///< what is not needed stays away while the next is tried
  bool json = false;
};

/// Refuses what prune cannot do, before anything is run. @throws UsageError for an unknown stage or one of the CPU
void require_usable(const PruneCommand& command);

/// Prints the report. Simulator only. @return 0, whatever was found @throws UsageError as prune()
int prune_command(const PruneCommand& command);

}  // namespace convladder
