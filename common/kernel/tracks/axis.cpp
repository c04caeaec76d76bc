#include "common/kernel/tracks/axis.hpp"

#include <algorithm>

namespace convladder {

std::int64_t reads_of_range(const Axis& axis, std::int64_t first, std::int64_t count) {
  if (axis.padding != Padding::zero) return count;
  const std::int64_t begin = std::max<std::int64_t>(first, 0), end = std::min(first + count, axis.size);
  return std::max<std::int64_t>(end - begin, 0);
}

std::int64_t reads_by_output(const Axis& axis) {
  if (axis.padding != Padding::zero) return axis.taps * axis.out_size;
  // The first position i * stride + offset that is at least `least`, of those with i from 0 on.
  const auto first_at = [&](std::int64_t least, std::int64_t offset) {
    const std::int64_t i = least > offset ? (least - offset - 1) / axis.stride + 1 : 0;
    return std::min(i, axis.out_size);
  };
  std::int64_t reads = 0;
  for (std::int64_t tap = 0; tap < axis.taps; ++tap) {
    const std::int64_t offset = tap * axis.dilation - axis.pad;
    reads += first_at(axis.size, offset) - first_at(0, offset);
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

Axis readable(Axis axis) {
  if (axis.padding == Padding::zero) return axis;
  axis.size += 2 * axis.pad;
  axis.pad = 0;
  axis.padding = Padding::zero;
  return axis;
}

std::int64_t reads_of_tiles(const Axis& axis, int outputs, int lead, std::int64_t count) {
  std::int64_t sum = 0;
  for (std::int64_t start = 0; start < axis.out_size; start += outputs)
    sum += reads_of_range(axis, start * axis.stride - axis.pad - lead, count);
  return sum;
}

}  // namespace convladder
