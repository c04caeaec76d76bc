#include "common/half_bits.hpp"

#include <bit>

namespace convladder {

std::uint16_t half_bits(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 48 & 0x8000);
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << 52) - 1);
  const int exponent = static_cast<int>(bits >> 52 & 0x7ff) - 1023;
  if (exponent == 1024) return fraction == 0 ? sign | 0x7c00 : sign | 0x7e00;  // infinity, NaN
  if (exponent > 15) return sign | 0x7c00;
  if (exponent < -25) return sign;
  const std::uint64_t significand = fraction | std::uint64_t{1} << 52;
  // Normal halves keep 11 bits of the significand; subnormal ones fewer by one for each power of two below 2^-14.
  const int dropped = exponent >= -14 ? 42 : 42 + (-14 - exponent);
  std::uint64_t kept = significand >> dropped;
  const std::uint64_t rest = significand & ((std::uint64_t{1} << dropped) - 1), tie = std::uint64_t{1} << (dropped - 1);
  if (rest > tie || (rest == tie && kept % 2 == 1)) ++kept;
  // A carry goes on into the exponent, up to infinity. The leading one of `kept` counts as 1 there.
  const std::uint64_t biased = exponent >= -14 ? kept + (static_cast<std::uint64_t>(exponent + 14) << 10) : kept;
  return static_cast<std::uint16_t>(sign | biased);
}

float half_value(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16;
  const std::uint32_t exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
  if (exponent == 0) {  // zero or subnormal: a multiple of 2^-24
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  const std::uint32_t wide = exponent == 31 ? 0xff : exponent + (127 - 15);
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

}  // namespace convladder
