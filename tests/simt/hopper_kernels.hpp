/// @file
/// Launches of the kernels in hopper.cu. Pointers are global memory of the simulator.
#pragma once
#include <cstdint>

#include "common/stage/tensor_map.hpp"

/// make_tensor_map().
void make_map(const void* tensor, const convladder::TensorForm& form);
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

/// Prefetches, and stores 32 ones. @param bytes none where they are negative
void launch_prefetch(const unsigned char* input, float* output, int first, int bytes);

enum class Misuse {
  none,
  no_init,
  init_unordered,
  init_unfenced,
  too_many_arrivals,
  rank,
  between_pieces,
  stored_before,
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

enum class ColumnMisuse { none, box_of_columns, column_of_boxes, before_corner, behind_corner, offset };
/// Loads a column of six images of a signal of five pixels with four floats.
void launch_column_misuse(const float* input, float* output, ColumnMisuse misuse);

/// Eight warps take so many registers a thread, the others leave but 40.
/// @param warps of all, 9 to 12  @param registers 232, 240 or 160
void launch_registers(int warps, int registers);

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
  read_after_others_wait,
  right_after_own_wait,
  right_after_others_wait,
  descriptor,
  newest_in_flight,
  oldest_done,
  other_element,
};
/// Ones times ones, of halves or of TF32. @param output 128 numbers: 16, or 8
void launch_product_misuse(float* output, ProductMisuse misuse, bool of_tf32);
