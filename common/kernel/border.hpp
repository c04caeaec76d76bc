/// @file
/// Where a position outside the input reads, for each padding mode. Used by every kernel and by the CPU reference.
#pragma once
#include "common/kernel/kernel.hpp"

namespace convladder {

/// The input index that padded position `i` reads along one dimension, or -1 where it reads zero.
/// @param i position, -size < i < 2 * size - 1 for reflect; any for the other modes
/// @param size length of the dimension, at least 1
__host__ __device__ __forceinline__ int border_index(int i, int size, Padding padding) {
  if (i >= 0 && i < size) return i;
  if (padding == Padding::zero) return -1;
  if (padding == Padding::replicate) return i < 0 ? 0 : size - 1;
  return i < 0 ? -i : size - 1 - (i - (size - 1));
}

}  // namespace convladder
