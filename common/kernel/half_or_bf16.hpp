/// @file
/// Kernels of which one template serves fp16 and bf16: what is written differently for `half` and for `bfloat16`, and
/// words that hold two of either, the first in the lower 16 bits. Include it after kernel.hpp.
#pragma once
#include "common/kernel/bf16_tf32.hpp"
#include "common/kernel/half.hpp"

namespace convladder {

/// The upper half of a float. Memory alone: it is computed with in words of two, and in floats.
struct __align__(2) bfloat16 {
  std::uint16_t bits;  ///< sign, 8 bits of exponent, 7 of fraction
};

struct Fp16;
struct Bf16;

/// @cond
namespace detail {

template <class T>
struct Float16;

template <>
struct Float16<half> {
  using Operand = Fp16;
  [[gnu::always_inline]] static const half* input(const Tensors& tensors) { return tensors.half_input; }
  [[gnu::always_inline]] static half* output(const Tensors& tensors) { return tensors.half_output; }
  static __device__ __forceinline__ unsigned word(half2 pair) { return *reinterpret_cast<const unsigned*>(&pair); }
  static __device__ __forceinline__ half2 pair(unsigned word) { return *reinterpret_cast<const half2*>(&word); }
  static __device__ __forceinline__ half rounded(float value) { return __float2half_rn(value); }
  static __device__ __forceinline__ unsigned rounded(float low, float high) {
    return word(__floats2half2_rn(low, high));
  }
  static __device__ __forceinline__ unsigned joined(half low, half high) { return word(__halves2half2(low, high)); }
  static __device__ __forceinline__ unsigned add(unsigned a, unsigned b) { return word(__hadd2(pair(a), pair(b))); }
  static __device__ __forceinline__ unsigned subtract(unsigned a, unsigned b) {
    return word(__hsub2(pair(a), pair(b)));
  }
};

template <>
struct Float16<bfloat16> {
  using Operand = Bf16;
  [[gnu::always_inline]] static const bfloat16* input(const Tensors& tensors) { return tensors.bf16_input; }
  [[gnu::always_inline]] static bfloat16* output(const Tensors& tensors) { return tensors.bf16_output; }
  static __device__ __forceinline__ bfloat16 rounded(float value) {
    return {static_cast<std::uint16_t>(bf16_pair(value, value))};
  }
  static __device__ __forceinline__ unsigned rounded(float low, float high) { return bf16_pair(low, high); }
  static __device__ __forceinline__ unsigned joined(bfloat16 low, bfloat16 high) {
    return low.bits | static_cast<unsigned>(high.bits) << 16;
  }
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  static __device__ __forceinline__ unsigned add(unsigned a, unsigned b) {
    unsigned sum;
    asm("add.rn.bf16x2 %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));
    return sum;
  }
  static __device__ __forceinline__ unsigned subtract(unsigned a, unsigned b) {
    unsigned difference;
    asm("sub.rn.bf16x2 %0, %1, %2;" : "=r"(difference) : "r"(a), "r"(b));
    return difference;
  }
#else  // a float has more than twice a bf16's digits: rounded to it first, a sum is rounded to the same bf16
  static __device__ __forceinline__ unsigned add(unsigned a, unsigned b) {
    return bf16_pair(bf16_low(a) + bf16_low(b), bf16_high(a) + bf16_high(b));
  }
  static __device__ __forceinline__ unsigned subtract(unsigned a, unsigned b) {
    return bf16_pair(bf16_low(a) - bf16_low(b), bf16_high(a) - bf16_high(b));
  }
#endif
};

}  // namespace detail
/// @endcond

/// What wgmma (hopper.hpp) and mma_m16n8k16 (mma.hpp) call them.
template <class T>
using OperandOf = typename detail::Float16<T>::Operand;

/// The stage's tensors of this type.
template <class T>
[[gnu::always_inline]] inline const T* input_of(const Tensors& tensors) {
  return detail::Float16<T>::input(tensors);
}
/// The same of its output.
template <class T>
[[gnu::always_inline]] inline T* output_of(const Tensors& tensors) {
  return detail::Float16<T>::output(tensors);
}

/// The nearest, ties to even. @tparam T half or bfloat16
template <class T>
__device__ __forceinline__ T rounded_to(float value) {
  return detail::Float16<T>::rounded(value);
}
/// A word of the two nearest.
template <class T>
__device__ __forceinline__ unsigned rounded_pair(float low, float high) {
  return detail::Float16<T>::rounded(low, high);
}
/// A word of these two.
template <class T>
__device__ __forceinline__ unsigned pair_of(T low, T high) {
  return detail::Float16<T>::joined(low, high);
}
/// Sums of words of two: each is rounded once.
template <class T>
__device__ __forceinline__ unsigned add_pairs(unsigned a, unsigned b) {
  return detail::Float16<T>::add(a, b);
}
/// Differences, a - b.
template <class T>
__device__ __forceinline__ unsigned subtract_pairs(unsigned a, unsigned b) {
  return detail::Float16<T>::subtract(a, b);
}

}  // namespace convladder
