/// @file
/// Rows of `bench` that a program in Python runs, with tensors of its own (harness/run/python_run.hpp). Where Python or
/// its package is missing, a row refuses every problem, with the reason.
#pragma once
#include <span>

#include "common/harness/ladder/registry.hpp"

namespace convladder {

/// PyTorch's conv2d beside every track, in the type that its tensors have or in fp16, and Triton's implicit GEMM beside
/// hopper. That of the track cpu runs on the host, the others on a GPU.
std::span<const StageInfo> python_rows();

}  // namespace convladder
