/// @file
/// Deliberately wrong kernels of the lowering track.
#pragma once
#include "common/stage/stage.hpp"

namespace convladder {

enum class LoweringMutation {
  none,
  // The window order
  taps_by_row,          ///< taps in the filter's order (c, r, s), windows in theirs, (c, s, r)
  channel_forgotten,    ///< every product finds its pixel in the first channel
  channel_of_input,     ///< channels of the tensor are as far apart as those of the input
  pad_columns_missing,  ///< a row of the tensor is taken for rows x width, without the padded columns
  rows_undilated,       ///< the transform takes neighbouring rows of the input
  columns_undilated,    ///< a window is one piece, whatever the dilation
  // Outputs
  stride_ignored,          ///< across: each window begins one column after the one before
  stride_across_for_both,  ///< the stride across, also down
  swapped_padding,         ///< pad_h along the columns, pad_w along the rows
  batch_ignored,           ///< every image is computed from the first
  flipped_filter,          ///< mathematical convolution instead of correlation
  replicate_reads_zero,    ///< wrong padding value
  reflect_repeats_edge,    ///< reflect, off by one
  nan_swallowed,           ///< NaN in the input becomes 0
  // Tails
  channels_above_32,         ///< are left out of the sums
  filters_above_128,         ///< are not computed
  products_past_depth,       ///< the last step goes on into the next filter's taps and the next channel's pixels
  unfilled_last_step,        ///< past the last product nothing is written to the tile: zeros are missing
  first_pixel_in_last_step,  ///< past the last product the tile holds the first one's pixel; the tap beside it is zero
  filters_past_end,          ///< one more than there are is written: into the next image
  unwritten_filters,         ///< past the last whole tile
  outputs_past_end,          ///< the last ones are filled up to four
  image_of_first,            ///< all outputs of a tile are written to the first one's image
  image_of_first_of_four,    ///< four outputs of a thread are written to the first one's image
  vector_of_any_plane,       ///< four outputs are written as a vector although p q is no multiple of 4
  // Synchronisation
  missing_wait,           ///< nobody waits for the copies
  missing_commit,         ///< copies are in no group, so that nothing waits for them
  one_group_unwaited,     ///< the newest group may be unfinished when its tile is read
  wait_after_barrier,     ///< each thread waits for its own copies, when the barrier is behind it
  missing_barrier,        ///< after the wait
  copies_before_barrier,  ///< that says that nobody reads the tile any more
  one_buffer,             ///< the next tile is copied over the one that is being multiplied
};

/// Defined for the mutations above.
template <LoweringMutation M>
Stage* make_lowering_mutant();

}  // namespace convladder
