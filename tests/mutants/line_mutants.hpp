/// @file
/// Deliberately wrong kernels for images that lie in shared memory as one line, as in the tiles of stage 32.
#pragma once
#include "common/stage/stage.hpp"

namespace convladder {

/// Of a direct convolution in fp16, 3 x 3 in zeros.
enum class LineMutation {
  none,
  columns_always_shared,  ///< one column between two rows, also where the padding has none
  rows_always_shared,     ///< one row between two images, likewise
  nothing_behind,         ///< what lies behind the last row is not zeroed
  between_stored,         ///< the position between two rows is stored as an output
  images_past_batch,      ///< the last tile's images are stored, be they in the batch or not
};

/// Defined for the mutations above.
template <LineMutation M>
Stage* make_line_mutant();

}  // namespace convladder
