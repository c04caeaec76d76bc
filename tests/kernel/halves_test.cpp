// Halves: conversions of all of them, and operations against exact arithmetic.
#include "tests/kernel/halves.hpp"

#include <climits>
#include <cmath>
#include <numeric>
#include <random>

#include "tests/half_reference.hpp"
#include "tests/kernel/arrays.hpp"

using namespace convladder;
using namespace half_reference;

namespace {

std::vector<std::uint16_t> all_halves() {
  std::vector<std::uint16_t> bits(1 << 16);
  std::iota(bits.begin(), bits.end(), std::uint16_t{0});
  return bits;
}

/// Of a pair or triple of halves, by the rules of IEEE 754. Each returns false where the result is any NaN.
struct Expected {
  bool number;
  std::uint16_t bits;
};

Expected exact(Wide value, bool negative_zero) { return {true, nearest(value, negative_zero)}; }
/// As a double has it: for infinities and NaNs, zeros by zeros.
Expected special(double value) {
  if (std::isnan(value)) return {false, 0};
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  return {true, static_cast<std::uint16_t>(std::isinf(value) ? 0x7c00 | sign : sign)};
}
double number(std::uint16_t bits) {
  if (is_nan(bits)) return NAN;
  const double magnitude =
      is_infinite(bits) ? INFINITY
                        : std::ldexp(static_cast<double>(wide(static_cast<std::uint16_t>(bits & 0x7fff))), -kUnit);
  return bits & 0x8000 ? -magnitude : magnitude;
}

/// a b in units of 2^-48
Wide product(std::uint16_t a, std::uint16_t b) { return (wide(a) >> 24) * (wide(b) >> 24); }

Expected multiply_add(std::uint16_t a, std::uint16_t b, std::uint16_t c) {
  const double x = number(a), y = number(b), z = number(c);
  if (!is_finite(a) || !is_finite(b) || !is_finite(c)) return special(x * y + z);
  return exact(product(a, b) + wide(c), std::signbit(x * y + z));
}
Expected sum(std::uint16_t a, std::uint16_t b) {
  const double x = number(a), y = number(b);
  return is_finite(a) && is_finite(b) ? exact(wide(a) + wide(b), std::signbit(x + y)) : special(x + y);
}
Expected times(std::uint16_t a, std::uint16_t b) {
  const double x = number(a), y = number(b);
  return is_finite(a) && is_finite(b) ? exact(product(a, b), std::signbit(x * y)) : special(x * y);
}
/// The quotient of two halves is a tie or at least 2^-24 of it away from one, so cutting it to 2^-48 and a last bit
/// that tells whether something was cut changes nothing.
Expected quotient(std::uint16_t a, std::uint16_t b) {
  const double x = number(a), y = number(b);
  if (!is_finite(a) || !is_finite(b) || (b & 0x7fff) == 0) return special(x / y);
  const Wide over = (wide(static_cast<std::uint16_t>(a & 0x7fff)) >> 24) << kUnit, under = wide(b & 0x7fff) >> 24;
  Expected result = exact(over / under, false);
  if (over % under != 0 && nearest(over / under, false) != nearest(over / under + 1, false))
    result.bits = nearest(over / under + 1, false);  // just above a tie
  result.bits = static_cast<std::uint16_t>(result.bits | ((a ^ b) & 0x8000));
  return result;
}
Expected larger(std::uint16_t a, std::uint16_t b) {
  if (is_nan(a) || is_nan(b)) return {!(is_nan(a) && is_nan(b)), is_nan(a) ? b : a};
  if (number(a) == number(b)) return {true, a & 0x8000 ? b : a};
  return {true, number(a) > number(b) ? a : b};
}
Expected smaller(std::uint16_t a, std::uint16_t b) {
  if (is_nan(a) || is_nan(b)) return {!(is_nan(a) && is_nan(b)), is_nan(a) ? b : a};
  if (number(a) == number(b)) return {true, a & 0x8000 ? a : b};
  return {true, number(a) < number(b) ? a : b};
}

}  // namespace

TEST_CASE("halves: every half converts to its float") {
  DeviceArray<std::uint16_t> input(all_halves(), "input");
  DeviceArray<float> output(1 << 16, "output");
  run_kernel([&](Stream stream) { launch_half_to_float(input, output, 1 << 16, stream); });
  const std::vector<float> floats = output.values();
  int wrong = 0;
  for (unsigned i = 0; i <= 0xffff; ++i) {
    const double expected = number(static_cast<std::uint16_t>(i));
    wrong += std::isnan(expected) ? !std::isnan(floats[i])
                                  : floats[i] != expected || std::signbit(floats[i]) != (i >= 0x8000);
  }
  CHECK(wrong == 0);
}

TEST_CASE("halves: floats are rounded to the nearest half, ties to even") {
  std::vector<float> values = critical_floats();
  const std::size_t numbers = values.size();
  values.insert(values.end(), {INFINITY, -INFINITY, NAN});
  DeviceArray<float> input(values, "input");
  DeviceArray<std::uint16_t> output(values.size(), "output");
  run_kernel([&](Stream stream) { launch_float_to_half(input, output, static_cast<int>(values.size()), stream); });
  const std::vector<std::uint16_t> halves = output.values();
  int wrong = 0;
  for (std::size_t i = 0; i < numbers; ++i) {
    if (std::fabs(values[i]) < 0x1p-26f) {
      wrong += halves[i] != (std::signbit(values[i]) ? 0x8000 : 0);
    } else {
      wrong += halves[i] != nearest(wide_of(double{values[i]}), std::signbit(values[i]));
    }
  }
  CHECK(wrong == 0);
  CHECK(halves[numbers] == 0x7c00);
  CHECK(halves[numbers + 1] == 0xfc00);
  CHECK(is_nan(halves[numbers + 2]));
}

TEST_CASE("halves: operations on halves are exact results, rounded once") {
  // Pairs of all kinds: any bits, near in size so that sums cancel, and subnormal.
  constexpr int n = 60000;
  std::mt19937 random(7);
  std::vector<std::uint16_t> a(n), b(n), c(n);
  for (int i = 0; i < n; ++i) {
    a[i] = static_cast<std::uint16_t>(random());
    b[i] = static_cast<std::uint16_t>(random());
    c[i] = static_cast<std::uint16_t>(random());
    if (i % 3 == 1) {  // c cancels most of a b, or is far below or above it
      a[i] = static_cast<std::uint16_t>((random() & 0x83ff) | (8 + random() % 14) << 10);
      b[i] = static_cast<std::uint16_t>((random() & 0x83ff) | (10 + random() % 10) << 10);
      c[i] = static_cast<std::uint16_t>(times(a[i], b[i]).bits ^ 0x8000);
      if (random() % 2) c[i] = static_cast<std::uint16_t>(c[i] & (random() % 2 ? 0x8003 : 0xffff));
    } else if (i % 3 == 2) {  // small, or at special values
      a[i] = static_cast<std::uint16_t>(a[i] & 0x8fff);
      if (random() % 4 == 0) b[i] = static_cast<std::uint16_t>((b[i] & 0x8000) | 0x7c00 * (random() % 2));
    }
  }
  // (1 + 2^-10)(1 - 2^-10) 2^-11 + 1 + 2^-10: just below a tie, which it would be if it were rounded to float first.
  a[0] = c[0] = 0x3c01;
  b[0] = 0x0ffe;
  DeviceArray<std::uint16_t> x(a, "a"), y(b, "b"), z(c, "c"), output(9 * n, "output");
  for (const bool in_pairs : {false, true}) {
    CAPTURE(in_pairs);
    run_kernel([&](Stream stream) { launch_half_operations(x, y, z, output, n, in_pairs, stream); });
    const std::vector<std::uint16_t> results = output.values();
    int wrong[9] = {};
    for (int i = 0; i < n; ++i) {
      const auto negated = static_cast<std::uint16_t>(b[i] ^ 0x8000), p = a[i];
      const Expected expected[] = {sum(p, b[i]),
                                   is_nan(b[i]) ? Expected{false, 0} : sum(p, negated),
                                   times(p, b[i]),
                                   quotient(p, b[i]),
                                   multiply_add(p, b[i], c[i]),
                                   larger(p, b[i]),
                                   smaller(p, b[i]),
                                   {!is_nan(p), static_cast<std::uint16_t>(p ^ 0x8000)},
                                   {!is_nan(p), static_cast<std::uint16_t>(p & 0x7fff)}};
      for (int operation = 0; operation < 9; ++operation) {
        const std::uint16_t got = results[static_cast<std::size_t>(operation * n + i)];
        const Expected& e = expected[operation];
        wrong[operation] += e.number ? got != e.bits : !is_nan(got);
      }
    }
    for (int operation = 0; operation < 9; ++operation) {
      CAPTURE(operation);
      CHECK(wrong[operation] == 0);
    }
  }
}

TEST_CASE("halves: operators and conversions of halves and pairs") {
  // x = 1.5, y = 2.5
  DeviceArray<std::uint16_t> input(std::vector<std::uint16_t>{0x3e00, 0x4100}, "input"), output(9, "output");
  run_kernel([&](Stream stream) { launch_half_operators(input, output, stream); });
  std::vector<double> values;
  for (const std::uint16_t bits : output.values()) values.push_back(number(bits));
  const double x = (1.5 + 2.5 - 1) * 2.5, low = (1.5 + 2.5) * 2.5 - 0.5, high = (2.5 + 2.5) * 2.5 - 0.5;
  CHECK(values == std::vector<double>{4, -1.5, x, low, -high, low + high, 2.5 + 2.5, 1, 2.25});
}

TEST_CASE("halves: bytes, and rounding to int") {
  const std::vector<float> values{0.5f,  1.5f, -2.5f,       2.4999998f,    3e9f,
                                  -3e9f, NAN,  16777218.0f, 2147483520.0f, -2147483648.0f};
  const auto n = static_cast<int>(values.size());
  DeviceArray<float> input(values, "input");
  DeviceArray<int> output(values.size() + 3, "output");
  run_kernel([&](Stream stream) { launch_bytes_and_rounding(input, output, n, stream); });
  const std::vector<int> got = output.values();
  CHECK(std::vector<int>(got.begin(), got.begin() + n) ==
        std::vector<int>{0, 2, -2, 2, INT_MAX, INT_MIN, 0, 16777218, 2147483520, INT_MIN});
  CHECK(got[static_cast<std::size_t>(n)] == 1000 + 128 * 128 + 2 * 3 - 127 * 4 - 5);
  CHECK(got[static_cast<std::size_t>(n) + 1] == static_cast<int>(0xff7f0280));
  // 3 times the float nearest to 1/3 is not 1; a product that is rounded before the sum would hide that.
  CHECK(got[static_cast<std::size_t>(n) + 2] ==
        std::lrint(1e6 * (3.0 * static_cast<double>(1.0f / 3) - 1) + 2 + 3 + 4));
}
