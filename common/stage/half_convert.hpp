/// @file
/// The conversions of half_bits.hpp without branches, for files of plain code that make many of them.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace convladder {

/// The half nearest to `value`, ties to even; infinity where that is out of range; NaN as CUDA writes it.
inline std::uint16_t to_half_bits(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  // Halves in [2^e, 2^(e+1)) are 2^(e-10) apart, and below 2^-14 as they are there. A sum with 2^(e+42), whose double
  // has that spacing, ends in the rounded value, counted in those steps.
  const int exponent = std::max(static_cast<int>(bits >> 52 & 0x7ff) - 1023, -14);
  const auto shift = std::bit_cast<double>(static_cast<std::uint64_t>(std::min(exponent, 16) + 42 + 1023) << 52);
  const auto steps = static_cast<int>(std::bit_cast<std::uint64_t>(std::fabs(value) + shift) & 0xfff);
  // The leading one of a normal half counts as 1 in its exponent; so does a carry, up to infinity.
  const int magnitude = std::min((exponent + 14) * 1024 + steps, 0x7c00);
  const int nan = std::isnan(value) ? 0x7fff : 0;
  return static_cast<std::uint16_t>((bits >> 48 & 0x8000) | static_cast<unsigned>(magnitude | nan));
}

/// The number that a half stands for, exactly.
inline float from_half_bits(std::uint16_t bits) {
  // The fraction and exponent where a float has them, whose exponent is off by 112. That also makes subnormals right.
  const float magnitude = std::bit_cast<float>((bits & 0x7fffu) << 13) * 0x1p112f;
  const std::uint32_t sign = (bits & 0x8000u) << 16, infinite = (bits & 0x7c00) == 0x7c00 ? 0x7f800000u : 0;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | infinite | sign);
}

}  // namespace convladder
