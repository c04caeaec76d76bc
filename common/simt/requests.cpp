// Lanes run one after another, each up to where it must wait, and leave a trace. Here the 32 traces of a warp are
// issued as lockstep would have: of the lanes' next events the deepest call goes first, then the lowest program
// counter, and every lane that stands at that event takes part. Code is laid out in source order (-fno-reorder-blocks),
// so "lowest first" makes lanes that left a branch or a loop early wait behind it for the others, as the reconvergence
// barriers of a GPU do.

#include <algorithm>
#include <bit>

#include "common/simt/machine.hpp"

namespace simt {

std::array<Trace, kWarp> traces;

namespace {

constexpr std::uint64_t kNone = UINT64_MAX;

/// Counters by program counter; the table in Measurement is a map, too slow for each request.
struct Sites {
  std::unordered_map<Pc, Counters> counters;
  Pc last_pc = 0;
  Counters* last = nullptr;

  Counters& at(Pc pc) {
    if (!last || pc != last_pc) {
      last = &counters[pc];
      last_pc = pc;
    }
    return *last;
  }
} sites;

/// Distinct values, few of which are out of order.
std::int64_t count_distinct(std::uint64_t* values, unsigned count) {
  if (!std::is_sorted(values, values + count)) std::sort(values, values + count);
  return std::unique(values, values + count) - values;
}

/// Those that the lanes touch.
std::int64_t sectors_of(const Event* const* lanes, unsigned count) {
  std::uint64_t sectors[kWarp * 2];
  unsigned found = 0;
  for (unsigned i = 0; i < count; ++i) {
    const std::uint64_t first = lanes[i]->address(), last = first + lanes[i]->bytes() - 1;
    for (std::uint64_t sector = first / kSector; sector <= last / kSector; ++sector)
      if (found == 0 || sectors[found - 1] != sector) sectors[found++] = sector;
  }
  const std::int64_t distinct = count_distinct(sectors, found);
  if (lanes[0]->kind() == Kind::load) count_loads(sectors, static_cast<std::size_t>(distinct));
  return distinct;
}

/// Passes over the banks for lanes that are served together: the most distinct words that one bank must give.
std::int64_t bank_passes(std::uint64_t* words, unsigned count) {
  count = static_cast<unsigned>(count_distinct(words, count));
  std::int64_t load[32] = {}, most = 0;
  for (unsigned i = 0; i < count; ++i) most = std::max(most, ++load[words[i] & 31]);
  return most;
}

/// Extra passes of a shared-memory request. Up to 4 bytes a lane, all 32 lanes are served together; 8 bytes, 16 lanes;
/// 16 bytes, 8 lanes.
std::int64_t bank_conflicts(const Event* const* lanes, const std::uint8_t* lane_numbers, unsigned count) {
  const unsigned bytes = lanes[0]->bytes(), together = bytes <= 4 ? 32 : 128 / bytes;
  std::int64_t extra = 0;
  for (unsigned i = 0; i < count;) {
    std::uint64_t words[kWarp];
    unsigned found = 0;
    const unsigned group = lane_numbers[i] / together;
    for (; i < count && lane_numbers[i] / together == group; ++i)
      for (unsigned offset = 0; offset < bytes; offset += 4) words[found++] = (lanes[i]->address() + offset) >> 2;
    extra += bank_passes(words, found) - 1;
  }
  return extra;
}

/// Keeps a request for those who look.
/// @param cost sectors, or extra passes over the banks
void record_request(const Event* const* lanes, const std::uint8_t* lane_numbers, unsigned count, std::int64_t cost) {
  constexpr Deed kKinds[] = {Deed::load, Deed::load, Deed::store, Deed::atomic};  // by Kind
  BlockEvent* const event = record_event(kKinds[static_cast<unsigned>(lanes[0]->kind())], lanes[0]->pc());
  if (!event) return;
  event->bytes = lanes[0]->bytes();
  event->cost = cost;
  event->lanes = 0;
  record_place(*event, lanes[0]->address());
  for (unsigned i = 0; i < count; ++i) {
    event->lanes |= 1u << lane_numbers[i];
    if (i > 0) event->at.push_back(event->at[0] + static_cast<std::int64_t>(lanes[i]->address() - lanes[0]->address()));
  }
}

/// One warp-wide instruction in one memory space.
void issue(const Event* const* lanes, const std::uint8_t* lane_numbers, unsigned count) {
  const Event& first = *lanes[0];
  Counters& at = sites.at(first.pc());
  const std::int64_t bytes = static_cast<std::int64_t>(count) * first.bytes();
  std::int64_t cost = 1;
  if (first.kind() == Kind::atomic) {
    ++at.atomic_requests;
  } else if (first.space() == Space::constant) {
    ++at.constant_load_requests;
  } else if (first.space() == Space::global) {
    const std::int64_t sectors = sectors_of(lanes, count);
    const bool load = first.kind() == Kind::load;
    (load ? at.global_load_bytes : at.global_store_bytes) += bytes;
    (load ? at.global_load_requests : at.global_store_requests) += 1;
    (load ? at.global_load_sectors : at.global_store_sectors) += sectors;
    cost = sectors;
  } else {
    const std::int64_t conflicts = bank_conflicts(lanes, lane_numbers, count);
    const bool load = first.kind() == Kind::load;
    (load ? at.shared_load_requests : at.shared_store_requests) += 1;
    (load ? at.shared_load_conflicts : at.shared_store_conflicts) += conflicts;
    cost = conflicts;
  }
  if (machine.recorded) record_request(lanes, lane_numbers, count, cost);
}

}  // namespace

void issue_requests(unsigned running) {
  std::uint64_t order[kWarp], next = kNone;
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    const Trace& trace = traces[lane];
    order[lane] = trace.begin < trace.end ? trace.events[trace.begin].order() : kNone;
    if (order[lane] == kNone && running >> lane & 1) return;
    next = std::min(next, order[lane]);
  }
  for (bool decided = true; decided && next != kNone;) {
    const Event* taking_part[3][kWarp];
    std::uint8_t lane_numbers[3][kWarp];
    unsigned count[3] = {};
    std::uint64_t following = kNone;
    for (unsigned lane = 0; lane < kWarp; ++lane) {
      if (order[lane] == next) {
        Trace& trace = traces[lane];
        const Event& event = trace.events[trace.begin++];
        if (event.kind() == Kind::mark) {
          issue_mark(event.address());
        } else if (event.kind() != Kind::step) {
          const auto space = static_cast<unsigned>(event.space());
          taking_part[space][count[space]] = &event;
          lane_numbers[space][count[space]++] = static_cast<std::uint8_t>(lane);
        }
        if (trace.begin < trace.end) {
          order[lane] = trace.events[trace.begin].order();
        } else {
          order[lane] = kNone;
          decided &= !(running >> lane & 1);
        }
      }
      following = std::min(following, order[lane]);
    }
    next = following;
    for (unsigned space = 0; space < 3; ++space)
      if (count[space] > 0) issue(taking_part[space], lane_numbers[space], count[space]);
  }
  for (Trace& trace : traces) {
    std::copy(trace.events + trace.begin, trace.events + trace.end, trace.events);
    trace.end -= trace.begin;
    trace.begin = 0;
  }
}

Counters& counters_at(Pc pc) { return sites.at(pc); }

void forget_requests() { sites = {}; }

std::unordered_map<Pc, Counters> requests_so_far() { return sites.counters; }

void set_requests(std::unordered_map<Pc, Counters> counters) {
  forget_requests();
  sites.counters = std::move(counters);
}

/// Sums the sites into the measurement.
void collect_requests(Measurement& measurement) {
  measurement.by_pc.clear();
  const Counters kept = measurement.counters;
  measurement.counters = {};
  measurement.counters.barriers = kept.barriers;
  measurement.counters.global_load_unique_bytes = kept.global_load_unique_bytes;
  for (const auto& [pc, counters] : sites.counters) {
    measurement.by_pc[pc] = counters;
    for (const auto& field : convladder::kCounterFields) measurement.counters.*field.member += counters.*field.member;
  }
}

}  // namespace simt
