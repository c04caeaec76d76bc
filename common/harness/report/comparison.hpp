/// @file
/// Results of several stages on one problem, side by side.
#pragma once
#include <string>
#include <vector>

#include "common/harness/run/run_result.hpp"

namespace convladder {

/// A table with a column for each result and, beside all but the first, the ratio to the first; then for each of them
/// what changed most. Times on a GPU, counters in the simulator.
/// @param results at least one, of one problem
std::string comparison_text(const std::vector<RunResult>& results);

}  // namespace convladder
