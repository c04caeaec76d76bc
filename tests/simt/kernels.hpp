/// @file
/// Small kernels with known answers, for the simulator's own tests. Each function launches one.
#pragma once
#include <cstdint>

// ---- counters.cu: what each counter must say -----------------------------------------------------------------------

void launch_strided_load(const float* input, float* output, int stride, int offset, int blocks);
void launch_broadcast_load(const float* input, float* output);
void launch_float4_copy(const float* input, float* output);
void launch_shared_column(float* output, bool padded);
void launch_shared_stride(float* output, int stride);
void launch_shared_float4(float* output);
void launch_float4_strides(const float* input, float* output, int global_stride, int shared_stride);
void launch_constant_loads(const float* values, float* output, bool broadcast);
void launch_two_branches(const float* input, float* output);
void launch_border_loop(const float* input, const float* filter, float* output, int n, int radius);
void launch_border_image(const float* input, float* output, int size, int radius);
void launch_triangular_loop(const float* input, float* output);
void launch_early_exit(const float* input, float* output, int lanes);
void launch_break_out(const float* input, float* output);
void launch_continue(const float* input, float* output);
void launch_nested_loops(const float* input, float* output);
void launch_long_divergent_loop(const float* input, float* output, int iterations);
void launch_calls_in_branches(const float* input, float* output);
void launch_struct_copy(const float* input, float* output);
void launch_memory_copy(const float* input, float* output);
void launch_vector_parameter(float* output);
void launch_histogram(const int* input, int* bins, int n);
void launch_barriers(float* output, int barriers, int blocks, int threads);
void launch_indices(int* output);

// ---- async.cu: asynchronous copies, their counts and their faults ---------------------------------------------------

void launch_async_copy(const float* input, float* output, int bytes, int n, int from_stride, int to_stride);
void launch_async_border(const float* input, float* output, int size, int radius);
void launch_async_groups(const float* input, float* output, int early);  // which group is read too early; 3 for none
void launch_empty_group(const float* input, float* output);
void launch_double_buffer(const float* input, float* output, int tiles, bool fixed);
void launch_read_before_wait(const float* input, float* output, bool fixed);
void launch_barrier_without_wait(const float* input, float* output, bool fixed);
void launch_wait_without_barrier(const float* input, float* output, bool fixed);
void launch_wait_after_barrier(const float* input, float* output, int copier);
void launch_copy_too_early(const float* input, float* output, bool fixed);
void launch_store_in_flight(const float* input, float* output, bool fixed);
void launch_atomic_in_flight(const float* input, float* output, bool fixed);
void launch_copy_onto_copy(const float* input, float* output, bool fixed);
void launch_never_committed(const float* input, float* output, bool fixed);
void launch_misaligned_copy(const float* input, float* output, int from, int to);
void launch_copy_out_of_bounds(const float* input, float* output, int n, int shared_words);
void launch_copy_to_global(const float* input, float* output);
void launch_copy_from_shared(float* output);
void launch_source_still_written(float* data, float* output, bool fixed);
void launch_copies_of_an_earlier_block(const float* input, float* output);

// ---- warps.cu: shuffles, votes, masks ------------------------------------------------------------------------------

void launch_warp_sum(const float* input, float* output, int threads);
void launch_shuffles(int* output);
void launch_votes(unsigned* output);
void launch_half_masks(int* output);
void launch_odd_sources(int* output);
void launch_syncwarps_of_two_lines(int* output);
void launch_warp_scan_shared(const float* input, float* output);

// ---- faults.cu: each must be caught at its marked line; with `fixed`, a twin that must be silent -------------------

void launch_read_past_end(const float* input, float* output, int n, bool fixed);
void launch_read_before_begin(const float* input, float* output, bool fixed);
void launch_write_past_end(float* output, int n, bool fixed);
void launch_static_shared_past_end(float* output, bool fixed);
void launch_dynamic_shared_past_end(float* output, bool fixed);
void launch_constant_past_end(const float* values, float* output, bool fixed);
void launch_misaligned_vector(const float* input, float* output, bool fixed);
void launch_uninitialized_shared(float* output, bool fixed);
void launch_missing_sync(const float* input, float* output, bool fixed);
void launch_sync_too_late(const float* input, float* output, bool fixed);
void launch_warp_synchronous(const float* input, float* output, bool fixed);
void launch_shuffle_orders_nothing(const float* input, float* output, bool fixed);
void launch_blocks_share_output(float* output, bool fixed);
void launch_blocks_read_each_other(float* data, bool fixed);
void launch_last_block(const float* input, float* partial, unsigned* ticket, float* output, bool fixed);
void launch_exit_before_barrier(float* output, int n, bool fixed);
void launch_barrier_in_branches(float* output, bool fixed);
void launch_shuffle_in_branch(float* output, bool fixed);
void launch_deep_fault(const float* input, float* output, int n, bool fixed);
void launch_recursion(int* output, int depth);
void launch_small_recursion(int* output, int depth);
void launch_rows_past_end(float* output, bool fixed);
void launch_row_before_begin(const float* image, float* output, int width, bool fixed);
void launch_copy_past_end(const float* input, float* output, bool fixed);
void launch_too_long_upload(const float* values);
void launch_write_before_atomic(int* output, bool fixed);
void launch_warp_barrier_only(float* output, bool fixed);
void launch_acquired_by_warp(const float* input, float* partial, unsigned* ticket, float* output, bool fixed);
void launch_block_fence(const float* input, float* partial, unsigned* ticket, float* output);
void launch_barriers_of_one_line(float* output, bool fixed);
void launch_collectives_of_one_line(int* output, bool fixed);
void launch_endless_barrier(float* output);
void launch_division(int* output, int divisor);
void launch_endless(float* output);
void launch_too_much_static_shared(float* output);
void launch_too_many_threads(float* output);

// ---- half.cu: halves as their bits ---------------------------------------------------------------------------------

void launch_half_copies(const std::uint16_t* input, std::uint16_t* output);
void launch_cache_global(const float* input, std::uint16_t* half_output, float* output);

// ---- wmma.cu: matrix fragments -------------------------------------------------------------------------------------

/// Of the factors, the accumulator, and the result where it differs.
enum class MatrixTypes { half_float, half_half, half_float_half, signed_bytes, unsigned_bytes };

enum class MatrixPart { a, b, load_c, store_c };

/// One load or store of a fragment. A load fills `output` with a store of 32 floats.
struct FragmentAccess {
  int m;
  MatrixTypes types;
  MatrixPart part;
  bool by_rows, shared;
  unsigned stride;
  int elements;  ///< up to the end of the last row or column
  void* memory;  ///< global
  float* output;
};
void launch_fragment_access(const FragmentAccess& access);

void launch_misaligned_matrix(const std::uint16_t* input, float* output, int offset, int stride);
void launch_misaligned_result(float* output, int stride);
void launch_missing_lane(const std::uint16_t* input, float* output, bool fixed);
void launch_ended_lane(float* output, int threads, bool fixed);
void launch_different_matrices(const std::uint16_t* input, float* output, bool fixed);
void launch_load_without_syncwarp(const std::uint16_t* input, float* output, bool fixed);
void launch_own_line(const std::uint16_t* input, float* output, bool fixed);
void launch_store_after_load(const std::uint16_t* input, float* output, bool fixed);
void launch_read_after_matrix_store(float* output, bool fixed);
void launch_load_after_matrix_store(float* output, bool fixed);
void launch_load_of_another_warp(const std::uint16_t* input, float* output, bool fixed);
void launch_matrix_past_end(const std::uint16_t* input, float* output, int stride);
void launch_result_past_shared(float* output, int stride);
void launch_unwritten_matrix(const std::uint16_t* input, float* output, bool fixed);

// ---- mma.cu: matrix instructions -----------------------------------------------------------------------------------

/// One mma_m16n8k16 or mma_m16n8k32 on the lanes' registers. @param a [lane][4]  @param b [lane][2]  @param d [lane][4]
void launch_registers_product(const unsigned* a, const unsigned* b, float* d);
void launch_registers_product(const unsigned* a, const unsigned* b, int* d);
/// d [16][8] = a b, through ldmatrix. @param a [16][16]  @param b [8][16], a row for each column of d
void launch_memory_product(const std::uint16_t* a, const std::uint16_t* b, float* d);

/// ldmatrix or stmatrix of `count` matrices. Lane l gives the row 5 l mod (8 count).
struct MatrixRows {
  int count;
  bool transposed, store;
  int pitch;            ///< halves from row to row in shared memory
  std::uint16_t* rows;  ///< global [8 count][pitch]; of a store [8 count][8]
  unsigned* registers;  ///< [lane][count]
};
void launch_matrix_rows(const MatrixRows& rows);

enum class MatrixMistake {
  none,
  misaligned,
  from_global,
  missing_lane,
  different_instructions,
  past_end,
  unwritten,
  no_syncwarp,
  own_row,
  no_wait
};
/// @param input 256 halves
void launch_matrix_mistake(MatrixMistake mistake, const std::uint16_t* input, unsigned* output);
void launch_product_without_lane(float* output, int threads, bool fixed);
void launch_store_after_matrix_load(const std::uint16_t* input, unsigned* output, bool fixed);
void launch_read_after_stmatrix(unsigned* output, bool fixed);
void launch_stmatrix_of_one_row(unsigned* output, bool fixed);
void launch_rows_of_another_warp(const std::uint16_t* input, unsigned* output, bool fixed);
