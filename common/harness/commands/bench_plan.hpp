/// @file
/// What `bench` runs: which stages, on which workloads.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "common/harness/commands/shard.hpp"
#include "common/harness/ladder/registry.hpp"
#include "common/harness/ladder/workloads.hpp"

namespace convladder {

/// What `bench` was asked for.
struct BenchCommand {
  std::vector<std::string> stages;                 ///< empty: all
  std::vector<std::string> tracks;                 ///< empty: all
  std::optional<std::string> dtype;                ///< that they compute in; none: each in its own
  std::vector<std::string> workloads;              ///< names, or "all"; empty: the first few of each track
  std::vector<std::string> shapes;                 ///< the user's layers, instead of workloads
  std::optional<std::string> padding;              ///< of those
  std::optional<std::filesystem::path> json, csv;  ///< written when everything has run
  std::vector<std::string> benchmark_flags;        ///< Google Benchmark's own
  std::string cudnn = "heuristics";                ///< or "exhaustive": how cuDNN's best is looked for
  Shard shard;                                     ///< of the workloads: run are those that are dealt to it
  std::optional<double> cudnn_seconds;             ///< of an exhaustive search, for each problem and element type
};

/// How long cuDNN's plans are searched for each problem and element type; none where they are not.
/// @throws UsageError where the options do not fit together, or the seconds are not above 0
std::optional<double> cudnn_search_seconds(const BenchCommand& command);

/// The stages that are both among the named ones and of a named track, in the type that was asked for, in the order of
/// their numbers.
/// @throws UsageError for an unknown stage or track, for one that has not the type, and where there is none
std::vector<const StageInfo*> chosen_stages(const BenchCommand& command);

/// A workload, and what runs on it: stages of its track (of a user's layer, of every track), and after them the rows
/// that are no stages.
struct PlannedWorkload {
  NamedWorkload named;
  std::vector<const StageInfo*> stages;
  /// Measured before them, since a ratio over one of these is asked for; no rows of their own.
  std::vector<const StageInfo*> followed = {};
  bool without_ablations = false;  ///< among both
};

/// The workloads of the chosen stages' tracks, track by track; or the user's layers, each with those of the chosen
/// stages that take it. Where times are taken, and so ratios, each workload also has the stages that its own ones
/// follow, in every configuration. Where neither stages nor workloads are named, ablations are on a track's first
/// workload alone.
/// @param on where the program runs
/// @throws UsageError for an unknown stage, track or workload, an unusable shape, and where nothing is to run;
/// RefusedError for a shape that no chosen stage takes
std::vector<PlannedWorkload> planned_workloads(const BenchCommand& command, Backend on);

}  // namespace convladder
