/// @file
/// Deliberately wrong 1-D kernels.
#pragma once
#include "common/stage/stage.hpp"

namespace convladder {

enum class SignalMutation {
  none,
  short_halo,            ///< the last element of the right halo is not loaded
  shifted_halo,          ///< the tile starts one element late
  flipped_filter,        ///< mathematical convolution instead of correlation
  missing_barrier,       ///< between loading the tile and reading it
  unwritten_tail,        ///< the last output of each block
  write_past_end,        ///< the last block writes a full block of outputs
  replicate_reads_zero,  ///< wrong padding value
  reflect_repeats_edge,  ///< reflect, off by one
  nan_swallowed,         ///< NaN in the input becomes 0
  batch_ignored,         ///< every signal is computed from the first
};

/// Defined for the mutations above.
template <SignalMutation M>
Stage* make_signal_mutant();

}  // namespace convladder
