// 18, exercise: a row of windows that never leaves the block.
//
// Stage 18 writes the im2win tensor to global memory, and reads it again. But a row of the tensor serves one row of
// outputs alone. So a block that computes outputs of one row can make what it needs of the tensor itself, in shared
// memory, one channel at a time: the piece that the windows of 32 neighbouring outputs share.
//
//   for n                                    blockIdx.y
//     for p, 8 filters, 32 outputs of p      blockIdx.x
//       for c                                a loop of the block
//         the piece                          all threads: [columns of the piece][rows]
//         for s, r                           a loop of each thread: one filter, one output
//
//   1. The piece of one channel, in window order.
//   2. Each thread adds the products of its window.
//   3. After the last channel the sums are stored.
//
// Rules: one launch, blocks of 32 x 8 threads, no workspace. Any problem with groups = 1 whose piece fits in shared
// memory.
// Graded: the outputs, with every padding, of every size, stride and dilation; no fault; what is loaded and stored for
// an output; barriers.

#include "common/kernel/border.hpp"
#include "common/kernel/tracks/lowering.hpp"

namespace convladder {
namespace {

constexpr int kOutputs = 32, kFilters = 8;  // of a block: a thread for each pair

// The pixel of a plane at a position of the padded input; zero to the right of it, where no output needs one.
__device__ __forceinline__ float padded_pixel(const float* plane, int y, int x, const Lowering& l) {
  if (x >= l.width + l.pad_x) return 0.0f;
  const int i = border_index(y, l.height, l.padding), j = border_index(x, l.width, l.padding);
  return i < 0 || j < 0 ? 0.0f : plane[static_cast<std::int64_t>(i) * l.width + j];
}

// Columns that the windows of kOutputs neighbouring outputs cover, from the first one's first to the last one's last.
__host__ __device__ __forceinline__ std::int64_t piece_columns(const Lowering& l) {
  return static_cast<std::int64_t>(kOutputs - 1) * l.stride_x +
         static_cast<std::int64_t>(l.columns - 1) * l.dilation_x + 1;
}

__global__ void multiply_in_block(const float* input,   // [batch][channels][height][width]
                                  const float* filter,  // [filters][channels][rows][columns]
                                  float* output,        // [batch][filters][out_height][out_width]
                                  Lowering l) {
  const int n = block_in_y(), pieces = blocks_for(l.out_width, kOutputs), groups = blocks_for(l.filters, kFilters);
  if (n >= l.batch) return;
  const int first_q = static_cast<int>(blockIdx.x) % pieces * kOutputs;           // of the block's outputs
  const int first_k = static_cast<int>(blockIdx.x) / pieces % groups * kFilters;  // of its filters
  const int p = static_cast<int>(blockIdx.x) / pieces / groups;
  const float* image = input + static_cast<std::int64_t>(n) * l.channels * input_plane(l);
  float* out = output + static_cast<std::int64_t>(n) * l.filters * output_plane(l) + p * l.out_width;
  const int q = first_q + static_cast<int>(threadIdx.x), k = first_k + static_cast<int>(threadIdx.y);

  // SOLUTION
  float* piece = dynamic_shared<float>();  // [columns of the piece][rows]
  const int elements = static_cast<int>(piece_columns(l)) * l.rows;
  const int thread = static_cast<int>(threadIdx.y) * kOutputs + static_cast<int>(threadIdx.x);
  const float* start = piece + static_cast<int>(threadIdx.x) * l.stride_x * l.rows;
  const int top = p * l.stride_y - l.pad_y, left = first_q * l.stride_x - l.pad_x;
  float sum = 0.0f;
  // All threads go through all channels, so that none is missing at a barrier.
  for (int c = 0; c < l.channels; ++c) {
    // 1.
    const float* plane = image + c * input_plane(l);
    for (int i = thread; i < elements; i += kOutputs * kFilters)
      piece[i] = padded_pixel(plane, top + i % l.rows * l.dilation_y, left + i / l.rows, l);
    __syncthreads();  // the piece is whole

    // 2.
    if (k < l.filters) {
      const float* taps = filter + k * depth(l) + c * window(l);
      for (int s = 0; s < l.columns; ++s)
        for (int r = 0; r < l.rows; ++r) sum += start[s * l.dilation_x * l.rows + r] * taps[r * l.columns + s];
    }
    __syncthreads();  // all have read it: the next channel may take its place
  }
  // 3.
  if (k < l.filters && q < l.out_width) out[k * output_plane(l) + q] = sum;
  // STARTER
  // | // No piece and no sum yet: each output is the first pixel of its window, in the first channel.
  // | if (k < l.filters && q < l.out_width)
  // |   out[k * output_plane(l) + q] = padded_pixel(image, p * l.stride_y - l.pad_y, q * l.stride_x - l.pad_x, l);
  // | (void)filter;
  // END
}

std::int64_t piece_bytes(const Lowering& l) {
  return piece_columns(l) * l.rows * static_cast<std::int64_t>(sizeof(float));
}

void launch_multiply_in_block(const Tensors& tensors, const Lowering& l, Stream stream) {
  const int blocks = l.out_height * blocks_for(l.filters, kFilters) * blocks_for(l.out_width, kOutputs);
  launch(multiply_in_block, grid_in_y(blocks, l.batch), dim3(kOutputs, kFilters),
         static_cast<std::size_t>(piece_bytes(l)), stream)(tensors.input, tensors.filter, tensors.output, l);
}

class Im2winInBlock final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits& limits) const override {
    const Verdict verdict = check_lowering(problem);
    if (verdict.accepted() && piece_bytes(lowering_of(problem)) > limits.shared_bytes_per_block)
      return Verdict::refuse("the piece of 32 windows takes {} bytes of shared memory; a block has {}",
                             piece_bytes(lowering_of(problem)), limits.shared_bytes_per_block);
    return verdict;
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    launch_multiply_in_block(tensors, lowering_of(problem), stream);
  }
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::Im2winInBlock)
