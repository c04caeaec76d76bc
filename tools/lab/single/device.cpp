#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

namespace convladder {

using MachineError = std::runtime_error;
using DeviceError = std::runtime_error;

void check_cuda(cudaError_t status, const char* what) {
  if (status != cudaSuccess) throw DeviceError(std::string(what) + ": " + cudaGetErrorString(status));
}

void finish_launch(const void*, dim3, std::size_t) { check_cuda(cudaGetLastError(), "launch"); }

void allow_shared_bytes(const void* kernel, std::size_t shared_bytes) {
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes)),
             "shared memory of a block");
}

DeviceLimits device_limits() {
  static const DeviceLimits limits = [] {
    cudaDeviceProp p{};
    check_cuda(cudaGetDeviceProperties(&p, 0), "looking for a GPU");
    return DeviceLimits{10 * p.major + p.minor, static_cast<std::int64_t>(p.sharedMemPerBlockOptin),
                        p.multiProcessorCount, p.l2CacheSize};
  }();
  return limits;
}

}  // namespace convladder
