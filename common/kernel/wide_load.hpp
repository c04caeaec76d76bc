/// @file
/// A load of 16 bytes from global memory, or zeros, for kernels that keep many of them on their way. Include it after
/// kernel.hpp.
#pragma once
#include "common/kernel/kernel.hpp"

namespace convladder {

/// 16 bytes that no thread writes while the kernel runs, past L1; zeros where `inside` is false, and `global` is not
/// read. Both have a condition: of unconditional zeros, ptxas keeps copies in registers.
/// @param global a multiple of 16
__device__ __forceinline__ uint4 load_or_zero(const void* global, bool inside) {
#if defined(__CUDACC__)
  uint4 result;
  asm volatile(
      "{\n.reg .pred p;\n"
      "setp.ne.b32 p, %5, 0;\n"
      "@!p mov.b32 %0, 0;\n"
      "@!p mov.b32 %1, 0;\n"
      "@!p mov.b32 %2, 0;\n"
      "@!p mov.b32 %3, 0;\n"
      "@p ld.global.nc.L1::no_allocate.L2::128B.v4.b32 {%0, %1, %2, %3}, [%4];\n}"
      : "=&r"(result.x), "=&r"(result.y), "=&r"(result.z), "=&r"(result.w)
      : "l"(global), "r"(static_cast<int>(inside)));
  return result;
#else
  return inside ? *static_cast<const uint4*>(global) : make_uint4(0, 0, 0, 0);
#endif
}

}  // namespace convladder
