/// @file
/// Makes plans of cuDNN on several threads: each may take as long as a compilation.
#pragma once
#include <cstddef>
#include <map>
#include <vector>

#include "common/harness/baselines/cudnn_journal.hpp"
#include "common/harness/baselines/cudnn_module.hpp"

namespace convladder {

/// Threads that make plans, each with planners of its own.
class CudnnPlanners {
 public:
  /// @param graphs must outlive this
  explicit CudnnPlanners(const std::vector<CudnnGraph>& graphs);

  /// How many of them there are.
  std::size_t threads() const { return planners_.size(); }

  /// The candidates of the plans, in their order: all are made when it returns, so that what runs then runs alone. What
  /// goes wrong with one is its status; those of no graph are refused.
  std::vector<CudnnCandidate> make(const std::vector<CudnnPlanKey>& keys);

 private:
  CudnnCandidate make_one(const CudnnPlanKey& key, std::map<const CudnnGraph*, CudnnPlanner>& planners) const;

  const std::vector<CudnnGraph>& graphs_;
  std::vector<std::map<const CudnnGraph*, CudnnPlanner>> planners_;  // of each thread
};

}  // namespace convladder
