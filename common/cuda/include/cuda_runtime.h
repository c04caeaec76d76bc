/// @file
/// CUDA's runtime and device names over the simulator, for plain CUDA programs under `./lab sim`. docs/sim.md lists
/// what is there. Kernels reach it after tools/lab/cuda_front_end.py has replaced launches and memory spaces.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <tuple>
#include <type_traits>

#include "common/simt/simt.hpp"
#undef UNROLL
#undef UNROLL_BY

/// @cond
#define __CUDACC__ 1
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0
#define __CUDA_ARCH__ 900
#define CUDART_VERSION 13000
#define __builtin_align__(n) __align__(n)
#define __cudart_builtin__
#define CUDART_CB
#define __grid_constant__
#define __maxnreg__(n)

// ---- Vector types that the project's own kernels do not need -------------------------------------------------------

#define SIM_VECTOR1(Name, T) \
  struct Name {              \
    T x;                     \
  };                         \
  __forceinline__ Name make_##Name(T x) { return {x}; }
#define SIM_VECTOR2(Name, T, bytes) \
  struct __align__(bytes) Name {    \
    T x, y;                         \
  };                                \
  __forceinline__ Name make_##Name(T x, T y) { return {x, y}; }
#define SIM_VECTOR3(Name, T) \
  struct Name {              \
    T x, y, z;               \
  };                         \
  __forceinline__ Name make_##Name(T x, T y, T z) { return {x, y, z}; }
#define SIM_VECTOR4(Name, T, bytes) \
  struct __align__(bytes) Name {    \
    T x, y, z, w;                   \
  };                                \
  __forceinline__ Name make_##Name(T x, T y, T z, T w) { return {x, y, z, w}; }
typedef unsigned char uchar;
typedef unsigned short ushort;
SIM_VECTOR1(float1, float)
SIM_VECTOR1(int1, int)
SIM_VECTOR1(uint1, unsigned)
SIM_VECTOR1(double1, double)
SIM_VECTOR2(char2, signed char, 2)
SIM_VECTOR2(uchar2, unsigned char, 2)
SIM_VECTOR2(short2, short, 4)
SIM_VECTOR2(ushort2, unsigned short, 4)
SIM_VECTOR2(double2, double, 16)
SIM_VECTOR2(longlong2, long long, 16)
SIM_VECTOR2(ulonglong2, unsigned long long, 16)
SIM_VECTOR3(char3, signed char)
SIM_VECTOR3(uchar3, unsigned char)
SIM_VECTOR3(short3, short)
SIM_VECTOR3(int3, int)
SIM_VECTOR3(float3, float)
SIM_VECTOR3(double3, double)
SIM_VECTOR4(uchar4, unsigned char, 4)
SIM_VECTOR4(short4, short, 8)
SIM_VECTOR4(ushort4, unsigned short, 8)
SIM_VECTOR4(double4, double, 16)
__forceinline__ uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }

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
__forceinline__ void __threadfence_system() { __threadfence(); }
__forceinline__ size_t __cvta_generic_to_shared(const void* pointer) { return simt::shared_address_of(pointer); }
__forceinline__ void* __cvta_shared_to_generic(size_t address) {
  return reinterpret_cast<void*>(simt::address_of_shared(address));
}
__forceinline__ size_t __cvta_generic_to_global(const void* pointer) { return reinterpret_cast<size_t>(pointer); }
__forceinline__ void* __cvta_global_to_generic(size_t address) { return reinterpret_cast<void*>(address); }
namespace simt_ptx {
unsigned long long clock();
}  // namespace simt_ptx
__forceinline__ long long clock64() { return static_cast<long long>(simt_ptx::clock()); }
__forceinline__ void __nanosleep(unsigned) {}
__forceinline__ void __trap() { __builtin_trap(); }

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

// ---- The runtime's types -------------------------------------------------------------------------------------------

enum cudaError {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorInvalidPitchValue = 12,
  cudaErrorInvalidSymbol = 13,
  cudaErrorInvalidDevicePointer = 17,
  cudaErrorInvalidMemcpyDirection = 21,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorNotReady = 600,
  cudaErrorIllegalAddress = 700,
  cudaErrorAssert = 710,
  cudaErrorMisalignedAddress = 716,
  cudaErrorLaunchFailure = 719,
  cudaErrorNotSupported = 801,
  cudaErrorUnknown = 999,
};
typedef cudaError cudaError_t;
enum cudaMemcpyKind {
  cudaMemcpyHostToHost,
  cudaMemcpyHostToDevice,
  cudaMemcpyDeviceToHost,
  cudaMemcpyDeviceToDevice,
  cudaMemcpyDefault
};
typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;
enum cudaFuncAttribute {
  cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
  cudaFuncAttributePreferredSharedMemoryCarveout = 9
};
enum cudaFuncCache {
  cudaFuncCachePreferNone,
  cudaFuncCachePreferShared,
  cudaFuncCachePreferL1,
  cudaFuncCachePreferEqual
};
enum { cudaStreamDefault = 0, cudaStreamNonBlocking = 1 };
enum { cudaEventDefault = 0, cudaEventBlockingSync = 1, cudaEventDisableTiming = 2 };
enum { cudaHostAllocDefault = 0, cudaHostAllocPortable = 1, cudaHostAllocMapped = 2, cudaHostAllocWriteCombined = 4 };
enum { cudaMemAttachGlobal = 1, cudaMemAttachHost = 2 };
enum { cudaCpuDeviceId = -1 };
enum cudaDeviceAttr {
  cudaDevAttrMaxThreadsPerBlock = 1,
  cudaDevAttrMaxSharedMemoryPerBlock = 8,
  cudaDevAttrWarpSize = 10,
  cudaDevAttrMultiProcessorCount = 16,
  cudaDevAttrComputeCapabilityMajor = 75,
  cudaDevAttrComputeCapabilityMinor = 76,
  cudaDevAttrMaxSharedMemoryPerBlockOptin = 97
};
struct cudaDeviceProp {
  char name[256];
  size_t totalGlobalMem, sharedMemPerBlock, sharedMemPerBlockOptin, sharedMemPerMultiprocessor, totalConstMem, memPitch,
      textureAlignment;
  int regsPerBlock, regsPerMultiprocessor, warpSize, maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], clockRate,
      memoryClockRate, memoryBusWidth, major, minor, multiProcessorCount, l2CacheSize, maxThreadsPerMultiProcessor,
      maxBlocksPerMultiProcessor, concurrentKernels, asyncEngineCount, deviceOverlap, integrated, canMapHostMemory,
      computeMode, ECCEnabled, unifiedAddressing, managedMemory, concurrentManagedAccess, cooperativeLaunch, pciBusID,
      pciDeviceID, pciDomainID, kernelExecTimeoutEnabled;
};

// ---- The runtime's functions ---------------------------------------------------------------------------------------

#define SIM_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()
#define SIM_NAMED const char *name = "", const char *file = __builtin_FILE(), int line = __builtin_LINE()

namespace simt_cuda {
cudaError allocate(void** pointer, size_t bytes, bool managed, SIM_NAMED);
cudaError copy_to_symbol(void* symbol, size_t size, const void* source, size_t bytes, size_t offset, SIM_HERE);
cudaError copy_from_symbol(void* to, const void* symbol, size_t size, size_t bytes, size_t offset, SIM_HERE);
void allow_shared(const void* kernel, size_t bytes);
}  // namespace simt_cuda

// The front end adds the variable's name to a call of these.
template <class T>
cudaError cudaMalloc(T** pointer, size_t bytes, SIM_NAMED) {
  return simt_cuda::allocate(reinterpret_cast<void**>(pointer), bytes, false, name, file, line);
}
template <class T>
cudaError cudaMallocManaged(T** pointer, size_t bytes, unsigned = cudaMemAttachGlobal, SIM_NAMED) {
  return simt_cuda::allocate(reinterpret_cast<void**>(pointer), bytes, true, name, file, line);
}
template <class T>
cudaError cudaMallocHost(T** pointer, size_t bytes, unsigned = 0, SIM_NAMED) {
  return simt_cuda::allocate(reinterpret_cast<void**>(pointer), bytes, true, name, file, line);
}
template <class T>
cudaError cudaHostAlloc(T** pointer, size_t bytes, unsigned, SIM_NAMED) {
  return simt_cuda::allocate(reinterpret_cast<void**>(pointer), bytes, true, name, file, line);
}
template <class T>
cudaError cudaMallocAsync(T** pointer, size_t bytes, cudaStream_t, SIM_NAMED) {
  return simt_cuda::allocate(reinterpret_cast<void**>(pointer), bytes, false, name, file, line);
}
template <class T>
cudaError cudaMallocPitch(T** pointer, size_t* pitch, size_t width, size_t height, SIM_NAMED) {
  *pitch = (width + 511) / 512 * 512;
  return simt_cuda::allocate(reinterpret_cast<void**>(pointer), *pitch * height, false, name, file, line);
}
cudaError cudaFree(void* pointer, SIM_HERE);
cudaError cudaFreeHost(void* pointer, SIM_HERE);
inline cudaError cudaFreeAsync(void* pointer, cudaStream_t, SIM_HERE) { return cudaFree(pointer, file, line); }
cudaError cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, SIM_HERE);
inline cudaError cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t = nullptr,
                                 SIM_HERE) {
  return cudaMemcpy(to, from, bytes, kind, file, line);
}
cudaError cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                       cudaMemcpyKind kind, SIM_HERE);
inline cudaError cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                                   size_t height, cudaMemcpyKind kind, cudaStream_t = nullptr, SIM_HERE) {
  return cudaMemcpy2D(to, to_pitch, from, from_pitch, width, height, kind, file, line);
}
cudaError cudaMemset(void* to, int value, size_t bytes, SIM_HERE);
inline cudaError cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t = nullptr, SIM_HERE) {
  return cudaMemset(to, value, bytes, file, line);
}
cudaError cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t height, SIM_HERE);
cudaError cudaMemGetInfo(size_t* free, size_t* total);
inline cudaError cudaMemPrefetchAsync(const void*, size_t, int, cudaStream_t = nullptr) { return cudaSuccess; }

template <class T>
cudaError cudaMemcpyToSymbol(const T& symbol, const void* source, size_t bytes, size_t offset = 0,
                             cudaMemcpyKind = cudaMemcpyHostToDevice, SIM_HERE) {
  return simt_cuda::copy_to_symbol(const_cast<void*>(static_cast<const void*>(&symbol)), sizeof symbol, source, bytes,
                                   offset, file, line);
}
template <class T>
cudaError cudaMemcpyToSymbolAsync(const T& symbol, const void* source, size_t bytes, size_t offset, cudaMemcpyKind,
                                  cudaStream_t = nullptr, SIM_HERE) {
  return cudaMemcpyToSymbol(symbol, source, bytes, offset, cudaMemcpyHostToDevice, file, line);
}
template <class T>
cudaError cudaMemcpyFromSymbol(void* to, const T& symbol, size_t bytes, size_t offset = 0,
                               cudaMemcpyKind = cudaMemcpyDeviceToHost, SIM_HERE) {
  return simt_cuda::copy_from_symbol(to, &symbol, sizeof symbol, bytes, offset, file, line);
}
template <class T>
cudaError cudaGetSymbolAddress(void** pointer, const T& symbol) {
  *pointer = const_cast<void*>(static_cast<const void*>(&symbol));
  return cudaSuccess;
}

cudaError cudaGetLastError();
cudaError cudaPeekAtLastError();
const char* cudaGetErrorString(cudaError error);
const char* cudaGetErrorName(cudaError error);
cudaError cudaDeviceSynchronize();
inline cudaError cudaThreadSynchronize() { return cudaDeviceSynchronize(); }
cudaError cudaDeviceReset(SIM_HERE);
cudaError cudaGetDeviceCount(int* count);
cudaError cudaSetDevice(int device);
cudaError cudaGetDevice(int* device);
cudaError cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);
inline cudaError cudaDeviceSetCacheConfig(cudaFuncCache) { return cudaSuccess; }
inline cudaError cudaDriverGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
inline cudaError cudaRuntimeGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }

cudaError cudaStreamCreate(cudaStream_t* stream);
inline cudaError cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) { return cudaStreamCreate(stream); }
inline cudaError cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) { return cudaStreamCreate(stream); }
cudaError cudaStreamDestroy(cudaStream_t stream);
cudaError cudaStreamSynchronize(cudaStream_t stream);
cudaError cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);
cudaError cudaStreamQuery(cudaStream_t stream);
cudaError cudaEventCreate(cudaEvent_t* event);
inline cudaError cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return cudaEventCreate(event); }
cudaError cudaEventDestroy(cudaEvent_t event);
cudaError cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr);
cudaError cudaEventSynchronize(cudaEvent_t event);
cudaError cudaEventQuery(cudaEvent_t event);
cudaError cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end);

template <class Kernel>
cudaError cudaFuncSetAttribute(Kernel kernel, cudaFuncAttribute attribute, int value) {
  if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize)
    simt_cuda::allow_shared(reinterpret_cast<const void*>(kernel), static_cast<size_t>(value));
  return cudaSuccess;
}
template <class Kernel>
cudaError cudaFuncSetCacheConfig(Kernel, cudaFuncCache) {
  return cudaSuccess;
}

// Registers are not known here: what limits a kernel is its threads and its dynamic shared memory.
template <class Kernel>
cudaError cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Kernel, int block, size_t shared) {
  if (block < 1 || block > 1024) return *blocks = 0, cudaErrorInvalidValue;
  const size_t by_shared = (228 << 10) / (shared + 1024), by_threads = 64 / ((static_cast<size_t>(block) + 31) / 32);
  *blocks = static_cast<int>(by_shared < by_threads ? by_shared : by_threads < 32 ? by_threads : 32);
  return cudaSuccess;
}
template <class Kernel>
cudaError cudaOccupancyMaxPotentialBlockSize(int* grid, int* block, Kernel kernel, size_t shared = 0, int limit = 0) {
  *block = limit > 0 && limit < 1024 ? limit : 1024;
  const cudaError error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(grid, kernel, *block, shared);
  *grid *= 132;
  return error;
}
template <class T>
cudaError cudaHostGetDevicePointer(T** device, void* host, unsigned) {
  *device = static_cast<T*>(host);
  return cudaSuccess;
}

// ---- Launches: what the front end makes of <<< >>> -----------------------------------------------------------------

namespace simt_cuda {

struct Configuration {
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream;
  const char* file;
  int line;
  Configuration(dim3 grid_, dim3 block_, size_t shared_ = 0, cudaStream_t stream_ = nullptr,
                const char* file_ = __builtin_FILE(), int line_ = __builtin_LINE())
      : grid(grid_), block(block_), shared(shared_), stream(stream_), file(file_), line(line_) {}
};

void run(const char* kernel, const Configuration& configuration, void (*call)(const void*), const void* arguments);

/// Runs `body`, a call of the kernel, with copies of the arguments.
template <class Body, class... Arguments>
void launch(const char* kernel, const Configuration& configuration, Body body, Arguments&&... arguments) {
  const std::tuple<std::decay_t<Arguments>...> values(arguments...);
  const auto call = [&]() __attribute__((no_sanitize("thread"))) { std::apply(body, values); };
  using Call = decltype(call);
  run(
      kernel, configuration, [](const void* self) { (*static_cast<Call*>(self))(); }, &call);
}

/// `extern __shared__ T name[]` outside a function.
template <class T>
struct DynamicShared {
  __forceinline__ operator T*() const { return static_cast<T*>(::simt::dynamic_shared_memory()); }
};

}  // namespace simt_cuda
/// @endcond
