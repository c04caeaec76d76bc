/// @file
/// The ladder as text: for each workload a table with a row for each stage.
#pragma once
#include <string>

#include "common/harness/report/report.hpp"

namespace convladder {

/// Device, ceilings, and a table for each workload among the rows (which follow one another by workload).
std::string bench_text(const BenchReport& report);

}  // namespace convladder
