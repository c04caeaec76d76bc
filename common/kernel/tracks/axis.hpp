/// @file
/// One dimension of a convolution, and how often its input is read: from this the lessons' predictions are counted.
#pragma once
#include <cstdint>

#include "common/stage/problem.hpp"

namespace convladder {

/// One dimension of the input, the output and the filter.
struct Axis {
  std::int64_t size;      ///< elements of the input
  std::int64_t out_size;  ///< elements of the output
  std::int64_t taps;      ///< filter length
  std::int64_t pad;       ///< position i of the output starts reading at input position i * stride - pad
  Padding padding;
  std::int64_t stride = 1, dilation = 1;
};

/// How many of the positions [first, first + count) read the input; outside it zero padding reads nothing.
std::int64_t reads_of_range(const Axis& axis, std::int64_t first, std::int64_t count);
/// How many (output, tap) pairs read the input.
std::int64_t reads_by_output(const Axis& axis);
/// How many elements are read if every `outputs` outputs load all from their first to their last element once.
std::int64_t reads_by_tile(const Axis& axis, std::int64_t outputs);

/// The positions that a kernel reads which never looks past the padding, where no output needs anything: a dimension
/// without padding, within which replicate and reflect read something at each position of it.
Axis readable(Axis axis);
/// How many elements are read if every `outputs` outputs load `count` of them, from `lead` before their first tap on.
std::int64_t reads_of_tiles(const Axis& axis, int outputs, int lead, std::int64_t count);

}  // namespace convladder
