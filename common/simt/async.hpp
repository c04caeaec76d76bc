/// @file
/// What a block remembers once it uses an mbarrier, a named barrier, a bulk copy or wgmma: who knows of whose accesses,
/// copies under way, and which parts of shared memory asynchronous instructions may still read. In async.cpp (order,
/// barriers), bulk.cpp (copies), wgmma.cpp (products) and cluster.cpp (blocks that reach each other's shared memory).
#pragma once
#include <bitset>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "common/simt/machine.hpp"

namespace simt {

// ---- What threads know of each other -------------------------------------------------------------------------------

/// What a thread knows to have happened before, in the running block; a barrier's phase gathers it of those that
/// arrive. All of it only grows, so the union of two views is the larger of each pair of numbers.
class View {
 public:
  View();  ///< of the running block
  explicit View(unsigned rank);
  void join(const View& other);

  std::int32_t& clock(unsigned thread) { return numbers_[thread]; }              ///< its accesses up to this clock
  std::int32_t& fenced(unsigned thread) { return numbers_[threads_ + thread]; }  ///< of these, before a proxy fence
  std::int32_t& fenced_phase() { return numbers_[2 * threads_]; }  ///< all accesses in phases of the block before it
  std::int32_t& reads(unsigned reader) { return numbers_[2 * threads_ + 1 + reader]; }  ///< tickets that are done
  std::int32_t& phase() { return numbers_[first_phase() - 1]; }  ///< of the block, when somebody told last
  std::int32_t& phases(unsigned mbarrier);  ///< of it, that are complete: the copies that belong to them have landed

  // Of a block of the cluster, by its rank:
  bool covers(unsigned rank, const Access& access) const;
  bool covers_fence(unsigned rank, const Access& write) const;  ///< a proxy fence after it
  std::int32_t reads_of(unsigned rank, unsigned reader) const;
  void set_reads_of(unsigned rank, unsigned reader, std::int32_t done);
  bool knows_of(unsigned rank) const;  ///< anything
  /// Adds what is known of that block's threads.
  void publish(unsigned rank, std::uint32_t block_serial, Knowledge& published) const;
  /// A proxy fence: covers all that is known.
  void fence();

  std::int32_t passed = 0;  ///< barriers of the cluster: what those that came to them had done before
  Knowledge outside;        ///< of other blocks, and through atomics

 private:
  std::int32_t number_of(unsigned rank, std::size_t index) const;
  std::size_t first_phase() const { return 2 * std::size_t{threads_} + 1 + 2 * kMaxThreads / kWarp + 1; }

  unsigned threads_, rank_;
  std::vector<std::int32_t> numbers_;
  std::vector<std::vector<std::int32_t>> others_;  ///< of the cluster's other blocks, by rank; empty for nothing
};

// ---- Barriers and copies -------------------------------------------------------------------------------------------

struct Mbarrier {
  std::uintptr_t address;
  unsigned arrivals;                       ///< of each phase
  unsigned pending;                        ///< arrivals that the phase still waits for
  std::uint32_t phase = 0;                 ///< phases completed at this address
  std::uint32_t first_phase = 0;           ///< of them, before the last mbarrier_init()
  std::uint64_t expected = 0, landed = 0;  ///< bytes, in this phase
  View gathered, completed;                ///< of those that arrived in this phase, and in the one before
  Access init;
  bool fenced = false;                     ///< its initialisation is visible to bulk copies
  std::int32_t fenced_before = 0;          ///< that fence comes before so many barriers of the cluster, and one more
  std::uint32_t copier_block = 0;          ///< serial number: of the last thread that started a copy for it
  unsigned copier = 0;                     ///< that thread
  std::map<unsigned, Access> arrivals_of;  ///< of other blocks of the cluster, by rank: the last
};

constexpr unsigned kMostTiles = 16;  ///< of two warps or more, in a block

struct NamedBarrier {
  unsigned threads = 0;
  std::bitset<kMaxThreads> arrived;
  View gathered;
};

/// What a bulk reduction does to what is there: `update(there, more)` for each element of so many bytes.
struct Reduction {
  void (*update)(void* there, const void* more) = nullptr;  ///< null: a copy
  unsigned element = 0;
};

/// A bulk copy to shared memory that has not landed.
struct BulkCopy {
  std::uintptr_t to;
  std::vector<std::uint8_t> bytes;
  unsigned swizzle;  ///< see swizzled()
  unsigned mbarrier;
  std::uint32_t phase;
  std::uint32_t block;  ///< serial number: of the thread that started it
  unsigned thread;
  Pc pc;
  Reduction reduction{};
  std::int32_t ticket = 0;  ///< of its read, where it reads shared memory; of that block
  unsigned reader = 0;
};

enum class WgmmaElement;  // hopper.hpp

/// A wgmma that all four warps of a warpgroup must agree in.
struct Issued {
  unsigned n;
  WgmmaElement element, element_b;
  std::uint64_t a, b;
  bool a_in_registers, accumulate, half_sums, negated, transposed_a, transposed_b;
  Pc pc;
  /// But for the place.
  bool operator==(const Issued& other) const {
    const auto form = [](const Issued& it) {
      return std::tuple(it.n, it.element, it.element_b, it.a, it.b, it.a_in_registers, it.accumulate, it.half_sums,
                        it.negated, it.transposed_a, it.transposed_b);
    };
    return form(*this) == form(other);
  }
};

/// The i-th wgmmas of a warpgroup's warps.
struct Warpgroup {
  std::deque<Issued> issued;        ///< those that not all four warps have come to, the oldest first
  std::array<unsigned, 4> ahead{};  ///< how many of these each warp has come to
};

/// The accumulators of a wgmma in flight: what its wait will hand out.
struct Accumulators {
  std::array<void*, kWarp> of_lanes;
  unsigned count;                     ///< registers of a lane
  std::vector<std::uint32_t> values;  ///< bits, [lane][count]
  std::int32_t ticket;                ///< of the last wgmma that adds to them
  Pc pc;
};

/// A warp's wgmmas. Each takes the next ticket.
struct WarpProducts {
  bool fenced = false;              ///< by a first wgmma_fence()
  std::int32_t issued = 0;          ///< tickets
  std::deque<std::int32_t> groups;  ///< the last ticket of each committed group that was not waited for
  std::int32_t committed = 0;       ///< the last ticket that belongs to a group
  std::vector<Accumulators> in_flight;
};

/// Bulk copies from shared memory by one thread. Each takes the next ticket of its warp.
struct BulkStores {
  std::vector<std::int32_t> open;
  std::deque<std::vector<std::int32_t>> groups;
};

/// Tickets of asynchronous reads of shared memory: one reader for a warp's wgmmas, one for its bulk copies. The warps
/// of a warpgroup give the same wgmma the same ticket.
struct Reader {
  std::int32_t issued = 0;
  std::int32_t done = 0;               ///< all tickets up to this one have been waited for, by a warp of the warpgroup
  std::set<std::int32_t> outstanding;  ///< of bulk copies, which threads wait for one by one
  bool reads_for_cluster = false;      ///< also for copies to other blocks
  Pc pc = 0;                           ///< of the last
};

constexpr unsigned kPiece = 16;  ///< bytes of shared memory that are remembered together

struct AsyncBlock {
  Thread* threads = nullptr;  ///< of this block, also while another one runs
  std::uint32_t serial = 0;
  unsigned rank = 0;        ///< in its cluster
  std::vector<View> views;  ///< of each thread
  std::deque<Mbarrier> mbarriers;
  std::array<NamedBarrier, kMostTiles + 1> named;  ///< 1 to 15 by their numbers; those of tiles from the last one down
  std::deque<BulkCopy> copies;                     ///< the oldest first
  std::vector<Reader> readers;                     ///< of each warp its wgmmas, then of each warp its bulk copies
  std::vector<Warpgroup> warpgroups;
  std::vector<WarpProducts> products;  ///< of each warp
  std::vector<BulkStores> stores;      ///< of each thread
  std::vector<unsigned> registers;     ///< of each warp, of a thread; where set_max_registers() was called
  Pc registers_pc = 0;                 ///< of the last increase

  // Of each 16 bytes of shared memory, dynamic first, then as much of the static as was asynchronously accessed:
  std::vector<std::int32_t> tickets;  ///< [piece][reader] of the last read
  std::vector<std::int32_t> version;  ///< [piece] how often it was written
  std::vector<std::int32_t>
      approved;  ///< [piece][warp] the version that a wgmma of this warp was found to read rightly

  unsigned warps;
  std::size_t dynamic_pieces = 0;
  /// Makes room for so many pieces.
  void reach(std::size_t pieces);
  std::int32_t& ticket(std::size_t piece, unsigned reader) { return tickets[piece * readers.size() + reader]; }
  /// The number of the 16 bytes at an address.
  std::size_t piece(std::uintptr_t address) const {
    const std::uintptr_t in_dynamic = address - machine.dynamic_begin;
    if (in_dynamic < machine.dynamic_end - machine.dynamic_begin) return in_dynamic / kPiece;
    return dynamic_pieces + address / kPiece - program().tls_begin / kPiece;
  }
};

/// Of the running block, made at the first call.
AsyncBlock& async_block();
/// Of the block whose shared memory is looked at: the running one, but in a Visit.
AsyncBlock& memory_block();

// ---- Clusters
// --------------------------------------------------------------------------------------------------------

/// A block of the running cluster. What is known of its shared memory is in the machine while it runs, else here.
struct ClusterBlock {
  AsyncBlock* async;
  std::uintptr_t begin, end;                 ///< what follows, with room around
  std::uintptr_t dynamic_home, static_home;  ///< where its shared memory lies while another block runs
  std::vector<Cell>*dynamic_cells, *static_cells;
  std::vector<std::uint8_t>*dynamic_bytes, *static_bytes;
  bool ended;
};

/// The running cluster. A block without one is a cluster by itself as soon as it asks.
struct Cluster {
  std::vector<ClusterBlock> blocks;  ///< by rank
  unsigned running = 0;              ///< rank
  // Its barrier: threads that have not ended, and how many of them have come to the present phase; phases before.
  unsigned alive = 0, arrived = 0;
  std::int32_t completed = 0;
  View gathered{0u};                     ///< of those that came
  View known[2] = {View(0u), View(0u)};  ///< to those that have passed the last and the one before, by parity
};

/// Made at the first call where the launch has no clusters.
Cluster& cluster();
/// Whether other blocks run beside this one.
inline bool has_peers() { return machine.cluster && machine.cluster->blocks.size() > 1; }
constexpr unsigned kNoRank = ~0u;
/// The rank of a block in the running cluster, or kNoRank.
unsigned rank_of(std::uint32_t block_serial);
/// What a thread knows by the cluster's barriers that it has passed, or null.
const View* known_by_cluster(const View& mine);
/// The running thread has ended.
void leave_cluster();
/// A block has ended: nothing may still reach for its shared memory.
void end_cluster_block();
/// When no block of a cluster can go on.
void report_stuck_cluster();

/// A place in the shared memory of a block of the cluster: its address as that block sees it.
struct SharedPlace {
  unsigned rank;
  std::uintptr_t address;
};
/// Nothing where it is no address of another block's shared memory.
std::optional<SharedPlace> remote_place(std::uintptr_t address);
/// Where its bytes lie now.
std::uintptr_t present_address(const SharedPlace& place);
/// The same address for the same place, whichever block asks.
std::uintptr_t canonical_address(std::uintptr_t address);

/// Whether a block of the cluster has ended, and its shared memory with it: then what the running thread wants there
/// does nothing, and is reported.
bool has_ended(unsigned rank, Pc pc);
/// While it lives, the shared memory that is checked is that of a block of the cluster. Reports a block that may not
/// have begun; it has not ended.
class Visit {
 public:
  Visit(unsigned rank, Pc pc);
  ~Visit();
  Visit(const Visit&) = delete;
};
/// Ends a Visit that a fault has left.
void leave_visit();

// ---- Order (for observe.cpp and scheduler.cpp) ---------------------------------------------------------------------

/// Whether the running thread (or each lane of its warp: WarpWide) knows of an access of this block by the barriers
/// here.
bool known_by_barriers(const Access& earlier);
/// The thread that started the bulk copy.
ThreadId copier(const Access& copy);
/// The running thread's knowledge goes to whoever learns of `gathered`.
void release_view(View& gathered);
/// The running thread learns of other blocks.
void acquire_outside(const Knowledge& outside);
/// __syncwarp: the lanes of the mask learn what each of them knows.
void order_lanes(unsigned first_thread, unsigned mask);
/// __syncthreads: the same for the block.
void order_block();
/// For a fence: what the running thread knows of others goes on to whom an atomic tells.
void publish_known_threads(Knowledge& published);
/// Each write to shared memory, before it is made: nothing asynchronous may still read there.
void write_shared(std::uintptr_t address, unsigned bytes, Pc pc);
/// The thread touches its own stack.
void touch_registers(std::uintptr_t address, unsigned bytes, Pc pc);

/// When no thread can run: lands copies that somebody waits for. Whether a thread can run now; a fault where some wait
/// in vain, unless another block of the cluster may help.
bool resume_waiting();
/// Reports threads of the running block that wait for a barrier in vain. Whether there are any.
bool report_stuck_barrier();
/// Reports a wgmma that not all four warps of the group came to. @param waiting who waits, and where, or ""
void report_uneven_wgmma(const Warpgroup& group, const std::string& waiting);
/// Whether the block has a thread that can run, or will when a copy lands.
bool can_run(const AsyncBlock& block);
/// What is asked of a block at its end.
void end_async_block();

// ---- For bulk.cpp and wgmma.cpp ------------------------------------------------------------------------------------

/// The barrier that an mbarrier_init() has made there, for an operation of the running thread.
/// @param by_copy not now, but when the copy is complete
Mbarrier& mbarrier_at(std::uintptr_t address, Pc pc, bool by_copy = false);
/// Lets the phase end, if nothing is missing. @param barrier of memory_block()
void complete_phase(Mbarrier& barrier, Pc pc);
/// Those copies by cp.async land that copies_arrive() has bound to the phase.
void land_copies(std::uintptr_t mbarrier, std::uint32_t phase);
/// Each place where threads of a block wait, and how many: "12 at line 34".
std::string who_waits(const AsyncBlock& block);
/// The same of the running block, or of each in its cluster.
std::string who_waits();

/// Reports what an asynchronous access may not see, or may be seen after: a write that it knows of, by ordinary
/// instructions, without a proxy fence in between. Whether all was well.
bool check_proxy_fence(const Access& write, Pc pc);
/// Checks an instruction's asynchronous reads of shared memory.
class AsyncRead {
 public:
  explicit AsyncRead(Pc pc) : pc_(pc), now_(access_now(Kind::load, pc)) {}
  /// Reports it if the writers of these bytes do not allow the read yet. Whether all was well.
  /// @param bytes a multiple of 16, as is the address
  bool check(std::uintptr_t address, std::size_t bytes);

 private:
  bool allows(const Access& write);

  Pc pc_;
  Access now_, allowed_;  ///< neighbouring words often have the same writer
};
/// Fails unless all of it lies in the dynamic shared memory, or in one static array, at a multiple of `alignment`.
void check_async_operand(std::uintptr_t address, std::size_t bytes, unsigned alignment, Pc pc);

/// Where bytes lie that are dense but for a swizzle of `span` bytes (64 or 128; 0 for none): 16-byte pieces are
/// permuted within the span, by the number of the 128-byte line.
inline std::uintptr_t swizzled(std::uintptr_t address, unsigned span) {
  if (span == 0) return address;
  return address ^ ((address >> 7 & (span / 16 - 1)) << 4);
}

}  // namespace simt
