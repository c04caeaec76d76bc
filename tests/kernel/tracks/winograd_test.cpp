// What the Winograd stages share: the matrices against tables and against correlation in exact arithmetic, the
// transforms in registers against the matrices, which problems are accepted, and where tiles lie.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <random>
#include <string>
#include <string_view>

#include "common/harness/check/half_bits.hpp"
#include "common/harness/files/problem_io.hpp"
//
#include "common/kernel/tracks/winograd_half.hpp"  // last: it stands for CUDA, memcpy included

namespace convladder {
namespace {

// ---- Matrices, in exact arithmetic ---------------------------------------------------------------------------------

template <int kRows, int kColumns>
constexpr bool equal(const Ratio (&a)[kRows][kColumns], const Ratio (&b)[kRows][kColumns]) {
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < kColumns; ++j)
      if (!(a[i][j] == b[i][j])) return false;
  return true;
}

template <class Form>
constexpr WinogradMatrices<Form> kMatrices{};

constexpr Ratio kInput2[4][4] = {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, -1, 0, 1}};
constexpr Ratio kFilter2[4][3] = {{1, 0, 0}, {{1, 2}, {1, 2}, {1, 2}}, {{1, 2}, {-1, 2}, {1, 2}}, {0, 0, 1}};
constexpr Ratio kOutput2[2][4] = {{1, 1, 1, 0}, {0, 1, -1, 1}};
static_assert(equal(kMatrices<F2>.input, kInput2));
static_assert(equal(kMatrices<F2>.filter, kFilter2));
static_assert(equal(kMatrices<F2>.output, kOutput2));

constexpr Ratio kInput4[6][6] = {{4, 0, -5, 0, 1, 0},  {0, -4, -4, 1, 1, 0}, {0, 4, -4, -1, 1, 0},
                                 {0, -2, -1, 2, 1, 0}, {0, 2, -1, -2, 1, 0}, {0, 4, 0, -5, 0, 1}};
constexpr Ratio kFilter4[6][3] = {{{1, 4}, 0, 0},
                                  {{-1, 6}, {-1, 6}, {-1, 6}},
                                  {{-1, 6}, {1, 6}, {-1, 6}},
                                  {{1, 24}, {1, 12}, {1, 6}},
                                  {{1, 24}, {-1, 12}, {1, 6}},
                                  {0, 0, 1}};
constexpr Ratio kOutput4[4][6] = {{1, 1, 1, 1, 1, 0}, {0, 1, -1, 2, -2, 0}, {0, 1, 1, 4, 4, 0}, {0, 1, -1, 8, -8, 1}};
static_assert(equal(kMatrices<F4>.input, kInput4));
static_assert(equal(kMatrices<F4>.filter, kFilter4));
static_assert(equal(kMatrices<F4>.output, kOutput4));

constexpr Ratio kInputFractions[6][6] = {{{81, 64}, 0, {-45, 16}, 0, 1, 0},      {0, {-27, 16}, {-9, 4}, {3, 4}, 1, 0},
                                         {0, {27, 16}, {-9, 4}, {-3, 4}, 1, 0},  {0, {-27, 32}, {-9, 16}, {3, 2}, 1, 0},
                                         {0, {27, 32}, {-9, 16}, {-3, 2}, 1, 0}, {0, {81, 64}, 0, {-45, 16}, 0, 1}};
constexpr Ratio kFilterFractions[6][3] = {{{64, 81}, 0, 0},
                                          {{-128, 243}, {-32, 81}, {-8, 27}},
                                          {{-128, 243}, {32, 81}, {-8, 27}},
                                          {{32, 243}, {16, 81}, {8, 27}},
                                          {{32, 243}, {-16, 81}, {8, 27}},
                                          {0, 0, 1}};
constexpr Ratio kOutputFractions[4][6] = {{1, 1, 1, 1, 1, 0},
                                          {0, {3, 4}, {-3, 4}, {3, 2}, {-3, 2}, 0},
                                          {0, {9, 16}, {9, 16}, {9, 4}, {9, 4}, 0},
                                          {0, {27, 64}, {-27, 64}, {27, 8}, {-27, 8}, 1}};
static_assert(equal(kMatrices<F4Fractions>.input, kInputFractions));
static_assert(equal(kMatrices<F4Fractions>.filter, kFilterFractions));
static_assert(equal(kMatrices<F4Fractions>.output, kOutputFractions));

constexpr Ratio kInput6[8][8] = {
    {1, 0, {-21, 4}, 0, {21, 4}, 0, -1, 0},          {0, 1, 1, {-17, 4}, {-17, 4}, 1, 1, 0},
    {0, -1, 1, {17, 4}, {-17, 4}, -1, 1, 0},         {0, {1, 2}, {1, 4}, {-5, 2}, {-5, 4}, 2, 1, 0},
    {0, {-1, 2}, {1, 4}, {5, 2}, {-5, 4}, -2, 1, 0}, {0, 2, 4, {-5, 2}, -5, {1, 2}, 1, 0},
    {0, -2, 4, {5, 2}, -5, {-1, 2}, 1, 0},           {0, -1, 0, {21, 4}, 0, {-21, 4}, 0, 1}};
constexpr Ratio kFilter6[8][3] = {{1, 0, 0},
                                  {{-2, 9}, {-2, 9}, {-2, 9}},
                                  {{-2, 9}, {2, 9}, {-2, 9}},
                                  {{1, 90}, {1, 45}, {2, 45}},
                                  {{1, 90}, {-1, 45}, {2, 45}},
                                  {{32, 45}, {16, 45}, {8, 45}},
                                  {{32, 45}, {-16, 45}, {8, 45}},
                                  {0, 0, 1}};
constexpr Ratio kOutput6[6][8] = {{1, 1, 1, 1, 1, 1, 1, 0},
                                  {0, 1, -1, 2, -2, {1, 2}, {-1, 2}, 0},
                                  {0, 1, 1, 4, 4, {1, 4}, {1, 4}, 0},
                                  {0, 1, -1, 8, -8, {1, 8}, {-1, 8}, 0},
                                  {0, 1, 1, 16, 16, {1, 16}, {1, 16}, 0},
                                  {0, 1, -1, 32, -32, {1, 32}, {-1, 32}, 1}};
static_assert(equal(kMatrices<F6>.input, kInput6));
static_assert(equal(kMatrices<F6>.filter, kFilter6));
static_assert(equal(kMatrices<F6>.output, kOutput6));

/// Whether A^T [(G g) . (B^T d)] is the correlation of d and g, for every unit vector of either: then it is for all.
template <class Form>
constexpr bool computes_correlation() {
  const WinogradMatrices<Form>& matrices = kMatrices<Form>;
  for (int i = 0; i < kTileSize<Form>; ++i) {
    for (int r = 0; r < kWinogradTaps; ++r) {
      for (int j = 0; j < kTileOutputs<Form>; ++j) {
        Ratio y = 0;
        for (int p = 0; p < kTileSize<Form>; ++p)
          y = y + matrices.output[j][p] * (matrices.filter[p][r] * matrices.input[p][i]);
        if (!(y == Ratio(i == j + r ? 1 : 0))) return false;
      }
    }
  }
  return true;
}
static_assert(computes_correlation<F2>());
static_assert(computes_correlation<F4>());
static_assert(computes_correlation<F4Fractions>());
static_assert(computes_correlation<F6>());
static_assert(computes_correlation<F7>());

/// Whether it is a half: 11 bits and a power of two under them.
constexpr bool is_half(Ratio x) {
  const std::int64_t magnitude = x.over < 0 ? -x.over : x.over;
  return magnitude <= 2048 && (x.under & (x.under - 1)) == 0 && x.under <= 1 << 14;
}
template <int kRows, int kColumns>
constexpr bool are_halves(const Ratio (&matrix)[kRows][kColumns]) {
  for (const auto& row : matrix)
    for (const Ratio element : row)
      if (!is_half(element)) return false;
  return true;
}
static_assert(are_halves(kMatrices<F2>.input) && are_halves(kMatrices<F2>.output));
static_assert(are_halves(kMatrices<F4Fractions>.input) && are_halves(kMatrices<F4Fractions>.output));

static_assert(Ratio(6, -4).over == -3 && Ratio(6, -4).under == 2);
static_assert(Ratio(1, 6) + Ratio(1, 3) == Ratio(1, 2) && Ratio(1, 6) - Ratio(2, 3) == Ratio(-1, 2));
static_assert(Ratio(2, 3) * Ratio(-3, 4) == Ratio(-1, 2) && Ratio(2, 3) / Ratio(-4, 9) == Ratio(-3, 2));

// ---- Transforms in registers ---------------------------------------------------------------------------------------

/// L x L^T of the unit tile with its 1 at (i, j), at (a, b).
template <int kRows, int kColumns>
Ratio of_unit(const Ratio (&l)[kRows][kColumns], int i, int j, int a, int b) {
  return l[a][i] * l[b][j];
}

/// L x L^T in double, and the sum of magnitudes.
struct Sum {
  double value = 0, magnitude = 0;
};
template <class T, int kRows, int kColumns>
Sum nested(const Ratio (&l)[kRows][kColumns], const T (&x)[kColumns][kColumns], int a, int b) {
  Sum sum;
  for (int i = 0; i < kColumns; ++i) {
    for (int j = 0; j < kColumns; ++j) {
      const double term = l[a][i].value() * l[b][j].value() * static_cast<double>(x[i][j]);
      sum.value += term;
      sum.magnitude += std::abs(term);
    }
  }
  return sum;
}

template <class T, int kSize>
void fill(T (&x)[kSize][kSize], std::mt19937& random) {
  for (auto& row : x)
    for (T& element : row) element = static_cast<T>(random() % 4096) / T{1024} - T{2};
}

template <class Form>
void check_unit_tiles() {
  constexpr int kSize = kTileSize<Form>, kOutputs = kTileOutputs<Form>, kTaps = kWinogradTaps;
  const WinogradMatrices<Form>& matrices = kMatrices<Form>;
  for (int i = 0; i < kSize; ++i) {
    for (int j = 0; j < kSize; ++j) {
      float tile[kSize][kSize] = {}, y[kOutputs][kOutputs];
      tile[i][j] = 1;
      transform_output<Form>(tile, y);
      transform_input<Form>(tile);
      for (int a = 0; a < kSize; ++a) {
        for (int b = 0; b < kSize; ++b) {
          // All have few bits: they are floats.
          CHECK(tile[a][b] == of_unit(matrices.input, i, j, a, b).value());
          if (a < kOutputs && b < kOutputs) CHECK(y[a][b] == of_unit(matrices.output, i, j, a, b).value());
        }
      }
    }
  }
  for (int i = 0; i < kTaps; ++i) {
    for (int j = 0; j < kTaps; ++j) {
      float taps[kTaps][kTaps] = {}, tile[kSize][kSize];
      taps[i][j] = 1;
      transform_filter<Form>(taps, tile);
      for (int a = 0; a < kSize; ++a) {
        for (int b = 0; b < kSize; ++b) {
          // Two factors and their product are rounded.
          const double exact = of_unit(matrices.filter, i, j, a, b).value();
          CHECK(std::abs(tile[a][b] - exact) <= 3.01 * 0x1p-24 * std::abs(exact));
        }
      }
    }
  }
}

template <class Form>
void check_random_tiles() {
  constexpr int kSize = kTileSize<Form>, kOutputs = kTileOutputs<Form>, kTaps = kWinogradTaps;
  const WinogradMatrices<Form>& matrices = kMatrices<Form>;
  std::mt19937 random(7);
  for (int trial = 0; trial < 20; ++trial) {
    double x[kSize][kSize], v[kSize][kSize];
    fill(x, random);
    std::copy(&x[0][0], &x[0][0] + kSize * kSize, &v[0][0]);
    transform_input<Form>(v);
    float taps[kTaps][kTaps], u[kSize][kSize], m[kSize][kSize], y[kOutputs][kOutputs];
    fill(taps, random);
    transform_filter<Form>(taps, u);
    fill(m, random);
    transform_output<Form>(m, y);
    const auto near = [](double computed, const Sum& exact, double unit) {
      return std::abs(computed - exact.value) <= 20 * unit * exact.magnitude;
    };
    for (int a = 0; a < kSize; ++a) {
      for (int b = 0; b < kSize; ++b) {
        CHECK(near(v[a][b], nested(matrices.input, x, a, b), 0x1p-53));
        CHECK(near(u[a][b], nested(matrices.filter, taps, a, b), 0x1p-24));
        if (a < kOutputs && b < kOutputs) CHECK(near(y[a][b], nested(matrices.output, m, a, b), 0x1p-24));
      }
    }
  }
}

TEST_CASE("winograd: the transforms of every unit tile are the matrices' elements") {
  check_unit_tiles<F2>();
  check_unit_tiles<F4>();
  check_unit_tiles<F4Fractions>();
  check_unit_tiles<F6>();
  check_unit_tiles<F7>();
}

TEST_CASE("winograd: the transforms of random tiles are the matrices' products") {
  check_random_tiles<F2>();
  check_random_tiles<F4>();
  check_random_tiles<F4Fractions>();
  check_random_tiles<F6>();
  check_random_tiles<F7>();
}

TEST_CASE("winograd: in fp16, two channels at a time, F(2 x 2) of small integers is exact") {
  std::mt19937 random(11);
  for (int trial = 0; trial < 20; ++trial) {
    float low[4][4], high[4][4];
    half2 both[4][4];
    for (int i = 0; i < 16; ++i) {
      low[i / 4][i % 4] = static_cast<float>(random() % 1001) - 500;  // four of them make at most 2000
      high[i / 4][i % 4] = static_cast<float>(random() % 1001) - 500;
      both[i / 4][i % 4] = __floats2half2_rn(low[i / 4][i % 4], high[i / 4][i % 4]);
    }
    transform_input<F2>(both);
    for (int i = 0; i < 16; ++i) {
      CHECK(__low2float(both[i / 4][i % 4]) == nested(kMatrices<F2>.input, low, i / 4, i % 4).value);
      CHECK(__high2float(both[i / 4][i % 4]) == nested(kMatrices<F2>.input, high, i / 4, i % 4).value);
    }
  }
}

TEST_CASE("winograd: in fp16, F(4 x 4) of a unit tile is the matrices' elements, rounded once") {
  for (int i = 0; i < 36; ++i) {
    half2 tile[6][6];
    for (int j = 0; j < 36; ++j) tile[j / 6][j % 6] = __floats2half2_rn(j == i ? 1.0f : 0.0f, j == i ? -2.0f : 0.0f);
    transform_input<F4Fractions>(tile);
    for (int j = 0; j < 36; ++j) {
      const double exact = of_unit(kMatrices<F4Fractions>.input, i / 6, i % 6, j / 6, j % 6).value();
      CHECK(__low2float(tile[j / 6][j % 6]) == half_value(half_bits(exact)));
      CHECK(__high2float(tile[j / 6][j % 6]) == half_value(half_bits(-2 * exact)));
    }
  }
}

// ---- Problems ------------------------------------------------------------------------------------------------------

std::string reason_for(std::string_view sizes, int m, int padded = 1) {
  return check_winograd(parse_shape(std::string(sizes) + ",r=3,s=3"), m, padded).reason();
}

/// Accepted with `key` at `most`, refused with one more.
void check_edge(std::string_view sizes, std::string_view key, std::int64_t most, int m, int padded = 1) {
  const auto with = [&](std::int64_t value) {
    return std::string(sizes) + "," + std::string(key) + "=" + std::to_string(value);
  };
  CAPTURE(with(most));
  CAPTURE(m);
  CAPTURE(padded);
  CHECK(reason_for(with(most), m, padded) == "");
  const std::string reason = reason_for(with(most + 1), m, padded);
  CHECK_MESSAGE(reason.find("fewer than 2^31 elements") != std::string::npos, reason);
}

TEST_CASE("winograd: any batch, size, channels and padding with 3 x 3 filters at stride 1") {
  for (const int m : {2, 4, 6}) {
    for (const int padded : {1, 32, 64}) {
      CHECK(reason_for("h=1,w=1", m, padded) == "");
      CHECK(reason_for("n=3,c=5,k=7,h=6,w=11,pad_h=40,pad_w=0", m, padded) == "");
      CHECK(reason_for("n=128,c=64,k=64,h=56,w=56", m, padded) == "");
      CHECK(reason_for("c=64,k=64,h=960,w=960", m, padded) == "");
    }
  }
}

TEST_CASE("winograd: each limit at its edge") {
  // (m + 2)^2 n, (m + 2)^2 c and (m + 2)^2 k elements.
  for (const char* key : {"n", "c", "k"}) {
    check_edge("h=1,w=1", key, 134217727, 2);
    check_edge("h=1,w=1", key, 59652323, 4);
    check_edge("h=1,w=1", key, 33554431, 6);
    // What is rounded up to 32 counts whole, twice.
    check_edge("h=1,w=1", key, 4194272, 2, 32);
    check_edge("h=1,w=1", key, 1864128, 4, 32);
    check_edge("h=1,w=1", key, 2097088, 2, 64);
  }
  check_edge("c=16384,h=1,w=1", "k", 8191, 2);  // 16 c k
  check_edge("c=100,w=2", "h", 2684354, 2);     // 16 c tiles, two rows each
  check_edge("k=100,w=6", "h", 2013264, 6);     // 64 k tiles, six rows each
  check_edge("k=100,w=1,h=1", "pad_h", 1342177, 2);
  // An input without outputs of its own: most of it is never read.
  CHECK(reason_for("h=2147483637,w=1", 2).find("fewer than 2^31 elements") != std::string::npos);
  CHECK(reason_for("h=2147483638,w=1", 2) == "a padded side must be below 2^31 - 8; got 2147483640 x 3");
  CHECK(reason_for("h=1,w=1,pad_w=1073741820", 2) == "a padded side must be below 2^31 - 8; got 3 x 2147483641");
}

TEST_CASE("winograd: sizes whose products overflow are refused") {
  for (const char* sizes : {"n=2147483647,h=1000,w=1000", "c=2147483647,k=2147483647", "n=2147483647,c=2147483647",
                            "k=4294967296,n=65536,h=8,w=8"})
    for (const int padded : {1, 32, 64})
      CHECK(reason_for(sizes, 6, padded).find("fewer than 2^31 elements") != std::string::npos);
}

/// The product of all, however large.
__extension__ using Wide = __int128;
bool fits(std::initializer_list<std::int64_t> factors) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  Wide product = 1;
  for (const std::int64_t factor : factors) product = std::min<Wide>(product * factor, kMost + Wide{1});
  return product <= kMost;
}

/// 1 more often than not; else near a power of two.
std::int64_t random_size(int most_bits) {
  if (*rc::gen::resize(100, rc::gen::inRange(0, 3)) > 0) return 1;
  const int bits = *rc::gen::resize(100, rc::gen::inRange(0, most_bits + 1));
  const int off = *rc::gen::resize(100, rc::gen::inRange(-3, 4));
  return std::max<std::int64_t>((std::int64_t{1} << bits) + off, 1);
}

TEST_CASE("winograd: accepts exactly what every product admits") {
  int accepted = 0, refused = 0;
  CHECK(rc::check([&] {
    ConvProblem x = parse_shape("r=3,s=3");
    x.n = random_size(28), x.c = random_size(28), x.k = random_size(28);
    x.h = random_size(30), x.w = random_size(30);
    x.pad_h = random_size(20), x.pad_w = random_size(20);
    const int m = 2 * *rc::gen::inRange(1, 4), padded = *rc::gen::elementOf(std::vector<int>{1, 32, 64});
    try {
      validate(x, std::numeric_limits<std::int64_t>::max());
    } catch (const std::exception&) {
      RC_DISCARD("no valid problem");
    }
    const auto up = [&](std::int64_t count) { return (count + padded - 1) / padded * padded; };
    const std::int64_t positions = (m + 2) * (m + 2), rows = (x.p() + m - 1) / m, columns = (x.q() + m - 1) / m;
    const bool countable = fits({x.n, rows, columns});
    const std::int64_t tiles = countable ? up(x.n * rows * columns) : 0;
    const bool fit = countable && fits({x.n, x.c, x.h, x.w}) && fits({x.n, x.k, x.p(), x.q()}) &&
                     fits({positions, tiles, up(x.c)}) && fits({positions, tiles, up(x.k)}) &&
                     fits({positions, up(x.c), up(x.k)});
    (fit ? accepted : refused)++;
    RC_ASSERT(check_winograd(x, m, padded).accepted() == fit);
  }));
  CHECK(accepted > 5);
  CHECK(refused > 5);
}

TEST_CASE("winograd_of: every size in its place") {
  ConvProblem problem = parse_shape("n=2,c=3,k=6,h=40,w=50,r=3,s=3,pad_h=9,pad_w=10");
  problem.padding = Padding::reflect;
  const Winograd w = winograd_of(problem, 4);
  CHECK(w.batch == 2);
  CHECK(w.channels == 3);
  CHECK(w.filters == 6);
  CHECK(w.height == 40);
  CHECK(w.width == 50);
  CHECK(w.out_height == 56);
  CHECK(w.out_width == 68);
  CHECK(w.pad_y == 9);
  CHECK(w.pad_x == 10);
  CHECK(w.padding == Padding::reflect);
  CHECK(w.m == 4);
  CHECK(w.tiles_down == 14);
  CHECK(w.tiles_across == 17);
  CHECK(w.tiles == 2 * 14 * 17);
  const Winograd six = winograd_of(problem, 6);
  CHECK(six.tiles_down == 10);
  CHECK(six.tiles_across == 12);
  CHECK(winograd_of(parse_shape("n=134217727,r=3,s=3"), 2).tiles == 134217727);
}

// ---- Tiles ---------------------------------------------------------------------------------------------------------

TEST_CASE("tiles of a batch: row by row, image after image, and each output in one of them") {
  const Winograd w = winograd_of(parse_shape("n=3,h=7,w=10,r=3,s=3"), 4);  // 2 x 3 tiles an image
  REQUIRE(w.tiles == 18);
  int tile = 0;
  for (int image = 0; image < 3; ++image) {
    for (int row = 0; row < 7; row += 4) {
      for (int column = 0; column < 10; column += 4, ++tile) {
        const TilePlace place = place_of(w, tile);
        CHECK(std::array{place.image, place.row, place.column} == std::array{image, row, column});
      }
    }
  }
}

TEST_CASE("tile_index: the border's, and zeros beyond the padding") {
  // A row of 4 with a padding of 2; the last tiles reach position 8.
  const auto indices = [](Padding padding) {
    std::array<int, 11> result{};
    for (int i = 0; i < 11; ++i) result[static_cast<std::size_t>(i)] = tile_index(i - 2, 4, 2, padding);
    return result;
  };
  CHECK(indices(Padding::zero) == std::array{-1, -1, 0, 1, 2, 3, -1, -1, -1, -1, -1});
  CHECK(indices(Padding::replicate) == std::array{0, 0, 0, 1, 2, 3, 3, 3, -1, -1, -1});
  CHECK(indices(Padding::reflect) == std::array{2, 1, 0, 1, 2, 3, 2, 1, -1, -1, -1});
  // Without padding, a last tile past a row of 3 reads zeros, whatever the mode.
  for (const Padding padding : {Padding::zero, Padding::replicate, Padding::reflect}) {
    CHECK(tile_index(2, 3, 0, padding) == 2);
    CHECK(tile_index(3, 3, 0, padding) == -1);
  }
  // The largest side that is accepted.
  CHECK(tile_index(2147483645, 2147483637, 1, Padding::reflect) == -1);
}

}  // namespace
}  // namespace convladder
