// Clusters: blocks that run at once, wait for each other and reach each other's shared memory. While a block does not
// run, its shared memory lies at its home (scheduler.cpp), and that is where the others' pointers lead.

#include "common/simt/cluster.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "common/simt/async.hpp"

namespace simt {
namespace {

#define SIMT_PC relative_pc(__builtin_return_address(0))

constexpr unsigned kRankShift = 24;  ///< of an address in the window of the cluster's shared memory: its rank and 1

std::string block_text(unsigned rank) { return "block " + std::to_string(rank) + " of the cluster"; }

bool is_own_shared(std::uintptr_t address) {
  return address - machine.dynamic_begin < machine.dynamic_end - machine.dynamic_begin ||
         address - program().tls_begin < program().tls_end - program().tls_begin;
}

/// Fails unless the cluster has such a block.
void check_rank(unsigned rank, Pc pc) {
  const std::size_t blocks = cluster().blocks.size();
  if (rank >= blocks)
    fail(FaultKind::invalid_operand, pc,
         "the cluster has " + std::to_string(blocks) + " blocks, and none of rank " + std::to_string(rank));
}

/// Of a pointer to shared memory; fails for any other.
SharedPlace shared_place(const void* pointer, Pc pc) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (const auto place = remote_place(address)) return *place;
  if (!is_own_shared(address) && address != machine.dynamic_end)
    fail(FaultKind::invalid_operand, pc, "not an address in shared memory");
  return {cluster().running, address};
}

/// In each warp, lanes that come by an instruction for all of them must come by the same.
bool check_alignment(const AsyncBlock& block) {
  for (unsigned first = 0; first < machine.threads_per_block; first += kWarp) {
    const Thread* aligned = nullptr;
    for (unsigned i = first; i < std::min(first + kWarp, machine.threads_per_block); ++i) {
      const Thread& thread = block.threads[i];
      if (thread.state == State::ended || thread.arrive_line == 0) continue;
      if (!aligned) aligned = &thread;
      if (thread.arrive_pc == aligned->arrive_pc && thread.arrive_line == aligned->arrive_line) continue;
      const auto id = [&](const Thread& of) {
        return thread_id(block.serial, static_cast<unsigned>(&of - block.threads));
      };
      FaultRecord& fault = report(FaultKind::divergent_barrier, thread.arrive_pc, {}, aligned->arrive_pc, id(*aligned));
      fault.thread = id(thread);
      fault.line = thread.arrive_line;
      fault.other_line = aligned->arrive_line;
      machine.stopped = true;
      return false;
    }
  }
  return true;
}

/// Ends the phase of the cluster's barrier if all have come.
void complete_cluster_barrier() {
  Cluster& all = *machine.cluster;
  if (all.alive == 0 || all.arrived < all.alive) return;
  for (const ClusterBlock& block : all.blocks)
    if (!check_alignment(*block.async)) return;
  all.gathered.join(all.known[all.completed & 1]);
  ++all.completed;
  all.known[all.completed & 1] = std::move(all.gathered);
  all.gathered = View(0u);
  all.arrived = 0;
  ++machine.progress;
  for (const ClusterBlock& block : all.blocks)
    for (unsigned i = 0; i < machine.threads_per_block; ++i)
      if (block.async->threads[i].state == State::at_cluster_barrier) block.async->threads[i].state = State::ready;
}

}  // namespace

// ---- The running cluster -------------------------------------------------------------------------------------------

Cluster& cluster() {
  if (machine.cluster) return *machine.cluster;
  static Cluster alone;
  alone = {};
  alone.gathered = alone.known[0] = alone.known[1] = View(0u);
  alone.blocks.push_back({&async_block(), 0, 0, 0, 0, nullptr, nullptr, nullptr, nullptr, false});
  for (unsigned i = 0; i < machine.threads_per_block; ++i) alone.alive += machine.threads[i].state != State::ended;
  return *(machine.cluster = &alone);
}

unsigned rank_of(std::uint32_t block_serial) {
  if (!has_peers()) return block_serial == machine.block_serial ? 0 : kNoRank;
  const auto& blocks = machine.cluster->blocks;
  for (unsigned rank = 0; rank < blocks.size(); ++rank)
    if (blocks[rank].async->serial == block_serial) return rank;
  return kNoRank;
}

const View* known_by_cluster(const View& mine) {
  if (!machine.cluster || mine.passed == 0 || mine.passed + 1 < machine.cluster->completed) return nullptr;
  return &machine.cluster->known[mine.passed & 1];
}

void leave_cluster() {
  Cluster& all = *machine.cluster;
  --all.alive;
  if (machine.thread->cluster_arrivals > all.completed) --all.arrived;
  complete_cluster_barrier();
}

std::optional<SharedPlace> remote_place(std::uintptr_t address) {
  if (!has_peers()) return {};
  const auto& blocks = machine.cluster->blocks;
  for (unsigned rank = 0; rank < blocks.size(); ++rank) {
    const ClusterBlock& block = blocks[rank];
    if (address < block.begin || address >= block.end) continue;
    const bool is_static = address >= block.static_home - kGuardBytes / 2;
    return SharedPlace{rank, is_static ? address - block.static_home + program().tls_begin
                                       : address - block.dynamic_home + machine.dynamic_begin};
  }
  return {};
}

std::uintptr_t present_address(const SharedPlace& place) {
  const Cluster& all = cluster();
  if (place.rank == all.running) return place.address;
  const ClusterBlock& block = all.blocks[place.rank];
  const bool is_static = place.address - program().tls_begin < program().tls_end - program().tls_begin;
  return is_static ? place.address - program().tls_begin + block.static_home
                   : place.address - machine.dynamic_begin + block.dynamic_home;
}

std::uintptr_t canonical_address(std::uintptr_t address) {
  if (!has_peers() || !is_own_shared(address)) return address;
  const ClusterBlock& own = machine.cluster->blocks[machine.cluster->running];
  const bool is_static = address - program().tls_begin < program().tls_end - program().tls_begin;
  return is_static ? address - program().tls_begin + own.static_home
                   : address - machine.dynamic_begin + own.dynamic_home;
}

// ---- Visits --------------------------------------------------------------------------------------------------------

namespace {

void exchange_memory(unsigned rank) {
  const ClusterBlock& block = machine.cluster->blocks[rank];
  std::swap(machine.dynamic_cells, *block.dynamic_cells);
  std::swap(machine.static_cells, *block.static_cells);
  std::swap(machine.dynamic_bytes, *block.dynamic_bytes);
  std::swap(machine.static_bytes, *block.static_bytes);
}

/// Whether something tells the running thread that the block has begun.
bool knows_begin(unsigned rank) {
  const View& mine = async_block().views[machine.thread_number];
  if (mine.passed > 0 || mine.knows_of(rank)) return true;
  const std::uint32_t serial = machine.cluster->blocks[rank].async->serial;
  const auto told = [serial](const Knowledge& known) {
    return known.blocks.count(serial) > 0 || std::any_of(known.threads.begin(), known.threads.end(),
                                                         [&](const auto& of) { return of.first >> 16 == serial; });
  };
  return told(machine.block_acquired) || (machine.thread->ordering && told(machine.thread->ordering->acquired));
}

}  // namespace

bool has_ended(unsigned rank, Pc pc) {
  if (!cluster().blocks[rank].ended) return false;
  report(FaultKind::absent_block, pc, block_text(rank) + " has ended, and its shared memory with it");
  return true;
}

Visit::Visit(unsigned rank, Pc pc) {
  if (rank == cluster().running) return;
  const ClusterBlock& block = machine.cluster->blocks[rank];
  if (!knows_begin(rank))
    report(FaultKind::absent_block, pc,
           block_text(rank) + " may not have begun: no barrier of the cluster comes before");
  exchange_memory(rank);
  machine.visited = block.async;
}

Visit::~Visit() { leave_visit(); }

void leave_visit() {
  if (!machine.visited) return;
  exchange_memory(machine.visited->rank);
  machine.visited = nullptr;
}

// ---- Ends ----------------------------------------------------------------------------------------------------------

namespace {

/// Whether a thread of the running block, as it ended, knew that another block's access to its memory was over.
bool known_at_end(const Access& access) {
  const unsigned rank = rank_of(access.block);
  for (const View& view : async_block().views) {
    if (view.covers(rank, access) || view.outside.covers(access)) return true;
    const View* const others = known_by_cluster(view);
    if (others && (others->covers(rank, access) || others->outside.covers(access))) return true;
  }
  for (unsigned i = 0; i < machine.threads_per_block; ++i)
    if (machine.threads[i].ordering && machine.threads[i].ordering->acquired.covers(access)) return true;
  return machine.block_acquired.covers(access);
}

void report_late(std::uint32_t block_serial, unsigned thread, Pc pc, const char* does) {
  const Cluster& all = *machine.cluster;
  FaultRecord& fault = report(FaultKind::absent_block, pc,
                              block_text(all.running) + " may end before: nothing orders this before its end");
  fault.access = does;
  if (fault.count == 1) fault.thread = thread_id(block_serial, thread);
}

}  // namespace

void end_cluster_block() {
  Cluster& all = *machine.cluster;
  all.blocks[all.running].ended = true;
  if (!has_peers()) return;
  Access approved;  // neighbouring words often have the same
  const auto check = [&](const Access& access, const char* does) {
    if (access.block == 0 || access.block == machine.block_serial || rank_of(access.block) == kNoRank) return;
    if (access.block == approved.block && access.thread == approved.thread && access.warp_clock <= approved.warp_clock)
      return;
    if (known_at_end(access))
      approved = access;
    else
      report_late(access.block, access.thread, access.pc, does);
  };
  for (const auto* cells : {&machine.dynamic_cells, &machine.static_cells}) {
    for (const Cell& cell : *cells) {
      check(cell.write, "writes");
      check(cell.atomic, "updates");
      for (const Access* read : {&cell.read, &cell.second_read, &cell.other_warp_read, &cell.earlier_block_read})
        check(*read, "reads");
    }
  }
  for (const Mbarrier& barrier : async_block().mbarriers)
    for (const auto& [rank, access] : barrier.arrivals_of) check(access, "updates");
  for (const BulkCopy& copy : async_block().copies)
    if (copy.block != machine.block_serial) report_late(copy.block, copy.thread, copy.pc, "writes");
  for (const Reader& reader : async_block().readers)
    if (reader.reads_for_cluster && !reader.outstanding.empty())
      report_late(machine.block_serial,
                  static_cast<unsigned>(&reader - async_block().readers.data()) % async_block().warps * kWarp,
                  reader.pc, "reads");
}

std::string who_waits() {
  if (!has_peers()) return who_waits(async_block());
  std::string places;
  for (const ClusterBlock& block : machine.cluster->blocks)
    if (const std::string text = who_waits(*block.async); !text.empty())
      places += (places.empty() ? "block " : "; block ") + std::to_string(block.async->rank) + ": " + text;
  return places;
}

void report_stuck_cluster() {
  const Cluster& all = *machine.cluster;
  for (unsigned i = 0; i < machine.threads_per_block; ++i) {
    const Thread& thread = machine.threads[i];
    if (thread.state != State::at_cluster_barrier) continue;
    machine.thread_number = i;
    report(FaultKind::stuck_barrier, thread.wait_pc,
           "the cluster's barrier: " + std::to_string(all.arrived) + " of " + std::to_string(all.alive) +
               " threads came; threads wait: " + who_waits())
        .line = thread.line;
    machine.stopped = true;
    return;
  }
}

// ---- For kernels ---------------------------------------------------------------------------------------------------

dim3 cluster_size() { return machine.cluster_size; }
unsigned blocks_in_cluster() { return machine.cluster_size.x * machine.cluster_size.y * machine.cluster_size.z; }
unsigned rank_in_cluster() { return machine.cluster ? machine.cluster->running : 0; }
uint3 block_in_cluster() {
  const uint3 block = machine.block_index;
  const dim3 size = machine.cluster_size;
  return {block.x % size.x, block.y % size.y, block.z % size.z};
}
dim3 grid_of_clusters() {
  const dim3 grid = machine.grid, size = machine.cluster_size;
  return {grid.x / size.x, grid.y / size.y, grid.z / size.z};
}
uint3 cluster_index() {
  const uint3 block = machine.block_index;
  const dim3 size = machine.cluster_size;
  return {block.x / size.x, block.y / size.y, block.z / size.z};
}

void* map_shared(const void* pointer, unsigned rank) {
  const Pc pc = SIMT_PC;
  const Unwatched unwatched;
  check_rank(rank, pc);
  return reinterpret_cast<void*>(present_address({rank, shared_place(pointer, pc).address}));
}

std::uint64_t map_shared_address(std::uint64_t address, unsigned rank) {
  const Pc pc = SIMT_PC;
  const Unwatched unwatched;
  check_rank(rank, pc);
  if (!has_peers()) return address;
  return (address & ((1u << kRankShift) - 1)) | std::uint64_t{rank + 1} << kRankShift;
}

unsigned rank_of_shared(const void* pointer) {
  const Pc pc = SIMT_PC;
  const Unwatched unwatched;
  return shared_place(pointer, pc).rank;
}

bool lies_in(Window window, const void* pointer) {
  const Unwatched unwatched;
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  switch (window) {
    case Window::own_shared:
      return is_own_shared(address);
    case Window::cluster_shared:
      return is_own_shared(address) || remote_place(address);
    case Window::global:
      return is_device_address(address);
    case Window::local:
      return machine.thread->stack_top - address <= kStackBytes;
    case Window::constant:
      return address >= program().constant_begin && address < program().constant_end;
  }
  return false;
}

void cluster_arrive(bool release, bool aligned, int line) {
  const Pc pc = SIMT_PC;
  const Unwatched unwatched;
  Cluster& all = cluster();
  Thread& thread = *machine.thread;
  if (thread.cluster_arrivals > thread.cluster_waits)
    fail(FaultKind::invalid_barrier, pc, "the thread comes to the cluster's barrier twice and has not waited between");
  ++thread.cluster_arrivals;
  thread.arrive_pc = pc;
  thread.arrive_line = aligned ? line : 0;
  if (release) release_view(all.gathered);
  ++all.arrived;
  complete_cluster_barrier();
  if (machine.stopped) stop();
}

void cluster_wait(int line) {
  const Pc pc = SIMT_PC;
  const Unwatched unwatched;
  const Cluster& all = cluster();
  Thread& thread = *machine.thread;
  if (thread.cluster_arrivals == thread.cluster_waits)
    fail(FaultKind::invalid_barrier, pc, "the thread waits at the cluster's barrier and has not come to it");
  thread.wait_pc = pc;
  thread.line = line;
  if (thread.cluster_arrivals > all.completed) yield_as(State::at_cluster_barrier);
  ++thread.cluster_waits;
  async_block().views[machine.thread_number].passed = thread.cluster_waits;
  acquire_outside(all.known[thread.cluster_waits & 1].outside);
}

}  // namespace simt
