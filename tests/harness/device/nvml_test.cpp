// NVML as libraries of the tests' own have it: no GPU is needed.
#include "common/harness/device/nvml.hpp"

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace convladder;

namespace {

constexpr const char* kBusId = "0000:1B:00.0";

/// As in fake_nvml.cpp.
struct State {
  int initialised = 0;
  unsigned sm_mhz = 1980, memory_mhz = 3201, average_mw = 120'000, instant_mw = 650'500;
  int instant_status = 0;
  unsigned long long reasons = 0;
};

void set(const char* library, const State& state) {
  void* const loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  REQUIRE_MESSAGE(loaded, dlerror());
  reinterpret_cast<void (*)(const void*)>(dlsym(loaded, "fake_nvml_set"))(&state);
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("NVML tells clocks, power and the reasons of the clocks") {
  set(CONVLADDER_FAKE_NVML, {.reasons = kPowerCap | kGpuIdle});
  const Nvml nvml(CONVLADDER_FAKE_NVML, kBusId);
  REQUIRE(nvml.found());
  CHECK(nvml.sm_clock_mhz() == 1980);
  CHECK(nvml.memory_clock_mhz() == 3201);
  const auto now = nvml.now();
  REQUIRE(now);
  CHECK(now->sm_clock_mhz == 1980);
  CHECK(now->power_w == doctest::Approx(650.5));
  CHECK(clock_reasons(now->clock_reasons) == Names{"sw_power_cap"});
}

TEST_CASE(
    "an older NVML tells reasons by their older name and the average power; so does a GPU without the present one") {
  set(CONVLADDER_FAKE_NVML_OLD, {.reasons = kHardwareSlowdown | kHardwareThermal});
  const auto old = Nvml(CONVLADDER_FAKE_NVML_OLD, kBusId).now();
  REQUIRE(old);
  CHECK(old->power_w == doctest::Approx(120));
  CHECK(clock_reasons(old->clock_reasons) == Names{"hw_slowdown", "hw_thermal_slowdown"});

  set(CONVLADDER_FAKE_NVML, {.instant_status = 3});
  CHECK(Nvml(CONVLADDER_FAKE_NVML, kBusId).now()->power_w == doctest::Approx(120));
}

TEST_CASE("without a library, another library, or the GPU, NVML tells nothing") {
  set(CONVLADDER_FAKE_NVML, {});
  CHECK_FALSE(Nvml(CONVLADDER_FAKE_NVML, "0000:1C:00.0").now());
  CHECK(Nvml(CONVLADDER_FAKE_NVML, "0000:1C:00.0").sm_clock_mhz() == 0);
  CHECK_FALSE(Nvml("libconvladder-has-no-such.so.1", kBusId).found());
  CHECK_FALSE(Nvml("libc.so.6", kBusId).now());
  set(CONVLADDER_FAKE_NVML, {.initialised = 9});
  CHECK_FALSE(Nvml(CONVLADDER_FAKE_NVML, kBusId).found());
}

TEST_CASE("reasons have nvidia-smi's names, and unknown ones their bit") {
  CHECK(clock_reasons(0).empty());
  CHECK(clock_reasons(kGpuIdle).empty());
  CHECK(clock_reasons(0x1ff) == Names{"applications_clocks_setting", "sw_power_cap", "hw_slowdown", "sync_boost",
                                      "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown",
                                      "display_clock_setting"});
  CHECK(clock_reasons(0x204) == Names{"sw_power_cap", "reason_0x200"});
}
