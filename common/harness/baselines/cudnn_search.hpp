/// @file
/// Searches all engines of cuDNN's graph API that take a problem, and their knobs, for the fastest plan.
#pragma once
#include <functional>
#include <set>
#include <vector>

#include "common/harness/baselines/cudnn_bench.hpp"
#include "common/harness/baselines/cudnn_journal.hpp"

namespace convladder {

/// A plan of which it is known, or hoped, that it is fast.
struct CudnnHint {
  CudnnPlanKey key;
  std::optional<double> time_us = {};  ///< where it was timed already
};

/// What looks at a candidate, knowing the time of the best so far.
using CudnnGlancing = std::function<CudnnGlance(const CudnnCandidate& candidate, double best_us)>;

/// Searches until `seconds` have passed, those of earlier runs counted in, or all is tried. Plans are made on all
/// cores, a batch at a time; then, while nothing else runs, the batch is timed one by one. What it finds is in the
/// journal.
/// @param glance runs a candidate, shortly  @param best_us the fastest so far
/// @throws DeviceError if the GPU context is lost
CudnnSearchSummary search_cudnn(const std::vector<CudnnGraph>& graphs, const std::vector<CudnnHint>& hints,
                                const CudnnGlancing& glance, double best_us, double seconds, CudnnJournal& journal);

/// The fastest few plans in a journal but those that were tried, and the fastest of each family, as candidates that can
/// run or tell why not.
std::vector<CudnnCandidate> best_in(const CudnnJournal& journal, const std::set<CudnnPlanKey>& tried,
                                    const std::vector<CudnnGraph>& graphs);

}  // namespace convladder
