/// @file
/// A kernel with all that sm_90 adds, and ways to break it.
#pragma once
#include "common/stage/stage.hpp"

namespace convladder {

/// A producer and two warpgroups of consumers, with a ring: out[rows][128] = b[rows][64] times a[128][64], in halves.
enum class Broken {
  none,
  expect_too_many,
  expect_too_few,
  arrival_missing,
  no_empty_wait,
  full_for_empty,
  arrive_before_wait,
  one_group_arrives,
  no_full_wait,
  no_later_full_wait,
  one_lane_waits,
  no_proxy_fence,
  fence_after_barrier,
  no_init_fence,
  no_wgmma_fence,
  one_wgmma_fence,
  touched_after_fence,
  read_before_wait,
  write_before_wait,
  no_commit,
  no_staging_wait,
  no_staging_barrier,
  wait_without_commit,
  named_count,
  parity,
  other_descriptor,
  one_wgmma_less,
  one_lane_less,
};
/// @param a as shared memory has it, swizzled  @param slots of the ring  @param n rows of a tile: 8, 64 or 112
void launch_pipeline(const void* a, const void* b, void* out, int rows, int n, int slots, Broken broken, Stream stream);

}  // namespace convladder
