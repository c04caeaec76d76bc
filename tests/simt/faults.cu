// The line on which each fault must be found carries a marker: "// <- name".
#include "common/kernel/kernel.hpp"
#include "tests/simt/kernels.hpp"

using convladder::dynamic_shared;
using convladder::launch;
using convladder::upload_constant;

namespace {

__global__ void read_past_end(const float* input, float* output, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) output[i] = input[i + 1];  // <- read_past_end
}

__global__ void read_before_begin(const float* input, float* output, int shift) {
  const int i = threadIdx.x;
  output[i] = input[i - shift];  // <- read_before_begin
}

__global__ void write_past_end(float* output, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) output[i] = 1;  // <- write_past_end
}

__global__ void static_shared_past_end(float* output, int shift) {
  __shared__ float first[64];
  __shared__ float second[64];
  first[threadIdx.x] = 1;
  second[threadIdx.x] = 2;
  __syncthreads();
  output[threadIdx.x] = second[threadIdx.x] + first[threadIdx.x + shift];  // <- static_shared_past_end
}

__global__ void dynamic_shared_past_end(float* output) {
  float* tile = dynamic_shared<float>();
  tile[threadIdx.x] = 1;  // <- dynamic_shared_past_end
  __syncthreads();
  output[threadIdx.x] = tile[threadIdx.x];
}

__constant__ float c_four[4];

__global__ void constant_past_end(float* output, int count) {
  float sum = 0;
  for (int i = 0; i < count; ++i) sum += c_four[i];  // <- constant_past_end
  output[threadIdx.x] = sum;
}

__global__ void misaligned_vector(const float* input, float* output) {
  const float4 value = *reinterpret_cast<const float4*>(input + 4 * threadIdx.x);  // <- misaligned_vector
  output[threadIdx.x] = value.x;
}

__global__ void uninitialized_shared(float* output, int written) {
  __shared__ float tile[64];
  if (static_cast<int>(threadIdx.x) < written) tile[threadIdx.x] = 1;
  __syncthreads();
  output[blockIdx.x * 64 + threadIdx.x] = tile[threadIdx.x];  // <- uninitialized_shared
}

template <bool Sync>
__global__ void missing_sync(const float* input, float* output) {
  __shared__ float tile[64];
  tile[threadIdx.x] = input[threadIdx.x];
  if (Sync) __syncthreads();
  output[threadIdx.x] = tile[63 - threadIdx.x];  // <- missing_sync
}

// A second tile is loaded while slow threads still read the first.
template <bool Sync>
__global__ void sync_too_late(const float* input, float* output) {
  __shared__ float tile[64];
  float sum = 0;
  for (int k = 0; k < 2; ++k) {
    tile[threadIdx.x] = input[64 * k + threadIdx.x];  // <- sync_too_late
    __syncthreads();
    sum += tile[63 - threadIdx.x];
    if (Sync) __syncthreads();
  }
  output[threadIdx.x] = sum;
}

template <bool Sync>
__global__ void warp_synchronous(const float* input, float* output) {
  __shared__ float sums[32];
  const unsigned lane = threadIdx.x;
  sums[lane] = input[lane];
  for (unsigned distance = 16; distance > 0; distance /= 2) {
    if (Sync) __syncwarp();
    if (lane < distance) sums[lane] += sums[lane + distance];  // <- warp_synchronous
  }
  if (lane == 0) output[0] = sums[0];
}

template <bool Sync>
__global__ void shuffle_orders_nothing(const float* input, float* output) {
  __shared__ float tile[32];
  const unsigned lane = threadIdx.x;
  tile[lane] = input[lane];
  const float other = __shfl_sync(0xffffffffu, input[lane], 0);
  if (Sync) __syncwarp();
  output[lane] = other + tile[31 - lane];  // <- shuffle_orders_nothing
}

__global__ void blocks_share_output(float* output, int pitch) {
  output[blockIdx.x * pitch + threadIdx.x] = static_cast<float>(blockIdx.x);  // <- blocks_share_output
}

// Block 1 reads what block 0 writes, or its own.
__global__ void blocks_read_each_other(float* data, int from) {
  data[blockIdx.x * 32 + threadIdx.x] = 1;
  __syncthreads();
  const int block = blockIdx.x == 0 ? 0 : from;
  const float value = data[block * 32 + threadIdx.x];  // <- blocks_read_each_other
  if (value != 1) data[blockIdx.x * 32 + threadIdx.x] = 2;
}

// The last block to finish adds up what all have left: the pattern that needs a fence and an atomic.
template <bool Fence>
__global__ void last_block(const float* input, float* partial, unsigned* ticket, float* output) {
  __shared__ bool is_last;
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = input[blockIdx.x];
    if (Fence) __threadfence();
    is_last = atomicAdd(ticket, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!is_last) return;
  if (threadIdx.x < gridDim.x) {
    const float value = partial[threadIdx.x];  // <- last_block
    atomicAdd(output, value);
  }
}

__global__ void exit_before_barrier(float* output, int n) {
  __shared__ float tile[64];
  if (static_cast<int>(threadIdx.x) >= n) return;
  tile[threadIdx.x] = 1;
  __syncthreads();  // <- exit_before_barrier
  output[threadIdx.x] = tile[threadIdx.x];
}

__global__ void barrier_in_branches(float* output, int split) {
  if (static_cast<int>(threadIdx.x) < split) {
    output[threadIdx.x] = 1;
    __syncthreads();  // <- barrier_in_branches
  } else {
    output[threadIdx.x] = 2;
    __syncthreads();
  }
}

__global__ void shuffle_in_branch(float* output, int lanes) {
  float value = 1;
  if (static_cast<int>(threadIdx.x) < lanes) value = __shfl_sync(0xffffffffu, value, 0);  // <- shuffle_in_branch
  __syncwarp();
  output[threadIdx.x] = value;
}

__device__ __attribute__((noinline)) float innermost(const float* input, int i) {
  return input[i];  // <- deep_fault
}
__device__ __attribute__((noinline)) float middle(const float* input, int i) { return 1 + innermost(input, i); }
__device__ __attribute__((noinline)) float outermost(const float* input, int i) { return 2 * middle(input, i); }

__global__ void deep_fault(const float* input, float* output, int n, int shift) {
  const int i = threadIdx.x;
  if (i < n) output[i] = outermost(input, i + shift);
}

__device__ __attribute__((noinline)) int recurse(int depth, int* output) {
  volatile int frame[64];
  frame[depth % 64] = depth;
  return depth == 0 ? frame[0] : recurse(depth - 1, output) + frame[depth % 64];
}

__global__ void recursion(int* output, int depth) { output[threadIdx.x] = recurse(depth, output); }

__device__ __attribute__((noinline)) int recurse_small(int depth, const int* output) {
  return depth == 0 ? output[0] : recurse_small(depth - 1, output) + depth;
}

__global__ void small_recursion(int* output, int depth) { output[threadIdx.x] = recurse_small(depth, output); }

__global__ void rows_past_end(float* output, int row) {
  __shared__ float first[4][64];
  __shared__ float second[4][64];
  for (int i = 0; i < 4; ++i) first[i][threadIdx.x] = second[i][threadIdx.x] = 1;
  __syncthreads();
  output[threadIdx.x] = second[3][threadIdx.x] + first[row][threadIdx.x];  // <- rows_past_end
}

__global__ void row_before_begin(const float* image, float* output, int width, int row) {
  output[threadIdx.x] = image[row * width + static_cast<int>(threadIdx.x)];  // <- row_before_begin
}

__global__ void copy_past_end(const float* input, float* output, int shift) {
  memcpy(output + 4 * threadIdx.x, input + 4 * threadIdx.x + shift, 4 * sizeof(float));  // <- copy_past_end
}

// A barrier is missing between the first thread's initialisation and the others' atomics.
template <bool Sync>
__global__ void write_before_atomic(int* output) {
  __shared__ int count;
  if (threadIdx.x == 0) count = 0;
  if (Sync) __syncthreads();
  atomicAdd(&count, 1);  // <- write_before_atomic
  __syncthreads();
  if (threadIdx.x == 0) output[0] = count;
}

// __syncwarp is not enough: another warp still reads what is overwritten.
template <bool Sync>
__global__ void warp_barrier_only(float* output) {
  __shared__ float value;
  if (threadIdx.x == 0) value = 1;
  __syncthreads();
  const float mine = value;
  __syncwarp();
  if (Sync) __syncthreads();
  if (threadIdx.x == 32) value = 5;  // <- warp_barrier_only
  output[threadIdx.x] = mine;
}

// Lane 0 acquires what other blocks have left; __syncwarp passes it on, a shuffle does not.
template <bool Sync>
__global__ void acquired_by_warp(const float* input, float* partial, unsigned* ticket, float* output) {
  unsigned mine = 0;
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = input[blockIdx.x];
    __threadfence();
    mine = atomicAdd(ticket, 1u);
    __threadfence();
  }
  if (Sync) __syncwarp();
  mine = __shfl_sync(0xffffffffu, mine, 0);
  if (mine == gridDim.x - 1 && threadIdx.x < gridDim.x) {
    const float value = partial[threadIdx.x];  // <- acquired_by_warp
    atomicAdd(output, value);
  }
}

// As last_block, with a fence that other blocks need not see.
__global__ void block_fence(const float* input, float* partial, unsigned* ticket, float* output) {
  __shared__ bool is_last;
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = input[blockIdx.x];
    __threadfence_block();
    is_last = atomicAdd(ticket, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (is_last && threadIdx.x < gridDim.x) {
    const float value = partial[threadIdx.x];  // <- block_fence
    atomicAdd(output, value);
  }
}

__device__ __forceinline__ void leave(float* output, float value) {
  output[threadIdx.x] = value;
  __syncthreads();  // <- barriers_of_one_line
}

__global__ void barriers_of_one_line(float* output, int split) {
  if (static_cast<int>(threadIdx.x) < split) {
    leave(output, 1);
  } else {
    leave(output + 64, 2);
  }
}

// clang-format off
__global__ void collectives_of_one_line(int* output, int lanes) {
  const int lane = threadIdx.x;
  output[lane] = lane < lanes ? __shfl_sync(0xffffffffu, lane, 0) : static_cast<int>(__ballot_sync(0xffffffffu, 1));  // <- collectives_of_one_line
}
// clang-format on

__global__ void endless_barrier(float* output) {
  while (atomicAdd(&output[0], 0.0f) < 1) __syncthreads();
}

__global__ void division(int* output, int divisor) { output[threadIdx.x] = 100 / divisor; }

__global__ void endless(float* output) {
  while (atomicAdd(&output[0], 0.0f) < 1) atomicAdd(&output[1], 1.0f);
}

#if !defined(__CUDACC__)
// nvcc does not compile this.
__global__ void too_much_static_shared(float* output) {
  __shared__ float tile[12 * 1024 + 1];
  tile[threadIdx.x] = 1;
  __syncthreads();
  output[threadIdx.x] = tile[31 - threadIdx.x];
}
#endif

__global__ void fill(float* output) { output[threadIdx.x] = 1; }

}  // namespace

void launch_read_past_end(const float* input, float* output, int n, bool fixed) {
  launch(read_past_end, (n + 63) / 64, 64, 0, nullptr)(input, output, fixed ? n - 1 : n);
}
void launch_read_before_begin(const float* input, float* output, bool fixed) {
  launch(read_before_begin, 1, 32, 0, nullptr)(input, output, fixed ? 0 : 2);
}
void launch_write_past_end(float* output, int n, bool fixed) {
  launch(write_past_end, n / 64 + 1, 64, 0, nullptr)(output, fixed ? n - 1 : n);
}
void launch_static_shared_past_end(float* output, bool fixed) {
  launch(static_shared_past_end, 1, 64, 0, nullptr)(output, fixed ? 0 : 1);
}
void launch_dynamic_shared_past_end(float* output, bool fixed) {
  launch(dynamic_shared_past_end, 1, 64, (fixed ? 64 : 63) * sizeof(float), nullptr)(output);
}
void launch_constant_past_end(const float* values, float* output, bool fixed) {
  upload_constant(c_four, values, 4, nullptr);
  launch(constant_past_end, 1, 32, 0, nullptr)(output, fixed ? 4 : 5);
}
void launch_misaligned_vector(const float* input, float* output, bool fixed) {
  launch(misaligned_vector, 1, 32, 0, nullptr)(fixed ? input : input + 1, output);
}
void launch_uninitialized_shared(float* output, bool fixed) {
  launch(uninitialized_shared, 2, 64, 0, nullptr)(output, fixed ? 64 : 63);
}
void launch_missing_sync(const float* input, float* output, bool fixed) {
  launch(fixed ? missing_sync<true> : missing_sync<false>, 1, 64, 0, nullptr)(input, output);
}
void launch_sync_too_late(const float* input, float* output, bool fixed) {
  launch(fixed ? sync_too_late<true> : sync_too_late<false>, 1, 64, 0, nullptr)(input, output);
}
void launch_warp_synchronous(const float* input, float* output, bool fixed) {
  launch(fixed ? warp_synchronous<true> : warp_synchronous<false>, 1, 32, 0, nullptr)(input, output);
}
void launch_shuffle_orders_nothing(const float* input, float* output, bool fixed) {
  launch(fixed ? shuffle_orders_nothing<true> : shuffle_orders_nothing<false>, 1, 32, 0, nullptr)(input, output);
}
void launch_blocks_share_output(float* output, bool fixed) {
  launch(blocks_share_output, 3, 32, 0, nullptr)(output, fixed ? 32 : 16);
}
void launch_blocks_read_each_other(float* data, bool fixed) {
  launch(blocks_read_each_other, 2, 32, 0, nullptr)(data, fixed ? 1 : 0);
}
void launch_last_block(const float* input, float* partial, unsigned* ticket, float* output, bool fixed) {
  launch(fixed ? last_block<true> : last_block<false>, 4, 32, 0, nullptr)(input, partial, ticket, output);
}
void launch_exit_before_barrier(float* output, int n, bool fixed) {
  launch(exit_before_barrier, 1, 64, 0, nullptr)(output, fixed ? 64 : n);
}
void launch_barrier_in_branches(float* output, bool fixed) {
  launch(barrier_in_branches, 1, 64, 0, nullptr)(output, fixed ? 64 : 32);
}
void launch_shuffle_in_branch(float* output, bool fixed) {
  launch(shuffle_in_branch, 1, 32, 0, nullptr)(output, fixed ? 32 : 8);
}
void launch_deep_fault(const float* input, float* output, int n, bool fixed) {
  launch(deep_fault, 1, 64, 0, nullptr)(input, output, n, fixed ? 0 : 1);
}
void launch_recursion(int* output, int depth) { launch(recursion, 1, 32, 0, nullptr)(output, depth); }
void launch_small_recursion(int* output, int depth) { launch(small_recursion, 1, 32, 0, nullptr)(output, depth); }
void launch_rows_past_end(float* output, bool fixed) {
  launch(rows_past_end, 1, 64, 0, nullptr)(output, fixed ? 3 : 6);
}
void launch_row_before_begin(const float* image, float* output, int width, bool fixed) {
  launch(row_before_begin, 1, 64, 0, nullptr)(image, output, width, fixed ? 0 : -1);
}
void launch_copy_past_end(const float* input, float* output, bool fixed) {
  launch(copy_past_end, 1, 32, 0, nullptr)(input, output, fixed ? 0 : 1);
}
void launch_too_long_upload(const float* values) { upload_constant(c_four, values, 400, nullptr); }
void launch_write_before_atomic(int* output, bool fixed) {
  launch(fixed ? write_before_atomic<true> : write_before_atomic<false>, 1, 64, 0, nullptr)(output);
}
void launch_warp_barrier_only(float* output, bool fixed) {
  launch(fixed ? warp_barrier_only<true> : warp_barrier_only<false>, 1, 64, 0, nullptr)(output);
}
void launch_acquired_by_warp(const float* input, float* partial, unsigned* ticket, float* output, bool fixed) {
  launch(fixed ? acquired_by_warp<true> : acquired_by_warp<false>, 4, 32, 0, nullptr)(input, partial, ticket, output);
}
void launch_block_fence(const float* input, float* partial, unsigned* ticket, float* output) {
  launch(block_fence, 4, 32, 0, nullptr)(input, partial, ticket, output);
}
void launch_barriers_of_one_line(float* output, bool fixed) {
  launch(barriers_of_one_line, 1, 64, 0, nullptr)(output, fixed ? 64 : 32);
}
void launch_collectives_of_one_line(int* output, bool fixed) {
  launch(collectives_of_one_line, 1, 32, 0, nullptr)(output, fixed ? 32 : 16);
}
void launch_endless_barrier(float* output) { launch(endless_barrier, 1, 32, 0, nullptr)(output); }
void launch_division(int* output, int divisor) { launch(division, 1, 32, 0, nullptr)(output, divisor); }
void launch_endless(float* output) { launch(endless, 1, 1, 0, nullptr)(output); }
#if !defined(__CUDACC__)
void launch_too_much_static_shared(float* output) { launch(too_much_static_shared, 1, 32, 0, nullptr)(output); }
#endif
void launch_too_many_threads(float* output) { launch(fill, 1, 1025, 0, nullptr)(output); }
