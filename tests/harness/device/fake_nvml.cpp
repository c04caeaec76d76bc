// Libraries with NVML's functions and a GPU that the tests set: with OLD_DRIVER as drivers before 530 have it.
#include <cstring>

namespace {

struct State {
  int initialised;  // what nvmlInit returns
  unsigned sm_mhz, memory_mhz, average_mw, instant_mw;
  int instant_status;
  unsigned long long reasons;
};
State state;
int gpu;  // whose address is its handle

}  // namespace

extern "C" {

/// Sets all that the library tells.
void fake_nvml_set(const void* new_state) { std::memcpy(&state, new_state, sizeof state); }

int nvmlInit_v2() { return state.initialised; }

int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, void** device) {
  *device = &gpu;  // also where it fails, as the real one may
  return std::strcmp(bus_id, "0000:1B:00.0") == 0 ? 0 : 6;
}

int nvmlDeviceGetClockInfo(void* device, int domain, unsigned* mhz) {
  *mhz = domain == 1 ? state.sm_mhz : state.memory_mhz;
  return device == &gpu ? 0 : 2;
}

int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  *milliwatts = state.average_mw;
  return device == &gpu ? 0 : 2;
}

#ifdef OLD_DRIVER
int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* reasons) {
  *reasons = state.reasons;
  return device == &gpu ? 0 : 2;
}
#else
int nvmlDeviceGetCurrentClocksEventReasons(void* device, unsigned long long* reasons) {
  *reasons = state.reasons;
  return device == &gpu ? 0 : 2;
}

/// nvmlFieldValue_t: field at byte 0, status at 28, value at 32.
int nvmlDeviceGetFieldValues(void* device, int count, void* values) {
  char* const value = static_cast<char*>(values);
  unsigned field = 0;
  std::memcpy(&field, value, sizeof field);
  const int status = count == 1 && field == 186 ? state.instant_status : 3;
  std::memcpy(value + 28, &status, sizeof status);
  std::memcpy(value + 32, &state.instant_mw, sizeof state.instant_mw);
  return device == &gpu ? 0 : 2;
}
#endif

}  // extern "C"
