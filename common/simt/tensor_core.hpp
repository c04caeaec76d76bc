/// @file
/// A sum of products as Hopper's Tensor Cores make it, by the model of MMA-Sim (docs/references.md, xie-2025), which
/// was held against GPUs bit by bit. One sum at a time; the simulator's wgmma (wgmma.cpp) makes many at once.
#pragma once
#include <algorithm>
#include <bit>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdlib>

namespace simt {

constexpr int kKeptBits = 25;   ///< of a term, below the largest exponent of the sum's terms
constexpr int kFloatBits = 23;  ///< of a float's fraction

/// A kind of numbers that Tensor Cores multiply. @tparam Ignored lowest bits, which count for nothing
template <class Word, int ExponentBits, int FractionBits, int Ignored, int Products>
struct Factors {
  using Bits = Word;                              ///< of a number
  static constexpr int kProducts = Products;      ///< in one sum
  static constexpr int kFraction = FractionBits;  ///< bits of a number's fraction
  /// Of exponents.
  static constexpr int kBias = (1 << (ExponentBits - 1)) - 1;
  /// Its bits, without sign.
  static constexpr unsigned kInfinity = ((1u << ExponentBits) - 1) << FractionBits;

  /// Without sign and ignored bits.
  static constexpr unsigned magnitude(Bits bits) { return unsigned{bits} >> Ignored & (kSign - 1); }
  /// Whether its sign is set; of zero, too.
  static constexpr bool is_negative(Bits bits) { return (unsigned{bits} >> Ignored & kSign) != 0; }
  /// Of either sign.
  static constexpr bool is_zero(Bits bits) { return magnitude(bits) == 0; }
  /// Neither infinite nor a NaN.
  static constexpr bool is_finite(Bits bits) { return magnitude(bits) < kInfinity; }
  /// With a payload that is looked at.
  static constexpr bool is_nan(Bits bits) { return magnitude(bits) > kInfinity; }
  /// Of a finite number; the least one where it is subnormal.
  static constexpr int exponent(Bits bits) {
    return std::max(static_cast<int>(magnitude(bits) >> FractionBits), 1) - kBias;
  }
  /// With its sign: the number is significand() * 2^(exponent() - kFraction).
  static constexpr int significand(Bits bits) {
    const auto fraction = static_cast<int>(magnitude(bits) & ((1u << FractionBits) - 1));
    const int size = magnitude(bits) >> FractionBits != 0 ? fraction | 1 << FractionBits : fraction;
    return is_negative(bits) ? -size : size;
  }

 private:
  static constexpr unsigned kSign = 1u << (ExponentBits + FractionBits);
};
using Fp16 = Factors<std::uint16_t, 5, 10, 0, 16>;  ///< IEEE binary16
using Bf16 = Factors<std::uint16_t, 8, 7, 0, 16>;   ///< the upper half of a float
using Tf32 = Factors<std::uint32_t, 8, 10, 13, 8>;  ///< a float of which the upper 19 bits are looked at
using E5m2 = Factors<std::uint8_t, 5, 2, 0, 32>;    ///< the upper half of a half
/// Bytes with no infinities: of the largest exponent all but the last are numbers.
struct E4m3 : Factors<std::uint8_t, 4, 3, 0, 32> {
  /// No NaN.
  static constexpr bool is_finite(Bits bits) { return magnitude(bits) != 0x7f; }
  /// The one magnitude that is.
  static constexpr bool is_nan(Bits bits) { return magnitude(bits) == 0x7f; }
};

/// The old sum and what is added to it.
using Floats = Factors<std::uint32_t, 8, kFloatBits, 0, 1>;

/// How an instruction makes its sum.
struct SumRules {
  int group;                  ///< so many products are added at once to the old sum, then the next as many to that
  int kept_bits = kKeptBits;  ///< see there
  int least_exponent = -126;  ///< the largest exponent counts as this where it is smaller
  int fraction = kFloatBits;  ///< bits of the result's fraction, where it is a float
};
/// Hopper's of products of bytes.
constexpr SumRules kRulesOfFp8{32, 13, -126, 13};

/// The sum where a term is a NaN or infinite.
template <class A, class B>
float sum_with_infinities(const typename A::Bits* a, const typename B::Bits* b, int count, float before) {
  bool nan = std::isnan(before), infinite[2] = {before < 0 && std::isinf(before), before > 0 && std::isinf(before)};
  for (int k = 0; k < count; ++k) {
    nan |= A::is_nan(a[k]) || B::is_nan(b[k]);
    if (A::is_finite(a[k]) && B::is_finite(b[k])) continue;
    nan |= A::is_zero(a[k]) || B::is_zero(b[k]);
    infinite[A::is_negative(a[k]) == B::is_negative(b[k])] = true;
  }
  if (nan || (infinite[0] && infinite[1])) return std::bit_cast<float>(0x7fffffffu);
  return infinite[0] ? -INFINITY : INFINITY;
}

/// A number: units * 2^lowest.
struct AlignedSum {
  std::int64_t units;
  int lowest;
};

/// before + a[0] b[0] + ... + a[count - 1] b[count - 1] of finite numbers. The exponent of a product is the sum of its
/// factors' exponents, though the product of their significands may be 2 or more. Each term is cut, towards zero, after
/// kept_bits bits below the largest exponent; the rest is added exactly. A term that is zero has no exponent.
/// @tparam Before the kind of the old sum
template <class A, class B, class Before>
AlignedSum aligned_sum(const typename A::Bits* a, const typename B::Bits* b, int count, typename Before::Bits before,
                       const SumRules& rules) {
  struct Term {
    std::int64_t significand;  ///< with its sign
    int exponent, fraction;    ///< the value is significand * 2^(exponent - fraction)
  } terms[A::kProducts + 1];
  for (int k = 0; k < count; ++k)
    terms[k] = {A::significand(a[k]) * B::significand(b[k]), A::exponent(a[k]) + B::exponent(b[k]),
                A::kFraction + B::kFraction};
  terms[count] = {Before::significand(before), Before::exponent(before), Before::kFraction};

  int largest = rules.least_exponent;
  for (int k = 0; k <= count; ++k)
    if (terms[k].significand != 0) largest = std::max(largest, terms[k].exponent);
  const int lowest = largest - rules.kept_bits;
  std::int64_t sum = 0;  // in units of 2^lowest
  for (int k = 0; k <= count; ++k) {
    const int up = terms[k].exponent - terms[k].fraction - lowest;
    if (terms[k].significand == 0) continue;
    // A division cuts towards zero.
    sum += up >= 0 ? terms[k].significand * (std::int64_t{1} << up)
                   : terms[k].significand / (std::int64_t{1} << std::min(-up, 62));
  }
  return {sum, lowest};
}

/// Whether all terms of a sum are.
template <class A, class B>
bool all_finite(const typename A::Bits* a, const typename B::Bits* b, int count) {
  bool finite = true;
  for (int k = 0; k < count; ++k) finite &= A::is_finite(a[k]) && B::is_finite(b[k]);
  return finite;
}

/// The sum of one group, cut to a float, towards zero. A sum that is zero has no sign, one of 2^128 or more is
/// infinite. Of halves none is: beside a number near the largest float all their products are cut to nothing.
template <class A, class B>
float sum_of_group(const typename A::Bits* a, const typename B::Bits* b, int count, float before,
                   const SumRules& rules) {
  const auto bits = std::bit_cast<std::uint32_t>(before);
  if (!Floats::is_finite(bits) || !all_finite<A, B>(a, b, count)) return sum_with_infinities<A, B>(a, b, count, before);
  const auto [sum, lowest] = aligned_sum<A, B, Floats>(a, b, count, bits, rules);
  if (sum == 0) return 0;
  const auto size = static_cast<std::uint64_t>(std::abs(sum));
  // A float keeps 24 bits, and none below 2^-149.
  const int cut =
      std::max({static_cast<int>(std::bit_width(size)) - rules.fraction - 1, -126 - rules.fraction - lowest, 0});
  const float result = cut < 64 ? std::ldexp(static_cast<float>(size >> cut), lowest + cut) : 0;
  return sum < 0 ? -result : result;
}

/// What one instruction makes of `before` and the products of A::kProducts numbers a and b.
template <class A, class B = A>
float tensor_core_sum(const typename A::Bits* a, const typename B::Bits* b, float before,
                      const SumRules& rules = {A::kProducts}) {
  for (int k = 0; k < A::kProducts; k += rules.group)
    before = sum_of_group<A, B>(a + k, b + k, rules.group, before, rules);
  return before;
}

/// The same where the old sum and the result are halves: the sum is rounded to the nearest, half to even.
/// @param round bits of the half nearest to a double
template <class A, class B = A>
std::uint16_t tensor_core_half_sum(const typename A::Bits* a, const typename B::Bits* b, std::uint16_t before,
                                   const SumRules& rules, std::uint16_t (*round)(double)) {
  if (Fp16::is_finite(before) && all_finite<A, B>(a, b, A::kProducts)) {
    const auto [sum, lowest] = aligned_sum<A, B, Fp16>(a, b, A::kProducts, before, rules);
    return round(std::ldexp(static_cast<double>(sum), lowest));
  }
  const float of_sum = Fp16::is_finite(before) ? 0 : Fp16::is_nan(before) ? NAN : INFINITY;
  const float result = sum_with_infinities<A, B>(a, b, A::kProducts, Fp16::is_negative(before) ? -of_sum : of_sum);
  return std::isnan(result) ? 0x7fff : result < 0 ? 0xfc00 : 0x7c00;
}

/// Adds the products of 16 numbers to each of 16 x columns sums, all as a wgmma adds them; in wgmma.cpp.
/// @param are_bf16 or else fp16  @param a 16 rows of 16 numbers  @param b as many rows as there are columns, 256 at
/// most
/// @param sums 16 rows of floats' bits
void add_products(bool are_bf16, const void* a, const void* b, unsigned columns, std::uint32_t* sums);

}  // namespace simt
