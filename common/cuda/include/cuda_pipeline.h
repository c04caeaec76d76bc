/// @file
/// Asynchronous copies to shared memory (cp.async) under CUDA's own names: the primitives.
#pragma once
#include "common/cuda/include/cuda_runtime.h"

/// @cond
__forceinline__ void __pipeline_memcpy_async(void* shared, const void* global, size_t bytes, size_t zeros = 0) {
  if (zeros != 0 && zeros != bytes) __builtin_trap();  // a part of a copy is not simulated
  simt::copy_async(shared, global, static_cast<unsigned>(bytes), zeros == 0);
}
__forceinline__ void __pipeline_commit() { simt::commit_copies(); }
__forceinline__ void __pipeline_wait_prior(unsigned pending) { simt::wait_copies(pending); }
/// @endcond
