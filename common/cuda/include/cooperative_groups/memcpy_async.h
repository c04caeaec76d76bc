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
