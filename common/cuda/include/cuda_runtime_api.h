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

// clang-format off
#define SIM_ERRORS(each) \
  each(cudaSuccess, 0, "no error") \
  each(cudaErrorInvalidValue, 1, "invalid argument") \
  each(cudaErrorMemoryAllocation, 2, "out of memory") \
  each(cudaErrorInitializationError, 3, "initialization error") \
  each(cudaErrorCudartUnloading, 4, "driver shutting down") \
  each(cudaErrorProfilerDisabled, 5, "profiler disabled while using external profiling tool") \
  each(cudaErrorInvalidConfiguration, 9, "invalid configuration argument") \
  each(cudaErrorInvalidPitchValue, 12, "invalid pitch argument") \
  each(cudaErrorInvalidSymbol, 13, "invalid device symbol") \
  each(cudaErrorInvalidHostPointer, 16, "invalid host pointer") \
  each(cudaErrorInvalidDevicePointer, 17, "invalid device pointer") \
  each(cudaErrorInvalidTexture, 18, "invalid texture reference") \
  each(cudaErrorInvalidTextureBinding, 19, "texture is not bound to a pointer") \
  each(cudaErrorInvalidChannelDescriptor, 20, "invalid channel descriptor") \
  each(cudaErrorInvalidMemcpyDirection, 21, "invalid copy direction for memcpy") \
  each(cudaErrorInvalidFilterSetting, 26, "linear filtering not supported for non-float type") \
  each(cudaErrorInvalidNormSetting, 27, "read as normalized float not supported for 32-bit non float type") \
  each(cudaErrorStubLibrary, 34, "CUDA driver is a stub library") \
  each(cudaErrorInsufficientDriver, 35, "CUDA driver version is insufficient for CUDA runtime version") \
  each(cudaErrorCallRequiresNewerDriver, 36, "API call is not supported in the installed CUDA driver") \
  each(cudaErrorInvalidSurface, 37, "invalid surface reference") \
  each(cudaErrorDuplicateVariableName, 43, "duplicate global variable looked up by string name") \
  each(cudaErrorDuplicateTextureName, 44, "duplicate texture looked up by string name") \
  each(cudaErrorDuplicateSurfaceName, 45, "duplicate surface looked up by string name") \
  each(cudaErrorDevicesUnavailable, 46, "CUDA-capable device(s) is/are busy or unavailable") \
  each(cudaErrorIncompatibleDriverContext, 49, "incompatible driver context") \
  each(cudaErrorMissingConfiguration, 52, "__global__ function call is not configured") \
  each(cudaErrorLaunchMaxDepthExceeded, 65, "launch would exceed maximum depth of nested launches") \
  each(cudaErrorLaunchFileScopedTex, 66, "launch failed because of file-scoped textures") \
  each(cudaErrorLaunchFileScopedSurf, 67, "launch failed because of file-scoped surfaces") \
  each(cudaErrorSyncDepthExceeded, 68, "cudaDeviceSynchronize failed because it exceeded its maximum depth") \
  each(cudaErrorLaunchPendingCountExceeded, 69, "launch would exceed the number of pending launches") \
  each(cudaErrorInvalidDeviceFunction, 98, "invalid device function") \
  each(cudaErrorNoDevice, 100, "no CUDA-capable device is detected") \
  each(cudaErrorInvalidDevice, 101, "invalid device ordinal") \
  each(cudaErrorDeviceNotLicensed, 102, "device doesn't have valid Grid license") \
  each(cudaErrorStartupFailure, 127, "startup failure in cuda runtime") \
  each(cudaErrorInvalidKernelImage, 200, "device kernel image is invalid") \
  each(cudaErrorDeviceUninitialized, 201, "invalid device context") \
  each(cudaErrorMapBufferObjectFailed, 205, "mapping of buffer object failed") \
  each(cudaErrorUnmapBufferObjectFailed, 206, "unmapping of buffer object failed") \
  each(cudaErrorArrayIsMapped, 207, "array is mapped") \
  each(cudaErrorAlreadyMapped, 208, "resource already mapped") \
  each(cudaErrorNoKernelImageForDevice, 209, "no kernel image is available for execution on the device") \
  each(cudaErrorAlreadyAcquired, 210, "resource already acquired") \
  each(cudaErrorNotMapped, 211, "resource not mapped") \
  each(cudaErrorNotMappedAsArray, 212, "resource not mapped as array") \
  each(cudaErrorNotMappedAsPointer, 213, "resource not mapped as pointer") \
  each(cudaErrorECCUncorrectable, 214, "uncorrectable ECC error encountered") \
  each(cudaErrorUnsupportedLimit, 215, "limit is not supported on this architecture") \
  each(cudaErrorDeviceAlreadyInUse, 216, "exclusive-thread device already in use by a different thread") \
  each(cudaErrorPeerAccessUnsupported, 217, "peer access is not supported between these two devices") \
  each(cudaErrorInvalidPtx, 218, "a PTX JIT compilation failed") \
  each(cudaErrorInvalidGraphicsContext, 219, "invalid OpenGL or DirectX context") \
  each(cudaErrorNvlinkUncorrectable, 220, "uncorrectable NVLink error detected during the execution") \
  each(cudaErrorJitCompilerNotFound, 221, "PTX JIT compiler library not found") \
  each(cudaErrorUnsupportedPtxVersion, 222, "the provided PTX was compiled with an unsupported toolchain.") \
  each(cudaErrorJitCompilationDisabled, 223, "PTX JIT compilation was disabled") \
  each(cudaErrorInvalidSource, 300, "device kernel image is invalid") \
  each(cudaErrorFileNotFound, 301, "file not found") \
  each(cudaErrorSharedObjectSymbolNotFound, 302, "shared object symbol not found") \
  each(cudaErrorSharedObjectInitFailed, 303, "shared object initialization failed") \
  each(cudaErrorOperatingSystem, 304, "OS call failed or operation not supported on this OS") \
  each(cudaErrorInvalidResourceHandle, 400, "invalid resource handle") \
  each(cudaErrorIllegalState, 401, "the operation cannot be performed in the present state") \
  each(cudaErrorSymbolNotFound, 500, "named symbol not found") \
  each(cudaErrorNotReady, 600, "device not ready") \
  each(cudaErrorIllegalAddress, 700, "an illegal memory access was encountered") \
  each(cudaErrorLaunchOutOfResources, 701, "too many resources requested for launch") \
  each(cudaErrorLaunchTimeout, 702, "the launch timed out and was terminated") \
  each(cudaErrorLaunchIncompatibleTexturing, 703, "launch uses incompatible texturing mode") \
  each(cudaErrorPeerAccessAlreadyEnabled, 704, "peer access is already enabled") \
  each(cudaErrorPeerAccessNotEnabled, 705, "peer access has not been enabled") \
  each(cudaErrorSetOnActiveProcess, 708, "cannot set while device is active in this process") \
  each(cudaErrorContextIsDestroyed, 709, "context is destroyed") \
  each(cudaErrorAssert, 710, "device-side assert triggered") \
  each(cudaErrorTooManyPeers, 711, "peer mapping resources exhausted") \
  each(cudaErrorHostMemoryAlreadyRegistered, 712, "part or all of the requested memory range is already mapped") \
  each(cudaErrorHostMemoryNotRegistered, 713, "pointer does not correspond to a registered memory region") \
  each(cudaErrorHardwareStackError, 714, "hardware stack error") \
  each(cudaErrorIllegalInstruction, 715, "an illegal instruction was encountered") \
  each(cudaErrorMisalignedAddress, 716, "misaligned address") \
  each(cudaErrorInvalidAddressSpace, 717, "operation not supported on global/shared address space") \
  each(cudaErrorInvalidPc, 718, "invalid program counter") \
  each(cudaErrorLaunchFailure, 719, "unspecified launch failure") \
  each(cudaErrorCooperativeLaunchTooLarge, 720, "too many blocks in cooperative launch") \
  each(cudaErrorNotPermitted, 800, "operation not permitted") \
  each(cudaErrorNotSupported, 801, "operation not supported") \
  each(cudaErrorSystemNotReady, 802, "system not yet initialized") \
  each(cudaErrorSystemDriverMismatch, 803, "system has unsupported display driver / cuda driver combination") \
  each(cudaErrorCompatNotSupportedOnDevice, 804, "forward compatibility was attempted on non supported HW") \
  each(cudaErrorStreamCaptureUnsupported, 900, "operation not permitted when stream is capturing") \
  each(cudaErrorStreamCaptureInvalidated, 901, "operation failed due to a previous error during capture") \
  each(cudaErrorStreamCaptureMerge, 902, "operation would result in a merge of separate capturing sequences") \
  each(cudaErrorStreamCaptureUnmatched, 903, "capture was not ended in the same stream as it began") \
  each(cudaErrorStreamCaptureUnjoined, 904, "capturing stream has unjoined work") \
  each(cudaErrorStreamCaptureIsolation, 905, "dependency created on uncaptured work in another stream") \
  each(cudaErrorStreamCaptureImplicit, 906, "operation would make the legacy stream depend on a capturing blocking stream") \
  each(cudaErrorCapturedEvent, 907, "operation not permitted on an event last recorded in a capturing stream") \
  each(cudaErrorStreamCaptureWrongThread, 908, "attempt to terminate a thread-local capture sequence from another thread") \
  each(cudaErrorTimeout, 909, "wait operation timed out") \
  each(cudaErrorGraphExecUpdateFailure, 910, "the graph update was not performed because it included changes which violated constraints specific to instantiated graph update") \
  each(cudaErrorInvalidClusterSize, 912, "cluster misconfiguration") \
  each(cudaErrorUnknown, 999, "unknown error") \
  each(cudaErrorApiFailureBase, 10000, "api failure base")
// clang-format on
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
typedef const void* cudaFunction_t;
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
enum { cudaStreamAddCaptureDependencies, cudaStreamSetCaptureDependencies };
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
  cudaLimitDevRuntimePendingLaunchCount,
  cudaLimitMaxL2FetchGranularity,
  cudaLimitPersistingL2CacheSize
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
enum cudaMemRangeAttribute {
  cudaMemRangeAttributeReadMostly = 1,
  cudaMemRangeAttributePreferredLocation,
  cudaMemRangeAttributeAccessedBy,
  cudaMemRangeAttributeLastPrefetchLocation
};
enum cudaMemPoolAttr {
  cudaMemPoolReuseFollowEventDependencies = 1,
  cudaMemPoolReuseAllowOpportunistic,
  cudaMemPoolReuseAllowInternalDependencies,
  cudaMemPoolAttrReleaseThreshold,
  cudaMemPoolAttrReservedMemCurrent,
  cudaMemPoolAttrReservedMemHigh,
  cudaMemPoolAttrUsedMemCurrent,
  cudaMemPoolAttrUsedMemHigh
};
enum cudaMemAllocationType { cudaMemAllocationTypeInvalid, cudaMemAllocationTypePinned };
enum cudaMemAllocationHandleType { cudaMemHandleTypeNone };
struct cudaMemPoolProps {
  cudaMemAllocationType allocType;
  cudaMemAllocationHandleType handleTypes;
  cudaMemLocation location;
  void* win32SecurityAttributes;
  size_t maxSize;
  unsigned char reserved[56];
};
enum cudaMemAccessFlags { cudaMemAccessFlagsProtNone, cudaMemAccessFlagsProtRead, cudaMemAccessFlagsProtReadWrite = 3 };
struct cudaMemAccessDesc {
  cudaMemLocation location;
  cudaMemAccessFlags flags;
};
enum cudaGraphMemAttributeType {
  cudaGraphMemAttrUsedMemCurrent,
  cudaGraphMemAttrUsedMemHigh,
  cudaGraphMemAttrReservedMemCurrent,
  cudaGraphMemAttrReservedMemHigh
};
enum cudaDeviceP2PAttr {
  cudaDevP2PAttrPerformanceRank = 1,
  cudaDevP2PAttrAccessSupported,
  cudaDevP2PAttrNativeAtomicSupported,
  cudaDevP2PAttrCudaArrayAccessSupported
};
enum cudaAccessProperty { cudaAccessPropertyNormal, cudaAccessPropertyStreaming, cudaAccessPropertyPersisting };
struct cudaAccessPolicyWindow {
  void* base_ptr;
  size_t num_bytes;
  float hitRatio;
  cudaAccessProperty hitProp, missProp;
};
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
// clang-format off
#define SIM_ATTRIBUTES(each) \
  each(MaxThreadsPerBlock, 1, maxThreadsPerBlock) \
  each(MaxBlockDimX, 2, maxThreadsDim[0]) \
  each(MaxBlockDimY, 3, maxThreadsDim[1]) \
  each(MaxBlockDimZ, 4, maxThreadsDim[2]) \
  each(MaxGridDimX, 5, maxGridSize[0]) \
  each(MaxGridDimY, 6, maxGridSize[1]) \
  each(MaxGridDimZ, 7, maxGridSize[2]) \
  each(MaxSharedMemoryPerBlock, 8, sharedMemPerBlock) \
  each(TotalConstantMemory, 9, totalConstMem) \
  each(WarpSize, 10, warpSize) \
  each(MaxPitch, 11, memPitch) \
  each(MaxRegistersPerBlock, 12, regsPerBlock) \
  each(ClockRate, 13, clockRate) \
  each(TextureAlignment, 14, textureAlignment) \
  each(GpuOverlap, 15, deviceOverlap) \
  each(MultiProcessorCount, 16, multiProcessorCount) \
  each(KernelExecTimeout, 17, kernelExecTimeoutEnabled) \
  each(Integrated, 18, integrated) \
  each(CanMapHostMemory, 19, canMapHostMemory) \
  each(ComputeMode, 20, computeMode) \
  each(MaxTexture1DWidth, 21, maxTexture1D) \
  each(MaxTexture2DWidth, 22, maxTexture2D[0]) \
  each(MaxTexture2DHeight, 23, maxTexture2D[1]) \
  each(MaxTexture3DWidth, 24, maxTexture3D[0]) \
  each(MaxTexture3DHeight, 25, maxTexture3D[1]) \
  each(MaxTexture3DDepth, 26, maxTexture3D[2]) \
  each(SurfaceAlignment, 30, surfaceAlignment) \
  each(ConcurrentKernels, 31, concurrentKernels) \
  each(EccEnabled, 32, ECCEnabled) \
  each(PciBusId, 33, pciBusID) \
  each(PciDeviceId, 34, pciDeviceID) \
  each(TccDriver, 35, tccDriver) \
  each(MemoryClockRate, 36, memoryClockRate) \
  each(GlobalMemoryBusWidth, 37, memoryBusWidth) \
  each(L2CacheSize, 38, l2CacheSize) \
  each(MaxThreadsPerMultiProcessor, 39, maxThreadsPerMultiProcessor) \
  each(AsyncEngineCount, 40, asyncEngineCount) \
  each(UnifiedAddressing, 41, unifiedAddressing) \
  each(PciDomainId, 50, pciDomainID) \
  each(TexturePitchAlignment, 51, texturePitchAlignment) \
  each(ComputeCapabilityMajor, 75, major) \
  each(ComputeCapabilityMinor, 76, minor) \
  each(StreamPrioritiesSupported, 78, streamPrioritiesSupported) \
  each(GlobalL1CacheSupported, 79, globalL1CacheSupported) \
  each(LocalL1CacheSupported, 80, localL1CacheSupported) \
  each(MaxSharedMemoryPerMultiprocessor, 81, sharedMemPerMultiprocessor) \
  each(MaxRegistersPerMultiprocessor, 82, regsPerMultiprocessor) \
  each(ManagedMemory, 83, managedMemory) \
  each(IsMultiGpuBoard, 84, isMultiGpuBoard) \
  each(MultiGpuBoardGroupID, 85, multiGpuBoardGroupID) \
  each(HostNativeAtomicSupported, 86, hostNativeAtomicSupported) \
  each(SingleToDoublePrecisionPerfRatio, 87, singleToDoublePrecisionPerfRatio) \
  each(PageableMemoryAccess, 88, pageableMemoryAccess) \
  each(ConcurrentManagedAccess, 89, concurrentManagedAccess) \
  each(ComputePreemptionSupported, 90, computePreemptionSupported) \
  each(CanUseHostPointerForRegisteredMem, 91, canUseHostPointerForRegisteredMem) \
  each(CooperativeLaunch, 95, cooperativeLaunch) \
  each(CooperativeMultiDeviceLaunch, 96, cooperativeMultiDeviceLaunch) \
  each(MaxSharedMemoryPerBlockOptin, 97, sharedMemPerBlockOptin) \
  each(HostRegisterSupported, 99, hostRegisterSupported) \
  each(PageableMemoryAccessUsesHostPageTables, 100, pageableMemoryAccessUsesHostPageTables) \
  each(DirectManagedMemAccessFromHost, 101, directManagedMemAccessFromHost) \
  each(MaxBlocksPerMultiprocessor, 106, maxBlocksPerMultiProcessor) \
  each(MaxPersistingL2CacheSize, 108, persistingL2CacheMaxSize) \
  each(MaxAccessPolicyWindowSize, 109, accessPolicyMaxWindowSize) \
  each(ReservedSharedMemoryPerBlock, 111, reservedSharedMemPerBlock) \
  each(MemoryPoolsSupported, 115, memoryPoolsSupported) \
  each(ClusterLaunch, 120, clusterLaunch)
// clang-format on
#define SIM_ATTRIBUTE(name, number, field) cudaDevAttr##name = number,
enum cudaDeviceAttr { SIM_ATTRIBUTES(SIM_ATTRIBUTE) };
#undef SIM_ATTRIBUTE
struct cudaUUID_t {
  char bytes[16];
};
struct cudaDeviceProp {
  char name[256];
  cudaUUID_t uuid;
  char luid[8];
  unsigned luidDeviceNodeMask;
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
      memoryPoolsSupported, hostRegisterSupported, hostNativeAtomicSupported, canUseHostPointerForRegisteredMem,
      pageableMemoryAccessUsesHostPageTables, ipcEventSupported, gpuDirectRDMASupported, maxTexture1D,
      maxTexture1DLinear, maxTexture2D[2], maxTexture3D[3], maxTexture1DLayered[2], maxTexture2DLayered[3],
      maxSurface1D, maxSurface2D[2], maxSurface3D[3];
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
  cudaLaunchAttributeAccessPolicyWindow = 1,
  cudaLaunchAttributeCooperative = 2,
  cudaLaunchAttributeSynchronizationPolicy = 3,
  cudaLaunchAttributeClusterDimension = 4,
  cudaLaunchAttributeClusterSchedulingPolicyPreference = 5,
  cudaLaunchAttributeProgrammaticStreamSerialization = 6,
  cudaLaunchAttributeProgrammaticEvent = 7,
  cudaLaunchAttributePriority = 8,
  cudaLaunchAttributeMemSyncDomain = 10
};
union cudaLaunchAttributeValue {
  char pad[64];
  int cooperative, programmaticStreamSerializationAllowed, priority;
  cudaAccessPolicyWindow accessPolicyWindow;
  struct {
    unsigned x, y, z;
  } clusterDim;
};
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  cudaLaunchAttributeValue val;
};
typedef cudaLaunchAttributeID cudaStreamAttrID;
typedef cudaLaunchAttributeValue cudaStreamAttrValue;
#define cudaStreamAttributeAccessPolicyWindow cudaLaunchAttributeAccessPolicyWindow
#define cudaStreamAttributePriority cudaLaunchAttributePriority
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute* attrs;
  unsigned numAttrs;
};

enum cudaGraphNodeType {
  cudaGraphNodeTypeKernel,
  cudaGraphNodeTypeMemcpy,
  cudaGraphNodeTypeMemset,
  cudaGraphNodeTypeHost,
  cudaGraphNodeTypeGraph,
  cudaGraphNodeTypeEmpty,
  cudaGraphNodeTypeWaitEvent,
  cudaGraphNodeTypeEventRecord,
  cudaGraphNodeTypeMemAlloc = 10,
  cudaGraphNodeTypeMemFree,
  cudaGraphNodeTypeConditional = 13
};
struct cudaKernelNodeParams {
  void* func;
  dim3 gridDim, blockDim;
  unsigned sharedMemBytes;
  void **kernelParams, **extra;
};
struct cudaMemsetParams {
  void* dst;
  size_t pitch;
  unsigned value, elementSize;
  size_t width, height;
};
struct cudaHostNodeParams {
  cudaHostFn_t fn;
  void* userData;
};
struct cudaMemAllocNodeParams {
  cudaMemPoolProps poolProps;
  const cudaMemAccessDesc* accessDescs;
  size_t accessDescCount, bytesize;
  void* dptr;
};
struct cudaMemFreeNodeParams {
  void* dptr;
};
struct cudaMemcpyNodeParams {
  int flags;
  cudaMemcpy3DParms copyParams;
};
struct cudaChildGraphNodeParams {
  cudaGraph_t graph;
};
struct cudaEventNodeParams {
  cudaEvent_t event;
};
typedef unsigned long long cudaGraphConditionalHandle;
enum cudaGraphConditionalNodeType { cudaGraphCondTypeIf, cudaGraphCondTypeWhile, cudaGraphCondTypeSwitch };
enum { cudaGraphCondAssignDefault = 1 };
struct cudaConditionalNodeParams {
  cudaGraphConditionalHandle handle;
  cudaGraphConditionalNodeType type;
  unsigned size;
  cudaGraph_t* phGraph_out;  ///< the bodies
};
struct cudaGraphNodeParams {
  cudaGraphNodeType type;
  cudaKernelNodeParams kernel;
  cudaMemcpyNodeParams memcpy;
  cudaMemsetParams memset;
  cudaHostNodeParams host;
  cudaChildGraphNodeParams graph;
  cudaEventNodeParams eventWait, eventRecord;
  cudaMemAllocNodeParams alloc;
  cudaMemFreeNodeParams free;
  cudaConditionalNodeParams conditional;
};
struct cudaGraphEdgeData {
  unsigned char from_port, to_port, type, reserved[5];
};
enum cudaGraphExecUpdateResult {
  cudaGraphExecUpdateSuccess,
  cudaGraphExecUpdateError,
  cudaGraphExecUpdateErrorTopologyChanged,
  cudaGraphExecUpdateErrorNodeTypeChanged
};
struct cudaGraphExecUpdateResultInfo {
  cudaGraphExecUpdateResult result;
  cudaGraphNode_t errorNode, errorFromNode;
};
enum { cudaGraphInstantiateFlagAutoFreeOnLaunch = 1, cudaGraphInstantiateFlagUpload = 2 };
enum { cudaGraphDebugDotFlagsVerbose = 1 };

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
void add_step(cudaStream_t stream, Step* step, cudaGraphNodeType type);

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

template <class... Values>
constexpr bool has_references(const std::tuple<Values...>*) {
  return (... || std::is_reference<Values>::value);
}

template <class Body, class Values>
cudaError start(const char* kernel, const Configuration& configuration, const Body& body, const Values& values) {
  const auto call = [&]() __attribute__((no_sanitize("thread"))) {
    Values own(values);  // each thread has its arguments
    std::apply(body, std::move(own));
  };
  using Call = decltype(call);
  // The values do not tell one launch from another where the body or an object has something of its own.
  const bool telling = std::is_empty<Body>::value && !has_references(&values);
  return run(
      kernel, configuration, [](const void* self) { (*static_cast<Call*>(self))(); }, &call,
      telling ? &values : nullptr, sizeof values);
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
  add_step(configuration.stream, new StepOf<decltype(again)>(again), cudaGraphNodeTypeKernel);
  return cudaSuccess;
}

/// An object with a copy constructor is passed itself where it lies in managed memory: the kernel may take a reference.
template <class Argument, class Value = std::decay_t<Argument>>
using Passed = std::conditional_t<std::is_lvalue_reference<Argument>::value && std::is_class<Value>::value &&
                                      !std::is_const<std::remove_reference_t<Argument>>::value &&
                                      !std::is_trivially_copyable<Value>::value,
                                  Argument, Value>;
bool in_device_memory(const void* pointer);
template <class Argument, class Given>
bool is_managed(Given& given) {
  return std::is_reference<Passed<Argument>>::value && in_device_memory(&given);
}

/// What the front end makes of <<< >>>.
template <class Body, class... Arguments>
void launch(const char* kernel, const Configuration& configuration, Body body, Arguments&&... arguments) {
  if constexpr ((... || std::is_reference<Passed<Arguments>>::value)) {
    if (!in_kernel() && !is_capturing(configuration.stream) && (... || is_managed<Arguments>(arguments))) {
      start(kernel, configuration, body, std::tuple<Passed<Arguments>...>(arguments...));
      return;
    }
  }
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

template <class... Parameters, size_t... I>
std::tuple<std::decay_t<Parameters>...> values_of(void** arguments, std::index_sequence<I...>) {
  return {*static_cast<std::decay_t<Parameters>*>(arguments[I])...};
}
/// How a kernel is launched of which only the address is known: now, or later with copies of its arguments.
struct Launcher {
  cudaError (*now)(const void* kernel, const Configuration& configuration, void** arguments);
  Step* (*later)(const void* kernel, const Configuration& configuration, void** arguments);
};
void know_kernel(const void* kernel, Launcher launcher);
/// A kernel as an address. The front end puts it where a program casts a kernel to `void*`.
template <class... Parameters>
void* address_of_kernel(void (*kernel)(Parameters...)) {
  using Kernel = void (*)(Parameters...);
  using Indices = std::index_sequence_for<Parameters...>;
  Launcher launcher;
  launcher.now = [](const void* address, const Configuration& configuration, void** arguments) {
    return launch_pointers(reinterpret_cast<Kernel>(const_cast<void*>(address)), configuration, arguments, Indices());
  };
  launcher.later = [](const void* address, const Configuration& configuration, void** arguments) -> Step* {
    const auto values = values_of<Parameters...>(arguments, Indices());
    const auto work = [=](cudaStream_t stream) {
      Configuration of_step = configuration;
      of_step.stream = stream;
      std::apply(
          [&](const auto&... each) {
            launch_function(reinterpret_cast<Kernel>(const_cast<void*>(address)), of_step, each...);
          },
          values);
    };
    return new StepOf<decltype(work)>(work);
  };
  know_kernel(reinterpret_cast<const void*>(kernel), launcher);
  return reinterpret_cast<void*>(kernel);
}
cudaError launch_address(const char* call, const void* kernel, const Configuration& configuration, void** arguments);

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
/// The same in a stream, which may be captured: then the memory is the graph's.
cudaError allocate_in(cudaStream_t stream, void** pointer, size_t bytes, SIM_NAMED);
cudaError copy_to_symbol(void* symbol, size_t size, const void* source, size_t bytes, size_t offset, SIM_HERE);
cudaError copy_from_symbol(void* to, const void* symbol, size_t size, size_t bytes, size_t offset, SIM_HERE);
cudaError allow_shared(const void* kernel, size_t bytes);
cudaError allow_large_clusters(const void* kernel, bool allowed);
/// A kernel's __cluster_dims__; the front end puts it before the kernel.
struct ClusterDims {
  ClusterDims(const char* kernel, dim3 size);  ///< size 0: of a template's parameters, so that the kernel is asked
};
/// At the beginning of such a kernel: whether the runtime asks for its clusters, which it does before a launch.
bool tells_cluster(dim3 size);
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
inline cudaError cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments, size_t shared = 0,
                                  cudaStream_t stream = nullptr, SIM_HERE) {
  return simt_cuda::launch_address("cudaLaunchKernel", kernel, {grid, block, shared, stream, file, line}, arguments);
}
template <class... Parameters>
cudaError cudaLaunchCooperativeKernel(void (*kernel)(Parameters...), dim3 grid, dim3 block, void** arguments,
                                      size_t shared = 0, cudaStream_t stream = nullptr, SIM_HERE) {
  simt_cuda::Configuration configuration(grid, block, shared, stream, file, line);
  configuration.cooperative = true;
  return simt_cuda::launch_pointers(kernel, configuration, arguments, std::index_sequence_for<Parameters...>());
}
inline cudaError cudaLaunchCooperativeKernel(const void* kernel, dim3 grid, dim3 block, void** arguments,
                                             size_t shared = 0, cudaStream_t stream = nullptr, SIM_HERE) {
  simt_cuda::Configuration configuration(grid, block, shared, stream, file, line);
  configuration.cooperative = true;
  return simt_cuda::launch_address("cudaLaunchCooperativeKernel", kernel, configuration, arguments);
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
inline cudaError cudaLaunchKernelExC(simt_cuda::LaunchConfig config, const void* kernel, void** arguments) {
  simt_cuda::Configuration configuration(config.given->gridDim, config.given->blockDim, config.given->dynamicSmemBytes,
                                         config.given->stream, config.file, config.line);
  if (const cudaError error = simt_cuda::launch_attributes(*config.given, configuration)) return error;
  return simt_cuda::launch_address("cudaLaunchKernelExC", kernel, configuration, arguments);
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
cudaError cudaMallocAsync(T** pointer, size_t bytes, cudaStream_t stream, SIM_NAMED) {
  return simt_cuda::allocate_in(stream, reinterpret_cast<void**>(pointer), bytes, name, file, line);
}
template <class T>
cudaError cudaMallocFromPoolAsync(T** pointer, size_t bytes, cudaMemPool_t, cudaStream_t stream, SIM_NAMED) {
  return simt_cuda::allocate_in(stream, reinterpret_cast<void**>(pointer), bytes, name, file, line);
}
template <class T>
cudaError cudaMallocAsync(T** pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream, SIM_NAMED) {
  return cudaMallocFromPoolAsync(pointer, bytes, pool, stream, name, file, line);
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
cudaError cudaMemcpy3DAsync(const cudaMemcpy3DParms* copy, cudaStream_t stream = nullptr, SIM_HERE);
inline cudaError cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes, cudaStream_t stream = nullptr,
                                     SIM_HERE) {
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream, file, line);
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
inline cudaError cudaHostGetFlags(unsigned* flags, void*) { return *flags = cudaHostAllocMapped, cudaSuccess; }
inline cudaError cudaMemRangeGetAttribute(void* value, size_t bytes, cudaMemRangeAttribute, const void*, size_t) {
  return std::memset(value, 0, bytes), cudaSuccess;
}
template <class T>
cudaError cudaHostGetDevicePointer(T** device, void* host, unsigned) {
  *device = static_cast<T*>(host);
  return cudaSuccess;
}
cudaError cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer);
inline cudaError cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int) { return *pool = nullptr, cudaSuccess; }
inline cudaError cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) { return cudaSuccess; }
inline cudaError cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr attribute, void* value) {
  if (attribute >= cudaMemPoolAttrReleaseThreshold)
    *static_cast<unsigned long long*>(value) = 0;
  else
    *static_cast<int*>(value) = 1;
  return cudaSuccess;
}
inline cudaError cudaMemPoolTrimTo(cudaMemPool_t, size_t) { return cudaSuccess; }
inline cudaError cudaDeviceGetMemPool(cudaMemPool_t* pool, int) { return *pool = nullptr, cudaSuccess; }
inline cudaError cudaDeviceSetMemPool(int, cudaMemPool_t) { return cudaSuccess; }
inline cudaError cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps*) {
  return *pool = nullptr, cudaSuccess;
}
inline cudaError cudaMemPoolDestroy(cudaMemPool_t) { return cudaSuccess; }
inline cudaError cudaMemPoolSetAccess(cudaMemPool_t, const cudaMemAccessDesc*, size_t) { return cudaSuccess; }

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
inline cudaError cudaDeviceDisablePeerAccess(int) { return cudaErrorPeerAccessNotEnabled; }
inline cudaError cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr, int, int) { return *value = 0, cudaSuccess; }
inline cudaError cudaDeviceGetCacheConfig(cudaFuncCache* config) {
  return *config = cudaFuncCachePreferNone, cudaSuccess;
}
inline cudaError cudaDeviceGetPCIBusId(char* text, int bytes, int) {
  return snprintf(text, static_cast<size_t>(bytes), "0000:00:00.0"), cudaSuccess;
}
inline cudaError cudaDeviceGetByPCIBusId(int* device, const char*) { return *device = 0, cudaSuccess; }
inline cudaError cudaSetValidDevices(int*, int) { return cudaSuccess; }
inline cudaError cudaCtxResetPersistingL2Cache() { return cudaSuccess; }
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
cudaError cudaStreamGetFlags(cudaStream_t stream, unsigned* flags);
inline cudaError cudaStreamGetDevice(cudaStream_t, int* device) { return *device = 0, cudaSuccess; }
inline cudaError cudaStreamSetAttribute(cudaStream_t, cudaStreamAttrID, const cudaStreamAttrValue*) {
  return cudaSuccess;
}
inline cudaError cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) { return cudaSuccess; }
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
cudaError cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t* after,
                                        const cudaGraphEdgeData* edges, size_t count, cudaStreamCaptureMode mode);
cudaError cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                   unsigned long long* number = nullptr, cudaGraph_t* graph = nullptr,
                                   const cudaGraphNode_t** last = nullptr, size_t* count = nullptr);
inline cudaError cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                          unsigned long long* number, cudaGraph_t* graph, const cudaGraphNode_t** last,
                                          const cudaGraphEdgeData** edges, size_t* count) {
  if (edges) *edges = nullptr;
  return cudaStreamGetCaptureInfo(stream, status, number, graph, last, count);
}
cudaError cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* last, size_t count,
                                              unsigned flags = cudaStreamAddCaptureDependencies);
inline cudaError cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* last,
                                                     const cudaGraphEdgeData*, size_t count,
                                                     unsigned flags = cudaStreamAddCaptureDependencies) {
  return cudaStreamUpdateCaptureDependencies(stream, last, count, flags);
}
cudaError cudaGraphCreate(cudaGraph_t* graph, unsigned flags);
cudaError cudaGraphClone(cudaGraph_t* clone, cudaGraph_t graph);
cudaError cudaGraphDestroy(cudaGraph_t graph);
cudaError cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                                 const cudaKernelNodeParams* parameters, SIM_HERE);
cudaError cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                                 const cudaMemcpy3DParms* copy, SIM_HERE);
cudaError cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                                   void* to, const void* from, size_t bytes, cudaMemcpyKind kind, SIM_HERE);
cudaError cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                                 const cudaMemsetParams* parameters, SIM_HERE);
cudaError cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                               const cudaHostNodeParams* parameters);
cudaError cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count);
cudaError cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                     size_t count, cudaGraph_t child);
cudaError cudaGraphAddEventRecordNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                      size_t count, cudaEvent_t event);
cudaError cudaGraphAddEventWaitNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                    size_t count, cudaEvent_t event);
cudaError cudaGraphAddMemAllocNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                                   cudaMemAllocNodeParams* parameters, SIM_HERE);
cudaError cudaGraphAddMemFreeNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                                  void* pointer, SIM_HERE);
cudaError cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                           cudaGraphNodeParams* parameters, SIM_HERE);
inline cudaError cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                  const cudaGraphEdgeData*, size_t count, cudaGraphNodeParams* parameters, SIM_HERE) {
  return cudaGraphAddNode(node, graph, after, count, parameters, file, line);
}
cudaError cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle* handle, cudaGraph_t graph, unsigned value = 0,
                                           unsigned flags = 0);
/// In a kernel.
void cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned value);
cudaError cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                   size_t count);
cudaError cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                      size_t count);
cudaError cudaGraphDestroyNode(cudaGraphNode_t node);
cudaError cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count);
cudaError cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count);
cudaError cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, size_t* count);
cudaError cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* dependencies, size_t* count);
cudaError cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type);
cudaError cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams* parameters, SIM_HERE);
cudaError cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const cudaMemcpy3DParms* copy, SIM_HERE);
cudaError cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void* to, const void* from, size_t bytes,
                                         cudaMemcpyKind kind, SIM_HERE);
cudaError cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const cudaMemsetParams* parameters, SIM_HERE);
cudaError cudaGraphHostNodeSetParams(cudaGraphNode_t node, const cudaHostNodeParams* parameters);
inline cudaError cudaGraphDebugDotPrint(cudaGraph_t, const char*, unsigned) { return cudaSuccess; }

cudaError cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags = 0);
inline cudaError cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, cudaGraphNode_t*, char*, size_t) {
  return cudaGraphInstantiate(executable, graph);
}
inline cudaError cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  return cudaGraphInstantiate(executable, graph);
}
inline cudaError cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }
cudaError cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream);
cudaError cudaGraphExecDestroy(cudaGraphExec_t executable);
cudaError cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph, cudaGraphNode_t* failed,
                              cudaGraphExecUpdateResult* result);
cudaError cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* result);
cudaError cudaGraphExecKernelNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                           const cudaKernelNodeParams* parameters, SIM_HERE);
cudaError cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                           const cudaMemcpy3DParms* copy, SIM_HERE);
cudaError cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t executable, cudaGraphNode_t node, void* to,
                                             const void* from, size_t bytes, cudaMemcpyKind kind, SIM_HERE);
cudaError cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                           const cudaMemsetParams* parameters, SIM_HERE);
cudaError cudaGraphExecHostNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                         const cudaHostNodeParams* parameters);
cudaError cudaGraphNodeSetEnabled(cudaGraphExec_t executable, cudaGraphNode_t node, unsigned enabled);
inline cudaError cudaDeviceGraphMemTrim(int) { return cudaSuccess; }
inline cudaError cudaDeviceGetGraphMemAttribute(int, cudaGraphMemAttributeType, void* value) {
  return *static_cast<unsigned long long*>(value) = 0, cudaSuccess;
}
inline cudaError cudaDeviceSetGraphMemAttribute(int, cudaGraphMemAttributeType, void*) { return cudaSuccess; }

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
template <class Kernel>
cudaError cudaFuncGetName(const char** name, Kernel kernel) {
  return *name = simt_cuda::name_of_kernel(reinterpret_cast<const void*>(kernel)), cudaSuccess;
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
cudaError cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, Kernel, int blocks, int) {
  cudaDeviceProp properties;
  if (const cudaError error = cudaGetDeviceProperties(&properties, 0)) return error;
  return *bytes =
             properties.sharedMemPerMultiprocessor / static_cast<size_t>(blocks) - properties.reservedSharedMemPerBlock,
         cudaSuccess;
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
