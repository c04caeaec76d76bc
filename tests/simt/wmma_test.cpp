// Matrix fragments: products against integers, requests against what nvcc makes of them, and faults.
#include <array>
#include <cmath>
#include <random>

#include "common/half_bits.hpp"
#include "tests/simt/expect.hpp"
#include "tests/simt/kernels.hpp"

namespace {

using convladder::half_bits;
using convladder::half_value;

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

TEST_CASE("simt: matrix products of every shape, type and layout") {
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
        Array<std::uint8_t> a(encode(as, t.factor), "a"), b(encode(bs, t.factor), "b"), c(encode(cs, t.c), "c");
        Array<std::uint8_t> d(static_cast<std::size_t>(256 * width(t.d)), "d");
        expect_silence([&] {
          launch_matrix_product({m, t.types, a_by_rows, b_by_rows, c_by_rows, shared, a, b, c, d});
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

TEST_CASE("simt: a product of halves is summed exactly and rounded once") {
  // A row of one large and many small products: in float, one after another, the small ones would be lost.
  std::vector<double> as(256, 0x1p-14), bs(256, 0x1p-11), cs(256, 0);
  for (std::size_t row = 0; row < 16; ++row) {
    as[row * 16] = 2;
    bs[row * 16] = 1;
    as[row * 16 + 15] = 0;
  }
  Array<std::uint8_t> a(encode(as, 2), "a"), b(encode(bs, 2), "b"), c(encode(cs, 4), "c"), d(1024, "d");
  expect_silence([&] { launch_matrix_product({16, MatrixTypes::half_float, true, false, true, false, a, b, c, d}); });
  CHECK(d.values() == encode(std::vector<double>(256, 2 * (2 + 14 * 0x1p-25)), 4));

  // In half: a tie of the exact sum's neighbours, decided by the last product.
  for (std::size_t row = 0; row < 16; ++row) as[row * 16 + 15] = 0x1p-11, bs[row * 16 + 15] = 2;
  Array<std::uint8_t> a2(encode(as, 2), "a"), b2(encode(bs, 2), "b"), c2(encode(cs, 2), "c"), d2(512, "d");
  expect_silence([&] {
    launch_matrix_product({16, MatrixTypes::half_half, true, false, true, false, a2, b2, c2, d2});
  });
  CHECK(d2.values() == encode(std::vector<double>(256, 2 * (2 + 0x1p-9)), 2));
}

TEST_CASE("simt: NaN and infinity pass through a product") {
  std::vector<double> as(256, 1), bs(256, 1), cs(256, 0);
  as[0] = NAN;
  as[16] = INFINITY;
  Array<std::uint8_t> a(encode(as, 2), "a"), b(encode(bs, 2), "b"), c(encode(cs, 4), "c");
  Array<float> d(256, "d");
  expect_silence([&] {
    launch_matrix_product({16, MatrixTypes::half_float, true, false, true, false, a, b, c, static_cast<float*>(d)});
  });
  const std::vector<float> got = d.values();
  CHECK(std::isnan(got[3]));
  CHECK(got[16] == INFINITY);
  CHECK(got[32] == 32);
}

TEST_CASE("simt: requests of fragments are those that nvcc makes") {
  struct Requests {
    int global, shared;
  };
  struct Case {
    MatrixTypes types;
    MatrixPart part;
    Requests by_rows[3], by_columns[3];  ///< for m = 8, 16, 32
  };
  // LDG, LDS, LDSM, STG and STS instructions in the SASS of sm_80 and sm_90 (CUDA 13.0).
  const Case cases[] = {
      {MatrixTypes::half_float, MatrixPart::a, {{2, 1}, {4, 1}, {8, 2}}, {{2, 1}, {4, 1}, {8, 2}}},
      {MatrixTypes::half_float, MatrixPart::b, {{8, 2}, {4, 1}, {2, 1}}, {{8, 2}, {4, 1}, {2, 1}}},
      {MatrixTypes::half_float, MatrixPart::load_c, {{8, 8}, {4, 4}, {4, 4}}, {{4, 4}, {8, 8}, {8, 8}}},
      {MatrixTypes::half_float, MatrixPart::store_c, {{8, 8}, {4, 4}, {4, 4}}, {{4, 4}, {8, 8}, {8, 8}}},
      {MatrixTypes::half_half, MatrixPart::load_c, {{4, 4}, {4, 4}, {4, 4}}, {{4, 4}, {4, 4}, {4, 4}}},
      {MatrixTypes::half_half, MatrixPart::store_c, {{4, 4}, {4, 4}, {4, 4}}, {{4, 4}, {4, 4}, {4, 4}}},
      {MatrixTypes::signed_bytes, MatrixPart::a, {{1, 1}, {2, 1}, {4, 2}}, {{4, 4}, {8, 8}, {16, 16}}},
      {MatrixTypes::signed_bytes, MatrixPart::b, {{16, 16}, {8, 8}, {4, 4}}, {{4, 2}, {2, 1}, {1, 1}}},
      {MatrixTypes::signed_bytes, MatrixPart::load_c, {{8, 8}, {4, 4}, {4, 4}}, {{4, 4}, {8, 8}, {8, 8}}},
      {MatrixTypes::signed_bytes, MatrixPart::store_c, {{8, 8}, {4, 4}, {4, 4}}, {{4, 4}, {8, 8}, {8, 8}}}};
  for (const Case& e : cases) {
    for (int shape = 0; shape < 3; ++shape) {
      for (const bool by_rows : {true, false}) {
        const int m = 8 << shape, n = 256 / m;
        const int rows = e.part == MatrixPart::b ? 16 : m, columns = e.part == MatrixPart::a ? 16 : n;
        const bool factor = e.part == MatrixPart::a || e.part == MatrixPart::b, store = e.part == MatrixPart::store_c;
        const bool bytes = e.types == MatrixTypes::signed_bytes;
        const int width = factor ? (bytes ? 1 : 2) : e.types == MatrixTypes::half_half ? 2 : 4;
        const int line = by_rows ? columns : rows, lines = by_rows ? rows : columns;
        const int stride = std::max(line, 16 / width), elements = stride * lines;
        CAPTURE(m);
        CAPTURE(static_cast<int>(e.types));
        CAPTURE(static_cast<int>(e.part));
        CAPTURE(by_rows);
        Array<std::uint8_t> memory(std::vector<std::uint8_t>(static_cast<std::size_t>(elements * width), 0), "memory");
        Array<float> output(32, "output");
        const auto access = [&](bool shared) {
          return count([&] {
            launch_fragment_access({m, e.types, e.part, by_rows, shared, static_cast<unsigned>(stride), elements,
                                    static_cast<std::uint8_t*>(memory), output});
          });
        };
        const Requests expected = (by_rows ? e.by_rows : e.by_columns)[shape];
        const Counters global = access(false), shared = access(true);
        const std::int64_t all = std::int64_t{rows} * columns * width;
        if (store) {
          CHECK(global.global_store_requests == expected.global);
          CHECK(global.global_store_bytes == all);
          CHECK(shared.shared_store_requests == expected.shared);
          CHECK(shared.global_store_requests == 0);
        } else {
          CHECK(global.global_load_requests == expected.global);
          CHECK(global.global_load_bytes == all);
          CHECK(global.global_load_unique_bytes == all);
          CHECK(shared.shared_load_requests == expected.shared);
          CHECK(shared.global_load_requests == 0);
        }
      }
    }
  }
}

TEST_CASE("simt: sectors and bank conflicts of fragments") {
  Array<std::uint8_t> memory(std::vector<std::uint8_t>(16 * 128 * 4, 0), "memory");
  Array<float> output(32, "output");
  struct Case {
    int m;
    MatrixTypes types;
    MatrixPart part;
    bool by_rows;
    unsigned stride;
    int sectors, conflicts;
  };
  // Half factors: lines of 16 bytes, eight to a pass of shared memory; float results: 8 rows of 32 bytes to a request,
  // or 4 columns of 32, of which two begin in the middle of a sector; bytes against their order: 4 lines of 8.
  const Case cases[] = {{16, MatrixTypes::half_float, MatrixPart::a, true, 16, 4 * 8, 4},
                        {16, MatrixTypes::half_float, MatrixPart::a, true, 24, 4 * 8, 0},
                        {16, MatrixTypes::half_float, MatrixPart::a, true, 64, 4 * 8, 4 * 7},
                        {16, MatrixTypes::half_float, MatrixPart::b, true, 72, 4 * 8, 0},
                        {16, MatrixTypes::half_float, MatrixPart::store_c, true, 16, 4 * 8, 4 * 2},
                        {16, MatrixTypes::half_float, MatrixPart::store_c, true, 24, 4 * 8, 0},
                        {16, MatrixTypes::half_float, MatrixPart::store_c, false, 20, 8 * 6, 0},
                        {16, MatrixTypes::signed_bytes, MatrixPart::a, true, 16, 2 * 4, 0},
                        {16, MatrixTypes::signed_bytes, MatrixPart::b, true, 128, 8 * 4, 8 * 3},
                        {8, MatrixTypes::half_float, MatrixPart::store_c, false, 8, 4 * 8, 0},
                        {8, MatrixTypes::half_float, MatrixPart::store_c, true, 32, 8 * 4, 8 * 3}};
  for (const Case& e : cases) {
    CAPTURE(e.m);
    CAPTURE(static_cast<int>(e.types));
    CAPTURE(static_cast<int>(e.part));
    CAPTURE(e.by_rows);
    CAPTURE(e.stride);
    const bool store = e.part == MatrixPart::store_c;
    const int lines = e.m == 16 ? 16 : e.by_rows ? e.m : 256 / e.m;
    const auto access = [&](bool shared) {
      return count([&] {
        launch_fragment_access({e.m, e.types, e.part, e.by_rows, shared, e.stride, lines * static_cast<int>(e.stride),
                                static_cast<std::uint8_t*>(memory), output});
      });
    };
    const Counters global = access(false), shared = access(true);
    CHECK((store ? global.global_store_sectors : global.global_load_sectors) == e.sectors);
    CHECK((store ? shared.shared_store_conflicts : shared.shared_load_conflicts) == e.conflicts);
  }
}

TEST_CASE("simt: a matrix must begin and go on as CUDA wants it") {
  Array<std::uint16_t> input(std::vector<std::uint16_t>(1024, 0x3c00), "input");
  Array<float> output(1024, "output");
  const auto begin = expect_fault("misaligned_matrix", simt::FaultKind::misaligned,
                                  [&] { launch_misaligned_matrix(input, output, 8, 16); });
  CHECK(begin.detail == "a matrix must begin at a multiple of 32 bytes");
  const auto stride = expect_fault("misaligned_matrix", simt::FaultKind::misaligned,
                                   [&] { launch_misaligned_matrix(input, output, 0, 20); });
  CHECK(stride.detail == "the stride of a matrix must be a multiple of 16 bytes");
  expect_silence([&] { launch_misaligned_matrix(input, output, 16, 24); });
  expect_fault("misaligned_result", simt::FaultKind::misaligned, [&] { launch_misaligned_result(output, 18); });
  expect_silence([&] { launch_misaligned_result(output, 20); });
}

TEST_CASE("simt: a matrix function needs its whole warp, at one matrix") {
  Array<std::uint16_t> input(std::vector<std::uint16_t>(512, 0x3c00), "input");
  Array<float> output(32, "output");
  expect_fault("missing_lane", simt::FaultKind::divergent_collective,
               [&] { launch_missing_lane(input, output, false); });
  expect_silence([&] { launch_missing_lane(input, output, true); });
  expect_fault("ended_lane", simt::FaultKind::divergent_collective, [&] { launch_ended_lane(output, 32, false); });
  expect_fault("ended_lane", simt::FaultKind::divergent_collective, [&] { launch_ended_lane(output, 31, true); });
  expect_silence([&] { launch_ended_lane(output, 32, true); });
  CHECK(output.values()[0] == 16);
  expect_fault("different_matrices", simt::FaultKind::divergent_collective,
               [&] { launch_different_matrices(input, output, false); });
  expect_silence([&] { launch_different_matrices(input, output, true); });
}

TEST_CASE("simt: matrix functions order nothing") {
  Array<std::uint16_t> input(std::vector<std::uint16_t>(256, 0x3c00), "input");
  Array<float> output(64, "output");
  const auto race = expect_fault("load_without_syncwarp", simt::FaultKind::race,
                                 [&] { launch_load_without_syncwarp(input, output, false); });
  CHECK(simt::other_line_of(race).line == marked_line("load_without_syncwarp") - 3);
  expect_silence([&] { launch_load_without_syncwarp(input, output, true); });
  expect_fault("own_line", simt::FaultKind::race, [&] { launch_own_line(input, output, false); });
  expect_silence([&] { launch_own_line(input, output, true); });
  expect_fault("store_after_load", simt::FaultKind::race, [&] { launch_store_after_load(input, output, false); });
  expect_silence([&] { launch_store_after_load(input, output, true); });
  expect_fault("read_after_matrix_store", simt::FaultKind::race,
               [&] { launch_read_after_matrix_store(output, false); });
  expect_silence([&] { launch_read_after_matrix_store(output, true); });
  expect_fault("load_after_matrix_store", simt::FaultKind::race,
               [&] { launch_load_after_matrix_store(output, false); });
  expect_silence([&] { launch_load_after_matrix_store(output, true); });
  expect_fault("load_of_another_warp", simt::FaultKind::race,
               [&] { launch_load_of_another_warp(input, output, false); });
  expect_silence([&] { launch_load_of_another_warp(input, output, true); });
}

TEST_CASE("simt: fragments out of bounds, and of what nothing has written") {
  Array<std::uint16_t> input(std::vector<std::uint16_t>(16 * 24 - 8, 0x3c00), "input");
  Array<float> output(32, "output");
  const auto past = expect_fault("matrix_past_end", simt::FaultKind::out_of_bounds,
                                 [&] { launch_matrix_past_end(input, output, 32); });
  CHECK(past.detail == "reads 16 bytes past the end of 'input' (752 bytes)");
  expect_silence([&] { launch_matrix_past_end(input, output, 24); });
  const auto shared = expect_fault("result_past_shared", simt::FaultKind::out_of_bounds,
                                   [&] { launch_result_past_shared(output, 20); });
  CHECK(shared.detail == "16 bytes past the end of shared 'tile' (1024 bytes)");
  expect_silence([&] { launch_result_past_shared(output, 16); });
  expect_fault("unwritten_matrix", simt::FaultKind::uninitialized,
               [&] { launch_unwritten_matrix(input, output, false); });
  expect_silence([&] { launch_unwritten_matrix(input, output, true); });
}
