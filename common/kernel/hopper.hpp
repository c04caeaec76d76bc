/// @file
/// The instructions of sm_90 for kernels, by name: PTX under nvcc, the simulator's own (simt/hopper.hpp) elsewhere. In
/// the project, include it after kernel.hpp. docs/simulator.md tells what the simulator checks.
///
/// To use it in a project of your own, copy this one file: under nvcc it needs the CUDA Toolkit and C++17, and nothing
/// of ConvLadder (MIT License, Copyright (c) 2026 the ConvLadder developers). No library is to be linked: the driver's
/// function for tensor maps is found at run time. The programs in examples/ are made so.
///
/// A kernel takes a TensorMap as a parameter `const __grid_constant__ TensorMap map`. All else needs sm_90, wgmma and
/// setmaxnreg sm_90a: code for another GPU compiles, and traps. Floats become bf16 or TF32 by bf16_tf32.hpp.
///
/// What waits for what:
/// - mbarrier_init() and fence_mbarrier_init() by one thread, a barrier of the block, then all else.
/// - Stores to shared memory, fence_async_proxy() by each thread that stored, a barrier; then wgmma(), a copy.
/// - mbarrier_expect(), bulk_load() or tensor_load() by one thread; mbarrier_wait() by all that read the bytes.
/// - tensor_store() or bulk_store(), bulk_commit() by one thread; then its bulk_wait_read() before shared memory is
///   written again, and its bulk_wait() before anybody reads global memory.
/// - wgmma_fence(), wgmma(), wgmma_commit(), wgmma_wait() by the whole warpgroup; then sums may be read, and operands
///   written.
///
// clang-format off
/// @file
/// | here | PTX |
/// | --- | --- |
/// | `mbarrier_init`, `fence_mbarrier_init` | `mbarrier.init`, `fence.mbarrier_init.release.cluster` |
/// | `mbarrier_arrive`, `mbarrier_expect`, `mbarrier_wait` | `mbarrier.arrive`, `.arrive.expect_tx`, `.try_wait.parity` in a loop |
/// | `fence_async_proxy` | `fence.proxy.async.shared::cta` |
/// | `named_barrier_sync`, `named_barrier_arrive` | `bar.sync`, `bar.arrive` |
/// | `cluster_rank`, `cluster_arrive`, `cluster_arrive_relaxed`, `cluster_wait` | `%cluster_ctarank`, `barrier.cluster.arrive`, `.arrive.relaxed`, `.wait` |
/// | `cluster_copy` | `mapa` and `cp.async.bulk`, from shared memory |
/// | `encode_tensor_map` | none: the driver's `cuTensorMapEncodeTiled` or `cuTensorMapEncodeIm2col`, on the host |
/// | `prefetch_tensor_map` | `prefetch.tensormap` |
/// | `bulk_load`, `tensor_load` | `cp.async.bulk`, `cp.async.bulk.tensor`, complete at an mbarrier |
/// | `im2col_load` | `cp.async.bulk.tensor`, `.im2col` |
/// | `bulk_prefetch` | `cp.async.bulk.prefetch.L2` |
/// | `bulk_store`, `tensor_store`, `bulk_commit`, `bulk_wait_read`, `bulk_wait` | `cp.async.bulk`, `cp.async.bulk.tensor`, `.commit_group`, `.wait_group.read`, `.wait_group` |
/// | `wgmma<N>`, `wgmma<N, Bf16>`, `wgmma<N, Tf32>` | `wgmma.mma_async` of halves or, into `int`, of bytes; of bf16; of TF32 |
/// | `wgmma_fence`, `wgmma_commit`, `wgmma_wait` | `wgmma.fence`, `.commit_group`, `.wait_group` |
/// | `set_max_registers_increase`, `set_max_registers_decrease` | `setmaxnreg` |
// clang-format on
#pragma once
#include <cstdint>

#if defined(__CUDACC__) && !defined(SIMT_PLAIN_CUDA)
#if !defined(__CUDACC_RTC__)
#include <cuda.h>
#include <cuda_runtime.h>
#endif

#if __has_include("common/kernel/kernel.hpp")
#include "common/kernel/kernel.hpp"
#include "common/stage/tensor_map.hpp"
#else
/// @cond
// The same text as in tensor_map.hpp, for this file alone.
namespace convladder {

/// Type of a tensor's elements.
enum class TensorElement {
  int8,   ///< 1 byte
  fp16,   ///< 2 bytes
  int32,  ///< 4 bytes
  fp32,   ///< 4 bytes
};

/// How a copied box lies in shared memory: 16-byte pieces are exchanged, so that neighbouring rows meet in different
/// banks. A piece's number within its span is XORed with the number of its 128-byte line.
enum class Swizzle {
  none,      ///< as it is
  bytes64,   ///< rows of 64 bytes: 4 pieces exchanged
  bytes128,  ///< rows of 128 bytes: 8 pieces exchanged
};

/// One dimension of a tensor.
struct TensorDimension {
  std::uint64_t size;    ///< in elements
  std::uint64_t stride;  ///< bytes from one index to the next
  unsigned box;          ///< elements that one copy spans
  unsigned step = 1;     ///< of these every first, second, ... to eighth is copied; 1 in the innermost dimension
};

/// A tensor in global memory, and what of it one copy moves: a box, or a column of pixels as a convolution's matrix has
/// them (im2col). Such a tensor has channels, 1 to 3 dimensions of space and images. A column takes `pixels` pixels, by
/// `step` in each dimension of space, row after row and image after image; of each its channels, box of dimension 0.
/// All lie where a filter's first element meets the image: from `lower` to the dimension's last index + `upper`. For a
/// filter of s elements and padding p these are -p and p - (s - 1).
struct TensorForm {
  TensorElement element;
  Swizzle swizzle;
  int rank;                       ///< 1 to 5; 3 to 5 for columns
  TensorDimension dimensions[5];  ///< the innermost first; for columns: channels, width, height, depth, images
  unsigned pixels = 0;            ///< of a column, 1 to 1024; 0: a copy moves a box
  int lower[3] = {};              ///< for columns: of width, height, depth
  int upper[3] = {};              ///< likewise
};

}  // namespace convladder

/// @endcond
#endif

/// @cond
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define CONVLADDER_SM90(...) asm volatile(__VA_ARGS__)
#else
#define CONVLADDER_SM90(...) __trap()
#endif
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define CONVLADDER_SM90A(...) asm volatile(__VA_ARGS__)
#else
#define CONVLADDER_SM90A(...) __trap()
#endif
/// @endcond

namespace convladder {

/// A barrier in shared memory with phases: one ends when its arrivals and the bytes that it expects have come.
using Mbarrier = std::uint64_t;

/// What wgmma multiplies: halves.
struct Fp16 {};
/// bfloat16, the upper half of a float: 8 bits of exponent, 7 of fraction.
struct Bf16 {};
/// Floats in 4 bytes, of which the upper 19 bits count: 8 of exponent, 10 of fraction. The rest is as good as zero, so
/// that a float that is no TF32 is cut towards zero.
struct Tf32 {};

/// For which N there is a wgmma of bytes.
template <int N>
constexpr bool kWgmmaBytes = N >= 8 && N <= 256 && (N % 16 == 0 || N == 8 || N == 24);

#if defined(__CUDACC_RTC__)
/// A tensor in global memory: kernels that are compiled when the program runs get it made.
struct alignas(64) TensorMap {
  /// @cond
  unsigned char encoded[128];
  /// @endcond
};
#else
/// A tensor in global memory, for tensor_load() and tensor_store().
struct TensorMap {
  /// @cond
  CUtensorMap encoded;
  /// @endcond
};

/// @cond
/// A function of the driver, which is asked at run time; null where it has none.
template <class Function>
Function* driver_function(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
#if CUDART_VERSION >= 12050
  cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found);
#else
  cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &found);
#endif
  return reinterpret_cast<Function*>(function);
}
/// @endcond

/// Describes a tensor to TMA, on the host: `cuTensorMapEncodeTiled`, or for columns of pixels
/// `cuTensorMapEncodeIm2col`; the driver is asked for it at run time.
/// @param global its address on the device, a multiple of 16
/// @return cudaErrorNotSupported where the driver has no tensor maps; cudaErrorInvalidValue where it refuses the form
inline cudaError_t encode_tensor_map(TensorMap* map, const void* global, const TensorForm& form) {
  static const auto encode = driver_function<decltype(cuTensorMapEncodeTiled)>("cuTensorMapEncodeTiled");
  static const auto encode_columns = driver_function<decltype(cuTensorMapEncodeIm2col)>("cuTensorMapEncodeIm2col");
  if (!encode || !encode_columns) return cudaErrorNotSupported;
  // In the order of TensorElement (bytes are moved as they are) and of Swizzle.
  constexpr CUtensorMapDataType kTypes[] = {CU_TENSOR_MAP_DATA_TYPE_UINT8, CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
                                            CU_TENSOR_MAP_DATA_TYPE_INT32, CU_TENSOR_MAP_DATA_TYPE_FLOAT32};
  constexpr CUtensorMapSwizzle kSwizzles[] = {CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_SWIZZLE_64B,
                                              CU_TENSOR_MAP_SWIZZLE_128B};
  cuuint64_t sizes[5] = {}, strides[5] = {};
  cuuint32_t box[5] = {}, steps[5] = {1, 1, 1, 1, 1};
  for (int i = 0; i < form.rank; ++i) {
    sizes[i] = form.dimensions[i].size;
    box[i] = form.dimensions[i].box;
    steps[i] = form.dimensions[i].step;
    if (i > 0) strides[i - 1] = form.dimensions[i].stride;
  }
  const CUtensorMapDataType type = kTypes[static_cast<int>(form.element)];
  const CUtensorMapSwizzle swizzle = kSwizzles[static_cast<int>(form.swizzle)];
  const auto rank = static_cast<cuuint32_t>(form.rank);
  void* const address = const_cast<void*>(global);
  const CUresult status =
      form.pixels > 0
          ? encode_columns(&map->encoded, type, rank, address, sizes, strides, form.lower, form.upper, box[0],
                           form.pixels, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                           CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)
          : encode(&map->encoded, type, rank, address, sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                   swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return static_cast<cudaError_t>(status);  // the same numbers
}

#endif

/// @cond
__device__ __forceinline__ unsigned shared_address(const void* shared) {
  return static_cast<unsigned>(__cvta_generic_to_shared(shared));
}
/// @endcond

/// The block's dynamic shared memory, 1024-byte aligned, as swizzled operands want it.
template <class T>
__device__ __forceinline__ T* dynamic_shared_1024() {
  extern __shared__ __align__(1024) unsigned char convladder_dynamic_shared_1024[];
  return reinterpret_cast<T*>(convladder_dynamic_shared_1024);
}

// ---- Barriers ------------------------------------------------------------------------------------------------------

/// `mbarrier.init.shared::cta.b64`: makes a barrier, in shared memory, at a multiple of 8 bytes. By one thread, which
/// calls fence_mbarrier_init() next; others use the barrier after a block barrier.
/// @param barrier 8 bytes that nothing else writes  @param arrivals that end a phase: 1 to 2^20 - 1
__device__ __forceinline__ void mbarrier_init(Mbarrier* barrier, int arrivals) {
  CONVLADDER_SM90("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
}
/// `fence.mbarrier_init.release.cluster`: makes the thread's mbarrier_init() visible to copies, which write through the
/// asynchronous proxy. Between the initialisation and the first copy; waits for nothing else.
__device__ __forceinline__ void fence_mbarrier_init() {
  CONVLADDER_SM90("fence.mbarrier_init.release.cluster;" ::: "memory");
}
/// `mbarrier.arrive.shared::cta.b64`: one arrival in the present phase. What the thread did before it is visible to
/// those that wait for the phase. Does not wait.
__device__ __forceinline__ void mbarrier_arrive(Mbarrier* barrier) {
  CONVLADDER_SM90("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}
/// `mbarrier.arrive.expect_tx.shared::cta.b64`: one arrival; the phase also waits for copies of so many bytes. By the
/// thread that starts the copies, before them. Does not wait.
/// @param bytes of all copies that will complete at the barrier in this phase, up to 2^20 - 1
__device__ __forceinline__ void mbarrier_expect(Mbarrier* barrier, int bytes) {
  CONVLADDER_SM90("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
                  : "memory");
}
/// `mbarrier.try_wait.parity.shared::cta.b64`, again and again: waits until the present phase is not one of this
/// parity: until phase 0, 2, ... has ended for 0, and 1, 3, ... for 1. Of a new barrier, 1 passes at once. Then the
/// thread sees the bytes of the phase's copies, and what threads did before they arrived. By each thread that reads
/// them.
/// @param parity of the phase: its number modulo 2
__device__ __forceinline__ void mbarrier_wait(Mbarrier* barrier, int parity) {
  unsigned done = 1;
  do {
    CONVLADDER_SM90(
        "{\n.reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.b32 %0, 1, 0, p;\n}"
        : "=r"(done)
        : "r"(shared_address(barrier)), "r"(parity)
        : "memory");
  } while (!done);
}
/// `fence.proxy.async.shared::cta`: what the thread has written to shared memory, or knows of, becomes visible to wgmma
/// and to copies that start later. By each thread that wrote, before the barrier that leads to the wgmma or the copy.
__device__ __forceinline__ void fence_async_proxy() { CONVLADDER_SM90("fence.proxy.async.shared::cta;" ::: "memory"); }
/// `bar.sync id, threads`: a barrier for some warps of the block. Waits until `threads` have come, here or by
/// named_barrier_arrive(); then all of them see what the others did before.
/// @param id 1 to 15: 0 is that of __syncthreads()  @param threads a multiple of 32, the same in all calls
__device__ __forceinline__ void named_barrier_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
/// `bar.arrive id, threads`: the same without waiting, for a thread that only hands something on.
__device__ __forceinline__ void named_barrier_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// ---- Clusters ------------------------------------------------------------------------------------------------------

/// `%cluster_ctarank`: the number of the block in its cluster.
__device__ __forceinline__ unsigned cluster_rank() {
  unsigned rank = 0;
  CONVLADDER_SM90("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
/// `barrier.cluster.arrive.release.aligned`: tells the blocks of the cluster that the thread has come. By whole warps;
/// does not wait.
__device__ __forceinline__ void cluster_arrive() {
  CONVLADDER_SM90("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
/// `barrier.cluster.arrive.relaxed.aligned`: the same, but what the thread wrote is not made known. Where that is not
/// wanted it saves a fence of the whole GPU, `MEMBAR.ALL.GPU`, which ptxas makes of the release.
__device__ __forceinline__ void cluster_arrive_relaxed() {
  CONVLADDER_SM90("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
/// `barrier.cluster.wait.acquire.aligned`: waits until all threads of the cluster have come by cluster_arrive(), or
/// have ended; then sees what they did before, in shared memory too. By whole warps that have come themselves.
__device__ __forceinline__ void cluster_wait() {
  CONVLADDER_SM90("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
/// `mapa`, `cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes`: starts a copy to this place in the
/// shared memory of another block of the cluster, by one thread, after fence_async_proxy() by each thread that wrote
/// the bytes and a barrier. Its end counts at that block's barrier: mbarrier_wait() there before the bytes are read.
/// That block has begun, and this one has not ended before.
/// @param to, barrier named as in this block; `to` is a multiple of 16  @param from a multiple of 16  @param bytes a
/// multiple of 16, which mbarrier_expect() has announced there
__device__ __forceinline__ void cluster_copy(void* to, int rank, const void* from, int bytes, Mbarrier* barrier) {
  CONVLADDER_SM90(
      "{\n.reg .b32 there, barrier;\n"
      "mapa.shared::cluster.u32 there, %0, %4;\n"
      "mapa.shared::cluster.u32 barrier, %3, %4;\n"
      "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [there], [%1], %2, [barrier];\n}" ::"r"(
          shared_address(to)),
      "r"(shared_address(from)), "r"(bytes), "r"(shared_address(barrier)), "r"(rank)
      : "memory");
}

// ---- Bulk copies ---------------------------------------------------------------------------------------------------

/// `cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes`: starts a copy to shared memory, by one thread.
/// Its end counts at the barrier, for the phase that is then present: mbarrier_wait() before the bytes are read.
/// @param shared, global multiples of 16  @param bytes a multiple of 16, which mbarrier_expect() has announced
__device__ __forceinline__ void bulk_load(void* shared, const void* global, int bytes, Mbarrier* barrier) {
  CONVLADDER_SM90("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                      shared_address(shared)),
                  "l"(global), "r"(bytes), "r"(shared_address(barrier))
                  : "memory");
}
/// `cp.async.bulk.prefetch.L2.global`: has `bytes` of global memory brought to L2, by one thread; address and size are
/// multiples of 16. Nothing tells when they are there, and nothing need be waited for.
__device__ __forceinline__ void bulk_prefetch(const void* global, int bytes) {
  CONVLADDER_SM90("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(global), "r"(bytes) : "memory");
}

/// `prefetch.tensormap`: has the map brought to where TMA keeps maps, by one thread, so that the first copy by it need
/// not wait for it. Nothing need be waited for.
/// @param map a `__grid_constant__` parameter of the kernel
__device__ __forceinline__ void prefetch_tensor_map(const TensorMap& map) {
  CONVLADDER_SM90("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

/// `cp.async.bulk.tensor.1d` to `.5d`, `.shared::cluster.global.tile.mbarrier::complete_tx::bytes`: starts a copy of
/// the map's box to shared memory, by one thread; zeros where the box lies outside the tensor. Its end counts at the
/// barrier, with all bytes of the box, zeros included: mbarrier_wait() before they are read.
/// @param shared a multiple of 128 bytes; with a swizzle of 512 or 1024, so that its pattern begins with the box @param
/// map a parameter of the kernel, `const __grid_constant__ TensorMap`  @param barrier where mbarrier_expect() has
/// announced the bytes
/// @param coordinates of the box's first element, the innermost first and a multiple of 16 bytes; negative ones are
/// outside
template <class... Coordinates>
__device__ __forceinline__ void tensor_load(void* shared, const TensorMap& map, Mbarrier* barrier,
                                            Coordinates... coordinates) {
  const int at[] = {static_cast<int>(coordinates)...};
  const unsigned to = shared_address(shared), bar = shared_address(barrier);
  constexpr int kRank = sizeof...(coordinates);
  static_assert(kRank <= 5, "a tensor has up to 5 dimensions");
  if constexpr (kRank == 1)
    CONVLADDER_SM90(
        "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3}], "
        "[%2];" ::"r"(to),
        "l"(&map), "r"(bar), "r"(at[0])
        : "memory");
  else if constexpr (kRank == 2)
    CONVLADDER_SM90(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], "
        "[%2];" ::"r"(to),
        "l"(&map), "r"(bar), "r"(at[0]), "r"(at[1])
        : "memory");
  else if constexpr (kRank == 3)
    CONVLADDER_SM90(
        "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], "
        "[%2];" ::"r"(to),
        "l"(&map), "r"(bar), "r"(at[0]), "r"(at[1]), "r"(at[2])
        : "memory");
  else if constexpr (kRank == 4)
    CONVLADDER_SM90(
        "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, "
        "%6}], "
        "[%2];" ::"r"(to),
        "l"(&map), "r"(bar), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3])
        : "memory");
  else if constexpr (kRank == 5)
    CONVLADDER_SM90(
        "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6, "
        "%7}], "
        "[%2];" ::"r"(to),
        "l"(&map), "r"(bar), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "r"(at[4])
        : "memory");
}

/// `cp.async.bulk.tensor.3d` to `.5d`, `.im2col`: starts a copy of a column of pixels to shared memory, by one thread;
/// zeros where a pixel lies outside the tensor. The map's form has `pixels`. Its end counts as that of tensor_load().
/// @param shared, map, barrier as of tensor_load()
/// @param offsets of the filter's element, which is added to each pixel's place: in width, height, depth
/// @param coordinates of the first pixel: channel (a multiple of 16 bytes), width, height, depth, image; between the
/// map's corners
template <class... Coordinates>
__device__ __forceinline__ void im2col_load(void* shared, const TensorMap& map, Mbarrier* barrier,
                                            const int (&offsets)[sizeof...(Coordinates) - 2],
                                            Coordinates... coordinates) {
  const int at[] = {static_cast<int>(coordinates)...};
  const unsigned to = shared_address(shared), bar = shared_address(barrier);
  constexpr int kRank = sizeof...(coordinates);
  static_assert(kRank >= 3 && kRank <= 5, "a tensor of columns has 3 to 5 dimensions");
  const auto offset = [&](int i) { return static_cast<unsigned short>(offsets[i]); };
  if constexpr (kRank == 3)
    CONVLADDER_SM90(
        "cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], "
        "[%2], {%6};" ::"r"(to),
        "l"(&map), "r"(bar), "r"(at[0]), "r"(at[1]), "r"(at[2]), "h"(offset(0))
        : "memory");
  else if constexpr (kRank == 4)
    CONVLADDER_SM90(
        "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, "
        "%6}], [%2], {%7, %8};" ::"r"(to),
        "l"(&map), "r"(bar), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "h"(offset(0)), "h"(offset(1))
        : "memory");
  else
    CONVLADDER_SM90(
        "cp.async.bulk.tensor.5d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, "
        "%6, %7}], [%2], {%8, %9, %10};" ::"r"(to),
        "l"(&map), "r"(bar), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "r"(at[4]), "h"(offset(0)), "h"(offset(1)),
        "h"(offset(2))
        : "memory");
}

/// `cp.async.bulk.tensor.1d` to `.5d`, `.global.shared::cta.tile.bulk_group`: starts a copy of the map's box from
/// shared memory; what lies outside the tensor is left out, but in pieces of 16 bytes: where the innermost dimension is
/// no multiple of that, what follows it is overwritten up to the next. By one thread, after fence_async_proxy() by all
/// that wrote the box and a barrier. bulk_commit() follows, and bulk_wait_read() tells when shared memory may be
/// written again.
/// @param shared as of tensor_load()  @param coordinates as of tensor_load(), but not negative: GPUs take that for an
/// illegal instruction
template <class... Coordinates>
__device__ __forceinline__ void tensor_store(const TensorMap& map, const void* shared, Coordinates... coordinates) {
  const int at[] = {static_cast<int>(coordinates)...};
  const unsigned from = shared_address(shared);
  constexpr int kRank = sizeof...(coordinates);
  static_assert(kRank <= 5, "a tensor has up to 5 dimensions");
  if constexpr (kRank == 1)
    CONVLADDER_SM90("cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%1, {%2}], [%0];" ::"r"(from),
                    "l"(&map), "r"(at[0])
                    : "memory");
  else if constexpr (kRank == 2)
    CONVLADDER_SM90("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%1, {%2, %3}], [%0];" ::"r"(from),
                    "l"(&map), "r"(at[0]), "r"(at[1])
                    : "memory");
  else if constexpr (kRank == 3)
    CONVLADDER_SM90("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%1, {%2, %3, %4}], [%0];" ::"r"(from),
                    "l"(&map), "r"(at[0]), "r"(at[1]), "r"(at[2])
                    : "memory");
  else if constexpr (kRank == 4)
    CONVLADDER_SM90(
        "cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%1, {%2, %3, %4, %5}], [%0];" ::"r"(from),
        "l"(&map), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3])
        : "memory");
  else if constexpr (kRank == 5)
    CONVLADDER_SM90(
        "cp.async.bulk.tensor.5d.global.shared::cta.tile.bulk_group [%1, {%2, %3, %4, %5, %6}], [%0];" ::"r"(from),
        "l"(&map), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "r"(at[4])
        : "memory");
}

/// `cp.async.bulk.global.shared::cta.bulk_group`: starts a copy from shared memory, by one thread, after
/// fence_async_proxy() by each thread that wrote the bytes and a barrier. bulk_commit() follows, as after
/// tensor_store().
/// @param global, shared multiples of 16  @param bytes a multiple of 16
__device__ __forceinline__ void bulk_store(void* global, const void* shared, int bytes) {
  CONVLADDER_SM90("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(global),
                  "r"(shared_address(shared)), "r"(bytes)
                  : "memory");
}
/// `cp.async.bulk.commit_group`: makes one group of the copies from shared memory that this thread has started since
/// the last call. Does not wait.
__device__ __forceinline__ void bulk_commit() { CONVLADDER_SM90("cp.async.bulk.commit_group;" ::: "memory"); }
/// `cp.async.bulk.wait_group.read`: waits until all of this thread's groups but the newest `Pending` have read shared
/// memory, which may then be written again.
template <int Pending>
__device__ __forceinline__ void bulk_wait_read() {
  CONVLADDER_SM90("cp.async.bulk.wait_group.read %0;" ::"n"(Pending) : "memory");
}
/// `cp.async.bulk.wait_group`: waits until they are complete, and what they wrote to global memory is visible to the
/// thread.
template <int Pending>
__device__ __forceinline__ void bulk_wait() {
  CONVLADDER_SM90("cp.async.bulk.wait_group %0;" ::"n"(Pending) : "memory");
}

// ---- Matrix products of a warpgroup --------------------------------------------------------------------------------

/// An operand of wgmma(), no instruction: describes a matrix in dynamic shared memory. Rows of A, or columns of B, lie
/// one after another, each 64 or 128 bytes along the sum, swizzled as tensor_load() leaves them. Add bytes / 16 to
/// begin elsewhere: by 32 bytes for the next step of the sum, by whole rows for other rows.
__device__ __forceinline__ std::uint64_t swizzled_descriptor(const void* shared, Swizzle swizzle) {
  const std::uint64_t address = (shared_address(shared) & 0x3ffff) >> 4;
  return swizzle == Swizzle::bytes64 ? address | 1ull << 16 | 32ull << 32 | 2ull << 62
                                     : address | 1ull << 16 | 64ull << 32 | 1ull << 62;
}
/// The same for a matrix without a swizzle, in core matrices of 8 rows of 16 bytes, each 128 bytes without gaps.
/// @param across_bytes to the core matrix of the next 16 bytes along the sum  @param down_bytes to that of the next 8
/// rows
__device__ __forceinline__ std::uint64_t plain_descriptor(const void* shared, int across_bytes, int down_bytes) {
  return (shared_address(shared) & 0x3ffff) >> 4 | static_cast<std::uint64_t>(across_bytes >> 4) << 16 |
         static_cast<std::uint64_t>(down_bytes >> 4) << 32;
}

/// `wgmma.fence.sync.aligned`: orders what the warpgroup did with its registers before the wgmmas that follow. Before
/// the first, and after each access to their accumulators or to registers of A.
__device__ __forceinline__ void wgmma_fence() { CONVLADDER_SM90A("wgmma.fence.sync.aligned;" ::: "memory"); }
/// `wgmma.commit_group.sync.aligned`: makes one group of the warpgroup's wgmmas since the last call. Does not wait.
__device__ __forceinline__ void wgmma_commit() { CONVLADDER_SM90A("wgmma.commit_group.sync.aligned;" ::: "memory"); }
/// `wgmma.wait_group.sync.aligned`: waits until all groups but the newest `Pending` are complete. Then accumulators
/// hold their sums, and operands may be overwritten. pin() the accumulators next.
template <int Pending>
__device__ __forceinline__ void wgmma_wait() {
  CONVLADDER_SM90A("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}

/// No instruction: keeps the compiler from moving accesses to these registers across this line. After wgmma_wait().
template <int Count>
__device__ __forceinline__ void pin(float (&d)[Count]) {
#pragma unroll
  for (int i = 0; i < Count; ++i) asm volatile("" : "+f"(d[i])::"memory");
}
/// The same for sums of bytes.
template <int Count>
__device__ __forceinline__ void pin(int (&d)[Count]) {
#pragma unroll
  for (int i = 0; i < Count; ++i) asm volatile("" : "+r"(d[i])::"memory");
}

/// @cond
// The operands of 4, 8, ... 128 accumulators.
#define CONVLADDER_D_QUAD(c, i) c(d[i]), c(d[i + 1]), c(d[i + 2]), c(d[i + 3])
#define CONVLADDER_D4(c) CONVLADDER_D_QUAD(c, 0)
#define CONVLADDER_D8(c) CONVLADDER_D4(c), CONVLADDER_D_QUAD(c, 4)
#define CONVLADDER_D12(c) CONVLADDER_D8(c), CONVLADDER_D_QUAD(c, 8)
#define CONVLADDER_D16(c) CONVLADDER_D12(c), CONVLADDER_D_QUAD(c, 12)
#define CONVLADDER_D20(c) CONVLADDER_D16(c), CONVLADDER_D_QUAD(c, 16)
#define CONVLADDER_D24(c) CONVLADDER_D20(c), CONVLADDER_D_QUAD(c, 20)
#define CONVLADDER_D28(c) CONVLADDER_D24(c), CONVLADDER_D_QUAD(c, 24)
#define CONVLADDER_D32(c) CONVLADDER_D28(c), CONVLADDER_D_QUAD(c, 28)
#define CONVLADDER_D36(c) CONVLADDER_D32(c), CONVLADDER_D_QUAD(c, 32)
#define CONVLADDER_D40(c) CONVLADDER_D36(c), CONVLADDER_D_QUAD(c, 36)
#define CONVLADDER_D44(c) CONVLADDER_D40(c), CONVLADDER_D_QUAD(c, 40)
#define CONVLADDER_D48(c) CONVLADDER_D44(c), CONVLADDER_D_QUAD(c, 44)
#define CONVLADDER_D52(c) CONVLADDER_D48(c), CONVLADDER_D_QUAD(c, 48)
#define CONVLADDER_D56(c) CONVLADDER_D52(c), CONVLADDER_D_QUAD(c, 52)
#define CONVLADDER_D60(c) CONVLADDER_D56(c), CONVLADDER_D_QUAD(c, 56)
#define CONVLADDER_D64(c) CONVLADDER_D60(c), CONVLADDER_D_QUAD(c, 60)
#define CONVLADDER_D68(c) CONVLADDER_D64(c), CONVLADDER_D_QUAD(c, 64)
#define CONVLADDER_D72(c) CONVLADDER_D68(c), CONVLADDER_D_QUAD(c, 68)
#define CONVLADDER_D76(c) CONVLADDER_D72(c), CONVLADDER_D_QUAD(c, 72)
#define CONVLADDER_D80(c) CONVLADDER_D76(c), CONVLADDER_D_QUAD(c, 76)
#define CONVLADDER_D84(c) CONVLADDER_D80(c), CONVLADDER_D_QUAD(c, 80)
#define CONVLADDER_D88(c) CONVLADDER_D84(c), CONVLADDER_D_QUAD(c, 84)
#define CONVLADDER_D92(c) CONVLADDER_D88(c), CONVLADDER_D_QUAD(c, 88)
#define CONVLADDER_D96(c) CONVLADDER_D92(c), CONVLADDER_D_QUAD(c, 92)
#define CONVLADDER_D100(c) CONVLADDER_D96(c), CONVLADDER_D_QUAD(c, 96)
#define CONVLADDER_D104(c) CONVLADDER_D100(c), CONVLADDER_D_QUAD(c, 100)
#define CONVLADDER_D108(c) CONVLADDER_D104(c), CONVLADDER_D_QUAD(c, 104)
#define CONVLADDER_D112(c) CONVLADDER_D108(c), CONVLADDER_D_QUAD(c, 108)
#define CONVLADDER_D116(c) CONVLADDER_D112(c), CONVLADDER_D_QUAD(c, 112)
#define CONVLADDER_D120(c) CONVLADDER_D116(c), CONVLADDER_D_QUAD(c, 116)
#define CONVLADDER_D124(c) CONVLADDER_D120(c), CONVLADDER_D_QUAD(c, 120)
#define CONVLADDER_D128(c) CONVLADDER_D124(c), CONVLADDER_D_QUAD(c, 124)
// Their names in the instruction.
#define CONVLADDER_R4 "%0, %1, %2, %3"
#define CONVLADDER_R8 CONVLADDER_R4 ", %4, %5, %6, %7"
#define CONVLADDER_R12 CONVLADDER_R8 ", %8, %9, %10, %11"
#define CONVLADDER_R16 CONVLADDER_R12 ", %12, %13, %14, %15"
#define CONVLADDER_R20 CONVLADDER_R16 ", %16, %17, %18, %19"
#define CONVLADDER_R24 CONVLADDER_R20 ", %20, %21, %22, %23"
#define CONVLADDER_R28 CONVLADDER_R24 ", %24, %25, %26, %27"
#define CONVLADDER_R32 CONVLADDER_R28 ", %28, %29, %30, %31"
#define CONVLADDER_R36 CONVLADDER_R32 ", %32, %33, %34, %35"
#define CONVLADDER_R40 CONVLADDER_R36 ", %36, %37, %38, %39"
#define CONVLADDER_R44 CONVLADDER_R40 ", %40, %41, %42, %43"
#define CONVLADDER_R48 CONVLADDER_R44 ", %44, %45, %46, %47"
#define CONVLADDER_R52 CONVLADDER_R48 ", %48, %49, %50, %51"
#define CONVLADDER_R56 CONVLADDER_R52 ", %52, %53, %54, %55"
#define CONVLADDER_R60 CONVLADDER_R56 ", %56, %57, %58, %59"
#define CONVLADDER_R64 CONVLADDER_R60 ", %60, %61, %62, %63"
#define CONVLADDER_R68 CONVLADDER_R64 ", %64, %65, %66, %67"
#define CONVLADDER_R72 CONVLADDER_R68 ", %68, %69, %70, %71"
#define CONVLADDER_R76 CONVLADDER_R72 ", %72, %73, %74, %75"
#define CONVLADDER_R80 CONVLADDER_R76 ", %76, %77, %78, %79"
#define CONVLADDER_R84 CONVLADDER_R80 ", %80, %81, %82, %83"
#define CONVLADDER_R88 CONVLADDER_R84 ", %84, %85, %86, %87"
#define CONVLADDER_R92 CONVLADDER_R88 ", %88, %89, %90, %91"
#define CONVLADDER_R96 CONVLADDER_R92 ", %92, %93, %94, %95"
#define CONVLADDER_R100 CONVLADDER_R96 ", %96, %97, %98, %99"
#define CONVLADDER_R104 CONVLADDER_R100 ", %100, %101, %102, %103"
#define CONVLADDER_R108 CONVLADDER_R104 ", %104, %105, %106, %107"
#define CONVLADDER_R112 CONVLADDER_R108 ", %108, %109, %110, %111"
#define CONVLADDER_R116 CONVLADDER_R112 ", %112, %113, %114, %115"
#define CONVLADDER_R120 CONVLADDER_R116 ", %116, %117, %118, %119"
#define CONVLADDER_R124 CONVLADDER_R120 ", %120, %121, %122, %123"
#define CONVLADDER_R128 CONVLADDER_R124 ", %124, %125, %126, %127"
template <int N, class Element>
struct Wgmma;
template <int N, class Element>
struct WgmmaOfRegisters;

// An instruction of `count` accumulators, with A described by a word. i0 to i2 are the numbers of the operands that
// follow the accumulators.
#define CONVLADDER_WGMMA(Element, T, c, n, count, type, scales, i0, i1, i2, ...)                                  \
  template <>                                                                                                     \
  struct Wgmma<n, Element> {                                                                                      \
    static __device__ __forceinline__ void run(T (&d)[count], std::uint64_t a, std::uint64_t b, int accumulate) { \
      CONVLADDER_SM90A("{\n.reg .pred p;\nsetp.ne.b32 p, %" #i2                                                   \
                       ", 0;\n"                                                                                   \
                       "wgmma.mma_async.sync.aligned.m64n" #n type " {" CONVLADDER_R##count "}, %" #i0 ", %" #i1  \
                                                                                            ", p" scales ";\n}"   \
                       : CONVLADDER_D##count(c)                                                                   \
                       : "l"(a), "l"(b), "r"(accumulate));                                                        \
    }                                                                                                             \
  };
// The same with A in registers: i0 to i5 follow.
#define CONVLADDER_WGMMA_REGISTERS(Element, T, c, n, count, type, scales, i0, i1, i2, i3, i4, i5)      \
  template <>                                                                                          \
  struct WgmmaOfRegisters<n, Element> {                                                                \
    static __device__ __forceinline__ void run(T (&d)[count], const unsigned (&a)[4], std::uint64_t b, \
                                               int accumulate) {                                       \
      CONVLADDER_SM90A("{\n.reg .pred p;\nsetp.ne.b32 p, %" #i5                                        \
                       ", 0;\n"                                                                        \
                       "wgmma.mma_async.sync.aligned.m64n" #n type " {" CONVLADDER_R##count            \
                       "}, {%" #i0 ", %" #i1 ", %" #i2 ", %" #i3 "}, %" #i4 ", p" scales ";\n}"        \
                       : CONVLADDER_D##count(c)                                                        \
                       : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));         \
    }                                                                                                  \
  };
#define CONVLADDER_WGMMA_FLOATS(n, count, ...)                                                    \
  CONVLADDER_WGMMA(Fp16, float, "+f", n, count, "k16.f32.f16.f16", ", 1, 1, 0, 0", __VA_ARGS__)   \
  CONVLADDER_WGMMA(Bf16, float, "+f", n, count, "k16.f32.bf16.bf16", ", 1, 1, 0, 0", __VA_ARGS__) \
  CONVLADDER_WGMMA(Tf32, float, "+f", n, count, "k8.f32.tf32.tf32", ", 1, 1", __VA_ARGS__)        \
  CONVLADDER_WGMMA_REGISTERS(Fp16, float, "+f", n, count, "k16.f32.f16.f16", ", 1, 1, 0", __VA_ARGS__)
#define CONVLADDER_WGMMA_ALL(n, count, ...)                                            \
  CONVLADDER_WGMMA_FLOATS(n, count, __VA_ARGS__)                                       \
  CONVLADDER_WGMMA(std::int8_t, int, "+r", n, count, "k32.s32.s8.s8", "", __VA_ARGS__) \
  CONVLADDER_WGMMA_REGISTERS(std::int8_t, int, "+r", n, count, "k32.s32.s8.s8", "", __VA_ARGS__)
CONVLADDER_WGMMA_ALL(8, 4, 4, 5, 6, 7, 8, 9)
CONVLADDER_WGMMA_ALL(16, 8, 8, 9, 10, 11, 12, 13)
CONVLADDER_WGMMA_ALL(24, 12, 12, 13, 14, 15, 16, 17)
CONVLADDER_WGMMA_ALL(32, 16, 16, 17, 18, 19, 20, 21)
CONVLADDER_WGMMA_FLOATS(40, 20, 20, 21, 22, 23, 24, 25)
CONVLADDER_WGMMA_ALL(48, 24, 24, 25, 26, 27, 28, 29)
CONVLADDER_WGMMA_FLOATS(56, 28, 28, 29, 30, 31, 32, 33)
CONVLADDER_WGMMA_ALL(64, 32, 32, 33, 34, 35, 36, 37)
CONVLADDER_WGMMA_FLOATS(72, 36, 36, 37, 38, 39, 40, 41)
CONVLADDER_WGMMA_ALL(80, 40, 40, 41, 42, 43, 44, 45)
CONVLADDER_WGMMA_FLOATS(88, 44, 44, 45, 46, 47, 48, 49)
CONVLADDER_WGMMA_ALL(96, 48, 48, 49, 50, 51, 52, 53)
CONVLADDER_WGMMA_FLOATS(104, 52, 52, 53, 54, 55, 56, 57)
CONVLADDER_WGMMA_ALL(112, 56, 56, 57, 58, 59, 60, 61)
CONVLADDER_WGMMA_FLOATS(120, 60, 60, 61, 62, 63, 64, 65)
CONVLADDER_WGMMA_ALL(128, 64, 64, 65, 66, 67, 68, 69)
CONVLADDER_WGMMA_FLOATS(136, 68, 68, 69, 70, 71, 72, 73)
CONVLADDER_WGMMA_ALL(144, 72, 72, 73, 74, 75, 76, 77)
CONVLADDER_WGMMA_FLOATS(152, 76, 76, 77, 78, 79, 80, 81)
CONVLADDER_WGMMA_ALL(160, 80, 80, 81, 82, 83, 84, 85)
CONVLADDER_WGMMA_FLOATS(168, 84, 84, 85, 86, 87, 88, 89)
CONVLADDER_WGMMA_ALL(176, 88, 88, 89, 90, 91, 92, 93)
CONVLADDER_WGMMA_FLOATS(184, 92, 92, 93, 94, 95, 96, 97)
CONVLADDER_WGMMA_ALL(192, 96, 96, 97, 98, 99, 100, 101)
CONVLADDER_WGMMA_FLOATS(200, 100, 100, 101, 102, 103, 104, 105)
CONVLADDER_WGMMA_ALL(208, 104, 104, 105, 106, 107, 108, 109)
CONVLADDER_WGMMA_FLOATS(216, 108, 108, 109, 110, 111, 112, 113)
CONVLADDER_WGMMA_ALL(224, 112, 112, 113, 114, 115, 116, 117)
CONVLADDER_WGMMA_FLOATS(232, 116, 116, 117, 118, 119, 120, 121)
CONVLADDER_WGMMA_ALL(240, 120, 120, 121, 122, 123, 124, 125)
CONVLADDER_WGMMA_FLOATS(248, 124, 124, 125, 126, 127, 128, 129)
CONVLADDER_WGMMA_ALL(256, 128, 128, 129, 130, 131, 132, 133)
#undef CONVLADDER_WGMMA_ALL
#undef CONVLADDER_WGMMA_FLOATS
#undef CONVLADDER_WGMMA_REGISTERS
#undef CONVLADDER_WGMMA
/// @endcond

/// `wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16`, `.f32.bf16.bf16` or `m64nNk8.f32.tf32.tf32`: starts d = a b, or
/// d += a b with `accumulate`, for 64 rows of a warpgroup and N columns, over 32 bytes of each row: a sum of 16 Fp16 or
/// Bf16, or of 8 Tf32. A lane holds in d[4 j + i] row 16 w + lane / 4 + 8 (i / 2), column 8 j + 2
/// (lane % 4) + i % 2, where w is its warp of the four. All four warps call it alike, after wgmma_fence(); the sums are
/// there after wgmma_commit() and wgmma_wait().
/// @tparam N a multiple of 8 up to 256  @tparam Element of A and B  @param a, b descriptors of A's rows and B's columns
template <int N, class Element = Fp16>
__device__ __forceinline__ void wgmma(float (&d)[N / 2], std::uint64_t a, std::uint64_t b, bool accumulate) {
  static_assert(N % 8 == 0 && N >= 8 && N <= 256, "N is a multiple of 8 up to 256");
  Wgmma<N, Element>::run(d, a, b, accumulate);
}
/// `wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16` of halves with A in registers, which must not be written before
/// wgmma_wait(): two of them each, row lane / 4 + 8 (i % 2) of the warp's 16, columns
/// 2 (lane % 4) + 8 (i / 2) and the next, in a[i].
template <int N>
__device__ __forceinline__ void wgmma(float (&d)[N / 2], const unsigned (&a)[4], std::uint64_t b, bool accumulate) {
  static_assert(N % 8 == 0 && N >= 8 && N <= 256, "N is a multiple of 8 up to 256");
  WgmmaOfRegisters<N, Fp16>::run(d, a, b, accumulate);
}
/// `wgmma.mma_async.sync.aligned.m64nNk32.s32.s8.s8`: the same over a sum of 32 signed bytes. @tparam N 8, 24, or a
/// multiple of 16 up to 256  @tparam Element signed bytes
template <int N, class Element = std::int8_t>
__device__ __forceinline__ void wgmma(int (&d)[N / 2], std::uint64_t a, std::uint64_t b, bool accumulate) {
  static_assert(std::is_same_v<Element, std::int8_t>, "sums in int are of signed bytes");
  static_assert(kWgmmaBytes<N>, "for bytes N is 8, 24, or a multiple of 16 up to 256");
  Wgmma<N, std::int8_t>::run(d, a, b, accumulate);
}
/// The same with A in registers, four bytes each, from column 4 (lane % 4) + 16 (i / 2) on.
template <int N>
__device__ __forceinline__ void wgmma(int (&d)[N / 2], const unsigned (&a)[4], std::uint64_t b, bool accumulate) {
  static_assert(kWgmmaBytes<N>, "for bytes N is 8, 24, or a multiple of 16 up to 256");
  WgmmaOfRegisters<N, std::int8_t>::run(d, a, b, accumulate);
}

/// `setmaxnreg.inc.sync.aligned.u32`: lets each thread of the warpgroup have more registers; waits until others have
/// given so many back. At the start of a warpgroup's part of the kernel, by all of its warps. A thread starts with its
/// share of 65,536, the block rounded up to whole warpgroups: 168 of 384 threads. Only every fourth warp can use what a
/// warp gives back, so a whole warpgroup should.
/// @tparam Registers of a thread: 24 to 256, a multiple of 8
template <int Registers>
__device__ __forceinline__ void set_max_registers_increase() {
  static_assert(Registers >= 24 && Registers <= 256 && Registers % 8 == 0, "24 to 256 registers, a multiple of 8");
  CONVLADDER_SM90A("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}
/// `setmaxnreg.dec.sync.aligned.u32`: gives registers back, for another warpgroup's increase. Does not wait.
template <int Registers>
__device__ __forceinline__ void set_max_registers_decrease() {
  static_assert(Registers >= 24 && Registers <= 256 && Registers % 8 == 0, "24 to 256 registers, a multiple of 8");
  CONVLADDER_SM90A("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}

}  // namespace convladder

#else
#if !defined(SIMT_PLAIN_CUDA)
#include "common/kernel/kernel.hpp"
#endif
#include "common/simt/hopper.hpp"

#if defined(SIMT_PLAIN_CUDA)
#include <cstdio>
#include <stdexcept>

namespace convladder {

/// Under `./lab sim`, which prints the rule that a refused form breaks.
inline cudaError_t encode_tensor_map(TensorMap* map, const void* global, const TensorForm& form) {
  try {
    *map = make_tensor_map(global, form);
    return cudaSuccess;
  } catch (const std::invalid_argument& broken) {
    std::fprintf(stderr, "%s\n", broken.what());
    return cudaErrorInvalidValue;
  }
}

}  // namespace convladder
#endif
#endif

namespace convladder {

/// Number of the warp in a block of one dimension, the same in all lanes also to the compiler.
__device__ __forceinline__ int warp_index() { return __shfl_sync(~0u, static_cast<int>(threadIdx.x) / 32, 0); }

}  // namespace convladder
