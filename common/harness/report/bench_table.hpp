/// @file
/// The ladder as text: for each workload a table with a row for each stage.
#pragma once
#include <string>

#include "common/harness/files/terminal.hpp"
#include "common/harness/report/report.hpp"

namespace convladder {

/// Device, ceilings, and a table for each workload among the rows (which follow one another by workload).
/// @param terminal that the text goes to, whose width the tables fit
std::string bench_text(const BenchReport& report, const Terminal& terminal = {});

}  // namespace convladder
