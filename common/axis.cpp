#include "common/axis.hpp"

#include <algorithm>

namespace convladder {

std::int64_t reads_of_range(const Axis& axis, std::int64_t first, std::int64_t count) {
  if (axis.padding != Padding::zero) return count;
  const std::int64_t begin = std::max<std::int64_t>(first, 0), end = std::min(first + count, axis.size);
  return std::max<std::int64_t>(end - begin, 0);
}

std::int64_t reads_by_output(const Axis& axis) {
  std::int64_t reads = 0;
  for (std::int64_t tap = 0; tap < axis.taps; ++tap) {
    if (axis.stride == 1) {
      reads += reads_of_range(axis, tap * axis.dilation - axis.pad, axis.out_size);
    } else {
      for (std::int64_t i = 0; i < axis.out_size; ++i)
        reads += reads_of_range(axis, i * axis.stride + tap * axis.dilation - axis.pad, 1);
    }
  }
  return reads;
}

std::int64_t reads_by_tile(const Axis& axis, std::int64_t outputs) {
  std::int64_t reads = 0;
  for (std::int64_t start = 0; start < axis.out_size; start += outputs) {
    const std::int64_t count = std::min(outputs, axis.out_size - start);
    reads += reads_of_range(axis, start * axis.stride - axis.pad,
                            (count - 1) * axis.stride + (axis.taps - 1) * axis.dilation + 1);
  }
  return reads;
}

}  // namespace convladder
