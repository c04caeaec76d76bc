// 09 register-2d, for pictures: how its kernels read and write pixels of 8 bits. `./lab image` filters with integer
// taps over a divisor, and moves 2 bytes for a pixel instead of 8.
//
//   output = min(max(floor(sum / divisor + 1/2), 0), 255)
//
// Sums are integers below 2^24, and so exact in fp32. A division is slow: the kernels multiply by scale = 1 / divisor,
// rounded. That is exact, too: sum / divisor + 1/2 is an integer or at least 1 / (2 * 65 * 65) = 2^-13.05 away from
// one; 2^-14 lifts what rounding has put below an integer (up to 2^-14.4 where the result is at most 256) back above
// it.
#pragma once
#include <cstdint>

#include "common/kernel/kernel.hpp"

namespace convladder {
namespace {

__device__ __forceinline__ unsigned to_byte(float sum, float scale) {
  const float rounded = floorf(sum * scale + (0.5f + 0x1p-14f));
  return static_cast<unsigned>(fminf(fmaxf(rounded, 0.0f), 255.0f));
}

__device__ __forceinline__ float4 load_four(const std::uint8_t* p) {
  const unsigned four = *reinterpret_cast<const unsigned*>(p);
  return make_float4(static_cast<float>(four & 255u), static_cast<float>(four >> 8 & 255u),
                     static_cast<float>(four >> 16 & 255u), static_cast<float>(four >> 24));
}
__device__ __forceinline__ void store(std::uint8_t* p, float sum, float scale) {
  *p = static_cast<std::uint8_t>(to_byte(sum, scale));
}
__device__ __forceinline__ void store_four(std::uint8_t* p, float a, float b, float c, float d, float scale) {
  *reinterpret_cast<unsigned*>(p) =
      to_byte(a, scale) | to_byte(b, scale) << 8 | to_byte(c, scale) << 16 | to_byte(d, scale) << 24;
}

}  // namespace
}  // namespace convladder
