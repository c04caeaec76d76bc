/// @file
/// Deliberately wrong kernels of the winograd track.
#pragma once
#include "common/stage/stage.hpp"

namespace convladder {

/// Of a fused kernel in fp32, F(4 x 4).
enum class WinogradMutation {
  none,
  // Tiles
  second_image_shifted,  ///< tiles of all images but the first begin one column too far right
  images_rounded_down,   ///< an image has as many rows of tiles as fit in it whole
  unmasked_last_tile,    ///< the last tile of a row is written to its end, into the next row
  unmasked_last_row,     ///< the last tile of a column is written to its end, into the next plane
  past_padding,          ///< the last tiles read what lies in memory beyond the input, where no output needs it
  reads_row_before,      ///< columns outside of the input read the row before or after
  mask_transposed,       ///< bit (j, i) instead of (i, j) tells whether a pixel is inside
  swapped_padding,       ///< pad_h along the columns, pad_w along the rows
  nan_swallowed,         ///< NaN in the input becomes 0
  // Transforms
  wrong_sign,           ///< of a point, in the input's transform
  transposed_position,  ///< position (j, i) of the filter meets (i, j) of the input
  transposed_output,    ///< a tile's outputs are written in columns
  // Channels and filters
  channels_above_64,      ///< are left out of the sums
  tail_block_of_filters,  ///< past the last whole block of filters, those of the block before
};

/// Of a partly fused kernel on WMMA: fp16, F(4 x 4), or int8, F(2 x 2).
enum class FragmentMutation {
  none,
  none_llc,  ///< right as well: transformed tiles in the block's own piece of global memory
  // Padding inside
  pair_past_channels,     ///< after the last of an odd number of channels, the next pixel's first one is taken
  unfilled_channels,      ///< past the last channel, transformed input and filter are those of the last one
  pairs_of_odd_filters,   ///< after the last of an odd number of filters, the next pixel's first output is written
  position_of_transpose,  ///< M's rows and columns of positions change places
  // Synchronisation
  no_barrier_before_loads,      ///< warps load what others may not have transformed yet
  no_barrier_after_loads,       ///< the next channels are transformed over what others may not have loaded yet
  no_barrier_before_loads_llc,  ///< the same through global memory
  no_barrier_after_loads_llc,
  shared_piece,        ///< all blocks have one piece of global memory
  patch_of_next_warp,  ///< sums leave through the patch of the next warp
  // int8
  scales_of_transpose,     ///< of position (j, i) instead of (i, j)
  scale_of_next_filter,    ///< the output is multiplied by it
  scale_of_first_channel,  ///< a filter's scale comes from its first channel alone
  wraps,                   ///< what is too large for a byte is not clipped
  bytes_unsigned,          ///< the lower byte of a pair spoils the upper one
  scale_per_tensor,        ///< right, but less exact: one scale for the input at all positions
};

/// Defined for the mutations above.
template <WinogradMutation M>
Stage* make_winograd_mutant();
/// Likewise; those of int8 alone are not.
template <FragmentMutation M>
Stage* make_half_mutant();
/// Likewise; of fp16's those that the int8 kernel may have too.
template <FragmentMutation M>
Stage* make_int8_mutant();

}  // namespace convladder
