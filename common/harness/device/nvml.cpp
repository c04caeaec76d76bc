#include "common/harness/device/nvml.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

namespace convladder {
namespace {

constexpr int kSuccess = 0;  // NVML_SUCCESS

/// nvmlFieldValue_t: a fact that is asked for by its number.
struct FieldValue {
  unsigned field, scope = 0;
  long long timestamp = 0, latency_us = 0;
  int value_type = 0, status = 0;
  union {
    double number;
    unsigned whole;
  } value{};
};
static_assert(sizeof(FieldValue) == 40, "as NVML lays it out");
constexpr unsigned kPowerNow = 186;  // NVML_FI_DEV_POWER_INSTANT, in milliwatts

struct NamedReason {
  std::uint64_t bit;
  const char* name;
};
constexpr NamedReason kNames[] = {
    {kApplicationsClocks, "applications_clocks_setting"},
    {kPowerCap, "sw_power_cap"},
    {kHardwareSlowdown, "hw_slowdown"},
    {kSyncBoost, "sync_boost"},
    {kThermalSlowdown, "sw_thermal_slowdown"},
    {kHardwareThermal, "hw_thermal_slowdown"},
    {kHardwarePowerBrake, "hw_power_brake_slowdown"},
    {kDisplayClocks, "display_clock_setting"},
};

}  // namespace

std::vector<std::string> clock_reasons(std::uint64_t bits) {
  std::vector<std::string> names;
  bits &= ~std::uint64_t{kGpuIdle};
  for (const auto& [bit, name] : kNames) {
    if (bits & bit) names.emplace_back(name);
    bits &= ~bit;
  }
  for (std::uint64_t bit = 1; bits != 0; bit <<= 1) {
    if (bits & bit) names.push_back(fmt::format("reason_{:#x}", bit));
    bits &= ~bit;
  }
  return names;
}

Nvml::Nvml(const char* library, const char* bus_id) : library_(dlopen(library, RTLD_NOW | RTLD_LOCAL)) {
  const auto initialise = function<int()>("nvmlInit_v2");
  const auto find = function<int(const char*, void**)>("nvmlDeviceGetHandleByPciBusId_v2");
  if (!initialise || !find || initialise() != kSuccess) return;
  clock_ = function<int(void*, int, unsigned*)>("nvmlDeviceGetClockInfo");
  power_ = function<int(void*, unsigned*)>("nvmlDeviceGetPowerUsage");
  fields_ = function<int(void*, int, void*)>("nvmlDeviceGetFieldValues");
  using Reasons = int(void*, unsigned long long*);
  reasons_ = function<Reasons>("nvmlDeviceGetCurrentClocksEventReasons");
  if (!reasons_) reasons_ = function<Reasons>("nvmlDeviceGetCurrentClocksThrottleReasons");  // before driver 535
  if (find(bus_id, &device_) != kSuccess) device_ = nullptr;
}

template <class Signature>
Signature* Nvml::function(const char* name) const {
  return library_ ? reinterpret_cast<Signature*>(dlsym(library_, name)) : nullptr;
}

double Nvml::clock_mhz(int domain) const {
  unsigned value = 0;
  return device_ && clock_ && clock_(device_, domain, &value) == kSuccess ? value : 0;
}

double Nvml::power_w() const {
  FieldValue now{.field = kPowerNow};
  if (fields_ && fields_(device_, 1, &now) == kSuccess && now.status == kSuccess) return now.value.whole * 1e-3;
  unsigned milliwatts = 0;
  return power_ && power_(device_, &milliwatts) == kSuccess ? milliwatts * 1e-3 : 0;
}

std::optional<GpuMoment> Nvml::now() const {
  if (!device_) return std::nullopt;
  GpuMoment moment{sm_clock_mhz(), power_w()};
  unsigned long long reasons = 0;
  if (reasons_ && reasons_(device_, &reasons) == kSuccess) moment.clock_reasons = reasons;
  return moment;
}

}  // namespace convladder
