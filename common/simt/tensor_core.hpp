/// @file
/// A sum of products of halves as Hopper's Tensor Cores make it, by the model of MMA-Sim (docs/references.md,
/// xie-2025), which was held against GPUs bit by bit. One sum at a time; the simulator's wgmma (wgmma.cpp) makes many
/// at once.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>

namespace simt {

constexpr int kProducts = 16;        ///< of halves, in one sum
constexpr int kKeptBits = 25;        ///< of a term, below the largest exponent of the sum's terms
constexpr int kLeastExponent = -28;  ///< of a product that is not zero
constexpr int kMostExponent = 30;    ///< of a finite product
constexpr int kHalfBits = 10;        ///< of a half's fraction
constexpr int kFloatBits = 23;       ///< of a float's

/// The exponent of a number that is not zero; the least one where it is subnormal.
constexpr int half_exponent(std::uint16_t bits) { return std::max(bits >> 10 & 0x1f, 1) - 15; }
/// The same of a float.
constexpr int float_exponent(std::uint32_t bits) { return std::max(static_cast<int>(bits >> 23 & 0xff), 1) - 127; }
/// Whether a half is neither infinite nor a NaN.
constexpr bool half_is_finite(std::uint16_t bits) { return (bits & 0x7c00) != 0x7c00; }
/// The same of a float.
constexpr bool float_is_finite(std::uint32_t bits) { return (bits & 0x7f800000) != 0x7f800000; }

/// The sum where a term is a NaN or infinite.
inline float sum_with_infinities(const std::uint16_t* a, const std::uint16_t* b, float before) {
  const auto sign = [](unsigned bits) { return bits & 0x8000 ? -1 : 1; };
  const auto is_nan = [](unsigned bits) { return (bits & 0x7fff) > 0x7c00; };
  bool nan = std::isnan(before), infinite[2] = {before < 0 && std::isinf(before), before > 0 && std::isinf(before)};
  for (int k = 0; k < kProducts; ++k) {
    nan |= is_nan(a[k]) || is_nan(b[k]);
    if (half_is_finite(a[k]) && half_is_finite(b[k])) continue;
    nan |= (a[k] & 0x7fff) == 0 || (b[k] & 0x7fff) == 0;
    infinite[sign(a[k]) * sign(b[k]) > 0] = true;
  }
  if (nan || (infinite[0] && infinite[1])) return std::bit_cast<float>(0x7fffffffu);
  return infinite[0] ? -INFINITY : INFINITY;
}

/// before + a[0] b[0] + ... + a[15] b[15]. The exponent of a product is the sum of its factors' exponents, though the
/// product of their significands may be 2 or more. Each term is cut, towards zero, after kKeptBits bits below the
/// largest exponent; the rest is added exactly, and the sum is cut to a float, towards zero. A term that is zero has no
/// exponent, and a sum that is zero no sign. No finite sum is too large: beside a number near the largest float all
/// products are cut to nothing.
inline float tensor_core_sum(const std::uint16_t* a, const std::uint16_t* b, float before) {
  const auto bits = std::bit_cast<std::uint32_t>(before);
  bool finite = float_is_finite(bits);
  for (int k = 0; k < kProducts; ++k) finite &= half_is_finite(a[k]) && half_is_finite(b[k]);
  if (!finite) return sum_with_infinities(a, b, before);

  struct Term {
    std::int64_t significand;  ///< with its sign
    int exponent, fraction;    ///< the value is significand * 2^(exponent - fraction)
  } terms[kProducts + 1];
  const auto significand = [](unsigned half) {
    const int magnitude = static_cast<int>(half & 0x3ff) | (half & 0x7c00 ? 0x400 : 0);
    return half & 0x8000 ? -magnitude : magnitude;
  };
  for (int k = 0; k < kProducts; ++k)
    terms[k] = {significand(a[k]) * significand(b[k]), half_exponent(a[k]) + half_exponent(b[k]), 2 * kHalfBits};
  const int magnitude = static_cast<int>(bits & 0x7fffff) | (bits & 0x7f800000 ? 0x800000 : 0);
  terms[kProducts] = {bits >> 31 ? -magnitude : magnitude, float_exponent(bits), kFloatBits};

  int largest = INT32_MIN;
  for (const Term& term : terms)
    if (term.significand != 0) largest = std::max(largest, term.exponent);
  std::int64_t sum = 0;  // in units of 2^(largest - kKeptBits)
  for (const Term& term : terms) {
    if (term.significand == 0) continue;
    const int up = term.exponent - term.fraction - (largest - kKeptBits);
    // A division cuts towards zero.
    sum += up >= 0 ? term.significand * (std::int64_t{1} << up)
                   : term.significand / (std::int64_t{1} << std::min(-up, 62));
  }
  if (sum == 0) return 0;
  const auto size = static_cast<std::uint64_t>(std::abs(sum));
  const int lowest = largest - kKeptBits;  // a float keeps 24 bits, and none below 2^-149
  const int cut = std::max({static_cast<int>(std::bit_width(size)) - kFloatBits - 1, -149 - lowest, 0});
  const float result = std::ldexp(static_cast<float>(size >> cut), lowest + cut);
  return sum < 0 ? -result : result;
}

}  // namespace simt
