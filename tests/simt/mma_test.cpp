// ldmatrix, stmatrix and mma.sync: the lanes' registers against the tables of the PTX ISA, requests, and faults.
#include <random>

#include "common/harness/check/half_bits.hpp"
#include "tests/simt/expect.hpp"
#include "tests/simt/kernels.hpp"

namespace {

using convladder::half_bits;

std::vector<int> random_integers(std::size_t count, int least, int most, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<int> values(count);
  for (int& value : values) value = least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
  return values;
}

/// The bits of element i among the `bits`-wide ones of a lane's registers.
void put(std::vector<unsigned>& registers, std::size_t registers_each, std::size_t lane, std::size_t i, unsigned bits,
         unsigned value) {
  const std::size_t in_register = 32 / bits;
  const unsigned mask = bits == 8 ? 0xffu : 0xffffu;
  registers[lane * registers_each + i / in_register] |= (value & mask) << (bits * (i % in_register));
}

// As the PTX ISA gives them for mma.m16n8k16 with .f16: element a_i of a lane.
std::size_t half_a_row(std::size_t lane, std::size_t i) {
  return (i < 2) || (i >= 4 && i < 6) ? lane / 4 : lane / 4 + 8;
}
std::size_t half_a_column(std::size_t lane, std::size_t i) { return lane % 4 * 2 + (i & 1) + (i >= 4 ? 8 : 0); }
std::size_t half_b_row(std::size_t lane, std::size_t i) { return lane % 4 * 2 + (i & 1) + (i >= 2 ? 8 : 0); }
// And for mma.m16n8k32 with .s8.
std::size_t byte_a_row(std::size_t lane, std::size_t i) {
  return (i < 4) || (i >= 8 && i < 12) ? lane / 4 : lane / 4 + 8;
}
std::size_t byte_a_column(std::size_t lane, std::size_t i) { return lane % 4 * 4 + (i & 3) + (i >= 8 ? 16 : 0); }
std::size_t byte_b_row(std::size_t lane, std::size_t i) { return lane % 4 * 4 + (i & 3) + (i >= 4 ? 16 : 0); }
// For both: element c_i.
std::size_t sum_row(std::size_t lane, std::size_t i) { return i < 2 ? lane / 4 : lane / 4 + 8; }
std::size_t sum_column(std::size_t lane, std::size_t i) { return lane % 4 * 2 + (i & 1); }

/// c + a b for a [16][depth], b [depth][8].
std::vector<int> plain_product(const std::vector<int>& a, const std::vector<int>& b, const std::vector<int>& c) {
  const std::size_t depth = a.size() / 16;
  std::vector<int> d = c;
  for (std::size_t row = 0; row < 16; ++row)
    for (std::size_t k = 0; k < depth; ++k)
      for (std::size_t column = 0; column < 8; ++column) d[row * 8 + column] += a[row * depth + k] * b[k * 8 + column];
  return d;
}

template <class Sum>
std::vector<Sum> sums_by_lane(const std::vector<int>& matrix) {
  std::vector<Sum> result(128);
  for (std::size_t lane = 0; lane < 32; ++lane)
    for (std::size_t i = 0; i < 4; ++i)
      result[lane * 4 + i] = static_cast<Sum>(matrix[sum_row(lane, i) * 8 + sum_column(lane, i)]);
  return result;
}

std::vector<std::uint16_t> halves_of(const std::vector<int>& values) {
  std::vector<std::uint16_t> bits;
  for (const int value : values) bits.push_back(half_bits(value));
  return bits;
}

}  // namespace

TEST_CASE("simt: mma_m16n8k16 has its numbers where the PTX ISA says") {
  const auto as = random_integers(256, -9, 9, 1), bs = random_integers(128, -9, 9, 2);
  const auto cs = random_integers(128, -100, 100, 3);
  std::vector<unsigned> a(128), b(64);
  for (std::size_t lane = 0; lane < 32; ++lane) {
    for (std::size_t i = 0; i < 8; ++i)
      put(a, 4, lane, i, 16, half_bits(as[half_a_row(lane, i) * 16 + half_a_column(lane, i)]));
    for (std::size_t i = 0; i < 4; ++i) put(b, 2, lane, i, 16, half_bits(bs[half_b_row(lane, i) * 8 + lane / 4]));
  }
  Array<unsigned> a_lanes(a, "a"), b_lanes(b, "b");
  Array<float> d(sums_by_lane<float>(cs), "d");
  expect_silence([&] { launch_registers_product(a_lanes, b_lanes, d); });
  CHECK(d.values() == sums_by_lane<float>(plain_product(as, bs, cs)));
}

TEST_CASE("simt: mma_m16n8k32 has its numbers where the PTX ISA says") {
  const auto as = random_integers(512, -128, 127, 4), bs = random_integers(256, -128, 127, 5);
  const auto cs = random_integers(128, -100000, 100000, 6);
  std::vector<unsigned> a(128), b(64);
  for (std::size_t lane = 0; lane < 32; ++lane) {
    for (std::size_t i = 0; i < 16; ++i)
      put(a, 4, lane, i, 8, static_cast<unsigned>(as[byte_a_row(lane, i) * 32 + byte_a_column(lane, i)]));
    for (std::size_t i = 0; i < 8; ++i)
      put(b, 2, lane, i, 8, static_cast<unsigned>(bs[byte_b_row(lane, i) * 8 + lane / 4]));
  }
  Array<unsigned> a_lanes(a, "a"), b_lanes(b, "b");
  Array<int> d(sums_by_lane<int>(cs), "d");
  expect_silence([&] { launch_registers_product(a_lanes, b_lanes, d); });
  CHECK(d.values() == sums_by_lane<int>(plain_product(as, bs, cs)));
}

TEST_CASE("simt: sums of halves are exact and rounded once, sums of bytes wrap") {
  // One large and many small products: in float, one after another, the small ones would be lost.
  std::vector<unsigned> a(128, half_bits(0x1p-14) * 0x10001u), b(64, half_bits(0x1p-11) * 0x10001u);
  for (std::size_t lane = 0; lane < 32; lane += 4) {
    a[lane * 4] = (a[lane * 4] & 0xffff0000u) | half_bits(2);
    b[lane * 2] = (b[lane * 2] & 0xffff0000u) | half_bits(1);
  }
  Array<unsigned> a_lanes(a, "a"), b_lanes(b, "b");
  Array<float> d(std::vector<float>(128, 0), "d");
  expect_silence([&] { launch_registers_product(a_lanes, b_lanes, d); });
  CHECK(d.values()[0] == static_cast<float>(2 + 15 * 0x1p-25));

  Array<unsigned> ones(std::vector<unsigned>(128, 0x01010101), "ones"), one(std::vector<unsigned>(64, 0x01010101), "b");
  Array<int> sums(std::vector<int>(128, INT32_MAX), "sums");
  expect_silence([&] { launch_registers_product(ones, one, sums); });
  CHECK(sums.values()[5] == INT32_MIN + 31);
}

TEST_CASE("simt: a product from memory, through ldmatrix") {
  const auto as = random_integers(256, -9, 9, 7), by_columns = random_integers(128, -9, 9, 8);
  std::vector<int> bs(128);
  for (std::size_t k = 0; k < 16; ++k)
    for (std::size_t column = 0; column < 8; ++column) bs[k * 8 + column] = by_columns[column * 16 + k];
  Array<std::uint16_t> a(halves_of(as), "a"), b(halves_of(by_columns), "b");
  Array<float> d(128, "d");
  expect_silence([&] { launch_memory_product(a, b, d); });
  const std::vector<int> expected = plain_product(as, bs, std::vector<int>(128, 0));
  CHECK(d.values() == std::vector<float>(expected.begin(), expected.end()));
}

TEST_CASE("simt: ldmatrix and stmatrix move what the PTX ISA says") {
  for (const std::size_t count : {1u, 2u, 4u}) {
    for (const bool transposed : {false, true}) {
      CAPTURE(count);
      CAPTURE(transposed);
      std::vector<std::uint16_t> rows(8 * count * 8);
      std::iota(rows.begin(), rows.end(), std::uint16_t{100});
      // Row r of matrix i is the row that lane 8 i + r gives.
      const auto element = [&](std::size_t matrix, std::size_t row, std::size_t column) {
        return rows[5 * (8 * matrix + row) % (8 * count) * 8 + column];
      };
      std::vector<unsigned> registers(32 * count);
      for (std::size_t lane = 0; lane < 32; ++lane) {
        for (std::size_t i = 0; i < count; ++i) {
          const std::size_t one = lane / 4, two = lane % 4 * 2;
          const unsigned low = transposed ? element(i, two, one) : element(i, one, two);
          const unsigned high = transposed ? element(i, two + 1, one) : element(i, one, two + 1);
          registers[lane * count + i] = low | high << 16;
        }
      }
      const int matrices = static_cast<int>(count);
      Array<std::uint16_t> from(rows, "rows");
      Array<unsigned> loaded(32 * count, "registers");
      expect_silence([&] { launch_matrix_rows({matrices, transposed, false, 8, from, loaded}); });
      CHECK(loaded.values() == registers);

      Array<unsigned> values(registers, "registers");
      Array<std::uint16_t> to(rows.size(), "rows");
      expect_silence([&] { launch_matrix_rows({matrices, transposed, true, 8, to, values}); });
      CHECK(to.values() == rows);
    }
  }
}

TEST_CASE("simt: a matrix is a pass of eight rows, and one request has up to four") {
  struct Case {
    int pitch, conflicts;  ///< halves from row to row; extra passes of a matrix
  };
  // Eight rows of 16 bytes: 32 banks if they lie side by side, or 80 or 144 bytes apart.
  for (const Case& e : {Case{8, 0}, {16, 1}, {32, 3}, {64, 7}, {40, 0}, {72, 0}}) {
    for (const int matrices : {1, 2, 4}) {
      CAPTURE(e.pitch);
      CAPTURE(matrices);
      const auto halves = static_cast<std::size_t>(8 * matrices * e.pitch);
      Array<std::uint16_t> rows(std::vector<std::uint16_t>(halves, 0), "rows");
      Array<unsigned> registers(std::vector<unsigned>(static_cast<std::size_t>(32 * matrices), 0), "registers");
      const auto count_of = [&](bool store) {
        return count([&] { launch_matrix_rows({matrices, false, store, e.pitch, rows, registers}); });
      };
      const Counters load = count_of(false), store = count_of(true);
      CHECK(load.shared_load_requests == 1);
      CHECK(load.shared_load_conflicts == matrices * e.conflicts);
      CHECK(store.shared_store_requests == 1);
      CHECK(store.shared_store_conflicts == matrices * e.conflicts);
    }
  }
}

TEST_CASE("simt: faults of matrix instructions") {
  Array<std::uint16_t> input(std::vector<std::uint16_t>(256, 0x3c00), "input");
  Array<unsigned> output(64, "output");
  Array<float> sums(32, "output");
  const auto expect = [&](MatrixMistake mistake, simt::FaultKind kind) {
    CAPTURE(static_cast<int>(mistake));
    return expect_fault("matrix_rows", kind, [&] { launch_matrix_mistake(mistake, input, output); }).detail;
  };
  expect_silence([&] { launch_matrix_mistake(MatrixMistake::none, input, output); });
  using enum simt::FaultKind;
  CHECK(expect(MatrixMistake::misaligned, misaligned) == "a row of a matrix must begin at a multiple of 16 bytes");
  CHECK(expect(MatrixMistake::from_global, out_of_bounds) == "the rows of a matrix must lie in shared memory");
  expect(MatrixMistake::missing_lane, divergent_collective);
  expect(MatrixMistake::different_instructions, divergent_collective);
  CHECK(expect(MatrixMistake::past_end, out_of_bounds) == "just past the end of shared 'tile' (512 bytes)");
  expect(MatrixMistake::unwritten, uninitialized);
  expect(MatrixMistake::no_syncwarp, race);
  expect(MatrixMistake::own_row, race);
  expect(MatrixMistake::no_wait, missing_wait);

  expect_fault("product_without_lane", divergent_collective, [&] { launch_product_without_lane(sums, 32, false); });
  expect_fault("product_without_lane", divergent_collective, [&] { launch_product_without_lane(sums, 31, true); });
  expect_silence([&] { launch_product_without_lane(sums, 32, true); });
}

TEST_CASE("simt: matrix instructions order nothing") {
  Array<std::uint16_t> input(std::vector<std::uint16_t>(256, 0x3c00), "input");
  Array<unsigned> output(64, "output");
  using enum simt::FaultKind;
  expect_fault("store_after_matrix_load", race, [&] { launch_store_after_matrix_load(input, output, false); });
  expect_silence([&] { launch_store_after_matrix_load(input, output, true); });
  expect_fault("read_after_stmatrix", race, [&] { launch_read_after_stmatrix(output, false); });
  expect_silence([&] { launch_read_after_stmatrix(output, true); });
  expect_fault("stmatrix_of_one_row", race, [&] { launch_stmatrix_of_one_row(output, false); });
  expect_silence([&] { launch_stmatrix_of_one_row(output, true); });
  expect_fault("rows_of_another_warp", race, [&] { launch_rows_of_another_warp(input, output, false); });
  expect_silence([&] { launch_rows_of_another_warp(input, output, true); });
}
