// Floats as bf16 and TF32, against the two neighbours of each float.
#include "tests/kernel/bf16_tf32.hpp"

#include <bit>
#include <cmath>
#include <random>

#include "common/harness/check/half_bits.hpp"
#include "tests/kernel/arrays.hpp"

using namespace convladder;

namespace {

/// Floats of all exponents with random fractions, those next to a tie or a carry, and what is special.
std::vector<float> floats() {
  std::mt19937 random(1);
  std::vector<std::uint32_t> bits;
  for (std::uint32_t exponent = 0; exponent < 255; ++exponent) {
    for (int i = 0; i < 20; ++i) bits.push_back((random() & 0x807fffff) | exponent << 23);
    for (const std::uint32_t fraction : {0x0u, 0x1fffu, 0xffffu, 0x1000u, 0x3000u, 0x8000u, 0x18000u, 0x7fffffu})
      for (const std::uint32_t off : {0u, 1u, 0x7fffffu})  // the fraction, the next, the one before
        bits.push_back(exponent << 23 | ((fraction + off) & 0x7fffff) | static_cast<std::uint32_t>(random() & 1) << 31);
  }
  bits.insert(bits.end(), {0x7f800000, 0xff800000, 0x7f800001, 0x7fffffff, 0xffffffff, 0x7fc00000});
  std::vector<float> values;
  for (const std::uint32_t each : bits) values.push_back(std::bit_cast<float>(each));
  return values;
}

/// The size of a float by its bits, and of what would be the next after the largest.
double size_of(std::uint32_t bits) { return bits >= 0x7f800000 ? 0x1p128 : double{std::bit_cast<float>(bits)}; }

/// The nearest float whose lowest `bits` bits are zero. @param to_even else ties go away from zero
std::uint32_t nearest(float value, int bits, bool to_even) {
  const auto all = std::bit_cast<std::uint32_t>(value), sign = all & 0x80000000, step = std::uint32_t{1} << bits;
  if (std::isinf(value)) return all;
  const std::uint32_t below = (all & 0x7fffffff) / step * step, above = below + step;
  const double down = size_of(all & 0x7fffffff) - size_of(below), up = size_of(above) - size_of(all & 0x7fffffff);
  const bool tie_goes_up = !to_even || (below & step) != 0;
  return sign | (up < down || (up == down && tie_goes_up) ? above : below);
}

bool is_nan(std::uint32_t bits) { return std::isnan(std::bit_cast<float>(bits)); }

}  // namespace

TEST_CASE("bf16 and TF32: floats are rounded to nearest, infinity and NaN remain") {
  const std::vector<float> values = floats();
  const std::size_t n = values.size();
  REQUIRE(n % 2 == 0);
  DeviceArray<float> input(values, "input"), back(n, "back");
  DeviceArray<std::uint32_t> tf32(n, "tf32"), pairs(n / 2, "pairs");
  run_kernel([&](Stream stream) { launch_bf16_tf32(input, tf32, pairs, back, static_cast<int>(n), stream); });
  const auto of_tf32 = tf32.values(), of_pairs = pairs.values();
  const auto of_back = back.values();
  int wrong_bf16 = 0, wrong_tf32 = 0, wrong_back = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t bf16 = of_pairs[i / 2] >> 16 * (i % 2) << 16;
    if (std::isnan(values[i])) {
      wrong_bf16 += !is_nan(bf16);
      wrong_tf32 += !is_nan(of_tf32[i]);
      if (!is_nan(of_tf32[i]))
        MESSAGE("TF32 of the NaN ", std::bit_cast<std::uint32_t>(values[i]), " is ", of_tf32[i], ", which is none");
      wrong_back += !std::isnan(of_back[i]);
    } else {
      wrong_bf16 += bf16 != nearest(values[i], 16, true);
      const std::uint32_t expected = nearest(values[i], 13, false), bits = std::bit_cast<std::uint32_t>(values[i]);
      wrong_tf32 += of_tf32[i] != expected;
      if (of_tf32[i] != expected) MESSAGE("TF32 of ", bits, " is ", of_tf32[i], ", and should be ", expected);
      wrong_back += std::bit_cast<std::uint32_t>(of_back[i]) != bf16;
    }
  }
  CHECK(wrong_bf16 == 0);
  CHECK(wrong_tf32 == 0);
  CHECK(wrong_back == 0);
}

TEST_CASE("words of two halves or bf16: sums and differences are rounded once, to nearest") {
  std::vector<float> values = floats();
  values.resize(values.size() / 4 * 4);
  const std::size_t n = values.size();
  for (std::size_t i = 0; i < n; i += 4)  // some that are near each other, so that digits meet
    if (i % 8 == 0) values[i + 2] = values[i] * 1.37f, values[i + 3] = values[i + 1] * -0.0041f;
  for (const bool bf16 : {false, true}) {
    CAPTURE(bf16);
    const auto bits_of = [&](float value) { return bf16 ? bf16_bits(value) : half_bits(value); };
    const auto value_of = [&](std::uint16_t bits) { return bf16 ? bf16_value(bits) : half_value(bits); };
    const auto is_same = [&](std::uint16_t bits, double expected) {
      if (std::isnan(expected)) return std::isnan(value_of(bits));
      if (!bf16) return bits == half_bits(expected);
      // To odd, so that a second rounding does no harm.
      float rounded = static_cast<float>(expected);
      if (rounded != expected && (std::bit_cast<std::uint32_t>(rounded) & 1) == 0)
        rounded = std::nextafter(rounded, static_cast<float>(expected > rounded ? INFINITY : -INFINITY));
      return bits == bf16_bits(rounded);
    };
    DeviceArray<float> input(values, "input");
    DeviceArray<std::uint32_t> pairs(n / 2, "pairs"), sums(n / 4, "sums"), differences(n / 4, "differences");
    run_kernel(
        [&](Stream stream) { launch_pairs(bf16, input, pairs, sums, differences, static_cast<int>(n), stream); });
    const auto of_pairs = pairs.values(), of_sums = sums.values(), of_differences = differences.values();
    int wrong_pairs = 0, wrong_sums = 0, wrong_differences = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const auto bits = static_cast<std::uint16_t>(of_pairs[i / 2] >> 16 * (i % 2));
      wrong_pairs += std::isnan(values[i]) ? !std::isnan(value_of(bits)) : bits != bits_of(values[i]);
      if (i % 4 >= 2) continue;
      const double a = value_of(bits), b = value_of(static_cast<std::uint16_t>(of_pairs[i / 2 + 1] >> 16 * (i % 2)));
      wrong_sums += !is_same(static_cast<std::uint16_t>(of_sums[i / 4] >> 16 * (i % 2)), a + b);
      wrong_differences += !is_same(static_cast<std::uint16_t>(of_differences[i / 4] >> 16 * (i % 2)), a - b);
    }
    CHECK(wrong_pairs == 0);
    CHECK(wrong_sums == 0);
    CHECK(wrong_differences == 0);
  }
}
