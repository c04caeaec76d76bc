/// @file
/// CUDA's complex numbers.
#pragma once
#include "common/cuda/include/cuda_runtime.h"

/// @cond
// As CUDA declares them.
// NOLINTBEGIN(performance-unnecessary-value-param)
#define SIM_COMPLEX(Type, T, suffix, Vector, absolute)                                                            \
  typedef Vector Type;                                                                                            \
  __forceinline__ T cuCreal##suffix(Type a) { return a.x; }                                                       \
  __forceinline__ T cuCimag##suffix(Type a) { return a.y; }                                                       \
  __forceinline__ Type cuConj##suffix(Type a) { return {a.x, -a.y}; }                                             \
  __forceinline__ Type cuCadd##suffix(Type a, Type b) { return {a.x + b.x, a.y + b.y}; }                          \
  __forceinline__ Type cuCsub##suffix(Type a, Type b) { return {a.x - b.x, a.y - b.y}; }                          \
  __forceinline__ Type cuCmul##suffix(Type a, Type b) { return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x}; }  \
  __forceinline__ Type cuCfma##suffix(Type a, Type b, Type c) { return cuCadd##suffix(cuCmul##suffix(a, b), c); } \
  __forceinline__ Type cuCdiv##suffix(Type a, Type b) {                                                           \
    const T s = b.x * b.x + b.y * b.y;                                                                            \
    return {(a.x * b.x + a.y * b.y) / s, (a.y * b.x - a.x * b.y) / s};                                            \
  }                                                                                                               \
  __forceinline__ T cuCabs##suffix(Type a) { return absolute(a.x, a.y); }
SIM_COMPLEX(cuFloatComplex, float, f, float2, hypotf)
SIM_COMPLEX(cuDoubleComplex, double, , double2, hypot)
typedef cuFloatComplex cuComplex;
__forceinline__ cuFloatComplex make_cuFloatComplex(float r, float i) { return {r, i}; }
__forceinline__ cuDoubleComplex make_cuDoubleComplex(double r, double i) { return {r, i}; }
__forceinline__ cuComplex make_cuComplex(float r, float i) { return {r, i}; }
__forceinline__ cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex a) { return {a.x, a.y}; }
__forceinline__ cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex a) {
  return {static_cast<float>(a.x), static_cast<float>(a.y)};
}
#undef SIM_COMPLEX
// NOLINTEND(performance-unnecessary-value-param)
/// @endcond
