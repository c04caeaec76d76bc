// Asynchronous copies: what they count, and what is found when one is not waited for. The line of a fault carries a
// marker: "// <- name"; that of the copy it meets "// <- name, copy".
#include "common/kernel/border.hpp"
#include "common/kernel/kernel.hpp"
#include "tests/simt/kernels.hpp"

using namespace convladder;

namespace {

// Each thread copies one element, by its strides; those from `n` on lie outside. The block stores them in reverse.
template <class T>
__global__ void async_copy(const T* input, T* output, int n, int from_stride, int to_stride) {
  T* tile = dynamic_shared<T>();
  const int i = threadIdx.x, last = blockDim.x - 1;
  copy_async<sizeof(T)>(tile + i * to_stride, input + i * from_stride, i < n);
  commit_copies();
  wait_copies<0>();
  __syncthreads();
  output[last - i] = tile[(last - i) * to_stride];
  __syncthreads();
  output[i] = tile[(last - i) * to_stride];
}

// A window around each output, of which the part outside the image is zeros: lanes must stay in step.
__global__ void async_border(const float* input, float* output, int size, int radius) {
  __shared__ float window[64];
  const int x = threadIdx.x, y = blockIdx.x;
  float sum = 0;
  for (int dy = -radius; dy <= radius; ++dy) {
    const int i = border_index(y + dy, size, Padding::zero);
    for (int dx = -radius; dx <= radius; ++dx) {
      const int j = border_index(x + dx, size, Padding::zero);
      copy_async<4>(&window[x], input + i * size + j, i >= 0 && j >= 0);
      commit_copies();
      wait_copies<0>();
      sum += window[x];
    }
  }
  output[y * size + x] = sum;
}

// Three groups; how many may be unfinished when the thread reads its own of each.
template <int First, int Second, int Third>
__global__ void async_groups(const float* input, float* output) {
  __shared__ float tile[3][32];
  const int i = threadIdx.x;
  for (int group = 0; group < 3; ++group) {
    copy_async<4>(&tile[group][i], input + 32 * group + i);  // <- async_groups, copy
    commit_copies();
  }
  wait_copies<First>();
  output[i] = tile[0][i];  // <- async_groups
  wait_copies<Second>();
  output[32 + i] = tile[1][i];
  wait_copies<Third>();
  output[64 + i] = tile[2][i];
}

// A group without copies is one, too.
__global__ void empty_group(const float* input, float* output) {
  __shared__ float tile[32];
  copy_async<4>(&tile[threadIdx.x], input + threadIdx.x);
  commit_copies();
  commit_copies();
  wait_copies<1>();
  output[threadIdx.x] = tile[threadIdx.x];
}

// The next tile is on its way while the block reads this one. Without the second barrier it may be on its way to the
// tile that slow threads still read.
template <bool Sync>
__global__ void double_buffer(const float* input, float* output, int tiles) {
  __shared__ float tile[2][64];
  const int i = threadIdx.x;
  copy_async<4>(&tile[0][i], input + i);
  commit_copies();
  float sum = 0;
  for (int k = 0; k < tiles; ++k) {
    if (k + 1 < tiles) copy_async<4>(&tile[(k + 1) % 2][i], input + 64 * (k + 1) + i);  // <- double_buffer
    commit_copies();
    wait_copies<1>();
    __syncthreads();
    sum = 2 * sum + tile[k % 2][63 - i];
    if (Sync) __syncthreads();
  }
  output[i] = sum;
}

template <bool Wait>
__global__ void read_before_wait(const float* input, float* output) {
  __shared__ float tile[64];
  const int i = threadIdx.x;
  copy_async<4>(&tile[i], input + i);  // <- read_before_wait, copy
  commit_copies();
  if (Wait) wait_copies<0>();
  output[i] = tile[i];  // <- read_before_wait
}

template <bool Wait>
__global__ void barrier_without_wait(const float* input, float* output) {
  __shared__ float tile[64];
  const int i = threadIdx.x;
  copy_async<4>(&tile[i], input + i);  // <- barrier_without_wait, copy
  commit_copies();
  if (Wait) wait_copies<0>();
  __syncthreads();
  output[i] = tile[63 - i];  // <- barrier_without_wait
}

template <bool Sync>
__global__ void wait_without_barrier(const float* input, float* output) {
  __shared__ float tile[64];
  const int i = threadIdx.x;
  copy_async<4>(&tile[i], input + i);  // <- wait_without_barrier, copy
  commit_copies();
  wait_copies<0>();
  if (Sync) __syncthreads();
  output[i] = tile[63 - i];  // <- wait_without_barrier
}

// One warp waits after the barrier for what the other one reads. Here warp 0 runs first.
__global__ void wait_after_barrier(const float* input, float* output, int copier) {
  __shared__ float tile[32];
  const int i = threadIdx.x % 32;
  const bool copies = static_cast<int>(threadIdx.x) / 32 == copier;
  if (copies) copy_async<4>(&tile[i], input + i);  // <- wait_after_barrier, copy
  commit_copies();
  __syncthreads();
  wait_copies<0>();
  if (!copies) output[i] = tile[i];  // <- wait_after_barrier
}

// A second tile is copied while slow threads still read the first.
template <bool Sync>
__global__ void copy_too_early(const float* input, float* output) {
  __shared__ float tile[64];
  const int i = threadIdx.x;
  float sum = 0;
  for (int k = 0; k < 2; ++k) {
    copy_async<4>(&tile[i], input + 64 * k + i);  // <- copy_too_early
    commit_copies();
    wait_copies<0>();
    __syncthreads();
    sum += tile[63 - i];
    if (Sync) __syncthreads();
  }
  output[i] = sum;
}

template <bool Wait>
__global__ void store_in_flight(const float* input, float* output) {
  __shared__ float tile[64];
  const int i = threadIdx.x;
  copy_async<4>(&tile[i], input + i);  // <- store_in_flight, copy
  commit_copies();
  if (Wait) wait_copies<0>();
  tile[i] = 1;  // <- store_in_flight
  __syncthreads();
  output[i] = tile[63 - i];
}

template <bool Wait>
__global__ void atomic_in_flight(const float* input, float* output) {
  __shared__ float tile[64];
  const int i = threadIdx.x;
  copy_async<4>(&tile[i], input + i);  // <- atomic_in_flight, copy
  commit_copies();
  if (Wait) wait_copies<0>();
  output[i] = atomicAdd(&tile[i], 1.0f);  // <- atomic_in_flight
}

template <bool Wait>
__global__ void copy_onto_copy(const float* input, float* output) {
  __shared__ float4 tile[64];
  const int i = threadIdx.x;
  copy_async<4>(&tile[i].w, input + i);  // <- copy_onto_copy, copy
  commit_copies();
  if (Wait) wait_copies<0>();
  copy_async<16>(&tile[i], input + 4 * i);  // <- copy_onto_copy
  commit_copies();
  wait_copies<0>();
  output[i] = tile[i].w;
}

template <bool Commit>
__global__ void never_committed(const float* input, float* output) {
  __shared__ float tile[64];
  const int i = threadIdx.x;
  copy_async<4>(&tile[i], input + i);  // <- never_committed, copy
  if (Commit) commit_copies();
  wait_copies<0>();
  output[i] = tile[i];  // <- never_committed
}

__global__ void misaligned_copy(const float* input, float* output, int from, int to) {
  __shared__ float4 tile[33];
  float* word = &tile[threadIdx.x].x;
  copy_async<16>(word + to, input + 4 * threadIdx.x + from);  // <- misaligned_copy
  commit_copies();
  wait_copies<0>();
  output[threadIdx.x] = *word;
}

__global__ void copy_out_of_bounds(const float* input, float* output, int n) {
  float* tile = dynamic_shared<float>();
  copy_async<4>(&tile[threadIdx.x], input + threadIdx.x, static_cast<int>(threadIdx.x) < n);  // <- copy_out_of_bounds
  commit_copies();
  wait_copies<0>();
  output[threadIdx.x] = tile[threadIdx.x];
}

__global__ void copy_to_global(const float* input, float* output) {
  copy_async<4>(&output[threadIdx.x], input + threadIdx.x);  // <- copy_to_global
}

__global__ void copy_from_shared(float* output) {
  __shared__ float tile[64];
  tile[threadIdx.x] = 1;
  copy_async<4>(&tile[32 + threadIdx.x], &tile[threadIdx.x]);  // <- copy_from_shared
  commit_copies();
  wait_copies<0>();
  output[threadIdx.x] = tile[32 + threadIdx.x];
}

template <bool Sync>
__global__ void source_still_written(float* data, float* output) {
  __shared__ float tile[64];
  const int i = threadIdx.x;
  data[i] = 1;
  if (Sync) __syncthreads();
  copy_async<4>(&tile[i], data + 63 - i);  // <- source_still_written
  commit_copies();
  wait_copies<0>();
  output[i] = tile[i];
}

// The first block leaves copies that nobody waits for; the second must not meet them.
__global__ void copies_of_an_earlier_block(const float* input, float* output) {
  __shared__ float tile[64];
  const int i = threadIdx.x;
  if (blockIdx.x == 0) {
    copy_async<4>(&tile[i], input + i);
    commit_copies();
  } else {
    tile[i] = 5;
    wait_copies<0>();
    output[i] = tile[i];
  }
}

}  // namespace

void launch_async_copy(const float* input, float* output, int bytes, int n, int from_stride, int to_stride) {
  const auto shared = static_cast<std::size_t>(bytes * 64 * to_stride);
  if (bytes == 4)
    launch(async_copy<float>, 1, 64, shared, nullptr)(input, output, n, from_stride, to_stride);
  else if (bytes == 8)
    launch(async_copy<float2>, 1, 64, shared, nullptr)(reinterpret_cast<const float2*>(input),
                                                       reinterpret_cast<float2*>(output), n, from_stride, to_stride);
  else
    launch(async_copy<float4>, 1, 64, shared, nullptr)(reinterpret_cast<const float4*>(input),
                                                       reinterpret_cast<float4*>(output), n, from_stride, to_stride);
}
void launch_async_border(const float* input, float* output, int size, int radius) {
  launch(async_border, size, size, 0, nullptr)(input, output, size, radius);
}
void launch_async_groups(const float* input, float* output, int early) {
  const auto kernel = early == 0   ? async_groups<3, 1, 0>
                      : early == 1 ? async_groups<2, 2, 0>
                      : early == 2 ? async_groups<2, 1, 1>
                                   : async_groups<2, 1, 0>;
  launch(kernel, 1, 32, 0, nullptr)(input, output);
}
void launch_empty_group(const float* input, float* output) { launch(empty_group, 1, 32, 0, nullptr)(input, output); }
void launch_double_buffer(const float* input, float* output, int tiles, bool fixed) {
  launch(fixed ? double_buffer<true> : double_buffer<false>, 1, 64, 0, nullptr)(input, output, tiles);
}
void launch_read_before_wait(const float* input, float* output, bool fixed) {
  launch(fixed ? read_before_wait<true> : read_before_wait<false>, 1, 64, 0, nullptr)(input, output);
}
void launch_barrier_without_wait(const float* input, float* output, bool fixed) {
  launch(fixed ? barrier_without_wait<true> : barrier_without_wait<false>, 1, 64, 0, nullptr)(input, output);
}
void launch_wait_without_barrier(const float* input, float* output, bool fixed) {
  launch(fixed ? wait_without_barrier<true> : wait_without_barrier<false>, 1, 64, 0, nullptr)(input, output);
}
void launch_wait_after_barrier(const float* input, float* output, int copier) {
  launch(wait_after_barrier, 1, 64, 0, nullptr)(input, output, copier);
}
void launch_copy_too_early(const float* input, float* output, bool fixed) {
  launch(fixed ? copy_too_early<true> : copy_too_early<false>, 1, 64, 0, nullptr)(input, output);
}
void launch_store_in_flight(const float* input, float* output, bool fixed) {
  launch(fixed ? store_in_flight<true> : store_in_flight<false>, 1, 64, 0, nullptr)(input, output);
}
void launch_atomic_in_flight(const float* input, float* output, bool fixed) {
  launch(fixed ? atomic_in_flight<true> : atomic_in_flight<false>, 1, 64, 0, nullptr)(input, output);
}
void launch_copy_onto_copy(const float* input, float* output, bool fixed) {
  launch(fixed ? copy_onto_copy<true> : copy_onto_copy<false>, 1, 64, 0, nullptr)(input, output);
}
void launch_never_committed(const float* input, float* output, bool fixed) {
  launch(fixed ? never_committed<true> : never_committed<false>, 1, 64, 0, nullptr)(input, output);
}
void launch_misaligned_copy(const float* input, float* output, int from, int to) {
  launch(misaligned_copy, 1, 32, 0, nullptr)(input, output, from, to);
}
void launch_copy_out_of_bounds(const float* input, float* output, int n, int shared_words) {
  launch(copy_out_of_bounds, 1, 64, static_cast<std::size_t>(shared_words) * sizeof(float), nullptr)(input, output, n);
}
void launch_copy_to_global(const float* input, float* output) {
  launch(copy_to_global, 1, 32, 0, nullptr)(input, output);
}
void launch_copy_from_shared(float* output) { launch(copy_from_shared, 1, 32, 0, nullptr)(output); }
void launch_source_still_written(float* data, float* output, bool fixed) {
  launch(fixed ? source_still_written<true> : source_still_written<false>, 1, 64, 0, nullptr)(data, output);
}
void launch_copies_of_an_earlier_block(const float* input, float* output) {
  launch(copies_of_an_earlier_block, 2, 64, 0, nullptr)(input, output);
}
