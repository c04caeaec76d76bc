/// @file
/// The two fp8 formats over the simulator: types of one, two and four numbers and conversions, in CUDA's names.
#pragma once
#include "common/cuda/include/cuda_bf16.h"

/// @cond
typedef unsigned char __nv_fp8_storage_t;
typedef unsigned short __nv_fp8x2_storage_t;
typedef unsigned __nv_fp8x4_storage_t;
enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };

__forceinline__ __nv_fp8_storage_t __nv_cvt_float_to_fp8(float value, __nv_saturation_t saturation,
                                                         __nv_fp8_interpretation_t format) {
  // Without saturation what is rounded beyond the largest number is a NaN, in e5m2 infinite.
  const bool is_e4m3 = format == __NV_E4M3;
  const float beyond = is_e4m3 ? 464.0f : 61440.0f, size = __builtin_fabsf(value);
  if (saturation == __NV_NOSAT && (is_e4m3 ? size > beyond : size >= beyond))
    return static_cast<__nv_fp8_storage_t>((is_e4m3 ? 0x7f : 0x7c) | (__builtin_signbitf(value) ? 0x80 : 0));
  return is_e4m3 ? simt::e4m3_from(value) : simt::e5m2_from(value);
}
__forceinline__ __nv_fp8x2_storage_t __nv_cvt_float2_to_fp8x2(float2 value, __nv_saturation_t saturation,
                                                              __nv_fp8_interpretation_t format) {
  return static_cast<__nv_fp8x2_storage_t>(__nv_cvt_float_to_fp8(value.x, saturation, format) |
                                           __nv_cvt_float_to_fp8(value.y, saturation, format) << 8);
}
__forceinline__ __nv_fp8_storage_t __nv_cvt_double_to_fp8(double value, __nv_saturation_t saturation,
                                                          __nv_fp8_interpretation_t format) {
  return __nv_cvt_float_to_fp8(static_cast<float>(value), saturation, format);
}
__forceinline__ __nv_fp8_storage_t __nv_cvt_halfraw_to_fp8(__half_raw value, __nv_saturation_t saturation,
                                                           __nv_fp8_interpretation_t format) {
  return __nv_cvt_float_to_fp8(__half(value), saturation, format);
}
__forceinline__ __nv_fp8x2_storage_t __nv_cvt_halfraw2_to_fp8x2(__half2_raw value, __nv_saturation_t saturation,
                                                                __nv_fp8_interpretation_t format) {
  return __nv_cvt_float2_to_fp8x2(__half22float2(__half2(value)), saturation, format);
}
__forceinline__ __nv_fp8_storage_t __nv_cvt_bfloat16raw_to_fp8(__nv_bfloat16_raw value, __nv_saturation_t saturation,
                                                               __nv_fp8_interpretation_t format) {
  return __nv_cvt_float_to_fp8(__nv_bfloat16(value), saturation, format);
}
__forceinline__ __nv_fp8x2_storage_t __nv_cvt_bfloat16raw2_to_fp8x2(__nv_bfloat162_raw value,
                                                                    __nv_saturation_t saturation,
                                                                    __nv_fp8_interpretation_t format) {
  return __nv_cvt_float2_to_fp8x2(__bfloat1622float2(__nv_bfloat162(value)), saturation, format);
}
__forceinline__ __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t bits, __nv_fp8_interpretation_t format) {
  return __half(format == __NV_E4M3 ? simt::e4m3_to_float(bits) : simt::e5m2_to_float(bits));
}
__forceinline__ __half2_raw __nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t bits, __nv_fp8_interpretation_t format) {
  return {__nv_cvt_fp8_to_halfraw(static_cast<__nv_fp8_storage_t>(bits), format).x,
          __nv_cvt_fp8_to_halfraw(static_cast<__nv_fp8_storage_t>(bits >> 8), format).x};
}

#define SIM_FP8(format, FORMAT)                                                                                        \
  struct __nv_fp8_##format {                                                                                           \
    __nv_fp8_storage_t __x;                                                                                            \
    __nv_fp8_##format() = default;                                                                                     \
    __forceinline__ explicit __nv_fp8_##format(float value) : __x(simt::format##_from(value)) {}                       \
    __forceinline__ explicit __nv_fp8_##format(double value) : __nv_fp8_##format(static_cast<float>(value)) {}         \
    __forceinline__ explicit __nv_fp8_##format(int value) : __nv_fp8_##format(static_cast<float>(value)) {}            \
    __forceinline__ explicit __nv_fp8_##format(__half value) : __nv_fp8_##format(static_cast<float>(value)) {}         \
    __forceinline__ explicit __nv_fp8_##format(__nv_bfloat16 value) : __nv_fp8_##format(static_cast<float>(value)) {}  \
    __forceinline__ explicit operator float() const { return simt::format##_to_float(__x); }                           \
    __forceinline__ explicit operator __half() const { return __half(static_cast<float>(*this)); }                     \
    __forceinline__ explicit operator __nv_bfloat16() const { return __nv_bfloat16(static_cast<float>(*this)); }       \
  };                                                                                                                   \
  struct __align__(2) __nv_fp8x2_##format {                                                                            \
    __nv_fp8x2_storage_t __x;                                                                                          \
    __nv_fp8x2_##format() = default;                                                                                   \
    __forceinline__ explicit __nv_fp8x2_##format(float2 value)                                                         \
        : __x(__nv_cvt_float2_to_fp8x2(value, __NV_SATFINITE, FORMAT)) {}                                              \
    __forceinline__ explicit __nv_fp8x2_##format(__half2 value) : __nv_fp8x2_##format(__half22float2(value)) {}        \
    __forceinline__ explicit __nv_fp8x2_##format(__nv_bfloat162 value)                                                 \
        : __nv_fp8x2_##format(__bfloat1622float2(value)) {}                                                            \
    __forceinline__ explicit operator float2() const {                                                                 \
      return make_float2(simt::format##_to_float(__x & 0xff), simt::format##_to_float(__x >> 8));                      \
    }                                                                                                                  \
    __forceinline__ explicit operator __half2() const { return __float22half2_rn(static_cast<float2>(*this)); }        \
  };                                                                                                                   \
  struct __align__(4) __nv_fp8x4_##format {                                                                            \
    __nv_fp8x4_storage_t __x;                                                                                          \
    __nv_fp8x4_##format() = default;                                                                                   \
    __forceinline__ explicit __nv_fp8x4_##format(float4 value)                                                         \
        : __x(__nv_fp8x2_##format(make_float2(value.x, value.y)).__x |                                                 \
              static_cast<__nv_fp8x4_storage_t>(__nv_fp8x2_##format(make_float2(value.z, value.w)).__x) << 16) {}      \
    __forceinline__ explicit __nv_fp8x4_##format(__half2 low, __half2 high)                                            \
        : __x(__nv_fp8x2_##format(low).__x | static_cast<__nv_fp8x4_storage_t>(__nv_fp8x2_##format(high).__x) << 16) { \
    }                                                                                                                  \
    __forceinline__ explicit __nv_fp8x4_##format(__nv_bfloat162 low, __nv_bfloat162 high)                              \
        : __x(__nv_fp8x2_##format(low).__x | static_cast<__nv_fp8x4_storage_t>(__nv_fp8x2_##format(high).__x) << 16) { \
    }                                                                                                                  \
    __forceinline__ explicit operator float4() const {                                                                 \
      return make_float4(simt::format##_to_float(__x & 0xff), simt::format##_to_float(__x >> 8 & 0xff),                \
                         simt::format##_to_float(__x >> 16 & 0xff), simt::format##_to_float(__x >> 24));               \
    }                                                                                                                  \
  };
SIM_FP8(e4m3, __NV_E4M3)
SIM_FP8(e5m2, __NV_E5M2)
#undef SIM_FP8
/// @endcond
