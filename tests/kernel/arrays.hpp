/// @file
/// Device memory for tests of small kernels, which run in the simulator and on a GPU.
#pragma once
#include <doctest/doctest.h>

#include <functional>
#include <vector>

#include "common/harness/device/device.hpp"

namespace convladder {

/// Global memory for a test.
template <class T>
class DeviceArray {
 public:
  DeviceArray(std::size_t size, const char* name) : size_(size), buffer_(size * sizeof(T), name) {}
  DeviceArray(const std::vector<T>& values, const char* name) : DeviceArray(values.size(), name) {
    buffer_.upload(values.data());
  }
  operator T*() { return static_cast<T*>(buffer_.data()); }
  std::vector<T> values() const {
    std::vector<T> result(size_);
    buffer_.download(result.data());
    return result;
  }

 private:
  std::size_t size_;
  DeviceBuffer buffer_;
};

/// Runs what it launches, without a fault. @return what the simulator counted; zeros on a GPU
inline Counters run_kernel(const std::function<void(Stream)>& launch) {
  const Observation observation = observe(launch, false);
  REQUIRE(observation.faults.empty());
  return observation.counters;
}

}  // namespace convladder
