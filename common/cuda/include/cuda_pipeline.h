/// @file
/// Asynchronous copies to shared memory (cp.async) under CUDA's own names: the primitives.
#pragma once
#include "common/cuda/include/cuda_runtime.h"

/// @cond
__forceinline__ void __pipeline_memcpy_async(void* shared, const void* global, size_t bytes, size_t zeros = 0) {
  simt::copy_async(shared, global, static_cast<unsigned>(bytes), static_cast<unsigned>(bytes - zeros));
}
__forceinline__ void __pipeline_commit() { simt::commit_copies(); }
__forceinline__ void __pipeline_wait_prior(unsigned pending) { simt::wait_copies(pending); }
/// @endcond
