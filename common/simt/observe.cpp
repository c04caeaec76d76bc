// What the compiler's hooks report: each access is located, checked for bounds, alignment, initialisation and races,
// and left in its lane's trace. A hook runs before its access, so a faulting one never happens.

#include <math.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "common/simt/async.hpp"
#include "common/simt/cores.hpp"
#include "common/simt/machine.hpp"

namespace simt {

void Knowledge::join(const Knowledge& other) {
  for (const auto& [block, phase] : other.blocks) blocks[block] = std::max(blocks[block], phase);
  for (const auto& [thread, stamp] : other.threads) threads[thread] = std::max(threads[thread], stamp);
  streams.join(other.streams);
}

bool Knowledge::covers(const Access& access) const {
  if (const auto block = blocks.find(access.block); block != blocks.end() && access.phase < block->second) return true;
  const auto thread = threads.find(std::uint64_t{access.block} << 16 | access.thread);
  return thread != threads.end() && stamp(access.phase, access.warp_clock) <= thread->second;
}

const Unordered* unordered_launch(std::uint32_t block_serial) {
  for (const Unordered& work : machine.unordered)
    if (work.first != 0 && work.first <= block_serial && block_serial <= work.last) return &work;
  return nullptr;
}

ThreadId thread_id(std::uint32_t block_serial, unsigned thread) {
  std::uint64_t block = block_serial - machine.first_block_serial;
  dim3 grid = machine.grid, size = machine.block;
  if (block_serial < machine.first_block_serial) {
    if (const Unordered* const launch = unordered_launch(block_serial)) {
      block = block_serial - launch->first;
      grid = {launch->grid[0], launch->grid[1], launch->grid[2]};
      size = {launch->block[0], launch->block[1], launch->block[2]};
    }
  }
  return {{static_cast<unsigned>(block % grid.x), static_cast<unsigned>(block / grid.x % grid.y),
           static_cast<unsigned>(block / grid.x / grid.y)},
          {thread % size.x, thread / size.x % size.y, thread / size.x / size.y},
          thread / kWarp};
}

namespace {

// ---- Races ---------------------------------------------------------------------------------------------------------

/// Whether a lane knows that an access by its warp is over: by what the lanes of a __syncwarp have told each other.
bool known_in_warp(const Access& earlier, unsigned thread) {
  const std::uint32_t clock = machine.threads[thread].warp_clocks[earlier.thread % kWarp];
  if (earlier.thread != thread) return clock >= earlier.warp_clock;
  return !earlier.warp_wide || clock > earlier.warp_clock;  // other lanes had their part in it
}

bool known_to_whole_warp(const Access& earlier) {
  const unsigned lane = earlier.thread % kWarp;
  return machine.known_to_others[lane] >= earlier.warp_clock && known_in_warp(earlier, earlier.thread);
}

/// Who made it, or for a bulk copy who started it.
ThreadId thread_of(const Access& access) {
  ThreadId id = access.async ? copier(access) : thread_id(access.block, access.thread);
  id.whole_warp = access.warp_wide;
  return id;
}

const char* word_for(Kind kind) { return kind == Kind::load ? "reads" : kind == Kind::store ? "writes" : "updates"; }

}  // namespace

/// Whether a signal has told the running thread that this work is over.
bool was_told_of(const Unordered& work) {
  if (work.number == 0) return false;
  const Ordering* const own = machine.thread->ordering.get();
  return machine.block_acquired.streams[work.stream] >= work.number ||
         (own && own->acquired.streams[work.stream] >= work.number);
}

bool happened_before(const Access& earlier, std::uint32_t oldest) {
  if (earlier.block < oldest) return true;
  if (earlier.block < machine.first_block_serial) {
    const Unordered* const launch = unordered_launch(earlier.block);
    return !launch || was_told_of(*launch);
  }
  if (earlier.async) return known_by_barriers(earlier);
  if (earlier.block == machine.block_serial) {
    if (earlier.phase < machine.phase) return true;
    const bool same_warp = earlier.thread / kWarp == machine.thread_number / kWarp;
    if (same_warp && (machine.warp_wide ? known_to_whole_warp(earlier) : known_in_warp(earlier, machine.thread_number)))
      return true;
    if (machine.async && known_by_barriers(earlier)) return true;
  } else if (has_peers() && rank_of(earlier.block) != kNoRank && known_by_barriers(earlier)) {
    return true;
  }
  if (machine.block_acquired.covers(earlier)) return true;
  return machine.thread->ordering && machine.thread->ordering->acquired.covers(earlier);
}

/// The bytes of a word that an access touches, as a mask of its bits.
std::uint32_t mask_of(const Access& access) {
  std::uint32_t mask = 0;
  for (int i = 0; i < 4; ++i) mask |= (access.bytes >> i & 1 ? 0xffu : 0u) << 8 * i;
  return mask;
}

std::uint32_t word_at(std::uintptr_t address) {
  std::uint32_t word = 0;
  std::memcpy(&word, reinterpret_cast<const void*>(address), sizeof word);
  return word;
}

void settle_rewrites(int thread) {
  std::erase_if(machine.rewrites, [&](const Machine::Rewrite& write) {
    if (thread >= 0 && write.thread != static_cast<unsigned>(thread)) return false;
    if ((word_at(write.address) ^ write.before) & write.mask) machine.measurement.faults[write.fault].changes = true;
    return true;
  });
}

/// Whether a matrix function writes where one of the same warp has read: it has each lane's values in hand by then.
bool follows_in_warp(const Access& read, const Access& write) {
  return read.warp_wide && write.warp_wide && read.block == write.block && read.thread / kWarp == write.thread / kWarp;
}

void check_pair(const Access& earlier, Kind earlier_kind, const Access& now, Kind kind, std::uint32_t oldest,
                std::uintptr_t word) {
  if (!(earlier.bytes & now.bytes) || (earlier.atomic && now.atomic) || happened_before(earlier, oldest)) return;
  if (earlier_kind == Kind::load && kind == Kind::store && follows_in_warp(earlier, now)) return;
  FaultRecord& fault =
      report(earlier.async ? FaultKind::missing_wait : FaultKind::race, now.pc, {}, earlier.pc, thread_of(earlier));
  fault.access = word_for(kind);
  fault.other_access = word_for(earlier_kind);
  if (kind == Kind::store && earlier_kind == Kind::store && word != 0 && !now.warp_wide && !now.async &&
      !earlier.async) {
    fault.rewrites = true;
    machine.rewrites.push_back({static_cast<std::size_t>(&fault - machine.measurement.faults.data()),
                                machine.thread_number, word, word_at(word), mask_of(now)});
  } else {
    fault.changes = true;
  }
  if (earlier.block < machine.first_block_serial)
    fault.detail = "'" + unordered_launch(earlier.block)->name + "' runs in another stream, and nothing orders the two";
}

Met find_unordered(const void* pointer, std::size_t bytes, bool writes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(pointer), end = begin + bytes;
  bool launches = false;
  for (const Unordered& work : machine.unordered) {
    launches |= work.first != 0;
    for (const Unordered::Range& range : work.ranges)
      if (range.begin < end && begin < range.end && (range.writes || writes)) return {&work, work.pc, range.writes};
  }
  const Allocation* const allocation = launches && bytes > 0 ? find_allocation(begin) : nullptr;
  if (!allocation || !allocation->live) return {};
  const std::size_t last = (std::min(end, allocation->end) - 1 - allocation->begin) / 4;
  for (std::size_t word = (begin - allocation->begin) / 4; word <= last; ++word) {
    const Cell& cell = allocation->cells[word];
    for (const Access* access : {&cell.write, &cell.atomic})
      if (const Unordered* const work = unordered_launch(access->block)) return {work, access->pc, true};
    if (!writes) continue;
    for (const Access* access : {&cell.read, &cell.second_read, &cell.other_warp_read, &cell.earlier_block_read})
      if (const Unordered* const work = unordered_launch(access->block)) return {work, access->pc, false};
  }
  return {};
}

namespace {

/// @param word where it lies
void check_races(Cell& cell, Kind kind, const Access& now, std::uint32_t oldest, std::uintptr_t word) {
  check_pair(cell.write, Kind::store, now, kind, oldest, word);
  check_pair(cell.atomic, Kind::atomic, now, kind, oldest);
  if (kind == Kind::load) {
    if (cell.read.block != now.block) {
      cell.earlier_block_read = cell.read;
      cell.second_read = cell.other_warp_read = {};
    } else if (cell.read.thread / kWarp != now.thread / kWarp) {
      cell.other_warp_read = cell.read;
      cell.second_read = {};
    } else if (cell.read.thread != now.thread) {
      cell.second_read = cell.read;
    }
    cell.read = now;
  } else {
    for (const Access* read : {&cell.read, &cell.second_read, &cell.other_warp_read, &cell.earlier_block_read})
      check_pair(*read, Kind::load, now, kind, oldest);
    if (now.atomic && cell.atomic.block != now.block) machine.blocks_meet |= cell.atomic.block >= oldest;
    (now.atomic ? cell.atomic : cell.write) = now;
  }
}

/// Calls `visit(cell, now)` for each word of the running thread's access.
/// @param cells of the memory that begins at `begin`
template <class Visit>
void for_each_word(Cell* cells, std::uintptr_t begin, std::uintptr_t address, unsigned bytes, Kind kind, Pc pc,
                   Visit visit) {
  Access now = access_now(kind, pc);
  std::uintptr_t offset = address - begin;
  for (const std::uintptr_t end = offset + bytes; offset < end;) {
    const unsigned first = offset % 4, count = static_cast<unsigned>(std::min<std::uintptr_t>(4 - first, end - offset));
    now.bytes = (((1u << count) - 1) << first) & 15;
    visit(cells[offset / 4], now);
    offset += count;
  }
}

void check_races(Cell* cells, std::uintptr_t begin, std::uintptr_t address, unsigned bytes, Kind kind, Pc pc,
                 std::uint32_t oldest) {
  for_each_word(cells, begin, address, bytes, kind, pc, [=](Cell& cell, const Access& now) {
    const auto index = static_cast<std::uintptr_t>(&cell - cells);
    const std::uintptr_t word = begin + 4 * index;
    check_races(cell, kind, now, oldest, machine.visited ? present_address({machine.visited->rank, word}) : word);
  });
}

// ---- Initialisation ------------------------------------------------------------------------------------------------

/// Whether something has written what is read, but for gaps as a struct has them between and behind its members, which
/// a copy of the struct reads, too: less than half, and not at the beginning.
bool is_written(const std::uint8_t* state, std::size_t bytes) {
  std::size_t unwritten = 0;
  for (std::size_t i = 0; i < bytes; ++i) unwritten += !(state[i] & kWritten);
  return unwritten == 0 || ((state[0] & kWritten) && 2 * unwritten < bytes);
}

/// The access is of a piece of a struct that is_written() as a whole.
bool copies_struct = false;
constexpr std::size_t kMostOfStruct = 256;

void mark_written(std::uint8_t* state, unsigned bytes) {
  for (unsigned i = 0; i < bytes; ++i) state[i] |= kWritten;
}

/// Bytes that this launch had not loaded before.
unsigned mark_loaded(std::uint8_t* state, unsigned bytes) {
  unsigned fresh = 0;
  for (unsigned i = 0; i < bytes; ++i) {
    fresh += !(state[i] & kLoaded);
    state[i] |= kLoaded;
  }
  return fresh;
}

// ---- The three spaces ----------------------------------------------------------------------------------------------

[[noreturn]] void out_of_bounds(Pc pc, std::string detail) {
  report(FaultKind::out_of_bounds, pc, std::move(detail));
  stop();
}

std::string quoted(const Variable& variable) {
  return "'" + variable.name + "' (" + std::to_string(variable.end - variable.begin) + " bytes)";
}

void access_global(std::uintptr_t address, unsigned bytes, Kind kind, Pc pc) {
  Allocation* allocation = find_allocation(address);
  if (!allocation || !allocation->live || address + bytes > allocation->end)
    out_of_bounds(pc, (kind == Kind::load ? "reads " : "writes ") +
                          describe_global(allocation && allocation->live ? allocation->end : address));
  if (allocation->device != 0 && machine.device != 0 && allocation->device != machine.device)
    out_of_bounds(pc, std::string("device ") + std::to_string(machine.device - 1) +
                          (kind == Kind::load ? " reads '" : " writes '") + allocation->name + "' of device " +
                          std::to_string(allocation->device - 1));
  std::uint8_t* state = allocation->bytes + (address - allocation->begin);
  if (kind != Kind::store && !copies_struct && !is_written(state, bytes))
    report(FaultKind::uninitialized, pc, "'" + std::string(allocation->name) + "', nothing has written it");
  if (kind == Kind::load)
    machine.measurement.counters.global_load_unique_bytes += mark_loaded(state, bytes);
  else
    mark_written(state, bytes);
  if (allocation->touched)
    for (std::uintptr_t chunk = (address - allocation->begin) / kTouchedTogether;
         chunk <= (address + bytes - 1 - allocation->begin) / kTouchedTogether; ++chunk)
      allocation->touched[chunk] = 1;
  check_races(allocation->cells, allocation->begin, address, bytes, kind, pc, machine.oldest_serial);
  for (const Unordered& work : machine.unordered) {
    if (was_told_of(work)) continue;
    for (const Unordered::Range& range : work.ranges) {
      if (address >= range.end || address + bytes <= range.begin || (kind == Kind::load && !range.writes)) continue;
      FaultRecord& fault = report(FaultKind::race, pc, work.name + " in another stream, and nothing orders the two",
                                  work.pc, current_thread());
      fault.access = word_for(kind);
      fault.other_access = range.writes ? "writes" : "reads";
    }
  }
}

/// Reports an access to what an asynchronous copy has yet to write. Whether it was one. Where nothing orders even the
/// copy's start before it, it is a race.
/// @param cells of the memory that begins at `begin`
bool meets_copy(const Cell* cells, const std::uint8_t* state, std::uintptr_t begin, std::uintptr_t address,
                unsigned bytes, Kind kind, Pc pc) {
  for (unsigned i = 0; i < bytes; ++i) {
    if (!(state[i] & kInFlight)) continue;
    const Access& copy = cells[(address + i - begin) / 4].write;  // whoever met the copy since has left no trace
    const bool ordered = happened_before(copy, machine.shared_oldest);
    FaultRecord& fault = report(ordered ? FaultKind::missing_wait : FaultKind::race, pc, {}, copy.pc, thread_of(copy));
    fault.access = word_for(kind);
    fault.other_access = "writes";
    return true;
  }
  return false;
}

/// @param variable what is accessed, or null for dynamic shared memory
void access_shared(Cell* cells, std::uint8_t* state, std::uintptr_t begin, std::uintptr_t address, unsigned bytes,
                   Kind kind, Pc pc, const Variable* variable) {
  state += address - begin;
  if ((machine.copying || machine.visited) && meets_copy(cells, state, begin, address, bytes, kind, pc)) return;
  if (kind != Kind::store && !copies_struct && !is_written(state, bytes))
    report(FaultKind::uninitialized, pc,
           (variable ? "shared memory '" + variable->name + "'" : "the dynamic shared memory") +
               ", nothing in this block has written it");
  if (kind != Kind::load) mark_written(state, bytes);
  check_races(cells, begin, address, bytes, kind, pc, machine.shared_oldest);
}

/// "" or whose shared memory it is.
std::string of_whom() {
  return machine.visited ? " of block " + std::to_string(machine.visited->rank) + " of the cluster" : "";
}

void access_dynamic_shared(std::uintptr_t address, unsigned bytes, Kind kind, Pc pc) {
  const std::uintptr_t begin = machine.dynamic_begin, end = machine.dynamic_end;
  if (address < begin || address + bytes > end) {
    const std::string size = " the dynamic shared memory (" + std::to_string(end - begin) + " bytes)" + of_whom();
    out_of_bounds(pc, address < begin ? std::to_string(begin - address) + " bytes before" + size
                                      : past_end(address - end) + size);
  }
  if (machine.async && kind != Kind::load) write_shared(address, bytes, pc);
  access_shared(machine.dynamic_cells.data(), machine.dynamic_bytes.data(), begin, address, bytes, kind, pc, nullptr);
}

/// The first use in a launch: counts towards the limit, which nvcc enforces when it compiles.
void touch(const Variable* variable, Pc pc) {
  for (const Variable* seen : machine.shared_touched)
    if (seen == variable) return;
  machine.shared_touched.push_back(variable);
  std::memset(&machine.static_bytes[variable->begin - program().tls_begin], 0, variable->end - variable->begin);
  std::size_t total = 0;
  for (const Variable* seen : machine.shared_touched) total += seen->end - seen->begin;
  if (total <= kMaxStaticShared && total + (machine.dynamic_end - machine.dynamic_begin) <= shared_limit()) return;
  report(FaultKind::shared_limit, pc,
         std::to_string(total) + " bytes of static shared memory; a kernel may have 48 KB, and " +
             std::to_string(shared_limit() >> 10) + " KB with dynamic");
  stop();
}

void access_static_shared(std::uintptr_t address, unsigned bytes, Kind kind, Pc pc) {
  static const Variable* last = nullptr;
  if (!last || address < last->begin || address >= last->end) {
    const Variable* variable = find_variable(program().shared, address);
    if (!variable) {
      const Variable* before = nullptr;
      for (const Variable& candidate : program().shared)
        if (candidate.end <= address) before = &candidate;
      out_of_bounds(pc, before ? past_end(address - before->end) + " shared " + quoted(*before) + of_whom()
                               : "before the first shared variable" + of_whom());
    }
    last = variable;
  }
  if (address + bytes > last->end) out_of_bounds(pc, "past the end of shared " + quoted(*last) + of_whom());
  touch(last, pc);
  if (machine.async && kind != Kind::load) write_shared(address, bytes, pc);
  access_shared(machine.static_cells.data(), machine.static_bytes.data(), program().tls_begin, address, bytes, kind, pc,
                last);
}

void access_constant(std::uintptr_t address, unsigned bytes, Kind kind, Pc pc) {
  const Variable* variable = find_variable(program().constants, address);
  if (!variable || address + bytes > variable->end) out_of_bounds(pc, "outside the constant arrays");
  if (kind != Kind::load) out_of_bounds(pc, "writes constant memory, " + quoted(*variable));
}

constexpr std::uintptr_t kGuardBytes = 64 << 10;          // see scheduler.cpp: nothing else lies so near
constexpr std::uintptr_t kConstantGuard = sizeof(Guard);  // around all constant arrays; kernels read nothing else there

bool in(std::uintptr_t address, std::uintptr_t begin, std::uintptr_t end) { return address - begin < end - begin; }

void check_alignment(std::uintptr_t address, unsigned bytes, Pc pc) {
  if ((bytes & (bytes - 1)) != 0 || address % bytes == 0) return;
  report(FaultKind::misaligned, pc, std::to_string(bytes) + "-byte access");
  stop();
}

/// Whether it lies in the dynamic shared memory or so near that nothing else can be meant.
bool in_dynamic_shared(std::uintptr_t address) {
  return in(address, machine.dynamic_begin - kGuardBytes, machine.dynamic_begin + kMaxDynamicShared + kGuardBytes);
}

}  // namespace

SharedState shared_state(std::uintptr_t address) {
  if (in_dynamic_shared(address))
    return {&machine.dynamic_bytes[address - machine.dynamic_begin], machine.dynamic_cells.data(),
            machine.dynamic_begin};
  const std::uintptr_t begin = program().tls_begin;
  return {&machine.static_bytes[address - begin], machine.static_cells.data(), begin};
}

const Variable* static_variable(std::uintptr_t address, std::size_t bytes, Pc pc) {
  if (!in(address, program().tls_begin, program().tls_end)) return nullptr;
  const Variable* const variable = find_variable(program().shared, address);
  if (!variable || address + bytes > variable->end) return nullptr;
  touch(variable, pc);
  return variable;
}

WarpWide::WarpWide() {
  const Thread* const lanes = &machine.threads[machine.thread_number / kWarp * kWarp];
  machine.known_to_others.fill(UINT32_MAX);
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    std::array<std::uint32_t, kWarp> clocks = lanes[lane].warp_clocks;
    clocks[lane] = UINT32_MAX;
    for (unsigned of = 0; of < kWarp; ++of)
      machine.known_to_others[of] = std::min(machine.known_to_others[of], clocks[of]);
  }
  machine.warp_wide = true;
}

WarpWide::~WarpWide() { machine.warp_wide = false; }

std::optional<Space> check_access(std::uintptr_t address, unsigned bytes, Kind kind, Pc pc) {
  const Program& loaded = program();
  if (machine.cluster && !machine.visited) {
    if (const auto place = remote_place(address)) {
      if (place->rank == machine.cluster->running)
        fail(FaultKind::invalid_operand, pc,
             "a pointer to this block's own shared memory that another block has made: map it here");
      if (has_ended(place->rank, pc)) {  // its room is there until the cluster ends
        std::memset(reinterpret_cast<void*>(address), 0, bytes);
        return Space::shared;
      }
      const Visit visit(place->rank, pc);
      const bool dynamic = in_dynamic_shared(place->address);
      (dynamic ? access_dynamic_shared : access_static_shared)(place->address, bytes, kind, pc);
      return Space::shared;
    }
  }
  if (in_dynamic_shared(address)) {
    access_dynamic_shared(address, bytes, kind, pc);
    return Space::shared;
  }
  if (in(address, loaded.tls_begin, loaded.tls_end)) {
    access_static_shared(address, bytes, kind, pc);
    return Space::shared;
  }
  // A __device__ variable may lie as near to the constants as an index past their end reaches.
  if (in(address, loaded.device_begin, loaded.device_end) && find_allocation(address)) {
    access_global(address, bytes, kind, pc);
    return Space::global;
  }
  if (loaded.constant_begin != 0 &&
      in(address, loaded.constant_begin - kConstantGuard, loaded.constant_end + kConstantGuard)) {
    access_constant(address, bytes, kind, pc);
    return Space::constant;
  }
  if (in(address, loaded.device_begin, loaded.device_end)) {
    access_global(address, bytes, kind, pc);
    return Space::global;
  }
  if (in(address, loaded.begin, loaded.end)) {
    // Tables that the compiler made, constants of the program.
    if (kind == Kind::load) return {};
    out_of_bounds(pc, "writes a variable of the host program");
  }
  if (in(address, machine.stacks, machine.stacks_end)) out_of_bounds(pc, "local memory of another thread");
  access_global(address, bytes, kind, pc);
  return Space::global;
}

void record(std::uintptr_t address, unsigned bytes, Pc pc, std::uintptr_t frame, Kind kind, Space space) {
  machine.last_pc = pc;
  const std::uintptr_t depth = machine.thread->stack_top - frame;
  if (depth > kStackBytes - kStackReserve) {
    report(FaultKind::stack_overflow, pc,
           "a thread needs more than " + std::to_string((kStackBytes - kStackReserve) >> 10) + " KB of stack");
    stop();
  }
  Trace& trace = *machine.trace;
  trace.events[trace.end++] = {address, bytes, kind, space, depth, pc};
  if (trace.full()) yield_as(State::ready);
}

namespace {

/// Checks one access and leaves it in the trace.
void observe(std::uintptr_t address, unsigned bytes, Kind kind, Pc pc, std::uintptr_t frame) {
  if (!machine.rewrites.empty()) settle_rewrites(static_cast<int>(machine.thread_number));
  check_alignment(address, bytes, pc);
  const auto space = check_access(address, bytes, kind, pc);
  machine.volatile_access = copies_struct = false;  // other threads may run before this one goes on
  if (!space) return;
  ++machine.measurement.thread_accesses;
  machine.progress += kind == Kind::store;
  record(address, bytes, pc, frame, kind, *space);
}

bool in(std::uintptr_t address, std::size_t bytes, const HostRules::Range& range) {
  const auto begin = reinterpret_cast<std::uintptr_t>(range.begin);
  return address >= begin && address + bytes <= begin + range.bytes;
}

/// Code of a kernel file that runs unobserved: host code between launches, and what a launch calls around the threads'
/// own code (copies of arguments, shuffled values), which needs no memory but their stacks.
void check_host(std::uintptr_t address, unsigned bytes, Kind kind, Pc pc, std::uintptr_t frame) {
  const HostRules& rules = *machine.host_rules;
  if (machine.running && in(address, machine.stacks, machine.stacks_end)) return;
  constexpr std::uintptr_t kRedZone = 4096;  // a leaf function may use what lies below its frame
  const bool load = kind == Kind::load;
  const bool own =
      in(address, frame - kRedZone, reinterpret_cast<std::uintptr_t>(rules.stack)) || in(address, bytes, rules.object);
  const bool given = load && (in(address, bytes, rules.given[0]) || in(address, bytes, rules.given[1]) ||
                              in(address, program().begin, program().end));
  if (own || given) return;
  std::string what;
  if (is_device_address(address)) {
    what = (load ? "reads device memory: " : "writes device memory: ") + describe_global(address);
  } else {
    what = load ? "reads memory that it was not given"
                : "writes memory that is neither a local variable nor a member of its class";
  }
  rules.violated(what.c_str(), pc);
}

const void* pointer_of(std::uintptr_t address) { return reinterpret_cast<const void*>(address); }

void exchange_knowledge(std::uintptr_t address);

inline void hook(const volatile void* pointer, unsigned bytes, Kind kind, const void* return_address,
                 const void* frame) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (machine.host_rules && !machine.watching)
    check_host(address, bytes, kind, relative_pc(return_address), reinterpret_cast<std::uintptr_t>(frame));
  if (!machine.watching) {
    if (machine.host_touches && !machine.running && is_device_address(address))
      machine.host_touches(pointer_of(address), kind != Kind::load, relative_pc(return_address));
    return;
  }
  if (machine.thread->stack_top - address <= kStackBytes) {  // its registers and local arrays
    if (machine.thread->registers) {
      const Unwatched unwatched;
      touch_registers(address, bytes, relative_pc(return_address));
    }
    return;
  }
  const Unwatched unwatched;
  observe(address, bytes, kind, relative_pc(return_address), reinterpret_cast<std::uintptr_t>(frame));
}

/// A volatile access: to global memory one that threads may use to tell each other something, as they do by atomics.
/// In shared memory it is one as any other, since a warp's lanes are not in step.
inline void hook_volatile(const volatile void* pointer, unsigned bytes, Kind kind, const void* return_address,
                          const void* frame) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  const bool global = machine.watching && is_device_address(address);
  machine.volatile_access = global;
  ++machine.polls;
  hook(pointer, bytes, kind, return_address, frame);
  machine.volatile_access = false;
  if (!global) return;
  const Unwatched unwatched;
  exchange_knowledge(address);
}

bool range_is_written(std::uintptr_t address, std::size_t bytes) {
  if (const Allocation* const allocation = find_allocation(address))
    return allocation->live && address + bytes <= allocation->end &&
           is_written(allocation->bytes + (address - allocation->begin), bytes);
  const bool dynamic = in(address, machine.dynamic_begin, machine.dynamic_end);
  if (!dynamic && !in(address, program().tls_begin, program().tls_end)) return false;
  if (address + bytes > (dynamic ? machine.dynamic_end : program().tls_end)) return false;
  return is_written(shared_state(address).bytes, bytes);
}

/// An access of any length and alignment: the copy of a struct, as nvcc makes it of words or bytes.
void hook_range(const volatile void* pointer, std::size_t bytes, Kind kind, const void* return_address,
                const void* frame) {
  if (!machine.watching && !machine.host_rules) {  // the host copies much at once
    if (bytes > 0) hook(pointer, 1, kind, return_address, frame);
    return;
  }
  const auto* bytes_of = static_cast<const volatile char*>(pointer);
  const bool is_copy = kind == Kind::load && machine.watching && bytes <= kMostOfStruct &&
                       range_is_written(reinterpret_cast<std::uintptr_t>(pointer), bytes);
  const unsigned piece = (reinterpret_cast<std::uintptr_t>(pointer) | bytes) % 4 == 0 ? 4 : 1;
  for (std::size_t done = 0; done < bytes;) {
    copies_struct = is_copy;
    hook(bytes_of + done, piece, kind, return_address, frame);
    done += piece;
  }
}

// ---- Asynchronous copies -------------------------------------------------------------------------------------------

/// What it brings is there.
void arrive(const Copy& copy) {
  const SharedState state = shared_state(copy.to);
  const std::uintptr_t to = machine.visited ? present_address({memory_block().rank, copy.to}) : copy.to;
  std::memcpy(reinterpret_cast<void*>(to), copy.values, copy.bytes);
  for (unsigned i = 0; i < copy.bytes; ++i) state.bytes[i] &= static_cast<std::uint8_t>(~kInFlight);
}

/// The copy has arrived: a write by its thread, made now.
void land(const Copy& copy) {
  arrive(copy);
  const SharedState state = shared_state(copy.to);
  for_each_word(state.cells, state.begin, copy.to, copy.bytes, Kind::store, copy.pc,
                [](Cell& cell, const Access& now) { cell.write = now; });
}

// ---- Atomics -------------------------------------------------------------------------------------------------------

Ordering& ordering() {
  auto& ordering = machine.thread->ordering;
  if (!ordering) ordering = std::make_unique<Ordering>();
  return *ordering;
}

/// The atomic meets what others handed on, and hands on what preceded the thread's last fence.
void exchange_knowledge(std::uintptr_t address) {
  address = canonical_address(address);
  for (const auto* handed_on : {&machine.published, &machine.published_in_block})
    if (const auto found = handed_on->find(address); found != handed_on->end()) ordering().pending.join(found->second);
  const Ordering* mine = machine.thread->ordering.get();
  if (!mine) return;
  if (!mine->published.empty()) {
    if (is_device_address(address)) leave_to_others();  // what blocks learn there is not handed over
    machine.published[address].join(mine->published);
  }
  if (!mine->in_block.empty()) machine.published_in_block[address].join(mine->in_block);
}

/// Before an atomicCAS: what this thread has last read of the word is a guess, which the exchange checks. Such a read
/// does not race with atomics.
void note_guess(std::uintptr_t address) {
  const Cell* cell = nullptr;
  if (const Allocation* const allocation = find_allocation(address)) {
    if (allocation->live) cell = &allocation->cells[(address - allocation->begin) / 4];
  } else if (in_dynamic_shared(address) || in(address, program().tls_begin, program().tls_end)) {
    const SharedState state = shared_state(address);
    cell = &state.cells[(address - state.begin) / 4];
  }
  if (!cell) return;
  for (const Access* read : {&cell->read, &cell->second_read, &cell->other_warp_read})
    if (read->block == machine.block_serial && read->thread == machine.thread_number) machine.guesses.insert(read->pc);
}

template <class T, class Update>
T atomic(T* address, Update update, const void* return_address, const void* frame) {
  hook(address, sizeof(T), Kind::atomic, return_address, frame);
  if (machine.watching) {
    const Unwatched unwatched;
    exchange_knowledge(reinterpret_cast<std::uintptr_t>(address));
  }
  const T old = *address;
  *address = static_cast<T>(update(old));
  const bool same = __builtin_memcmp(&old, address, sizeof old) == 0;
  machine.progress += !same;
  machine.polls += same;
  return old;
}

/// Where a kernel runs.
void note_guess_of(const void* address) {
  if (!machine.watching) return;
  const Unwatched unwatched;
  note_guess(reinterpret_cast<std::uintptr_t>(address));
}

/// How far two threads are from each other: 0 in one warp, 1 in one block, 2 in two blocks.
int distance(const ThreadId& a, const ThreadId& b) {
  if (!std::equal(a.block, a.block + 3, b.block)) return 2;
  return a.warp == b.warp ? 0 : 1;
}

}  // namespace

ThreadId current_thread() {
  ThreadId id = thread_id(machine.block_serial, machine.thread_number);
  id.whole_warp = machine.warp_wide;
  return id;
}

FaultRecord& report(FaultKind kind, Pc pc, std::string detail, Pc other_pc, const ThreadId& other) {
  leave_to_others();
  auto& faults = machine.measurement.faults;
  for (FaultRecord& fault : faults) {
    if (fault.kind == kind && fault.pc == pc && fault.other_pc == other_pc && fault.kernel == machine.kernel) {
      ++fault.count;
      // Lanes of a warp run first, so where a block's barrier is missing they meet before threads of two warps do.
      if (const ThreadId now = current_thread();
          other_pc && distance(now, other) > distance(fault.thread, fault.other_thread)) {
        fault.thread = now;
        fault.other_thread = other;
      }
      return fault;
    }
  }
  return faults.emplace_back(
      FaultRecord{kind, machine.kernel, pc, current_thread(), std::move(detail), other_pc, other});
}

void fail(FaultKind kind, Pc pc, std::string detail, Pc other_pc, const ThreadId& other) {
  report(kind, pc, std::move(detail), other_pc, other);
  stop();
}

void fence(Scope scope) {
  machine.watching = false;
  Ordering& mine = ordering();
  mine.acquired.join(mine.pending);
  mine.pending = {};
  Knowledge& published = scope == Scope::device ? mine.published : mine.in_block;
  published = mine.acquired;
  published.join(machine.block_acquired);
  if (machine.phase > 0) published.blocks[machine.block_serial] = machine.phase;
  const unsigned first_lane = machine.thread_number / kWarp * kWarp;
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    const std::uint32_t clock = machine.thread->warp_clocks[lane];
    if (clock == 0) continue;  // nothing is known of this lane
    const std::uint64_t id = std::uint64_t{machine.block_serial} << 16 | (first_lane + lane);
    published.threads[id] = stamp(machine.phase, clock);
  }
  if (machine.async) publish_known_threads(published);
  ++own_clock();  // what follows is not covered
  machine.watching = true;
}

void store_signal(unsigned* signal, unsigned value) {
  const Pc pc = relative_pc(__builtin_return_address(0));
  fence(Scope::device);
  const Unwatched unwatched;
  const auto address = reinterpret_cast<std::uintptr_t>(signal);
  check_access(address, sizeof *signal, Kind::atomic, pc);
  leave_to_others();
  const auto [found, first] = machine.signals.try_emplace(address);
  Signal& stored = found->second;
  // A kernel that has begun anew stores again what it has stored.
  if (first || stored.stream != machine.stream || stored.number != machine.number || *signal != value) {
    stored.before = *signal;
    if (!first) stored.known_before = stored.known;
  }
  stored.known = ordering().published;
  stored.known.streams.join(machine.over);
  stored.stream = machine.stream;
  stored.number = machine.number;
  *signal = value;
  ++machine.progress;
}

unsigned load_signal(const unsigned* signal) {
  constexpr int kMostLoads = 100;  // by one thread: whoever stores it must run first
  const Pc pc = relative_pc(__builtin_return_address(0));
  const Unwatched unwatched;
  const auto address = reinterpret_cast<std::uintptr_t>(signal);
  machine.volatile_access = true;
  check_access(address, sizeof *signal, Kind::load, pc);
  machine.volatile_access = false;
  leave_to_others();
  int& loads = machine.signal_loads[{std::uint64_t{machine.block_serial} << 16 | machine.thread_number, address}];
  if (++loads > kMostLoads) {
    machine.missing_signal = pc;
    stop();
  }
  const auto found = machine.signals.find(address);
  if (found == machine.signals.end()) return *signal;
  const Signal& stored = found->second;
  const bool late = loads == 1 && machine.over[stored.stream] < stored.number;
  const Knowledge& told = late ? stored.known_before : stored.known;
  ordering().acquired.join(told);
  machine.learned.join(told.streams);
  return late ? stored.before : *signal;
}

void copy_memory(void* to, const void* from, std::size_t bytes) {
  const void *const pc = __builtin_return_address(0), *const frame = __builtin_frame_address(0);
  hook_range(from, bytes, Kind::load, pc, frame);
  hook_range(to, bytes, Kind::store, pc, frame);
  const Unwatched unwatched;  // under clang the library's functions are hooks too
  std::memmove(to, from, bytes);
}

void set_memory(void* to, int value, std::size_t bytes) {
  hook_range(to, bytes, Kind::store, __builtin_return_address(0), __builtin_frame_address(0));
  const Unwatched unwatched;
  std::memset(to, value, bytes);
}

bool meets_copy(std::uintptr_t address, unsigned bytes, Kind kind, Pc pc) {
  const SharedState state = shared_state(address);
  return meets_copy(state.cells, state.bytes, state.begin, address, bytes, kind, pc);
}

// One instruction of a warp, in two memory spaces: every lane leaves two events, so that lanes inside and outside stay
// in step.
void copy_async(void* shared, const void* global, unsigned bytes, unsigned source) {
  const Pc pc = relative_pc(__builtin_return_address(0));
  const auto frame = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  const Unwatched unwatched;
  const auto from = reinterpret_cast<std::uintptr_t>(global), to = reinterpret_cast<std::uintptr_t>(shared);
  if (bytes != 4 && bytes != 8 && bytes != 16)
    fail(FaultKind::invalid_operand, pc, "an asynchronous copy has 4, 8 or 16 bytes, not " + std::to_string(bytes));
  source = std::min(source, bytes);
  check_alignment(from, bytes, pc);
  if (source > 0) {
    access_global(from, source, Kind::load, pc);
    ++machine.measurement.thread_accesses;
  }
  record(from, bytes, pc, frame, source > 0 ? Kind::load : Kind::step, Space::global);
  if (!in_dynamic_shared(to) && !in(to, program().tls_begin, program().tls_end))
    out_of_bounds(pc, "copies to what is not shared memory");
  observe(to, bytes, Kind::store, pc, frame);

  Copy copy{to, {}, bytes, machine.thread->groups, pc};
  std::memcpy(copy.values, global, source);
  machine.thread->copies.push_back(copy);
  std::uint8_t* const state = shared_state(to).bytes;
  for (unsigned i = 0; i < bytes; ++i) state[i] |= kInFlight;
  machine.copying = true;
}

void land_copies(std::uintptr_t mbarrier, std::uint32_t phase) {
  if (!machine.copying && !machine.visited) return;
  Thread* const threads = memory_block().threads;
  for (unsigned i = 0; i < machine.threads_per_block; ++i)
    std::erase_if(threads[i].copies, [&](const Copy& copy) {
      if (copy.mbarrier != mbarrier || copy.phase != phase) return false;
      arrive(copy);
      return true;
    });
}

void commit_copies() { ++machine.thread->groups; }

void wait_copies(unsigned pending) {
  const Unwatched unwatched;
  Thread& thread = *machine.thread;
  const auto done = [&](const Copy& copy) { return copy.group + pending < thread.groups; };
  const auto landed = std::find_if_not(thread.copies.begin(), thread.copies.end(), done);
  std::for_each(thread.copies.begin(), landed, land);
  thread.copies.erase(thread.copies.begin(), landed);
}

}  // namespace simt

#define SIMT_HERE __builtin_return_address(0), __builtin_frame_address(0)

#define SIMT_ATOMIC(T, Name, update)                        \
  T Name(T* address, T value) {                             \
    return simt::atomic(                                    \
        address, [=](T old) { return update; }, SIMT_HERE); \
  }
#define SIMT_COMPARE_AND_SWAP(T)                                                  \
  T atomicCAS(T* address, T compare, T value) {                                   \
    simt::note_guess_of(address);                                                 \
    return simt::atomic(                                                          \
        address, [=](T old) { return old == compare ? value : old; }, SIMT_HERE); \
  }
#define SIMT_ATOMICS(T)                                       \
  SIMT_ATOMIC(T, atomicAdd, old + value)                      \
  SIMT_ATOMIC(T, atomicMin, value < old ? value : old)        \
  SIMT_ATOMIC(T, atomicMax, old < value ? value : old)        \
  SIMT_ATOMIC(T, atomicExch, (static_cast<void>(old), value)) \
  SIMT_ATOMIC(T, atomicSub, old - value)                      \
  SIMT_ATOMIC(T, atomicAnd, old& value)                       \
  SIMT_ATOMIC(T, atomicOr, old | value)                       \
  SIMT_ATOMIC(T, atomicXor, old ^ value)                      \
  SIMT_COMPARE_AND_SWAP(T)
SIMT_ATOMICS(int)
SIMT_ATOMICS(unsigned)
SIMT_ATOMICS(unsigned long long)
SIMT_COMPARE_AND_SWAP(unsigned char)
SIMT_COMPARE_AND_SWAP(unsigned short)
SIMT_ATOMIC(long long, atomicMin, value < old ? value : old)
SIMT_ATOMIC(long long, atomicMax, old < value ? value : old)
SIMT_ATOMIC(long long, atomicAnd, old& value)
SIMT_ATOMIC(long long, atomicOr, old | value)
SIMT_ATOMIC(long long, atomicXor, old ^ value)
SIMT_ATOMIC(float, atomicAdd, old + value)
SIMT_ATOMIC(double, atomicAdd, old + value)
SIMT_ATOMIC(unsigned, atomicInc, old >= value ? 0 : old + 1)
SIMT_ATOMIC(unsigned, atomicDec, old == 0 || old > value ? value : old - 1)
SIMT_ATOMIC(float, atomicExch, (static_cast<void>(old), value))
namespace simt {
std::uint64_t atomic_update(void* address, unsigned bytes, std::uint64_t value,
                            std::uint64_t (*update)(std::uint64_t, std::uint64_t)) {
  const auto change = [=](std::uint64_t old) { return update(old, value); };
  if (bytes == 2) return atomic(static_cast<std::uint16_t*>(address), change, SIMT_HERE);
  return atomic(static_cast<std::uint32_t*>(address), change, SIMT_HERE);
}
}  // namespace simt

// ---- The compiler's hooks: the interfaces of ThreadSanitizer and of trace-pc coverage ------------------------------

extern "C" {

void __sanitizer_cov_trace_pc() {
  if (!simt::machine.watching) return;
  const simt::Unwatched unwatched;
  simt::record(0, 0, simt::relative_pc(__builtin_return_address(0)),
               reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)), simt::Kind::step, simt::Space::global);
}

// What a lab's exercise calls instead of the library's own (objcopy renames them there): the library's carry no hooks.
void* simt_memmove(void* to, const void* from, std::size_t bytes) {
  simt::hook_range(from, bytes, simt::Kind::load, SIMT_HERE);
  simt::hook_range(to, bytes, simt::Kind::store, SIMT_HERE);
  return std::memmove(to, from, bytes);
}
void* simt_memcpy(void* to, const void* from, std::size_t bytes) {
  simt::hook_range(from, bytes, simt::Kind::load, SIMT_HERE);
  simt::hook_range(to, bytes, simt::Kind::store, SIMT_HERE);
  return std::memmove(to, from, bytes);
}
void* simt_memset(void* to, int value, std::size_t bytes) {
  simt::hook_range(to, bytes, simt::Kind::store, SIMT_HERE);
  return std::memset(to, value, bytes);
}

// The same of mathematical functions that store results, in a plain CUDA program.
#define SIMT_STORES(pointer) simt::hook(pointer, sizeof *(pointer), simt::Kind::store, SIMT_HERE)
#define SIMT_TWO_RESULTS(name, T, Second)   \
  T simt_##name(T number, Second* second) { \
    SIMT_STORES(second);                    \
    return name(number, second);            \
  }
SIMT_TWO_RESULTS(modff, float, float)
SIMT_TWO_RESULTS(modf, double, double)
SIMT_TWO_RESULTS(frexpf, float, int)
SIMT_TWO_RESULTS(frexp, double, int)
void simt_sincosf(float angle, float* sine, float* cosine) {
  SIMT_STORES(sine);
  SIMT_STORES(cosine);
  sincosf(angle, sine, cosine);
}
void simt_sincos(double angle, double* sine, double* cosine) {
  SIMT_STORES(sine);
  SIMT_STORES(cosine);
  sincos(angle, sine, cosine);
}

// A type of less than natural alignment promises none: its accesses come in pieces.
#define SIMT_HOOK(name, observer, bytes, kind) \
  void __tsan_##name(void* address) { simt::observer(address, bytes, simt::Kind::kind, SIMT_HERE); }
#define SIMT_UPDATE_HOOK(name, observer, bytes)                   \
  void __tsan_##name(void* address) {                             \
    simt::observer(address, bytes, simt::Kind::load, SIMT_HERE);  \
    simt::observer(address, bytes, simt::Kind::store, SIMT_HERE); \
  }
#define SIMT_HOOKS(bytes)                                              \
  SIMT_HOOK(read##bytes, hook, bytes, load)                            \
  SIMT_HOOK(write##bytes, hook, bytes, store)                          \
  SIMT_HOOK(unaligned_read##bytes, hook_range, bytes, load)            \
  SIMT_HOOK(unaligned_write##bytes, hook_range, bytes, store)          \
  SIMT_HOOK(volatile_read##bytes, hook_volatile, bytes, load)          \
  SIMT_HOOK(volatile_write##bytes, hook_volatile, bytes, store)        \
  SIMT_HOOK(unaligned_volatile_read##bytes, hook_range, bytes, load)   \
  SIMT_HOOK(unaligned_volatile_write##bytes, hook_range, bytes, store) \
  SIMT_UPDATE_HOOK(read_write##bytes, hook, bytes)                     \
  SIMT_UPDATE_HOOK(unaligned_read_write##bytes, hook_range, bytes)
SIMT_HOOKS(1)
SIMT_HOOKS(2)
SIMT_HOOKS(4)
SIMT_HOOKS(8)
SIMT_HOOKS(16)

void __tsan_read_range(void* address, std::size_t bytes) {
  simt::hook_range(address, bytes, simt::Kind::load, SIMT_HERE);
}
void __tsan_write_range(void* address, std::size_t bytes) {
  simt::hook_range(address, bytes, simt::Kind::store, SIMT_HERE);
}

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_ignore_thread_begin() {}
void __tsan_ignore_thread_end() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

#if defined(__clang__)
// clang turns the copy of a struct into a call; linked with -Wl,--wrap. The host program comes here too.
void* __real_memcpy(void*, const void*, std::size_t);
void* __real_memmove(void*, const void*, std::size_t);
void* __real_memset(void*, int, std::size_t);
void* __wrap_memcpy(void* to, const void* from, std::size_t bytes) {
  if (simt::machine.watching) {
    simt::hook_range(from, bytes, simt::Kind::load, SIMT_HERE);
    simt::hook_range(to, bytes, simt::Kind::store, SIMT_HERE);
  }
  return __real_memcpy(to, from, bytes);
}
void* __wrap_memmove(void* to, const void* from, std::size_t bytes) {
  if (simt::machine.watching) {
    simt::hook_range(from, bytes, simt::Kind::load, SIMT_HERE);
    simt::hook_range(to, bytes, simt::Kind::store, SIMT_HERE);
  }
  return __real_memmove(to, from, bytes);
}
void* __wrap_memset(void* to, int value, std::size_t bytes) {
  if (simt::machine.watching) {
    simt::hook_range(to, bytes, simt::Kind::store, SIMT_HERE);
  }
  return __real_memset(to, value, bytes);
}
#endif

}  // extern "C"
