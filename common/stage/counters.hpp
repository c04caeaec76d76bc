/// @file
/// What the simulator counts, and what a lesson predicts of it. The names are fixed: JSON, docs and graders use them.
#pragma once
#include <cstdint>

namespace convladder {

/// Counts over the timed launches of one run. "Bytes" are what lanes asked for (lanes x access size); a request is one
/// warp-wide instruction; a sector is a 32-byte piece of global memory touched by a request; a conflict is an extra
/// pass over the 32 shared-memory banks.
struct Counters {
  std::int64_t global_load_bytes = 0;
  std::int64_t global_load_requests = 0;
  std::int64_t global_load_sectors = 0;
  std::int64_t global_load_unique_bytes = 0;
  std::int64_t global_store_bytes = 0;
  std::int64_t global_store_requests = 0;
  std::int64_t global_store_sectors = 0;
  std::int64_t shared_load_requests = 0;
  std::int64_t shared_load_conflicts = 0;
  std::int64_t shared_store_requests = 0;
  std::int64_t shared_store_conflicts = 0;
  std::int64_t constant_load_requests = 0;
  std::int64_t atomic_requests = 0;
  std::int64_t barriers = 0;  ///< block-wide barriers completed, summed over blocks
  std::int64_t flops = 0;     ///< not observed: what the stage states, 0 where it states none
};

/// One counter by name, for reports and for comparing a prediction with a measurement.
struct CounterField {
  const char* name;
  std::int64_t Counters::*member;
};

/// Every counter, in the order of reports.
inline constexpr CounterField kCounterFields[] = {
    {"global_load_bytes", &Counters::global_load_bytes},
    {"global_load_requests", &Counters::global_load_requests},
    {"global_load_sectors", &Counters::global_load_sectors},
    {"global_load_unique_bytes", &Counters::global_load_unique_bytes},
    {"global_store_bytes", &Counters::global_store_bytes},
    {"global_store_requests", &Counters::global_store_requests},
    {"global_store_sectors", &Counters::global_store_sectors},
    {"shared_load_requests", &Counters::shared_load_requests},
    {"shared_load_conflicts", &Counters::shared_load_conflicts},
    {"shared_store_requests", &Counters::shared_store_requests},
    {"shared_store_conflicts", &Counters::shared_store_conflicts},
    {"constant_load_requests", &Counters::constant_load_requests},
    {"atomic_requests", &Counters::atomic_requests},
    {"barriers", &Counters::barriers},
    {"flops", &Counters::flops},
};

}  // namespace convladder
