/// @file
/// The driver's management library, NVML: what it alone tells of a GPU while work runs.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace convladder {

/// Why the clocks are lower than they could be: bits as NVML has them ("clocks event reasons", once "throttle
/// reasons").
enum ClockReason : std::uint64_t {
  kGpuIdle = 0x1,              ///< nothing runs
  kApplicationsClocks = 0x2,   ///< somebody has set them
  kPowerCap = 0x4,             ///< the board is at its power limit
  kHardwareSlowdown = 0x8,     ///< by a factor of two or more: too hot, or the power supply asks for it
  kSyncBoost = 0x10,           ///< as slow as another GPU of a group
  kThermalSlowdown = 0x20,     ///< the driver keeps the temperature down
  kHardwareThermal = 0x40,     ///< so does the hardware, by kHardwareSlowdown
  kHardwarePowerBrake = 0x80,  ///< the power supply asks for it, by kHardwareSlowdown
  kDisplayClocks = 0x100,      ///< a display holds them down
};

/// Their names as nvidia-smi has them, "sw_power_cap", in the order of the bits; an unknown bit is "reason_0x200". An
/// idle GPU is no reason.
std::vector<std::string> clock_reasons(std::uint64_t bits);

/// What NVML tells at a moment. Zero, or none, where it does not tell.
struct GpuMoment {
  double sm_clock_mhz = 0;
  double power_w = 0;  ///< at this moment; of GPUs before Ampere, and by drivers before 530, as the driver averages it
  std::uint64_t clock_reasons = 0;
};

/// NVML, loaded at run time: its library comes with the driver, and no header of it is needed.
class Nvml {
 public:
  /// @param library its file  @param bus_id of the GPU, as in "0000:1B:00.0"
  Nvml(const char* library, const char* bus_id);

  /// Whether it knows the GPU. If not, all below is zero or none.
  bool found() const { return device_ != nullptr; }
  double sm_clock_mhz() const { return clock_mhz(1); }      ///< now
  double memory_clock_mhz() const { return clock_mhz(2); }  ///< now
  /// All at once. None where the GPU is not found.
  std::optional<GpuMoment> now() const;

 private:
  double clock_mhz(int domain) const;
  double power_w() const;
  template <class Signature>
  Signature* function(const char* name) const;

  void* library_;  // stays loaded: the driver holds on to it
  void* device_ = nullptr;
  int (*clock_)(void*, int, unsigned*) = nullptr;
  int (*power_)(void*, unsigned*) = nullptr;
  int (*fields_)(void*, int, void*) = nullptr;
  int (*reasons_)(void*, unsigned long long*) = nullptr;
};

}  // namespace convladder
