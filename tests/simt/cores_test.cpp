// Blocks on several cores: all that a launch leaves behind is what one core leaves.
#include "common/simt/cores.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <utility>

#include "common/simt/machine.hpp"
#include "tests/simt/cores_kernels.hpp"
#include "tests/simt/expect.hpp"

using namespace convladder;
using simt::FaultKind;

namespace {

/// Everything that a launch leaves: memory, what is known of it, counts and faults.
struct Left {
  std::vector<float> output;
  std::vector<unsigned> meeting;
  std::vector<std::uint64_t> accesses;  ///< of each word of the three arrays, by blocks of the launch and what they did
  std::vector<std::uint8_t> states;
  std::map<simt::Pc, Counters> by_pc;
  Counters counters;
  std::int64_t thread_accesses;
  std::vector<simt::FaultRecord> faults;
  std::uint64_t helped;
};

void add_accesses(const void* address, Left& left) {
  const simt::Allocation& allocation = *simt::find_allocation(reinterpret_cast<std::uintptr_t>(address));
  for (std::size_t word = 0; 4 * word < allocation.end - allocation.begin; ++word) {
    const simt::Cell& cell = allocation.cells[word];
    for (const simt::Access* access :
         {&cell.write, &cell.atomic, &cell.read, &cell.second_read, &cell.other_warp_read, &cell.earlier_block_read}) {
      const std::uint32_t first = simt::last_blocks().first;
      left.accesses.insert(left.accesses.end(), {access->block >= first ? access->block - first + 1 : 0, access->pc,
                                                 access->phase, access->warp_clock, access->thread, access->bytes});
    }
  }
  left.states.insert(left.states.end(), allocation.bytes, allocation.bytes + (allocation.end - allocation.begin));
}

void* allocated = nullptr;  ///< by allocate_in_kernel()
void allocate_in_kernel() {
  const simt::Unwatched unwatched;
  allocated = simt::allocate(64, "memory of a kernel");
}

Left run(BlocksDo what, unsigned cores) {
  Array<float> input(ramp(64 * kBlocks + 32), "input"), output(64 * (kBlocks + 1), "output");
  Array<unsigned> meeting(std::vector<unsigned>(kBlocks), "meeting");
  simt::poison(output, 64 * (kBlocks + 1) * sizeof(float), 0x7fedbeef);
  const std::uint64_t helped = simt::helped_blocks();
  simt::set_cores(cores, true);
  simt::begin_measurement();
  launch_blocks(input, output, meeting, what, allocate_in_kernel);
  simt::set_cores(0);
  if (allocated) simt::release(std::exchange(allocated, nullptr));
  const simt::Measurement& measured = simt::measurement();
  Left left{output.values(),
            meeting.values(),
            {},
            {},
            measured.by_pc,
            measured.counters,
            measured.thread_accesses,
            measured.faults,
            simt::helped_blocks() - helped};
  for (const void* address :
       {static_cast<const void*>(input), static_cast<const void*>(output), static_cast<const void*>(meeting)})
    add_accesses(address, left);
  return left;
}

void check_same(const Counters& a, const Counters& b) {
  for (const CounterField& field : kCounterFields) {
    CAPTURE(field.name);
    CHECK(a.*field.member == b.*field.member);
  }
}

void check_same(const simt::ThreadId& a, const simt::ThreadId& b) {
  for (int i = 0; i < 3; ++i) {
    CHECK(a.block[i] == b.block[i]);
    CHECK(a.thread[i] == b.thread[i]);
  }
}

void check_same(const Left& a, const Left& b) {
  // Bit by bit: what nothing has written is a NaN.
  CHECK(std::memcmp(a.output.data(), b.output.data(), a.output.size() * sizeof(float)) == 0);
  CHECK(a.meeting == b.meeting);
  CHECK(a.accesses == b.accesses);
  CHECK(a.states == b.states);
  CHECK(a.thread_accesses == b.thread_accesses);
  check_same(a.counters, b.counters);
  REQUIRE(a.by_pc.size() == b.by_pc.size());
  for (const auto& [pc, counters] : a.by_pc) check_same(counters, b.by_pc.at(pc));
  REQUIRE(a.faults.size() == b.faults.size());
  for (std::size_t i = 0; i < a.faults.size(); ++i) {
    CHECK(a.faults[i].kind == b.faults[i].kind);
    CHECK(a.faults[i].pc == b.faults[i].pc);
    CHECK(a.faults[i].other_pc == b.faults[i].other_pc);
    CHECK(a.faults[i].count == b.faults[i].count);
    CHECK(a.faults[i].detail == b.faults[i].detail);
    check_same(a.faults[i].thread, b.faults[i].thread);
    check_same(a.faults[i].other_thread, b.faults[i].other_thread);
  }
}

}  // namespace

TEST_CASE("simt cores: memory, counters and faults are those of one core") {
  struct Expected {
    BlocksDo what;
    std::vector<FaultKind> faults;
  };
  const Expected cases[] = {
      {BlocksDo::nothing_else, {}},
      {BlocksDo::read_neighbour, {FaultKind::race}},
      {BlocksDo::write_neighbour, {FaultKind::race}},
      {BlocksDo::leave_bounds, {FaultKind::out_of_bounds}},
      {BlocksDo::share_words, {}},
      {BlocksDo::add, {}},
      {BlocksDo::add_late, {}},
      {BlocksDo::sum_by_last, {}},
      {BlocksDo::wait_for_next, {}},
      {BlocksDo::wait_for_first, {}},
      {BlocksDo::allocate, {}},
      {BlocksDo::sum_of_pairs, {}},
  };
  for (const Expected& e : cases) {
    CAPTURE(static_cast<int>(e.what));
    const Left one = run(e.what, 1);
    CHECK(one.helped == 0);
    REQUIRE(one.faults.size() == e.faults.size());
    for (std::size_t i = 0; i < e.faults.size(); ++i) CHECK(one.faults[i].kind == e.faults[i]);
    for (const unsigned cores : {2u, 3u, 5u, 40u}) {
      CAPTURE(cores);
      check_same(one, run(e.what, cores));
    }
  }
}

TEST_CASE("simt cores: blocks that do not depend on each other run in helpers, all but the first share") {
  const Left left = run(BlocksDo::nothing_else, 3);
  CHECK(left.helped == 9);  // of 13 blocks 4 run here
}
