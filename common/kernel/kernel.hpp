/// @file
/// The one header through which a kernel file meets the GPU: under nvcc thin aliases over the CUDA runtime, under a
/// host compiler the SIMT simulator. The same source compiles both ways.
///
/// Kernels that are compiled when the program runs (compiled_kernel.hpp) include it too, and see no host code.
///
// clang-format off
/// @file
/// | here | CUDA |
/// | --- | --- |
/// | `launch(kernel, grid, block, shared_bytes, stream)(args...)` | `kernel<<<grid, block, shared_bytes, stream>>>(args...)`, checked |
/// | `launch(..., stream, cluster)(args...)` | `cudaLaunchKernelEx` with `cudaLaunchAttributeClusterDimension` |
/// | `dynamic_shared<T>()` | `extern __shared__ T name[]` |
/// | `upload_constant(symbol, device_pointer, count, stream)` | `cudaMemcpyToSymbolAsync` |
/// | `copy_async<bytes>(shared, global, inside)` | `cp.async`: 4, 8 or 16 bytes, zeros where `inside` is false; 16 bytes pass L1 by, but for `copy_async<16, true>` |
/// | `max_or_nan(a, b)` | `max.NaN.f32` |
/// | `commit_copies()`, `wait_copies<pending>()` | `cp.async.commit_group`, `cp.async.wait_group pending` |
/// | `UNROLL`, `UNROLL_BY(n)` before a loop | `#pragma unroll`, `#pragma unroll n` |
// clang-format on
#pragma once
#if defined(__CUDACC_RTC__)
#include "common/stage/problem.hpp"
#else
#include "common/stage/stage.hpp"
#endif

#if defined(__CUDACC__)

#if !defined(__CUDACC_RTC__)
#include <cuda_runtime.h>

#include <cstddef>
#include <utility>
#endif

/// @cond
#define CONVLADDER_PRAGMA(text) _Pragma(#text)
#define UNROLL CONVLADDER_PRAGMA(unroll)
#define UNROLL_BY(n) CONVLADDER_PRAGMA(unroll n)
/// @endcond

namespace convladder {

/// The block's dynamic shared memory, 32-byte aligned, as WMMA wants it.
template <class T>
__device__ __forceinline__ T* dynamic_shared() {
  extern __shared__ __align__(32) unsigned char convladder_dynamic_shared[];
  return reinterpret_cast<T*>(convladder_dynamic_shared);
}

/// The larger of two numbers; NaN where one of them is, unlike fmaxf().
__device__ __forceinline__ float max_or_nan(float a, float b) {
#if __CUDA_ARCH__ >= 800
  float larger;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
  return larger;
#else
  return a != a || a > b ? a : b;
#endif
}

/// Starts a copy from global to shared memory that no register takes part in. It goes on while the thread does other
/// work, until wait_copies(); before sm_80 it is a load and a store, made at once.
/// @tparam Bytes 4, 8 or 16; both addresses are multiples of it
/// @tparam ThroughL1 whether they stay in L1, for other copies that read them soon; fewer than 16 always do
/// @param inside false: zeros are written, and `global` is not read, so it may lie outside of every tensor
template <int Bytes, bool ThroughL1 = (Bytes < 16)>
__device__ __forceinline__ void copy_async(void* shared, const void* global, bool inside = true) {
  static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16, "copy_async copies 4, 8 or 16 bytes");
  static_assert(ThroughL1 || Bytes == 16, "only copies of 16 bytes can pass L1 by");
#if __CUDA_ARCH__ >= 800
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  const int from_global = inside ? Bytes : 0;  // the rest is filled with zeros
  if constexpr (!ThroughL1)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(global), "r"(from_global) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(global), "n"(Bytes), "r"(from_global)
                 : "memory");
#else
  if constexpr (Bytes == 16)
    *static_cast<uint4*>(shared) = inside ? *static_cast<const uint4*>(global) : make_uint4(0, 0, 0, 0);
  else if constexpr (Bytes == 8)
    *static_cast<uint2*>(shared) = inside ? *static_cast<const uint2*>(global) : make_uint2(0, 0);
  else
    *static_cast<unsigned*>(shared) = inside ? *static_cast<const unsigned*>(global) : 0;
#endif
}

/// Makes one group of the copies that this thread has started since the last call, be there none.
__device__ __forceinline__ void commit_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/// Waits until all of this thread's groups but the newest `Pending` are complete. The thread then sees what it has
/// copied itself; others see it after a barrier that follows. Copies that commit_copies() has not closed are not
/// waited for.
template <int Pending>
__device__ __forceinline__ void wait_copies() {
  static_assert(Pending >= 0, "the number of groups that may be unfinished");
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
#endif
}

#if !defined(__CUDACC_RTC__)

/// Throws if the last launch failed; notes the kernel for the report's registers and occupancy. In device_gpu.cu.
void finish_launch(const void* kernel, dim3 block, std::size_t shared_bytes);
/// Lets the kernel take more than 48 KB of dynamic shared memory. In device_gpu.cu.
void allow_shared_bytes(const void* kernel, std::size_t shared_bytes);
/// Throws if `status` is an error, naming `what` failed. In device_gpu.cu.
void check_cuda(cudaError_t status, const char* what);

/// A kernel with its launch configuration: what launch() makes.
template <class... Parameters>
struct Launch {
  void (*kernel)(Parameters...);
  dim3 grid, block;
  std::size_t shared_bytes;
  Stream stream;
  dim3 cluster;

  /// Starts the kernel. @throws DeviceError if CUDA refuses the launch
  template <class... Arguments>
  void operator()(Arguments&&... arguments) const {
    const void* address = reinterpret_cast<const void*>(kernel);
    if (shared_bytes > 48 * 1024) allow_shared_bytes(address, shared_bytes);
    if (cluster.x * cluster.y * cluster.z == 1) {
      kernel<<<grid, block, shared_bytes, stream>>>(static_cast<Parameters>(std::forward<Arguments>(arguments))...);
    } else {
      cudaLaunchAttribute attribute{};
      attribute.id = cudaLaunchAttributeClusterDimension;
      attribute.val.clusterDim = {cluster.x, cluster.y, cluster.z};
      cudaLaunchConfig_t configuration{grid, block, shared_bytes, stream, &attribute, 1};
      check_cuda(
          cudaLaunchKernelEx(&configuration, kernel, static_cast<Parameters>(std::forward<Arguments>(arguments))...),
          "launch of a kernel in clusters of several blocks");
    }
    finish_launch(address, block, shared_bytes);
  }
};

/// Starts a kernel: `launch(kernel, grid, block, shared_bytes, stream)(arguments...)`.
/// @param shared_bytes dynamic shared memory of one block
/// @param cluster blocks that run at once and reach each other's shared memory; a divisor of the grid (sm_90)
template <class... Parameters>
Launch<Parameters...> launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes,
                             Stream stream, dim3 cluster = {}) {
  return {kernel, grid, block, shared_bytes, stream, cluster};
}

/// Copies `count` elements from device memory into a `__constant__` array.
template <class T, std::size_t N>
void upload_constant(T (&symbol)[N], const T* source, std::size_t count, Stream stream) {
  check_cuda(cudaMemcpyToSymbolAsync(symbol, source, count * sizeof(T), 0, cudaMemcpyDeviceToDevice, stream),
             "upload to constant memory");
}

#endif

}  // namespace convladder

#else

#include "common/simt/simt.hpp"

/// @cond
// The library's own would not be observed.
#define memcpy(to, from, bytes) ::simt::copy_memory(to, from, bytes)
#define memmove(to, from, bytes) ::simt::copy_memory(to, from, bytes)
#define memset(to, value, bytes) ::simt::set_memory(to, value, bytes)
/// @endcond

#endif
