#include "common/harness/baselines/cudnn_planners.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>

namespace convladder {
namespace {

constexpr unsigned kMostThreads = 32;  // each has a handle of cuDNN's own, which takes memory of the GPU

}  // namespace

CudnnPlanners::CudnnPlanners(const std::vector<CudnnGraph>& graphs)
    : graphs_(graphs), planners_(std::clamp(std::thread::hardware_concurrency(), 1u, kMostThreads)) {}

std::vector<CudnnCandidate> CudnnPlanners::make(const std::vector<CudnnPlanKey>& keys) {
  std::vector<CudnnCandidate> made(keys.size());
  std::atomic<std::size_t> next = 0;
  std::vector<std::jthread> threads;
  for (std::size_t t = 0; t < std::min(planners_.size(), keys.size()); ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = next++; i < keys.size(); i = next++) made[i] = make_one(keys[i], planners_[t]);
    });
  }
  threads.clear();  // waits for them
  return made;
}

CudnnCandidate CudnnPlanners::make_one(const CudnnPlanKey& key,
                                       std::map<const CudnnGraph*, CudnnPlanner>& planners) const {
  CudnnCandidate candidate;
  candidate.status = "no graph of this layout and type";
  try {  // nothing may leave a thread
    for (const CudnnGraph& graph : graphs_) {
      if (graph.nhwc != key.nhwc || graph.output != key.output) continue;
      CudnnPlanner& planner = planners[&graph];
      if (!planner) planner = graph.planner();
      return planner(key.configuration);
    }
  } catch (const std::exception& error) {
    candidate.status = error.what();
  }
  return candidate;
}

}  // namespace convladder
