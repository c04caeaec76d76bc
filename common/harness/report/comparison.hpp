/// @file
/// Results of several stages on one problem, side by side.
#pragma once
#include <string>
#include <vector>

#include "common/harness/files/terminal.hpp"
#include "common/harness/run/run_result.hpp"

namespace convladder {

/// A table with a column for each result and, beside all but the first, the ratio to the first; then for each of them
/// what changed most. Times on a GPU, counters in the simulator.
/// @param results at least one, of one problem
std::string comparison_text(const std::vector<RunResult>& results);

/// What stands beside a result that was ok: its ratios over the previous stage and over cuDNN, each with the times that
/// they are of; in the simulator, which has none, the two stages' counters.
/// @param followed of the previous stage on the same problem, in each configuration that ran, by default first; empty
/// where there is none
/// @param terminal that the text goes to, whose width the table fits
std::string beside_text(const RunResult& result, const std::vector<RunResult>& followed, const Terminal& terminal = {});

}  // namespace convladder
