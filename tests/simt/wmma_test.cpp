// Matrix fragments in the simulator: requests against what nvcc makes of them, and faults.
#include <algorithm>

#include "tests/simt/expect.hpp"
#include "tests/simt/kernels.hpp"

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
  // A fragment is its warp's, and not that of the lane by which it is checked.
  CHECK(race.thread.whole_warp);
  CHECK(!race.other_thread.whole_warp);
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
  const auto others = expect_fault("load_of_another_warp", simt::FaultKind::race,
                                   [&] { launch_load_of_another_warp(input, output, false); });
  CHECK((others.thread.whole_warp || others.other_thread.whole_warp));
  CHECK((!others.thread.whole_warp || !others.other_thread.whole_warp));
  CHECK(others.thread.warp != others.other_thread.warp);
  CHECK(std::string(others.thread.whole_warp ? others.access : others.other_access) == "reads");
  CHECK(std::string(others.thread.whole_warp ? others.other_access : others.access) == "writes");
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
