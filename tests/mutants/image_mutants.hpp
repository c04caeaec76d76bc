/// @file
/// Deliberately wrong 2-D kernels.
#pragma once
#include "common/stage/stage.hpp"

namespace convladder {

enum class ImageMutation {
  none,
  missing_corner,        ///< the halo's lower right corner is not loaded
  short_rows,            ///< the last row of the lower halo is not loaded
  shifted_columns,       ///< the tile starts one column late
  transposed_filter,     ///< rows and columns of the filter are swapped
  swapped_padding,       ///< pad_h along the columns, pad_w along the rows
  flipped_filter,        ///< mathematical convolution instead of correlation
  missing_barrier,       ///< between loading the tile and reading it
  unwritten_column,      ///< the last column of each tile
  write_past_row,        ///< the last tile of a row writes outputs that the image does not have
  replicate_reads_zero,  ///< wrong padding value
  reflect_repeats_edge,  ///< reflect, off by one
  nan_swallowed,         ///< NaN in the input becomes 0
  batch_ignored,         ///< every image is computed from the first
};

/// Defined for the mutations above.
template <ImageMutation M>
Stage* make_image_mutant();

}  // namespace convladder
