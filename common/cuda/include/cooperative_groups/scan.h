/// @file
/// Prefix sums of a tile.
#pragma once
#include "common/cuda/include/cooperative_groups.h"

/// @cond
namespace cooperative_groups {

template <unsigned Size, class Parent, class T, class Operation = plus<T>>
__forceinline__ T inclusive_scan(const thread_block_tile<Size, Parent>& tile, T value, Operation operation = {},
                                 int line = __builtin_LINE()) {
  for (unsigned distance = 1; distance < Size; distance *= 2) {
    const T before = tile.shfl_up(value, distance, line);
    if (tile.thread_rank() >= distance) value = operation(before, value);
  }
  return value;
}
/// The first thread has T{}.
template <unsigned Size, class Parent, class T, class Operation = plus<T>>
__forceinline__ T exclusive_scan(const thread_block_tile<Size, Parent>& tile, T value, Operation operation = {},
                                 int line = __builtin_LINE()) {
  const T before = tile.shfl_up(inclusive_scan(tile, value, operation, line), 1, line);
  return tile.thread_rank() == 0 ? T{} : before;
}

}  // namespace cooperative_groups
/// @endcond
