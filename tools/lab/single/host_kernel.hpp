// This stage runs on the host: no kernels, and device memory is the host's.
#define __host__
#define __device__
#define __forceinline__ inline __attribute__((always_inline))

namespace convladder {

DeviceLimits device_limits() { return {}; }

}  // namespace convladder
