/// @file
/// Device functions of CUDA's math headers that the project's own kernels do not need, for plain CUDA programs. Where
/// CUDA rounds in a direction of its own, the nearest value is taken, except by conversions to integers.
#pragma once
#include <float.h>
#include <limits.h>
#include <time.h>

#include <cmath>
#include <new>
#include <utility>

#include "common/simt/simt.hpp"

/// @cond
__forceinline__ float sinpif(float x) { return static_cast<float>(__builtin_sin(M_PI * __builtin_fmod(x, 2.0))); }
__forceinline__ float cospif(float x) { return static_cast<float>(__builtin_cos(M_PI * __builtin_fmod(x, 2.0))); }
__forceinline__ double sinpi(double x) { return __builtin_sin(M_PI * __builtin_fmod(x, 2.0)); }
__forceinline__ double cospi(double x) { return __builtin_cos(M_PI * __builtin_fmod(x, 2.0)); }
__forceinline__ void sincospif(float x, float* s, float* c) { *s = sinpif(x), *c = cospif(x); }
__forceinline__ void sincospi(double x, double* s, double* c) { *s = sinpi(x), *c = cospi(x); }
__forceinline__ void __sincosf(float x, float* s, float* c) { *s = sinf(x), *c = cosf(x); }
__forceinline__ float __tanhf(float x) { return tanhf(x); }
__forceinline__ float fdividef(float a, float b) { return a / b; }
__forceinline__ float rcbrtf(float x) { return 1 / cbrtf(x); }
__forceinline__ double rcbrt(double x) { return 1 / cbrt(x); }
__forceinline__ float rhypotf(float x, float y) { return 1 / hypotf(x, y); }
__forceinline__ double rhypot(double x, double y) { return 1 / hypot(x, y); }
__forceinline__ float norm3df(float x, float y, float z) { return sqrtf(x * x + y * y + z * z); }
__forceinline__ float rnorm3df(float x, float y, float z) { return 1 / norm3df(x, y, z); }
__forceinline__ float norm4df(float x, float y, float z, float w) { return sqrtf(x * x + y * y + z * z + w * w); }
__forceinline__ double norm3d(double x, double y, double z) { return sqrt(x * x + y * y + z * z); }
__forceinline__ float normcdff(float x) { return 0.5f * erfcf(-x * 0.70710678f); }
__forceinline__ double normcdf(double x) { return 0.5 * erfc(-x * M_SQRT1_2); }
__forceinline__ float erfcxf(float x) { return static_cast<float>(__builtin_exp(double(x) * x) * __builtin_erfc(x)); }
__forceinline__ double saturate(double x) { return x > 0 ? x < 1 ? x : 1 : 0; }

#define SIM_ROUNDED(name, T, parameters, expression)                    \
  __forceinline__ T name##_rd parameters { return expression; }         \
  __forceinline__ T name##_ru parameters { return expression; }         \
  __forceinline__ T name##_rz parameters { return expression; }
#define SIM_ALL_ROUNDED(name, T, parameters, expression)        \
  __forceinline__ T name##_rn parameters { return expression; } \
  SIM_ROUNDED(name, T, parameters, expression)
SIM_ROUNDED(__fadd, float, (float a, float b), a + b)
SIM_ROUNDED(__fsub, float, (float a, float b), a - b)
SIM_ROUNDED(__fmul, float, (float a, float b), a* b)
SIM_ROUNDED(__fdiv, float, (float a, float b), a / b)
SIM_ROUNDED(__fmaf, float, (float a, float b, float c), __builtin_fmaf(a, b, c))
SIM_ROUNDED(__fsqrt, float, (float a), sqrtf(a))
SIM_ROUNDED(__frcp, float, (float a), 1 / a)
SIM_ROUNDED(__dadd, double, (double a, double b), a + b)
SIM_ALL_ROUNDED(__dsub, double, (double a, double b), a - b)
SIM_ROUNDED(__dmul, double, (double a, double b), a* b)
SIM_ALL_ROUNDED(__ddiv, double, (double a, double b), a / b)
SIM_ALL_ROUNDED(__dsqrt, double, (double a), __builtin_sqrt(a))
SIM_ALL_ROUNDED(__drcp, double, (double a), 1 / a)
SIM_ROUNDED(__fma, double, (double a, double b, double c), __builtin_fma(a, b, c))
SIM_ROUNDED(__int2float, float, (int a), static_cast<float>(a))
SIM_ROUNDED(__uint2float, float, (unsigned a), static_cast<float>(a))
SIM_ALL_ROUNDED(__ll2float, float, (long long a), static_cast<float>(a))
SIM_ALL_ROUNDED(__ull2float, float, (unsigned long long a), static_cast<float>(a))
SIM_ALL_ROUNDED(__ll2double, double, (long long a), static_cast<double>(a))
SIM_ALL_ROUNDED(__ull2double, double, (unsigned long long a), static_cast<double>(a))
SIM_ALL_ROUNDED(__double2float, float, (double a), static_cast<float>(a))
__forceinline__ double __int2double_rn(int a) { return a; }
__forceinline__ double __uint2double_rn(unsigned a) { return a; }

namespace simt_cuda {
/// As conversions saturate on a GPU; 0 for NaN.
template <class To>
__forceinline__ To saturated(double value) {
  constexpr bool is_signed = static_cast<To>(-1) < static_cast<To>(0);
  constexpr double end = (is_signed ? 1.0 : 2.0) * (1ull << (8 * sizeof(To) - 1));
  if (value != value) return 0;
  if (value >= end) return static_cast<To>(~To{0}) < To{0} ? static_cast<To>(~(To{1} << (8 * sizeof(To) - 1))) : ~To{0};
  if (value <= (is_signed ? -end : 0.0)) return is_signed ? static_cast<To>(To{1} << (8 * sizeof(To) - 1)) : To{0};
  return static_cast<To>(value);
}
}  // namespace simt_cuda
#define SIM_CONVERSIONS(from, From, to, To)                                                                     \
  __forceinline__ To __##from##2##to##_rd(From x) { return simt_cuda::saturated<To>(__builtin_floor(x)); }      \
  __forceinline__ To __##from##2##to##_ru(From x) { return simt_cuda::saturated<To>(__builtin_ceil(x)); }       \
  __forceinline__ To __##from##2##to##_rz(From x) { return simt_cuda::saturated<To>(__builtin_trunc(x)); }
#define SIM_ALL_CONVERSIONS(from, From, to, To)                                                            \
  SIM_CONVERSIONS(from, From, to, To)                                                                      \
  __forceinline__ To __##from##2##to##_rn(From x) { return simt_cuda::saturated<To>(__builtin_rint(x)); }
SIM_ALL_CONVERSIONS(float, float, uint, unsigned)
SIM_ALL_CONVERSIONS(float, float, ll, long long)
SIM_ALL_CONVERSIONS(float, float, ull, unsigned long long)
SIM_ALL_CONVERSIONS(double, double, int, int)
SIM_ALL_CONVERSIONS(double, double, uint, unsigned)
SIM_ALL_CONVERSIONS(double, double, ll, long long)
SIM_ALL_CONVERSIONS(double, double, ull, unsigned long long)

__forceinline__ int __double2hiint(double x) { return static_cast<int>(__builtin_bit_cast(long long, x) >> 32); }
__forceinline__ int __double2loint(double x) { return static_cast<int>(__builtin_bit_cast(long long, x)); }
__forceinline__ double __hiloint2double(int high, int low) {
  return __builtin_bit_cast(double, static_cast<long long>(high) << 32 | static_cast<unsigned>(low));
}
__forceinline__ unsigned long long __brevll(unsigned long long x) {
  unsigned long long result = 0;
  for (int i = 0; i < 64; ++i) result |= (x >> i & 1ull) << (63 - i);
  return result;
}
__forceinline__ unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffff) * (b & 0xffffff); }
__forceinline__ long long __mul64hi(long long a, long long b) {
  return static_cast<long long>(static_cast<__int128>(a) * b >> 64);
}
__forceinline__ unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
__forceinline__ int __hadd(int a, int b) { return static_cast<int>((static_cast<long long>(a) + b) >> 1); }
__forceinline__ int __rhadd(int a, int b) { return static_cast<int>((static_cast<long long>(a) + b + 1) >> 1); }
__forceinline__ unsigned __uhadd(unsigned a, unsigned b) { return static_cast<unsigned>((0ull + a + b) >> 1); }
__forceinline__ unsigned __sad(int a, int b, unsigned c) { return c + static_cast<unsigned>(a < b ? b - a : a - b); }
__forceinline__ unsigned __usad(unsigned a, unsigned b, unsigned c) { return c + (a < b ? b - a : a - b); }
__forceinline__ unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>(((static_cast<unsigned long long>(high) << 32 | low) << (shift & 31)) >> 32);
}
__forceinline__ unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<unsigned long long>(high) << 32 | low) >> (shift & 31));
}
__forceinline__ unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned shift) {
  return shift >= 32 ? low : __funnelshift_l(low, high, shift);
}
__forceinline__ unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift) {
  return shift >= 32 ? high : __funnelshift_r(low, high, shift);
}

template <class T>
__forceinline__ T __ldca(const T* address) {
  return *address;
}
template <class T>
__forceinline__ T __ldcs(const T* address) {
  return *address;
}
template <class T>
__forceinline__ T __ldlu(const T* address) {
  return *address;
}
template <class T>
__forceinline__ T __ldcv(const T* address) {
  return __ldcg(address);
}
template <class T>
__forceinline__ void __stcs(T* address, T value) {
  *address = value;
}
template <class T>
__forceinline__ void __stwb(T* address, T value) {
  *address = value;
}
template <class T>
__forceinline__ void __stwt(T* address, T value) {
  __stcg(address, value);
}

/// One cycle for each observed step of the warp: a clock that only goes forward.
long long clock64();
__forceinline__ void __nanosleep(unsigned) { clock64(); }
__forceinline__ void __prof_trigger(int) {}
__forceinline__ void __brkpt() {}

// Grid-wide and block-wide scopes are the same here: no thread is interrupted within an atomic.
#define SIM_SCOPED(name)                                 \
  template <class T, class V>                            \
  __forceinline__ T name##_block(T* address, V value) {  \
    return name(address, static_cast<T>(value));         \
  }                                                      \
  template <class T, class V>                            \
  __forceinline__ T name##_system(T* address, V value) { \
    return name(address, static_cast<T>(value));         \
  }
SIM_SCOPED(atomicAdd)
SIM_SCOPED(atomicSub)
SIM_SCOPED(atomicMin)
SIM_SCOPED(atomicMax)
SIM_SCOPED(atomicExch)
SIM_SCOPED(atomicAnd)
SIM_SCOPED(atomicOr)
SIM_SCOPED(atomicXor)
template <class T>
__forceinline__ T atomicCAS_block(T* address, T compare, T value) {
  return atomicCAS(address, compare, value);
}
template <class T>
__forceinline__ T atomicCAS_system(T* address, T compare, T value) {
  return atomicCAS(address, compare, value);
}
/// @endcond
