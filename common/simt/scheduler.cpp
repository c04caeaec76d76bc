// Runs a grid: one block after another, the threads of a block as fibers. A thread runs until it waits at a barrier or
// a warp collective, has filled its trace, or ends; warps take turns.

#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <list>
#include <new>

#include "common/simt/async.hpp"
#include "common/simt/cluster.hpp"
#include "common/simt/cores.hpp"
#include "common/simt/machine.hpp"

namespace simt {

Machine machine;

namespace {

constexpr std::uint64_t kTurn = std::uint64_t{1} << 20;  ///< events of a warp before others have their turn
constexpr std::uint64_t kTurnInCluster = std::uint64_t{1} << 14;
constexpr std::uint64_t kPolls = std::uint64_t{1} << 14;  ///< the same of one that seems to wait in a loop
constexpr std::uint64_t kResume = 8;                      ///< what it costs to switch to a thread, in events

// ---- Stacks and shared memory --------------------------------------------------------------------------------------

void* reserve(std::size_t bytes) {
  void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) throw std::bad_alloc();
  return address;
}

/// Turns a trap in a fiber into a fault; anywhere else it is the host program's own crash.
void handle_trap(int signal, siginfo_t* info, void*) {
  if (!machine.watching) {
    ::signal(signal, SIG_DFL);
    return;
  }
  machine.watching = false;
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  const bool on_stacks = address - machine.stacks < machine.stacks_end - machine.stacks;
  if (signal == SIGFPE)
    report(FaultKind::crash, machine.last_pc,
           "integer division by zero, or of the smallest integer by -1, at this line or soon after");
  else if (signal == SIGILL || signal == SIGTRAP)
    report(FaultKind::crash, machine.last_pc, "the kernel trapped at this line or soon after");
  else if (on_stacks)
    report(FaultKind::stack_overflow, machine.last_pc,
           "a thread needs more than " + std::to_string(kStackBytes >> 10) + " KB of stack");
  else
    report(FaultKind::crash, machine.last_pc, "an unobserved access to invalid memory at this line or soon after");
  stop();
}

/// What every launch needs, made at the first.
void set_up() {
  if (machine.stacks) return;
  // Below each stack lies a page that traps.
  constexpr std::size_t pitch = kStackBytes + 4096;
  machine.stacks = reinterpret_cast<std::uintptr_t>(reserve(pitch * kMaxThreads));
  machine.stacks_end = machine.stacks + pitch * kMaxThreads;
  machine.threads.resize(kMaxThreads);
  for (unsigned i = 0; i < kMaxThreads; ++i) {
    const std::uintptr_t guard = machine.stacks + i * pitch;
    mprotect(reinterpret_cast<void*>(guard), 4096, PROT_NONE);
    machine.threads[i].stack_top = guard + pitch;
  }

  const auto room = reinterpret_cast<std::uintptr_t>(reserve(kMaxDynamicShared + 2 * kGuardBytes));
  machine.dynamic_begin = machine.dynamic_end = room + kGuardBytes;
  mprotect(reinterpret_cast<void*>(room), kGuardBytes, PROT_NONE);
  mprotect(reinterpret_cast<void*>(room + kGuardBytes + kMaxDynamicShared), kGuardBytes, PROT_NONE);
  machine.dynamic_cells.resize(kMaxDynamicShared / 4);
  machine.dynamic_bytes.resize(kMaxDynamicShared);
  const std::size_t static_bytes = program().tls_end - program().tls_begin;
  machine.static_cells.resize(static_bytes / 4 + 1);
  machine.static_bytes.resize(static_bytes);
}

/// Turns traps into faults while a grid runs; leaves the host program's handlers as they were.
class TrapHandlers {
 public:
  TrapHandlers() {
    stack_t alternative{};
    alternative.ss_sp = stack_;
    alternative.ss_size = sizeof stack_;
    sigaltstack(&alternative, &previous_stack_);
    struct sigaction action {};
    action.sa_sigaction = handle_trap;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;  // the handler may leave by stop()
    for (std::size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &action, &previous_[i]);
  }
  ~TrapHandlers() {
    for (std::size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &previous_[i], nullptr);
    sigaltstack(&previous_stack_, nullptr);
  }

 private:
  static constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
  static inline char stack_[64 << 10];
  stack_t previous_stack_{};
  struct sigaction previous_[std::size(kSignals)]{};
};

struct Running {
  Running() { machine.running = true; }
  ~Running() { machine.running = false; }
};

// ---- Threads -------------------------------------------------------------------------------------------------------

void resume(unsigned number) {
  Thread& thread = machine.threads[number];
  machine.thread = &thread;
  machine.thread_number = number;
  machine.trace = &traces[number % kWarp];
  switch_context(machine.scheduler, thread.context);
}

/// In a cluster, other blocks reach this block's shared memory, too.
void set_shared_oldest() { machine.shared_oldest = has_peers() ? machine.first_block_serial : machine.block_serial; }

void start_block(std::uint64_t block) {
  machine.block_serial = machine.first_block_serial + static_cast<std::uint32_t>(block);
  set_shared_oldest();
  machine.phase = 0;
  machine.votes[0] = machine.votes[1] = 0;
  machine.copying = false;
  machine.async = nullptr;
  if (!has_peers()) machine.cluster = nullptr;
  machine.steps = {};
  machine.block_acquired = {};
  machine.published_in_block.clear();
  const dim3 grid = machine.grid, size = machine.block;
  machine.block_index = {static_cast<unsigned>(block % grid.x), static_cast<unsigned>(block / grid.x % grid.y),
                         static_cast<unsigned>(block / grid.x / grid.y)};
  begin_record();
  for (unsigned i = 0; i < machine.threads_per_block; ++i) {
    Thread& thread = machine.threads[i];
    make_fiber(thread.context, reinterpret_cast<void*>(thread.stack_top), kStackBytes);
    thread.state = State::ready;
    thread.index = {i % size.x, i / size.x % size.y, i / size.x / size.y};
    thread.warp_clocks.fill(0);
    thread.warp_clocks[i % kWarp] = 1;
    thread.ordering.reset();
    thread.copies.clear();
    thread.groups = 0;
    thread.registers.reset();
    thread.cluster_arrivals = thread.cluster_waits = 0;
    thread.arrive_line = 0;
  }
  std::fill_n(machine.dynamic_bytes.begin(), machine.dynamic_end - machine.dynamic_begin, std::uint8_t{0});
  for (const Variable* variable : machine.shared_touched)
    std::fill_n(machine.static_bytes.begin() + static_cast<std::ptrdiff_t>(variable->begin - program().tls_begin),
                variable->end - variable->begin, std::uint8_t{0});
}

// ---- Warp collectives ----------------------------------------------------------------------------------------------

/// The threads of one warp, by lane.
struct Warp {
  unsigned first, count;
  Thread& operator[](unsigned lane) const { return machine.threads[first + lane]; }
  unsigned lanes_in(State state) const {
    unsigned mask = 0;
    for (unsigned lane = 0; lane < count; ++lane) mask |= unsigned{(*this)[lane].state == state} << lane;
    return mask;
  }
};

/// Each lane learns what the others did before; what they do from now on is new to all.
void order_memory(const Warp& warp, unsigned mask) {
  std::array<std::uint32_t, kWarp> joined{};
  Knowledge known;
  for (unsigned lane = 0; lane < warp.count; ++lane) {
    if (!(mask >> lane & 1)) continue;
    if (Ordering* ordering = warp[lane].ordering.get()) {
      known.join(ordering->pending);
      known.join(ordering->acquired);
    }
    for (unsigned other = 0; other < kWarp; ++other)
      joined[other] = std::max(joined[other], warp[lane].warp_clocks[other]);
  }
  for (unsigned lane = 0; lane < warp.count; ++lane) {
    if (!(mask >> lane & 1)) continue;
    warp[lane].warp_clocks = joined;
    ++warp[lane].warp_clocks[lane];
    if (known.empty()) continue;
    if (!warp[lane].ordering) warp[lane].ordering = std::make_unique<Ordering>();
    warp[lane].ordering->acquired.join(known);
  }
  if (machine.async) order_lanes(warp.first, mask);
}

/// Runs it over the payloads. Whether it met no fault that ends the launch.
bool combine(Combine function, void** payloads, unsigned arrived) {
  machine.combining = true;
  try {
    function(payloads, arrived);
  } catch (const Stopped&) {
  }
  machine.combining = false;
  return !machine.stopped;
}

/// Completes the collectives at which every lane that is named and has not ended waits. Whether there was one.
bool complete_collectives(const Warp& warp) {
  const unsigned alive = ((warp.count < kWarp ? 1u << warp.count : 0u) - 1u) & ~warp.lanes_in(State::ended);
  unsigned waiting = warp.lanes_in(State::at_collective);
  bool completed = false;
  unsigned unnamed = 0;  // lanes at active_mask()
  while (waiting) {
    const Thread& first = warp[static_cast<unsigned>(std::countr_zero(waiting))];
    if (first.mask == 0) {
      unnamed |= waiting & -waiting;
      waiting &= waiting - 1;
      continue;
    }
    unsigned arrived = 0;
    void* payloads[kWarp] = {};
    for (unsigned lane = 0; lane < warp.count; ++lane) {
      const Thread& thread = warp[lane];
      if (thread.state != State::at_collective || thread.mask != first.mask || thread.combine != first.combine)
        continue;
      if (thread.line != first.line && thread.combine) continue;  // lanes may meet at different __syncwarps
      arrived |= 1u << lane;
      payloads[lane] = thread.payload;
    }
    waiting &= ~arrived;
    if (arrived != (first.mask & alive)) continue;
    if (first.combine && !combine(first.combine, payloads, arrived)) return false;
    if (first.orders == Orders::memory) order_memory(warp, arrived);
    for (unsigned lane = 0; lane < warp.count; ++lane)
      if (arrived >> lane & 1) warp[lane].state = State::ready;
    completed = true;
  }
  if (completed || unnamed == 0) return completed;
  // Nothing else can go on, so no other lane comes: those at the lowest place are together.
  Pc lowest = UINT32_MAX;
  for (unsigned lane = 0; lane < warp.count; ++lane)
    if (unnamed >> lane & 1) lowest = std::min(lowest, warp[lane].wait_pc);
  for (unsigned lane = 0; lane < warp.count; ++lane)
    if (warp[lane].wait_pc != lowest) unnamed &= ~(1u << lane);
  for (unsigned lane = 0; lane < warp.count; ++lane) {
    if (!(unnamed >> lane & 1)) continue;
    if (warp[lane].payload) *static_cast<unsigned*>(warp[lane].payload) = unnamed;
    warp[lane].state = State::ready;
  }
  return true;
}

/// Lets lanes go on that come_together() holds: the others may wait for them.
void part(const Warp& warp) {
  for (unsigned lane = 0; lane < warp.count; ++lane) {
    Thread& thread = warp[lane];
    if (thread.state == State::at_collective && thread.mask == 0 && !thread.payload) thread.state = State::ready;
  }
}

void report_stuck_collective(const Warp& warp) {
  const auto lane = static_cast<unsigned>(std::countr_zero(warp.lanes_in(State::at_collective)));
  machine.thread_number = warp.first + lane;
  char mask[16];
  std::snprintf(mask, sizeof mask, "0x%08x", warp[lane].mask);
  report(FaultKind::divergent_collective, warp[lane].wait_pc,
         std::string("mask ") + mask + " names lanes that wait elsewhere or at another mask");
  machine.measurement.faults.back().line = warp[lane].line;
  machine.stopped = true;
}

/// Runs a warp until each lane has ended or waits for the block, or its turn is over.
void run_warp(const Warp& warp) {
  for (Trace& trace : traces) trace.begin = trace.end = 0;
  std::uint64_t& events = machine.steps[warp.first / kWarp];
  const std::uint64_t turn_ends = events + (has_peers() ? kTurnInCluster : kTurn);
  const std::uint64_t progress = machine.progress, polls = machine.polls;
  for (;;) {
    for (unsigned lane = 0; lane < warp.count; ++lane) {
      if (warp[lane].state != State::ready || traces[lane].full()) continue;
      const unsigned before = traces[lane].end;
      resume(warp.first + lane);
      if (machine.stopped) return;
      events += kResume + traces[lane].end - before;
    }
    const unsigned ready = warp.lanes_in(State::ready);
    issue_requests(ready);
    if (events >= machine.step_limit) {
      report(FaultKind::endless_loop, machine.last_pc,
             "no end after " + std::to_string(machine.step_limit) +
                 " steps of a warp, or it waits for what another warp has yet to do");
      machine.stopped = true;
      return;
    }
    if (machine.interrupted) {
      machine.stopped = true;
      return;
    }
    const bool polls_in_vain = machine.progress == progress && machine.polls - polls >= kPolls;
    if (ready && (events >= turn_ends || polls_in_vain)) {
      issue_requests(0);  // what the lanes have left, without knowing what comes next
      part(warp);
      return;
    }
    if (ready) continue;
    if (complete_collectives(warp)) continue;
    if (machine.stopped) return;
    // Lanes that wait for the block may yet come to where the others wait for them.
    for (const State state : {State::at_mbarrier, State::at_named_barrier, State::at_wgmma, State::at_cluster_barrier})
      if (warp.lanes_in(state)) return;
    if (warp.lanes_in(State::at_collective)) report_stuck_collective(warp);
    return;
  }
}

// ---- Blocks --------------------------------------------------------------------------------------------------------

/// Whether two program counters are two barriers of one line. clang merges the calls of two branches.
bool is_elsewhere([[maybe_unused]] Pc pc, [[maybe_unused]] Pc other) {
#if defined(__clang__)
  return false;
#else
  return pc != other;
#endif
}

/// Whether the lanes of each warp wait at one barrier. A GPU lets the block pass then, though CUDA asks for one barrier
/// of the whole block.
bool warps_agree() {
  for (unsigned i = 0; i < machine.threads_per_block; ++i) {
    const Thread &thread = machine.threads[i], &first = machine.threads[i / kWarp * kWarp];
    if (thread.line != first.line || is_elsewhere(thread.wait_pc, first.wait_pc)) return false;
  }
  return true;
}

/// Lets the waiting threads pass, or reports why the barrier is none. @param waiting how many of the block wait
void pass_barrier(unsigned waiting) {
  const auto begin = machine.threads.begin(), end = begin + machine.threads_per_block;
  const auto first = std::find_if(begin, end, [](const Thread& thread) { return thread.state == State::at_barrier; });
  const auto other = std::find_if(begin, end, [&](const Thread& thread) {
    return thread.state == State::at_barrier &&
           (thread.line != first->line || is_elsewhere(thread.wait_pc, first->wait_pc));
  });
  machine.thread_number = static_cast<unsigned>(first - begin);
  if (other != end) {
    ThreadId at_other = current_thread();
    at_other.thread[0] = other->index.x;
    at_other.thread[1] = other->index.y;
    at_other.thread[2] = other->index.z;
    FaultRecord& fault = report(FaultKind::divergent_barrier, first->wait_pc, {}, other->wait_pc, at_other);
    fault.line = first->line;
    fault.other_line = other->line;
    machine.stopped = waiting < machine.threads_per_block || !warps_agree();
  } else if (waiting < machine.threads_per_block) {
    FaultRecord& fault = report(FaultKind::missing_barrier, first->wait_pc,
                                std::to_string(machine.threads_per_block - waiting) + " of " +
                                    std::to_string(machine.threads_per_block) + " threads ended without it");
    fault.line = first->line;
    machine.stopped = true;
  }
  if (machine.stopped) return;
  if (machine.async) order_block();
  ++machine.phase;
  ++machine.progress;
  machine.votes[machine.phase & 1] = 0;
  ++machine.measurement.counters.barriers;
  if (BlockEvent* event = record_event(Deed::barrier, first->wait_pc)) event->line = first->line;
  if (machine.barrier_log) ++(*machine.barrier_log)[{{first->wait_pc, first->line}, machine.kernel}];
  for (auto thread = begin; thread != end; ++thread) {
    thread->state = State::ready;
    if (!thread->ordering) continue;
    machine.block_acquired.join(thread->ordering->pending);
    machine.block_acquired.join(thread->ordering->acquired);
    thread->ordering->pending = {};
  }
}

/// Why a block does not run on.
enum class Outcome {
  ended,
  at_grid_barrier,
  spinning,  ///< a turn of each warp has changed nothing: it may wait for another block
  waiting,   ///< for another block of its cluster
};

/// Whether a thread of the block waits for what another block of the cluster may do.
bool waits_for_cluster() {
  if (!has_peers()) return false;
  const auto begin = machine.threads.begin();
  return std::any_of(begin, begin + machine.threads_per_block, [](const Thread& thread) {
    return thread.state == State::at_mbarrier || thread.state == State::at_named_barrier ||
           thread.state == State::at_wgmma || thread.state == State::at_cluster_barrier;
  });
}

Helpers* helpers = nullptr;  ///< of the running launch, if they may be

constexpr unsigned kForever = ~0u;

/// @param patience so many turns that change nothing it may take, one after another, before it counts as waiting
Outcome run_block(unsigned patience) {
  const unsigned threads = machine.threads_per_block;
  unsigned idle = 0;
  for (;;) {
    if (helpers) helpers->consider(machine.block_serial - machine.first_block_serial, true);
    const std::uint64_t before = machine.progress;
    for (unsigned first = 0; first < threads; first += kWarp) {
      run_warp({first, std::min(kWarp, threads - first)});
      if (!machine.rewrites.empty()) settle_rewrites();
      if (machine.stopped) return Outcome::ended;
    }
    if (machine.async && resume_waiting()) {
      if (has_peers() && machine.progress == before) return Outcome::spinning;
      continue;
    }
    if (machine.stopped) return Outcome::ended;
    unsigned waiting = 0, at_grid = 0, ready = 0;
    for (unsigned i = 0; i < threads; ++i) {
      ready += machine.threads[i].state == State::ready;
      waiting += machine.threads[i].state == State::at_barrier;
      at_grid += machine.threads[i].state == State::at_grid_barrier;
    }
    if (ready > 0) {
      idle = machine.progress == before ? idle + 1 : 0;
      if (!machine.async && idle > patience) return Outcome::spinning;
      continue;
    }
    if (waits_for_cluster()) return Outcome::waiting;
    if (waiting == 0 && at_grid > 0) return Outcome::at_grid_barrier;
    if (waiting == 0) break;
    pass_barrier(waiting);
    if (machine.stopped) return Outcome::ended;
  }
  if (machine.async) end_async_block();
  if (machine.cluster && !machine.stopped) end_cluster_block();
  ++machine.progress;
  return Outcome::ended;
}

// ---- Blocks that wait for each other: several at once
// ----------------------------------------------------------------------

/// A block that is not running: all that it leaves in the machine.
class Resident {
 public:
  /// @param running it is in the machine, and leaves it now
  explicit Resident(std::uint64_t number, bool running = false)
      : threads_(machine.threads_per_block),
        dynamic_size_(machine.dynamic_end - machine.dynamic_begin),
        static_size_(program().tls_end - program().tls_begin),
        dynamic_at_(kStackBytes * machine.threads_per_block + kGuardBytes),
        // Within a line of 1024 bytes as where it runs.
        static_at_((dynamic_at_ + dynamic_size_ + 1023) / 1024 * 1024 + kGuardBytes + program().tls_begin % 1024),
        bytes_(static_at_ + static_size_ + kGuardBytes),
        room_(static_cast<unsigned char*>(reserve(bytes_))),
        dynamic_cells_(dynamic_size_ / 4 + 1),
        static_cells_(static_size_ / 4 + 1),
        dynamic_bytes_(dynamic_size_ + 4),
        static_bytes_(static_size_),
        async_(std::make_unique<AsyncBlock>()),
        number_(number) {
    for (std::size_t i = 0; i < threads_.size(); ++i)
      threads_[i].stack_top = reinterpret_cast<std::uintptr_t>(room_) + (i + 1) * kStackBytes;
    std::memcpy(room_ + static_at_, reinterpret_cast<const void*>(program().tls_begin), static_size_);
    async_room_ = async_.get();
    if (!running) return;
    fresh_ = false;
    exchange();
  }
  Resident(const Resident&) = delete;
  ~Resident() { munmap(room_, bytes_); }

  /// Runs it on.
  void run(unsigned patience) {
    exchange();
    machine.block_serial = machine.first_block_serial + static_cast<std::uint32_t>(number_);
    set_shared_oldest();
    if (fresh_) start_block(number_);
    fresh_ = false;
    outcome_ = run_block(patience);
    leave_visit();
    if (!machine.stopped && outcome_ == Outcome::at_grid_barrier) {
      wait_pc_ = machine.threads[0].wait_pc;
      line_ = machine.threads[0].line;
    }
    exchange();
  }
  /// All blocks have come to the grid's barrier: what lies before is ordered by the serial number.
  void pass_grid_barrier() {
    for (Thread& thread : threads_)
      if (thread.state == State::at_grid_barrier) thread.state = State::ready;
    phase_ = 0;
    block_acquired_ = {};
    published_in_block_.clear();
    outcome_ = Outcome::spinning;
  }
  /// Begins as a block of the running cluster: the others may reach its shared memory before it has run.
  void join_cluster(std::uint64_t number) {
    number_ = number;
    fresh_ = false;
    outcome_ = Outcome::spinning;
    for (auto* const cells : {&dynamic_cells_, &static_cells_}) std::fill(cells->begin(), cells->end(), Cell());
    std::fill(static_bytes_.begin(), static_bytes_.end(), std::uint8_t{0});
    exchange();
    start_block(number);
    AsyncBlock& async = async_block();
    exchange();
    const auto begin = reinterpret_cast<std::uintptr_t>(room_);
    machine.cluster->blocks[machine.cluster->running] = {&async,
                                                         begin + dynamic_at_ - kGuardBytes,
                                                         begin + bytes_,
                                                         begin + dynamic_at_,
                                                         begin + static_at_,
                                                         &dynamic_cells_,
                                                         &static_cells_,
                                                         &dynamic_bytes_,
                                                         &static_bytes_,
                                                         false};
  }
  bool can_run() const { return outcome_ == Outcome::spinning || simt::can_run(*async_); }
  /// What its threads wait for in vain. @param at_cluster at the cluster's barrier; else at others
  void report_stuck(bool at_cluster) {
    exchange();
    machine.block_serial = machine.first_block_serial + static_cast<std::uint32_t>(number_);
    at_cluster ? report_stuck_cluster() : static_cast<void>(report_stuck_barrier());
    exchange();
  }
  /// Back into the machine, for good.
  void return_to_machine() { exchange(); }
  Outcome outcome() const { return outcome_; }
  /// That some blocks have ended while this one waits for them.
  void report_missing(std::size_t missing, std::size_t of) {
    exchange();
    machine.thread_number = 0;
    report(FaultKind::missing_barrier, wait_pc_,
           std::to_string(missing) + " of " + std::to_string(of) + " blocks ended without the grid's barrier")
        .line = line_;
    exchange();
    machine.stopped = true;
  }

 private:
  void exchange() {
    std::swap(machine.threads, threads_);
    std::swap(machine.dynamic_cells, dynamic_cells_);
    std::swap(machine.static_cells, static_cells_);
    std::swap(machine.dynamic_bytes, dynamic_bytes_);
    std::swap(machine.static_bytes, static_bytes_);
    std::swap(machine.steps, steps_);
    std::swap(machine.block_index, index_);
    std::swap(machine.copying, copying_);
    std::swap(machine.phase, phase_);
    std::swap(machine.votes, votes_);
    std::swap(machine.block_acquired, block_acquired_);
    std::swap(machine.published_in_block, published_in_block_);
    std::swap(machine.async, async_now_);
    std::swap(machine.async_room, async_room_);
    std::swap(machine.recorded, recorded_);
    unsigned char *const dynamic = room_ + dynamic_at_, *const statics = room_ + static_at_;
    std::swap_ranges(dynamic, dynamic + dynamic_size_, reinterpret_cast<unsigned char*>(machine.dynamic_begin));
    std::swap_ranges(statics, statics + static_size_, reinterpret_cast<unsigned char*>(program().tls_begin));
  }

  std::vector<Thread> threads_;
  // In its room: stacks, dynamic shared memory, static shared memory, with guards before and after both.
  std::size_t dynamic_size_, static_size_, dynamic_at_, static_at_, bytes_;
  unsigned char* room_;
  std::vector<Cell> dynamic_cells_, static_cells_;
  std::vector<std::uint8_t> dynamic_bytes_, static_bytes_;
  std::unique_ptr<AsyncBlock> async_;
  AsyncBlock *async_now_ = nullptr, *async_room_ = nullptr;
  bool recorded_ = false;
  std::array<std::uint64_t, kMaxThreads / kWarp> steps_{};
  uint3 index_{};
  std::uint32_t phase_ = 0;
  int votes_[2] = {};
  Knowledge block_acquired_;
  std::unordered_map<std::uintptr_t, Knowledge> published_in_block_;
  bool copying_ = false, fresh_ = true;
  Outcome outcome_ = Outcome::spinning;
  std::uint64_t number_;
  Pc wait_pc_ = 0;
  int line_ = 0;
};

/// Runs them in turns until all have ended.
/// @param grid all blocks of the launch are among them
void run_together(std::list<Resident>& residents, bool grid) {
  constexpr unsigned kMostPatience = 16;  // after that, one that still waits does so in vain
  unsigned patience = 0;
  while (!machine.stopped) {
    const std::uint64_t before = machine.progress;
    std::size_t ended = 0, at_grid = 0;
    for (Resident& block : residents) {
      if (block.outcome() == Outcome::spinning) block.run(patience);
      if (machine.stopped) return;
      ended += block.outcome() == Outcome::ended;
      at_grid += block.outcome() == Outcome::at_grid_barrier;
    }
    if (ended == residents.size()) return;
    // One that computes for long comes on by and by, while those that wait for it take as many turns.
    patience = machine.progress != before ? 0 : patience == 0 ? 4 : patience < kMostPatience ? 2 * patience : kForever;
    if (ended + at_grid < residents.size() || !grid) continue;
    if (ended > 0) {
      for (Resident& block : residents)
        if (block.outcome() == Outcome::at_grid_barrier) return block.report_missing(ended, residents.size());
    }
    for (Resident& block : residents) block.pass_grid_barrier();
    machine.first_block_serial += static_cast<std::uint32_t>(residents.size());
    if (machine.unordered.empty()) machine.oldest_serial = machine.first_block_serial;
    machine.published.clear();
    ++machine.progress;
  }
}

void run_cooperative(std::uint64_t blocks) {
  std::list<Resident> residents;
  for (std::uint64_t i = 0; i < blocks; ++i) residents.emplace_back(i);
  run_together(residents, true);
}

/// The blocks of a cluster in turns, until all have ended.
void run_cluster(std::list<Resident>& residents) {
  while (!machine.stopped) {
    std::size_t ended = 0;
    bool ran = false;
    machine.cluster->running = 0;
    for (Resident& block : residents) {
      if (block.outcome() != Outcome::ended && block.can_run()) {
        block.run(0);
        ran = true;
      }
      if (machine.stopped) return;
      ended += block.outcome() == Outcome::ended;
      ++machine.cluster->running;
    }
    if (ended == residents.size()) return;
    if (ran) continue;
    for (const bool at_cluster : {false, true}) {
      machine.cluster->running = 0;
      for (Resident& block : residents) {
        if (block.outcome() == Outcome::waiting && !machine.stopped) block.report_stuck(at_cluster);
        ++machine.cluster->running;
      }
    }
    machine.stopped = true;
  }
}

/// One cluster after another.
void run_clusters() {
  const dim3 grid = machine.grid, size = machine.cluster_size;
  const unsigned blocks = size.x * size.y * size.z;
  std::list<Resident> residents;
  for (unsigned rank = 0; rank < blocks; ++rank) residents.emplace_back(rank);
  const std::uint64_t across = grid.x / size.x, down = grid.y / size.y, clusters = across * down * (grid.z / size.z);
  for (std::uint64_t i = 0; i < clusters && !machine.stopped; ++i) {
    Cluster cluster;
    cluster.blocks.resize(blocks);
    cluster.alive = blocks * machine.threads_per_block;
    machine.cluster = &cluster;
    for (Resident& block : residents) {
      const unsigned rank = cluster.running;
      const std::uint64_t x = i % across * size.x + rank % size.x,
                          y = i / across % down * size.y + rank / size.x % size.y,
                          z = i / across / down * size.z + rank / size.x / size.y;
      block.join_cluster((z * grid.y + y) * grid.x + x);
      ++cluster.running;
    }
    run_cluster(residents);
    machine.cluster = nullptr;
  }
}

/// A block of those that run one after another.
Outcome run_next(std::uint64_t block) {
  start_block(block);
  return run_block(block + 1 == std::uint64_t{machine.grid.x} * machine.grid.y * machine.grid.z ? kForever : 0);
}

/// One after another, or on several cores; where one seems to wait for others, these are run beside it, as many as a
/// GPU might.
void run_in_order(std::uint64_t blocks) {
  constexpr std::uint64_t kTogether = 264;
  // Where a helper's block seems to wait, the helper ends at once, the last block's too: what it waits for is here.
  Helpers of_launch(blocks, [](std::uint64_t i) {
    start_block(i);
    return run_block(0) == Outcome::ended && !machine.stopped;
  });
  helpers = &of_launch;
  for (std::uint64_t i = 0; (i = of_launch.next(i)) < blocks && !machine.stopped; ++i) {
    if (run_next(i) != Outcome::spinning) continue;
    of_launch.dismiss();
    std::list<Resident> residents;
    residents.emplace_back(i, true);
    for (; i + 1 < blocks && residents.size() < kTogether; ++i) residents.emplace_back(i + 1);
    run_together(residents, false);
    residents.front().return_to_machine();
  }
  helpers = nullptr;
}

/// What CUDA would refuse about the launch, or "".
std::string launch_error(dim3 grid, dim3 block, std::size_t shared_bytes) {
  const auto text = [](dim3 d) {
    return "(" + std::to_string(d.x) + "," + std::to_string(d.y) + "," + std::to_string(d.z) + ")";
  };
  if (block.x == 0 || block.y == 0 || block.z == 0 || block.z > 64 || block.x > kMaxThreads || block.y > kMaxThreads ||
      block.x * block.y * block.z > kMaxThreads)
    return "block " + text(block) + ": 1 to 1024 threads, at most 64 in z";
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535)
    return "grid " + text(grid) + ": 1 to 2^31-1 blocks in x, to 65535 in y and z";
  if (shared_bytes > shared_limit())
    return std::to_string(shared_bytes) + " bytes of dynamic shared memory; a block may have " +
           std::to_string(shared_limit() >> 10) + " KB";
  return {};
}

}  // namespace

// ---- For kernels ---------------------------------------------------------------------------------------------------

void watch() { machine.watching = machine.running; }  // a kernel may be asked for its clusters
uint3 thread_index() { return machine.thread->index; }
uint3 block_index() { return machine.block_index; }
dim3 block_size() { return machine.block; }
dim3 grid_size() { return machine.grid; }
int lane_index() { return static_cast<int>(machine.thread_number % kWarp); }
void* dynamic_shared_memory() { return reinterpret_cast<void*>(machine.dynamic_begin); }

namespace {
/// Where static memory begins in the window, and the address that lies there. Both are multiples of 1024.
std::uint64_t static_offset() { return (machine.dynamic_end - machine.dynamic_begin + 1023) / 1024 * 1024; }
std::uintptr_t static_base() { return program().tls_begin / 1024 * 1024; }
}  // namespace

std::uint64_t shared_address_of(const void* pointer) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (const auto place = remote_place(address))
    return map_shared_address(shared_address_of(reinterpret_cast<const void*>(place->address)), place->rank);
  if (address - program().tls_begin < program().tls_end - program().tls_begin)
    return static_offset() + (address - static_base());
  return (address - machine.dynamic_begin) & 0xffffffff;
}

std::uintptr_t address_of_shared(std::uint64_t address) {
  if (const std::uint64_t rank = (address >> 24) - 1; has_peers() && rank < machine.cluster->blocks.size())
    return present_address({static_cast<unsigned>(rank), address_of_shared(address & 0xffffff)});
  const std::uint64_t behind = address - static_offset();
  if (address >= static_offset() && behind < program().tls_end - static_base()) return static_base() + behind;
  return machine.dynamic_begin + static_cast<std::uintptr_t>(static_cast<std::int32_t>(address));
}

void run_fiber() {
  machine.call(machine.arguments);
  machine.watching = false;
  machine.thread->state = State::ended;
  if (machine.cluster) leave_cluster();
  switch_context(machine.thread->context, machine.scheduler);
}

void yield_as(State state) {
  const bool watching = machine.watching;
  machine.watching = false;
  machine.thread->state = state;
  switch_context(machine.thread->context, machine.scheduler);
  machine.watching = watching;
}

void stop() {
  machine.watching = false;
  machine.stopped = true;
  if (machine.combining) throw Stopped();
  switch_context(machine.thread->context, machine.scheduler);  // the fiber's frames own nothing: they are simply left
  __builtin_unreachable();
}

void block_barrier(int line) {
  const Pc pc = relative_pc(__builtin_return_address(0));
  const auto& skipped = machine.skipped_barriers;
  if (std::find(skipped.begin(), skipped.end(), BarrierCall{pc, line}) != skipped.end()) return;
  machine.thread->line = line;
  machine.thread->wait_pc = pc;
  yield_as(State::at_barrier);
}

int block_votes(int predicate, int line) {
  const unsigned parity = machine.phase & 1;
  machine.votes[parity] += predicate != 0;
  machine.thread->line = line;
  machine.thread->wait_pc = relative_pc(__builtin_return_address(0));
  yield_as(State::at_barrier);
  return machine.votes[parity];
}

void grid_barrier(int line) {
  const Pc pc = relative_pc(__builtin_return_address(0));
  if (!machine.cooperative)
    fail(FaultKind::invalid_barrier, pc,
         "the grid waits for itself, and was not launched by cudaLaunchCooperativeKernel");
  machine.thread->line = line;
  machine.thread->wait_pc = pc;
  yield_as(State::at_barrier);
  machine.thread->line = line;
  machine.thread->wait_pc = pc;
  yield_as(State::at_grid_barrier);
}

namespace {
void wait_for_lanes(void* payload, int line, Pc pc) {
  Thread& thread = *machine.thread;
  thread.mask = 0;
  thread.payload = payload;
  thread.combine = nullptr;
  thread.orders = Orders::nothing;
  thread.line = line;
  thread.wait_pc = pc;
  yield_as(State::at_collective);
}
}  // namespace

unsigned active_mask(int line) {
  unsigned result = 0;
  wait_for_lanes(&result, line, relative_pc(__builtin_return_address(0)));
  return result;
}

void come_together(const void* place) {
  const Unwatched unwatched;
  wait_for_lanes(nullptr, 0, relative_pc(place));
}

void wait_at_collective(unsigned mask, void* payload, Combine combine, Orders orders, int line, Pc pc) {
  Thread& thread = *machine.thread;
  thread.mask = mask;
  thread.payload = payload;
  thread.combine = combine;
  thread.orders = orders;
  thread.line = line;
  thread.wait_pc = pc;
  if (!(mask >> (machine.thread_number % kWarp) & 1)) {
    report(FaultKind::divergent_collective, pc, "the mask does not name the calling lane");
    return;  // it goes on with no result, as on a GPU
  }
  yield_as(State::at_collective);
}

namespace {
struct Vote {
  int predicate;
  unsigned result;
};

void count_votes(void** payloads, unsigned mask) {
  unsigned result = 0;
  for (unsigned lane = 0; lane < kWarp; ++lane)
    if (mask >> lane & 1 && static_cast<Vote*>(payloads[lane])->predicate) result |= 1u << lane;
  for (unsigned lane = 0; lane < kWarp; ++lane)
    if (mask >> lane & 1) static_cast<Vote*>(payloads[lane])->result = result;
}
}  // namespace

void collective(unsigned mask, void* payload, Combine combine, Orders orders, int line) {
  wait_at_collective(mask, payload, combine, orders, line, relative_pc(__builtin_return_address(0)));
}

unsigned ballot(unsigned mask, int predicate, int line) {
  Vote vote{predicate, 0};
  wait_at_collective(mask, &vote, count_votes, Orders::nothing, line, relative_pc(__builtin_return_address(0)));
  return vote.result;
}

void run_grid(const void* kernel, dim3 grid, dim3 block, std::size_t shared_bytes, void (*call)(const void*),
              const void* arguments, bool cooperative, dim3 cluster) {
  if (machine.stopped) return;  // as on a GPU, nothing runs after a failed launch
  set_up();
  machine.kernel = kernel;
  machine.grid = grid;
  machine.block = block;
  machine.call = call;
  machine.arguments = arguments;
  machine.cooperative = cooperative;
  machine.cluster_size = cluster;
  machine.cluster = nullptr;
  machine.blocks_meet = false;
  machine.first_block_serial = machine.oldest_serial = machine.last_serial + 1;
  for (const Unordered& work : machine.unordered)
    if (work.first != 0) machine.oldest_serial = std::min(machine.oldest_serial, work.first);
  machine.published.clear();
  machine.signal_loads.clear();
  machine.shared_touched.clear();
  if (std::string error = launch_error(grid, block, shared_bytes); !error.empty()) {
    machine.measurement.faults.push_back({FaultKind::invalid_launch, kernel, 0, {}, std::move(error), 0, {}});
    machine.stopped = true;
    return;
  }
  machine.threads_per_block = block.x * block.y * block.z;
  machine.dynamic_end = machine.dynamic_begin + shared_bytes;
  const TrapHandlers handlers;
  const std::uint64_t blocks = std::uint64_t{grid.x} * grid.y * grid.z;
  const Running running;
  const std::uint32_t first_serial = machine.first_block_serial;
  if (cluster.x * cluster.y * cluster.z > 1)
    run_clusters();
  else if (cooperative)
    run_cooperative(blocks);
  else
    run_in_order(blocks);
  machine.launch_serial = first_serial;
  machine.last_serial = machine.first_block_serial + static_cast<std::uint32_t>(blocks) - 1;
}

void set_unordered(std::vector<Unordered> work) { machine.unordered = std::move(work); }

std::pair<std::uint32_t, std::uint32_t> last_blocks() { return {machine.launch_serial, machine.last_serial}; }

// ---- For the host --------------------------------------------------------------------------------------------------

void begin_measurement() {
  machine.rewrites.clear();
  machine.measurement = {};
  machine.stopped = false;
  if (machine.recording) machine.recording->launches.clear();
  if (machine.load_log) machine.load_log->clear();
  forget_requests();
  forget_loads();
}

void watch_device_memory(HostTouches touches) { machine.host_touches = touches; }

void interrupt() { machine.interrupted = true; }

void watch_host(const HostRules* rules) { machine.host_rules = rules; }

void log_barriers(BarrierLog* log) { machine.barrier_log = log; }

void skip_barriers(std::vector<BarrierCall> calls) { machine.skipped_barriers = std::move(calls); }

void set_step_limit(std::uint64_t steps) { machine.step_limit = steps; }

const Measurement& measurement() {
  collect_requests(machine.measurement);
  auto& faults = machine.measurement.faults;
  std::erase_if(faults, [](const FaultRecord& fault) {
    const auto is = [](const char* access, const char* wanted) { return std::strcmp(access, wanted) == 0; };
    return fault.kind == FaultKind::race &&
           ((is(fault.access, "reads") && is(fault.other_access, "updates") && machine.guesses.count(fault.pc)) ||
            (is(fault.access, "updates") && is(fault.other_access, "reads") && machine.guesses.count(fault.other_pc)));
  });
  // Threads that write what is there already, as when each sets a flag, do no harm to each other.
  std::erase_if(faults, [](const FaultRecord& fault) { return fault.rewrites && !fault.changes; });
  // A thread that reads what another has yet to write meets both an unwritten word and, later, a race: one defect.
  std::vector<Pc> racing;
  for (const FaultRecord& fault : faults)
    if (fault.kind == FaultKind::race) racing.insert(racing.end(), {fault.pc, fault.other_pc});
  std::erase_if(faults, [&](const FaultRecord& fault) {
    return fault.kind == FaultKind::uninitialized && std::find(racing.begin(), racing.end(), fault.pc) != racing.end();
  });
  return machine.measurement;
}

const char* to_string(FaultKind kind) {
  switch (kind) {
    case FaultKind::out_of_bounds:
      return "out_of_bounds";
    case FaultKind::uninitialized:
      return "uninitialized";
    case FaultKind::race:
      return "race";
    case FaultKind::missing_wait:
      return "missing_wait";
    case FaultKind::misaligned:
      return "misaligned";
    case FaultKind::missing_barrier:
      return "missing_barrier";
    case FaultKind::divergent_barrier:
      return "divergent_barrier";
    case FaultKind::divergent_collective:
      return "divergent_collective";
    case FaultKind::invalid_launch:
      return "invalid_launch";
    case FaultKind::stack_overflow:
      return "stack_overflow";
    case FaultKind::crash:
      return "crash";
    case FaultKind::endless_loop:
      return "endless_loop";
    case FaultKind::shared_limit:
      return "shared_limit";
    case FaultKind::stuck_barrier:
      return "stuck_barrier";
    case FaultKind::invalid_barrier:
      return "invalid_barrier";
    case FaultKind::invalid_operand:
      return "invalid_operand";
    case FaultKind::missing_proxy_fence:
      return "missing_proxy_fence";
    case FaultKind::missing_wgmma_fence:
      return "missing_wgmma_fence";
    case FaultKind::wgmma_in_flight:
      return "wgmma_in_flight";
    case FaultKind::absent_block:
      return "absent_block";
    case FaultKind::missing_instruction:
      return "missing_instruction";
    case FaultKind::deadlock:
      return "deadlock";
    case FaultKind::size_mismatch:
      return "size_mismatch";
    case FaultKind::not_captured:
      return "not_captured";
  }
  return "?";
}

}  // namespace simt
