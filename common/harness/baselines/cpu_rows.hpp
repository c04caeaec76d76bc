/// @file
/// Rows of `bench` beside the stage of the cpu track: what it is compared with, and its ablation. They run on the host,
/// with as many threads as the stage, and are checked and timed as it is.
#pragma once
#include <span>

#include "common/harness/ladder/registry.hpp"

namespace convladder {

/// The libraries choose their code for this CPU themselves: an OpenBLAS that is older than the CPU may not use all of
/// its instructions (the environment variable OPENBLAS_CORETYPE names another core).
///
/// In this order: "direct-cpu", the seven loops; "im2col-openblas" and "onednn", which refuse every problem where the
/// program was built without the library; then stage 22 with its switches turned on one by one, from "im2win-cpu plain"
/// to the stage without its threads. The last are missing where the program does not hold stage 22. Their number is 0.
std::span<const StageInfo> cpu_rows();

}  // namespace convladder
