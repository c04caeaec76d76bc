/// @file
/// CUDA's runtime and device names over the simulator, for plain CUDA programs under `./lab sim`. docs/sim.md lists
/// what is there. Kernels reach it after tools/lab/cuda_front_end.py has replaced launches and memory spaces.
#pragma once
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cstdarg>
#include <cstring>
#include <functional>
#include <tuple>
#include <type_traits>

#include "common/cuda/include/math_functions.h"
#include "common/cuda/include/vector_functions.h"
#include "common/simt/cluster.hpp"
#include "common/simt/simt.hpp"
#undef UNROLL
#undef UNROLL_BY

/// @cond
#define __CUDACC__ 1
#define __NVCC__ 1
#define __CUDACC_EXTENDED_LAMBDA__ 1
#define __DRIVER_TYPES_H__
#define __CUDA_RUNTIME_H__
#define __CUDA_RUNTIME_API_H__
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0
#define __CUDACC_VER_BUILD__ 88
#ifndef __CUDA_ARCH__  // tools/lab/sim.py gives that of the GPU of --gpu
#define __CUDA_ARCH__ 900
#endif
#define CUDART_VERSION 13000
#define __builtin_align__(n) __align__(n)
#define __cudart_builtin__
#define CUDART_CB
#define __grid_constant__
#define __maxnreg__(n)
#define __builtin_assume(condition) static_cast<void>(0)
#define __assume(condition) static_cast<void>(0)

// ---- Device functions ----------------------------------------------------------------------------------------------

__forceinline__ float min(float a, float b) { return fminf(a, b); }
__forceinline__ float max(float a, float b) { return fmaxf(a, b); }
__forceinline__ double min(double a, double b) { return fmin(a, b); }
__forceinline__ double max(double a, double b) { return fmax(a, b); }
__forceinline__ double min(float a, double b) { return fmin(a, b); }
__forceinline__ double max(float a, double b) { return fmax(a, b); }
__forceinline__ double min(double a, float b) { return fmin(a, b); }
__forceinline__ double max(double a, float b) { return fmax(a, b); }
__forceinline__ unsigned min(int a, unsigned b) { return min(static_cast<unsigned>(a), b); }
__forceinline__ unsigned min(unsigned a, int b) { return min(a, static_cast<unsigned>(b)); }
__forceinline__ unsigned max(int a, unsigned b) { return max(static_cast<unsigned>(a), b); }
__forceinline__ unsigned max(unsigned a, int b) { return max(a, static_cast<unsigned>(b)); }
__forceinline__ long min(long a, long b) { return b < a ? b : a; }
__forceinline__ long max(long a, long b) { return a < b ? b : a; }
__forceinline__ unsigned long min(unsigned long a, unsigned long b) { return b < a ? b : a; }
__forceinline__ unsigned long max(unsigned long a, unsigned long b) { return a < b ? b : a; }
__forceinline__ unsigned long long min(unsigned long long a, unsigned long long b) { return b < a ? b : a; }
__forceinline__ unsigned long long max(unsigned long long a, unsigned long long b) { return a < b ? b : a; }
#define SIM_MIXED(S, U)                                                 \
  __forceinline__ U min(S a, U b) { return min(static_cast<U>(a), b); } \
  __forceinline__ U min(U a, S b) { return min(a, static_cast<U>(b)); } \
  __forceinline__ U max(S a, U b) { return max(static_cast<U>(a), b); } \
  __forceinline__ U max(U a, S b) { return max(a, static_cast<U>(b)); }
SIM_MIXED(long, unsigned long)
SIM_MIXED(long long, unsigned long long)
#undef SIM_MIXED

__forceinline__ float rsqrtf(float x) { return 1 / sqrtf(x); }
__forceinline__ double rsqrt(double x) { return 1 / sqrt(x); }
__forceinline__ float __expf(float x) { return expf(x); }
__forceinline__ float __exp10f(float x) { return powf(10, x); }
__forceinline__ float __logf(float x) { return logf(x); }
__forceinline__ float __log2f(float x) { return log2f(x); }
__forceinline__ float __log10f(float x) { return log10f(x); }
__forceinline__ float __powf(float x, float y) { return powf(x, y); }
__forceinline__ float __sinf(float x) { return sinf(x); }
__forceinline__ float __cosf(float x) { return cosf(x); }
__forceinline__ float __tanf(float x) { return tanf(x); }
__forceinline__ float __fdividef(float a, float b) { return a / b; }
__forceinline__ float __fadd_rn(float a, float b) { return a + b; }
__forceinline__ float __fsub_rn(float a, float b) { return a - b; }
__forceinline__ float __fmul_rn(float a, float b) { return a * b; }
__forceinline__ float __fdiv_rn(float a, float b) { return a / b; }
__forceinline__ float __fsqrt_rn(float x) { return sqrtf(x); }
__forceinline__ float __frsqrt_rn(float x) { return 1 / sqrtf(x); }
__forceinline__ float __frcp_rn(float x) { return 1 / x; }
__forceinline__ double __dadd_rn(double a, double b) { return a + b; }
__forceinline__ double __dmul_rn(double a, double b) { return a * b; }
__forceinline__ double __fma_rn(double a, double b, double c) { return __builtin_fma(a, b, c); }
__forceinline__ int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
__forceinline__ float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
__forceinline__ long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
__forceinline__ double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }
__forceinline__ float __int2float_rn(int x) { return static_cast<float>(x); }
__forceinline__ float __uint2float_rn(unsigned x) { return static_cast<float>(x); }
__forceinline__ int __float2int_rd(float x) { return simt::round_to_int(floorf(x)); }
__forceinline__ int __float2int_ru(float x) { return simt::round_to_int(ceilf(x)); }
__forceinline__ int __float2int_rz(float x) { return simt::round_to_int(truncf(x)); }
__forceinline__ int __popc(unsigned x) { return __builtin_popcount(x); }
__forceinline__ int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
__forceinline__ int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned>(x)) : 32; }
__forceinline__ int __clzll(long long x) { return x ? __builtin_clzll(static_cast<unsigned long long>(x)) : 64; }
__forceinline__ int __ffs(int x) { return __builtin_ffs(x); }
__forceinline__ int __ffsll(long long x) { return __builtin_ffsll(x); }
__forceinline__ unsigned __brev(unsigned x) {
  unsigned result = 0;
  for (int i = 0; i < 32; ++i) result |= (x >> i & 1u) << (31 - i);
  return result;
}
__forceinline__ int __mul24(int a, int b) { return (a << 8 >> 8) * (b << 8 >> 8); }
__forceinline__ int __mulhi(int a, int b) { return static_cast<int>(static_cast<long long>(a) * b >> 32); }
__forceinline__ unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32);
}
#define SIM_DOT(Scalar, Two, Four)                                                         \
  __forceinline__ Scalar __dp4a(const Four& a, const Four& b, Scalar c) {                  \
    return __dp4a(simt_cuda::as_scalar<Scalar>(a), simt_cuda::as_scalar<Scalar>(b), c);    \
  }                                                                                        \
  __forceinline__ Scalar __dp2a_lo(const Two& a, const Four& b, Scalar c) {                \
    return __dp2a_lo(simt_cuda::as_scalar<Scalar>(a), simt_cuda::as_scalar<Scalar>(b), c); \
  }                                                                                        \
  __forceinline__ Scalar __dp2a_hi(const Two& a, const Four& b, Scalar c) {                \
    return __dp2a_hi(simt_cuda::as_scalar<Scalar>(a), simt_cuda::as_scalar<Scalar>(b), c); \
  }
namespace simt_cuda {
template <class Scalar, class Vector>
__forceinline__ Scalar as_scalar(const Vector& vector) {
  static_assert(sizeof(Scalar) == sizeof(Vector), "the same size");
  Scalar result;
  __builtin_memcpy(&result, &vector, sizeof result);
  return result;
}
}  // namespace simt_cuda
SIM_DOT(int, short2, char4)
SIM_DOT(unsigned, ushort2, uchar4)
#undef SIM_DOT
__forceinline__ void __threadfence_system() { __threadfence(); }
__forceinline__ size_t __cvta_generic_to_shared(const void* pointer) { return simt::shared_address_of(pointer); }
__forceinline__ void* __cvta_shared_to_generic(size_t address) {
  return reinterpret_cast<void*>(simt::address_of_shared(address));
}
__forceinline__ size_t __cvta_generic_to_global(const void* pointer) { return reinterpret_cast<size_t>(pointer); }
__forceinline__ void* __cvta_global_to_generic(size_t address) { return reinterpret_cast<void*>(address); }
__forceinline__ unsigned __clusterDimIsSpecified() { return simt::blocks_in_cluster() > 1; }
__forceinline__ dim3 __clusterDim() { return simt::cluster_size(); }
__forceinline__ dim3 __clusterRelativeBlockIdx() { return simt::block_in_cluster(); }
__forceinline__ dim3 __clusterGridDimInClusters() { return simt::grid_of_clusters(); }
__forceinline__ dim3 __clusterIdx() { return simt::cluster_index(); }
__forceinline__ unsigned __clusterRelativeBlockRank() { return simt::rank_in_cluster(); }
__forceinline__ unsigned __clusterSizeInBlocks() { return simt::blocks_in_cluster(); }
__forceinline__ void __cluster_barrier_arrive(int line = __builtin_LINE()) { simt::cluster_arrive(true, true, line); }
__forceinline__ void __cluster_barrier_arrive_relaxed(int line = __builtin_LINE()) {
  simt::cluster_arrive(false, true, line);
}
__forceinline__ void __cluster_barrier_wait(int line = __builtin_LINE()) { simt::cluster_wait(line); }
__forceinline__ void __threadfence_cluster() { __threadfence(); }
__forceinline__ void* __cluster_map_shared_rank(const void* pointer, unsigned rank) {
  return simt::map_shared(pointer, rank);
}
__forceinline__ unsigned __cluster_query_shared_rank(const void* pointer) { return simt::rank_of_shared(pointer); }
__forceinline__ unsigned __isCtaShared(const void* pointer) { return simt::lies_in(simt::Window::own_shared, pointer); }
__forceinline__ unsigned __isClusterShared(const void* pointer) {
  return simt::lies_in(simt::Window::cluster_shared, pointer);
}
__forceinline__ unsigned __isShared(const void* pointer) { return __isCtaShared(pointer); }
__forceinline__ unsigned __isGlobal(const void* pointer) { return simt::lies_in(simt::Window::global, pointer); }
__forceinline__ unsigned __isLocal(const void* pointer) { return simt::lies_in(simt::Window::local, pointer); }
__forceinline__ unsigned __isConstant(const void* pointer) { return simt::lies_in(simt::Window::constant, pointer); }
__forceinline__ void __trap() { __builtin_trap(); }
__forceinline__ int __syncthreads_count(int predicate, int line = __builtin_LINE()) {
  return simt::block_votes(predicate, line);
}
__forceinline__ int __syncthreads_or(int predicate, int line = __builtin_LINE()) {
  return simt::block_votes(predicate, line) != 0;
}
__forceinline__ int __syncthreads_and(int predicate, int line = __builtin_LINE()) {
  return simt::block_votes(!predicate, line) == 0;
}
__forceinline__ unsigned __activemask(int line = __builtin_LINE()) { return simt::active_mask(line); }

// Without a mask, as CUDA has them for GPUs before compute capability 7.0: of the lanes that are there.
template <class T>
__forceinline__ T __shfl(T value, int source, int width = 32, int line = __builtin_LINE()) {
  return __shfl_sync(simt::active_mask(line), value, source, width, line);
}
template <class T>
__forceinline__ T __shfl_up(T value, unsigned delta, int width = 32, int line = __builtin_LINE()) {
  return __shfl_up_sync(simt::active_mask(line), value, delta, width, line);
}
template <class T>
__forceinline__ T __shfl_down(T value, unsigned delta, int width = 32, int line = __builtin_LINE()) {
  return __shfl_down_sync(simt::active_mask(line), value, delta, width, line);
}
template <class T>
__forceinline__ T __shfl_xor(T value, int bits, int width = 32, int line = __builtin_LINE()) {
  return __shfl_xor_sync(simt::active_mask(line), value, bits, width, line);
}
__forceinline__ unsigned __ballot(int predicate, int line = __builtin_LINE()) {
  return simt::ballot(simt::active_mask(line), predicate, line);
}
__forceinline__ int __any(int predicate, int line = __builtin_LINE()) { return __ballot(predicate, line) != 0; }
__forceinline__ int __all(int predicate, int line = __builtin_LINE()) { return __ballot(!predicate, line) == 0; }

#define SIM_REDUCE(name, T, expression)                                                           \
  __forceinline__ T name(unsigned mask, T value, int line = __builtin_LINE()) {                   \
    T result = value;                                                                             \
    bool first = true;                                                                            \
    for (int source = 0; source < 32; ++source) {                                                 \
      const T other = simt::shuffle(mask, value, source, line);                                   \
      if (mask >> source & 1) result = first ? other : static_cast<T>(expression), first = false; \
    }                                                                                             \
    return result;                                                                                \
  }
SIM_REDUCE(__reduce_add_sync, int, result + other)
SIM_REDUCE(__reduce_add_sync, unsigned, result + other)
SIM_REDUCE(__reduce_min_sync, int, min(result, other))
SIM_REDUCE(__reduce_min_sync, unsigned, min(result, other))
SIM_REDUCE(__reduce_max_sync, int, max(result, other))
SIM_REDUCE(__reduce_max_sync, unsigned, max(result, other))
SIM_REDUCE(__reduce_and_sync, unsigned, result& other)
SIM_REDUCE(__reduce_or_sync, unsigned, result | other)
SIM_REDUCE(__reduce_xor_sync, unsigned, result ^ other)

template <class T>
__forceinline__ unsigned __match_any_sync(unsigned mask, T value, int line = __builtin_LINE()) {
  unsigned same = 0;
  for (int source = 0; source < 32; ++source) {
    const T other = simt::shuffle(mask, value, source, line);
    same |= (mask >> source & 1 && other == value ? 1u : 0u) << source;
  }
  return same;
}
template <class T>
__forceinline__ unsigned __match_all_sync(unsigned mask, T value, int* all, int line = __builtin_LINE()) {
  const bool same = __match_any_sync(mask, value, line) == mask;
  *all = simt::ballot(mask, !same, line) == 0;
  return *all ? mask : 0;
}

/// @endcond

#include "common/cuda/include/cuda_runtime_api.h"
#include "common/cuda/include/library_types.h"
#include "common/cuda/include/texture_fetch_functions.h"
