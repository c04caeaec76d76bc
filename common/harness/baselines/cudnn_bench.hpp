/// @file
/// A problem's tensors on the device, on which cuDNN's candidates are checked and timed.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "common/harness/baselines/cudnn_baseline.hpp"
#include "common/harness/baselines/cudnn_module.hpp"
#include "common/harness/device/device.hpp"

namespace convladder {

/// The time of the best so far where there is none.
inline constexpr double kNothingYet = std::numeric_limits<double>::infinity();

/// A launch that takes longer, in microseconds, is not run again after its check.
inline constexpr double kOnceUs = 1e6;
/// The groups of launches that a time is the median of.
inline constexpr int kGroups = 7;
/// What each of them should last, in microseconds.
inline constexpr double kGroupUs = 2000;

/// What a trial has to keep up with, in microseconds.
struct CudnnPace {
  double best_us = kNothingYet, best_of_family_us = kNothingYet;  ///< of the trials so far
};

/// Times a launch hot, into `trial`: one launch where it is far slower than the fastest so far, one group of launches
/// where that is clearly slower than the fastest of the family (is_far()), else `kGroups` of them.
void time_hot(const std::function<void(Stream)>& launch, const CudnnPace& pace, CudnnTrial& trial);

/// Whether a trial is clearly slower than the fastest of its family so far. Groups of launches differ by a few percent.
inline bool is_far(double time_us, const CudnnPace& pace) { return time_us > 1.25 * pace.best_of_family_us; }

/// What a short look at a candidate found.
struct CudnnGlance {
  CudnnOutcome outcome = CudnnOutcome::right;
  double time_us = 0;  ///< where it is right or slower
};

/// The problem's tensors on the device in one of the layouts and precisions.
class CudnnBench {
 public:
  /// @param reference may be empty where nothing is checked; it and the problem must outlive this
  /// @throws MachineError if the memory is not there
  CudnnBench(const ConvProblem& problem, const HostTensors& tensors, const Reference& reference, Precision precision,
             const CudnnSteps& steps, bool nhwc);

  CudnnBench copy() const;                                            ///< the same tensors once more on the device
  DeviceBuffer output_of(const CudnnCandidate& candidate) const;      ///< a new one
  static DeviceBuffer workspace_of(const CudnnCandidate& candidate);  ///< likewise
  std::int64_t tensor_bytes(const CudnnCandidate& candidate) const;   ///< of what it reads, and its output

  /// @throws DeviceError with cuDNN's word
  void start(const CudnnCandidate& candidate, const DeviceBuffer& output, const DeviceBuffer& workspace,
             Stream stream) const;

  /// Times a candidate, into `trial`, and checks it, but for a plan that is_far(). Winograd algorithms keep up with
  /// their family alone.
  /// @throws DeviceError if the GPU context is lost
  void measure(const CudnnCandidate& candidate, CudnnPace pace, CudnnTrial& trial);

  /// Times a candidate shortly, and checks it where it is not clearly slower than `best_us`.
  /// @throws DeviceError if the GPU context is lost
  CudnnGlance glance(const CudnnCandidate& candidate, double best_us);

 private:
  CudnnBench(const ConvProblem& problem, const Reference& reference, Precision precision, const CudnnSteps& steps,
             bool nhwc)
      : problem_(problem), reference_(reference), precision_(precision), steps_(steps), nhwc_(nhwc) {}

  void upload_epilogue(const HostTensors& tensors);
  void upload(const std::vector<float>& values, double step, const char* name, DeviceBuffer& buffer) const;
  double error_of(const DeviceBuffer& output, Precision stored);

  const ConvProblem& problem_;
  const Reference& reference_;
  Precision precision_;
  CudnnSteps steps_;
  bool nhwc_;
  DeviceBuffer input_, filter_;
  std::optional<DeviceBuffer> bias_, forward_bias_, residual_, scales_;  // of an epilogue
  std::int64_t workspace_limit_ = 0;
  std::vector<std::byte> bytes_;  // of the last output
};

}  // namespace convladder
