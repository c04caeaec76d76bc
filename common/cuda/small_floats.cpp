#include "common/cuda/small_floats.hpp"

#include <algorithm>
#include <cmath>

#include "common/simt/half.hpp"

namespace simt {
namespace {

/// The bits of the nearest number with `fraction` bits behind the point, exponents from 1 - bias, below `infinity`.
unsigned nearest(double value, int fraction, int bias, unsigned largest) {
  const double magnitude = std::fabs(value);
  if (magnitude == 0) return 0;
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  exponent = std::max(exponent - 1, 1 - bias);
  // In units of the last place; a carry raises the exponent by itself.
  const double units = std::nearbyint(std::ldexp(magnitude, fraction - exponent));
  const double bits = units + static_cast<double>((exponent + bias - 1) << fraction);
  return bits > largest ? largest : static_cast<unsigned>(bits);
}

float number(unsigned bits, int fraction, int bias) {
  const int exponent = static_cast<int>(bits >> fraction);
  const auto rest = static_cast<double>(bits & ((1u << fraction) - 1));
  const double value = exponent == 0 ? std::ldexp(rest, 1 - bias - fraction)
                                     : std::ldexp(rest + (1 << fraction), exponent - bias - fraction);
  return static_cast<float>(value);
}

}  // namespace

std::uint16_t bf16_from(double value) noexcept {
  if (std::isnan(value)) return 0x7fff;
  const unsigned sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isinf(value)) return static_cast<std::uint16_t>(sign | 0x7f80);
  return static_cast<std::uint16_t>(sign | nearest(value, 7, 127, 0x7f80));
}

std::uint8_t e4m3_from(float value) noexcept {
  const unsigned sign = std::signbit(value) ? 0x80 : 0;
  if (std::isnan(value)) return 0x7f;
  return static_cast<std::uint8_t>(sign | (std::isinf(value) ? 0x7e : nearest(value, 3, 7, 0x7e)));
}

std::uint8_t e5m2_from(float value) noexcept {
  const unsigned sign = std::signbit(value) ? 0x80 : 0;
  if (std::isnan(value)) return 0x7f;
  return static_cast<std::uint8_t>(sign | (std::isinf(value) ? 0x7b : nearest(value, 2, 15, 0x7b)));
}

float e4m3_to_float(unsigned bits) noexcept {
  const float magnitude = (bits & 0x7f) == 0x7f ? NAN : number(bits & 0x7f, 3, 7);
  return bits & 0x80 ? -magnitude : magnitude;
}

float e5m2_to_float(unsigned bits) noexcept {
  const unsigned rest = bits & 0x7f;
  const float magnitude = rest > 0x7c ? NAN : rest == 0x7c ? INFINITY : number(rest, 2, 15);
  return bits & 0x80 ? -magnitude : magnitude;
}

std::uint64_t half_sum(std::uint64_t old, std::uint64_t value) {
  return half_add(static_cast<std::uint16_t>(old), static_cast<std::uint16_t>(value));
}

std::uint64_t halves_sum(std::uint64_t old, std::uint64_t value) {
  return half_sum(old, value) | half_sum(old >> 16, value >> 16) << 16;
}

std::uint64_t bf16_sum(std::uint64_t old, std::uint64_t value) {
  const auto number = [](std::uint64_t bits) {
    return double{__builtin_bit_cast(float, static_cast<std::uint32_t>(bits & 0xffff) << 16)};
  };
  return bf16_from(number(old) + number(value));
}

std::uint64_t bf16s_sum(std::uint64_t old, std::uint64_t value) {
  return bf16_sum(old, value) | bf16_sum(old >> 16, value >> 16) << 16;
}

}  // namespace simt

namespace simt_cuda {

/// By Newton's method from a rational guess.
double erf_inverse(double x) noexcept {
  if (x <= -1 || x >= 1) return x == 1 ? HUGE_VAL : x == -1 ? -HUGE_VAL : std::nan("");
  const double l = std::log1p(-x * x), half = 2 / (3.14159265358979324 * 0.147) + l / 2;
  double y = std::copysign(std::sqrt(std::sqrt(half * half - l / 0.147) - half), x);
  for (int i = 0; i < 4; ++i) y -= (std::erf(y) - x) / (1.12837916709551257 * std::exp(-y * y));
  return y;
}

/// The modified Bessel function of the first kind, by its series.
double bessel_i(int order, double x) noexcept {
  double term = order == 0 ? 1 : x / 2, sum = term;
  for (int k = 1; k < 500 && std::fabs(term) > 1e-17 * std::fabs(sum); ++k)
    sum += term *= x * x / 4 / (static_cast<double>(k) * (k + order));
  return sum;
}

}  // namespace simt_cuda
