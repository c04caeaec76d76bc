/// @file
/// The machine code of a stage's kernels.
#pragma once
#include <string>

#include "common/harness/ladder/registry.hpp"

namespace convladder {

/// The SASS of the stage's kernels, as cuobjdump prints it from the GPU program of this pair. Needs no GPU.
/// @throws MachineError if that program, cuobjdump or the kernels are missing
std::string sass_of(const StageInfo& stage);

}  // namespace convladder
