/// @file
/// Timing on a GPU: replays of CUDA graphs. In the simulator there is no time, and no implementation of these.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "common/harness/device/throttle_watch.hpp"
#include "common/stage/stage.hpp"

namespace convladder {

/// A CUDA graph of launches, replayed and timed by events. As long as there is one, no part of L2 is set aside for
/// accesses that persist, whatever the process wants of it otherwise.
class GraphTimer {
 public:
  /// Captures `repetitions` rounds over `launches`. One launch: the same buffers each time (hot). Several, each with
  /// buffers of its own that together exceed L2: cold.
  /// @throws DeviceError if capture or the warm-up replay fails
  GraphTimer(const std::vector<std::function<void(Stream)>>& launches, int repetitions);
  ~GraphTimer();
  /// Takes the graph over.
  GraphTimer(GraphTimer&&) noexcept;

  /// Replays the graph once; microseconds per launch. Again where the GPU was slowed: see ThrottleWatch.
  double sample();
  /// What the driver told of the GPU during the samples so far, if anything.
  std::optional<GpuConditions> conditions() const;

 private:
  struct Graph;
  std::unique_ptr<Graph> graph_;
};

/// Microseconds per launch by events around `repetitions` launches, one after the other: for work that no graph can
/// capture. Includes the gaps between launches.
/// @throws DeviceError if a launch fails
double time_by_events(const std::function<void(Stream)>& launch, int repetitions);

/// Rounds per graph such that one replay lasts about `target_us`, at least 1 and at most 200.
int repetitions_for(const std::function<void(Stream)>& launch, double target_us);

/// More copies than these of a problem's tensors are not made to time it cold.
inline constexpr std::int64_t kMaxColdCopies = 64;
/// How many copies of buffers of `bytes` bytes exceed an L2 cache of `l2_bytes` three times over: at least 2, maybe
/// more than kMaxColdCopies.
std::int64_t cold_copies(std::int64_t bytes, std::int64_t l2_bytes);

/// What the device reaches in practice, measured at the start of a run.
struct Ceilings {
  double dram_bytes_per_s = 0;  ///< device copy of 2 GB (or an eighth of the memory), bytes read + written
  double l2_bytes_per_s = 0;    ///< the same for a footprint of half the L2
  double fp32_flops_per_s = 0;  ///< independent FMAs in registers
  double launch_us = 0;         ///< an empty kernel inside a CUDA graph
  /// Multiplications and additions of matrix products on Tensor Cores by a warp at a time (WMMA, mma.sync), operands in
  /// registers: halves summed in fp32; int8 summed in int32. 0 where the GPU has no such instruction.
  double fp16_flops_per_s = 0, int8_ops_per_s = 0;
};
/// Measures them. @throws DeviceError if a kernel of its own fails
Ceilings measure_ceilings();

}  // namespace convladder
