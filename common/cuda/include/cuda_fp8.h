/// @file
/// The two fp8 formats over the simulator: types and conversions, in CUDA's names. Conversions saturate.
#pragma once
#include "common/cuda/include/cuda_bf16.h"

/// @cond
typedef unsigned char __nv_fp8_storage_t;
typedef unsigned short __nv_fp8x2_storage_t;
enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };

#define SIM_FP8(Name, format)                                                                      \
  struct Name {                                                                                    \
    __nv_fp8_storage_t __x;                                                                        \
    Name() = default;                                                                              \
    __forceinline__ explicit Name(float value) : __x(simt::format##_from(value)) {}                \
    __forceinline__ explicit Name(double value) : Name(static_cast<float>(value)) {}               \
    __forceinline__ explicit Name(int value) : Name(static_cast<float>(value)) {}                  \
    __forceinline__ explicit Name(__half value) : Name(static_cast<float>(value)) {}               \
    __forceinline__ explicit Name(__nv_bfloat16 value) : Name(static_cast<float>(value)) {}        \
    __forceinline__ explicit operator float() const { return simt::format##_to_float(__x); }       \
    __forceinline__ explicit operator __half() const { return __half(static_cast<float>(*this)); } \
  };
SIM_FP8(__nv_fp8_e4m3, e4m3)
SIM_FP8(__nv_fp8_e5m2, e5m2)
#undef SIM_FP8

__forceinline__ __nv_fp8_storage_t __nv_cvt_float_to_fp8(float value, __nv_saturation_t saturation,
                                                         __nv_fp8_interpretation_t format) {
  if (saturation != __NV_SATFINITE) __builtin_trap();  // others are not simulated
  return format == __NV_E4M3 ? simt::e4m3_from(value) : simt::e5m2_from(value);
}
__forceinline__ __nv_fp8x2_storage_t __nv_cvt_float2_to_fp8x2(float2 value, __nv_saturation_t saturation,
                                                              __nv_fp8_interpretation_t format) {
  return static_cast<__nv_fp8x2_storage_t>(__nv_cvt_float_to_fp8(value.x, saturation, format) |
                                           __nv_cvt_float_to_fp8(value.y, saturation, format) << 8);
}
/// @endcond
