/// @file
/// The simulator's state, shared by its parts: scheduler.cpp (fibers, barriers, collectives), observe.cpp (hooks,
/// bounds, races), requests.cpp (warp requests and their cost), memory.cpp (allocations), symbols.cpp (names, lines).
/// What sm_90 adds is in async.hpp.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/simt/clock.hpp"
#include "common/simt/fiber.hpp"
#include "common/simt/runtime.hpp"
#include "common/simt/simt.hpp"
#include "common/simt/symbols.hpp"

namespace simt {

constexpr unsigned kWarp = 32;
constexpr unsigned kSector = 32;  ///< bytes of global memory that are fetched together
constexpr unsigned kMaxThreads = 1024;
constexpr std::size_t kStackBytes = 128 << 10;
constexpr std::size_t kStackReserve = 16 << 10;  ///< for the runtime, which runs on the same stack
constexpr std::size_t kGuardBytes = 64 << 10;    ///< unmapped, on either side of the dynamic shared memory
constexpr std::size_t kMaxDynamicShared = 227 << 10;
constexpr std::size_t kMaxStaticShared = 48 << 10;

// ---- Shadow memory: who touched each word last ---------------------------------------------------------------------

/// One thread's access to (part of) a 4-byte word.
struct Access {
  std::uint32_t block = 0;  ///< serial number over all launches, from 1; 0 for none
  Pc pc = 0;
  std::uint64_t phase : 26 = 0;       ///< barriers that the block had passed
  std::uint64_t warp_clock : 21 = 0;  ///< releases that the thread had made to its warp
  std::uint64_t thread : 10 = 0;
  std::uint64_t bytes : 4 = 0;  ///< which of the word's four
  std::uint64_t atomic : 1 = 0;
  std::uint64_t warp_wide : 1 = 0;  ///< by all lanes of the thread's warp: which of them touches a word is not known
  /// By a bulk copy: `thread` is the number of its mbarrier, `phase` that barrier's phase which says it is complete.
  std::uint64_t async : 1 = 0;

  bool operator==(const Access& other) const = default;
};
static_assert(sizeof(Access) == 16);

/// What a word remembers. Later accesses by the same warp or block must not push out what others have yet to race with:
/// so the reads of another warp and of an earlier block are kept apart, and atomics from plain writes.
struct Cell {
  Access write, atomic, read, second_read, other_warp_read, earlier_block_read;
};

// ---- Memory --------------------------------------------------------------------------------------------------------

/// A global allocation.
struct Allocation {
  std::uintptr_t begin, end;
  const char* name;
  bool live;
  std::uint8_t* bytes;    ///< one a byte: kWritten, kLoaded
  Cell* cells;            ///< one a 4-byte word
  std::uint8_t* touched;  ///< in a helper (cores.hpp) one for each kTouchedTogether; else null
  int device = 0;         ///< whose it is, from 1 on; 0: everybody's
};
constexpr std::uintptr_t kTouchedTogether = 256;  ///< bytes
constexpr std::uint8_t kWritten = 1;              ///< by the host or a kernel
constexpr std::uint8_t kLoaded = 2;               ///< since begin_measurement()
constexpr std::uint8_t kInFlight = 4;             ///< shared memory: a copy_async has yet to write it

/// The allocation that `address` lies in, or null.
Allocation* find_allocation(std::uintptr_t address);
/// "12 bytes past the end of", or "just past the end of" for 0.
std::string past_end(std::uintptr_t bytes);
/// "12 bytes past the end of 'input' (4096 bytes)", or that it is no device memory.
std::string describe_global(std::uintptr_t address);
/// Whether it lies where device memory is, allocated or not.
bool is_device_address(std::uintptr_t address);
/// Calls `visit` for every allocation that there has been, in a fixed order.
void for_each_allocation(const std::function<void(Allocation&)>& visit);
/// Clears kLoaded everywhere.
void forget_loads();

// ---- Requests ------------------------------------------------------------------------------------------------------

enum class Kind : std::uint8_t { step, load, store, atomic, mark };
enum class Space : std::uint8_t { global, shared, constant };

/// What a lane did next: entered a basic block (step), accessed memory, or did what is only recorded (mark).
/// Packed by hand: it is written at every step of every thread, and compilers fill bit-fields piece by piece.
class Event {
 public:
  Event() = default;
  /// @param depth of the stack in bytes
  Event(std::uintptr_t address, unsigned bytes, Kind kind, Space space, std::uintptr_t depth, Pc pc)
      : where_(address << 8 | (bytes & 0xff)),
        what_((kStackBytes - depth) >> 4 << 48 | std::uint64_t{pc} << 16 | static_cast<std::uint64_t>(space) << 8 |
              static_cast<std::uint64_t>(kind)) {}

  std::uint64_t address() const { return where_ >> 8; }
  unsigned bytes() const { return where_ & 0xff; }
  Kind kind() const { return static_cast<Kind>(what_ & 0xff); }
  Space space() const { return static_cast<Space>(what_ >> 8 & 0xff); }
  Pc pc() const { return static_cast<Pc>(what_ >> 16); }
  /// Of a warp's lanes those with the least go first: the deepest call, then the lowest program counter.
  std::uint64_t order() const { return what_ >> 16; }

 private:
  std::uint64_t where_, what_;
};
static_assert(sizeof(Event) == 16);

/// What one lane did and the warp has not yet been charged for. A lane may be as far ahead of the others as its trace
/// is long: where a barrier is missing, that shows in what a kernel computes.
struct Trace {
  static constexpr unsigned kCapacity = 1024;
  Event events[kCapacity];
  unsigned begin = 0, end = 0;
  bool full() const { return end == kCapacity; }
};

/// Charges what the traces hold, as a warp in lockstep would have issued it.
/// @param running lanes whose next event is not known yet: where one of them has none left, nothing is decided further
void issue_requests(unsigned running);
/// The counters of a place in the code, for what is no warp request.
Counters& counters_at(Pc pc);
void forget_requests();
/// What was counted, and back to it.
std::unordered_map<Pc, Counters> requests_so_far();
void set_requests(std::unordered_map<Pc, Counters> counters);
/// Adds up what was issued since forget_requests().
void collect_requests(Measurement& measurement);

// ---- What a block did, for those who look (record.cpp) --------------------------------------------------------------

/// At a block's beginning: whether it is the one to record.
void begin_record();
/// Adds an event of the running thread's warp, if this block is recorded and has room for it; else null.
BlockEvent* record_event(Deed kind, Pc pc);
/// What the running thread does to an mbarrier or by a bulk copy, if this block is recorded: added when its warp has
/// come so far, once for all lanes that do the same then.
void mark(Deed kind, const void* place, Pc pc, unsigned bytes = 0, std::int64_t cost = 0);
/// The warp has come to a lane's mark, the `index`-th of the launch.
void issue_mark(std::uint64_t index);
/// Counts a request's sectors, address / 32 each, where loads are logged.
void count_loads(const std::uint64_t* sectors, std::size_t count);
/// Names what lies at an address, and gives `event` its place in it.
void record_place(BlockEvent& event, std::uintptr_t address);

// ---- Threads -------------------------------------------------------------------------------------------------------

enum class State : std::uint8_t {
  ready,
  at_collective,
  at_barrier,
  at_grid_barrier,
  at_mbarrier,
  at_named_barrier,
  at_wgmma,  ///< which not all warps of its warpgroup have come to
  at_cluster_barrier,
  ended
};

/// Accesses known to have happened before, through atomics and fences.
struct Knowledge {
  std::unordered_map<std::uint32_t, std::uint32_t> blocks;   ///< block -> every access in phases before this one
  std::unordered_map<std::uint64_t, std::uint64_t> threads;  ///< block, thread -> its accesses up to this stamp
  Clock streams;                                             ///< of several devices: work that is over
  void join(const Knowledge& other);
  bool covers(const Access& access) const;
  bool empty() const { return blocks.empty() && threads.empty() && streams.empty(); }
};

/// A number by which one device tells another one what is over.
struct Signal {
  unsigned before;  ///< its last value was stored, which a load may still find
  Knowledge known_before, known;
  unsigned stream;       ///< of who stored it last
  std::uint64_t number;  ///< of that work
};

/// What a thread that uses fences or atomics has gathered. Kernels without them have none.
struct Ordering {
  Knowledge published;  ///< what its next atomic hands on: all that preceded its last fence
  Knowledge in_block;   ///< the same for its last __threadfence_block, which other blocks do not see
  Knowledge pending;    ///< what its atomics have met; known from its next fence, barrier or __syncwarp on
  Knowledge acquired;
};

/// An asynchronous copy that its thread has not waited for.
struct Copy {
  std::uintptr_t to;
  std::uint8_t values[16];
  unsigned bytes;
  unsigned group;  ///< how many groups the thread had closed before
  Pc pc;
  std::uintptr_t mbarrier = 0;  ///< with whose phase it lands, or 0; see copies_arrive()
  std::uint32_t phase = 0;
};

/// A thread that uses wgmma: its local arrays stand for registers.
struct Registers {
  /// Of an array, or what a thread has touched.
  struct Range {
    std::uintptr_t begin, end;
    Pc pc;
  };
  std::vector<Range> in_flight;  ///< accumulators, and the wgmma that writes them
  std::vector<Range> touched;    ///< since the last wgmma_fence()
};

struct Thread {
  Context context;
  State state;
  uint3 index;
  std::uintptr_t stack_top;
  // Of the barrier or collective it waits at:
  Pc wait_pc;
  int line;
  unsigned mask;
  void* payload;
  Combine combine;
  Orders orders;
  std::array<std::uint32_t, kWarp> warp_clocks;  ///< what it knows of its warp; its own component is its clock
  std::unique_ptr<Ordering> ordering;
  std::vector<Copy> copies;  ///< the oldest first
  unsigned groups;           ///< closed by commit_copies()
  unsigned wait_barrier;     ///< number of the mbarrier or named barrier it waits at
  std::unique_ptr<Registers> registers;
  std::int32_t cluster_arrivals;  ///< at the cluster's barrier
  std::int32_t cluster_waits;     ///< there
  Pc arrive_pc;                   ///< of the last
  int arrive_line;                ///< of it; 0 where the lanes of a warp may come alone
};

struct AsyncBlock;
struct Cluster;

/// Everything about the launch that is running.
struct Machine {
  bool watching = false;  ///< hooks are live: a kernel's code is running
  bool stopped = false;   ///< a fault ended the launch
  bool running = false;   ///< a grid: between launches hooks may still fire, in a kernel file's host code
  const HostRules* host_rules = nullptr;
  HostTouches host_touches = nullptr;                 ///< see watch_device_memory()
  volatile bool interrupted = false;                  ///< see interrupt()
  std::uint64_t step_limit = std::uint64_t{1} << 28;  ///< events of one warp in one block
  BarrierLog* barrier_log = nullptr;
  std::vector<BarrierCall> skipped_barriers;
  BlockRecording* recording = nullptr;
  bool recorded = false;  ///< this block is
  LoadLog* load_log = nullptr;

  const void* kernel = nullptr;
  int device = 0;  ///< that runs it, from 1 on; 0: the only one
  dim3 grid, block, cluster_size;
  unsigned threads_per_block = 0;
  uint3 block_index{};
  std::uint32_t first_block_serial = 1, block_serial = 0;
  std::uint32_t shared_oldest = 0;  ///< of the first block whose accesses to this shared memory can race
  std::uint32_t launch_serial = 0, last_serial = 0;  ///< of the last launch: its first block, its last
  std::uint32_t oldest_serial = 1;                   ///< of the first block whose accesses to global memory can race
  std::vector<Unordered> unordered;                  ///< see set_unordered()
  std::uint32_t phase = 0;
  int votes[2] = {};                 ///< that came with a barrier, by the parity of its phase
  std::uint64_t progress = 0;        ///< stores, atomics that changed something, barriers passed
  std::uint64_t polls = 0;           ///< volatile accesses, atomics that changed nothing: a wait in a loop has many
  bool blocks_meet = false;          ///< two blocks of this launch have used atomics on one word
  bool volatile_access = false;      ///< what is checked now is a volatile access to global memory
  bool cooperative = false;          ///< blocks may wait for each other
  bool copying = false;              ///< this block has started a copy_async
  AsyncBlock* async = nullptr;       ///< null until this block uses an mbarrier, a named barrier or a wgmma: async.hpp
  AsyncBlock* async_room = nullptr;  ///< where it is made, for a block that runs beside others
  AsyncBlock* visited = nullptr;     ///< of the block whose shared memory is looked at, where it is not the running one
  Cluster* cluster = nullptr;        ///< null where each block is one, and has not asked
  bool combining = false;            ///< a collective's combine() runs, on the scheduler's stack
  bool warp_wide = false;            ///< what is checked now are accesses of the warp as a whole: see WarpWide
  std::array<std::uint32_t, kWarp> known_to_others;  ///< while it is: of each lane's clock, what all other lanes know
  void (*call)(const void*) = nullptr;
  const void* arguments = nullptr;

  Context scheduler;
  std::vector<Thread> threads;
  std::array<std::uint64_t, kMaxThreads / kWarp> steps{};  ///< events of each warp in this block
  Thread* thread = nullptr;                                ///< the running one
  unsigned thread_number = 0;
  Trace* trace = nullptr;  ///< of the running one's lane
  Pc last_pc = 0;          ///< of the last event, where a trap has none of its own
  std::uintptr_t stacks = 0, stacks_end = 0;

  // Shared memory of the running block: what is dynamic, then what is static.
  std::uintptr_t dynamic_begin = 0, dynamic_end = 0;
  std::vector<Cell> dynamic_cells, static_cells;
  std::vector<std::uint8_t> dynamic_bytes, static_bytes;  ///< kWritten, kInFlight
  std::vector<const Variable*> shared_touched;            ///< static variables this launch has used

  /// Writes that race with one before them, and have yet to be made: whether they change what is there.
  struct Rewrite {
    std::size_t fault;  ///< its number in the measurement
    unsigned thread;
    std::uintptr_t address;  ///< of a word
    std::uint32_t before, mask;
  };
  std::vector<Rewrite> rewrites;
  /// Whether the launch did what is seen elsewhere than in memory, or asked for what changes by itself.
  bool has_traces = false;
  std::set<Pc> guesses;  ///< reads whose value an atomicCAS of the same thread has then checked

  // Of several devices:
  Clock over;                ///< work that is over for the running launch
  Clock learned;             ///< work that signals have told it of
  Pc missing_signal = 0;     ///< where it has loaded one in vain, and was ended
  unsigned stream = 0;       ///< where it is
  std::uint64_t number = 0;  ///< of its work
  std::unordered_map<std::uintptr_t, Signal> signals;
  std::map<std::pair<std::uint64_t, std::uintptr_t>, int> signal_loads;  ///< of a thread, of a signal

  Knowledge block_acquired;
  std::unordered_map<std::uintptr_t, Knowledge> published;           ///< by the address of the atomic
  std::unordered_map<std::uintptr_t, Knowledge> published_in_block;  ///< the same, for this block alone

  Measurement measurement;
};
extern Machine machine;
extern std::array<Trace, kWarp> traces;

ThreadId current_thread();
/// Of a block of this launch, by its serial number.
ThreadId thread_id(std::uint32_t block_serial, unsigned thread);
/// Records a fault at `pc` by the running thread, once for each place, and returns its record.
FaultRecord& report(FaultKind kind, Pc pc, std::string detail = {}, Pc other_pc = 0, const ThreadId& other = {});
/// Ends the launch: back to the scheduler, never to return.
[[noreturn]] void stop();
/// Reports the fault and ends the launch.
[[noreturn]] void fail(FaultKind kind, Pc pc, std::string detail, Pc other_pc = 0, const ThreadId& other = {});
/// From which compute capability on an instruction is there; those of one generation alone are not in the next.
enum class Generation { volta_bytes = 72, turing = 75, ampere = 80, hopper = 90, hopper_alone };
/// Ends the launch with a fault where the GPU of set_target() does not have the instruction.
void require_instruction(const char* what, Generation generation, Pc pc);
/// Bytes of shared memory that a block of that GPU may have.
std::size_t shared_limit();
/// What stop() throws in a combine(), which runs on the scheduler's stack.
struct Stopped {};
/// Lets the scheduler go on with other threads until this one is ready again.
void yield_as(State state);
/// collective() for a caller that knows the kernel's place.
void wait_at_collective(unsigned mask, void* payload, Combine combine, Orders orders, int line, Pc pc);
/// The thread's own releases to its warp so far.
inline std::uint32_t& own_clock() { return machine.thread->warp_clocks[machine.thread_number % kWarp]; }
/// What an access by the running thread leaves in a word, all of its bytes.
inline Access access_now(Kind kind, Pc pc) {
  Access now;
  now.block = machine.block_serial;
  now.phase = machine.phase;
  now.pc = pc;
  now.warp_clock = own_clock();
  now.thread = machine.thread_number & 1023;
  now.bytes = 15;
  now.atomic = kind == Kind::atomic || machine.volatile_access;
  now.warp_wide = machine.warp_wide;
  return now;
}
/// Orders the accesses of one thread: by barrier phase, then by its clock.
inline std::uint64_t stamp(std::uint64_t phase, std::uint64_t clock) { return phase << 21 | clock; }

/// The runtime itself is not observed.
class Unwatched {
 public:
  Unwatched() : before_(machine.watching) { machine.watching = false; }
  ~Unwatched() { machine.watching = before_; }

 private:
  bool before_;
};

/// While it lives, each access that is checked is one of all lanes of the running thread's warp: which of them touches
/// a word is not known.
class WarpWide {
 public:
  WarpWide();
  ~WarpWide();
};
/// Checks the running thread's access to one object, for all but alignment: bounds, initialisation, races.
/// @return where it lies, or nothing where it is a constant of the program
std::optional<Space> check_access(std::uintptr_t address, unsigned bytes, Kind kind, Pc pc);
/// Whether something orders `earlier` before the running thread's next access, or that of its warp as a whole.
/// @param oldest serial number of the first block whose accesses can race: of the launch, or for shared memory this one
bool happened_before(const Access& earlier, std::uint32_t oldest);
/// The launch of that block, if nothing orders it before the running one; else null.
const Unordered* unordered_launch(std::uint32_t block_serial);
/// Reports two accesses to a word that nothing orders, if one of them is a plain write.
/// @param word where it lies, if what a plain store changes there may be asked
void check_pair(const Access& earlier, Kind earlier_kind, const Access& now, Kind kind, std::uint32_t oldest,
                std::uintptr_t word = 0);
/// What is known of shared memory, from `address` on; its words, and where they begin.
struct SharedState {
  std::uint8_t* bytes;
  Cell* cells;
  std::uintptr_t begin;
};
SharedState shared_state(std::uintptr_t address);
/// Looks at what the writes of `rewrites` have left, all or those of one thread.
void settle_rewrites(int thread = -1);
/// The static shared variable that holds all of these bytes, or null; it counts as used.
const Variable* static_variable(std::uintptr_t address, std::size_t bytes, Pc pc);
/// Reports an access to shared memory that a copy_async has yet to write. Whether it was one.
bool meets_copy(std::uintptr_t address, unsigned bytes, Kind kind, Pc pc);
/// Leaves an event in the trace of the running thread's lane.
/// @param frame of the function that the kernel called
void record(std::uintptr_t address, unsigned bytes, Pc pc, std::uintptr_t frame, Kind kind, Space space);

}  // namespace simt
