// Sums on Hopper's Tensor Cores: cases worked by hand, for one sum (tensor_core.hpp) and for the simulator's
// wgmma, which makes many at once.
#include "common/simt/tensor_core.hpp"

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <random>

#include "common/harness/check/half_bits.hpp"
#include "tests/kernel/hopper.hpp"
#include "tests/simt/expect.hpp"

using namespace convladder;

namespace {

using Row = std::vector<double>;  ///< 16 numbers that are halves, or a multiple of that; zeros may be left out

std::uint32_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }

/// `rows` rows, each of the same numbers.
std::vector<std::uint16_t> repeated(const Row& row, std::size_t rows, std::size_t length) {
  std::vector<std::uint16_t> halves(rows * length, 0);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t k = 0; k < row.size(); ++k) halves[i * length + k] = half_bits(row[k]);
  return halves;
}

/// d[64][8] = before + a[64][length] b[8][length], by a wgmma for each 16 numbers.
std::vector<float> product(const std::vector<std::uint16_t>& a, const std::vector<std::uint16_t>& b, float before,
                           std::size_t length, bool a_registers) {
  Array<std::uint16_t> of_a(a, "a"), of_b(b, "b");
  Array<float> d(std::vector<float>(512, before), "d");
  const auto steps = static_cast<int>(length / 16);
  expect_silence([&] { launch_product({ProductOf::fp16, a_registers, 8, 0, steps, 0, 0}, of_a, of_b, d, 1, nullptr); });
  return d.values();
}

/// before + a[0] b[0] + ..., which all ways to make it must agree on, bit by bit.
float sum(const Row& a, const Row& b, float before = 0) {
  const auto of_a = repeated(a, 64, 16), of_b = repeated(b, 8, 16);
  const float alone = simt::tensor_core_sum<simt::Fp16>(of_a.data(), of_b.data(), before);
  for (const bool a_registers : {false, true}) {
    const auto d = product(of_a, of_b, before, 16, a_registers);
    CHECK(std::all_of(d.begin(), d.end(), [&](float each) { return bits(each) == bits(alone); }));
  }
  return alone;
}

/// `count` numbers, each `value`, behind `first`.
Row then(double first, std::size_t count, double value) {
  Row row(count, value);
  row.insert(row.begin(), first);
  return row;
}

}  // namespace

TEST_CASE("simt tensor core: the sum is cut to a float, not rounded") {
  // 1 + 3/4 of the step from 1 to the next float.
  CHECK(sum({1, 0x1.8p-12}, {1, 0x1p-12}) == 1);
  CHECK(static_cast<float>(1 + 0x1.8p-24) == 1 + 0x1p-23f);
  CHECK(sum({-1, -0x1.8p-12}, {1, 0x1p-12}) == -1);
  // A step below 2048 + 7.5 of its steps.
  CHECK(sum(then(2048, 15, 0x1p-7), then(1, 15, 0x1p-6)) == 2048 + 7 * 0x1p-12f);
}

TEST_CASE("simt tensor core: terms are cut 25 bits below the largest exponent") {
  // Beside 1 the last bit is 2^-25: fifteen of it are 3 3/4 steps of a float.
  CHECK(sum(then(1, 15, 0x1p-12), then(1, 15, 0x1p-13)) == 1 + 3 * 0x1p-23f);
  // 0.75 * 2^-24 is 1.5 of that bit, of which 1 stays; 0.75 * 2^-25 is nothing, though together they are 2.8 steps.
  CHECK(sum(then(1, 15, 0x1.8p-12), then(1, 15, 0x1p-13)) == 1 + 3 * 0x1p-23f);
  CHECK(sum(then(1, 15, 0x1.8p-13), then(1, 15, 0x1p-13)) == 1);
  // The old sum counts as the products do: cut beside them, and cutting them.
  CHECK(sum({1}, {1}, 0x1p-23f + 0x1p-26f) == 1 + 0x1p-23f);
  CHECK(sum(Row(16, 0x1p-12), Row(16, 0x1p-13), 1) == 1 + 4 * 0x1p-23f);
  CHECK(sum(Row(16, 0x1p-13), Row(16, 0x1p-13), 1) == 1);
  // What cancels still decided what was cut.
  CHECK(sum({1, -1, 0x1.8p-12}, {1, 1, 0x1p-13}) == 0x1p-25f);
  CHECK(sum({1, 0x1p-13}, {1, 0x1p-13}, -1) == 0);
}

TEST_CASE("simt tensor core: the exponent of a product is that of its factors") {
  // 1.5 * 1.5 is 2.25, but has the exponent 0: beside it 2^-25 stays. Of 1.5 * 2 it does not.
  CHECK(sum(then(1.5, 15, 0x1p-12), then(1.5, 15, 0x1p-13)) == 2.25f + 0x1p-22f);
  CHECK(sum(then(1.5, 15, 0x1p-12), then(2, 15, 0x1p-13)) == 3);
}

TEST_CASE("simt tensor core: sixteen equal terms") {
  const double factor = 1 + 0x1p-10;  // whose square is 1 + 2^-9 + 2^-20
  CHECK(sum(Row(16, factor), Row(16, factor)) == 16 + 0x1p-5f + 0x1p-16f);
  // Beside 64 each loses its 2^-20, together two steps of the result.
  CHECK(sum(Row(16, factor), Row(16, factor), 64) == 80 + 0x1p-5f);
  CHECK(static_cast<float>(64 + 16 * factor * factor) == 80 + 0x1p-5f + 2 * 0x1p-17f);
  CHECK(sum(Row(16, -factor), Row(16, factor), -64) == -80 - 0x1p-5f);
  // The most that a sum of products can be.
  CHECK(sum(Row(16, kLargestHalf), Row(16, kLargestHalf)) == 16.0f * 65504 * 65504);
}

TEST_CASE("simt tensor core: zeros, subnormal halves, and very small and large old sums") {
  const double least = 0x1p-24, largest_subnormal = 0x1p-14 - 0x1p-24;
  CHECK(sum({least}, {least}) == 0x1p-48f);
  CHECK(sum({largest_subnormal}, {1}) == static_cast<float>(largest_subnormal));
  // Subnormal halves have the exponent -14: beside two of them the last bit is 2^-53.
  CHECK(sum({least}, {least}, 0x1p-53f) == 0x1p-48f + 0x1p-53f);
  CHECK(sum({least}, {least}, 0x1p-54f) == 0x1p-48f);
  // A product that is zero has no exponent: the old sum stays what it is.
  for (const float before : {0x1p-149f, 3 * 0x1p-149f, FLT_MIN, 0x1.fffffep-60f, 1.0f, FLT_MAX, -FLT_MAX})
    CHECK(sum({0, 65504, 0}, {1, 0, -2}, before) == before);
  CHECK(bits(sum({}, {})) == 0);
  CHECK(bits(sum({-1}, {0})) == 0);
  CHECK(bits(sum({-1}, {0}, -0.0f)) == 0);
  CHECK(bits(sum({1, -1}, {3, 3})) == 0);
  CHECK(bits(sum({-1}, {1}, 1)) == 0);
  // Beside a large one all products vanish, so that no sum is too large. Those below 2^57 are the last that they add
  // to: of each product, nearly 2^32, a bit of 2^31 stays, and of the sum, 3 * 2^33 beyond 2^57, one of 2^34.
  const Row most(16, kLargestHalf);
  for (const float before : {FLT_MAX, 0x1p64f, 0x1p57f}) CHECK(sum(most, most, before) == before);
  CHECK(sum(most, most, 0x1.fffffep56f) == 0x1p57f + 0x1p34f);
}

TEST_CASE("simt tensor core: NaN and infinity") {
  const double inf = INFINITY;
  CHECK(sum({inf, 1}, {1, 1}) == INFINITY);
  CHECK(sum({inf, 1}, {-1, 1}, 5) == -INFINITY);
  CHECK(sum({-inf, 1}, {-inf, 1}, INFINITY) == INFINITY);
  CHECK(sum({1}, {1}, -INFINITY) == -INFINITY);
  CHECK(sum({}, {}, INFINITY) == INFINITY);
  const std::uint32_t nan = 0x7fffffff;
  CHECK(bits(sum({inf, -inf}, {1, 1})) == nan);
  CHECK(bits(sum({inf}, {1}, -INFINITY)) == nan);
  CHECK(bits(sum({inf}, {0})) == nan);
  CHECK(bits(sum({1}, {NAN})) == nan);
  CHECK(bits(sum({NAN, inf}, {0, 1})) == nan);
  CHECK(bits(sum({1}, {1}, -NAN)) == nan);

  // Only the sums that they are in.
  auto a = repeated(Row(16, 1), 64, 16), b = repeated(Row(16, 1), 8, 16);
  a[5 * 16 + 3] = half_bits(inf);
  b[2 * 16 + 7] = half_bits(NAN);
  const auto d = product(a, b, 1, 16, false);
  for (std::size_t i = 0; i < d.size(); ++i) {
    CAPTURE(i);
    if (i % 8 == 2)
      CHECK(bits(d[i]) == nan);
    else
      CHECK(d[i] == (i / 8 == 5 ? INFINITY : 17));
  }
}

namespace {

/// The bits of numbers that the kind holds.
template <class Kind>
std::vector<typename Kind::Bits> bits_of(const std::vector<float>& numbers) {
  std::vector<typename Kind::Bits> result(Kind::kProducts);
  constexpr std::size_t kUnused = 32 - 8 * sizeof(typename Kind::Bits);
  for (std::size_t k = 0; k < numbers.size(); ++k)
    result[k] = static_cast<typename Kind::Bits>(bits(numbers[k]) >> kUnused);
  return result;
}

template <class Kind>
float sum_of(const std::vector<float>& a, const std::vector<float>& b, float before,
             const simt::SumRules& rules = {Kind::kProducts}) {
  return simt::tensor_core_sum<Kind>(bits_of<Kind>(a).data(), bits_of<Kind>(b).data(), before, rules);
}

}  // namespace

TEST_CASE_TEMPLATE("simt tensor core: bf16 and TF32 have a float's exponents", Kind, simt::Bf16, simt::Tf32) {
  const auto sum_with = sum_of<Kind>;
  const simt::SumRules rules{Kind::kProducts};
  // Too large for a float; but two such products may cancel, and 1 is nothing beside them.
  CHECK(sum_with({0x1p100f}, {0x1p28f}, 0, rules) == INFINITY);
  CHECK(sum_with({-0x1p127f}, {0x1p127f}, FLT_MAX, rules) == -INFINITY);
  CHECK(sum_with({0x1p100f, 0x1p100f, 1}, {0x1p100f, -0x1p100f, 1}, 0, rules) == 0);
  // Half a step more than the largest float is cut to it.
  CHECK(sum_with({0x1p64f}, {0x1p63f}, 0x1.fffffep126f, rules) == FLT_MAX);
  // The least exponent is -126: what is below 2^-151 is lost, though there is nothing larger.
  CHECK(sum_with({0x1p-70f, 0x1p-70f}, {0x1p-80f, 0x1p-80f}, 0, rules) == 0x1p-149f);
  CHECK(sum_with(std::vector<float>(8, 0x1p-76f), std::vector<float>(8, 0x1p-76f), 0, rules) == 0);
  // Subnormal factors count.
  CHECK(sum_with({0x1p-130f}, {0x1p100f}, 0, rules) == 0x1p-30f);
}

TEST_CASE("simt tensor core: of TF32 the lowest 13 bits count for nothing") {
  const float one = std::bit_cast<float>(bits(1) | 0x1fff);
  CHECK(sum_of<simt::Tf32>({one, -one}, {one, 2}, 0) == -1);
  CHECK(sum_of<simt::Tf32>({std::bit_cast<float>(0x7f801fffu)}, {1}, 0) == INFINITY);
  CHECK(sum_of<simt::Tf32>({1 + 0x1p-10f}, {1 + 0x1p-10f}, 0) == 1 + 0x1p-9f + 0x1p-20f);
}

TEST_CASE("simt tensor core: a sum in groups is cut after each") {
  const std::vector<float> a{1, 0x1p-12f, 0x1p-12f, 0, 0, 0x1p-12f, 0x1p-12f},
      b{1, 0x1p-13f, 0x1p-13f, 0, 0, 0x1p-13f, 0x1p-13f};
  CHECK(sum_of<simt::Tf32>(a, b, 0, {8}) == 1 + 0x1p-23f);
  CHECK(sum_of<simt::Tf32>(a, b, 0, {4}) == 1);
}

TEST_CASE("simt tensor core: long sums drift towards zero, and their mirror image by as much") {
  constexpr std::size_t kLength = 16 * 48;
  std::mt19937 random(1);
  std::vector<std::uint16_t> a(64 * kLength), b(8 * kLength);
  for (auto* halves : {&a, &b})
    for (std::uint16_t& half : *halves) half = half_bits(static_cast<double>(random() % 2048 + 1) / 2048);
  const auto d = product(a, b, 1, kLength, false);
  for (std::uint16_t& half : a) half ^= 0x8000;
  const auto mirrored = product(a, b, -1, kLength, true);
  for (std::uint16_t& half : a) half ^= 0x8000;
  std::size_t below = 0;
  for (std::size_t i = 0; i < d.size(); ++i) {
    const std::uint16_t *const row = &a[i / 8 * kLength], *const column = &b[i % 8 * kLength];
    float chain = 1;
    double exact = 1;
    for (std::size_t k = 0; k < kLength; ++k) {
      if (k % 16 == 0) chain = simt::tensor_core_sum<simt::Fp16>(row + k, column + k, chain);
      exact += double{half_value(row[k])} * double{half_value(column[k])};
    }
    CHECK(d[i] == chain);
    CHECK(d[i] <= exact);
    CHECK(mirrored[i] == -d[i]);
    below += d[i] < static_cast<float>(exact);
  }
  CHECK(below > d.size() * 9 / 10);
}

TEST_CASE("simt tensor cores: 8-bit floats keep 13 bits, of each term and of the sum") {
  constexpr std::uint8_t kOne = 0x38, kPow6 = 0x08, kPow7 = 0x04, kMost = 0x7e, kNan = 0x7f;  // of e4m3: 1, 2^-6, 2^-7
  const auto sum = [](std::vector<std::uint8_t> a, std::vector<std::uint8_t> b, float before) {
    a.resize(32);
    b.resize(32);
    return simt::tensor_core_sum<simt::E4m3>(a.data(), b.data(), before, simt::kRulesOfFp8);
  };
  CHECK(sum({kPow6}, {kPow7}, 1) == 1 + 0x1p-13f);
  CHECK(sum({kPow7}, {kPow7}, 1) == 1);                // 2^-14 is cut
  CHECK(sum({kPow7, kPow7}, {kPow7, kPow7}, 1) == 1);  // each of them
  CHECK(sum({kPow7, kPow7}, {kPow7, kPow7}, 0) == 0x1p-13f);
  CHECK(sum({kOne}, {kOne}, 1 + 0x1p-13f) == 2);  // the sum has 13 bits below 2
  CHECK(sum({kOne}, {kOne}, 1 + 0x1p-12f) == 2 + 0x1p-12f);
  CHECK(sum({}, {}, -1 - 0x1p-20f) == -1);          // and so has what was there before
  CHECK(sum({kMost}, {kMost}, 0) == 448.0f * 448);  // the largest exponent has numbers
  CHECK(std::isnan(sum({kNan}, {kOne}, 0)));
  CHECK(std::isnan(sum({kOne}, {0x80 | kNan}, 0)));
  CHECK(sum({kOne}, {kOne}, INFINITY) == INFINITY);

  std::uint8_t wide[32] = {0x3c}, narrow[32] = {kMost};  // e5m2: 1
  CHECK(simt::tensor_core_sum<simt::E5m2, simt::E4m3>(wide, narrow, 0.5f, simt::kRulesOfFp8) == 448.5f);
  wide[0] = 0x7c;  // infinite
  CHECK(simt::tensor_core_sum<simt::E5m2, simt::E4m3>(wide, narrow, 0, simt::kRulesOfFp8) == INFINITY);
  narrow[0] = 0;
  CHECK(std::isnan(simt::tensor_core_sum<simt::E5m2, simt::E4m3>(wide, narrow, 0, simt::kRulesOfFp8)));
}

TEST_CASE("simt tensor cores: sums that are halves are rounded once, to the nearest") {
  const auto sum = [](std::vector<double> a, std::vector<double> b, double before) {
    std::vector<std::uint16_t> of_a(16), of_b(16);
    for (std::size_t i = 0; i < a.size(); ++i) {
      of_a[i] = half_bits(a[i]);
      of_b[i] = half_bits(b[i]);
    }
    return simt::tensor_core_half_sum<simt::Fp16>(of_a.data(), of_b.data(), half_bits(before), {16}, half_bits);
  };
  CHECK(sum({0x1p-6}, {0x1p-5}, 1) == 0x3c00);                    // 1 + 2^-11, a tie: to even
  CHECK(sum({0x1p-6, 0x1p-10}, {0x1p-5, 0x1p-10}, 1) == 0x3c01);  // and a little more
  CHECK(sum({0x1p-6}, {0x1p-5}, 1 + 0x1p-10) == 0x3c02);
  CHECK(sum({-0x1p-10, 0x1p-13}, {1, 0x1p-13}, 1) == 0x3bfe);  // 2^-26 is cut, 25 bits below 1
  CHECK(sum({0x1p-12}, {0x1p-12}, 0) == 0x0001);               // subnormal
  CHECK(sum({60000}, {1}, 60000) == 0x7c00);
  CHECK(sum({60000}, {-2}, 0) == 0xfc00);
  CHECK(sum({1}, {INFINITY}, -INFINITY) == 0x7fff);
}
