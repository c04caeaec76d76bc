// Matrix fragments: products against integers.
#include "tests/kernel/fragments.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "common/harness/check/half_bits.hpp"
#include "tests/kernel/arrays.hpp"

using namespace convladder;

namespace {

/// What both of a kernel's memories hold, by type.
std::vector<std::uint8_t> encode(const std::vector<double>& values, int bytes_each) {
  std::vector<std::uint8_t> bytes;
  for (const double value : values) {
    const auto put = [&](auto number) {
      const auto* begin = reinterpret_cast<const std::uint8_t*>(&number);
      bytes.insert(bytes.end(), begin, begin + sizeof number);
    };
    if (bytes_each == 1)
      put(static_cast<std::int8_t>(static_cast<int>(value)));
    else if (bytes_each == 2)
      put(half_bits(value));
    else if (bytes_each == 4)
      put(static_cast<float>(value));
    else
      put(static_cast<int>(value));
  }
  return bytes;
}

constexpr int kInt = 5;  ///< for encode(): four bytes that are an int
int width(int bytes_each) { return bytes_each == kInt ? 4 : bytes_each; }

struct Types {
  MatrixTypes types;
  int factor, c, d;  ///< for encode()
  int least, most;   ///< of the factors
};
const Types kTypes[] = {{MatrixTypes::half_float, 2, 4, 4, -9, 9},
                        {MatrixTypes::half_half, 2, 2, 2, -4, 4},
                        {MatrixTypes::half_float_half, 2, 4, 2, -4, 4},
                        {MatrixTypes::signed_bytes, 1, kInt, kInt, -128, 127},
                        {MatrixTypes::unsigned_bytes, 1, kInt, kInt, 0, 255}};

std::vector<double> random_integers(std::size_t count, int least, int most, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<double> values(count);
  for (double& value : values) value = least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
  return values;
}

}  // namespace

TEST_CASE("fragments: matrix products of every shape, type and layout") {
  for (const int m : {8, 16, 32}) {
    const int n = 256 / m;
    for (const Types& t : kTypes) {
      for (int layouts = 0; layouts < 16; ++layouts) {
        const bool a_by_rows = layouts & 1, b_by_rows = layouts & 2, c_by_rows = layouts & 4, shared = layouts & 8;
        CAPTURE(m);
        CAPTURE(static_cast<int>(t.types));
        CAPTURE(layouts);
        const int a_pitch = a_by_rows ? 16 : std::max(m, 16), b_pitch = b_by_rows ? std::max(n, 16) : 16;
        const auto as = random_integers(static_cast<std::size_t>(a_pitch * (a_by_rows ? m : 16)), t.least, t.most, 1);
        const auto bs = random_integers(static_cast<std::size_t>(b_pitch * (b_by_rows ? 16 : n)), t.least, t.most, 2);
        const auto cs = random_integers(256, -100, 100, 3);
        DeviceArray<std::uint8_t> a(encode(as, t.factor), "a"), b(encode(bs, t.factor), "b"), c(encode(cs, t.c), "c");
        DeviceArray<std::uint8_t> d(static_cast<std::size_t>(256 * width(t.d)), "d");
        run_kernel([&](Stream stream) {
          launch_matrix_product({m, t.types, a_by_rows, b_by_rows, c_by_rows, shared, a, b, c, d, stream});
        });
        std::vector<double> expected(256);
        for (int row = 0; row < m; ++row) {
          for (int column = 0; column < n; ++column) {
            const auto place = static_cast<std::size_t>(c_by_rows ? row * n + column : column * m + row);
            double sum = cs[place];
            for (int k = 0; k < 16; ++k)
              sum += as[static_cast<std::size_t>(a_by_rows ? row * a_pitch + k : k * a_pitch + row)] *
                     bs[static_cast<std::size_t>(b_by_rows ? k * b_pitch + column : column * b_pitch + k)];
            expected[place] = 2 * sum;
          }
        }
        CHECK(d.values() == encode(expected, t.d));
      }
    }
  }
}

TEST_CASE("fragments: a product of halves is summed exactly and rounded once (simulator)") {
  // A row of one large and many small products: in float, one after another, the small ones would be lost.
  std::vector<double> as(256, 0x1p-14), bs(256, 0x1p-11), cs(256, 0);
  for (std::size_t row = 0; row < 16; ++row) {
    as[row * 16] = 2;
    bs[row * 16] = 1;
    as[row * 16 + 15] = 0;
  }
  DeviceArray<std::uint8_t> a(encode(as, 2), "a"), b(encode(bs, 2), "b"), c(encode(cs, 4), "c"), d(1024, "d");
  run_kernel([&](Stream stream) {
    launch_matrix_product({16, MatrixTypes::half_float, true, false, true, false, a, b, c, d, stream});
  });
  CHECK(d.values() == encode(std::vector<double>(256, 2 * (2 + 14 * 0x1p-25)), 4));

  // In half: a tie of the exact sum's neighbours, decided by the last product.
  for (std::size_t row = 0; row < 16; ++row) as[row * 16 + 15] = 0x1p-11, bs[row * 16 + 15] = 2;
  DeviceArray<std::uint8_t> a2(encode(as, 2), "a"), b2(encode(bs, 2), "b"), c2(encode(cs, 2), "c"), d2(512, "d");
  run_kernel([&](Stream stream) {
    launch_matrix_product({16, MatrixTypes::half_half, true, false, true, false, a2, b2, c2, d2, stream});
  });
  CHECK(d2.values() == encode(std::vector<double>(256, 2 * (2 + 0x1p-9)), 2));
}

TEST_CASE("fragments: NaN and infinity pass through a product") {
  std::vector<double> as(256, 1), bs(256, 1), cs(256, 0);
  as[0] = NAN;
  as[16] = INFINITY;
  DeviceArray<std::uint8_t> a(encode(as, 2), "a"), b(encode(bs, 2), "b"), c(encode(cs, 4), "c");
  DeviceArray<float> d(256, "d");
  run_kernel([&](Stream stream) {
    launch_matrix_product(
        {16, MatrixTypes::half_float, true, false, true, false, a, b, c, static_cast<float*>(d), stream});
  });
  const std::vector<float> got = d.values();
  CHECK(std::isnan(got[3]));
  CHECK(got[16] == INFINITY);
  CHECK(got[32] == 32);
}
