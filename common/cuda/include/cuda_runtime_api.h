/// @file
/// CUDA's runtime over the simulator, for plain CUDA programs under `./lab sim`, and what the front end makes of a
/// launch. docs/sim.md lists what is there.
#pragma once
#include <tuple>
#include <type_traits>
#include <utility>

#include "common/cuda/include/cuda_runtime.h"

/// @cond
// ---- Types ---------------------------------------------------------------------------------------------------------

#define SIM_ERRORS(each)                                                                                               \
  each(cudaSuccess, 0, "no error") each(cudaErrorInvalidValue, 1, "invalid argument") each(                            \
      cudaErrorMemoryAllocation, 2,                                                                                    \
      "out of memory") each(cudaErrorInitializationError, 3,                                                           \
                            "initialization error") each(cudaErrorInvalidConfiguration, 9,                             \
                                                         "invalid configuration argument")                             \
      each(cudaErrorInvalidPitchValue, 12, "invalid pitch argument") each(                                             \
          cudaErrorInvalidSymbol, 13,                                                                                  \
          "invalid device symbol") each(cudaErrorInvalidDevicePointer, 17,                                             \
                                        "invalid device pointer") each(cudaErrorInvalidMemcpyDirection, 21,            \
                                                                       "invalid copy direction for memcpy")            \
          each(cudaErrorInsufficientDriver, 35, "CUDA driver version is insufficient for CUDA runtime version") each(  \
              cudaErrorInvalidDeviceFunction, 98,                                                                      \
              "invalid device function") each(cudaErrorNoDevice, 100,                                                  \
                                              "no CUDA-capable device is detected") each(cudaErrorInvalidDevice, 101,  \
                                                                                         "invalid device ordinal")     \
              each(cudaErrorInvalidKernelImage, 200, "device kernel image is invalid") each(                           \
                  cudaErrorNoKernelImageForDevice, 209,                                                                \
                  "no kernel image is available for execution on the device") each(cudaErrorInvalidResourceHandle,     \
                                                                                   400, "invalid resource handle")     \
                  each(cudaErrorIllegalState, 401, "the operation cannot be performed in the present state") each(     \
                      cudaErrorNotReady, 600, "device not ready") each(cudaErrorIllegalAddress, 700,                   \
                                                                       "an illegal memory access was encountered")     \
                      each(cudaErrorLaunchOutOfResources, 701, "too many resources requested for launch") each(        \
                          cudaErrorLaunchTimeout, 702, "the launch timed out and was terminated")                      \
                          each(cudaErrorPeerAccessAlreadyEnabled, 704, "peer access is already enabled") each(         \
                              cudaErrorPeerAccessNotEnabled, 705, "peer access has not been enabled")                  \
                              each(cudaErrorAssert, 710, "device-side assert triggered") each(                         \
                                  cudaErrorHostMemoryAlreadyRegistered, 712,                                           \
                                  "part or all of the requested memory range is already mapped")                       \
                                  each(cudaErrorHostMemoryNotRegistered, 713,                                          \
                                       "pointer does not correspond to a registered memory region")                    \
                                      each(cudaErrorIllegalInstruction, 715, "an illegal instruction was encountered") \
                                          each(cudaErrorMisalignedAddress, 716, "misaligned address") each(            \
                                              cudaErrorInvalidAddressSpace, 717,                                       \
                                              "operation not supported on global/shared address space")                \
                                              each(cudaErrorLaunchFailure, 719, "unspecified launch failure")          \
                                                  each(cudaErrorCooperativeLaunchTooLarge, 720,                        \
                                                       "too many blocks in cooperative launch")                        \
                                                      each(cudaErrorNotPermitted, 800, "operation not permitted")      \
                                                          each(cudaErrorNotSupported, 801, "operation not supported")  \
                                                              each(cudaErrorStreamCaptureUnsupported, 900,             \
                                                                   "operation not permitted when stream is capturing") \
                                                                  each(cudaErrorStreamCaptureInvalidated, 901,         \
                                                                       "operation failed due to a previous error "     \
                                                                       "during capture")                               \
                                                                      each(cudaErrorInvalidClusterSize, 912,           \
                                                                           "cluster misconfiguration")                 \
                                                                          each(cudaErrorUnknown, 999, "unknown error")
#define SIM_ERROR(name, number, text) name = number,
enum cudaError { SIM_ERRORS(SIM_ERROR) };
#undef SIM_ERROR
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
typedef struct CUgraph_st* cudaGraph_t;
typedef struct CUgraphExec_st* cudaGraphExec_t;
typedef struct CUgraphNode_st* cudaGraphNode_t;
typedef struct CUmemPool_st* cudaMemPool_t;
#define cudaStreamLegacy ((cudaStream_t)0x1)
#define cudaStreamPerThread ((cudaStream_t)0x2)
#define cudaStreamTailLaunch ((cudaStream_t)0x3)
#define cudaStreamFireAndForget ((cudaStream_t)0x4)
typedef void (*cudaHostFn_t)(void*);
typedef void (*cudaStreamCallback_t)(cudaStream_t, cudaError_t, void*);
enum cudaStreamCaptureMode {
  cudaStreamCaptureModeGlobal,
  cudaStreamCaptureModeThreadLocal,
  cudaStreamCaptureModeRelaxed
};
enum cudaStreamCaptureStatus {
  cudaStreamCaptureStatusNone,
  cudaStreamCaptureStatusActive,
  cudaStreamCaptureStatusInvalidated
};
enum cudaFuncAttribute {
  cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
  cudaFuncAttributePreferredSharedMemoryCarveout = 9,
  cudaFuncAttributeNonPortableClusterSizeAllowed = 15
};
enum { cudaSharedmemCarveoutDefault = -1, cudaSharedmemCarveoutMaxL1 = 0, cudaSharedmemCarveoutMaxShared = 100 };
enum cudaFuncCache {
  cudaFuncCachePreferNone,
  cudaFuncCachePreferShared,
  cudaFuncCachePreferL1,
  cudaFuncCachePreferEqual
};
enum cudaSharedMemConfig {
  cudaSharedMemBankSizeDefault,
  cudaSharedMemBankSizeFourByte,
  cudaSharedMemBankSizeEightByte
};
enum cudaLimit {
  cudaLimitStackSize,
  cudaLimitPrintfFifoSize,
  cudaLimitMallocHeapSize,
  cudaLimitDevRuntimeSyncDepth,
  cudaLimitDevRuntimePendingLaunchCount
};
enum cudaComputeMode {
  cudaComputeModeDefault,
  cudaComputeModeExclusive,
  cudaComputeModeProhibited,
  cudaComputeModeExclusiveProcess
};
enum cudaMemoryAdvise {
  cudaMemAdviseSetReadMostly = 1,
  cudaMemAdviseUnsetReadMostly,
  cudaMemAdviseSetPreferredLocation,
  cudaMemAdviseUnsetPreferredLocation,
  cudaMemAdviseSetAccessedBy,
  cudaMemAdviseUnsetAccessedBy
};
enum cudaMemoryType { cudaMemoryTypeUnregistered, cudaMemoryTypeHost, cudaMemoryTypeDevice, cudaMemoryTypeManaged };
enum cudaMemLocationType { cudaMemLocationTypeInvalid, cudaMemLocationTypeDevice, cudaMemLocationTypeHost };
struct cudaMemLocation {
  cudaMemLocationType type;
  int id;
};
enum cudaMemPoolAttr { cudaMemPoolAttrReleaseThreshold = 4 };
enum { cudaStreamDefault = 0, cudaStreamNonBlocking = 1 };
enum { cudaEventDefault = 0, cudaEventBlockingSync = 1, cudaEventDisableTiming = 2, cudaEventInterprocess = 4 };
enum { cudaEventRecordDefault = 0, cudaEventWaitDefault = 0, cudaEventRecordExternal = 1, cudaEventWaitExternal = 1 };
enum { cudaHostAllocDefault = 0, cudaHostAllocPortable = 1, cudaHostAllocMapped = 2, cudaHostAllocWriteCombined = 4 };
enum {
  cudaHostRegisterDefault = 0,
  cudaHostRegisterPortable = 1,
  cudaHostRegisterMapped = 2,
  cudaHostRegisterReadOnly = 8
};
enum { cudaMemAttachGlobal = 1, cudaMemAttachHost = 2, cudaMemAttachSingle = 4 };
enum {
  cudaDeviceScheduleAuto = 0,
  cudaDeviceScheduleSpin = 1,
  cudaDeviceScheduleYield = 2,
  cudaDeviceScheduleBlockingSync = 4,
  cudaDeviceMapHost = 8
};
enum { cudaCpuDeviceId = -1, cudaInvalidDeviceId = -2 };
enum { cudaOccupancyDefault = 0, cudaOccupancyDisableCachingOverride = 1 };
#define SIM_ATTRIBUTES(each)                                                                                           \
  each(MaxThreadsPerBlock, 1, maxThreadsPerBlock) each(MaxBlockDimX, 2, maxThreadsDim[0]) each(                        \
      MaxBlockDimY, 3, maxThreadsDim[1]) each(MaxBlockDimZ, 4, maxThreadsDim[2]) each(MaxGridDimX, 5, maxGridSize[0])  \
      each(MaxGridDimY, 6, maxGridSize[1]) each(MaxGridDimZ, 7, maxGridSize[2]) each(                                  \
          MaxSharedMemoryPerBlock, 8, sharedMemPerBlock) each(TotalConstantMemory, 9, totalConstMem)                   \
          each(WarpSize, 10, warpSize) each(MaxPitch, 11, memPitch) each(MaxRegistersPerBlock, 12, regsPerBlock) each( \
              ClockRate, 13, clockRate) each(TextureAlignment, 14, textureAlignment)                                   \
              each(GpuOverlap, 15, deviceOverlap) each(MultiProcessorCount, 16, multiProcessorCount) each(             \
                  KernelExecTimeout, 17, kernelExecTimeoutEnabled) each(Integrated, 18, integrated)                    \
                  each(CanMapHostMemory, 19, canMapHostMemory) each(ComputeMode, 20, computeMode) each(                \
                      ConcurrentKernels, 31, concurrentKernels) each(EccEnabled, 32,                                   \
                                                                     ECCEnabled) each(PciBusId, 33, pciBusID)          \
                      each(PciDeviceId, 34, pciDeviceID) each(MemoryClockRate, 36, memoryClockRate) each(              \
                          GlobalMemoryBusWidth, 37, memoryBusWidth) each(L2CacheSize, 38, l2CacheSize)                 \
                          each(MaxThreadsPerMultiProcessor, 39, maxThreadsPerMultiProcessor) each(                     \
                              AsyncEngineCount, 40, asyncEngineCount) each(UnifiedAddressing, 41, unifiedAddressing)   \
                              each(ComputeCapabilityMajor, 75,                                                         \
                                   major) each(ComputeCapabilityMinor, 76, minor)                                      \
                                  each(StreamPrioritiesSupported, 78, streamPrioritiesSupported) each(                 \
                                      MaxSharedMemoryPerMultiprocessor, 81, sharedMemPerMultiprocessor)                \
                                      each(MaxRegistersPerMultiprocessor, 82, regsPerMultiprocessor) each(             \
                                          ManagedMemory, 83, managedMemory) each(PageableMemoryAccess, 88,             \
                                                                                 pageableMemoryAccess)                 \
                                          each(ConcurrentManagedAccess, 89, concurrentManagedAccess)                   \
                                              each(ComputePreemptionSupported, 90, computePreemptionSupported) each(   \
                                                  CooperativeLaunch, 95, cooperativeLaunch)                            \
                                                  each(MaxSharedMemoryPerBlockOptin, 97, sharedMemPerBlockOptin) each( \
                                                      MaxBlocksPerMultiprocessor, 106, maxBlocksPerMultiProcessor)     \
                                                      each(MaxPersistingL2CacheSize, 108, persistingL2CacheMaxSize)    \
                                                          each(ReservedSharedMemoryPerBlock, 111,                      \
                                                               reservedSharedMemPerBlock)                              \
                                                              each(MemoryPoolsSupported, 115, memoryPoolsSupported)    \
                                                                  each(ClusterLaunch, 120, clusterLaunch)
#define SIM_ATTRIBUTE(name, number, field) cudaDevAttr##name = number,
enum cudaDeviceAttr { SIM_ATTRIBUTES(SIM_ATTRIBUTE) };
#undef SIM_ATTRIBUTE
struct cudaUUID_t {
  char bytes[16];
};
struct cudaDeviceProp {
  char name[256];
  cudaUUID_t uuid;
  size_t totalGlobalMem, sharedMemPerBlock, sharedMemPerBlockOptin, sharedMemPerMultiprocessor,
      reservedSharedMemPerBlock, totalConstMem, memPitch, textureAlignment, texturePitchAlignment, surfaceAlignment;
  int regsPerBlock, regsPerMultiprocessor, warpSize, maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], clockRate,
      memoryClockRate, memoryBusWidth, major, minor, multiProcessorCount, l2CacheSize, persistingL2CacheMaxSize,
      accessPolicyMaxWindowSize, maxThreadsPerMultiProcessor, maxBlocksPerMultiProcessor, concurrentKernels,
      asyncEngineCount, deviceOverlap, integrated, canMapHostMemory, computeMode, ECCEnabled, unifiedAddressing,
      managedMemory, concurrentManagedAccess, pageableMemoryAccess, directManagedMemAccessFromHost,
      computePreemptionSupported, cooperativeLaunch, cooperativeMultiDeviceLaunch, clusterLaunch, pciBusID, pciDeviceID,
      pciDomainID, kernelExecTimeoutEnabled, tccDriver, isMultiGpuBoard, multiGpuBoardGroupID,
      streamPrioritiesSupported, globalL1CacheSupported, localL1CacheSupported, singleToDoublePrecisionPerfRatio,
      memoryPoolsSupported, hostRegisterSupported, hostNativeAtomicSupported, maxTexture1D, maxTexture1DLinear,
      maxTexture2D[2], maxTexture3D[3], maxTexture1DLayered[2], maxTexture2DLayered[3], maxSurface1D, maxSurface2D[2],
      maxSurface3D[3];
};
struct cudaFuncAttributes {
  size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
  int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA, maxDynamicSharedSizeBytes,
      preferredShmemCarveout;
};
struct cudaPointerAttributes {
  cudaMemoryType type;
  int device;
  void *devicePointer, *hostPointer;
};
struct cudaPitchedPtr {
  void* ptr;
  size_t pitch, xsize, ysize;
};
struct cudaExtent {
  size_t width, height, depth;
};
struct cudaPos {
  size_t x, y, z;
};
typedef struct cudaArray* cudaArray_t;
struct cudaMemcpy3DParms {
  cudaArray_t srcArray;
  cudaPos srcPos;
  cudaPitchedPtr srcPtr;
  cudaArray_t dstArray;
  cudaPos dstPos;
  cudaPitchedPtr dstPtr;
  cudaExtent extent;
  cudaMemcpyKind kind;
};
inline cudaPitchedPtr make_cudaPitchedPtr(void* p, size_t pitch, size_t x, size_t y) { return {p, pitch, x, y}; }
inline cudaExtent make_cudaExtent(size_t w, size_t h, size_t d) { return {w, h, d}; }
inline cudaPos make_cudaPos(size_t x, size_t y, size_t z) { return {x, y, z}; }
enum cudaLaunchAttributeID {
  cudaLaunchAttributeIgnore = 0,
  cudaLaunchAttributeCooperative = 2,
  cudaLaunchAttributeClusterDimension = 4,
  cudaLaunchAttributeClusterSchedulingPolicyPreference = 5,
  cudaLaunchAttributeProgrammaticStreamSerialization = 6,
  cudaLaunchAttributePriority = 8
};
union cudaLaunchAttributeValue {
  char pad[64];
  int cooperative, programmaticStreamSerializationAllowed, priority;
  struct {
    unsigned x, y, z;
  } clusterDim;
};
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  cudaLaunchAttributeValue val;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute* attrs;
  unsigned numAttrs;
};

#define SIM_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()
#define SIM_NAMED const char *name = "", const char *file = __builtin_FILE(), int line = __builtin_LINE()

// ---- Work in streams: what the front end makes of <<< >>> ----------------------------------------------------------

namespace simt_cuda {

struct Configuration {
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream;
  const char* file;
  int line;
  bool cooperative = false;
  dim3 cluster = {0, 0, 0};  ///< 0: as the kernel's __cluster_dims__ say
  Configuration(dim3 grid_, dim3 block_, size_t shared_ = 0, cudaStream_t stream_ = nullptr,
                const char* file_ = __builtin_FILE(), int line_ = __builtin_LINE())
      : grid(grid_), block(block_), shared(shared_), stream(stream_), file(file_), line(line_) {}
};

/// What a graph does, one thing after another.
struct Step {
  virtual ~Step() {}
  virtual void run(cudaStream_t stream) = 0;
};
template <class Work>
struct StepOf : Step {
  Work work;
  explicit StepOf(const Work& work_) : work(work_) {}
  void run(cudaStream_t stream) override { work(stream); }
};
/// Whether work in the stream goes into a graph.
bool is_capturing(cudaStream_t stream);
/// Adds to that graph, which owns it from now on.
void add_step(cudaStream_t stream, Step* step);

/// Whether a kernel runs. What it launches starts when it has ended.
bool in_kernel();
/// @param stream as the kernel gave it: a tail launch comes after the others
void launch_later(cudaStream_t stream, Step* step);
/// While it lives, the simulator does not look at the running thread.
struct Unseen {
  bool was;
  Unseen();
  ~Unseen();
};

/// @param values the arguments' own bytes, by which a launch is known again that repeats an earlier one; or null
cudaError run(const char* kernel, const Configuration& configuration, void (*call)(const void*), const void* arguments,
              const void* values, size_t bytes);
const char* name_of_kernel(const void* kernel);
cudaError unknown_kernel(const char* call, const char* file, int line);
cudaError launch_attributes(const cudaLaunchConfig_t& given, Configuration& configuration);

/// A kernel that is called by its address, which is the first of the values.
template <class... Parameters>
struct Function {
  template <class... Values>
  __attribute__((no_sanitize("thread"))) void operator()(void (*kernel)(Parameters...), const Values&... values) const {
    ::simt::watch();
    kernel(values...);
  }
};

template <class Body, class Values>
cudaError start(const char* kernel, const Configuration& configuration, const Body& body, const Values& values) {
  const auto call = [&]() __attribute__((no_sanitize("thread"))) { std::apply(body, values); };
  using Call = decltype(call);
  return run(
      kernel, configuration, [](const void* self) { (*static_cast<Call*>(self))(); }, &call,
      std::is_empty<Body>::value ? &values : nullptr, sizeof values);  // else the body has something of its own
}

/// Runs `body`, a call of the kernel, with copies of the arguments.
template <class Body, class... Arguments>
cudaError launch_body(const char* kernel, const Configuration& configuration, Body body, Arguments&&... arguments) {
  const std::tuple<std::decay_t<Arguments>...> values(arguments...);
  if (in_kernel()) {
    const Unseen unseen;
    const auto later = [=](cudaStream_t stream) {
      Configuration of_child = configuration;
      of_child.stream = stream;
      start(kernel, of_child, body, values);
    };
    launch_later(configuration.stream, new StepOf<decltype(later)>(later));
    return cudaSuccess;
  }
  if (!is_capturing(configuration.stream)) return start(kernel, configuration, body, values);
  const auto again = [=](cudaStream_t stream) {
    Configuration in_graph = configuration;
    in_graph.stream = stream;
    start(kernel, in_graph, body, values);
  };
  add_step(configuration.stream, new StepOf<decltype(again)>(again));
  return cudaSuccess;
}

/// What the front end makes of <<< >>>.
template <class Body, class... Arguments>
void launch(const char* kernel, const Configuration& configuration, Body body, Arguments&&... arguments) {
  launch_body(kernel, configuration, body, static_cast<Arguments&&>(arguments)...);
}

template <class... Parameters>
cudaError launch_function(void (*kernel)(Parameters...), const Configuration& configuration,
                          std::decay_t<Parameters>... arguments) {
  return launch_body(name_of_kernel(reinterpret_cast<const void*>(kernel)), configuration, Function<Parameters...>{},
                     kernel, arguments...);
}
template <class... Parameters, size_t... I>
cudaError launch_pointers(void (*kernel)(Parameters...), const Configuration& configuration, void** arguments,
                          std::index_sequence<I...>) {
  return launch_function(kernel, configuration, *static_cast<std::decay_t<Parameters>*>(arguments[I])...);
}

/// `extern __shared__ T name[]` outside a function.
template <class T>
struct DynamicShared {
  __forceinline__ operator T*() const { return static_cast<T*>(::simt::dynamic_shared_memory()); }
};

/// A `__managed__` variable.
struct Managed {
  Managed(void* address, size_t bytes, const char* name);
};

cudaError allocate(void** pointer, size_t bytes, bool managed, SIM_NAMED);
cudaError copy_to_symbol(void* symbol, size_t size, const void* source, size_t bytes, size_t offset, SIM_HERE);
cudaError copy_from_symbol(void* to, const void* symbol, size_t size, size_t bytes, size_t offset, SIM_HERE);
cudaError allow_shared(const void* kernel, size_t bytes);
cudaError allow_large_clusters(const void* kernel, bool allowed);
/// A kernel's __cluster_dims__; the front end puts it before the kernel.
struct ClusterDims {
  ClusterDims(const char* kernel, dim3 size);
};
cudaError active_clusters(int* clusters, const void* kernel, const cudaLaunchConfig_t* config);
cudaError largest_cluster(int* blocks, const void* kernel, const cudaLaunchConfig_t* config);
cudaError function_attributes(cudaFuncAttributes* attributes, const void* kernel);
}  // namespace simt_cuda

// The front end takes a cast to `void*` from the kernel, whose parameters are needed.
template <class... Parameters>
cudaError cudaLaunchKernel(void (*kernel)(Parameters...), dim3 grid, dim3 block, void** arguments, size_t shared = 0,
                           cudaStream_t stream = nullptr, SIM_HERE) {
  return simt_cuda::launch_pointers(kernel, {grid, block, shared, stream, file, line}, arguments,
                                    std::index_sequence_for<Parameters...>());
}
inline cudaError cudaLaunchKernel(const void*, dim3, dim3, void**, size_t = 0, cudaStream_t = nullptr, SIM_HERE) {
  return simt_cuda::unknown_kernel("cudaLaunchKernel", file, line);
}
template <class... Parameters>
cudaError cudaLaunchCooperativeKernel(void (*kernel)(Parameters...), dim3 grid, dim3 block, void** arguments,
                                      size_t shared = 0, cudaStream_t stream = nullptr, SIM_HERE) {
  simt_cuda::Configuration configuration(grid, block, shared, stream, file, line);
  configuration.cooperative = true;
  return simt_cuda::launch_pointers(kernel, configuration, arguments, std::index_sequence_for<Parameters...>());
}
inline cudaError cudaLaunchCooperativeKernel(const void*, dim3, dim3, void**, size_t = 0, cudaStream_t = nullptr,
                                             SIM_HERE) {
  return simt_cuda::unknown_kernel("cudaLaunchCooperativeKernel", file, line);
}
namespace simt_cuda {
template <class T>
struct Same {
  typedef T type;
};
struct LaunchConfig {  // where it was called
  const cudaLaunchConfig_t* given;
  const char* file;
  int line;
  LaunchConfig(const cudaLaunchConfig_t* given_, SIM_HERE) : given(given_), file(file), line(line) {}
};
}  // namespace simt_cuda
template <class... Parameters, class... Arguments>
cudaError cudaLaunchKernelEx(simt_cuda::LaunchConfig config, void (*kernel)(Parameters...), Arguments&&... arguments) {
  simt_cuda::Configuration configuration(config.given->gridDim, config.given->blockDim, config.given->dynamicSmemBytes,
                                         config.given->stream, config.file, config.line);
  if (const cudaError error = simt_cuda::launch_attributes(*config.given, configuration)) return error;
  return simt_cuda::launch_function<Parameters...>(kernel, configuration, static_cast<Arguments&&>(arguments)...);
}
template <class... Parameters>
cudaError cudaLaunchKernelExC(simt_cuda::LaunchConfig config, void (*kernel)(Parameters...), void** arguments) {
  simt_cuda::Configuration configuration(config.given->gridDim, config.given->blockDim, config.given->dynamicSmemBytes,
                                         config.given->stream, config.file, config.line);
  if (const cudaError error = simt_cuda::launch_attributes(*config.given, configuration)) return error;
  return simt_cuda::launch_pointers(kernel, configuration, arguments, std::index_sequence_for<Parameters...>());
}
inline cudaError cudaLaunchKernelExC(simt_cuda::LaunchConfig config, const void*, void**) {
  return simt_cuda::unknown_kernel("cudaLaunchKernelExC", config.file, config.line);
}

// ---- Memory --------------------------------------------------------------------------------------------------------

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
inline cudaError cudaMalloc3D(cudaPitchedPtr* pitched, cudaExtent extent, SIM_NAMED) {
  *pitched = {nullptr, (extent.width + 511) / 512 * 512, extent.width, extent.height};
  return simt_cuda::allocate(&pitched->ptr, pitched->pitch * extent.height * extent.depth, false, name, file, line);
}
cudaError cudaFree(void* pointer, SIM_HERE);
cudaError cudaFreeHost(void* pointer, SIM_HERE);
cudaError cudaFreeAsync(void* pointer, cudaStream_t stream, SIM_HERE);
cudaError cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, SIM_HERE);
cudaError cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream = nullptr,
                          SIM_HERE);
cudaError cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                       cudaMemcpyKind kind, SIM_HERE);
cudaError cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                            cudaMemcpyKind kind, cudaStream_t stream = nullptr, SIM_HERE);
cudaError cudaMemcpy3D(const cudaMemcpy3DParms* copy, SIM_HERE);
inline cudaError cudaMemcpy3DAsync(const cudaMemcpy3DParms* copy, cudaStream_t = nullptr, SIM_HERE) {
  return cudaMemcpy3D(copy, file, line);
}
inline cudaError cudaMemcpyPeer(void* to, int, const void* from, int, size_t bytes, SIM_HERE) {
  return cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToDevice, file, line);
}
cudaError cudaMemset(void* to, int value, size_t bytes, SIM_HERE);
cudaError cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream = nullptr, SIM_HERE);
cudaError cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t height, SIM_HERE);
inline cudaError cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height,
                                   cudaStream_t = nullptr, SIM_HERE) {
  return cudaMemset2D(to, pitch, value, width, height, file, line);
}
inline cudaError cudaMemset3D(cudaPitchedPtr to, int value, cudaExtent extent, SIM_HERE) {
  return cudaMemset2D(to.ptr, to.pitch, value, extent.width, extent.height * extent.depth, file, line);
}
cudaError cudaMemGetInfo(size_t* free, size_t* total);
inline cudaError cudaMemPrefetchAsync(const void*, size_t, int, cudaStream_t = nullptr) { return cudaSuccess; }
inline cudaError cudaMemPrefetchAsync(const void*, size_t, cudaMemLocation, unsigned, cudaStream_t = nullptr) {
  return cudaSuccess;
}
inline cudaError cudaMemAdvise(const void*, size_t, cudaMemoryAdvise, int) { return cudaSuccess; }
inline cudaError cudaMemAdvise(const void*, size_t, cudaMemoryAdvise, cudaMemLocation) { return cudaSuccess; }
inline cudaError cudaHostRegister(void*, size_t, unsigned) { return cudaSuccess; }
inline cudaError cudaHostUnregister(void*) { return cudaSuccess; }
template <class T>
cudaError cudaHostGetDevicePointer(T** device, void* host, unsigned) {
  *device = static_cast<T*>(host);
  return cudaSuccess;
}
cudaError cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer);
inline cudaError cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int) { return *pool = nullptr, cudaSuccess; }
inline cudaError cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) { return cudaSuccess; }
inline cudaError cudaMemPoolTrimTo(cudaMemPool_t, size_t) { return cudaSuccess; }

template <class T>
cudaError cudaMemcpyToSymbol(const T& symbol, const void* source, size_t bytes, size_t offset = 0,
                             cudaMemcpyKind = cudaMemcpyHostToDevice, SIM_HERE) {
  return simt_cuda::copy_to_symbol(const_cast<void*>(reinterpret_cast<const volatile void*>(&symbol)), sizeof symbol,
                                   source, bytes, offset, file, line);
}
template <class T>
cudaError cudaMemcpyToSymbolAsync(const T& symbol, const void* source, size_t bytes, size_t offset = 0,
                                  cudaMemcpyKind = cudaMemcpyHostToDevice, cudaStream_t = nullptr, SIM_HERE) {
  return cudaMemcpyToSymbol(symbol, source, bytes, offset, cudaMemcpyHostToDevice, file, line);
}
template <class T>
cudaError cudaMemcpyFromSymbol(void* to, const T& symbol, size_t bytes, size_t offset = 0,
                               cudaMemcpyKind = cudaMemcpyDeviceToHost, SIM_HERE) {
  return simt_cuda::copy_from_symbol(to, const_cast<const void*>(reinterpret_cast<const volatile void*>(&symbol)),
                                     sizeof symbol, bytes, offset, file, line);
}
template <class T>
cudaError cudaMemcpyFromSymbolAsync(void* to, const T& symbol, size_t bytes, size_t offset = 0,
                                    cudaMemcpyKind = cudaMemcpyDeviceToHost, cudaStream_t = nullptr, SIM_HERE) {
  return cudaMemcpyFromSymbol(to, symbol, bytes, offset, cudaMemcpyDeviceToHost, file, line);
}
template <class P, class T>
cudaError cudaGetSymbolAddress(P** pointer, const T& symbol) {
  *pointer = reinterpret_cast<P*>(const_cast<void*>(reinterpret_cast<const volatile void*>(&symbol)));
  return cudaSuccess;
}
template <class T>
cudaError cudaGetSymbolSize(size_t* bytes, const T& symbol) {
  return *bytes = sizeof symbol, cudaSuccess;
}

// ---- Errors, the device --------------------------------------------------------------------------------------------

cudaError cudaGetLastError();
cudaError cudaPeekAtLastError();
const char* cudaGetErrorString(cudaError error);
const char* cudaGetErrorName(cudaError error);
cudaError cudaDeviceSynchronize(SIM_HERE);
inline cudaError cudaThreadSynchronize(SIM_HERE) { return cudaDeviceSynchronize(file, line); }
cudaError cudaDeviceReset(SIM_HERE);
inline cudaError cudaThreadExit(SIM_HERE) { return cudaDeviceReset(file, line); }
cudaError cudaGetDeviceCount(int* count);
cudaError cudaSetDevice(int device);
cudaError cudaGetDevice(int* device);
cudaError cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
inline cudaError cudaGetDeviceProperties_v2(cudaDeviceProp* p, int device) {
  return cudaGetDeviceProperties(p, device);
}
cudaError cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);
inline cudaError cudaChooseDevice(int* device, const cudaDeviceProp*) { return *device = 0, cudaSuccess; }
inline cudaError cudaSetDeviceFlags(unsigned) { return cudaSuccess; }
inline cudaError cudaGetDeviceFlags(unsigned* flags) { return *flags = 0, cudaSuccess; }
inline cudaError cudaInitDevice(int, unsigned, unsigned) { return cudaSuccess; }
inline cudaError cudaDeviceSetCacheConfig(cudaFuncCache) { return cudaSuccess; }
inline cudaError cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) { return cudaSuccess; }
inline cudaError cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config) {
  return *config = cudaSharedMemBankSizeFourByte, cudaSuccess;
}
inline cudaError cudaDeviceSetLimit(cudaLimit, size_t) { return cudaSuccess; }
inline cudaError cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  return *value = limit == cudaLimitStackSize ? 1024 : 8 << 20, cudaSuccess;
}
inline cudaError cudaDeviceCanAccessPeer(int* can, int, int) { return *can = 0, cudaSuccess; }
inline cudaError cudaDeviceEnablePeerAccess(int, unsigned) { return cudaErrorInvalidDevice; }
inline cudaError cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return *least = 0, *greatest = -5, cudaSuccess;
}
inline cudaError cudaDriverGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
inline cudaError cudaRuntimeGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }

// ---- Streams, events, graphs ---------------------------------------------------------------------------------------

cudaError cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
inline cudaError cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithFlags(stream, 0); }
inline cudaError cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  return cudaStreamCreateWithFlags(stream, flags);
}
inline cudaError cudaStreamGetPriority(cudaStream_t, int* priority) { return *priority = 0, cudaSuccess; }
cudaError cudaStreamDestroy(cudaStream_t stream);
cudaError cudaStreamSynchronize(cudaStream_t stream);
cudaError cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);
cudaError cudaStreamQuery(cudaStream_t stream);
cudaError cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data, unsigned flags);
cudaError cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data);
inline cudaError cudaStreamAttachMemAsync(cudaStream_t, void*, size_t = 0, unsigned = cudaMemAttachSingle) {
  return cudaSuccess;
}
cudaError cudaEventCreate(cudaEvent_t* event);
inline cudaError cudaEventCreate(cudaEvent_t* event, unsigned) { return cudaEventCreate(event); }
inline cudaError cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return cudaEventCreate(event); }
cudaError cudaEventDestroy(cudaEvent_t event);
cudaError cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr);
inline cudaError cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream = nullptr, unsigned = 0) {
  return cudaEventRecord(event, stream);
}
cudaError cudaEventSynchronize(cudaEvent_t event);
cudaError cudaEventQuery(cudaEvent_t event);
cudaError cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end);

cudaError cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status);
cudaError cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags = 0);
inline cudaError cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, cudaGraphNode_t*, char*, size_t) {
  return cudaGraphInstantiate(executable, graph);
}
inline cudaError cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  return cudaGraphInstantiate(executable, graph);
}
inline cudaError cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }
cudaError cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream);
cudaError cudaGraphDestroy(cudaGraph_t graph);
cudaError cudaGraphExecDestroy(cudaGraphExec_t executable);
cudaError cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count);

// ---- Kernels -------------------------------------------------------------------------------------------------------

template <class Kernel>
cudaError cudaFuncSetAttribute(Kernel kernel, cudaFuncAttribute attribute, int value) {
  if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize)
    return simt_cuda::allow_shared(reinterpret_cast<const void*>(kernel), static_cast<size_t>(value));
  if (attribute == cudaFuncAttributeNonPortableClusterSizeAllowed)
    return simt_cuda::allow_large_clusters(reinterpret_cast<const void*>(kernel), value != 0);
  return cudaSuccess;
}
template <class Kernel>
cudaError cudaFuncGetAttributes(cudaFuncAttributes* attributes, Kernel kernel) {
  return simt_cuda::function_attributes(attributes, reinterpret_cast<const void*>(kernel));
}
template <class Kernel>
cudaError cudaFuncSetCacheConfig(Kernel, cudaFuncCache) {
  return cudaSuccess;
}
template <class Kernel>
cudaError cudaFuncSetSharedMemConfig(Kernel, cudaSharedMemConfig) {
  return cudaSuccess;
}

// Registers are not known here: what limits a kernel is its threads and its dynamic shared memory.
cudaError sim_occupancy(int* blocks, int block, size_t shared);
template <class Kernel>
cudaError cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Kernel, int block, size_t shared) {
  return sim_occupancy(blocks, block, shared);
}
template <class Kernel>
cudaError cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, Kernel, int block, size_t shared,
                                                                 unsigned) {
  return sim_occupancy(blocks, block, shared);
}
template <class Kernel>
cudaError cudaOccupancyMaxActiveClusters(int* clusters, Kernel kernel, const cudaLaunchConfig_t* config) {
  return simt_cuda::active_clusters(clusters, reinterpret_cast<const void*>(kernel), config);
}
template <class Kernel>
cudaError cudaOccupancyMaxPotentialClusterSize(int* blocks, Kernel kernel, const cudaLaunchConfig_t* config) {
  return simt_cuda::largest_cluster(blocks, reinterpret_cast<const void*>(kernel), config);
}
cudaError sim_potential_block(int* grid, int* block, size_t shared, int limit);
template <class Kernel>
cudaError cudaOccupancyMaxPotentialBlockSize(int* grid, int* block, Kernel, size_t shared = 0, int limit = 0) {
  return sim_potential_block(grid, block, shared, limit);
}
template <class Function, class Kernel>
cudaError cudaOccupancyMaxPotentialBlockSizeVariableSMem(int* grid, int* block, Kernel, Function shared_of,
                                                         int limit = 0) {
  return sim_potential_block(grid, block, shared_of(limit > 0 ? limit : 1024), limit);
}
/// @endcond
