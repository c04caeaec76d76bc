// Halves and bf16 on the host: every one of them, and every midpoint between two, to and from numbers.
#include "common/harness/check/half_bits.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "tests/half_reference.hpp"

using convladder::half_bits;
using convladder::half_value;
using namespace half_reference;

TEST_CASE("every half keeps its value, and its bits") {
  int wrong = 0;
  for (unsigned i = 0; i <= 0xffff; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const float value = half_value(bits);
    if (is_nan(bits)) {
      wrong += !std::isnan(value) || !is_nan(half_bits(value));
    } else {
      const double expected =
          is_infinite(bits) ? INFINITY
                            : std::ldexp(static_cast<double>(wide(static_cast<std::uint16_t>(bits & 0x7fff))), -kUnit);
      wrong += std::fabs(value) != expected || std::signbit(value) != (bits >= 0x8000) || half_bits(value) != bits;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("numbers are rounded to the nearest half, once, ties to even") {
  int wrong = 0;
  for (const float value : critical_floats()) {
    // Doubles next to a midpoint: rounded to float first they would be ties.
    for (const double near :
         {std::nextafter(double{value}, -INFINITY), double{value}, std::nextafter(double{value}, INFINITY)}) {
      const double part = std::ldexp(near, kUnit);
      // What lies between two units is on neither a half nor a midpoint; half a unit keeps it there.
      const Wide units = wide_of(std::ldexp(std::floor(part), -kUnit));
      const bool between = std::floor(part) != part;
      const std::uint16_t low = nearest(units, std::signbit(near)), high = nearest(units + between, std::signbit(near));
      const std::uint16_t got = half_bits(near);
      wrong += got != low && got != high;
      if (low == high || !between) wrong += got != low;
    }
  }
  CHECK(wrong == 0);
  CHECK(half_bits(1 + 0x1p-11) == 0x3c00);            // a tie
  CHECK(half_bits(1 + 0x1p-11 + 0x1p-50) == 0x3c01);  // a float of it would be that tie
  CHECK(half_bits(1 + 0x3p-11 - 0x1p-50) == 0x3c01);
  CHECK(half_bits(0x1p-25) == 0);
  CHECK(half_bits(0x1p-25 + 0x1p-70) == 1);
  CHECK(half_bits(-0x1p-200) == 0x8000);
  CHECK(half_bits(65520) == 0x7c00);
  CHECK(half_bits(std::nextafter(65520.0, 0.0)) == 0x7bff);
  CHECK(half_bits(-std::numeric_limits<double>::max()) == 0xfc00);
  CHECK(half_bits(INFINITY) == 0x7c00);
  CHECK(is_nan(half_bits(NAN)));
  CHECK(half_bits(5e-324) == 0);
}

TEST_CASE("every bf16 keeps its value, and floats between two go to the nearest, ties to even") {
  using convladder::bf16_bits;
  using convladder::bf16_value;
  int wrong = 0;
  for (std::uint32_t i = 0; i <= 0xffff; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const float value = bf16_value(bits);
    if ((bits & 0x7fff) > 0x7f80) {
      wrong += !std::isnan(value) || bf16_bits(value) != 0x7fff;
      continue;
    }
    wrong += bf16_bits(value) != bits;
    if ((bits & 0x7fff) == 0x7f80) continue;
    const std::uint32_t tie = i << 16 | 0x8000;
    const auto next = static_cast<std::uint16_t>(bits + 1), even = static_cast<std::uint16_t>(bits + (bits & 1));
    wrong += bf16_bits(std::bit_cast<float>(tie)) != even;
    wrong += bf16_bits(std::bit_cast<float>(tie - 1)) != bits;
    wrong += bf16_bits(std::bit_cast<float>(tie + 1)) != next;
  }
  CHECK(wrong == 0);
  CHECK(bf16_value(0x7f7f) == convladder::kLargestBf16);
  CHECK(bf16_bits(static_cast<float>(convladder::kBf16Overflow)) == 0x7f80);
  CHECK(bf16_bits(std::nextafter(static_cast<float>(convladder::kBf16Overflow), 0.0f)) == 0x7f7f);
}
