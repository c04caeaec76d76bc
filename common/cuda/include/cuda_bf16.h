/// @file
/// bfloat16 over the simulator: types, conversions, arithmetic, in CUDA's names. Results are rounded once, to the
/// nearest, ties to even.
#pragma once
#include "common/cuda/half_functions.hpp"
#include "common/cuda/include/cuda_fp16.h"
#include "common/cuda/small_floats.hpp"

/// @cond
// As CUDA declares them.
// NOLINTBEGIN(performance-unnecessary-value-param)
struct __nv_bfloat16_raw {
  unsigned short x;
};
struct __nv_bfloat162_raw {
  unsigned short x, y;
};
struct __align__(2) __nv_bfloat16 {
  std::uint16_t bits;

  __nv_bfloat16() = default;
  __forceinline__ __nv_bfloat16(simt::FromBits, std::uint16_t value) : bits(value) {}
  __forceinline__ __nv_bfloat16(float value) : bits(simt::bf16_from(value)) {}
  __forceinline__ __nv_bfloat16(double value) : bits(simt::bf16_from(value)) {}
  __forceinline__ __nv_bfloat16(int value) : bits(simt::bf16_from(value)) {}
  __forceinline__ __nv_bfloat16(unsigned value) : bits(simt::bf16_from(value)) {}
  __forceinline__ __nv_bfloat16(long value) : bits(simt::bf16_from(static_cast<double>(value))) {}
  __forceinline__ __nv_bfloat16(unsigned long value) : bits(simt::bf16_from(static_cast<double>(value))) {}
  __forceinline__ __nv_bfloat16(long long value) : bits(simt::bf16_from(static_cast<double>(value))) {}
  __forceinline__ __nv_bfloat16(unsigned long long value) : bits(simt::bf16_from(static_cast<double>(value))) {}
  __forceinline__ __nv_bfloat16(__nv_bfloat16_raw raw) : bits(raw.x) {}
  __forceinline__ operator float() const { return __builtin_bit_cast(float, static_cast<std::uint32_t>(bits) << 16); }
  __forceinline__ operator __nv_bfloat16_raw() const { return {bits}; }
};
using nv_bfloat16 = __nv_bfloat16;

struct __align__(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;

  __nv_bfloat162() = default;
  __forceinline__ __nv_bfloat162(__nv_bfloat16 low, __nv_bfloat16 high) : x(low), y(high) {}
  __forceinline__ __nv_bfloat162(__nv_bfloat162_raw raw) : x(__nv_bfloat16_raw{raw.x}), y(__nv_bfloat16_raw{raw.y}) {}
  __forceinline__ operator __nv_bfloat162_raw() const { return {x.bits, y.bits}; }
  __forceinline__ __nv_bfloat162(const __nv_bfloat162& o) { copy(o); }
  __forceinline__ __nv_bfloat162& operator=(const __nv_bfloat162& o) { return copy(o), *this; }
  __forceinline__ void copy(const __nv_bfloat162& o) {
    *reinterpret_cast<simt::Word*>(this) = *reinterpret_cast<const simt::Word*>(&o);
  }
};
using nv_bfloat162 = __nv_bfloat162;

__forceinline__ __nv_bfloat16 __float2bfloat16(float value) { return value; }
__forceinline__ __nv_bfloat16 __float2bfloat16_rn(float value) { return value; }
__forceinline__ __nv_bfloat16 __double2bfloat16(double value) { return value; }
__forceinline__ float __bfloat162float(__nv_bfloat16 value) { return value; }
__forceinline__ __nv_bfloat162 __floats2bfloat162_rn(float low, float high) { return {low, high}; }
__forceinline__ __nv_bfloat162 __float2bfloat162_rn(float value) { return {value, value}; }
__forceinline__ __nv_bfloat162 __float22bfloat162_rn(float2 value) { return {value.x, value.y}; }
__forceinline__ float2 __bfloat1622float2(__nv_bfloat162 value) { return float2(value.x, value.y); }
__forceinline__ float __low2float(__nv_bfloat162 value) { return value.x; }
__forceinline__ float __high2float(__nv_bfloat162 value) { return value.y; }
__forceinline__ __nv_bfloat16 __low2bfloat16(__nv_bfloat162 value) { return value.x; }
__forceinline__ __nv_bfloat16 __high2bfloat16(__nv_bfloat162 value) { return value.y; }
__forceinline__ __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 low, __nv_bfloat16 high) { return {low, high}; }
__forceinline__ __nv_bfloat162 make_bfloat162(__nv_bfloat16 low, __nv_bfloat16 high) { return {low, high}; }
__forceinline__ __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 value) { return {value, value}; }

#define SIM_BF16(name, name2, expression)                                \
  __forceinline__ __nv_bfloat16 name(__nv_bfloat16 p, __nv_bfloat16 q) { \
    const double a = static_cast<float>(p), b = static_cast<float>(q);   \
    return __nv_bfloat16(expression);                                    \
  }                                                                      \
  __forceinline__ __nv_bfloat162 name2(__nv_bfloat162 p, __nv_bfloat162 q) { return {name(p.x, q.x), name(p.y, q.y)}; }
SIM_BF16(__hadd, __hadd2, a + b)
SIM_BF16(__hsub, __hsub2, a - b)
SIM_BF16(__hmul, __hmul2, a* b)
SIM_BF16(__hdiv, __h2div, a / b)
SIM_BF16(__hmax, __hmax2, fmax(a, b))
SIM_BF16(__hmin, __hmin2, fmin(a, b))
SIM_BF16(operator+, operator+, a + b)
SIM_BF16(operator-, operator-, a - b)
SIM_BF16(operator*, operator*, a* b)
SIM_BF16(operator/, operator/, a / b)
#undef SIM_BF16
#define SIM_BF16(op)                                                                                      \
  __forceinline__ __nv_bfloat16& operator op##=(__nv_bfloat16& a, __nv_bfloat16 b) { return a = a op b; } \
  __forceinline__ __nv_bfloat162& operator op##=(__nv_bfloat162& a, __nv_bfloat162 b) { return a = a op b; }
SIM_BF16(+)
SIM_BF16(-)
SIM_BF16(*)
SIM_BF16(/)
#undef SIM_BF16
#define SIM_BF16(op, name)                                             \
  __forceinline__ bool operator op(__nv_bfloat16 a, __nv_bfloat16 b) { \
    return static_cast<float>(a) op static_cast<float>(b);             \
  }                                                                    \
  __forceinline__ bool name(__nv_bfloat16 a, __nv_bfloat16 b) { return a op b; }
SIM_BF16(==, __heq)
SIM_BF16(!=, __hne)
SIM_BF16(<, __hlt)
SIM_BF16(<=, __hle)
SIM_BF16(>, __hgt)
SIM_BF16(>=, __hge)
#undef SIM_BF16
__forceinline__ __nv_bfloat16 __hfma(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c) {
  return __nv_bfloat16(double{static_cast<float>(a)} * static_cast<float>(b) + static_cast<float>(c));
}
__forceinline__ __nv_bfloat162 __hfma2(__nv_bfloat162 a, __nv_bfloat162 b, __nv_bfloat162 c) {
  return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
}
__forceinline__ __nv_bfloat16 __hneg(__nv_bfloat16 a) {
  return {simt::FromBits{}, static_cast<std::uint16_t>(a.bits ^ 0x8000u)};
}
__forceinline__ __nv_bfloat16 operator-(__nv_bfloat16 a) { return __hneg(a); }
__forceinline__ __nv_bfloat16 __habs(__nv_bfloat16 a) {
  return {simt::FromBits{}, static_cast<std::uint16_t>(a.bits & 0x7fffu)};
}
__forceinline__ __nv_bfloat162 __hneg2(__nv_bfloat162 a) { return {__hneg(a.x), __hneg(a.y)}; }
__forceinline__ __nv_bfloat162 __habs2(__nv_bfloat162 a) { return {__habs(a.x), __habs(a.y)}; }
__forceinline__ __nv_bfloat162 operator-(__nv_bfloat162 a) { return __hneg2(a); }
SIM_SMALL_FLOAT(__nv_bfloat16, __nv_bfloat162, bfloat16, bfloat162, bf16_sum, bf16s_sum)
#define CUDART_INF_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x7f80))
#define CUDART_NAN_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x7fff))
#define CUDART_MIN_DENORM_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x0001))
#define CUDART_MAX_NORMAL_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x7f7f))
#define CUDART_NEG_ZERO_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x8000))
#define CUDART_ZERO_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x0000))
#define CUDART_ONE_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x3f80))
// NOLINTEND(performance-unnecessary-value-param)
/// @endcond
