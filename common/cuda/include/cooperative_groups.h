/// @file
/// Cooperative groups over the simulator: the grid, the cluster, the block, its tiles of 1 to 32 threads, coalesced
/// groups.
#pragma once
#include "common/cuda/include/cuda_runtime.h"

/// @cond
namespace simt_cuda {
/// Of tiles of several warps: a barrier of whole warps, and what the threads of a block give each other, by their
/// ranks.
void tile_barrier(unsigned tile, unsigned threads);
void tile_write(unsigned rank, const void* value, size_t bytes);
void tile_read(unsigned rank, void* value, size_t bytes);
}  // namespace simt_cuda

namespace cooperative_groups {

class thread_block {
 public:
  class arrival_token {};
  __forceinline__ void sync(int line = __builtin_LINE()) const { simt::block_barrier(line); }
  /// What a thread does between the two counts as done before the barrier.
  __forceinline__ static arrival_token barrier_arrive() { return {}; }
  __forceinline__ static void barrier_wait(arrival_token&& = {}, int line = __builtin_LINE()) {
    simt::block_barrier(line);
  }
  static unsigned thread_rank() {
    const uint3 t = simt::thread_index();
    const dim3 b = simt::block_size();
    return (t.z * b.y + t.y) * b.x + t.x;
  }
  static unsigned num_threads() { return simt::block_size().x * simt::block_size().y * simt::block_size().z; }
  static unsigned size() { return num_threads(); }
  static uint3 group_index() { return simt::block_index(); }
  static uint3 thread_index() { return simt::thread_index(); }
  static dim3 group_dim() { return simt::block_size(); }
  static dim3 dim_threads() { return simt::block_size(); }
};
__forceinline__ thread_block this_thread_block() { return {}; }
/// What CUDA's tiles of several warps exchange their values through; the simulator keeps them elsewhere.
template <unsigned Threads = 1024>
struct block_tile_memory {
  char bytes[16];
};
template <unsigned Threads>
__forceinline__ thread_block this_thread_block(block_tile_memory<Threads>&) {
  return {};
}
__forceinline__ void sync(const thread_block&, int line = __builtin_LINE()) { simt::block_barrier(line); }

class grid_group {
 public:
  class arrival_token {};
  __forceinline__ void sync(int line = __builtin_LINE()) const { simt::grid_barrier(line); }
  __forceinline__ static arrival_token barrier_arrive() { return {}; }
  __forceinline__ static void barrier_wait(arrival_token&& = {}, int line = __builtin_LINE()) {
    simt::grid_barrier(line);
  }
  static bool is_valid() { return true; }
  static unsigned long long block_rank() {
    const uint3 b = simt::block_index();
    const dim3 g = simt::grid_size();
    return (b.z * 1ull * g.y + b.y) * g.x + b.x;
  }
  static unsigned long long num_blocks() {
    return simt::grid_size().x * 1ull * simt::grid_size().y * simt::grid_size().z;
  }
  static unsigned long long thread_rank() {
    return block_rank() * thread_block::num_threads() + thread_block::thread_rank();
  }
  static unsigned long long num_threads() { return num_blocks() * thread_block::num_threads(); }
  static unsigned long long size() { return num_threads(); }
  static dim3 dim_blocks() { return simt::grid_size(); }
  static dim3 group_dim() { return simt::grid_size(); }
  static dim3 dim_threads() {
    const dim3 size = simt::block_size(), blocks = simt::grid_size();
    return {blocks.x * size.x, blocks.y * size.y, blocks.z * size.z};
  }
  static dim3 thread_index() {
    const dim3 size = simt::block_size(), block = simt::block_index(), thread = simt::thread_index();
    return {block.x * size.x + thread.x, block.y * size.y + thread.y, block.z * size.z + thread.z};
  }
  static dim3 block_index() { return simt::block_index(); }
  static unsigned long long cluster_rank() {
    const uint3 c = simt::cluster_index();
    const dim3 g = simt::grid_of_clusters();
    return (c.z * 1ull * g.y + c.y) * g.x + c.x;
  }
  static unsigned long long num_clusters() {
    return simt::grid_of_clusters().x * 1ull * simt::grid_of_clusters().y * simt::grid_of_clusters().z;
  }
  static dim3 cluster_index() { return simt::cluster_index(); }
  static dim3 dim_clusters() { return simt::grid_of_clusters(); }
};
__forceinline__ grid_group this_grid() { return {}; }

/// The blocks of a cluster.
class cluster_group {
 public:
  class arrival_token {};
  __forceinline__ static void sync(int line = __builtin_LINE()) {
    simt::cluster_arrive(true, true, line);
    simt::cluster_wait(line);
  }
  __forceinline__ static arrival_token barrier_arrive(int line = __builtin_LINE()) {
    simt::cluster_arrive(true, true, line);
    return {};
  }
  __forceinline__ static void barrier_wait(int line = __builtin_LINE()) { simt::cluster_wait(line); }
  __forceinline__ static void barrier_wait(arrival_token&&, int line = __builtin_LINE()) { simt::cluster_wait(line); }
  static unsigned block_rank() { return simt::rank_in_cluster(); }
  static unsigned num_blocks() { return simt::blocks_in_cluster(); }
  static dim3 block_index() { return simt::block_in_cluster(); }
  static dim3 dim_blocks() { return simt::cluster_size(); }
  static unsigned thread_rank() { return block_rank() * thread_block::num_threads() + thread_block::thread_rank(); }
  static unsigned num_threads() { return num_blocks() * thread_block::num_threads(); }
  static unsigned size() { return num_threads(); }
  static dim3 thread_index() {
    const dim3 size = simt::block_size(), block = simt::block_in_cluster(), thread = simt::thread_index();
    return {block.x * size.x + thread.x, block.y * size.y + thread.y, block.z * size.z + thread.z};
  }
  static dim3 dim_threads() {
    const dim3 size = simt::block_size(), blocks = simt::cluster_size();
    return {blocks.x * size.x, blocks.y * size.y, blocks.z * size.z};
  }
  template <class T>
  __forceinline__ static T* map_shared_rank(T* pointer, int rank) {
    return static_cast<T*>(
        simt::map_shared(const_cast<const std::remove_cv_t<T>*>(pointer), static_cast<unsigned>(rank)));
  }
  static unsigned query_shared_rank(const void* pointer) { return simt::rank_of_shared(pointer); }
};
__forceinline__ cluster_group this_cluster() { return {}; }
__forceinline__ void sync(const cluster_group&, int line = __builtin_LINE()) { cluster_group::sync(line); }

/// Threads of a warp that are together at one call.
class coalesced_group {
 public:
  __forceinline__ explicit coalesced_group(unsigned mask) : mask_(mask) {}
  __forceinline__ unsigned thread_rank() const {
    return static_cast<unsigned>(__builtin_popcount(mask_ & ((1u << simt::lane_index()) - 1)));
  }
  __forceinline__ unsigned num_threads() const { return static_cast<unsigned>(__builtin_popcount(mask_)); }
  __forceinline__ unsigned size() const { return num_threads(); }
  __forceinline__ unsigned meta_group_rank() const { return 0; }
  __forceinline__ unsigned meta_group_size() const { return 1; }
  __forceinline__ void sync(int line = __builtin_LINE()) const { __syncwarp(mask_, line); }
  template <class T>
  __forceinline__ T shfl(T value, unsigned rank, int line = __builtin_LINE()) const {
    return simt::shuffle(mask_, value, lane_of(rank), line);
  }
  template <class T>
  __forceinline__ T shfl_up(T value, unsigned delta, int line = __builtin_LINE()) const {
    const unsigned rank = thread_rank();
    return simt::shuffle(mask_, value, lane_of(rank >= delta ? rank - delta : rank), line);
  }
  template <class T>
  __forceinline__ T shfl_down(T value, unsigned delta, int line = __builtin_LINE()) const {
    const unsigned rank = thread_rank();
    return simt::shuffle(mask_, value, lane_of(rank + delta < num_threads() ? rank + delta : rank), line);
  }
  __forceinline__ unsigned ballot(int predicate, int line = __builtin_LINE()) const {
    return packed(__ballot_sync(mask_, predicate, line));
  }
  __forceinline__ int any(int predicate, int line = __builtin_LINE()) const {
    return __any_sync(mask_, predicate, line);
  }
  __forceinline__ int all(int predicate, int line = __builtin_LINE()) const {
    return __all_sync(mask_, predicate, line);
  }
  template <class T>
  __forceinline__ unsigned match_any(T value, int line = __builtin_LINE()) const {
    return packed(__match_any_sync(mask_, value, line));
  }
  __forceinline__ unsigned mask() const { return mask_; }

 private:
  __forceinline__ int lane_of(unsigned rank) const {
    unsigned left = mask_;
    for (; rank > 0; --rank) left &= left - 1;
    return __builtin_ctz(left);
  }
  /// By rank.
  __forceinline__ unsigned packed(unsigned lanes) const {
    unsigned result = 0, rank = 0;
    for (unsigned left = mask_; left; left &= left - 1, ++rank) result |= (lanes >> __builtin_ctz(left) & 1) << rank;
    return result;
  }
  unsigned mask_;
};
__forceinline__ coalesced_group coalesced_threads(int line = __builtin_LINE()) {
  return coalesced_group(simt::active_mask(line));
}

/// A tile within a warp.
template <unsigned Size>
class warp_tile {
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
  template <class T>
  __forceinline__ unsigned match_any(T value, int line = __builtin_LINE()) const {
    return __match_any_sync(mask(), value, line) >> first_lane();
  }
  template <class T>
  __forceinline__ unsigned match_all(T value, int& all, int line = __builtin_LINE()) const {
    return __match_all_sync(mask(), value, &all, line) >> first_lane();
  }
  static __forceinline__ unsigned first_lane() { return static_cast<unsigned>(simt::lane_index()) / Size * Size; }
  static __forceinline__ unsigned mask() { return (Size == 32 ? ~0u : (1u << Size % 32) - 1) << first_lane(); }
};

/// A tile of several warps: its threads exchange their values through memory of the simulator's, between two barriers.
template <unsigned Size>
class warps_tile {
 public:
  static unsigned thread_rank() { return thread_block::thread_rank() % Size; }
  static constexpr unsigned num_threads() { return Size; }
  static constexpr unsigned size() { return Size; }
  static unsigned meta_group_rank() { return thread_block::thread_rank() / Size; }
  static unsigned meta_group_size() { return (thread_block::num_threads() + Size - 1) / Size; }
  __forceinline__ void sync(int line = __builtin_LINE()) const {
    if (thread_block::num_threads() <= Size)
      simt::block_barrier(line);
    else
      simt_cuda::tile_barrier(meta_group_rank(), Size);
  }
  template <class T>
  __forceinline__ T shfl(T value, unsigned source, int line = __builtin_LINE()) const {
    static_assert(sizeof(T) <= 16, "a tile of several warps exchanges values of at most 16 bytes");
    const unsigned first = meta_group_rank() * Size;
    simt_cuda::tile_write(first + thread_rank(), &value, sizeof value);
    sync(line);
    simt_cuda::tile_read(first + source % Size, &value, sizeof value);
    sync(line);
    return value;
  }
  __forceinline__ int any(int predicate, int line = __builtin_LINE()) const {
    return combined(
        predicate != 0, [](int a, int b) { return a | b; }, line);
  }
  __forceinline__ int all(int predicate, int line = __builtin_LINE()) const {
    return combined(
        predicate != 0, [](int a, int b) { return a & b; }, line);
  }
  /// Of all threads of the tile, warp by warp.
  template <class T, class Operation>
  __forceinline__ T combined(T value, Operation operation, int line) const {
    static_assert(sizeof(T) <= 16, "a tile of several warps exchanges values of at most 16 bytes");
    const unsigned first = meta_group_rank() * Size;
    for (int bits = 16; bits > 0; bits /= 2) value = operation(value, __shfl_xor_sync(~0u, value, bits, 32, line));
    if (thread_rank() % 32 == 0) simt_cuda::tile_write(first + thread_rank(), &value, sizeof value);
    sync(line);
    T result = value;
    for (unsigned warp = 0; warp < Size / 32; ++warp) {
      T other = value;
      simt_cuda::tile_read(first + warp * 32, &other, sizeof other);
      result = warp == 0 ? other : static_cast<T>(operation(result, other));
    }
    sync(line);
    return result;
  }
};

template <unsigned Size, class Parent = void>
class thread_block_tile : public std::conditional_t<(Size > 32), warps_tile<Size>, warp_tile<Size>> {
  static_assert(Size >= 1 && Size <= 1024 && (Size & (Size - 1)) == 0, "the threads of a tile are a power of two");

 public:
  thread_block_tile() = default;
  template <class Other>
  __forceinline__ thread_block_tile(const thread_block_tile<Size, Other>&) {}
};
/// A tile of a tile counts its neighbours within that.
template <unsigned Size, unsigned Outer, class Parent>
class thread_block_tile<Size, thread_block_tile<Outer, Parent>>
    : public std::conditional_t<(Size > 32), warps_tile<Size>, warp_tile<Size>> {
 public:
  static unsigned meta_group_rank() { return thread_block::thread_rank() % Outer / Size; }
  static constexpr unsigned meta_group_size() { return Outer / Size; }
};
template <unsigned Size, class Parent>
__forceinline__ thread_block_tile<Size, Parent> tiled_partition(const Parent&) {
  return {};
}

/// Any group, as a function takes it that does not say which.
class thread_group {
 public:
  __forceinline__ thread_group(const thread_block&) : mask_(0), size_(thread_block::size()) {}
  __forceinline__ thread_group(const coalesced_group& group) : mask_(group.mask()), size_(group.size()) {}
  template <unsigned Size>
  __forceinline__ thread_group(const warp_tile<Size>& tile) : mask_(tile.mask()), size_(Size) {}
  __forceinline__ thread_group(unsigned mask, unsigned size) : mask_(mask), size_(size) {}
  __forceinline__ unsigned size() const { return size_; }
  __forceinline__ unsigned num_threads() const { return size_; }
  __forceinline__ unsigned thread_rank() const {
    return mask_ == 0 ? thread_block::thread_rank() : coalesced_group(mask_).thread_rank();
  }
  __forceinline__ void sync(int line = __builtin_LINE()) const {
    if (mask_ == 0)
      simt::block_barrier(line);
    else
      __syncwarp(mask_, line);
  }

 private:
  unsigned mask_, size_;  ///< the mask is 0 for the block
};
__forceinline__ thread_group tiled_partition(const thread_group&, unsigned size) {
  const unsigned first = static_cast<unsigned>(simt::lane_index()) / size * size;
  return {(size == 32 ? ~0u : (1u << size % 32) - 1) << first, size};
}
/// The threads of the group that give the same label.
template <class Group, class T>
__forceinline__ coalesced_group labeled_partition(const Group& group, T label, int line = __builtin_LINE()) {
  return coalesced_group(__match_any_sync(group.mask(), label, line) & group.mask());
}
template <class Group>
__forceinline__ coalesced_group binary_partition(const Group& group, bool label, int line = __builtin_LINE()) {
  return labeled_partition(group, static_cast<int>(label), line);
}
template <class Group>
__forceinline__ void sync(const Group& group, int line = __builtin_LINE()) {
  group.sync(line);
}
template <class Group>
__forceinline__ void synchronize(const Group& group, int line = __builtin_LINE()) {
  group.sync(line);
}
template <class Group>
__forceinline__ auto thread_rank(const Group& group) {
  return group.thread_rank();
}
template <class Group>
__forceinline__ auto group_size(const Group& group) {
  return group.size();
}
/// A group of one.
class single_thread {
 public:
  static constexpr unsigned thread_rank() { return 0; }
  static constexpr unsigned num_threads() { return 1; }
  static constexpr unsigned size() { return 1; }
  __forceinline__ void sync(int = 0) const {}
};
__forceinline__ single_thread this_thread() { return {}; }

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
template <unsigned Size, class T, class Operation>
__forceinline__ T reduce(const warps_tile<Size>& tile, T value, Operation operation, int line = __builtin_LINE()) {
  return tile.combined(value, operation, line);
}
template <unsigned Size, class T, class Operation>
__forceinline__ T reduce(const warp_tile<Size>& tile, T value, Operation operation, int line = __builtin_LINE()) {
  for (unsigned bits = Size / 2; bits > 0; bits /= 2)
    value = operation(value, tile.shfl_xor(value, static_cast<int>(bits), line));
  return value;
}

template <class T>
struct bit_and {
  __forceinline__ T operator()(T a, T b) const { return a & b; }
};
template <class T>
struct bit_or {
  __forceinline__ T operator()(T a, T b) const { return a | b; }
};
template <class T>
struct bit_xor {
  __forceinline__ T operator()(T a, T b) const { return a ^ b; }
};
template <class T, class Operation>
__forceinline__ T reduce(const coalesced_group& group, T value, Operation operation, int line = __builtin_LINE()) {
  T result = group.shfl(value, 0, line);
  for (unsigned rank = 1; rank < group.size(); ++rank) result = operation(result, group.shfl(value, rank, line));
  return result;
}
template <class Group, class T, class Operation>
__forceinline__ T inclusive_scan(const Group& group, T value, Operation operation, int line = __builtin_LINE()) {
  for (unsigned delta = 1; delta < group.size(); delta *= 2) {
    const T before = group.shfl_up(value, delta, line);
    if (group.thread_rank() >= delta) value = operation(before, value);
  }
  return value;
}
template <class Group, class T>
__forceinline__ T inclusive_scan(const Group& group, T value, int line = __builtin_LINE()) {
  return inclusive_scan(group, value, plus<T>(), line);
}
template <class Group, class T, class Operation>
__forceinline__ T exclusive_scan(const Group& group, T value, Operation operation, int line = __builtin_LINE()) {
  const T before = group.shfl_up(inclusive_scan(group, value, operation, line), 1, line);
  return group.thread_rank() == 0 ? T{} : before;
}
template <class Group, class T>
__forceinline__ T exclusive_scan(const Group& group, T value, int line = __builtin_LINE()) {
  return exclusive_scan(group, value, plus<T>(), line);
}
/// What one thread of the group computes, for all.
template <class Group, class Function>
__forceinline__ auto invoke_one_broadcast(const Group& group, Function function, int line = __builtin_LINE()) {
  decltype(function()) value{};
  if (group.thread_rank() == 0) value = function();
  return group.shfl(value, 0, line);
}
template <class Group, class Function>
__forceinline__ void invoke_one(const Group& group, Function function) {
  if (group.thread_rank() == 0) function();
}

}  // namespace cooperative_groups
/// @endcond
