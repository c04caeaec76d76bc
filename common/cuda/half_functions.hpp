/// @file
/// What cuda_fp16.h and cuda_bf16.h have in common beyond the types and their arithmetic: mathematics, comparisons,
/// conversions to and from integers, atomic additions. Each is made of `T` and its pair `T2`; results are rounded once.
#pragma once
#include "common/cuda/small_floats.hpp"

/// @cond
#define SIM_FUNCTION(T, T2, name, name2, expression) \
  __forceinline__ T name(T p) {                      \
    const double a = static_cast<float>(p);          \
    return T(static_cast<double>(expression));       \
  }                                                  \
  __forceinline__ T2 name2(T2 p) { return T2(name(p.x), name(p.y)); }
#define SIM_BINARY(T, T2, name, name2, expression)                     \
  __forceinline__ T name(T p, T q) {                                   \
    const double a = static_cast<float>(p), b = static_cast<float>(q); \
    return T(static_cast<double>(expression));                         \
  }                                                                    \
  __forceinline__ T2 name2(T2 p, T2 q) { return T2(name(p.x, q.x), name(p.y, q.y)); }
/// A comparison: of two numbers, of pairs as 1 or 0 each, as masks, and of both at once; with `u`, true for a NaN.
#define SIM_COMPARISON(T, T2, name, op)                                                                 \
  __forceinline__ bool __h##name##u(T p, T q) {                                                         \
    const float a = p, b = q;                                                                           \
    return a != a || b != b || a op b;                                                                  \
  }                                                                                                     \
  __forceinline__ T2 __h##name##2(T2 a, T2 b) {                                                         \
    return T2(T(__h##name(a.x, b.x) ? 1.0f : 0.0f), T(__h##name(a.y, b.y) ? 1.0f : 0.0f));              \
  }                                                                                                     \
  __forceinline__ T2 __h##name##u2(T2 a, T2 b) {                                                        \
    return T2(T(__h##name##u(a.x, b.x) ? 1.0f : 0.0f), T(__h##name##u(a.y, b.y) ? 1.0f : 0.0f));        \
  }                                                                                                     \
  __forceinline__ unsigned __h##name##2_mask(T2 a, T2 b) {                                              \
    return (__h##name(a.x, b.x) ? 0xffffu : 0u) | (__h##name(a.y, b.y) ? 0xffff0000u : 0u);             \
  }                                                                                                     \
  __forceinline__ bool __hb##name##2(T2 a, T2 b) { return __h##name(a.x, b.x) && __h##name(a.y, b.y); } \
  __forceinline__ bool __hb##name##u2(T2 a, T2 b) { return __h##name##u(a.x, b.x) && __h##name##u(a.y, b.y); }
/// From and to an integer of the type `I`, by the four ways to round.
#define SIM_INTEGER(T, word, name, I)                                                         \
  __forceinline__ T __##name##2##word##_rn(I value) { return T(static_cast<double>(value)); } \
  __forceinline__ T __##name##2##word##_rz(I value) { return T(static_cast<double>(value)); } \
  __forceinline__ T __##name##2##word##_rd(I value) { return T(static_cast<double>(value)); } \
  __forceinline__ T __##name##2##word##_ru(I value) { return T(static_cast<double>(value)); } \
  __forceinline__ I __##word##2##name##_rn(T value) {                                         \
    return simt_cuda::saturated<I>(__builtin_rint(static_cast<float>(value)));                \
  }                                                                                           \
  __forceinline__ I __##word##2##name##_rz(T value) {                                         \
    return simt_cuda::saturated<I>(__builtin_trunc(static_cast<float>(value)));               \
  }                                                                                           \
  __forceinline__ I __##word##2##name##_rd(T value) {                                         \
    return simt_cuda::saturated<I>(__builtin_floor(static_cast<float>(value)));               \
  }                                                                                           \
  __forceinline__ I __##word##2##name##_ru(T value) {                                         \
    return simt_cuda::saturated<I>(__builtin_ceil(static_cast<float>(value)));                \
  }

/// @param word as the conversions are called; `one` and `two`: the type and the pair there
#define SIM_SMALL_FLOAT(T, T2, word, two, add, add2)                                                                \
  SIM_FUNCTION(T, T2, hceil, h2ceil, __builtin_ceil(a))                                                             \
  SIM_FUNCTION(T, T2, hfloor, h2floor, __builtin_floor(a))                                                          \
  SIM_FUNCTION(T, T2, htrunc, h2trunc, __builtin_trunc(a))                                                          \
  SIM_FUNCTION(T, T2, hrint, h2rint, __builtin_rint(a))                                                             \
  SIM_FUNCTION(T, T2, hsqrt, h2sqrt, __builtin_sqrt(a))                                                             \
  SIM_FUNCTION(T, T2, hrsqrt, h2rsqrt, 1 / __builtin_sqrt(a))                                                       \
  SIM_FUNCTION(T, T2, hrcp, h2rcp, 1 / a)                                                                           \
  SIM_FUNCTION(T, T2, hexp, h2exp, __builtin_exp(a))                                                                \
  SIM_FUNCTION(T, T2, hexp2, h2exp2, __builtin_exp2(a))                                                             \
  SIM_FUNCTION(T, T2, hexp10, h2exp10, __builtin_pow(10.0, a))                                                      \
  SIM_FUNCTION(T, T2, hlog, h2log, __builtin_log(a))                                                                \
  SIM_FUNCTION(T, T2, hlog2, h2log2, __builtin_log2(a))                                                             \
  SIM_FUNCTION(T, T2, hlog10, h2log10, __builtin_log10(a))                                                          \
  SIM_FUNCTION(T, T2, hsin, h2sin, __builtin_sin(a))                                                                \
  SIM_FUNCTION(T, T2, hcos, h2cos, __builtin_cos(a))                                                                \
  SIM_FUNCTION(T, T2, htanh, h2tanh, __builtin_tanh(a))                                                             \
  SIM_FUNCTION(T, T2, htanh_approx, h2tanh_approx, __builtin_tanh(a))                                               \
  SIM_BINARY(T, T2, __hadd_rn, __hadd2_rn, a + b)                                                                   \
  SIM_BINARY(T, T2, __hsub_rn, __hsub2_rn, a - b)                                                                   \
  SIM_BINARY(T, T2, __hmul_rn, __hmul2_rn, a* b)                                                                    \
  SIM_BINARY(T, T2, __hadd_sat, __hadd2_sat, saturate(a + b))                                                       \
  SIM_BINARY(T, T2, __hsub_sat, __hsub2_sat, saturate(a - b))                                                       \
  SIM_BINARY(T, T2, __hmul_sat, __hmul2_sat, saturate(a* b))                                                        \
  SIM_BINARY(T, T2, __hmax_nan, __hmax2_nan, a != a || a > b ? a : b)                                               \
  SIM_BINARY(T, T2, __hmin_nan, __hmin2_nan, a != a || a < b ? a : b)                                               \
  __forceinline__ T __hfma_sat(T p, T q, T r) {                                                                     \
    return T(saturate(double{static_cast<float>(p)} * static_cast<float>(q) + static_cast<float>(r)));              \
  }                                                                                                                 \
  __forceinline__ T __hfma_relu(T p, T q, T r) {                                                                    \
    const double sum = double{static_cast<float>(p)} * static_cast<float>(q) + static_cast<float>(r);               \
    return T(sum < 0 ? 0.0 : sum);                                                                                  \
  }                                                                                                                 \
  __forceinline__ T2 __hfma2_sat(T2 a, T2 b, T2 c) {                                                                \
    return T2(__hfma_sat(a.x, b.x, c.x), __hfma_sat(a.y, b.y, c.y));                                                \
  }                                                                                                                 \
  __forceinline__ T2 __hfma2_relu(T2 a, T2 b, T2 c) {                                                               \
    return T2(__hfma_relu(a.x, b.x, c.x), __hfma_relu(a.y, b.y, c.y));                                              \
  }                                                                                                                 \
  SIM_COMPARISON(T, T2, eq, ==)                                                                                     \
  SIM_COMPARISON(T, T2, ne, !=)                                                                                     \
  SIM_COMPARISON(T, T2, lt, <)                                                                                      \
  SIM_COMPARISON(T, T2, le, <=)                                                                                     \
  SIM_COMPARISON(T, T2, gt, >)                                                                                      \
  SIM_COMPARISON(T, T2, ge, >=)                                                                                     \
  __forceinline__ bool operator==(T2 a, T2 b) { return __hbeq2(a, b); }                                             \
  __forceinline__ bool operator!=(T2 a, T2 b) { return __hbneu2(a, b); }                                            \
  __forceinline__ bool operator<(T2 a, T2 b) { return __hblt2(a, b); }                                              \
  __forceinline__ bool operator<=(T2 a, T2 b) { return __hble2(a, b); }                                             \
  __forceinline__ bool operator>(T2 a, T2 b) { return __hbgt2(a, b); }                                              \
  __forceinline__ bool operator>=(T2 a, T2 b) { return __hbge2(a, b); }                                             \
  __forceinline__ T& operator++(T& a) { return a = T(static_cast<float>(a) + 1.0f); }                               \
  __forceinline__ T operator++(T& a, int) {                                                                         \
    const T before = a;                                                                                             \
    return ++a, before;                                                                                             \
  }                                                                                                                 \
  __forceinline__ T& operator--(T& a) { return a = T(static_cast<float>(a) - 1.0f); }                               \
  __forceinline__ bool __hisnan(T a) { return static_cast<float>(a) != static_cast<float>(a); }                     \
  __forceinline__ T2 __hisnan2(T2 a) { return T2(T(__hisnan(a.x) ? 1.0f : 0.0f), T(__hisnan(a.y) ? 1.0f : 0.0f)); } \
  __forceinline__ int __hisinf(T a) {                                                                               \
    const float value = a;                                                                                          \
    return value == __builtin_inff() ? 1 : value == -__builtin_inff() ? -1 : 0;                                     \
  }                                                                                                                 \
  SIM_INTEGER(T, word, int, int)                                                                                    \
  SIM_INTEGER(T, word, uint, unsigned)                                                                              \
  SIM_INTEGER(T, word, short, short)                                                                                \
  SIM_INTEGER(T, word, ushort, unsigned short)                                                                      \
  SIM_INTEGER(T, word, ll, long long)                                                                               \
  SIM_INTEGER(T, word, ull, unsigned long long)                                                                     \
  __forceinline__ signed char __##word##2char_rz(T a) {                                                             \
    return simt_cuda::saturated<signed char>(__builtin_trunc(static_cast<float>(a)));                               \
  }                                                                                                                 \
  __forceinline__ unsigned char __##word##2uchar_rz(T a) {                                                          \
    return simt_cuda::saturated<unsigned char>(__builtin_trunc(static_cast<float>(a)));                             \
  }                                                                                                                 \
  /* Towards zero, down and up: one step from the nearest where that went too far. */                               \
  __forceinline__ T sim_step(T from, int by) {                                                                      \
    return T(simt::FromBits{}, static_cast<std::uint16_t>(from.bits + by));                                         \
  }                                                                                                                 \
  __forceinline__ T __float2##word##_rz(float value) {                                                              \
    const T nearest(value);                                                                                         \
    return __builtin_fabsf(nearest) > __builtin_fabsf(value) ? sim_step(nearest, -1) : nearest;                     \
  }                                                                                                                 \
  __forceinline__ T __float2##word##_rd(float value) {                                                              \
    const T nearest(value);                                                                                         \
    if (!(static_cast<float>(nearest) > value)) return nearest;                                                     \
    return static_cast<float>(nearest) > 0 ? sim_step(nearest, -1) : sim_step(nearest, 1);                          \
  }                                                                                                                 \
  __forceinline__ T __float2##word##_ru(float value) { return -__float2##word##_rd(-value); }                       \
  __forceinline__ short __##word##_as_short(T a) { return static_cast<short>(a.bits); }                             \
  __forceinline__ unsigned short __##word##_as_ushort(T a) { return a.bits; }                                       \
  __forceinline__ T __short_as_##word(short bits) { return T(simt::FromBits{}, static_cast<std::uint16_t>(bits)); } \
  __forceinline__ T __ushort_as_##word(unsigned short bits) { return T(simt::FromBits{}, bits); }                   \
  __forceinline__ T2 __low2##two(T2 a) { return T2(a.x, a.x); }                                                     \
  __forceinline__ T2 __high2##two(T2 a) { return T2(a.y, a.y); }                                                    \
  __forceinline__ T2 __lowhigh2highlow(T2 a) { return T2(a.y, a.x); }                                               \
  __forceinline__ T2 __lows2##two(T2 a, T2 b) { return T2(a.x, b.x); }                                              \
  __forceinline__ T2 __highs2##two(T2 a, T2 b) { return T2(a.y, b.y); }                                             \
  __forceinline__ T atomicAdd(T* address, T value) {                                                                \
    return T(simt::FromBits{}, static_cast<std::uint16_t>(simt::atomic_update(address, 2, value.bits, simt::add))); \
  }                                                                                                                 \
  __forceinline__ T2 atomicAdd(T2* address, T2 value) {                                                             \
    const std::uint32_t bits = value.x.bits | static_cast<std::uint32_t>(value.y.bits) << 16;                       \
    const auto old = static_cast<std::uint32_t>(simt::atomic_update(address, 4, bits, simt::add2));                 \
    return T2(T(simt::FromBits{}, static_cast<std::uint16_t>(old)),                                                 \
              T(simt::FromBits{}, static_cast<std::uint16_t>(old >> 16)));                                          \
  }
/// @endcond
