/// @file
/// The named problems of each track: what `bench` runs, and what `run` takes where no shape is given.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/harness/check/inputs.hpp"
#include "common/harness/device/device.hpp"
#include "common/stage/problem.hpp"

namespace convladder {

/// A problem with a name.
struct NamedWorkload {
  std::string name;  ///< "w=2^24 r=5"
  ConvProblem problem;
  FilterForm filter = FilterForm::dense;
  /// What the track's first stage costs in the simulator: accesses of single threads. 0 for a GPU's workloads.
  std::int64_t simulated_accesses = 0;
};

/// Every workload of a track, the headline first. The simulator's are small: it handles some million accesses a second.
/// Those of the track cpu do not depend on the backend. Empty for a track that has none yet.
std::vector<NamedWorkload> workloads_of(std::string_view track, Backend backend);

/// How many workloads of a track bench runs unless it is told otherwise.
inline constexpr std::size_t kBenchWorkloads = 3;
/// The first kBenchWorkloads of workloads_of(); on a GPU the first alone where the track's stages are alike there.
std::vector<NamedWorkload> bench_workloads(std::string_view track, Backend backend);

/// The workloads of a track that `name` selects: one, by its name with or without spaces; those whose name has this
/// before its sizes ("VGG"); or every one for "all". None where the track has no such workload.
std::vector<NamedWorkload> select_workloads(std::string_view track, Backend backend, std::string_view name);

}  // namespace convladder
