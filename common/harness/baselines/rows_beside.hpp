/// @file
/// Rows of `bench` that are no stages of the ladder: what a track is compared with, checked and timed as its stages
/// are.
#pragma once
#include <string_view>
#include <vector>

#include "common/harness/device/device.hpp"
#include "common/harness/ladder/registry.hpp"

namespace convladder {

/// The rows that stand below the stages of a track in a program of this backend, of the kind that Track::rows_beside
/// names; on a GPU, below these, what stands on a library. Last, what a
/// program in Python runs, on a GPU or on the host.
std::vector<const StageInfo*> rows_beside(std::string_view track, Backend backend);

/// Whether the row shows what single ideas of a stage bring, in a configuration that is never much faster than the
/// stage: `bench` without --workload has it on a track's first workload alone.
bool is_ablation(const StageInfo& row);

}  // namespace convladder
