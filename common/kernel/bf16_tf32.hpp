/// @file
/// Floats as bf16 and as TF32, for kernels: the operands of wgmma (hopper.hpp). Include it after kernel.hpp. bf16 is
/// the upper half of a float; TF32 is a float whose lowest 13 bits are zero. Both have a float's exponents.
#pragma once
#include "common/kernel/kernel.hpp"

namespace convladder {

/// Two floats, each rounded to the nearest bf16, ties to even. What is too large becomes infinite, and a NaN 0x7fff.
/// @return `low` in the lower 16 bits, which have the lower address, and `high` in the upper ones
__device__ __forceinline__ unsigned bf16_pair(float low, float high) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
#else
  const unsigned bits[] = {__float_as_uint(low), __float_as_uint(high)};
  unsigned pair = 0;
  for (int i = 0; i < 2; ++i) {
    const bool nan = (bits[i] & 0x7fffffff) > 0x7f800000;
    // Up to the next bf16 if the lower half is more than 0x8000, or is that and the upper half is odd.
    const unsigned rounded = nan ? 0x7fff : (bits[i] + 0x7fff + (bits[i] >> 16 & 1)) >> 16;
    pair |= rounded << 16 * i;
  }
  return pair;
#endif
}
/// The first of two bf16, exactly.
__device__ __forceinline__ float bf16_low(unsigned pair) { return __uint_as_float(pair << 16); }
/// The second.
__device__ __forceinline__ float bf16_high(unsigned pair) { return __uint_as_float(pair & 0xffff0000); }

/// The bits of the TF32 nearest to a float, ties away from zero: those of a float, too. What is too large becomes
/// infinite; a NaN remains one.
__device__ __forceinline__ unsigned tf32_bits(float value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  unsigned bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
#else
  const unsigned bits = __float_as_uint(value) + 0x1000;
#endif
  if (value != value) return 0x7fffe000;  // its fraction may be in the lowest bits alone
  return bits & 0xffffe000;               // PTX leaves the lowest bits open
}

}  // namespace convladder
