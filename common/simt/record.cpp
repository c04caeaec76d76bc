// What one block of each launch does, event by event, and how often all blocks load each sector: what `./lab trace`
// shows.

#include <algorithm>
#include <utility>
#include <vector>

#include "common/simt/machine.hpp"

namespace simt {

namespace {
std::vector<BlockEvent> marks;  // of the launch's recorded block
}

void record_block(BlockRecording* recording) { machine.recording = recording; }

void begin_record() {
  machine.recorded = false;
  if (!machine.recording) return;
  const unsigned(&wanted)[3] = machine.recording->block;
  const uint3 block = machine.block_index;
  if (block.x != wanted[0] || block.y != wanted[1] || block.z != wanted[2]) return;
  machine.recorded = true;
  marks.clear();
  const dim3 grid = machine.grid, size = machine.block;
  machine.recording->launches.push_back({machine.kernel, {grid.x, grid.y, grid.z}, {size.x, size.y, size.z}, {}});
}

BlockEvent* record_event(Deed kind, Pc pc) {
  if (!machine.recorded) return nullptr;
  BlockRecord& launch = machine.recording->launches.back();
  if (launch.events.size() >= machine.recording->limit) {
    ++launch.left_out;
    return nullptr;
  }
  BlockEvent& event = launch.events.emplace_back();
  event.kind = kind;
  event.pc = pc;
  event.warp = machine.thread_number / kWarp;
  event.lanes = 1u << machine.thread_number % kWarp;
  return &event;
}

void record_place(BlockEvent& event, std::uintptr_t address) {
  std::uintptr_t begin = address;
  bool placed_by_linker = false;  // where in a line such an object begins differs from one program to the next
  if (const Allocation* allocation = find_allocation(address)) {
    event.space = "global";
    event.object = allocation->name;
    begin = allocation->begin;
  } else if (address >= machine.dynamic_begin && address < machine.dynamic_end) {
    event.space = "shared";
    event.object = "dynamic shared memory";
    begin = machine.dynamic_begin;
  } else if (const Variable* shared = find_variable(program().shared, address)) {
    event.space = "shared";
    event.object = shared->name;
    begin = shared->begin;
    placed_by_linker = true;
  } else if (const Variable* constant = find_variable(program().constants, address)) {
    event.space = "constant";
    event.object = constant->name;
    begin = constant->begin;
    placed_by_linker = true;
  }
  event.origin = placed_by_linker ? 0 : begin % 128;
  event.at.push_back(static_cast<std::int64_t>(address - begin));
}

void mark(Deed kind, const void* place, Pc pc, unsigned bytes, std::int64_t cost) {
  if (!machine.recorded) return;
  BlockEvent& event = marks.emplace_back();
  event.kind = kind;
  event.pc = pc;
  event.warp = machine.thread_number / kWarp;
  event.lanes = 1u << machine.thread_number % kWarp;
  event.bytes = bytes;
  event.cost = cost;
  record_place(event, reinterpret_cast<std::uintptr_t>(place));
  record(marks.size() - 1, 0, pc, reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)), Kind::mark,
         Space::global);
}

void issue_mark(std::uint64_t index) {
  BlockEvent& event = marks[index];
  auto& events = machine.recording->launches.back().events;
  if (!events.empty()) {
    BlockEvent& last = events.back();
    if (last.kind == event.kind && last.pc == event.pc && last.warp == event.warp && last.at == event.at &&
        (last.lanes & event.lanes) == 0) {
      last.lanes |= event.lanes;
      return;
    }
  }
  if (BlockEvent* added = record_event(event.kind, event.pc)) *added = std::move(event);
}

void log_loads(LoadLog* log) { machine.load_log = log; }

void count_loads(const std::uint64_t* sectors, std::size_t count) {
  if (!machine.load_log) return;
  LoadLog& log = *machine.load_log;
  SectorLoads* of = nullptr;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uintptr_t address = sectors[i] * kSector;
    const auto holds = [address](const SectorLoads& each) {
      return each.kernel == machine.kernel && address >= each.begin && address - each.begin < each.bytes;
    };
    if (!of || !holds(*of)) {
      const auto found = std::find_if(log.begin(), log.end(), holds);
      if (found != log.end()) {
        of = &*found;
      } else {
        const Allocation* const allocation = find_allocation(address);
        if (!allocation) continue;
        const std::size_t bytes = allocation->end - allocation->begin;
        of = &log.emplace_back(SectorLoads{machine.kernel, allocation->name, allocation->begin, bytes, {}});
        of->loads.resize((bytes + kSector - 1) / kSector);
      }
    }
    ++of->loads[(address - of->begin) / kSector];
  }
}

}  // namespace simt
