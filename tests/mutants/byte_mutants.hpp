/// @file
/// Deliberately wrong kernels on tensors of bytes, to check that the tests of stage 34 would reject them.
#pragma once
#include "common/stage/stage.hpp"

namespace convladder {

/// Of a direct convolution in int8, an output a thread.
enum class ByteMutation {
  none,
  wraps,                 ///< outputs beyond 127 steps are not held there
  scale_of_next_filter,  ///< each filter's sums have the scale of another
  one_scale,             ///< all sums have the scale of the first filter
  unsigned_input,        ///< bytes of the input are read as 0 to 255
  short_sums,            ///< sums are kept in 16 bits
  filters_as_rows,       ///< outputs i and i + 8 of 16 where 2 i and 2 i + 1 belong
};

/// Defined for the mutations above.
template <ByteMutation M>
Stage* make_byte_mutant();

}  // namespace convladder
