/// @file
/// A stage with three block barriers: one needed, though no output of the simulator's order shows it; one needed, which
/// outputs show; one not needed.
#pragma once
#include "common/stage/stage.hpp"

namespace convladder {

/// Computes signals with filters of two taps. A block has 32 threads, 64 from 100 outputs on.
Stage* make_stage_with_barriers();

}  // namespace convladder
