/// @file
/// Samples of a time that a slowed GPU does not spoil.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "common/harness/device/nvml.hpp"

namespace convladder {

/// What the driver told of the GPU while samples were taken: means and extremes of those that count.
struct GpuConditions {
  int samples = 0;  ///< that count
  double sm_clock_mhz = 0, least_sm_clock_mhz = 0;
  double power_w = 0, most_power_w = 0;
  std::uint64_t clock_reasons = 0;  ///< of any sample, also of one that was taken again
  int repeated = 0;                 ///< samples that were taken again, since the GPU was slowed
  int slowed = 0;                   ///< of `samples`: taken while the GPU was slowed, when no more could be repeated
};

/// The reasons for which a sample is taken again: the GPU is too hot, or its power supply asks for less. The power
/// limit is not among them: a board under load is at it for as long as the load lasts, and a repetition would find it
/// there.
inline constexpr std::uint64_t kSlowingReasons =
    kHardwareSlowdown | kThermalSlowdown | kHardwareThermal | kHardwarePowerBrake;

/// Takes the samples of one series of times.
class ThrottleWatch {
 public:
  /// So many samples of a series are taken again at most, each after a pause of 50 ms: a second in all. What is still
  /// slowed then counts, and is told.
  static constexpr int kMostRepeated = 20;

  /// @param read tells the GPU's state now, or nothing where it cannot be told
  /// @param pause lets the GPU cool
  ThrottleWatch(std::function<std::optional<GpuMoment>()> read, std::function<void()> pause)
      : read_(std::move(read)), pause_(std::move(pause)) {}

  /// A sample that counts. @param take takes one, and calls what it is given once while the GPU works
  double sample(const std::function<double(const std::function<void()>& meanwhile)>& take);

  /// What was seen so far; none where the state cannot be told.
  std::optional<GpuConditions> conditions() const;

 private:
  void note(const GpuMoment& moment);

  std::function<std::optional<GpuMoment>()> read_;
  std::function<void()> pause_;
  GpuConditions seen_;
};

}  // namespace convladder
