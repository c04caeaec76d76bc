#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <fstream>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "tests/simt/expect.hpp"
#include "tests/simt/kernels.hpp"

namespace {

/// Expects an access at the line marked `name` to what the copy at the line marked "`name`, copy" has yet to write.
simt::FaultRecord expect_missing_wait(const std::string& name, const std::function<void()>& launch) {
  const simt::FaultRecord fault = expect_fault(name, simt::FaultKind::missing_wait, launch);
  const simt::SourceLine expected = marked(name + ", copy");
  for (const simt::FaultRecord& each : simt::measurement().faults) {
    CHECK(each.kind == simt::FaultKind::missing_wait);
    CHECK(simt::other_line_of(each).file == expected.file);
    CHECK(simt::other_line_of(each).line == expected.line);
  }
  return fault;
}

}  // namespace

// ---- Counters ------------------------------------------------------------------------------------------------------

TEST_CASE("simt: sectors of a strided load") {
  Array<float> input(ramp(32 * 128 + 32), "input"), output(128, "output");
  struct Expected {
    int stride, offset, sectors;  // of one request
  };
  for (const Expected& e : {Expected{1, 0, 4}, {2, 0, 8}, {32, 0, 32}, {1, 1, 5}, {8, 0, 32}, {0, 0, 1}}) {
    CAPTURE(e.stride);
    CAPTURE(e.offset);
    const Counters c = count([&] { launch_strided_load(input, output, e.stride, e.offset, 2); });
    CHECK(c.global_load_requests == 4);
    CHECK(c.global_load_sectors == 4 * e.sectors);
    CHECK(c.global_load_bytes == 128 * 4);
    CHECK(c.global_store_requests == 4);
    CHECK(c.global_store_sectors == 16);
    CHECK(c.global_store_bytes == 128 * 4);
  }
}

TEST_CASE("simt: a broadcast load is one sector") {
  Array<float> input(ramp(32), "input"), output(32, "output");
  const Counters c = count([&] { launch_broadcast_load(input, output); });
  CHECK(c.global_load_requests == 1);
  CHECK(c.global_load_sectors == 1);
  CHECK(c.global_load_bytes == 128);
  CHECK(c.global_load_unique_bytes == 4);
}

TEST_CASE("simt: a 16-byte load is one request of 16 sectors") {
  Array<float> input(ramp(128), "input"), output(128, "output");
  const Counters c = count([&] { launch_float4_copy(input, output); });
  CHECK(c.global_load_requests == 1);
  CHECK(c.global_load_sectors == 16);
  CHECK(c.global_load_bytes == 512);
  CHECK(c.global_load_unique_bytes == 512);
  CHECK(c.global_store_requests == 1);
  CHECK(c.global_store_sectors == 16);
  CHECK(output.values() == ramp(128));
}

TEST_CASE("simt: bank conflicts of a column, and none with padding") {
  Array<float> output(32, "output");
  const Counters plain = count([&] { launch_shared_column(output, false); });
  CHECK(plain.shared_load_requests == 32);
  CHECK(plain.shared_load_conflicts == 32 * 31);
  CHECK(plain.shared_store_requests == 32);
  CHECK(plain.shared_store_conflicts == 0);
  CHECK(plain.barriers == 1);
  const Counters padded = count([&] { launch_shared_column(output, true); });
  CHECK(padded.shared_load_requests == 32);
  CHECK(padded.shared_load_conflicts == 0);
}

TEST_CASE("simt: bank conflicts of a stride") {
  Array<float> output(32, "output");
  struct Expected {
    int stride, conflicts;
  };
  for (const Expected& e : {Expected{0, 0}, {1, 0}, {2, 1}, {3, 0}, {4, 3}, {16, 15}, {31, 0}}) {
    CAPTURE(e.stride);
    const Counters c = count([&] { launch_shared_stride(output, e.stride); });
    CHECK(c.shared_load_requests == 1);
    CHECK(c.shared_load_conflicts == e.conflicts);
  }
}

TEST_CASE("simt: 16-byte shared accesses in order are free of conflicts") {
  Array<float> output(32, "output");
  const Counters c = count([&] { launch_shared_float4(output); });
  CHECK(c.shared_load_requests == 1);
  CHECK(c.shared_load_conflicts == 0);
  CHECK(c.shared_store_requests == 1);
  CHECK(c.shared_store_conflicts == 0);
}

TEST_CASE("simt: 16-byte accesses with a stride: eight lanes share a pass of shared memory") {
  Array<float> input(ramp(4 * 32 * 4), "input"), output(4 * 32 * 4, "output");
  struct Expected {
    int global_stride, shared_stride, sectors, conflicts;
  };
  for (const Expected& e : {Expected{1, 1, 16, 0}, {2, 2, 32, 4}, {4, 4, 32, 12}, {1, 3, 16, 0}}) {
    CAPTURE(e.global_stride);
    CAPTURE(e.shared_stride);
    const Counters c = count([&] { launch_float4_strides(input, output, e.global_stride, e.shared_stride); });
    CHECK(c.global_load_requests == 1);
    CHECK(c.global_load_sectors == e.sectors);
    CHECK(c.global_load_bytes == 512);
    CHECK(c.global_store_requests == 1);
    CHECK(c.global_store_sectors == e.sectors);
    CHECK(c.shared_store_requests == 1);
    CHECK(c.shared_store_conflicts == e.conflicts);
    CHECK(c.shared_load_requests == 1);
    CHECK(c.shared_load_conflicts == e.conflicts);
    CHECK(output.values()[0] == static_cast<float>(31 * 4 * e.global_stride));
  }
}

TEST_CASE("simt: constant loads are no global loads") {
  Array<float> values(ramp(64), "values"), output(64, "output");
  const Counters c = count([&] { launch_constant_loads(values, output, true); });
  CHECK(c.constant_load_requests == 2);
  CHECK(c.global_load_requests == 0);
  CHECK(output.values() == std::vector<float>(64, 0.0f));
  count([&] { launch_constant_loads(values, output, false); });
  CHECK(output.values() == ramp(64));
}

TEST_CASE("simt: each branch issues its own requests") {
  Array<float> input(ramp(128), "input"), output(64, "output");
  const Counters c = count([&] { launch_two_branches(input, output); });
  CHECK(c.global_load_requests == 1 + 2);
  CHECK(c.global_load_sectors == 3 * 4);
  CHECK(c.global_load_bytes == 3 * 16 * 4);
}

TEST_CASE("simt: lanes that skip taps at the border stay in step") {
  const int n = 256, radius = 5;
  Array<float> input(ramp(n), "input"), filter(std::vector<float>(11, 1.0f), "filter"), output(n, "output");
  const Counters c = count([&] { launch_border_loop(input, filter, output, n, radius); });
  CHECK(c.global_load_requests == 8 * 11 * 2);
  CHECK(c.global_load_bytes == (n * 11 - 30) * 4 * 2);
  // 11 one-sector filter loads a warp; the samples: 4 sectors where the window is aligned (k = 0), else 5; at the two
  // ends of the signal the lanes that fall outside drop out: a sector less, for 5 taps each.
  CHECK(c.global_load_sectors == 8 * 11 + 8 * (4 + 10 * 5) - 2 * 5);
}

TEST_CASE("simt: nested loops with a border function stay in step") {
  const int size = 64, radius = 2;
  Array<float> input(ramp(size * size), "input"), output(size * size, "output");
  const Counters c = count([&] { launch_border_image(input, output, size, radius); });
  const int rows = size * 5 - 6, columns = size * 5 - 6;  // inside: without those that two rows or columns lack
  CHECK(c.global_load_requests == rows * 2 * 5);
  CHECK(c.global_load_bytes == rows * columns * 4);
  CHECK(c.global_store_requests == size * 2);
}

TEST_CASE("simt: a loop that lanes leave one by one") {
  Array<float> input(ramp(32 * 32), "input"), output(32, "output");
  const Counters c = count([&] { launch_triangular_loop(input, output); });
  CHECK(c.global_load_requests == 32);
  CHECK(c.global_load_bytes == 4 * 32 * 33 / 2);
  CHECK(c.global_load_sectors == 8 * (4 + 3 + 2 + 1));
  CHECK(c.global_store_requests == 1);
}

TEST_CASE("simt: exited lanes take no part") {
  Array<float> input(ramp(32), "input"), output(32, "output");
  const Counters c = count([&] { launch_early_exit(input, output, 20); });
  CHECK(c.global_load_requests == 1);
  CHECK(c.global_load_bytes == 80);
  CHECK(c.global_load_sectors == 3);
  CHECK(c.global_store_sectors == 3);
}

TEST_CASE("simt: break and continue") {
  Array<float> input(ramp(32 * 8), "input"), output(32, "output");
  const Counters left = count([&] { launch_break_out(input, output); });
  CHECK(left.global_load_requests == 4);
  CHECK(left.global_load_bytes == 4 * 8 * (1 + 2 + 3 + 4));
  CHECK(left.global_store_requests == 1);
  const Counters skipped = count([&] { launch_continue(input, output); });
  CHECK(skipped.global_load_requests == 8);
  CHECK(skipped.global_load_bytes == 8 * 16 * 4);
}

TEST_CASE("simt: an inner loop reconverges before the next outer iteration") {
  Array<float> input(ramp(32 * 4), "input"), output(32, "output");
  const Counters c = count([&] { launch_nested_loops(input, output); });
  CHECK(c.global_load_requests == 3 * 4);
}

TEST_CASE("simt: traces longer than their buffer") {
  Array<float> input(ramp(32), "input"), output(32, "output");
  const Counters c = count([&] { launch_long_divergent_loop(input, output, 6000); });
  CHECK(c.global_load_requests == 6000);
  CHECK(c.global_load_bytes == 6000 / 3 * 32 * 4);
}

TEST_CASE("simt: calls that are not inlined") {
  Array<float> input(ramp(128), "input"), output(32, "output");
  const Counters c = count([&] { launch_calls_in_branches(input, output); });
  CHECK(c.global_load_requests == 4);
  CHECK(c.global_load_bytes == 2 * 32 * 4 + 2 * 8 * 4);
}

TEST_CASE("simt: the copy of a struct is one load a word") {
  Array<float> input(ramp(96), "input"), output(96, "output");
  const Counters c = count([&] { launch_struct_copy(input, output); });
  CHECK(c.global_load_requests == 3);
  CHECK(c.global_load_bytes == 96 * 4);
  CHECK(c.global_load_sectors == 3 * 12);
  CHECK(output.values() == ramp(96));
}

TEST_CASE("simt: memcpy in a kernel is observed") {
  Array<float> input(ramp(128), "input"), output(128, "output");
  const Counters c = count([&] { launch_memory_copy(input, output); });
  CHECK(c.global_load_bytes == 128 * 4);
  CHECK(c.global_store_bytes == 128 * 4);
  CHECK(output.values() == ramp(128));
}

TEST_CASE("simt: a parameter that holds a vector is no memory access") {
  Array<float> output(32, "output");
  const Counters c = count([&] { launch_vector_parameter(output); });
  CHECK(c.global_load_requests == 0);
  CHECK(output.values() == std::vector<float>(32, 10.0f));
}

TEST_CASE("simt: atomics") {
  std::vector<int> keys(1000);
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<int>(i * i % 7);
  std::vector<int> expected(7, 0);
  for (int key : keys) ++expected[static_cast<std::size_t>(key)];
  Array<int> input(keys, "input"), bins(std::vector<int>(7, 0), "bins");
  const Counters c = count([&] { launch_histogram(input, bins, 1000); });
  CHECK(bins.values() == expected);
  CHECK(c.atomic_requests == 32);
  CHECK(c.global_store_requests == 0);
}

TEST_CASE("simt: barriers are counted once a block") {
  Array<float> output(300, "output");
  CHECK(count([&] { launch_barriers(output, 5, 3, 100); }).barriers == 15);
  CHECK(output.values() == std::vector<float>(300, 1.0f));
}

TEST_CASE("simt: built-in indices in three dimensions") {
  Array<int> output(24 * 60, "output");
  count([&] { launch_indices(output); });
  const auto values = output.values();
  bool right = true;
  for (int block = 0; block < 24; ++block)
    for (int thread = 0; thread < 60; ++thread)
      right &= values[static_cast<std::size_t>(block * 60 + thread)] == block * 1000 + thread;
  CHECK(right);
}

TEST_CASE("simt: the same numbers in every run") {
  Array<float> input(ramp(1024), "input"), filter(std::vector<float>(63, 1.0f), "filter"), output(1024, "output");
  const auto run = [&] { return count([&] { launch_border_loop(input, filter, output, 1000, 31); }); };
  const Counters first = run(), second = run();
  for (const auto& field : convladder::kCounterFields) CHECK(first.*field.member == second.*field.member);
}

TEST_CASE("simt: counters by source line add up to the total") {
  Array<float> input(ramp(256), "input"), filter(std::vector<float>(11, 1.0f), "filter"), output(256, "output");
  const Counters total = count([&] { launch_border_loop(input, filter, output, 256, 5); });
  std::int64_t requests = 0;
  std::vector<simt::Pc> pcs;
  for (const auto& [pc, counters] : simt::measurement().by_pc) {
    requests += counters.global_load_requests;
    pcs.push_back(pc);
  }
  CHECK(requests == total.global_load_requests);
  for (const auto& [pc, line] : simt::source_lines(pcs)) {
    CHECK(line.file == "tests/simt/counters.cu");
    CHECK(line.line > 0);
  }
}

TEST_CASE("simt: at least 5 million accesses a second of processor time") {
  const int n = 1 << 15;
  Array<float> input(ramp(n), "input"), filter(std::vector<float>(63, 1.0f), "filter"), output(n, "output");
  double rate = 0;
  for (int trial = 0; trial < 3; ++trial) {  // the best, since others may be at work on this machine
    const std::clock_t start = std::clock();
    count([&] { launch_border_loop(input, filter, output, n, 31); });
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    rate = std::max(rate, static_cast<double>(simt::measurement().thread_accesses) / seconds);
  }
  MESSAGE("simulated accesses a second: " << rate);
  CHECK(rate > 5e6);
}

// ---- Asynchronous copies -------------------------------------------------------------------------------------------

TEST_CASE("simt: an asynchronous copy is a load and a store of the warp") {
  Array<float> input(ramp(4 * 64), "input");
  for (int bytes : {4, 8, 16}) {
    CAPTURE(bytes);
    const int words = bytes / 4;
    Array<float> output(static_cast<std::size_t>(64 * words), "output");
    const Counters c = count([&] { launch_async_copy(input, output, bytes, 64, 1, 1); });
    CHECK(c.global_load_requests == 2);
    CHECK(c.global_load_sectors == 2 * bytes);
    CHECK(c.global_load_bytes == 64 * bytes);
    CHECK(c.global_load_unique_bytes == 64 * bytes);
    CHECK(c.shared_store_requests == 2);
    CHECK(c.shared_store_conflicts == 0);
    std::vector<float> reversed(static_cast<std::size_t>(64 * words));
    for (int i = 0; i < 64 * words; ++i)
      reversed[static_cast<std::size_t>(i)] = static_cast<float>((63 - i / words) * words + i % words);
    CHECK(output.values() == reversed);
  }
}

TEST_CASE("simt: lanes outside copy zeros and make no global request") {
  for (int bytes : {4, 8, 16}) {
    for (int n : {40, 32, 0}) {
      CAPTURE(bytes);
      CAPTURE(n);
      const int words = bytes / 4;
      Array<float> input(std::vector<float>(static_cast<std::size_t>(n * words), 3.0f), "input");
      Array<float> output(static_cast<std::size_t>(64 * words), "output");
      const Counters c = count([&] { launch_async_copy(input, output, bytes, n, 1, 1); });
      CHECK(c.global_load_requests == (n + 31) / 32);
      CHECK(c.global_load_sectors == n * bytes / 32);
      CHECK(c.global_load_bytes == n * bytes);
      CHECK(c.global_load_unique_bytes == n * bytes);
      CHECK(c.shared_store_requests == 2);
      CHECK(c.shared_store_conflicts == 0);
      std::vector<float> expected(static_cast<std::size_t>(64 * words), 0.0f);
      std::fill(expected.end() - n * words, expected.end(), 3.0f);
      CHECK(output.values() == expected);
    }
  }
}

TEST_CASE("simt: sectors and bank conflicts of asynchronous copies with a stride") {
  Array<float> input(ramp(4 * 64 * 4), "input"), output(4 * 64, "output");
  struct Expected {
    int bytes, from_stride, to_stride, sectors, conflicts;  // of one warp
  };
  for (const Expected& e : {Expected{4, 2, 1, 8, 0},
                            {4, 1, 2, 4, 1},
                            {4, 4, 4, 16, 3},
                            {8, 1, 2, 8, 2},
                            {16, 2, 1, 32, 0},
                            {16, 1, 2, 16, 4},
                            {16, 1, 4, 16, 12}}) {
    CAPTURE(e.bytes);
    CAPTURE(e.from_stride);
    CAPTURE(e.to_stride);
    const Counters c = count([&] { launch_async_copy(input, output, e.bytes, 64, e.from_stride, e.to_stride); });
    CHECK(c.global_load_requests == 2);
    CHECK(c.global_load_sectors == 2 * e.sectors);
    CHECK(c.global_load_unique_bytes == 64 * e.bytes);
    CHECK(c.shared_store_requests == 2);
    CHECK(c.shared_store_conflicts == 2 * e.conflicts);
  }
}

TEST_CASE("simt: lanes inside and outside copy in step") {
  const int size = 64, radius = 2;
  Array<float> input(std::vector<float>(size * size, 1.0f), "input"), output(size * size, "output");
  const Counters c = count([&] { launch_async_border(input, output, size, radius); });
  const int rows = size * 5 - 6, columns = size * 5 - 6;  // inside: without those that two rows or columns lack
  CHECK(c.global_load_requests == rows * 2 * 5);
  CHECK(c.global_load_bytes == rows * columns * 4);
  CHECK(c.shared_store_requests == size * 2 * 25);
  CHECK(c.shared_load_requests == size * 2 * 25);
  CHECK(output.values()[0] == 9);
  CHECK(output.values()[size * size / 2 + size / 2] == 25);
}

TEST_CASE("simt: groups of copies are complete in order") {
  Array<float> input(ramp(96), "input"), output(96, "output");
  expect_silence([&] { launch_async_groups(input, output, 3); });
  CHECK(output.values() == ramp(96));
  for (int early : {0, 1, 2}) {
    CAPTURE(early);
    const auto found = faults([&] { launch_async_groups(input, output, early); });
    REQUIRE(found.size() == 1);
    CHECK(found[0].kind == simt::FaultKind::missing_wait);
    CHECK(found[0].count == 32);
    CHECK(simt::line_of(found[0]).line == marked_line("async_groups") + 2 * early);
    CHECK(simt::other_line_of(found[0]).line == marked_line("async_groups, copy"));
    CHECK(found[0].other_thread.thread[0] == found[0].thread.thread[0]);
  }
  expect_silence([&] { launch_empty_group(input, output); });
}

TEST_CASE("simt: a double-buffered loop of copies") {
  Array<float> input(ramp(64 * 5), "input"), output(64, "output");
  for (int tiles : {1, 2, 5}) {
    CAPTURE(tiles);
    const Counters c = count([&] { launch_double_buffer(input, output, tiles, true); });
    CHECK(c.global_load_requests == 2 * tiles);
    CHECK(c.shared_store_requests == 2 * tiles);
    CHECK(c.barriers == 2 * tiles);
    float sum = 0;
    for (int k = 0; k < tiles; ++k) sum = 2 * sum + static_cast<float>(64 * k + 63);
    CHECK(output.values()[0] == sum);
  }
  expect_fault("double_buffer", simt::FaultKind::race, [&] { launch_double_buffer(input, output, 5, false); });
  for (const simt::FaultRecord& race : simt::measurement().faults) CHECK(race.kind == simt::FaultKind::race);
}

TEST_CASE("simt: an access to what a copy has yet to write") {
  Array<float> input(ramp(256), "input"), output(64, "output");
  const auto own = expect_missing_wait("read_before_wait", [&] { launch_read_before_wait(input, output, false); });
  CHECK(own.count == 64);
  CHECK(own.other_thread.thread[0] == own.thread.thread[0]);
  expect_silence([&] { launch_read_before_wait(input, output, true); });
  CHECK(output.values() == ramp(64));

  const auto others =
      expect_missing_wait("barrier_without_wait", [&] { launch_barrier_without_wait(input, output, false); });
  CHECK(others.thread.thread[0] == 0);
  CHECK(others.other_thread.thread[0] == 63);
  expect_silence([&] { launch_barrier_without_wait(input, output, true); });

  expect_missing_wait("never_committed", [&] { launch_never_committed(input, output, false); });
  expect_silence([&] { launch_never_committed(input, output, true); });
  expect_missing_wait("store_in_flight", [&] { launch_store_in_flight(input, output, false); });
  CHECK(simt::measurement().faults.size() == 2);  // the store, and the loads after it: the copy may come after both
  expect_silence([&] { launch_store_in_flight(input, output, true); });
  CHECK(output.values() == std::vector<float>(64, 1.0f));
  expect_missing_wait("atomic_in_flight", [&] { launch_atomic_in_flight(input, output, false); });
  expect_silence([&] { launch_atomic_in_flight(input, output, true); });
  expect_missing_wait("copy_onto_copy", [&] { launch_copy_onto_copy(input, output, false); });
  expect_silence([&] { launch_copy_onto_copy(input, output, true); });
  CHECK(output.values()[1] == 7);
}

TEST_CASE("simt: a wait without a barrier after it orders nothing for others") {
  Array<float> input(ramp(128), "input"), output(64, "output");
  expect_fault("wait_without_barrier", simt::FaultKind::race,
               [&] { launch_wait_without_barrier(input, output, false); });
  for (const simt::FaultRecord& race : simt::measurement().faults) {
    CHECK(race.kind == simt::FaultKind::race);
    const int line = simt::line_of(race).line, other = simt::other_line_of(race).line;
    CHECK(line + other == marked_line("wait_without_barrier") + marked_line("wait_without_barrier, copy"));
    CHECK(race.thread.thread[0] + race.other_thread.thread[0] == 63);
  }
  expect_silence([&] { launch_wait_without_barrier(input, output, true); });

  const auto race =
      expect_fault("wait_after_barrier", simt::FaultKind::race, [&] { launch_wait_after_barrier(input, output, 0); });
  CHECK(simt::line_of(race).line == marked_line("wait_after_barrier"));
  CHECK(simt::other_line_of(race).line == marked_line("wait_after_barrier, copy"));
  const auto unfinished =
      expect_missing_wait("wait_after_barrier", [&] { launch_wait_after_barrier(input, output, 1); });
  CHECK(unfinished.other_thread.thread[0] == 32 + unfinished.thread.thread[0]);
}

TEST_CASE("simt: a copy onto what others still read, and of what others still write") {
  Array<float> input(ramp(128), "input"), output(64, "output"), data(64, "data");
  const auto race =
      expect_fault("copy_too_early", simt::FaultKind::race, [&] { launch_copy_too_early(input, output, false); });
  CHECK(simt::line_of(race).line + simt::other_line_of(race).line == 2 * marked_line("copy_too_early") + 4);
  expect_silence([&] { launch_copy_too_early(input, output, true); });
  expect_fault("source_still_written", simt::FaultKind::race,
               [&] { launch_source_still_written(data, output, false); });
  expect_silence([&] { launch_source_still_written(data, output, true); });
  CHECK(output.values() == std::vector<float>(64, 1.0f));
}

TEST_CASE("simt: addresses of copies") {
  Array<float> input(ramp(132), "input"), output(64, "output"), untouched(64, "untouched");
  for (int shift : {0, 2}) {
    CAPTURE(shift);
    const auto fault = expect_fault("misaligned_copy", simt::FaultKind::misaligned,
                                    [&] { launch_misaligned_copy(input, output, 2 - shift, shift); });
    CHECK(fault.detail == "16-byte access");
  }
  expect_silence([&] { launch_misaligned_copy(input, output, 4, 0); });

  Array<float> small(ramp(40), "small");
  const auto reads = expect_fault("copy_out_of_bounds", simt::FaultKind::out_of_bounds,
                                  [&] { launch_copy_out_of_bounds(small, output, 64, 64); });
  CHECK(reads.detail == "reads just past the end of 'small' (160 bytes)");
  CHECK(reads.thread.thread[0] == 40);
  expect_silence([&] { launch_copy_out_of_bounds(small, output, 40, 64); });
  const auto writes = expect_fault("copy_out_of_bounds", simt::FaultKind::out_of_bounds,
                                   [&] { launch_copy_out_of_bounds(small, output, 40, 60); });
  CHECK(writes.detail == "just past the end of the dynamic shared memory (240 bytes)");
  CHECK(writes.thread.thread[0] == 60);
  const auto to_global =
      expect_fault("copy_to_global", simt::FaultKind::out_of_bounds, [&] { launch_copy_to_global(input, output); });
  CHECK(to_global.detail == "copies to what is not shared memory");
  const auto from_shared =
      expect_fault("copy_from_shared", simt::FaultKind::out_of_bounds, [&] { launch_copy_from_shared(output); });
  CHECK(from_shared.detail == "reads an address that is not device memory");

  const auto unwritten = expect_fault("copy_out_of_bounds", simt::FaultKind::uninitialized,
                                      [&] { launch_copy_out_of_bounds(untouched, output, 64, 64); });
  CHECK(unwritten.detail == "'untouched', nothing has written it");
  CHECK(unwritten.count == 64);
}

TEST_CASE("simt: copies end with their block") {
  Array<float> input(ramp(64), "input"), output(64, "output");
  expect_silence([&] { launch_copies_of_an_earlier_block(input, output); });
  CHECK(output.values() == std::vector<float>(64, 5.0f));
}

// ---- Warps ---------------------------------------------------------------------------------------------------------

TEST_CASE("simt: a sum by shuffles, in whole and partial warps") {
  for (int threads : {32, 48, 64, 7}) {
    CAPTURE(threads);
    Array<float> input(ramp(64), "input"), output(2, "output");
    count([&] { launch_warp_sum(input, output, threads); });
    const auto values = output.values();
    const int first = std::min(threads, 32), second = threads - first;
    CHECK(values[0] == static_cast<float>(first * (first - 1) / 2));
    if (second > 0) CHECK(values[1] == static_cast<float>(32 * second + second * (second - 1) / 2));
  }
}

TEST_CASE("simt: shuffles take their lane from where CUDA says") {
  Array<int> output(6 * 32, "output");
  count([&] { launch_shuffles(output); });
  const auto values = output.values();
  for (int lane = 0; lane < 32; ++lane) {
    CAPTURE(lane);
    const auto at = [&](int row) { return values[static_cast<std::size_t>(32 * row + lane)]; };
    CHECK(at(0) == 5);
    CHECK(at(1) == lane / 8 * 8 + (lane + 1) % 8);
    CHECK(at(2) == (lane >= 3 ? lane - 3 : lane));
    CHECK(at(3) == (lane % 16 + 3 < 16 ? lane + 3 : lane));
    CHECK(at(4) == (lane ^ 7));
    CHECK(at(5) == (lane < 16 ? lane : lane - 16));  // a later segment is out of reach, an earlier one is not
  }
}

TEST_CASE("simt: sources outside the warp, and lanes that meet at two __syncwarps") {
  Array<int> output(64, "output");
  count([&] { launch_odd_sources(output); });
  for (int lane = 0; lane < 32; ++lane) {
    CHECK(output.values()[static_cast<std::size_t>(lane)] == 5);
    CHECK(output.values()[static_cast<std::size_t>(32 + lane)] == (lane ^ 31));
  }
  count([&] { launch_syncwarps_of_two_lines(output); });
  CHECK(output.values()[31] == 7);
}

TEST_CASE("simt: votes") {
  Array<unsigned> output(5, "output");
  count([&] { launch_votes(output); });
  CHECK(output.values() == std::vector<unsigned>{0xaaaaaaaau, 1, 0, 1, 0});
}

TEST_CASE("simt: collectives of disjoint masks in different branches") {
  Array<int> output(32, "output");
  count([&] { launch_half_masks(output); });
  const auto values = output.values();
  for (std::size_t lane = 0; lane < 32; ++lane) CHECK(values[lane] == (lane < 16 ? 3 : 20));
}

TEST_CASE("simt: __syncwarp orders shared memory within a warp") {
  Array<float> input(ramp(32), "input"), output(32, "output");
  count([&] { launch_warp_scan_shared(input, output); });
  for (int lane = 0; lane < 32; ++lane)
    CHECK(output.values()[static_cast<std::size_t>(lane)] == static_cast<float>(lane * (lane + 1) / 2));
}

// ---- Faults --------------------------------------------------------------------------------------------------------

TEST_CASE("simt: out of bounds in global memory") {
  Array<float> input(ramp(100), "input"), output(100, "output");
  const auto past = expect_fault("read_past_end", simt::FaultKind::out_of_bounds,
                                 [&] { launch_read_past_end(input, output, 100, false); });
  CHECK(past.thread.block[0] == 1);
  CHECK(past.thread.thread[0] == 35);
  CHECK(past.detail == "reads just past the end of 'input' (400 bytes)");
  expect_silence([&] { launch_read_past_end(input, output, 100, true); });

  const auto before = expect_fault("read_before_begin", simt::FaultKind::out_of_bounds,
                                   [&] { launch_read_before_begin(input, output, false); });
  CHECK(before.detail == "reads 8 bytes before 'input' (400 bytes)");
  expect_silence([&] { launch_read_before_begin(input, output, true); });

  const auto write = expect_fault("write_past_end", simt::FaultKind::out_of_bounds,
                                  [&] { launch_write_past_end(output, 100, false); });
  CHECK(write.thread.thread[0] == 36);
  expect_silence([&] { launch_write_past_end(output, 100, true); });
}

TEST_CASE("simt: host memory and released memory are not device memory") {
  Array<float> output(100, "output");
  std::vector<float> host(100);
  expect_fault("read_before_begin", simt::FaultKind::out_of_bounds,
               [&] { launch_read_before_begin(host.data(), output, true); });
  const float* released = nullptr;
  {
    Array<float> input(ramp(100), "input");
    released = input;
  }
  const auto fault = expect_fault("read_before_begin", simt::FaultKind::out_of_bounds,
                                  [&] { launch_read_before_begin(released, output, true); });
  CHECK(fault.detail == "reads in 'input' (400 bytes), which was released");
}

TEST_CASE("simt: out of bounds in shared and constant memory") {
  Array<float> output(64, "output"), values(ramp(4), "values");
  const auto fixed_size = expect_fault("static_shared_past_end", simt::FaultKind::out_of_bounds,
                                       [&] { launch_static_shared_past_end(output, false); });
  CHECK(fixed_size.detail == "just past the end of shared 'first' (256 bytes)");
  expect_silence([&] { launch_static_shared_past_end(output, true); });

  const auto dynamic = expect_fault("dynamic_shared_past_end", simt::FaultKind::out_of_bounds,
                                    [&] { launch_dynamic_shared_past_end(output, false); });
  CHECK(dynamic.thread.thread[0] == 63);
  CHECK(dynamic.detail == "just past the end of the dynamic shared memory (252 bytes)");
  expect_silence([&] { launch_dynamic_shared_past_end(output, true); });

  expect_fault("constant_past_end", simt::FaultKind::out_of_bounds,
               [&] { launch_constant_past_end(values, output, false); });
  expect_silence([&] { launch_constant_past_end(values, output, true); });
}

TEST_CASE("simt: far out of bounds, where other memory lies") {
  Array<float> output(64, "output"), input(ramp(128), "input");
  const auto rows =
      expect_fault("rows_past_end", simt::FaultKind::out_of_bounds, [&] { launch_rows_past_end(output, false); });
  CHECK(rows.detail == "512 bytes past the end of shared 'first' (1024 bytes)");
  expect_silence([&] { launch_rows_past_end(output, true); });

  Array<float> before(ramp(4096), "before"), image(ramp(4096), "image");
  const auto row = expect_fault("row_before_begin", simt::FaultKind::out_of_bounds,
                                [&] { launch_row_before_begin(image, output, 2048, false); });
  CHECK(row.detail == "reads 8192 bytes before 'image' (16384 bytes)");
  expect_silence([&] { launch_row_before_begin(image, output, 2048, true); });

  Array<float> copy(128, "copy");
  expect_fault("copy_past_end", simt::FaultKind::out_of_bounds, [&] { launch_copy_past_end(input, copy, false); });
  expect_silence([&] { launch_copy_past_end(input, copy, true); });

  const auto upload = faults([&] { launch_too_long_upload(input); });
  REQUIRE(upload.size() == 1);
  CHECK(upload[0].detail == "1600 bytes for constant memory 'c_four' (16 bytes)");
}

TEST_CASE("simt: misaligned vector access") {
  Array<float> input(ramp(132), "input"), output(32, "output");
  expect_fault("misaligned_vector", simt::FaultKind::misaligned,
               [&] { launch_misaligned_vector(input, output, false); });
  expect_silence([&] { launch_misaligned_vector(input, output, true); });
}

TEST_CASE("simt: reads of what nothing has written") {
  Array<float> output(128, "output"), untouched(64, "untouched");
  const auto fault = expect_fault("uninitialized_shared", simt::FaultKind::uninitialized,
                                  [&] { launch_uninitialized_shared(output, false); });
  CHECK(fault.thread.thread[0] == 63);
  CHECK(fault.count == 2);  // in both blocks: what the first has written is not the second's
  expect_silence([&] { launch_uninitialized_shared(output, true); });
  expect_fault("read_before_begin", simt::FaultKind::uninitialized,
               [&] { launch_read_before_begin(untouched, output, true); });
}

TEST_CASE("simt: a poisoned output counts as unwritten") {
  Array<float> input(ramp(64), "input"), output(64, "output");
  simt::poison(input, 64 * sizeof(float), 0x7fed7fed);
  expect_fault("read_before_begin", simt::FaultKind::uninitialized,
               [&] { launch_read_before_begin(input, output, true); });
}

TEST_CASE("simt: races in a block") {
  Array<float> input(ramp(128), "input"), output(64, "output");
  const auto race =
      expect_fault("missing_sync", simt::FaultKind::race, [&] { launch_missing_sync(input, output, false); });
  CHECK(race.other_pc != 0);
  CHECK(simt::line_of(race).line == marked_line("missing_sync") - 2);  // the write, later here
  CHECK(race.thread.thread[0] != race.other_thread.thread[0]);
  expect_silence([&] { launch_missing_sync(input, output, true); });
  expect_fault("sync_too_late", simt::FaultKind::race, [&] { launch_sync_too_late(input, output, false); });
  expect_silence([&] { launch_sync_too_late(input, output, true); });
}

TEST_CASE("simt: races in a warp: lockstep and shuffles order nothing") {
  Array<float> input(ramp(64), "input"), output(64, "output");
  expect_fault("warp_synchronous", simt::FaultKind::race, [&] { launch_warp_synchronous(input, output, false); });
  expect_silence([&] { launch_warp_synchronous(input, output, true); });
  CHECK(output.values()[0] == 31 * 32 / 2);
  expect_fault("shuffle_orders_nothing", simt::FaultKind::race,
               [&] { launch_shuffle_orders_nothing(input, output, false); });
  expect_silence([&] { launch_shuffle_orders_nothing(input, output, true); });
}

TEST_CASE("simt: a plain write and others' atomics") {
  Array<int> output(1, "output");
  expect_fault("write_before_atomic", simt::FaultKind::race, [&] { launch_write_before_atomic(output, false); });
  expect_silence([&] { launch_write_before_atomic(output, true); });
  CHECK(output.values()[0] == 64);
}

TEST_CASE("simt: __syncwarp orders nothing between warps") {
  Array<float> output(64, "output");
  expect_fault("warp_barrier_only", simt::FaultKind::race, [&] { launch_warp_barrier_only(output, false); });
  expect_silence([&] { launch_warp_barrier_only(output, true); });
}

TEST_CASE("simt: races across blocks") {
  Array<float> output(96, "output");
  const auto race =
      expect_fault("blocks_share_output", simt::FaultKind::race, [&] { launch_blocks_share_output(output, false); });
  CHECK(race.thread.block[0] == 1);
  CHECK(race.other_thread.block[0] == 0);
  expect_silence([&] { launch_blocks_share_output(output, true); });
  expect_fault("blocks_read_each_other", simt::FaultKind::race, [&] { launch_blocks_read_each_other(output, false); });
  expect_silence([&] { launch_blocks_read_each_other(output, true); });
}

TEST_CASE("simt: a fence and an atomic order memory across blocks, an atomic alone does not") {
  Array<float> input(ramp(4), "input"), partial(4, "partial");
  for (bool fixed : {false, true}) {
    Array<unsigned> ticket(std::vector<unsigned>{0}, "ticket");
    Array<float> output(std::vector<float>{0}, "output");
    const auto run = [&] { launch_last_block(input, partial, ticket, output, fixed); };
    if (fixed)
      expect_silence(run);
    else
      expect_fault("last_block", simt::FaultKind::race, run);
    CHECK(output.values()[0] == 6);
  }
}

TEST_CASE("simt: __syncwarp passes on what a lane has acquired, and a block's fence stays in its block") {
  Array<float> input(ramp(4), "input"), partial(4, "partial");
  for (bool fixed : {false, true}) {
    Array<unsigned> ticket(std::vector<unsigned>{0}, "ticket");
    Array<float> output(std::vector<float>{0}, "output");
    const auto run = [&] { launch_acquired_by_warp(input, partial, ticket, output, fixed); };
    if (fixed)
      expect_silence(run);
    else
      expect_fault("acquired_by_warp", simt::FaultKind::race, run);
    CHECK(output.values()[0] == 6);
  }
  Array<unsigned> ticket(std::vector<unsigned>{0}, "ticket");
  Array<float> output(std::vector<float>{0}, "output");
  expect_fault("block_fence", simt::FaultKind::race, [&] { launch_block_fence(input, partial, ticket, output); });
}

TEST_CASE("simt: barriers that not all threads reach, or not the same one") {
  Array<float> output(64, "output");
  const auto missing = expect_fault("exit_before_barrier", simt::FaultKind::missing_barrier,
                                    [&] { launch_exit_before_barrier(output, 40, false); });
  CHECK(missing.detail == "24 of 64 threads ended without it");
  expect_silence([&] { launch_exit_before_barrier(output, 40, true); });
  const auto divergent = expect_fault("barrier_in_branches", simt::FaultKind::divergent_barrier,
                                      [&] { launch_barrier_in_branches(output, false); });
  CHECK(divergent.other_thread.thread[0] == 32);
  CHECK(simt::other_line_of(divergent).line == marked_line("barrier_in_branches") + 3);
  expect_silence([&] { launch_barrier_in_branches(output, true); });
}

TEST_CASE("simt: a collective that a named lane does not reach") {
  Array<float> output(32, "output");
  expect_fault("shuffle_in_branch", simt::FaultKind::divergent_collective,
               [&] { launch_shuffle_in_branch(output, false); });
  expect_silence([&] { launch_shuffle_in_branch(output, true); });
}

#if !defined(__clang__)  // which merges the two calls
TEST_CASE("simt: two barriers of one line are two barriers") {
  Array<float> output(128, "output");
  expect_fault("barriers_of_one_line", simt::FaultKind::divergent_barrier,
               [&] { launch_barriers_of_one_line(output, false); });
  expect_silence([&] { launch_barriers_of_one_line(output, true); });
}
#endif

TEST_CASE("simt: two kinds of collective on one line do not meet") {
  Array<int> output(32, "output");
  expect_fault("collectives_of_one_line", simt::FaultKind::divergent_collective,
               [&] { launch_collectives_of_one_line(output, false); });
  expect_silence([&] { launch_collectives_of_one_line(output, true); });
}

TEST_CASE("simt: a fault deep in calls leaves the program whole") {
  Array<float> input(ramp(64), "input"), output(64, "output");
  expect_fault("deep_fault", simt::FaultKind::out_of_bounds, [&] { launch_deep_fault(input, output, 64, false); });
  expect_silence([&] { launch_deep_fault(input, output, 64, true); });
}

TEST_CASE("simt: machine traps become faults") {
  Array<int> output(32, "output");
  const auto overflow = faults([&] { launch_recursion(output, 100000); });
  REQUIRE(overflow.size() == 1);
  CHECK(overflow[0].kind == simt::FaultKind::stack_overflow);
  CHECK(simt::kernel_name(overflow[0].kernel) == "recursion");
  expect_silence([&] { launch_recursion(output, 10); });
  Array<int> start(std::vector<int>(32, 0), "start");
  const auto small = faults([&] { launch_small_recursion(start, 1000000); });
  REQUIRE(small.size() == 1);
  CHECK(small[0].kind == simt::FaultKind::stack_overflow);

  const auto division = faults([&] { launch_division(output, 0); });
  REQUIRE(division.size() == 1);
  CHECK(division[0].kind == simt::FaultKind::crash);
  expect_silence([&] { launch_division(output, 7); });
  CHECK(output.values()[0] == 14);
}

TEST_CASE("simt: an endless loop ends") {
  Array<float> output(std::vector<float>{0, 0}, "output");
  const auto barrier = faults([&] { launch_endless_barrier(output); });
  REQUIRE(barrier.size() == 1);
  CHECK(barrier[0].kind == simt::FaultKind::endless_loop);
  CHECK(barrier[0].detail.starts_with("no end after 268435456 steps"));  // unless told otherwise
  simt::set_step_limit(1 << 20);  // a loop without barriers would take a quarter of a minute
  const auto found = faults([&] { launch_endless(output); });
  simt::set_step_limit(1 << 28);
  REQUIRE(found.size() == 1);
  CHECK(found[0].kind == simt::FaultKind::endless_loop);
  CHECK(found[0].detail.starts_with("no end after 1048576 steps"));
}

TEST_CASE("simt: limits of a launch") {
  Array<float> output(2048, "output");
  const auto shared = faults([&] { launch_too_much_static_shared(output); });
  REQUIRE(shared.size() == 1);
  CHECK(shared[0].kind == simt::FaultKind::shared_limit);
  const auto threads = faults([&] { launch_too_many_threads(output); });
  REQUIRE(threads.size() == 1);
  CHECK(threads[0].kind == simt::FaultKind::invalid_launch);
}

TEST_CASE("simt: nothing runs after a failed launch, until the next measurement") {
  Array<float> input(ramp(100), "input"), output(100, "output"), untouched(64, "untouched");
  const auto found = faults([&] {
    launch_read_past_end(input, output, 100, false);
    launch_uninitialized_shared(untouched, false);
  });
  CHECK(found.size() == 1);
}
