/// @file
/// The whole ladder, driven by Google Benchmark.
#pragma once
#include "common/harness/commands/bench_plan.hpp"

namespace convladder {

/// Registers a benchmark "<workload>/<stage>" for each stage on each workload, runs them, prints the tables and writes
/// the files. With --benchmark_format the standard output is Google Benchmark's, and the tables go to standard error.
/// @return exit status: 1 if any result is wrong, a fault or an error; refusals do not count
int bench_command(const BenchCommand& command);

}  // namespace convladder
