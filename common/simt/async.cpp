// Barriers other than __syncthreads, and what they order: who knows of whose accesses, whose asynchronous reads are
// over, when copies land.

#include "common/simt/async.hpp"

#include <algorithm>
#include <cstring>

#include "common/simt/cluster.hpp"
#include "common/simt/hopper.hpp"

namespace simt {

// ---- Views ---------------------------------------------------------------------------------------------------------

namespace {
void take_larger(std::vector<std::int32_t>& mine, const std::vector<std::int32_t>& theirs) {
  if (mine.size() < theirs.size()) mine.resize(theirs.size());
  const std::int32_t* const from = theirs.data();
  std::int32_t* const to = mine.data();
  for (std::size_t i = 0, size = theirs.size(); i < size; ++i) to[i] = std::max(to[i], from[i]);
}
}  // namespace

View::View() : View(machine.cluster ? machine.cluster->running : 0) {}

View::View(unsigned rank) : threads_(machine.threads_per_block), rank_(rank), numbers_(first_phase()) {}

void View::join(const View& other) {
  passed = std::max(passed, other.passed);
  if (!other.outside.empty()) outside.join(other.outside);
  if (rank_ == other.rank_) {
    take_larger(numbers_, other.numbers_);
  } else {
    if (others_.size() <= other.rank_) others_.resize(other.rank_ + 1);
    take_larger(others_[other.rank_], other.numbers_);
  }
  if (others_.size() < other.others_.size()) others_.resize(other.others_.size());
  for (unsigned rank = 0; rank < other.others_.size(); ++rank)
    if (!other.others_[rank].empty()) take_larger(rank == rank_ ? numbers_ : others_[rank], other.others_[rank]);
}

std::int32_t& View::phases(unsigned mbarrier) {
  const std::size_t index = first_phase() + mbarrier;
  if (index >= numbers_.size()) numbers_.resize(index + 1);
  return numbers_[index];
}

std::int32_t View::number_of(unsigned rank, std::size_t index) const {
  if (rank != rank_ && rank >= others_.size()) return 0;
  const auto& numbers = rank == rank_ ? numbers_ : others_[rank];
  return index < numbers.size() ? numbers[index] : 0;
}

bool View::covers(unsigned rank, const Access& access) const {
  if (access.async) return number_of(rank, first_phase() + access.thread) > static_cast<std::int32_t>(access.phase);
  return number_of(rank, access.thread) >= static_cast<std::int32_t>(access.warp_clock);
}

bool View::covers_fence(unsigned rank, const Access& write) const {
  return number_of(rank, 2 * std::size_t{threads_}) > static_cast<std::int32_t>(write.phase) ||
         number_of(rank, threads_ + write.thread) >= static_cast<std::int32_t>(write.warp_clock);
}

std::int32_t View::reads_of(unsigned rank, unsigned reader) const {
  return number_of(rank, 2 * std::size_t{threads_} + 1 + reader);
}

void View::set_reads_of(unsigned rank, unsigned reader, std::int32_t done) {
  if (rank != rank_ && others_.size() <= rank) others_.resize(rank + 1);
  auto& numbers = rank == rank_ ? numbers_ : others_[rank];
  if (numbers.size() < first_phase()) numbers.resize(first_phase());
  std::int32_t& known = numbers[2 * std::size_t{threads_} + 1 + reader];
  known = std::max(known, done);
}

bool View::knows_of(unsigned rank) const { return rank == rank_ || (rank < others_.size() && !others_[rank].empty()); }

void View::publish(unsigned rank, std::uint32_t block_serial, Knowledge& published) const {
  if (!knows_of(rank)) return;
  const auto phase = static_cast<std::uint32_t>(number_of(rank, first_phase() - 1));
  for (unsigned i = 0; i < threads_; ++i) {
    const std::int32_t clock = number_of(rank, i);
    if (clock == 0) continue;
    std::uint64_t& known = published.threads[std::uint64_t{block_serial} << 16 | i];
    known = std::max(known, stamp(phase, static_cast<std::uint32_t>(clock)));
  }
}

void View::fence() {
  const auto cover = [this](std::vector<std::int32_t>& numbers) {
    for (unsigned i = 0; i < threads_; ++i) numbers[threads_ + i] = std::max(numbers[threads_ + i], numbers[i]);
  };
  cover(numbers_);
  for (auto& numbers : others_)
    if (!numbers.empty()) cover(numbers);
}

namespace {

unsigned first_lane(unsigned thread) { return thread / kWarp * kWarp; }

View& view() { return machine.async->views[machine.thread_number]; }

/// The thread's view, with what it knows of its own warp and of other blocks.
View& whole_view(unsigned number) {
  const Thread& thread = machine.threads[number];
  View& mine = async_block().views[number];
  const unsigned first = first_lane(number), lanes = std::min(kWarp, machine.threads_per_block - first);
  for (unsigned lane = 0; lane < lanes; ++lane) {
    std::int32_t& clock = mine.clock(first + lane);
    clock = std::max(clock, static_cast<std::int32_t>(thread.warp_clocks[lane]));
  }
  mine.phase() = static_cast<std::int32_t>(machine.phase);
  if (thread.ordering && !thread.ordering->acquired.empty()) mine.outside.join(thread.ordering->acquired);
  return mine;
}

/// What the thread knows becomes known to whoever learns of `gathered`; what it does from now on does not.
void release_to(View& gathered, unsigned thread) {
  gathered.join(whole_view(thread));
  ++machine.threads[thread].warp_clocks[thread % kWarp];
}

void acquire(const View& gathered, AsyncBlock& block, unsigned number) {
  Thread& thread = block.threads[number];
  View& mine = block.views[number];
  mine.join(gathered);
  const unsigned first = first_lane(number), lanes = std::min(kWarp, machine.threads_per_block - first);
  for (unsigned lane = 0; lane < lanes; ++lane)
    thread.warp_clocks[lane] = std::max(thread.warp_clocks[lane], static_cast<std::uint32_t>(mine.clock(first + lane)));
  if (mine.outside.empty()) return;
  if (!thread.ordering) thread.ordering = std::make_unique<Ordering>();
  thread.ordering->acquired.join(mine.outside);
}

void acquire(const View& gathered, unsigned number) { acquire(gathered, async_block(), number); }

bool knows(unsigned thread, const Access& earlier) {
  const View& mine = machine.async->views[thread];
  const unsigned rank = rank_of(earlier.block);
  if (mine.covers(rank, earlier)) return true;
  const View* const others = known_by_cluster(mine);
  return others && others->covers(rank, earlier);
}

/// Whether a proxy fence follows a write that the thread knows of.
bool is_fenced(unsigned thread, const Access& write) {
  const View& mine = machine.async->views[thread];
  const unsigned rank = rank_of(write.block);
  if (mine.covers_fence(rank, write)) return true;
  const View* const others = known_by_cluster(mine);
  return others && others->covers_fence(rank, write);
}

/// Whether the thread knows that these reads are over.
bool knows_reads(unsigned thread, unsigned rank, unsigned reader, std::int32_t ticket) {
  const View& mine = machine.async->views[thread];
  if (mine.reads_of(rank, reader) >= ticket) return true;
  const View* const others = known_by_cluster(mine);
  return others && others->reads_of(rank, reader) >= ticket;
}

/// Whether it holds for the running thread; in a WarpWide, for each lane of its warp.
template <class Condition>
bool for_running(Condition condition) {
  if (!machine.warp_wide) return condition(machine.thread_number);
  const unsigned first = first_lane(machine.thread_number);
  for (unsigned lane = 0; lane < kWarp; ++lane)
    if (!condition(first + lane)) return false;
  return true;
}

}  // namespace

AsyncBlock& async_block() {
  static AsyncBlock only;
  if (machine.async) return *machine.async;
  AsyncBlock& block = machine.async_room ? *machine.async_room : only;
  machine.async = &block;
  const unsigned threads = machine.threads_per_block;
  const std::size_t dynamic_pieces = (machine.dynamic_end - machine.dynamic_begin + kPiece - 1) / kPiece;
  block = {};
  block.threads = machine.threads.data();
  block.serial = machine.block_serial;
  block.rank = machine.cluster ? machine.cluster->running : 0;
  block.dynamic_pieces = dynamic_pieces;
  block.warps = (threads + kWarp - 1) / kWarp;
  block.views.assign(threads, View());
  block.readers.resize(2 * block.warps);
  block.warpgroups.resize((block.warps + 3) / 4);
  block.products.resize(block.warps);
  block.stores.resize(threads);
  block.reach(dynamic_pieces);
  return block;
}

AsyncBlock& memory_block() { return machine.visited ? *machine.visited : async_block(); }

void AsyncBlock::reach(std::size_t pieces) {
  if (pieces <= version.size()) return;
  tickets.resize(pieces * readers.size());
  version.resize(pieces);
  approved.resize(pieces * warps, -1);
}

// ---- Order ---------------------------------------------------------------------------------------------------------

bool known_by_barriers(const Access& earlier) {
  return for_running([&](unsigned thread) { return knows(thread, earlier); });
}

void release_view(View& gathered) { release_to(gathered, machine.thread_number); }

void acquire_outside(const Knowledge& outside) {
  if (outside.empty()) return;
  Thread& thread = *machine.thread;
  async_block().views[machine.thread_number].outside.join(outside);
  if (!thread.ordering) thread.ordering = std::make_unique<Ordering>();
  thread.ordering->acquired.join(outside);
}

ThreadId copier(const Access& copy) {
  const AsyncBlock& block = has_peers() ? *machine.cluster->blocks[rank_of(copy.block)].async : async_block();
  const Mbarrier& barrier = block.mbarriers[copy.thread];
  return thread_id(barrier.copier_block, barrier.copier);
}

void order_lanes(unsigned first_thread, unsigned mask) {
  View joined;
  for (unsigned lane = 0; lane < kWarp; ++lane)
    if (mask >> lane & 1) joined.join(async_block().views[first_thread + lane]);
  for (unsigned lane = 0; lane < kWarp; ++lane)
    if (mask >> lane & 1) async_block().views[first_thread + lane] = joined;
}

void order_block() {
  View joined;
  for (unsigned i = 0; i < machine.threads_per_block; ++i) release_to(joined, i);
  for (unsigned i = 0; i < machine.threads_per_block; ++i) acquire(joined, i);
}

void publish_known_threads(Knowledge& published) {
  for (unsigned i = 0; i < machine.threads_per_block; ++i) {
    const std::int32_t clock = view().clock(i);
    if (clock == 0) continue;
    std::uint64_t& known = published.threads[std::uint64_t{machine.block_serial} << 16 | i];
    known = std::max(known, stamp(machine.phase, static_cast<std::uint32_t>(clock)));
  }
  if (!has_peers()) return;
  const View* const others = known_by_cluster(view());
  for (const ClusterBlock& block : machine.cluster->blocks) {
    const AsyncBlock& async = *block.async;
    if (async.serial != machine.block_serial) view().publish(async.rank, async.serial, published);
    if (others) others->publish(async.rank, async.serial, published);
  }
}

void write_shared(std::uintptr_t address, unsigned bytes, Pc pc) {
  AsyncBlock& block = memory_block();
  const std::size_t first = block.piece(address);
  const std::size_t last = std::min(block.piece(address + bytes - 1) + 1, block.version.size());
  for (std::size_t piece = first; piece < last; ++piece) {
    ++block.version[piece];
    std::int32_t* const tickets = &block.ticket(piece, 0);
    for (unsigned r = 0; r < block.readers.size(); ++r) {
      std::int32_t& ticket = tickets[r];
      if (ticket == 0) continue;
      if (for_running([&](unsigned thread) { return knows_reads(thread, block.rank, r, ticket); })) continue;
      const Reader& reader = block.readers[r];
      const bool waited = ticket <= reader.done;
      ThreadId who = thread_id(block.serial, r % block.warps * kWarp);
      who.whole_warp = true;
      FaultRecord& fault = report(waited ? FaultKind::race : FaultKind::missing_wait, pc, {}, reader.pc, who);
      fault.access = "writes";
      fault.other_access = "reads";
      ticket = 0;
    }
  }
}

// ---- Asynchronous reads --------------------------------------------------------------------------------------------

void check_async_operand(std::uintptr_t address, std::size_t bytes, unsigned alignment, Pc pc) {
  const std::uintptr_t begin = machine.dynamic_begin, end = machine.dynamic_end;
  if (const Variable* const variable = static_variable(address, bytes, pc)) {
    if (address % alignment != 0)
      fail(FaultKind::misaligned, pc,
           "byte " + std::to_string(address - variable->begin) + " of '" + variable->name +
               "' lies at no multiple of " + std::to_string(alignment) + ": declare it with alignas");
    if (bytes > 0) memory_block().reach(memory_block().piece(address + bytes - 1) + 1);
    return;
  }
  if (address < begin || address + bytes > end)
    fail(FaultKind::out_of_bounds, pc,
         "asynchronous access outside of the dynamic shared memory (" + std::to_string(end - begin) + " bytes)");
  if ((address - begin) % alignment != 0)
    fail(FaultKind::misaligned, pc,
         "byte " + std::to_string(address - begin) + " of the dynamic shared memory is no multiple of " +
             std::to_string(alignment));
}

bool check_proxy_fence(const Access& write, Pc pc) {
  if (for_running([&](unsigned thread) { return is_fenced(thread, write); })) return true;
  report(FaultKind::missing_proxy_fence, pc, {}, write.pc, thread_id(write.block, write.thread));
  return false;
}

bool AsyncRead::allows(const Access& write) {
  if (rank_of(write.block) == kNoRank || write == allowed_) return true;
  if (!happened_before(write, machine.shared_oldest)) {
    check_pair(write, write.atomic ? Kind::atomic : Kind::store, now_, Kind::load, machine.shared_oldest);
    return false;
  }
  if (!write.async && !check_proxy_fence(write, pc_)) return false;
  allowed_ = write;
  return true;
}

bool AsyncRead::check(std::uintptr_t address, std::size_t bytes) {
  if (machine.copying && meets_copy(address, static_cast<unsigned>(bytes), Kind::load, pc_)) return false;
  bool right = true;
  const SharedState shared = shared_state(address);
  for (std::size_t at = 0; at < bytes; at += 4) {
    const std::uint8_t* const state = shared.bytes + at;
    if (!(state[0] & state[1] & state[2] & state[3] & kWritten)) {
      report(FaultKind::uninitialized, pc_, "the shared memory, nothing in this block has written it");
      return false;
    }
    const Cell& cell = shared.cells[(address + at - shared.begin) / 4];
    const bool write_allows = allows(cell.write), atomic_allows = allows(cell.atomic);  // each reports its own
    right = right && write_allows && atomic_allows;
  }
  return right;
}

// ---- Landing -------------------------------------------------------------------------------------------------------

namespace {

bool waits_at(const Thread& thread, unsigned mbarrier) {
  return thread.state == State::at_mbarrier && thread.wait_barrier == mbarrier;
}

bool anybody_waits_at(const AsyncBlock& block, unsigned mbarrier) {
  return std::any_of(block.threads, block.threads + machine.threads_per_block,
                     [&](const Thread& thread) { return waits_at(thread, mbarrier); });
}

unsigned index_of(const Mbarrier& barrier) {
  const auto& all = memory_block().mbarriers;
  for (unsigned i = 0;; ++i)
    if (&all[i] == &barrier) return i;
}

}  // namespace

/// Ends the phase if nothing is missing, and lets those go on that wait for it. A fault where copies bring more than
/// was announced: machine.stopped.
void complete_phase(Mbarrier& barrier, Pc pc) {
  AsyncBlock& block = memory_block();
  const unsigned index = index_of(barrier);
  if (barrier.pending > 0 || barrier.landed < barrier.expected) return;
  std::uint64_t surplus = barrier.landed - barrier.expected;
  for (const BulkCopy& copy : block.copies)
    if (copy.mbarrier == index && copy.phase == barrier.phase) surplus += copy.bytes.size();
  if (surplus > 0) {
    report(FaultKind::invalid_barrier, pc,
           "a phase of this mbarrier ends with copies of " + std::to_string(surplus) +
               " bytes that no mbarrier_expect() has announced");
    machine.stopped = true;
    return;
  }
  land_copies(barrier.address, barrier.phase);
  ++barrier.phase;
  barrier.pending = barrier.arrivals;
  barrier.expected = barrier.landed = 0;
  barrier.completed = std::move(barrier.gathered);
  barrier.gathered = View(block.rank);
  barrier.completed.phases(index) = static_cast<std::int32_t>(barrier.phase);
  for (unsigned i = 0; i < machine.threads_per_block; ++i) {
    if (!waits_at(block.threads[i], index)) continue;
    acquire(barrier.completed, block, i);
    block.threads[i].state = State::ready;
  }
}

namespace {

void land(const BulkCopy& copy) {
  Mbarrier& barrier = async_block().mbarriers[copy.mbarrier];
  const std::size_t piece =
      copy.reduction.update ? copy.reduction.element : std::min<std::size_t>(kPiece, copy.bytes.size());
  for (std::size_t offset = 0; offset < copy.bytes.size(); offset += piece) {
    void* const to = reinterpret_cast<void*>(swizzled(copy.to + offset, copy.swizzle));
    if (copy.reduction.update)
      copy.reduction.update(to, &copy.bytes[offset]);
    else
      std::memcpy(to, &copy.bytes[offset], piece);
  }
  barrier.landed += copy.bytes.size();
  if (copy.ticket == 0) return;
  // Whoever knows of this phase knows that the copy has read its source.
  const unsigned rank = rank_of(copy.block);
  Reader& reader = machine.cluster->blocks[rank].async->readers[copy.reader];
  reader.outstanding.erase(copy.ticket);
  reader.done = reader.outstanding.empty() ? reader.issued : *reader.outstanding.begin() - 1;
  barrier.gathered.set_reads_of(rank, copy.reader, reader.done);
}

/// Lands the oldest copy that somebody waits for. Whether there was one.
bool land_next() {
  auto& copies = async_block().copies;
  const auto next = std::find_if(copies.begin(), copies.end(),
                                 [](const BulkCopy& copy) { return anybody_waits_at(*machine.async, copy.mbarrier); });
  if (next == copies.end()) return false;
  const BulkCopy copy = std::move(*next);
  copies.erase(next);
  land(copy);
  ++machine.progress;
  const auto waiting = std::find_if(machine.threads.begin(), machine.threads.end(),
                                    [&](const Thread& thread) { return waits_at(thread, copy.mbarrier); });
  machine.thread_number = static_cast<unsigned>(waiting - machine.threads.begin());
  Mbarrier& barrier = async_block().mbarriers[copy.mbarrier];
  const std::uint32_t phase = barrier.phase;
  complete_phase(barrier, waiting->wait_pc);
  if (barrier.phase == phase) return true;
  if (BlockEvent* event = record_event(Deed::complete, waiting->wait_pc)) record_place(*event, barrier.address);
  return true;
}

// ---- Threads that wait in vain -------------------------------------------------------------------------------------

std::string what_is_missing(const Thread& thread) {
  const AsyncBlock& block = async_block();
  if (thread.state == State::at_named_barrier) {
    const NamedBarrier& barrier = block.named[thread.wait_barrier];
    return "named barrier " + std::to_string(thread.wait_barrier) + ": " + std::to_string(barrier.arrived.count()) +
           " of " + std::to_string(barrier.threads) + " threads came";
  }
  const Mbarrier& barrier = block.mbarriers[thread.wait_barrier];
  std::string text = "mbarrier at ";
  if (const Variable* variable = find_variable(program().shared, barrier.address))
    text += "byte " + std::to_string(barrier.address - variable->begin) + " of '" + variable->name + "'";
  else
    text += "byte " + std::to_string(barrier.address - machine.dynamic_begin) + " of the dynamic shared memory";
  text += ", phase " + std::to_string(barrier.phase - barrier.first_phase) + ": " +
          std::to_string(barrier.arrivals - barrier.pending) + " of " + std::to_string(barrier.arrivals) +
          " arrivals came";
  if (barrier.landed < barrier.expected)
    text += ", " + std::to_string(barrier.expected - barrier.landed) + " of " + std::to_string(barrier.expected) +
            " bytes are missing";
  return text;
}

}  // namespace

std::string who_waits(const AsyncBlock& block) {
  std::map<std::pair<Pc, int>, unsigned> places;  // a barrier or collective may know its own line
  for (unsigned i = 0; i < machine.threads_per_block; ++i) {
    const Thread& thread = block.threads[i];
    if (thread.state != State::ended) ++places[{thread.wait_pc, thread.line}];
  }
  std::vector<Pc> pcs;
  for (const auto& [place, count] : places) pcs.push_back(place.first);
  const auto lines = source_lines(pcs);
  std::string text;
  for (const auto& [place, count] : places)
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " at line " +
            std::to_string(place.second ? place.second : lines.at(place.first).line);
  return text;
}

bool can_run(const AsyncBlock& block) {
  const auto ready = [](const Thread& thread) { return thread.state == State::ready; };
  return std::any_of(block.threads, block.threads + machine.threads_per_block, ready) ||
         std::any_of(block.copies.begin(), block.copies.end(),
                     [&](const BulkCopy& copy) { return anybody_waits_at(block, copy.mbarrier); });
}

bool resume_waiting() {
  const auto begin = machine.threads.begin(), end = begin + machine.threads_per_block;
  do {
    if (std::any_of(begin, end, [](const Thread& thread) { return thread.state == State::ready; })) return true;
  } while (!machine.stopped && land_next());
  if (!machine.stopped && !has_peers()) report_stuck_barrier();
  return false;
}

bool report_stuck_barrier() {
  const auto begin = machine.threads.begin(), end = begin + machine.threads_per_block;
  // Where a warp that a wgmma lacks waits for a copy or an arrival, that is what is missing.
  const auto is_at = [](State state) { return [state](const Thread& thread) { return thread.state == state; }; };
  if (const auto at_wgmma = std::find_if(begin, end, is_at(State::at_wgmma)); at_wgmma != end) {
    const auto group = (at_wgmma - begin) / (4 * kWarp), first = group * 4 * kWarp;
    if (std::none_of(begin + first, begin + first + 4 * kWarp, is_at(State::at_mbarrier))) {
      report_uneven_wgmma(async_block().warpgroups[static_cast<std::size_t>(group)], "; threads wait: " + who_waits());
      return true;
    }
  }
  // A barrier that some have come to tells more than one that waits for all.
  const auto begun = [](const Thread& thread) {
    if (thread.state == State::at_named_barrier) return true;
    if (thread.state != State::at_mbarrier) return false;
    const Mbarrier& barrier = async_block().mbarriers[thread.wait_barrier];
    return barrier.pending < barrier.arrivals;
  };
  auto stuck = std::find_if(begin, end, begun);
  if (stuck == end) stuck = std::find_if(begin, end, is_at(State::at_mbarrier));
  if (stuck == end) return false;
  machine.thread_number = static_cast<unsigned>(stuck - begin);
  report(FaultKind::stuck_barrier, stuck->wait_pc, what_is_missing(*stuck) + "; threads wait: " + who_waits());
  machine.stopped = true;
  return true;
}

// ---- For kernels ---------------------------------------------------------------------------------------------------

Mbarrier& mbarrier_at(std::uintptr_t at, Pc pc, bool by_copy) {
  AsyncBlock& block = memory_block();
  for (Mbarrier& barrier : block.mbarriers) {
    if (barrier.address != at) continue;
    // A fence_mbarrier_init() before a barrier of the cluster makes it visible, whatever else that barrier orders.
    const bool visible = barrier.fenced && async_block().views[machine.thread_number].passed > barrier.fenced_before;
    if (by_copy && machine.visited) {
      if (!visible)
        check_pair(barrier.init, Kind::store, access_now(Kind::atomic, pc), Kind::atomic, machine.shared_oldest);
      return barrier;
    }
    if (!visible) check_access(at, sizeof(std::uint64_t), Kind::atomic, pc);
    if (machine.visited) barrier.arrivals_of[machine.cluster->running] = access_now(Kind::atomic, pc);
    return barrier;
  }
  fail(FaultKind::invalid_barrier, pc,
       "no mbarrier_init() has made a barrier here" +
           (machine.visited ? ", in block " + std::to_string(block.rank) + " of the cluster" : ""));
}

namespace {

/// The same for an instruction, wherever the barrier lies. Calls `operate(barrier)`, but for a block that has ended.
template <class Operate>
void at_mbarrier(const void* address, Pc pc, Operate operate) {
  const Unwatched unwatched;
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  if (const auto place = remote_place(at)) {
    if (has_ended(place->rank, pc)) return;
    const Visit visit(place->rank, pc);
    operate(mbarrier_at(place->address, pc));
  } else {
    operate(mbarrier_at(at, pc));
  }
}

void arrive(Mbarrier& barrier, Pc pc) {
  if (barrier.pending == 0)
    fail(FaultKind::invalid_barrier, pc,
         "one more arrival in a phase than the " + std::to_string(barrier.arrivals) +
             " that mbarrier_init() gave: the phase before may not be complete");
  release_to(barrier.gathered, machine.thread_number);
  --barrier.pending;
  const std::uint32_t phase = barrier.phase;
  complete_phase(barrier, pc);
  ++machine.progress;
  if (machine.stopped) stop();
  const auto* const place = reinterpret_cast<const void*>(barrier.address);
  mark(Deed::arrive, place, pc);
  if (barrier.phase != phase) mark(Deed::complete, place, pc);
}

}  // namespace

#define SIMT_PC relative_pc(__builtin_return_address(0))

void mbarrier_init(void* address, unsigned arrivals) {
  const Pc pc = SIMT_PC;
  require_instruction("mbarrier.init", Generation::ampere, pc);
  const Unwatched unwatched;
  AsyncBlock& block = async_block();
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  if (at % 8 != 0) fail(FaultKind::misaligned, pc, "an mbarrier lies at a multiple of 8 bytes");
  if (remote_place(at)) fail(FaultKind::invalid_barrier, pc, "a block initialises its own mbarriers, not another's");
  if (check_access(at, sizeof(std::uint64_t), Kind::store, pc) != Space::shared)
    fail(FaultKind::invalid_barrier, pc, "an mbarrier lies in shared memory");
  if (arrivals < 1 || arrivals >= 1u << 20)
    fail(FaultKind::invalid_barrier, pc, "an mbarrier waits for 1 to 2^20 - 1 arrivals");
  auto barrier = std::find_if(block.mbarriers.begin(), block.mbarriers.end(),
                              [&](const Mbarrier& each) { return each.address == at; });
  if (barrier == block.mbarriers.end()) {
    if (block.mbarriers.size() == 1024) fail(FaultKind::invalid_barrier, pc, "more than 1024 mbarriers in a block");
    barrier = block.mbarriers.insert(block.mbarriers.end(), Mbarrier());
    barrier->address = at;
  } else {
    barrier->first_phase = ++barrier->phase;
  }
  barrier->arrivals = barrier->pending = arrivals;
  barrier->expected = barrier->landed = 0;
  barrier->gathered = barrier->completed = View();
  barrier->init = access_now(Kind::store, pc);
  barrier->fenced = false;
  barrier->arrivals_of.clear();
}

void fence_mbarrier_init() {
  const Unwatched unwatched;
  for (Mbarrier& barrier : async_block().mbarriers) {
    if (barrier.fenced || !happened_before(barrier.init, machine.shared_oldest)) continue;
    barrier.fenced = true;
    barrier.fenced_before = machine.thread->cluster_arrivals;
  }
}

void fence_async_proxy() {
  fence_mbarrier_init();
  const Unwatched unwatched;
  View& mine = whole_view(machine.thread_number);
  if (has_peers()) {
    if (const View* const others = known_by_cluster(mine)) mine.join(*others);
  }
  mine.fence();
  mine.fenced_phase() = static_cast<std::int32_t>(machine.phase);
  ++own_clock();  // what follows is not covered
}

void mbarrier_arrive(void* address) {
  const Pc pc = SIMT_PC;
  at_mbarrier(address, pc, [&](Mbarrier& barrier) { arrive(barrier, pc); });
}

void mbarrier_arrive_drop(void* address, unsigned count) {
  const Pc pc = SIMT_PC;
  at_mbarrier(address, pc, [&](Mbarrier& barrier) {
    if (count > barrier.arrivals)
      fail(FaultKind::invalid_barrier, pc,
           "drops " + std::to_string(count) + " of the " + std::to_string(barrier.arrivals) + " arrivals of a phase");
    barrier.arrivals -= count;
    for (unsigned i = 0; i < count; ++i) arrive(barrier, pc);
  });
}

void copies_arrive(void* address, bool counted) {
  const Pc pc = SIMT_PC;
  if (remote_place(reinterpret_cast<std::uintptr_t>(address))) {
    commit_copies();
    wait_copies(0);
  }
  at_mbarrier(address, pc, [&](Mbarrier& barrier) {
    for (Copy& copy : machine.thread->copies)
      if (copy.mbarrier == 0) copy.mbarrier = barrier.address, copy.phase = barrier.phase;
    if (counted)
      arrive(barrier, pc);
    else  // one more to wait for, which has come
      release_to(barrier.gathered, machine.thread_number);
  });
}

unsigned mbarrier_parity(void* address) {
  const Pc pc = SIMT_PC;
  unsigned parity = 0;
  at_mbarrier(address, pc, [&](Mbarrier& barrier) { parity = (barrier.phase - barrier.first_phase) & 1; });
  return parity;
}

void mbarrier_expect_tx(void* address, unsigned bytes) {
  const Pc pc = SIMT_PC;
  require_instruction("mbarrier.expect_tx", Generation::hopper, pc);
  at_mbarrier(address, pc, [&](Mbarrier& barrier) { barrier.expected += bytes; });
}

void mbarrier_expect(void* address, unsigned bytes) {
  const Pc pc = SIMT_PC;
  require_instruction("mbarrier.arrive.expect_tx", Generation::hopper, pc);
  at_mbarrier(address, pc, [&](Mbarrier& barrier) {
    barrier.expected += bytes;
    if (barrier.expected >= 1u << 20)
      fail(FaultKind::invalid_barrier, pc, "a phase of an mbarrier counts up to 2^20 - 1 bytes");
    arrive(barrier, pc);
  });
}

void mbarrier_wait(void* address, unsigned parity) {
  const Pc pc = SIMT_PC;
  require_instruction("mbarrier.try_wait", Generation::hopper, pc);
  const Unwatched unwatched;
  if (remote_place(reinterpret_cast<std::uintptr_t>(address)))
    fail(FaultKind::invalid_barrier, pc, "threads wait at mbarriers of their own block, not of another");
  Mbarrier& barrier = mbarrier_at(reinterpret_cast<std::uintptr_t>(address), pc);
  mark(Deed::wait, address, pc);
  const unsigned present = (barrier.phase - barrier.first_phase) & 1;
  if (present != (parity & 1)) {
    barrier.completed.phases(index_of(barrier)) = static_cast<std::int32_t>(barrier.phase);
    acquire(barrier.completed, machine.thread_number);
    return;
  }
  machine.thread->wait_barrier = index_of(barrier);
  machine.thread->wait_pc = pc;
  machine.thread->line = 0;
  yield_as(State::at_mbarrier);
}

namespace {
void come_to(unsigned id, unsigned threads, bool wait, Pc pc) {
  const unsigned present = async_block().warps * kWarp, self = machine.thread_number;
  if (threads == 0 || threads % kWarp != 0 || threads > present)
    fail(FaultKind::invalid_barrier, pc,
         "a named barrier is for whole warps of the block, not for " + std::to_string(threads) + " threads");
  NamedBarrier& barrier = async_block().named[id];
  if (barrier.arrived.any() && barrier.threads != threads)
    fail(FaultKind::invalid_barrier, pc,
         "named barrier " + std::to_string(id) + " is for " + std::to_string(threads) + " threads here, for " +
             std::to_string(barrier.threads) + " where others came to it");
  if (barrier.arrived[self])
    fail(FaultKind::invalid_barrier, pc, "the thread comes to named barrier " + std::to_string(id) + " twice");
  if (barrier.arrived.none()) barrier.gathered = View();
  barrier.threads = threads;
  barrier.arrived[self] = true;
  release_to(barrier.gathered, self);
  if (barrier.arrived.count() < threads) {
    if (!wait) return;
    machine.thread->wait_barrier = id;
    machine.thread->wait_pc = pc;
    machine.thread->line = 0;
    yield_as(State::at_named_barrier);
    return;
  }
  barrier.arrived.reset();
  if (wait) acquire(barrier.gathered, self);
  for (unsigned i = 0; i < machine.threads_per_block; ++i) {
    Thread& thread = machine.threads[i];
    if (thread.state != State::at_named_barrier || thread.wait_barrier != id) continue;
    acquire(barrier.gathered, i);
    thread.state = State::ready;
  }
}
}  // namespace

void named_barrier(unsigned id, unsigned threads, bool wait) {
  const Pc pc = SIMT_PC;
  const Unwatched unwatched;
  if (id < 1 || id > 15) fail(FaultKind::invalid_barrier, pc, "named barriers are 1 to 15; 0 is that of __syncthreads");
  come_to(id, threads, wait, pc);
}

void tile_barrier(unsigned tile, unsigned threads) {
  const Pc pc = SIMT_PC;
  const Unwatched unwatched;
  come_to(kMostTiles - tile, threads, true, pc);
}

}  // namespace simt
