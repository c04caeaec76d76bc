#include "common/harness/baselines/cudnn_planners.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <system_error>
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
  const auto work = [&](std::size_t t) {
    for (std::size_t i = next++; i < keys.size(); i = next++) made[i] = make_one(keys[i], planners_[t]);
  };
  std::vector<std::jthread> threads;
  try {
    for (std::size_t t = 1; t < std::min(planners_.size(), keys.size()); ++t) threads.emplace_back(work, t);
  } catch (const std::system_error&) {  // no more threads are to be had: those that are there make all
  }
  work(0);
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
