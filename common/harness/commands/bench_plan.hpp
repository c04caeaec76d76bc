/// @file
/// What `bench` runs: which stages, on which workloads.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "common/harness/ladder/registry.hpp"
#include "common/harness/ladder/workloads.hpp"

namespace convladder {

/// What `bench` was asked for.
struct BenchCommand {
  std::vector<std::string> stages;                 ///< empty: all
  std::vector<std::string> tracks;                 ///< empty: all
  std::vector<std::string> workloads;              ///< names, or "all"; empty: the first few of each track
  std::optional<std::filesystem::path> json, csv;  ///< written when everything has run
  std::vector<std::string> benchmark_flags;        ///< Google Benchmark's own
  std::string cudnn = "heuristics";                ///< or "exhaustive": how cuDNN's best is looked for
  std::optional<double> cudnn_seconds;             ///< of an exhaustive search, for each problem and element type
};

/// How long cuDNN's plans are searched for each problem and element type; none where they are not.
/// @throws UsageError where the options do not fit together, or the seconds are not above 0
std::optional<double> cudnn_search_seconds(const BenchCommand& command);

/// The stages that are both among the named ones and of a named track, in the order of their numbers.
/// @throws UsageError for an unknown stage or track, and where there is none
std::vector<const StageInfo*> chosen_stages(const BenchCommand& command);

/// A workload, and what runs on it: stages of its track, and after them the rows that are no stages.
struct PlannedWorkload {
  NamedWorkload named;
  std::vector<const StageInfo*> stages;
};

/// The workloads of the chosen stages' tracks, track by track.
/// @throws UsageError for an unknown stage, track or workload, and where nothing is to run
std::vector<PlannedWorkload> planned_workloads(const BenchCommand& command);

}  // namespace convladder
