/// @file
/// Deliberately wrong kernels of the hopper track.
#pragma once
#include "common/stage/stage.hpp"

namespace convladder {

/// Of an implicit GEMM in fp16.
enum class GatherMutation {
  none,
  // Gathering
  image_of_first,          ///< all outputs of a tile belong to the image of its first
  strides_swapped,         ///< stride_h along the columns, stride_w along the rows
  swapped_padding,         ///< pad_h along the columns, pad_w along the rows
  dilation_ignored,        ///< taps across lie side by side
  replicate_reads_zero,    ///< with replicate padding zeros are read outside
  reads_row_before,        ///< columns outside of the image read the row before or after
  channels_of_next_pixel,  ///< past the last channel, the next pixel's are taken
  taps_by_columns,         ///< the filters' taps column by column, not row by row
  channels_above_32,       ///< are left out of the sums
  // Which lane holds what
  unswizzled_reads,    ///< rows are read as if their chunks had not changed places
  registers_swapped,   ///< registers 1 and 2 of the left matrix change places
  filters_transposed,  ///< the filters' matrices are transposed on their way
  lower_rows_lost,     ///< sums 2 and 3 are not stored
  // Ends
  outputs_past_end,  ///< the last tile is stored to its end
  filters_past_end,  ///< of an odd number of filters one too many is stored
  // The epilogue
  bias_of_last_block_lost,  ///< the last block of filters has none
  residual_of_next_row,     ///< where there is a row below
  relu_before_residual,     ///< the sums without the residual are clamped
  relu_lost,                ///< nothing is
  // Synchronisation
  missing_wait,          ///< nobody waits for the copies
  wait_after_barrier,    ///< the wait stands behind the barrier
  missing_barrier,       ///< between copies and products
  copies_before_barrier  ///< the next step is copied before the others have multiplied the last one
};

/// Defined for the mutations above.
template <GatherMutation M>
Stage* make_gather_mutant();

}  // namespace convladder
