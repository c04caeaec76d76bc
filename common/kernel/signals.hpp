/// @file
/// Signals: numbers in device memory by which kernels of one GPU tell those of another one what is over. Include it
/// after kernel.hpp.
#pragma once
#include "common/kernel/kernel.hpp"

namespace convladder {

/// Stores a signal, of this GPU or of another one. Whoever loads it by load_signal() sees all that this thread has
/// written or read before, and all that it knows of: earlier kernels, other signals, other threads by a barrier.
/// `st.release.sys`.
__device__ __forceinline__ void store_signal(unsigned* signal, unsigned value) {
#if defined(__CUDACC__)
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(signal), "r"(value) : "memory");
#else
  simt::store_signal(signal, value);
#endif
}

/// Loads a signal. What this thread does afterwards comes after all that the storing thread did before; other threads
/// of the block know it after a barrier. `ld.acquire.sys`.
__device__ __forceinline__ unsigned load_signal(const unsigned* signal) {
#if defined(__CUDACC__)
  unsigned value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(signal) : "memory");
  return value;
#else
  return simt::load_signal(signal);
#endif
}

}  // namespace convladder
