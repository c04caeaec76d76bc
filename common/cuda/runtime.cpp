// CUDA's runtime over the simulator: every call runs to its end at once, so streams are in order by themselves.

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <new>
#include <string>

#include "common/cuda/include/cuda_runtime.h"
#include "common/cuda/report.hpp"
#include "common/simt/machine.hpp"

struct CUstream_st {};
struct CUevent_st {
  bool recorded = false;
  std::chrono::steady_clock::time_point time;
};

namespace simt_cuda {
namespace {

constexpr std::size_t kMemory = std::size_t{141} << 30;  // an NVIDIA H200's
constexpr int kOptIn = 227 << 10;

/// A block of memory that the program asked for.
struct Block {
  std::string name;
  Place place;
  std::size_t bytes;
  bool managed;  ///< the host may touch it: managed, or pinned
  bool live;
};

struct Runtime {
  std::map<std::uintptr_t, Block> blocks;  ///< by address
  std::deque<std::string> names;           ///< the simulator keeps pointers to them
  std::size_t used = 0;
  cudaError last = cudaSuccess, sticky = cudaSuccess;
  Place failed{"", 0};                          ///< the launch whose error nobody has read
  std::string failure;                          ///< of it, or empty
  std::map<std::string, std::size_t> opted_in;  ///< dynamic shared memory that kernels may have, by their names
  bool unfinished = false;                      ///< a kernel was launched and nothing has waited for it
};

Runtime& runtime() {
  static auto& instance = *new Runtime;  // outlives every destructor of the program
  return instance;
}

std::uintptr_t address_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

/// The block that the address lies in, or lay in, or null.
Block* block_at(std::uintptr_t address) {
  auto& blocks = runtime().blocks;
  auto after = blocks.upper_bound(address);
  if (after == blocks.begin()) return nullptr;
  --after;
  return address < after->first + std::max<std::size_t>(after->second.bytes, 1) ? &after->second : nullptr;
}

cudaError fail(cudaError error) { return runtime().last = error; }

/// What an API call returns: an error that stays, or its own.
cudaError result(cudaError error = cudaSuccess) {
  if (runtime().sticky != cudaSuccess) return runtime().sticky;
  return error == cudaSuccess ? error : fail(error);
}

std::string base_name(const std::string& name) { return name.substr(0, name.find('<')); }

void host_touches(const void* address, bool writes, simt::Pc pc) {
  const std::string verb = writes ? "the host writes " : "the host reads ";
  const Block* const block = block_at(address_of(address));
  if (block && block->live && block->managed) {
    if (!runtime().unfinished) return;
    report_host_fault("host_race", verb + "'" + block->name + "' while a kernel may run: cudaDeviceSynchronize first",
                      pc);
    return;
  }
  report_host_fault("host_access", verb + "device memory, " + simt::describe_global(address_of(address)), pc);
  simt::watch_device_memory(nullptr);
  std::fflush(stdout);
  std::exit(4);  // a GPU's host program dies here
}

enum class Side { host, device, both };
Side side_of(const void* pointer) {
  if (!simt::is_device_address(address_of(pointer))) return Side::host;
  const Block* const block = block_at(address_of(pointer));
  return block && block->managed ? Side::both : Side::device;
}

/// Whether a pointer may stand there; reports it otherwise. @param role "destination" or "source"
bool check_side(const void* pointer, bool device, const char* role, const char* call, const Place& place) {
  const Side side = side_of(pointer);
  if (side == Side::both || (side == Side::device) == device) return true;
  const std::string where =
      side == Side::device ? "is device memory (" + simt::describe_global(address_of(pointer)) + ")" : "is host memory";
  report_host_fault(
      "wrong_pointer",
      std::string(call) + ": the " + role + " " + where + ", and must be " + (device ? "device memory" : "host memory"),
      place);
  return false;
}

/// Whether device memory holds all of it; reports it otherwise.
bool check_range(const void* pointer, std::size_t bytes, const char* verb, const Place& place) {
  if (!simt::is_device_address(address_of(pointer)) || bytes == 0) return true;
  const simt::Allocation* const allocation = simt::find_allocation(address_of(pointer));
  if (allocation && allocation->live && bytes <= allocation->end - address_of(pointer)) return true;
  const bool freed = allocation && !allocation->live;
  report_host_fault(freed ? "use_after_free" : "out_of_bounds",
                    std::string(verb) + " " + std::to_string(bytes) + " bytes, " +
                        simt::describe_global(allocation && !freed ? allocation->end : address_of(pointer)),
                    place);
  return false;
}

bool check_kind(const void* to, const void* from, cudaMemcpyKind kind, const char* call, const Place& place) {
  if (kind == cudaMemcpyDefault) return true;
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  return check_side(to, to_device, "destination", call, place) && check_side(from, from_device, "source", call, place);
}

/// The bytes' states go with them. Both ranges are whole.
void copy(void* to, const void* from, std::size_t bytes) {
  std::memmove(to, from, bytes);
  simt::Allocation* const target = simt::find_allocation(address_of(to));
  if (!target || bytes == 0) return;
  const simt::Allocation* const source = simt::find_allocation(address_of(from));
  std::uint8_t* const state = target->bytes + (address_of(to) - target->begin);
  if (source)
    std::memmove(state, source->bytes + (address_of(from) - source->begin), bytes);
  else
    std::memset(state, simt::kWritten, bytes);
}

void fill(void* to, int value, std::size_t bytes) {
  std::memset(to, value, bytes);
  if (simt::Allocation* const target = simt::find_allocation(address_of(to)))
    std::memset(target->bytes + (address_of(to) - target->begin), simt::kWritten, bytes);
}

bool in_constants(const void* symbol) {
  const simt::Program& program = simt::program();
  return address_of(symbol) >= program.constant_begin && address_of(symbol) < program.constant_end;
}

/// Ends the program where the simulator cannot go on.
[[noreturn]] void refuse(const std::string& text, const Place& place) {
  std::fflush(stdout);
  std::fprintf(stderr, "./lab sim: %s:%d: %s\n", place.file, place.line, text.c_str());
  _exit(2);
}

void at_exit() {
  const Runtime& state = runtime();
  for (const auto& [address, block] : state.blocks)
    if (block.live)
      report_note("leak: '" + block.name + "' (" + std::to_string(block.bytes) + " bytes) was never freed",
                  block.place);
  if (!state.failure.empty())
    report_host_fault("unchecked_launch",
                      "the kernel did not run: " + state.failure + "; no cudaGetLastError() has read it", state.failed);
  write_report();
}

/// Before any other object of the program: what it registers for its end runs last.
__attribute__((constructor(101))) void start() {
  std::atexit(at_exit);
  runtime();
  simt::adopt_device_variables();
  simt::watch_device_memory(host_touches);
  if (const char* const limit = std::getenv("CONVLADDER_SIM_LIMIT")) {
    signal(SIGALRM, [](int) { simt::interrupt(); });
    alarm(static_cast<unsigned>(std::atoi(limit)));
  }
}

/// The error that a GPU reports for a fault that ends the launch; cudaSuccess where the kernel goes on.
cudaError error_of(simt::FaultKind kind) {
  switch (kind) {
    case simt::FaultKind::out_of_bounds:
      return cudaErrorIllegalAddress;
    case simt::FaultKind::misaligned:
      return cudaErrorMisalignedAddress;
    default:
      return cudaErrorLaunchFailure;
  }
}

}  // namespace

cudaError allocate(void** pointer, std::size_t bytes, bool managed, const char* name, const char* file, int line) {
  Runtime& state = runtime();
  if (!pointer) return result(cudaErrorInvalidValue);
  *pointer = nullptr;
  if (state.sticky != cudaSuccess) return state.sticky;
  if (bytes == 0) return cudaSuccess;
  if (bytes > kMemory - state.used) return fail(cudaErrorMemoryAllocation);
  const std::string text = *name ? name : "memory of line " + std::to_string(line);
  try {
    *pointer = simt::allocate(bytes, state.names.emplace_back(text).c_str());
  } catch (const std::bad_alloc&) {
    return fail(cudaErrorMemoryAllocation);
  }
  state.used += bytes;
  state.blocks[address_of(*pointer)] = {text, {file, line}, bytes, managed, true};
  if (managed) {
    const simt::Allocation* const allocation = simt::find_allocation(address_of(*pointer));
    std::memset(allocation->bytes, simt::kWritten, bytes);  // the host may write it unseen
  }
  return cudaSuccess;
}

namespace {
cudaError release(void* pointer, const Place& place) {
  Runtime& state = runtime();
  if (!pointer) return result();
  const auto found = state.blocks.find(address_of(pointer));
  if (found == state.blocks.end() || !found->second.live) {
    const bool freed = found != state.blocks.end();
    report_host_fault(freed ? "double_free" : "invalid_free",
                      freed ? "'" + found->second.name + "' was freed before"
                      : simt::is_device_address(address_of(pointer))
                          ? "not the beginning of an allocation: " + simt::describe_global(address_of(pointer))
                          : "the pointer is not from cudaMalloc",
                      place);
    return result(cudaErrorInvalidValue);
  }
  found->second.live = false;
  state.used -= found->second.bytes;
  state.unfinished = false;
  simt::release(pointer);
  return result();
}
}  // namespace

cudaError copy_to_symbol(void* symbol, std::size_t size, const void* source, std::size_t bytes, std::size_t offset,
                         const char* file, int line) {
  const Place place{file, line};
  if (!in_constants(symbol) && !simt::is_device_address(address_of(symbol))) {
    report_host_fault("wrong_pointer", "cudaMemcpyToSymbol: the symbol is no __constant__ or __device__ variable",
                      place);
    return result(cudaErrorInvalidSymbol);
  }
  if (offset > size || bytes > size - offset) {
    report_host_fault("out_of_bounds",
                      "cudaMemcpyToSymbol writes " + std::to_string(bytes) + " bytes at offset " +
                          std::to_string(offset) + " of a symbol of " + std::to_string(size),
                      place);
    return result(cudaErrorInvalidValue);
  }
  if (!check_range(source, bytes, "cudaMemcpyToSymbol reads", place)) return result(cudaErrorInvalidValue);
  runtime().unfinished = false;
  copy(static_cast<char*>(symbol) + offset, source, bytes);
  return result();
}

cudaError copy_from_symbol(void* to, const void* symbol, std::size_t size, std::size_t bytes, std::size_t offset,
                           const char* file, int line) {
  if (offset > size || bytes > size - offset) {
    report_host_fault("out_of_bounds",
                      "cudaMemcpyFromSymbol reads " + std::to_string(bytes) + " bytes at offset " +
                          std::to_string(offset) + " of a symbol of " + std::to_string(size),
                      Place{file, line});
    return result(cudaErrorInvalidValue);
  }
  runtime().unfinished = false;
  copy(to, static_cast<const char*>(symbol) + offset, bytes);
  return result();
}

void allow_shared(const void* kernel, std::size_t bytes) {
  runtime().opted_in[base_name(simt::kernel_name(kernel))] = bytes;
}

void run(const char* kernel, const Configuration& configuration, void (*call)(const void*), const void* arguments) {
  Runtime& state = runtime();
  const Place place{configuration.file, configuration.line};
  if (simt::machine.running) refuse("a kernel that starts a kernel is not supported; launch it from the host", place);
  if (state.sticky != cudaSuccess) return;
  const std::string name = kernel;
  const std::string base = base_name(name);
  const auto opted = state.opted_in.find(base.substr(base.rfind(':') + 1));
  const std::size_t allowed = opted == state.opted_in.end() ? 48 << 10 : opted->second;
  if (configuration.shared > allowed) {
    state.failed = place;
    state.failure = std::to_string(configuration.shared) +
                    " bytes of dynamic shared memory; more than 48 KB must be asked for by cudaFuncSetAttribute";
    fail(cudaErrorInvalidValue);
    return;
  }
  simt::begin_measurement();
  simt::watch_device_memory(nullptr);
  simt::run_grid(state.names.emplace_back(name).c_str(), configuration.grid, configuration.block, configuration.shared,
                 call, arguments);
  simt::watch_device_memory(host_touches);
  add_launch(kernel);
  state.unfinished = true;
  if (simt::machine.interrupted) {
    note_limit();
    std::fflush(stdout);
    write_report();
    _exit(1);
  }
  if (!simt::machine.stopped) return;
  const auto& fault = simt::measurement().faults.back();
  if (fault.kind == simt::FaultKind::invalid_launch) {
    state.failed = place;
    state.failure = fault.detail;
    fail(cudaErrorInvalidConfiguration);
    return;
  }
  state.sticky = error_of(fault.kind);
}

}  // namespace simt_cuda

using simt_cuda::Place;
using simt_cuda::result;
using simt_cuda::runtime;

cudaError cudaFree(void* pointer, const char* file, int line) { return simt_cuda::release(pointer, {file, line}); }
cudaError cudaFreeHost(void* pointer, const char* file, int line) { return simt_cuda::release(pointer, {file, line}); }

cudaError cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, const char* file, int line) {
  const Place place{file, line};
  if (!simt_cuda::check_kind(to, from, kind, "cudaMemcpy", place)) return result(cudaErrorInvalidValue);
  if (!simt_cuda::check_range(to, bytes, "cudaMemcpy writes", place) ||
      !simt_cuda::check_range(from, bytes, "cudaMemcpy reads", place))
    return result(cudaErrorInvalidValue);
  runtime().unfinished = false;
  if (runtime().sticky == cudaSuccess) simt_cuda::copy(to, from, bytes);
  return result();
}

cudaError cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                       cudaMemcpyKind kind, const char* file, int line) {
  const Place place{file, line};
  if (width > to_pitch || width > from_pitch) return result(cudaErrorInvalidPitchValue);
  if (!simt_cuda::check_kind(to, from, kind, "cudaMemcpy2D", place)) return result(cudaErrorInvalidValue);
  if (width == 0 || height == 0) return result();
  if (!simt_cuda::check_range(to, to_pitch * (height - 1) + width, "cudaMemcpy2D writes", place) ||
      !simt_cuda::check_range(from, from_pitch * (height - 1) + width, "cudaMemcpy2D reads", place))
    return result(cudaErrorInvalidValue);
  runtime().unfinished = false;
  if (runtime().sticky != cudaSuccess) return result();
  for (size_t row = 0; row < height; ++row)
    simt_cuda::copy(static_cast<char*>(to) + row * to_pitch, static_cast<const char*>(from) + row * from_pitch, width);
  return result();
}

cudaError cudaMemset(void* to, int value, size_t bytes, const char* file, int line) {
  const Place place{file, line};
  if (!simt_cuda::check_side(to, true, "destination", "cudaMemset", place) ||
      !simt_cuda::check_range(to, bytes, "cudaMemset writes", place))
    return result(cudaErrorInvalidValue);
  if (runtime().sticky == cudaSuccess) simt_cuda::fill(to, value, bytes);
  return result();
}

cudaError cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t height, const char* file, int line) {
  if (width > pitch) return result(cudaErrorInvalidPitchValue);
  for (size_t row = 0; row < height; ++row)
    if (const cudaError error = cudaMemset(static_cast<char*>(to) + row * pitch, value, width, file, line))
      return error;
  return result();
}

cudaError cudaMemGetInfo(size_t* free, size_t* total) {
  *total = simt_cuda::kMemory;
  *free = simt_cuda::kMemory - runtime().used;
  return result();
}

cudaError cudaGetLastError() {
  runtime().failure.clear();
  const cudaError error = result(runtime().last);
  runtime().last = cudaSuccess;
  return error;
}

cudaError cudaPeekAtLastError() {
  runtime().failure.clear();
  return result(runtime().last);
}

#define SIM_ERRORS(each)                                                                                           \
  each(cudaSuccess, "no error") each(cudaErrorInvalidValue, "invalid argument")                                    \
      each(cudaErrorMemoryAllocation, "out of memory")                                                             \
          each(cudaErrorInvalidConfiguration, "invalid configuration argument")                                    \
              each(cudaErrorInvalidPitchValue, "invalid pitch argument")                                           \
                  each(cudaErrorInvalidSymbol, "invalid device symbol")                                            \
                      each(cudaErrorInvalidDevicePointer, "invalid device pointer")                                \
                          each(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy")               \
                              each(cudaErrorNoDevice, "no CUDA-capable device is detected")                        \
                                  each(cudaErrorInvalidDevice, "invalid device ordinal")                           \
                                      each(cudaErrorInvalidResourceHandle, "invalid resource handle")              \
                                          each(cudaErrorNotReady, "device not ready") each(                        \
                                              cudaErrorIllegalAddress, "an illegal memory access was encountered") \
                                              each(cudaErrorAssert, "device-side assert triggered")                \
                                                  each(cudaErrorMisalignedAddress, "misaligned address")           \
                                                      each(cudaErrorLaunchFailure, "unspecified launch failure")   \
                                                          each(cudaErrorNotSupported, "operation not supported")

const char* cudaGetErrorString(cudaError error) {
#define SIM_TEXT(name, text) \
  if (error == name) return text;
  SIM_ERRORS(SIM_TEXT)
  return "unknown error";
}

const char* cudaGetErrorName(cudaError error) {
#define SIM_NAME(name, text) \
  if (error == name) return #name;
  SIM_ERRORS(SIM_NAME)
  return "cudaErrorUnknown";
}

cudaError cudaDeviceSynchronize() {
  runtime().unfinished = false;
  return result();
}
cudaError cudaDeviceReset(const char* file, int line) {
  for (auto& [address, block] : runtime().blocks)
    if (block.live) simt_cuda::release(reinterpret_cast<void*>(address), {file, line});
  runtime().sticky = runtime().last = cudaSuccess;
  return cudaSuccess;
}
cudaError cudaGetDeviceCount(int* count) {
  *count = 1;
  return result();
}
cudaError cudaSetDevice(int device) { return result(device == 0 ? cudaSuccess : cudaErrorInvalidDevice); }
cudaError cudaGetDevice(int* device) {
  *device = 0;
  return result();
}

cudaError cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device != 0) return result(cudaErrorInvalidDevice);
  cudaDeviceProp p{};
  std::strcpy(p.name, "NVIDIA H200 (simulated by ConvLadder)");
  p.totalGlobalMem = simt_cuda::kMemory;
  p.sharedMemPerBlock = 48 << 10;
  p.sharedMemPerBlockOptin = simt_cuda::kOptIn;
  p.sharedMemPerMultiprocessor = 228 << 10;
  p.totalConstMem = 64 << 10;
  p.memPitch = 0x7fffffff;
  p.textureAlignment = 512;
  p.regsPerBlock = p.regsPerMultiprocessor = 65536;
  p.warpSize = 32;
  p.maxThreadsPerBlock = p.maxThreadsDim[0] = p.maxThreadsDim[1] = 1024;
  p.maxThreadsDim[2] = 64;
  p.maxGridSize[0] = 0x7fffffff;
  p.maxGridSize[1] = p.maxGridSize[2] = 65535;
  p.clockRate = 1980000;
  p.memoryClockRate = 3201000;
  p.memoryBusWidth = 6144;
  p.major = 9;
  p.multiProcessorCount = 132;
  p.l2CacheSize = 60 << 20;
  p.maxThreadsPerMultiProcessor = 2048;
  p.maxBlocksPerMultiProcessor = 32;
  p.concurrentKernels = p.asyncEngineCount = p.deviceOverlap = p.canMapHostMemory = p.ECCEnabled = 1;
  p.unifiedAddressing = p.managedMemory = p.concurrentManagedAccess = 1;
  *properties = p;
  return result();
}

cudaError cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (device != 0) return result(cudaErrorInvalidDevice);
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
      *value = 1024;
      return result();
    case cudaDevAttrMaxSharedMemoryPerBlock:
      *value = 48 << 10;
      return result();
    case cudaDevAttrWarpSize:
      *value = 32;
      return result();
    case cudaDevAttrMultiProcessorCount:
      *value = 132;
      return result();
    case cudaDevAttrComputeCapabilityMajor:
      *value = 9;
      return result();
    case cudaDevAttrComputeCapabilityMinor:
      *value = 0;
      return result();
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = simt_cuda::kOptIn;
      return result();
  }
  return result(cudaErrorInvalidValue);
}

cudaError cudaStreamCreate(cudaStream_t* stream) {
  *stream = new CUstream_st;
  return result();
}
cudaError cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return result();
}
cudaError cudaStreamSynchronize(cudaStream_t) { return cudaDeviceSynchronize(); }
cudaError cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return result(); }
cudaError cudaStreamQuery(cudaStream_t) { return cudaDeviceSynchronize(); }

cudaError cudaEventCreate(cudaEvent_t* event) {
  *event = new CUevent_st;
  return result();
}
cudaError cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return result();
}
cudaError cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  if (!event) return result(cudaErrorInvalidResourceHandle);
  event->recorded = true;
  event->time = std::chrono::steady_clock::now();
  return result();
}
cudaError cudaEventSynchronize(cudaEvent_t) { return cudaDeviceSynchronize(); }
cudaError cudaEventQuery(cudaEvent_t) { return cudaDeviceSynchronize(); }
cudaError cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  if (!begin || !end || !begin->recorded || !end->recorded) return result(cudaErrorInvalidResourceHandle);
  static bool said = false;
  if (!said) std::fprintf(stderr, "./lab sim: elapsed times are the simulator's on this machine, not a GPU's\n");
  said = true;
  *milliseconds = std::chrono::duration<float, std::milli>(end->time - begin->time).count();
  return result();
}

// ---- What the C++ library's headers call in instrumented host code, and a failed assert ----------------------------

extern "C" {

/// Before and after all `__device__` variables: an index past one meets another guard, and no other variable.
__attribute__((used, section("simt_device"))) simt::Guard simt_guard_of_devices;

void __assert_fail(const char* expression, const char* file, unsigned line, const char* function) {
  if (simt::machine.running) {
    simt::machine.watching = false;
    simt::report(simt::FaultKind::crash, simt::relative_pc(__builtin_return_address(0)),
                 std::string("the assertion '") + expression + "' failed")
        .line = static_cast<int>(line);
    simt::stop();
  }
  std::fflush(stdout);
  std::fprintf(stderr, "%s:%u: %s: Assertion `%s' failed.\n", file, line, function, expression);
  std::abort();
}

#define SIM_ATOMIC(bits, T)                                                                                         \
  T __tsan_atomic##bits##_load(const volatile T* a, int) { return __atomic_load_n(a, __ATOMIC_SEQ_CST); }           \
  void __tsan_atomic##bits##_store(volatile T* a, T v, int) { __atomic_store_n(a, v, __ATOMIC_SEQ_CST); }           \
  T __tsan_atomic##bits##_exchange(volatile T* a, T v, int) { return __atomic_exchange_n(a, v, __ATOMIC_SEQ_CST); } \
  T __tsan_atomic##bits##_fetch_add(volatile T* a, T v, int) { return __atomic_fetch_add(a, v, __ATOMIC_SEQ_CST); } \
  T __tsan_atomic##bits##_fetch_sub(volatile T* a, T v, int) { return __atomic_fetch_sub(a, v, __ATOMIC_SEQ_CST); } \
  T __tsan_atomic##bits##_fetch_and(volatile T* a, T v, int) { return __atomic_fetch_and(a, v, __ATOMIC_SEQ_CST); } \
  T __tsan_atomic##bits##_fetch_or(volatile T* a, T v, int) { return __atomic_fetch_or(a, v, __ATOMIC_SEQ_CST); }   \
  T __tsan_atomic##bits##_fetch_xor(volatile T* a, T v, int) { return __atomic_fetch_xor(a, v, __ATOMIC_SEQ_CST); } \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile T* a, T* c, T v, int, int) {                           \
    return __atomic_compare_exchange_n(a, c, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                         \
  }                                                                                                                 \
  int __tsan_atomic##bits##_compare_exchange_weak(volatile T* a, T* c, T v, int, int) {                             \
    return __atomic_compare_exchange_n(a, c, v, true, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                          \
  }
SIM_ATOMIC(8, std::uint8_t)
SIM_ATOMIC(16, std::uint16_t)
SIM_ATOMIC(32, std::uint32_t)
SIM_ATOMIC(64, std::uint64_t)
void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __tsan_atomic_signal_fence(int) {}

}  // extern "C"
