/// @file
/// Searches compared on a table of costs: a log of `tune` whose trials stand for those of a device.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "common/harness/commands/tuner.hpp"
#include "common/harness/ladder/tuning_log.hpp"
#include "common/stage/problem.hpp"

namespace convladder {

/// Describes a configuration by what its stage predicts of it: the logarithm of each counter that it claims, of the
/// others 0. The stage is left with the last one.
Describe predicted_features(TunableStage& stage, const ConvProblem& problem);

/// After so many trials a replay looks at the best so far.
inline constexpr int kLooks[] = {20, 40, 60};
/// Seeds of a replay for each search.
inline constexpr std::uint64_t kReplaySeeds = 10;

/// What one search has seen in a replay.
struct Replayed {
  Search search;
  std::vector<std::vector<double>> best;  ///< [seed][look]: the lowest cost so far
};

/// Runs random, annealing and model over the configurations that the log tried, which are all that there are. Each seed
/// begins anywhere, the same place for all searches: no search knows the stage's default.
/// @throws UsageError if the log has fewer right trials than the last look needs
std::vector<Replayed> replay(const TuningLog& log, const Knobs& knobs, const Describe& describe);

/// replay() of a file, as a table or as JSON on stdout. @return exit status  @throws UsageError
int replay_command(const std::string& path, TunableStage& stage, bool json);

}  // namespace convladder
