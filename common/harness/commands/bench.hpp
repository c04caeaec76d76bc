/// @file
/// The whole ladder, driven by Google Benchmark.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "common/harness/ladder/registry.hpp"

namespace convladder {

/// What `bench` was asked for.
struct BenchCommand {
  std::vector<std::string> stages;                 ///< empty: all
  std::vector<std::string> tracks;                 ///< empty: all
  std::vector<std::string> workloads;              ///< names, or "all"; empty: the first few of each track
  std::optional<std::filesystem::path> json, csv;  ///< written when everything has run
  std::vector<std::string> benchmark_flags;        ///< Google Benchmark's own
};

/// The stages that are both among the named ones and of a named track, in the order of their numbers.
/// @throws UsageError for an unknown stage or track, and where there is none
std::vector<const StageInfo*> chosen_stages(const BenchCommand& command);

/// Registers a benchmark "<workload>/<stage>" for each stage on each workload, runs them, prints the tables and writes
/// the files. With --benchmark_format the standard output is Google Benchmark's, and the tables go to standard error.
/// @return exit status: 1 if any result is wrong, a fault or an error; refusals do not count
int bench_command(const BenchCommand& command);

}  // namespace convladder
