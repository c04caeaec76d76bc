/// @file
/// Asynchronous copies of a group, and the waits for them, over the simulator's cp.async.
#pragma once
#include "common/cuda/include/cooperative_groups.h"
#include "common/cuda/include/cuda/barrier"

/// @cond
namespace cooperative_groups {

template <class Group>
__forceinline__ void memcpy_async(const Group& group, void* to, const void* from, size_t bytes) {
  ::cuda::sim_copy(to, from, bytes, group.thread_rank(), group.size());
  simt::commit_copies();
}
/// What both layouts, in elements, have room for.
template <class Group, class T, class ToLayout, class FromLayout>
__forceinline__ void memcpy_async(const Group& group, T* to, const ToLayout& to_layout, const T* from,
                                  const FromLayout& from_layout) {
  const size_t to_count = to_layout, from_count = from_layout;
  memcpy_async(group, to, from, (to_count < from_count ? to_count : from_count) * sizeof(T));
}
template <class Group>
__forceinline__ void wait(const Group& group, int line = __builtin_LINE()) {
  simt::wait_copies(0);
  group.sync(line);
}
template <unsigned Pending, class Group>
__forceinline__ void wait_prior(const Group& group, int line = __builtin_LINE()) {
  simt::wait_copies(Pending);
  group.sync(line);
}

}  // namespace cooperative_groups
/// @endcond
