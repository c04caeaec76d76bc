/// @file
/// What the simulator's tests share: global memory, counters, and the faults at lines of kernel files that a marker
/// names:
/// "// <- name".
#pragma once
#include <doctest/doctest.h>

#include <fstream>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "common/simt/runtime.hpp"

using convladder::Counters;

/// Global memory for a test.
template <class T>
class Array {
 public:
  Array(std::size_t size, const char* name)
      : size_(size), data_(static_cast<T*>(simt::allocate(size * sizeof(T), name))) {}
  Array(const std::vector<T>& values, const char* name) : Array(values.size(), name) {
    simt::upload(data_, values.data(), values.size() * sizeof(T));
  }
  ~Array() { simt::release(data_); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  operator T*() { return data_; }
  std::vector<T> values() const {
    std::vector<T> result(size_);
    simt::download(result.data(), data_, size_ * sizeof(T));
    return result;
  }

 private:
  std::size_t size_;
  T* data_;
};

/// 0, 1, 2, ...
inline std::vector<float> ramp(std::size_t size) {
  std::vector<float> values(size);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

/// What it counts, without a fault.
inline Counters count(const std::function<void()>& launch) {
  simt::begin_measurement();
  launch();
  REQUIRE(simt::measurement().faults.empty());
  return simt::measurement().counters;
}

/// The faults that it meets.
inline std::vector<simt::FaultRecord> faults(const std::function<void()>& launch) {
  simt::begin_measurement();
  launch();
  return simt::measurement().faults;
}

/// The line that carries the marker.
inline simt::SourceLine marked(const std::string& name) {
  for (const char* path : {"tests/simt/faults.cu", "tests/simt/async.cu", "tests/simt/wmma.cu", "tests/simt/mma.cu",
                           "tests/simt/hopper.cu", "tests/simt/devices.cu", "tests/kernel/hopper_pipeline.cu"}) {
    std::ifstream file(CONVLADDER_SOURCE_DIR "/" + std::string(path));
    std::string text;
    for (int line = 1; std::getline(file, text); ++line)
      if (text.ends_with("// <- " + name)) return {path, line};
  }
  FAIL("no marker " << name);
  return {};
}

inline int marked_line(const std::string& name) { return marked(name).line; }

/// Expects the fault, first of all, in the kernel `name` and at the line that it marks (for a race, of either access).
inline simt::FaultRecord expect_fault(const std::string& name, simt::FaultKind kind,
                                      const std::function<void()>& launch) {
  CAPTURE(name);
  const auto found = faults(launch);
  REQUIRE(!found.empty());
  const simt::FaultRecord fault = found.front();
  CHECK(std::string(simt::to_string(fault.kind)) == simt::to_string(kind));
  const simt::SourceLine line = simt::line_of(fault), other = simt::other_line_of(fault);
  CHECK(line.file == marked(name).file);
  const bool marked =
      line.line == marked_line(name) || (kind == simt::FaultKind::race && other.line == marked_line(name));
  CHECK(marked);
  CHECK(simt::kernel_name(fault.kernel).starts_with(name));
  return fault;
}

/// Expects no fault.
inline void expect_silence(const std::function<void()>& launch) { CHECK(faults(launch).empty()); }
