/// @file
/// Cooperative groups over the simulator: the block and its tiles of 1 to 32 threads. Grids and coalesced groups are
/// not there.
#pragma once
#include "common/cuda/include/cuda_runtime.h"

/// @cond
namespace cooperative_groups {

class thread_block {
 public:
  __forceinline__ void sync(int line = __builtin_LINE()) const { simt::block_barrier(line); }
  static unsigned thread_rank() {
    const uint3 t = threadIdx;
    const dim3 b = blockDim;
    return (t.z * b.y + t.y) * b.x + t.x;
  }
  static unsigned num_threads() { return blockDim.x * blockDim.y * blockDim.z; }
  static unsigned size() { return num_threads(); }
  static uint3 group_index() { return blockIdx; }
  static uint3 thread_index() { return threadIdx; }
  static dim3 group_dim() { return blockDim; }
  static dim3 dim_threads() { return blockDim; }
};
__forceinline__ thread_block this_thread_block() { return {}; }
__forceinline__ void sync(const thread_block&, int line = __builtin_LINE()) { simt::block_barrier(line); }

template <unsigned Size, class Parent = thread_block>
class thread_block_tile {
  static_assert(Size >= 1 && Size <= 32 && (Size & (Size - 1)) == 0, "a tile has 1, 2, 4, 8, 16 or 32 threads");

 public:
  static unsigned thread_rank() { return thread_block::thread_rank() % Size; }
  static constexpr unsigned num_threads() { return Size; }
  static constexpr unsigned size() { return Size; }
  static unsigned meta_group_rank() { return thread_block::thread_rank() / Size; }
  static unsigned meta_group_size() { return (thread_block::num_threads() + Size - 1) / Size; }
  __forceinline__ void sync(int line = __builtin_LINE()) const { __syncwarp(mask(), line); }
  template <class T>
  __forceinline__ T shfl(T value, int source, int line = __builtin_LINE()) const {
    return __shfl_sync(mask(), value, source, Size, line);
  }
  template <class T>
  __forceinline__ T shfl_up(T value, unsigned delta, int line = __builtin_LINE()) const {
    return __shfl_up_sync(mask(), value, delta, Size, line);
  }
  template <class T>
  __forceinline__ T shfl_down(T value, unsigned delta, int line = __builtin_LINE()) const {
    return __shfl_down_sync(mask(), value, delta, Size, line);
  }
  template <class T>
  __forceinline__ T shfl_xor(T value, int bits, int line = __builtin_LINE()) const {
    return __shfl_xor_sync(mask(), value, bits, Size, line);
  }
  __forceinline__ unsigned ballot(int predicate, int line = __builtin_LINE()) const {
    return (__ballot_sync(mask(), predicate, line) & mask()) >> first_lane();
  }
  __forceinline__ int any(int predicate, int line = __builtin_LINE()) const {
    return __any_sync(mask(), predicate, line);
  }
  __forceinline__ int all(int predicate, int line = __builtin_LINE()) const {
    return __all_sync(mask(), predicate, line);
  }

 private:
  static __forceinline__ unsigned first_lane() { return static_cast<unsigned>(simt::lane_index()) / Size * Size; }
  static __forceinline__ unsigned mask() { return (Size == 32 ? ~0u : (1u << Size % 32) - 1) << first_lane(); }
};
template <unsigned Size, class Parent>
__forceinline__ thread_block_tile<Size, Parent> tiled_partition(const Parent&) {
  return {};
}
template <class Group>
__forceinline__ void sync(const Group& group, int line = __builtin_LINE()) {
  group.sync(line);
}

template <class T>
struct plus {
  __forceinline__ T operator()(T a, T b) const { return a + b; }
};
template <class T>
struct less {
  __forceinline__ T operator()(T a, T b) const { return b < a ? b : a; }
};
template <class T>
struct greater {
  __forceinline__ T operator()(T a, T b) const { return a < b ? b : a; }
};
template <unsigned Size, class Parent, class T, class Operation>
__forceinline__ T reduce(const thread_block_tile<Size, Parent>& tile, T value, Operation operation,
                         int line = __builtin_LINE()) {
  for (unsigned bits = Size / 2; bits > 0; bits /= 2)
    value = operation(value, tile.shfl_xor(value, static_cast<int>(bits), line));
  return value;
}

}  // namespace cooperative_groups
/// @endcond
