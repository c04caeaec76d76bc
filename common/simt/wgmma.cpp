// Matrix products of a warpgroup. Each warp computes its 16 rows when it issues a wgmma. Until the wait the result is
// kept aside, and the lanes' arrays, which stand for registers, hold poison.

#include <algorithm>
#include <bit>
#include <cstring>

#include "common/simt/async.hpp"
#include "common/simt/hopper.hpp"
#include "common/simt/warp.hpp"
#include "common/stage/half_convert.hpp"

namespace simt {
namespace {

constexpr std::uint32_t kPoison = 0x7fedbeef;  ///< as a float, a NaN
constexpr unsigned kRows = 16;                 ///< of a warp
constexpr unsigned kStep = 32;                 ///< bytes of a row of A or B that one wgmma reads
constexpr unsigned kMaxColumns = 256;
constexpr unsigned kPitch = kMaxColumns + 8;  ///< of B's numbers; with a power of two they would share few cache sets

#define SIMT_PC relative_pc(__builtin_return_address(0))

unsigned warp_number() { return machine.thread_number / kWarp; }

/// The whole warp has come, as part of a whole warpgroup.
WarpProducts& products_of_warp(unsigned mask) {
  become(static_cast<unsigned>(__builtin_ctz(mask)));
  const Pc pc = machine.thread->wait_pc;
  if (mask != ~0u) fail(FaultKind::divergent_collective, pc, "wgmma needs all 32 lanes of the warp; some have ended");
  if (machine.threads_per_block < (warp_number() / 4 + 1) * 4 * kWarp)
    fail(FaultKind::divergent_collective, pc,
         "wgmma is for four warps, the first a multiple of 4; the block ends before the fourth");
  return async_block().products[warp_number()];
}

// ---- Registers -----------------------------------------------------------------------------------------------------

bool overlap(const Registers::Range& range, std::uintptr_t begin, std::uintptr_t end) {
  return range.begin < end && begin < range.end;
}

/// What wgmma is given must not have been touched since the warp's last wgmma_fence().
void check_untouched(const void* registers, unsigned count, const char* what, Pc pc) {
  const auto begin = reinterpret_cast<std::uintptr_t>(registers);
  for (const Registers::Range& range : machine.thread->registers->touched)
    if (overlap(range, begin, begin + 4 * std::uintptr_t{count}))
      fail(FaultKind::missing_wgmma_fence, pc, std::string(what) + " touched since the last wgmma_fence()", range.pc,
           current_thread());
}

// ---- Operands in shared memory -------------------------------------------------------------------------------------

/// What a matrix descriptor says.
struct Operand {
  std::uintptr_t start;
  unsigned across, down;  ///< bytes between pieces of 8 rows of 16 bytes, to the next columns and to the next 8 rows
  unsigned span;          ///< of the swizzle; 0: none

  Operand(std::uint64_t descriptor, Pc pc)
      : start(machine.dynamic_begin + ((descriptor & 0x3fff) << 4)),
        across(static_cast<unsigned>(descriptor >> 16 & 0x3fff) << 4),
        down(static_cast<unsigned>(descriptor >> 32 & 0x3fff) << 4) {
    const auto layout = static_cast<unsigned>(descriptor >> 62);
    if (layout == 3 || (descriptor >> 49 & 7) != 0)
      fail(FaultKind::invalid_operand, pc, "no descriptor that swizzled_descriptor() or plain_descriptor() makes");
    span = layout == 0 ? 0 : layout == 1 ? 128 : 64;
    if (span != 0 && start % span + kStep > span)
      fail(FaultKind::misaligned, pc, "the 32 bytes of a swizzled row that a wgmma reads lie in two rows");
  }

  /// Where 16 bytes of a row lie. @param piece 0 or 1
  std::uintptr_t address(unsigned row, unsigned piece) const {
    if (span == 0) return start + std::uintptr_t{piece} * across + std::uintptr_t{row / 8} * down + row % 8 * kPiece;
    return swizzled(start + std::uintptr_t{row / 8} * down + row % 8 * span + piece * kPiece, span);
  }
};

/// Copies rows of 32 bytes, and leaves the reader's ticket on what it reads. Checks what this warp has not read since
/// it was written.
void read_rows(const Operand& operand, unsigned first_row, unsigned rows, std::int32_t ticket, std::uint8_t* to,
               Pc pc) {
  AsyncBlock& block = async_block();
  const unsigned warp = warp_number();
  AsyncRead read(pc);
  std::optional<WarpWide> warp_wide;
  for (unsigned i = 0; i < 2 * rows; ++i) {
    const std::uintptr_t address = operand.address(first_row + i / 2, i % 2);
    if (address < machine.dynamic_begin || address + kPiece > machine.dynamic_end)
      check_async_operand(address, kPiece, kPiece, pc);
    const std::size_t piece = (address - machine.dynamic_begin) / kPiece;
    std::int32_t& approved = block.approved[piece * block.warps + warp];
    if (approved != block.version[piece]) {
      if (!warp_wide) warp_wide.emplace();
      if (read.check(address, kPiece)) approved = block.version[piece];
    }
    block.ticket(piece, warp) = ticket;
    std::memcpy(to + i * std::size_t{kPiece}, reinterpret_cast<const void*>(address), kPiece);
  }
}

/// The rows of A that the lanes of this warp hold.
void gather_rows(void** lanes, std::uint8_t* to) {
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    const unsigned* const a = static_cast<const Wgmma*>(lanes[lane])->a_lanes;
    for (unsigned i = 0; i < 4; ++i)
      std::memcpy(to + (lane / 4 + i % 2 * 8) * kStep + lane % 4 * 4 + i / 2 * 16, &a[i], 4);
  }
}

// ---- Products ------------------------------------------------------------------------------------------------------

/// @param bytes `rows` rows of 32  @param numbers [k][pitch], by row
void decode(const std::uint8_t* bytes, unsigned rows, unsigned element_bytes, double* numbers, unsigned pitch) {
  for (unsigned row = 0; row < rows; ++row) {
    const std::uint8_t* const from = bytes + row * std::size_t{kStep};
    for (unsigned k = 0; k < kStep / element_bytes; ++k) {
      if (element_bytes == 2) {
        std::uint16_t bits;
        std::memcpy(&bits, from + 2 * k, 2);
        numbers[k * pitch + row] = convladder::from_half_bits(bits);
      } else {
        numbers[k * pitch + row] = static_cast<std::int8_t>(from[k]);
      }
    }
  }
}

/// sums = a row of A times B. @param factors of the row, kRows apart
void multiply_row(const double* factors, const double* b, unsigned depth, unsigned n, double* sums) {
  std::fill_n(sums, n, 0.0);
  for (unsigned k = 0; k < depth; k += 4, factors += 4 * kRows, b += 4 * kPitch) {
    const double f0 = factors[0], f1 = factors[kRows], f2 = factors[2 * kRows], f3 = factors[3 * kRows];
    for (unsigned i = 0; i < n; ++i)
      sums[i] += f0 * b[i] + f1 * b[kPitch + i] + f2 * b[2 * kPitch + i] + f3 * b[3 * kPitch + i];
  }
}

float add(double sum, float before) { return static_cast<float>(sum + double{before}); }
/// Wraps, as sums on a GPU do.
int add(double sum, int before) {
  return static_cast<int>(static_cast<unsigned>(static_cast<int>(sum)) + static_cast<unsigned>(before));
}

/// Adds A B to the accumulators, or sets them. Products are exact, and sums of bytes; those of halves are made in
/// double and rounded once. @tparam T of the accumulators
template <class T>
void multiply(const std::uint8_t* a, const std::uint8_t* b, const Wgmma& form, std::uint32_t* values) {
  const unsigned depth = kStep / form.element_bytes, n = form.n, count = n / 2;
  static double of_a[kStep * kRows], of_b[kStep * kPitch], sums[kMaxColumns];
  decode(a, kRows, form.element_bytes, of_a, kRows);
  decode(b, n, form.element_bytes, of_b, kPitch);
  for (unsigned row = 0; row < kRows; ++row) {
    multiply_row(of_a + row, of_b, depth, n, sums);
    // Row 8 i + g: two neighbouring columns in each of the lanes 4 g to 4 g + 3.
    std::uint32_t* const first = values + std::size_t{row % 8} * 4 * count + row / 8 * 2;
    for (unsigned column = 0; column < n; ++column) {
      std::uint32_t& place = first[std::size_t{column % 8 / 2} * count + column / 8 * 4 + column % 2];
      place = std::bit_cast<std::uint32_t>(add(sums[column], form.accumulate ? std::bit_cast<T>(place) : T{}));
    }
  }
}

/// The i-th wgmmas of a warpgroup's warps must be the same.
void check_agreement(const Wgmma& product, Pc pc) {
  Warpgroup& group = async_block().warpgroups[warp_number() / 4];
  unsigned& ahead = group.ahead[warp_number() % 4];
  const bool in_registers = product.a_lanes != nullptr;
  const Issued issued{product.n, product.element_bytes, product.a, product.b, in_registers, product.accumulate, pc};
  if (ahead == group.issued.size())
    group.issued.push_back(issued);
  else if (const Issued& other = group.issued[ahead]; !(other == issued))
    fail(FaultKind::divergent_collective, pc,
         "the warps of a warpgroup differ in the shape, operands or accumulation of a wgmma", other.pc,
         thread_id(machine.block_serial, warp_number() / 4 * 4 * kWarp));
  ++ahead;
  if (*std::min_element(group.ahead.begin(), group.ahead.end()) == 0) return;
  group.issued.pop_front();
  for (unsigned& each : group.ahead) --each;
}

/// The accumulators, in flight from now on: those that are already, or what the lanes hold.
Accumulators& take_accumulators(void** lanes, WarpProducts& warp, Pc pc) {
  const Wgmma& first = *static_cast<const Wgmma*>(lanes[0]);
  const unsigned count = first.n / 2;
  for (Accumulators& each : warp.in_flight)
    if (each.of_lanes[0] == first.d && each.count == count) return each;
  Accumulators taken{{}, count, std::vector<std::uint32_t>(std::size_t{kWarp} * count), 0, pc};
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    become(lane);
    void* const d = static_cast<const Wgmma*>(lanes[lane])->d;
    const auto begin = reinterpret_cast<std::uintptr_t>(d), end = begin + 4 * std::uintptr_t{count};
    auto& in_flight = machine.thread->registers->in_flight;
    for (const Registers::Range& range : in_flight)
      if (overlap(range, begin, end))
        fail(FaultKind::wgmma_in_flight, pc, "the accumulators overlap those of another wgmma in flight", range.pc,
             current_thread());
    check_untouched(d, count, "the accumulators were", pc);
    in_flight.push_back({begin, end, pc});
    taken.of_lanes[lane] = d;
    std::memcpy(&taken.values[std::size_t{lane} * count], d, 4 * std::size_t{count});
    std::fill_n(static_cast<std::uint32_t*>(d), count, kPoison);
  }
  return warp.in_flight.emplace_back(std::move(taken));
}

void issue_wgmma(void** lanes, unsigned mask) {
  WarpProducts& warp = products_of_warp(mask);
  const Wgmma& product = *static_cast<const Wgmma*>(lanes[0]);
  const Pc pc = machine.thread->wait_pc;
  for (unsigned lane = 1; lane < kWarp; ++lane) {
    const Wgmma& other = *static_cast<const Wgmma*>(lanes[lane]);
    if (other.a == product.a && other.b == product.b && other.accumulate == product.accumulate) continue;
    fail(FaultKind::divergent_collective, pc, "the lanes give different operands to a wgmma");
  }
  if (!warp.fenced) fail(FaultKind::missing_wgmma_fence, pc, "no wgmma_fence() before the warp's first wgmma");
  check_agreement(product, pc);
  if (product.a_lanes) {
    for (unsigned lane = 0; lane < kWarp; ++lane) {
      become(lane);
      check_untouched(static_cast<const Wgmma*>(lanes[lane])->a_lanes, 4, "the registers of A were", pc);
    }
  }
  if (BlockEvent* event = record_event(Deed::wgmma, pc)) {
    event->lanes = ~0u;
    event->bytes = product.n;
  }
  Accumulators& sums = take_accumulators(lanes, warp, pc);
  sums.ticket = ++warp.issued;
  sums.pc = pc;
  Reader& reader = async_block().readers[warp_number()];
  reader.issued = warp.issued;
  reader.pc = pc;

  std::uint8_t a[kRows * kStep], b[kMaxColumns * kStep];
  if (product.a_lanes)
    gather_rows(lanes, a);
  else
    read_rows(Operand(product.a, pc), warp_number() % 4 * kRows, kRows, warp.issued, a, pc);
  read_rows(Operand(product.b, pc), 0, product.n, warp.issued, b, pc);
  if (product.element_bytes == 2)
    multiply<float>(a, b, product, sums.values.data());
  else
    multiply<int>(a, b, product, sums.values.data());
}

// ---- Fence, commit, wait -------------------------------------------------------------------------------------------

void fence_registers(void**, unsigned mask) {
  products_of_warp(mask).fenced = true;
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    become(lane);
    if (!machine.thread->registers) machine.thread->registers = std::make_unique<Registers>();
    machine.thread->registers->touched.clear();
  }
}

void commit_group(void**, unsigned mask) {
  WarpProducts& warp = products_of_warp(mask);
  warp.committed = warp.issued;
  warp.groups.push_back(warp.issued);
}

/// Gives the lanes their results.
void hand_out(const Accumulators& sums, Pc pc) {
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    become(lane);
    auto* const d = static_cast<std::uint32_t*>(sums.of_lanes[lane]);
    if (!std::all_of(d, d + sums.count, [](std::uint32_t word) { return word == kPoison; }))
      fail(FaultKind::wgmma_in_flight, pc, "the accumulators were changed between a wgmma and its wait", sums.pc,
           current_thread());
    std::memcpy(d, &sums.values[std::size_t{lane} * sums.count], 4 * std::size_t{sums.count});
    std::erase_if(machine.thread->registers->in_flight,
                  [&](const Registers::Range& range) { return range.begin == reinterpret_cast<std::uintptr_t>(d); });
  }
}

void wait_for_groups(void** lanes, unsigned mask) {
  WarpProducts& warp = products_of_warp(mask);
  const Pc pc = machine.thread->wait_pc;
  const unsigned pending = *static_cast<const unsigned*>(lanes[0]);
  if (pending == 0 && warp.issued != warp.committed)
    fail(FaultKind::wgmma_in_flight, pc, "waits for wgmmas that no wgmma_commit() has closed");
  AsyncBlock& block = async_block();
  Reader& reader = block.readers[warp_number()];
  for (; warp.groups.size() > pending; warp.groups.pop_front()) reader.done = warp.groups.front();
  const unsigned number = warp_number();
  for (unsigned lane = 0; lane < kWarp; ++lane) block.views[number * kWarp + lane].reads(number) = reader.done;
  for (const Accumulators& sums : warp.in_flight)
    if (sums.ticket <= reader.done) hand_out(sums, pc);
  std::erase_if(warp.in_flight, [&](const Accumulators& sums) { return sums.ticket <= reader.done; });
}

}  // namespace

void touch_registers(std::uintptr_t address, unsigned bytes, Pc pc) {
  Registers& registers = *machine.thread->registers;
  const std::uintptr_t end = address + bytes;
  for (const Registers::Range& range : registers.in_flight)
    if (overlap(range, address, end))
      fail(FaultKind::wgmma_in_flight, pc, "the accumulators of a wgmma that was not waited for", range.pc,
           current_thread());
  // Most accesses follow each other through an array.
  constexpr std::size_t kNewest = 4, kMost = 1024;
  auto& touched = registers.touched;
  for (std::size_t i = touched.size(); i-- > 0 && i + kNewest >= touched.size();) {
    Registers::Range& range = touched[i];
    if (address > range.end || end < range.begin) continue;
    range.begin = std::min(range.begin, address);
    range.end = std::max(range.end, end);
    return;
  }
  if (touched.size() < kMost) touched.push_back({address, end, pc});
}

namespace {

/// What nvcc gives each thread of a kernel with setmaxnreg at the start, if a multiprocessor has one block of it: the
/// register file, shared out among whole warpgroups, in pieces of eight.
unsigned registers_at_start() {
  const unsigned groups = (machine.threads_per_block + 4 * kWarp - 1) / (4 * kWarp);
  return std::min(65536 / (groups * 4 * kWarp) / 8 * 8, 256U);
}

/// Whether the warps' increases can all be granted: every fourth warp shares a part of the multiprocessor, and a
/// quarter of its registers, with this one.
bool check_registers() {
  const AsyncBlock& block = async_block();
  for (unsigned part = 0; part < 4; ++part) {
    unsigned asked = 0, warps = 0;
    for (unsigned warp = part; warp < block.registers.size(); warp += 4, ++warps) asked += block.registers[warp];
    if (asked <= registers_at_start() * warps) continue;
    report(FaultKind::invalid_operand, block.registers_pc,
           "every fourth warp from " + std::to_string(part) + " on: " + std::to_string(warps) + " with " +
               std::to_string(asked) + " registers a thread in all; they were started with " +
               std::to_string(registers_at_start()) + " each, so on a GPU they wait forever");
    return false;
  }
  return true;
}

}  // namespace

void set_max_registers(unsigned registers, bool increase) {
  const Pc pc = SIMT_PC;
  const Unwatched unwatched;
  AsyncBlock& block = async_block();
  if (block.registers.empty()) block.registers.assign(block.warps, registers_at_start());
  unsigned& of_warp = block.registers[machine.thread_number / kWarp];
  if (increase ? registers < of_warp : registers > of_warp)
    fail(FaultKind::invalid_operand, pc,
         std::to_string(registers) + " registers are no " + (increase ? "increase" : "decrease") + ": the thread has " +
             std::to_string(of_warp));
  of_warp = registers;
  if (increase) block.registers_pc = pc;
}

void end_async_block() {
  if (!check_registers()) {
    machine.stopped = true;
    return;
  }
  const auto& groups = async_block().warpgroups;
  const auto uneven =
      std::find_if(groups.begin(), groups.end(), [](const Warpgroup& group) { return !group.issued.empty(); });
  if (uneven == groups.end()) return;
  const auto most = std::max_element(uneven->ahead.begin(), uneven->ahead.end()) - uneven->ahead.begin();
  machine.thread_number = static_cast<unsigned>((uneven - groups.begin()) * 4 + most) * kWarp;
  report(FaultKind::divergent_collective, uneven->issued.front().pc,
         "not all four warps of the warpgroup came to this wgmma");
  machine.stopped = true;
}

std::uint64_t matrix_descriptor(const void* shared, unsigned span, unsigned leading_bytes, unsigned stride_bytes) {
  const Pc pc = SIMT_PC;
  const Unwatched unwatched;
  const auto address = reinterpret_cast<std::uintptr_t>(shared);
  check_async_operand(address, 0, kPiece, pc);
  const std::uint64_t layout = span == 0 ? 0 : span == 128 ? 1 : 2;
  return (address - machine.dynamic_begin) >> 4 | std::uint64_t{leading_bytes >> 4} << 16 |
         std::uint64_t{stride_bytes >> 4} << 32 | layout << 62;
}

void wgmma(const Wgmma& product, int line) {
  const Pc pc = SIMT_PC;
  const Unwatched unwatched;
  Wgmma copy = product;
  wait_at_collective(~0u, &copy, issue_wgmma, Orders::nothing, line, pc);
}

void wgmma_fence(int line) {
  const Pc pc = SIMT_PC;
  wait_at_collective(~0u, nullptr, fence_registers, Orders::nothing, line, pc);
}

void wgmma_commit(int line) {
  const Pc pc = SIMT_PC;
  wait_at_collective(~0u, nullptr, commit_group, Orders::nothing, line, pc);
}

void wgmma_wait(unsigned pending, int line) {
  const Pc pc = SIMT_PC;
  wait_at_collective(~0u, &pending, wait_for_groups, Orders::nothing, line, pc);
}

}  // namespace simt
