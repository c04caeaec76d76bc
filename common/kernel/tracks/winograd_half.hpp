/// @file
/// Winograd's input transform on half2: two channels at a time, in fp16. Include it instead of winograd.hpp.
#pragma once
#include "common/kernel/tracks/winograd.hpp"
// After kernel.hpp.
#include "common/kernel/half.hpp"

namespace convladder {

/// In fp16, each operation rounded. The factors are constants; those of F2 and F4Fractions are exact in fp16.
template <>
struct WinogradArithmetic<half2> {
  /// factor * x
  static __device__ __forceinline__ half2 multiply(float factor, half2 x) {
    return __hmul2(__float2half2_rn(factor), x);
  }
  /// factor * x + sum, rounded once
  static __device__ __forceinline__ half2 multiply_add(float factor, half2 x, half2 sum) {
    return __hfma2(__float2half2_rn(factor), x, sum);
  }
  static __device__ __forceinline__ half2 add(half2 x, half2 y) { return __hadd2(x, y); }       ///< x + y
  static __device__ __forceinline__ half2 subtract(half2 x, half2 y) { return __hsub2(x, y); }  ///< x - y
};

}  // namespace convladder
