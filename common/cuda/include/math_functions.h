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

#include "common/cuda/small_floats.hpp"
#include "common/simt/simt.hpp"

/// @cond
__forceinline__ float sinpif(float x) { return static_cast<float>(__builtin_sin(M_PI * __builtin_fmod(x, 2.0))); }
__forceinline__ float cospif(float x) { return static_cast<float>(__builtin_cos(M_PI * __builtin_fmod(x, 2.0))); }
__forceinline__ double sinpi(double x) { return __builtin_sin(M_PI * __builtin_fmod(x, 2.0)); }
__forceinline__ double cospi(double x) { return __builtin_cos(M_PI * __builtin_fmod(x, 2.0)); }
__forceinline__ void sincospif(float x, float* s, float* c) { *s = sinpif(x), *c = cospif(x); }
__forceinline__ void sincospi(double x, double* s, double* c) { *s = sinpi(x), *c = cospi(x); }
__forceinline__ void sincospi(float x, float* s, float* c) { sincospif(x, s, c); }
__forceinline__ void sincos(float x, float* s, float* c) { *s = sinf(x), *c = cosf(x); }
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
__forceinline__ float fdivide(float a, float b) { return a / b; }
__forceinline__ double fdivide(double a, double b) { return a / b; }
__forceinline__ unsigned umin(unsigned a, unsigned b) { return b < a ? b : a; }
__forceinline__ unsigned umax(unsigned a, unsigned b) { return a < b ? b : a; }
__forceinline__ long long llmin(long long a, long long b) { return b < a ? b : a; }
__forceinline__ long long llmax(long long a, long long b) { return a < b ? b : a; }
__forceinline__ unsigned long long ullmin(unsigned long long a, unsigned long long b) { return b < a ? b : a; }
__forceinline__ unsigned long long ullmax(unsigned long long a, unsigned long long b) { return a < b ? b : a; }
__forceinline__ double rnorm3d(double x, double y, double z) { return 1 / norm3d(x, y, z); }
__forceinline__ double norm4d(double x, double y, double z, double w) { return sqrt(x * x + y * y + z * z + w * w); }
__forceinline__ double rnorm4d(double x, double y, double z, double w) { return 1 / norm4d(x, y, z, w); }
__forceinline__ float rnorm4df(float x, float y, float z, float w) { return 1 / norm4df(x, y, z, w); }
__forceinline__ double norm(int count, const double* values) {
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += values[i] * values[i];
  return sqrt(sum);
}
__forceinline__ float normf(int count, const float* values) {
  float sum = 0;
  for (int i = 0; i < count; ++i) sum += values[i] * values[i];
  return sqrtf(sum);
}
__forceinline__ double rnorm(int count, const double* values) { return 1 / norm(count, values); }
__forceinline__ float rnormf(int count, const float* values) { return 1 / normf(count, values); }
__forceinline__ double erfcx(double x) { return __builtin_exp(x * x) * __builtin_erfc(x); }
namespace simt_cuda {
double erf_inverse(double x) noexcept;
double bessel_i(int order, double x) noexcept;
}  // namespace simt_cuda
__forceinline__ double erfinv(double x) { return simt_cuda::erf_inverse(x); }
__forceinline__ float erfinvf(float x) { return static_cast<float>(simt_cuda::erf_inverse(x)); }
__forceinline__ double erfcinv(double x) { return simt_cuda::erf_inverse(1 - x); }
__forceinline__ float erfcinvf(float x) { return static_cast<float>(simt_cuda::erf_inverse(1.0 - x)); }
__forceinline__ double normcdfinv(double x) { return M_SQRT2 * simt_cuda::erf_inverse(2 * x - 1); }
__forceinline__ float normcdfinvf(float x) { return static_cast<float>(M_SQRT2 * simt_cuda::erf_inverse(2.0 * x - 1)); }
__forceinline__ double cyl_bessel_i0(double x) { return simt_cuda::bessel_i(0, x); }
__forceinline__ float cyl_bessel_i0f(float x) { return static_cast<float>(simt_cuda::bessel_i(0, x)); }
__forceinline__ double cyl_bessel_i1(double x) { return simt_cuda::bessel_i(1, x); }
__forceinline__ float cyl_bessel_i1f(float x) { return static_cast<float>(simt_cuda::bessel_i(1, x)); }
__forceinline__ float normcdff(float x) { return 0.5f * erfcf(-x * 0.70710678f); }
__forceinline__ double normcdf(double x) { return 0.5 * erfc(-x * M_SQRT1_2); }
__forceinline__ float erfcxf(float x) { return static_cast<float>(__builtin_exp(double(x) * x) * __builtin_erfc(x)); }
__forceinline__ double saturate(double x) { return x > 0 ? x < 1 ? x : 1 : 0; }

#define SIM_ROUNDED(name, T, parameters, expression)            \
  __forceinline__ T name##_rd parameters { return expression; } \
  __forceinline__ T name##_ru parameters { return expression; } \
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
#define SIM_CONVERSIONS(from, From, to, To)                                                                \
  __forceinline__ To __##from##2##to##_rd(From x) { return simt_cuda::saturated<To>(__builtin_floor(x)); } \
  __forceinline__ To __##from##2##to##_ru(From x) { return simt_cuda::saturated<To>(__builtin_ceil(x)); }  \
  __forceinline__ To __##from##2##to##_rz(From x) { return simt_cuda::saturated<To>(__builtin_trunc(x)); }
#define SIM_ALL_CONVERSIONS(from, From, to, To) \
  SIM_CONVERSIONS(from, From, to, To)           \
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
__forceinline__ unsigned __urhadd(unsigned a, unsigned b) { return static_cast<unsigned>((0ull + a + b + 1) >> 1); }
__forceinline__ int __dp2a_lo(int a, int b, int c) {
  return c + static_cast<short>(a) * static_cast<signed char>(b) + (a >> 16) * static_cast<signed char>(b >> 8);
}
__forceinline__ int __dp2a_hi(int a, int b, int c) { return __dp2a_lo(a, b >> 16, c); }
__forceinline__ unsigned __dp2a_lo(unsigned a, unsigned b, unsigned c) {
  return c + (a & 0xffff) * (b & 0xff) + (a >> 16) * (b >> 8 & 0xff);
}
__forceinline__ unsigned __dp2a_hi(unsigned a, unsigned b, unsigned c) { return __dp2a_lo(a, b >> 16, c); }
__forceinline__ unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < 32; i += 8) c += (a >> i & 0xff) * (b >> i & 0xff);
  return c;
}
/// The position of the `offset`th set bit from `base` on, or -1.
__forceinline__ unsigned __fns(unsigned mask, unsigned base, int offset) {
  const int step = offset < 0 ? -1 : 1;
  int left = offset < 0 ? -offset : offset;
  if (left == 0) return mask >> base & 1 ? base : ~0u;
  for (int at = static_cast<int>(base); at >= 0 && at < 32; at += step)
    if (mask >> at & 1 && --left == 0) return static_cast<unsigned>(at);
  return ~0u;
}

// Two halfwords or four bytes at a time.
namespace simt_cuda {
template <class T, class Operation>
__forceinline__ unsigned by_parts(unsigned a, unsigned b, Operation operation) {
  constexpr int kBits = 8 * sizeof(T);
  unsigned result = 0;
  for (int i = 0; i < 32; i += kBits) {
    const auto part = operation(static_cast<int>(static_cast<T>(a >> i)), static_cast<int>(static_cast<T>(b >> i)));
    result |= (static_cast<unsigned>(part) & (~0u >> (32 - kBits))) << i;
  }
  return result;
}
template <class T>
__forceinline__ int clamped(int value) {
  constexpr int kLeast = static_cast<T>(-1) < T(0) ? -(1 << (8 * sizeof(T) - 1)) : 0;
  constexpr int kMost = kLeast + (1 << 8 * sizeof(T)) - 1;
  return value < kLeast ? kLeast : value > kMost ? kMost : value;
}
}  // namespace simt_cuda
#define SIM_PARTS(name, T, expression)                                                              \
  __forceinline__ unsigned name(unsigned x, unsigned y) {                                           \
    return simt_cuda::by_parts<T>(x, y, [](int a, int b) { return static_cast<int>(expression); }); \
  }
#define SIM_EACH(word, S, U, n)                                                                            \
  SIM_PARTS(__vadd##n, U, a + b)                                                                           \
  SIM_PARTS(__vsub##n, U, a - b)                                                                           \
  SIM_PARTS(__vaddss##n, S, simt_cuda::clamped<S>(a + b))                                                  \
  SIM_PARTS(__vaddus##n, U, simt_cuda::clamped<U>(a + b))                                                  \
  SIM_PARTS(__vsubss##n, S, simt_cuda::clamped<S>(a - b))                                                  \
  SIM_PARTS(__vsubus##n, U, simt_cuda::clamped<U>(a - b))                                                  \
  SIM_PARTS(__vavgs##n, S, (a + b + 1) >> 1)                                                               \
  SIM_PARTS(__vavgu##n, U, (a + b + 1) >> 1)                                                               \
  SIM_PARTS(__vhaddu##n, U, (a + b) >> 1)                                                                  \
  SIM_PARTS(__vmaxs##n, S, a < b ? b : a)                                                                  \
  SIM_PARTS(__vmaxu##n, U, a < b ? b : a)                                                                  \
  SIM_PARTS(__vmins##n, S, b < a ? b : a)                                                                  \
  SIM_PARTS(__vminu##n, U, b < a ? b : a)                                                                  \
  SIM_PARTS(__vabsdiffs##n, S, a < b ? b - a : a - b)                                                      \
  SIM_PARTS(__vabsdiffu##n, U, a < b ? b - a : a - b)                                                      \
  SIM_PARTS(__vcmpeq##n, U, a == b ? -1 : 0)                                                               \
  SIM_PARTS(__vcmpne##n, U, a != b ? -1 : 0)                                                               \
  SIM_PARTS(__vcmpgts##n, S, a > b ? -1 : 0)                                                               \
  SIM_PARTS(__vcmpges##n, S, a >= b ? -1 : 0)                                                              \
  SIM_PARTS(__vcmplts##n, S, a < b ? -1 : 0)                                                               \
  SIM_PARTS(__vcmples##n, S, a <= b ? -1 : 0)                                                              \
  SIM_PARTS(__vcmpgtu##n, U, a > b ? -1 : 0)                                                               \
  SIM_PARTS(__vcmpgeu##n, U, a >= b ? -1 : 0)                                                              \
  SIM_PARTS(__vcmpltu##n, U, a < b ? -1 : 0)                                                               \
  SIM_PARTS(__vcmpleu##n, U, a <= b ? -1 : 0)                                                              \
  SIM_PARTS(__vseteq##n, U, a == b)                                                                        \
  SIM_PARTS(__vsetne##n, U, a != b)                                                                        \
  SIM_PARTS(__vsetgts##n, S, a > b)                                                                        \
  SIM_PARTS(__vsetges##n, S, a >= b)                                                                       \
  SIM_PARTS(__vsetlts##n, S, a < b)                                                                        \
  SIM_PARTS(__vsetles##n, S, a <= b)                                                                       \
  SIM_PARTS(__vsetgtu##n, U, a > b)                                                                        \
  SIM_PARTS(__vsetgeu##n, U, a >= b)                                                                       \
  SIM_PARTS(__vsetltu##n, U, a < b)                                                                        \
  SIM_PARTS(__vsetleu##n, U, a <= b)                                                                       \
  __forceinline__ unsigned __vabs##n(unsigned x) {                                                         \
    return simt_cuda::by_parts<S>(x, 0, [](int a, int) { return a < 0 ? -a : a; });                        \
  }                                                                                                        \
  __forceinline__ unsigned __vabsss##n(unsigned x) {                                                       \
    return simt_cuda::by_parts<S>(x, 0, [](int a, int) { return simt_cuda::clamped<S>(a < 0 ? -a : a); }); \
  }                                                                                                        \
  __forceinline__ unsigned __vneg##n(unsigned x) { return __vsub##n(0, x); }                               \
  __forceinline__ unsigned __vnegss##n(unsigned x) { return __vsubss##n(0, x); }                           \
  __forceinline__ unsigned __vsadu##n(unsigned x, unsigned y) {                                            \
    unsigned sum = 0;                                                                                      \
    const unsigned parts = __vabsdiffu##n(x, y);                                                           \
    for (const int i : word) sum += parts >> i & (~0u >> (32 - 32 / n));                                   \
    return sum;                                                                                            \
  }                                                                                                        \
  __forceinline__ unsigned __vsads##n(unsigned x, unsigned y) {                                            \
    unsigned sum = 0;                                                                                      \
    const unsigned parts = __vabsdiffs##n(x, y);                                                           \
    for (const int i : word) sum += parts >> i & (~0u >> (32 - 32 / n));                                   \
    return sum;                                                                                            \
  }
namespace simt_cuda {
constexpr int kHalfwords[] = {0, 16}, kBytes[] = {0, 8, 16, 24};
}
SIM_EACH(simt_cuda::kHalfwords, short, unsigned short, 2)
SIM_EACH(simt_cuda::kBytes, signed char, unsigned char, 4)
#undef SIM_EACH
#undef SIM_PARTS

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

// Maxima and minima of sums and of three, with a floor of 0 or without.
#define SIM_DPX(name, operation)                                                                                    \
  __forceinline__ int __vi##name##_s32_relu(int a, int b) { return max(operation(a, b), 0); }                       \
  __forceinline__ int __vi##name##3_s32(int a, int b, int c) { return operation(operation(a, b), c); }              \
  __forceinline__ unsigned __vi##name##3_u32(unsigned a, unsigned b, unsigned c) {                                  \
    return operation(operation(a, b), c);                                                                           \
  }                                                                                                                 \
  __forceinline__ int __vi##name##3_s32_relu(int a, int b, int c) { return max(operation(operation(a, b), c), 0); } \
  __forceinline__ int __viadd##name##_s32(int a, int b, int c) {                                                    \
    return operation(static_cast<int>(static_cast<unsigned>(a) + static_cast<unsigned>(b)), c);                     \
  }                                                                                                                 \
  __forceinline__ unsigned __viadd##name##_u32(unsigned a, unsigned b, unsigned c) { return operation(a + b, c); }  \
  __forceinline__ int __viadd##name##_s32_relu(int a, int b, int c) { return max(__viadd##name##_s32(a, b, c), 0); }
SIM_DPX(max, max)
SIM_DPX(min, min)
#undef SIM_DPX

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
// The value is converted, as where CUDA has a function for each type.
template <class T, class V>
__forceinline__ void __stcs(T* address, V value) {
  *address = value;
}
template <class T, class V>
__forceinline__ void __stwb(T* address, V value) {
  *address = value;
}
template <class T, class V>
__forceinline__ void __stwt(T* address, V value) {
  __stcg(address, static_cast<T>(value));
}

/// One cycle for each observed step of the warp: a clock that only goes forward.
long long clock64();
__forceinline__ void __nanosleep(unsigned) { clock64(); }
__forceinline__ void __prof_trigger(int) {}
__forceinline__ void __brkpt() {}
// A kernel begins when the one before has ended.
__forceinline__ void cudaGridDependencySynchronize() {}
__forceinline__ void cudaTriggerProgrammaticLaunchCompletion() {}

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
/// The parts one after another, as on a GPU of compute capability 9.
__forceinline__ float2 atomicAdd(float2* address, const float2& value) {
  return float2(atomicAdd(&address->x, value.x), atomicAdd(&address->y, value.y));
}
__forceinline__ float4 atomicAdd(float4* address, const float4& value) {
  return float4(atomicAdd(&address->x, value.x), atomicAdd(&address->y, value.y), atomicAdd(&address->z, value.z),
                atomicAdd(&address->w, value.w));
}
__forceinline__ unsigned atomicInc_block(unsigned* address, unsigned limit) { return atomicInc(address, limit); }
__forceinline__ unsigned atomicInc_system(unsigned* address, unsigned limit) { return atomicInc(address, limit); }
__forceinline__ unsigned atomicDec_block(unsigned* address, unsigned limit) { return atomicDec(address, limit); }
__forceinline__ unsigned atomicDec_system(unsigned* address, unsigned limit) { return atomicDec(address, limit); }
template <class T, class C, class V>
__forceinline__ T atomicCAS_block(T* address, C compare, V value) {
  return atomicCAS(address, static_cast<T>(compare), static_cast<T>(value));
}
template <class T, class C, class V>
__forceinline__ T atomicCAS_system(T* address, C compare, V value) {
  return atomicCAS(address, static_cast<T>(compare), static_cast<T>(value));
}
/// @endcond
