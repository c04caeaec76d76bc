/// @file
/// A problem and what a run of it observed, as JSON: the counters, faults and lines of `run --json` and of the labs.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "common/harness/device/device.hpp"

namespace convladder {

/// Its sizes by ConvProblem's names, and "padding".
nlohmann::ordered_json problem_json(const ConvProblem& problem);
/// Counters by name; a negative one (no claim) is null.
nlohmann::ordered_json counters_json(const Counters& counters);
/// [{kind, kernel, file, line, block, thread, other, count, warp, whole_warp, access, second: {file, line, block,
/// thread, warp, whole_warp, access}}...]; what is not known is null.
nlohmann::ordered_json faults_json(const std::vector<Fault>& faults);
/// [{file, line, counters}...], or null if there are none.
nlohmann::ordered_json lines_json(const std::vector<LineCounters>& lines);

}  // namespace convladder
