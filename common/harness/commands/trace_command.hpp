/// @file
/// The command trace: what one block of a stage's kernels does, event by event; or what all blocks load.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "common/harness/run/user_problem.hpp"

namespace convladder {

/// What `trace` was asked for.
struct TraceCommand {
  std::string stage;
  ProblemOptions problem;
  std::string configuration;   ///< settings of its knobs ("m=4"); "" for none
  std::string block = "0";     ///< "x", "x,y" or "x,y,z"
  std::optional<int> warp;     ///< only this one's events, and the barriers of all
  std::int64_t events = 1000;  ///< of each launch, at most
  bool loads = false;          ///< instead: how often each sector of each tensor was loaded, by all blocks
  bool json = false;
};

/// Refuses what trace cannot do, before anything is run. @throws UsageError
void require_usable(const TraceCommand& command);

/// Prints the events, or the loads. Simulator only. @return 0, 1 where the run was wrong or had faults, or 3 for a
/// refusal
/// @throws UsageError where no launch has the block
int trace_command(const TraceCommand& command);

}  // namespace convladder
