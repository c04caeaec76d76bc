/// @file
/// GPUs that are known by name, by their public specifications: what explore reckons with, and what a plain CUDA
/// program or a stage in the simulator is told. All of them have 65536 registers in a multiprocessor, at most 255 for a
/// thread and 1024 threads in a block: what fits one of them in these fits all.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace convladder {

/// A GPU's specification.
struct Gpu {
  std::string_view name;       ///< without "NVIDIA"
  std::string_view full_name;  ///< as cudaGetDeviceProperties gives it
  int compute_capability;      ///< 10 * major + minor
  int multiprocessors;
  int shared_kib;  ///< the most shared memory that one block may have
  int shared_of_multiprocessor_kib;
  int l2_kib;
  int memory_gib;
  int threads_of_multiprocessor;  ///< the most that are resident
  int blocks_of_multiprocessor;   ///< likewise
  int clock_mhz, memory_clock_mhz, memory_bus_bits;
};

/// All of them, the oldest first.
std::span<const Gpu> gpus();
/// One of them: letters of either case, blanks and "NVIDIA GeForce" do not matter. Null if there is none.
const Gpu* find_gpu(std::string_view name);

}  // namespace convladder
