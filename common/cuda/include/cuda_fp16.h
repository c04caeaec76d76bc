/// @file
/// Halves under CUDA's own name, with the functions that the project's own kernels do not need.
#pragma once
#include "common/cuda/half_functions.hpp"
#include "common/cuda/include/cuda_runtime.h"
#include "common/simt/half.hpp"

/// @cond
// As CUDA declares them.
// NOLINTBEGIN(performance-unnecessary-value-param)
using __nv_half = __half;
using nv_half = __half;
using __nv_half2 = __half2;
using nv_half2 = __half2;
__forceinline__ half __double2half(double value) { return half(value); }
__forceinline__ half __hdiv(half a, half b) { return a / b; }
__forceinline__ half2 __h2div(half2 a, half2 b) { return a / b; }
__forceinline__ bool __heq(half a, half b) { return a == b; }
__forceinline__ bool __hne(half a, half b) { return a < b || b < a; }
__forceinline__ bool __hlt(half a, half b) { return a < b; }
__forceinline__ bool __hle(half a, half b) { return a <= b; }
__forceinline__ bool __hgt(half a, half b) { return a > b; }
__forceinline__ bool __hge(half a, half b) { return a >= b; }
SIM_SMALL_FLOAT(half, half2, half, half2, half_sum, halves_sum)
#define CUDART_INF_FP16 __ushort_as_half(static_cast<unsigned short>(0x7c00))
#define CUDART_NAN_FP16 __ushort_as_half(static_cast<unsigned short>(0x7fff))
#define CUDART_MIN_DENORM_FP16 __ushort_as_half(static_cast<unsigned short>(0x0001))
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half(static_cast<unsigned short>(0x7bff))
#define CUDART_NEG_ZERO_FP16 __ushort_as_half(static_cast<unsigned short>(0x8000))
#define CUDART_ZERO_FP16 __ushort_as_half(static_cast<unsigned short>(0x0000))
#define CUDART_ONE_FP16 __ushort_as_half(static_cast<unsigned short>(0x3c00))
// NOLINTEND(performance-unnecessary-value-param)
/// @endcond
