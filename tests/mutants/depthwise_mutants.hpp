/// @file
/// Deliberately wrong depthwise kernels.
#pragma once
#include "common/stage/stage.hpp"

namespace convladder {

enum class DepthwiseMutation {
  none,
  first_filter,            ///< the filter of channel 0 for every channel
  filter_of_image,         ///< nc / channels instead of nc % channels: the filter goes with the image
  filter_of_plane,         ///< the filter of plane nc, which only the first image has
  planes_swapped,          ///< the planes of the input lie as [channels][batch]
  batch_ignored,           ///< every image is computed from the first
  channels_above_32,       ///< are not computed
  unwritten_tail,          ///< columns past the last whole tile of 16
  write_past_row,          ///< rows are filled up to a multiple of 4, as if every output row were whole vectors
  plane_of_output,         ///< the planes of the input are as far apart as those of the output
  stride_ignored,          ///< down
  stride_across_for_both,  ///< the stride across, also down
  dilation_ignored,        ///< across
  dilation_swapped,        ///< down along the columns, across along the rows
  swapped_padding,         ///< pad_h along the columns, pad_w along the rows
  reads_plane_above,       ///< rows above the plane read the plane before it in memory, rows below the one after
  reads_row_before,        ///< columns before a row read the end of the row before it in memory, and the other way
  flipped_filter,          ///< mathematical convolution instead of correlation
  transposed_filter,       ///< rows and columns of the filter are swapped
  even_centre,             ///< taps count from one too far left, as if the radius were (s + 1) / 2
  replicate_reads_zero,    ///< wrong padding value
  reflect_repeats_edge,    ///< reflect, off by one
  nan_swallowed,           ///< NaN in the input becomes 0
};

/// Defined for the mutations above.
template <DepthwiseMutation M>
Stage* make_depthwise_mutant();

}  // namespace convladder
