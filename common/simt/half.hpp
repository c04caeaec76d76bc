/// @file
/// fp16 in the simulator, in the names of cuda_fp16.h. Included through common/kernel/half.hpp.
///
/// - Types: `half` (`__half`), `half2` (`__half2`, with `x`, `y`); a copy is one access of 2 or 4 bytes.
/// - From float: `half(f)`, `__float2half`, `__float2half_rn`, `__float2half2_rn`, `__floats2half2_rn`,
///   `__float22half2_rn`; from double, int and unsigned by `half(x)`.
/// - To float: `float(h)`, `__half2float`, `__half22float2`, `__low2float`, `__high2float`.
/// - Pairs: `make_half2`, `__halves2half2`, `__half2half2`, `__low2half`, `__high2half`.
/// - Arithmetic: `+ - * /`, `+= -= *= /=`, `__hadd`, `__hsub`, `__hmul`, `__hfma`, `__hneg`, `__habs`, `__hmax`,
///   `__hmin`, and with a 2 at the end those for pairs.
/// - Comparisons of halves: `== != < <= > >=`.
///
/// All results are rounded once to the nearest half, ties to even, as on a GPU; subnormals are kept. A NaN that an
/// operation makes is 0x7fff or 0xffff. The arithmetic runs in the runtime, unobserved: on a GPU it is registers alone.
#pragma once
#include "common/simt/simt.hpp"

/// @cond
namespace simt {

// One half in 16 bits, two in 32.
#define SIMT_PURE noexcept __attribute__((const))
std::uint16_t half_from(double value) SIMT_PURE;
float half_to_float(std::uint16_t half) SIMT_PURE;
std::uint32_t halves_from(float low, float high) SIMT_PURE;
std::uint16_t half_add(std::uint16_t a, std::uint16_t b) SIMT_PURE;
std::uint16_t half_subtract(std::uint16_t a, std::uint16_t b) SIMT_PURE;
std::uint16_t half_multiply(std::uint16_t a, std::uint16_t b) SIMT_PURE;
std::uint16_t half_divide(std::uint16_t a, std::uint16_t b) SIMT_PURE;
std::uint16_t half_multiply_add(std::uint16_t a, std::uint16_t b, std::uint16_t c) SIMT_PURE;
std::uint16_t half_maximum(std::uint16_t a, std::uint16_t b) SIMT_PURE;
std::uint16_t half_minimum(std::uint16_t a, std::uint16_t b) SIMT_PURE;
std::uint32_t halves_add(std::uint32_t a, std::uint32_t b) SIMT_PURE;
std::uint32_t halves_subtract(std::uint32_t a, std::uint32_t b) SIMT_PURE;
std::uint32_t halves_multiply(std::uint32_t a, std::uint32_t b) SIMT_PURE;
std::uint32_t halves_divide(std::uint32_t a, std::uint32_t b) SIMT_PURE;
std::uint32_t halves_multiply_add(std::uint32_t a, std::uint32_t b, std::uint32_t c) SIMT_PURE;
std::uint32_t halves_maximum(std::uint32_t a, std::uint32_t b) SIMT_PURE;
std::uint32_t halves_minimum(std::uint32_t a, std::uint32_t b) SIMT_PURE;
#undef SIMT_PURE

struct FromBits {};

}  // namespace simt

struct __half_raw {
  unsigned short x;
};
struct __half2_raw {
  unsigned short x, y;
};
/// @endcond

/// As in CUDA.
struct __align__(2) __half {
  /// @cond
  std::uint16_t bits;

  __half() = default;
  __forceinline__ __half(simt::FromBits, std::uint16_t value) : bits(value) {}
  __forceinline__ __half(float value) : bits(simt::half_from(value)) {}
  __forceinline__ __half(double value) : bits(simt::half_from(value)) {}
  __forceinline__ __half(int value) : bits(simt::half_from(value)) {}
  __forceinline__ __half(unsigned value) : bits(simt::half_from(value)) {}
  __forceinline__ __half(long value) : bits(simt::half_from(static_cast<double>(value))) {}
  __forceinline__ __half(unsigned long value) : bits(simt::half_from(static_cast<double>(value))) {}
  __forceinline__ __half(long long value) : bits(simt::half_from(static_cast<double>(value))) {}
  __forceinline__ __half(unsigned long long value) : bits(simt::half_from(static_cast<double>(value))) {}
  __forceinline__ __half(__half_raw raw) : bits(raw.x) {}
  __forceinline__ operator float() const { return simt::half_to_float(bits); }
  __forceinline__ operator __half_raw() const { return {bits}; }
  /// @endcond
};
/// As in CUDA.
using half = __half;

/// As in CUDA. The first of the pair has the lower address.
struct __align__(4) __half2 {
  /// @cond
  half x, y;

  __half2() = default;
  __forceinline__ __half2(half low, half high) : x(low), y(high) {}
  __forceinline__ __half2(__half2_raw raw) : x(__half_raw{raw.x}), y(__half_raw{raw.y}) {}
  __forceinline__ operator __half2_raw() const { return {x.bits, y.bits}; }
  __forceinline__ __half2(simt::FromBits, std::uint32_t both)
      : x(simt::FromBits{}, static_cast<std::uint16_t>(both)),
        y(simt::FromBits{}, static_cast<std::uint16_t>(both >> 16)) {}
  __forceinline__ __half2(const __half2& o) { copy(o); }
  __forceinline__ __half2& operator=(const __half2& o) { return copy(o), *this; }
  __forceinline__ void copy(const __half2& o) {
    *reinterpret_cast<simt::Word*>(this) = *reinterpret_cast<const simt::Word*>(&o);
  }
  __forceinline__ std::uint32_t both() const { return *reinterpret_cast<const simt::Word*>(this); }
  /// @endcond
};
/// As in CUDA.
using half2 = __half2;

/// @name Conversions
/// As in CUDA.
/// @{

// As in CUDA, pairs are passed by value.
// NOLINTBEGIN(performance-unnecessary-value-param)

/// As in CUDA.
__forceinline__ half __float2half(float value) { return half(value); }
__forceinline__ half __float2half_rn(float value) { return half(value); }
__forceinline__ float __half2float(half value) { return value; }
__forceinline__ half2 __floats2half2_rn(float low, float high) {
  return half2(simt::FromBits{}, simt::halves_from(low, high));
}
__forceinline__ half2 __float2half2_rn(float value) { return __floats2half2_rn(value, value); }
__forceinline__ half2 __float22half2_rn(float2 value) { return __floats2half2_rn(value.x, value.y); }
__forceinline__ float2 __half22float2(half2 value) { return float2(value.x, value.y); }
__forceinline__ float __low2float(half2 value) { return value.x; }
__forceinline__ float __high2float(half2 value) { return value.y; }
__forceinline__ half __low2half(half2 value) { return value.x; }
__forceinline__ half __high2half(half2 value) { return value.y; }
__forceinline__ half2 __halves2half2(half low, half high) { return half2(low, high); }
__forceinline__ half2 make_half2(half low, half high) { return half2(low, high); }
__forceinline__ half2 __half2half2(half value) { return half2(value, value); }
/// @}

/// @name Arithmetic of halves
/// As in CUDA.
/// @{

/// @cond
#define SIMT_HALF_FUNCTION(name, name2, operation)                                                                     \
  __forceinline__ half name(half a, half b) { return half(simt::FromBits{}, simt::half_##operation(a.bits, b.bits)); } \
  __forceinline__ half2 name2(half2 a, half2 b) {                                                                      \
    return half2(simt::FromBits{}, simt::halves_##operation(a.both(), b.both()));                                      \
  }
#define SIMT_HALF_OPERATOR(op, operation)                                      \
  SIMT_HALF_FUNCTION(operator op, operator op, operation)                      \
  __forceinline__ half& operator op##=(half& a, half b) { return a = a op b; } \
  __forceinline__ half2& operator op##=(half2& a, half2 b) { return a = a op b; }
#define SIMT_HALF_COMPARISON(op) \
  __forceinline__ bool operator op(half a, half b) { return static_cast<float>(a) op static_cast<float>(b); }
SIMT_HALF_OPERATOR(+, add)
SIMT_HALF_OPERATOR(-, subtract)
SIMT_HALF_OPERATOR(*, multiply)
SIMT_HALF_OPERATOR(/, divide)
SIMT_HALF_FUNCTION(__hadd, __hadd2, add)
SIMT_HALF_FUNCTION(__hsub, __hsub2, subtract)
SIMT_HALF_FUNCTION(__hmul, __hmul2, multiply)
SIMT_HALF_FUNCTION(__hmax, __hmax2, maximum)
SIMT_HALF_FUNCTION(__hmin, __hmin2, minimum)
SIMT_HALF_COMPARISON(==)
SIMT_HALF_COMPARISON(!=)
SIMT_HALF_COMPARISON(<)
SIMT_HALF_COMPARISON(<=)
SIMT_HALF_COMPARISON(>)
SIMT_HALF_COMPARISON(>=)
#undef SIMT_HALF_COMPARISON
#undef SIMT_HALF_OPERATOR
#undef SIMT_HALF_FUNCTION
/// @endcond
/// As in CUDA: one rounding.
__forceinline__ half __hfma(half a, half b, half c) {
  return half(simt::FromBits{}, simt::half_multiply_add(a.bits, b.bits, c.bits));
}
__forceinline__ half2 __hfma2(half2 a, half2 b, half2 c) {
  return half2(simt::FromBits{}, simt::halves_multiply_add(a.both(), b.both(), c.both()));
}
__forceinline__ half __hneg(half a) { return half(simt::FromBits{}, static_cast<std::uint16_t>(a.bits ^ 0x8000u)); }
__forceinline__ half __habs(half a) { return half(simt::FromBits{}, static_cast<std::uint16_t>(a.bits & 0x7fffu)); }
__forceinline__ half2 __hneg2(half2 a) { return half2(simt::FromBits{}, a.both() ^ 0x80008000u); }
__forceinline__ half2 __habs2(half2 a) { return half2(simt::FromBits{}, a.both() & 0x7fff7fffu); }
__forceinline__ half operator-(half a) { return __hneg(a); }
__forceinline__ half2 operator-(half2 a) { return __hneg2(a); }
/// @}

// NOLINTEND(performance-unnecessary-value-param)
