/// @file
/// Rows of `bench` that are no stages of the ladder: what a track is compared with, checked and timed as its stages
/// are.
#pragma once
#include <string_view>
#include <vector>

#include "common/harness/device/device.hpp"
#include "common/harness/ladder/registry.hpp"

namespace convladder {

/// The rows that stand below the stages of a track in a program of this backend: cuFFT below the images and cuBLAS
/// below the lowering track, and other tiles of stage 35 below the hopper track, on a GPU; the CPU's own below the
/// track cpu, and the winograd track's stages with other knobs below it, everywhere.
std::vector<const StageInfo*> rows_beside(std::string_view track, Backend backend);

}  // namespace convladder
