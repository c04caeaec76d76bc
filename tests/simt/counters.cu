#include "common/kernel/border.hpp"
#include "common/kernel/kernel.hpp"
#include "tests/simt/kernels.hpp"

using convladder::launch;
using convladder::upload_constant;

namespace {

__global__ void strided_load(const float* input, float* output, int stride, int offset) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  output[i] = input[i * stride + offset];
}

__global__ void broadcast_load(const float* input, float* output) { output[threadIdx.x] = input[3]; }

__global__ void float4_copy(const float4* input, float4* output) { output[threadIdx.x] = input[threadIdx.x]; }

template <int Pitch>
__global__ void shared_column(float* output) {
  __shared__ float tile[32][Pitch];
  for (int row = 0; row < 32; ++row) tile[row][threadIdx.x] = static_cast<float>(row);
  __syncthreads();
  float sum = 0;
  for (int column = 0; column < 32; ++column) sum += tile[threadIdx.x][column];
  output[threadIdx.x] = sum;
}

__global__ void shared_stride(float* output, int stride) {
  __shared__ float row[1024];
  for (int i = threadIdx.x; i < 1024; i += 32) row[i] = static_cast<float>(i);
  __syncthreads();
  output[threadIdx.x] = row[threadIdx.x * stride];
}

__global__ void shared_float4(float* output) {
  __shared__ float4 row[32];
  row[threadIdx.x] = make_float4(1, 2, 3, 4);
  __syncthreads();
  const float4 value = row[31 - threadIdx.x];
  output[threadIdx.x] = value.x + value.w;
}

// Through shared memory and back, with a stride on the load, the store and both shared accesses.
__global__ void float4_strides(const float4* input, float4* output, int global_stride, int shared_stride) {
  __shared__ float4 tile[32 * 4];
  const int i = threadIdx.x;
  tile[i * shared_stride] = input[i * global_stride];
  __syncwarp();
  output[i * global_stride] = tile[(31 - i) * shared_stride];
}

__constant__ float c_values[64];

__global__ void constant_loads(float* output, int scale) { output[threadIdx.x] = c_values[threadIdx.x * scale]; }

__global__ void two_branches(const float* input, float* output) {
  const int i = threadIdx.x;
  if (i % 2 == 0) {
    output[i] = input[i];
  } else {
    output[32 + i] = input[64 + i] * input[96 + i];
  }
}

// The inner loop of a convolution: lanes near the border skip some taps, and must stay in step with the others.
__global__ void border_loop(const float* input, const float* filter, float* output, int n, int radius) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = 0;
  for (int k = -radius; k <= radius; ++k) {
    const int j = i + k;
    if (j >= 0 && j < n) sum += input[j] * filter[k + radius];
  }
  output[i] = sum;
}

// The same in two dimensions, with the border function: a condition that the compiler would like to thread through.
__global__ void border_image(const float* input, float* output, int size, int radius) {
  const int x = threadIdx.x, y = blockIdx.x;
  float sum = 0;
  for (int dy = -radius; dy <= radius; ++dy) {
    const int i = convladder::border_index(y + dy, size, convladder::Padding::zero);
    for (int dx = -radius; dx <= radius; ++dx) {
      const int j = convladder::border_index(x + dx, size, convladder::Padding::zero);
      if (i >= 0 && j >= 0) sum += input[i * size + j];
    }
  }
  output[y * size + x] = sum;
}

__global__ void triangular_loop(const float* input, float* output) {
  float sum = 0;
  UNROLL_BY(1)
  for (unsigned k = 0; k <= threadIdx.x; ++k) sum += input[32 * k + threadIdx.x];
  output[threadIdx.x] = sum;
}

__global__ void early_exit(const float* input, float* output, int lanes) {
  if (static_cast<int>(threadIdx.x) >= lanes) return;
  output[threadIdx.x] = input[threadIdx.x];
}

__global__ void break_out(const float* input, float* output) {
  float sum = 0;
  for (int k = 0; k < 8; ++k) {
    sum += input[32 * k + threadIdx.x];
    if (k == static_cast<int>(threadIdx.x % 4)) break;
  }
  output[threadIdx.x] = sum;
}

__global__ void continue_loop(const float* input, float* output) {
  float sum = 0;
  for (int k = 0; k < 8; ++k) {
    if ((k + threadIdx.x) % 2 == 0) continue;
    sum += input[32 * k + threadIdx.x];
  }
  output[threadIdx.x] = sum;
}

__global__ void nested_loops(const float* input, float* output) {
  float sum = 0;
  UNROLL_BY(1)
  for (int outer = 0; outer < 3; ++outer) {
    UNROLL_BY(1)
    for (unsigned inner = 0; inner <= threadIdx.x % 4; ++inner) sum += input[32 * inner + threadIdx.x];
  }
  output[threadIdx.x] = sum;
}

__global__ void long_divergent_loop(const float* input, float* output, int iterations) {
  float sum = 0;
  for (int k = 0; k < iterations; ++k) {
    if (k % 3 == static_cast<int>(threadIdx.x % 3)) sum += input[threadIdx.x];
  }
  output[threadIdx.x] = sum;
}

__device__ __attribute__((noinline)) float load_twice(const float* input) { return input[0] + input[32]; }

// Lanes are in step inside a function where they are in step at its call.
__global__ void calls_in_branches(const float* input, float* output) {
  float value = load_twice(input + threadIdx.x);
  if (threadIdx.x < 8) value += load_twice(input + 64 + threadIdx.x);
  output[threadIdx.x] = value;
}

struct Rgb {
  float r, g, b;
};

__global__ void struct_copy(const Rgb* input, Rgb* output) { output[threadIdx.x] = input[threadIdx.x]; }

__global__ void memory_copy(const float* input, float* output) {
  memcpy(output + 4 * threadIdx.x, input + 4 * threadIdx.x, 4 * sizeof(float));
}

struct Parameters {
  float4 scale;
  int n;
};

__global__ void vector_parameter(Parameters p, float* output) {
  output[threadIdx.x] = p.scale.y * static_cast<float>(p.n);
}

__global__ void histogram(const int* input, int* bins, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&bins[input[i]], 1);
}

__global__ void barriers(float* output, int count) {
  for (int i = 0; i < count; ++i) __syncthreads();
  output[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}

__global__ void indices(int* output) {
  const int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const int threads = blockDim.x * blockDim.y * blockDim.z;
  output[block * threads + thread] = block * 1000 + thread;
}

}  // namespace

void launch_strided_load(const float* input, float* output, int stride, int offset, int blocks) {
  launch(strided_load, blocks, 64, 0, nullptr)(input, output, stride, offset);
}
void launch_broadcast_load(const float* input, float* output) {
  launch(broadcast_load, 1, 32, 0, nullptr)(input, output);
}
void launch_float4_copy(const float* input, float* output) {
  launch(float4_copy, 1, 32, 0, nullptr)(reinterpret_cast<const float4*>(input), reinterpret_cast<float4*>(output));
}
void launch_shared_column(float* output, bool padded) {
  if (padded)
    launch(shared_column<33>, 1, 32, 0, nullptr)(output);
  else
    launch(shared_column<32>, 1, 32, 0, nullptr)(output);
}
void launch_shared_stride(float* output, int stride) { launch(shared_stride, 1, 32, 0, nullptr)(output, stride); }
void launch_shared_float4(float* output) { launch(shared_float4, 1, 32, 0, nullptr)(output); }
void launch_float4_strides(const float* input, float* output, int global_stride, int shared_stride) {
  launch(float4_strides, 1, 32, 0, nullptr)(reinterpret_cast<const float4*>(input), reinterpret_cast<float4*>(output),
                                            global_stride, shared_stride);
}
void launch_constant_loads(const float* values, float* output, bool broadcast) {
  upload_constant(c_values, values, 64, nullptr);
  launch(constant_loads, 1, 64, 0, nullptr)(output, broadcast ? 0 : 1);
}
void launch_two_branches(const float* input, float* output) { launch(two_branches, 1, 32, 0, nullptr)(input, output); }
void launch_border_loop(const float* input, const float* filter, float* output, int n, int radius) {
  launch(border_loop, (n + 255) / 256, 256, 0, nullptr)(input, filter, output, n, radius);
}
void launch_border_image(const float* input, float* output, int size, int radius) {
  launch(border_image, size, size, 0, nullptr)(input, output, size, radius);
}
void launch_triangular_loop(const float* input, float* output) {
  launch(triangular_loop, 1, 32, 0, nullptr)(input, output);
}
void launch_early_exit(const float* input, float* output, int lanes) {
  launch(early_exit, 1, 32, 0, nullptr)(input, output, lanes);
}
void launch_break_out(const float* input, float* output) { launch(break_out, 1, 32, 0, nullptr)(input, output); }
void launch_continue(const float* input, float* output) { launch(continue_loop, 1, 32, 0, nullptr)(input, output); }
void launch_nested_loops(const float* input, float* output) { launch(nested_loops, 1, 32, 0, nullptr)(input, output); }
void launch_long_divergent_loop(const float* input, float* output, int iterations) {
  launch(long_divergent_loop, 1, 32, 0, nullptr)(input, output, iterations);
}
void launch_calls_in_branches(const float* input, float* output) {
  launch(calls_in_branches, 1, 32, 0, nullptr)(input, output);
}
void launch_struct_copy(const float* input, float* output) {
  launch(struct_copy, 1, 32, 0, nullptr)(reinterpret_cast<const Rgb*>(input), reinterpret_cast<Rgb*>(output));
}
void launch_memory_copy(const float* input, float* output) { launch(memory_copy, 1, 32, 0, nullptr)(input, output); }
void launch_vector_parameter(float* output) {
  launch(vector_parameter, 1, 32, 0, nullptr)(Parameters{make_float4(1, 2, 3, 4), 5}, output);
}
void launch_histogram(const int* input, int* bins, int n) {
  launch(histogram, (n + 63) / 64, 64, 0, nullptr)(input, bins, n);
}
void launch_barriers(float* output, int count, int blocks, int threads) {
  launch(barriers, blocks, threads, 0, nullptr)(output, count);
}
void launch_indices(int* output) { launch(indices, dim3(2, 3, 4), dim3(5, 4, 3), 0, nullptr)(output); }
