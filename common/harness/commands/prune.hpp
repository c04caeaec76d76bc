/// @file
/// Which block barriers a stage's kernels need: each is taken away in the simulator, and what follows is a race,
/// another fault, a wrong output, or nothing.
#pragma once
#include <string_view>
#include <utility>
#include <vector>

#include "common/harness/device/barriers.hpp"
#include "common/harness/run/run_result.hpp"

namespace convladder {

/// One run without a barrier, on a shape on which a block passes it.
struct BarrierTrial {
  ConvProblem problem;
  bool right = false;         ///< whether the output was right all the same
  std::vector<Fault> faults;  ///< what the simulator found
};

/// A barrier, and what happened without it.
struct BarrierFinding {
  Barrier barrier;
  std::vector<BarrierTrial> trials;

  /// Whether any trial ended in a fault or a wrong output.
  bool needed() const;
  /// Of the trials with a fault, how many left a right output: what a comparison of outputs would have missed.
  int faults_unseen() const;
  /// The first race of the trials, else the first fault, and the trial that it is from; both null if there is none.
  std::pair<const Fault*, const BarrierTrial*> first_fault() const;
};

/// Shapes for a stage of this track (Track::prune_shapes).
std::vector<ConvProblem> prune_shapes(std::string_view track);

/// What prune() found.
struct PruneReport {
  std::vector<ConvProblem> shapes;  ///< that the stage accepts
  std::vector<BarrierFinding> findings;
};

/// What becomes of a barrier after its trial.
enum class Removal {
  each_alone,  ///< it is put back
  greedy,      ///< where it was not needed it stays away during the trials that follow
};

/// Takes each barrier of the stage's kernels, those of prepare() too, away on every shape on which blocks pass it; in
/// the order of files and lines. Those that Removal::greedy finds not needed are not needed together either.
/// Simulator only.
/// @throws UsageError if the stage is not right on one of the shapes as it stands, or accepts none
PruneReport prune(const StageInfo& stage, const std::vector<ConvProblem>& shapes, const RunOptions& options,
                  Removal removal = Removal::each_alone);

}  // namespace convladder
