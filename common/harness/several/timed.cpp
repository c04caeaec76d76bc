#include "common/harness/several/timed.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/harness/device/device.hpp"
#include "common/harness/device/gpu/device_gpu.hpp"
#include "common/harness/device/print_stderr.hpp"
#include "common/harness/device/timing.hpp"

namespace convladder {

double time_on_all(const std::vector<Work>& copies, int samples, Ranks& ranks, const std::function<void()>& after) {
  constexpr int kRounds = 20, kFewest = 3;
  constexpr double kMostMs = 8000;  // of all samples, beyond the fewest
  constexpr double kDisturbed = 2;  // a median so many times the least
  const Stream stream = device_stream();
  for (const Work& work : copies) work(stream);  // NCCL joins two ranks at their first exchange
  ranks.wait(stream, "the first launch");
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t replay = nullptr;
  require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "beginning a graph");
  for (int round = 0; round < kRounds; ++round)
    for (const Work& work : copies) work(stream);
  require(cudaStreamEndCapture(stream, &graph), "ending a graph");
  require(cudaGraphInstantiate(&replay, graph, cudaGraphInstantiateFlagUseNodePriority), "instantiating a graph");
  cudaEvent_t begin = nullptr, end = nullptr;
  require(cudaEventCreate(&begin), "creating an event");
  require(cudaEventCreate(&end), "creating an event");
  double spent_ms = 0;
  const auto sample = [&] {  // the same on all ranks, and so is what is decided by it
    ranks.barrier(stream);
    require(cudaEventRecord(begin, stream), "recording an event");
    require(cudaGraphLaunch(replay, stream), "launching a graph");
    require(cudaEventRecord(end, stream), "recording an event");
    ranks.wait(stream, "a graph");
    float milliseconds = 0;
    require(cudaEventElapsedTime(&milliseconds, begin, end), "reading a time");
    if (after) after();
    const double slowest = ranks.largest(milliseconds, stream);
    spent_ms += slowest;
    return 1e3 * slowest / (kRounds * static_cast<double>(copies.size()));
  };
  sample();
  sample();
  std::vector<double> times;
  double least = 0, median = 0;
  for (int turn = 0; turn < 2 && median >= kDisturbed * least; ++turn) {
    for (int i = 0; i < samples && (i < kFewest || spent_ms < kMostMs); ++i) times.push_back(sample());
    std::ranges::sort(times);
    least = times.front();
    median = times[times.size() / 2];
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  cudaGraphExecDestroy(replay);
  cudaGraphDestroy(graph);
  if (median >= kDisturbed * least && ranks.rank() == 0)
    print_stderr("note: disturbed: samples take {:.2f} to {:.2f} µs, half of them more than {:.2f}\n", least,
                 times.back(), median);
  return median;
}

void fill_with_nan(void* to, std::int64_t bytes, Stream stream) {
  if (bytes > 0) require(cudaMemsetAsync(to, 0xFF, static_cast<std::size_t>(bytes), stream), "filling memory");
}

std::size_t copies_past_l2(std::int64_t bytes, Ranks& ranks) {
  constexpr std::int64_t kMostCopies = 16;
  const std::int64_t copies = cold_copies(std::max<std::int64_t>(bytes, 1), device_limits().l2_bytes);
  return static_cast<std::size_t>(ranks.largest(static_cast<double>(std::min(copies, kMostCopies)), device_stream()));
}

double time_exchange(std::int64_t bytes, Ranks& ranks, int samples) {
  const auto size = static_cast<std::size_t>(bytes);
  const DeviceBuffer from(size, "sent"), to(size, "received"), back_from(size, "sent"), back_to(size, "received");
  const int next = (ranks.rank() + 1) % ranks.ranks(), before = (ranks.rank() + ranks.ranks() - 1) % ranks.ranks();
  return time_on_all({[&](Stream s) {
                       ranks.group_start();
                       ranks.send(from.data(), bytes, next, s);
                       ranks.receive(to.data(), bytes, before, s);
                       if (ranks.ranks() > 2) {  // of two, the next rank is the one before
                         ranks.send(back_from.data(), bytes, before, s);
                         ranks.receive(back_to.data(), bytes, next, s);
                       }
                       ranks.group_end();
                     }},
                     samples, ranks);
}

}  // namespace convladder
