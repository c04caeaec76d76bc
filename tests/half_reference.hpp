/// @file
/// Rounding to fp16 from its definition, for tests: the nearest of all halves, found by comparison with the midpoints
/// between them. Numbers are integers in units of 2^-48, in which the sum and the product of halves are exact.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

namespace half_reference {

__extension__ using Wide = __int128;

/// 2^-48 is 1.
constexpr int kUnit = 48;

/// A half that is a number, from its bits.
inline Wide wide(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
  const Wide magnitude =
      exponent == 0 ? Wide{fraction} << (kUnit - 24) : Wide{fraction | 0x400} << (kUnit - 25 + exponent);
  return bits & 0x8000 ? -magnitude : magnitude;
}

/// A double of at most 2^70 that is a multiple of 2^-48.
inline Wide wide_of(double value) {
  int exponent;
  const double fraction = std::frexp(value, &exponent);
  const Wide significand = static_cast<Wide>(std::ldexp(fraction, 53));
  const int shift = exponent - 53 + kUnit;
  return shift >= 0 ? significand * (Wide{1} << shift) : significand / (Wide{1} << -shift);
}

/// The half nearest to `value`, ties to even, infinity from 65520 on. @param negative the sign of a zero
inline std::uint16_t nearest(Wide value, bool negative) {
  static const std::vector<Wide> midpoints = [] {  // twice that above each half from 0 on
    std::vector<Wide> sums;
    for (unsigned bits = 0; bits < 0x7bff; ++bits)
      sums.push_back(wide(static_cast<std::uint16_t>(bits)) + wide(static_cast<std::uint16_t>(bits + 1)));
    sums.push_back(Wide{65520} << (kUnit + 1));
    return sums;
  }();
  const Wide twice = 2 * (value < 0 ? -value : value);
  const auto next = std::lower_bound(midpoints.begin(), midpoints.end(), twice);  // the first not below
  auto bits = static_cast<std::uint16_t>(next - midpoints.begin());
  if (next != midpoints.end() && *next == twice) bits = static_cast<std::uint16_t>(bits + bits % 2);
  return static_cast<std::uint16_t>(bits | (value < 0 || (value == 0 && negative) ? 0x8000 : 0));
}

inline bool is_nan(std::uint16_t bits) { return (bits & 0x7fff) > 0x7c00; }
inline bool is_infinite(std::uint16_t bits) { return (bits & 0x7fff) == 0x7c00; }
inline bool is_finite(std::uint16_t bits) { return (bits & 0x7c00) != 0x7c00; }

/// Floats at, next to and between all halves that are numbers, and beyond the largest, of both signs.
inline std::vector<float> critical_floats() {
  std::vector<float> values;
  const auto add = [&](float value) {
    for (const float near : {value, std::nextafter(value, 0.0f), std::nextafter(value, INFINITY)})
      values.insert(values.end(), {near, -near});
  };
  for (unsigned bits = 0; bits < 0x7c00; ++bits) {
    const auto at = static_cast<double>(wide(static_cast<std::uint16_t>(bits)));
    const auto after =
        static_cast<double>(bits == 0x7bff ? Wide{65536} << kUnit : wide(static_cast<std::uint16_t>(bits + 1)));
    add(static_cast<float>(std::ldexp(at, -kUnit)));
    add(static_cast<float>(std::ldexp((at + after) / 2, -kUnit)));
  }
  for (const float value : {65536.0f, 1e6f, 1e20f}) add(value);
  return values;
}

}  // namespace half_reference
