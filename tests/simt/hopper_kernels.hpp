/// @file
/// Launches of the kernels in hopper.cu and hopper_pipeline.cu. Pointers are global memory of the simulator.
#pragma once
#include <cstdint>

#include "common/tensor_map.hpp"

/// Copies a box into shared memory and from there to `output`, byte by byte, `bytes` in all.
void launch_tensor_load(const void* tensor, const convladder::TensorForm& form, const int (&at)[5],
                        std::uint8_t* output, int bytes);
/// Fills shared memory with `bytes` bytes of `input` and stores them as a box.
void launch_tensor_store(void* tensor, const convladder::TensorForm& form, const int (&at)[5],
                         const std::uint8_t* input, int bytes);
/// make_tensor_map().
void make_map(const void* tensor, const convladder::TensorForm& form);
void launch_bulk_load(const std::uint8_t* input, std::uint8_t* output, int bytes);

/// Products of matrices that lie in shared memory.
struct ProductForm {
  bool bytes;        ///< signed bytes summed in int; else halves summed in float
  bool a_registers;  ///< A is given in registers
  int n;             ///< 8, 16, 24, 64, 112, 128, 200 or 256
  int span;          ///< of the swizzle, in bytes; 0: pieces of 8 rows of 16 bytes
  int steps;         ///< of 32 bytes
  int first_step;    ///< the descriptors begin here
  int shift;         ///< rows of B that are left out
};
/// d[64][n] = d + a b, where a is [64][row] and b [n + shift][row], of `row` bytes: (first_step + steps) * 32.
void launch_product(const ProductForm& form, const void* a, const void* b, void* d, int warpgroups);

// ---- Faults, and what they need to be right ------------------------------------------------------------------------

enum class Handoff { right, no_wait, wrong_parity, named, named_no_wait, named_arrive_after };
/// One warp writes shared memory, another reads it after a barrier. @param output 32 numbers: 0, 1, ...
void launch_handoff(float* output, Handoff form);
/// Three threads hand a number on, each to the next by a barrier of its own; the last reads what the first wrote.
void launch_handed_on(float* output, bool second_waits);
/// How other threads learn that a copy has landed which thread 0 alone has waited for.
enum class PassedOn { by_warp_barrier, by_block_barrier, not_at_all };
void launch_passed_on(const float* input, float* output, PassedOn how);

/// Two copies, each at its own barrier. Thread 32 waits for the second, and reads the one that it is told.
void launch_two_copies(const float* input, float* output, bool reads_first);
/// Two groups of stores, of which one is waited for. Then one of their sources is overwritten.
void launch_store_groups(float* output, bool overwrites_first);

enum class Misuse {
  none,
  no_init,
  init_unordered,
  init_unfenced,
  too_many_arrivals,
  rank,
  copy_misaligned,
  copy_out_of_bounds,
  copy_of_15_bytes,
  named_id,
  named_threads,
  named_counts,
  named_twice,
  barrier_in_global,
  copy_onto_copy,
  copy_over_write,
  never_waited,
  copy_then_threads,
};
void launch_misuse(const float* input, float* output, Misuse misuse);

enum class ProductMisuse {
  none,
  unwritten,
  past_end,
  two_rows,
  unfenced,
  unfenced_atomic,
  fenced_too_early,
  unordered,
  short_block,
  ended_lane,
  lanes_differ,
  overlap,
  touched_a,
  write_while_read,
  write_after_own_wait,
  right_after_own_wait,
  descriptor,
  newest_in_flight,
  oldest_done,
};
void launch_product_misuse(float* output, ProductMisuse misuse);

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
void launch_pipeline(const void* a, const void* b, void* out, int rows, int n, int slots, Broken broken);
