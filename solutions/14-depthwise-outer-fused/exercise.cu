// 14, exercise: cache.
//
// The 256 threads of a block read the same pixels again and again: 49 of them each with 7 x 7 taps, 12,544 reads of 484
// pixels. Here the block reads each of its pixels, and each tap of its filter, once, and keeps them in shared memory.
//
//   for nc                                    blockIdx.x
//     for pq_outer                            blockIdx.y
//       for a row, a column of the tile       all threads    <- cache(input), cache(filter)
//       the barrier
//       for p_inner                           threadIdx.y
//         for q_inner                         threadIdx.x
//           for r, s
//
//   1. The block's tile of outputs, and the pixels under it.
//   2. All threads load pixels and taps.
//   3. Each thread sums its window from shared memory.
//
// Rules: blocks of 16 x 16 threads, tiles of 16 x 16 outputs. Any depthwise problem whose tile fits in shared memory:
// batches, strides, dilations.
// Graded: the outputs without padding, with every padding, and of every size; no fault, races among them; each pixel
// and tap loaded once a block, with strides and dilations too; one barrier, no bank conflict.

#include "common/kernel/border.hpp"
#include "common/kernel/tracks/depthwise.hpp"

namespace convladder {
namespace {

constexpr int kSide = 16;  // threads of a block, and outputs of a tile, in each direction

// Pixels that `kSide` outputs span, from the first that they read to the last.
__host__ __device__ __forceinline__ constexpr std::int64_t span(std::int64_t taps, std::int64_t stride,
                                                                std::int64_t dilation) {
  return (kSide - 1) * stride + (taps - 1) * dilation + 1;
}

// Words from one row of the tile to the next, at least `width`.
__host__ __device__ __forceinline__ constexpr std::int64_t pitch_for(std::int64_t width) {
  // SOLUTION
  // A warp is two rows of 16 lanes. They read different banks if the second row begins 16 banks after the first.
  return (width + 15) / 32 * 32 + 16;
  // STARTER
  // | // The rows of the tile follow each other without a gap.
  // | return width;
  // END
}

// The pixel at a position of the padded plane; zero where no output needs one.
__device__ __forceinline__ float padded_pixel(const float* in, int y, int x, const Depthwise& d) {
  if (y >= d.height + d.pad_y || x >= d.width + d.pad_x) return 0.0f;
  const int i = border_index(y, d.height, d.padding);
  const int j = border_index(x, d.width, d.padding);
  return i < 0 || j < 0 ? 0.0f : in[static_cast<std::int64_t>(i) * d.width + j];
}

__global__ void depthwise_cached(const float* input,   // [batch][channels][height][width]
                                 const float* filter,  // [channels][rows][columns]
                                 float* output,        // [batch][channels][out_height][out_width]
                                 Depthwise d) {
  const int high = static_cast<int>(span(d.rows, d.stride_y, d.dilation_y));
  const int wide = static_cast<int>(span(d.columns, d.stride_x, d.dilation_x));
  const int pitch = static_cast<int>(pitch_for(wide));
  float* pixels = dynamic_shared<float>();  // [high][pitch]
  float* taps = pixels + high * pitch;      // [rows][columns]

  // 1.
  const int nc = blockIdx.x;
  const int across = blocks_for(d.out_width, kSide);
  const int first_p = static_cast<int>(blockIdx.y) / across * kSide;
  const int first_q = static_cast<int>(blockIdx.y) % across * kSide;
  const int p = first_p + threadIdx.y, q = first_q + threadIdx.x;
  const float* in = input + nc * input_plane(d);
  const float* filter_of_channel = filter + nc % d.channels * filter_plane(d);

  // SOLUTION
  // 2. Pixel (0, 0) of the tile is the first that output (first_p, first_q) reads.
  const int top = first_p * d.stride_y - d.pad_y, left = first_q * d.stride_x - d.pad_x;
  for (int y = threadIdx.y; y < high; y += kSide)
    for (int x = threadIdx.x; x < wide; x += kSide) pixels[y * pitch + x] = padded_pixel(in, top + y, left + x, d);
  for (int t = threadIdx.y * kSide + threadIdx.x; t < d.rows * d.columns; t += kSide * kSide)
    taps[t] = filter_of_channel[t];
  __syncthreads();

  // 3. All threads have met: those without an output may go.
  if (p >= d.out_height || q >= d.out_width) return;
  float sum = 0.0f;
  for (int r = 0; r < d.rows; ++r) {
    const float* row = pixels + (threadIdx.y * d.stride_y + r * d.dilation_y) * pitch + threadIdx.x * d.stride_x;
    for (int s = 0; s < d.columns; ++s) sum += row[s * d.dilation_x] * taps[r * d.columns + s];
  }
  output[nc * output_plane(d) + static_cast<std::int64_t>(p) * d.out_width + q] = sum;
  // STARTER
  // | // One pixel a thread, of the high x wide that the tile needs, and one tap. And nobody waits for the others.
  // | const int y = threadIdx.y, x = threadIdx.x;
  // | const int top = first_p * d.stride_y - d.pad_y, left = first_q * d.stride_x - d.pad_x;
  // | if (y < high && x < wide) pixels[y * pitch + x] = padded_pixel(in, top + y, left + x, d);
  // | if (y == 0 && x == 0) taps[0] = filter_of_channel[0];
  // | if (p >= d.out_height || q >= d.out_width) return;
  // | output[nc * output_plane(d) + static_cast<std::int64_t>(p) * d.out_width + q] = pixels[y * pitch + x] * taps[0];
  // END
}

std::int64_t tiles(const ConvProblem& problem) {
  return ((problem.p() - 1) / kSide + 1) * ((problem.q() - 1) / kSide + 1);
}

void launch_depthwise_cached(const Tensors& tensors, const Depthwise& d, Stream stream) {
  const std::int64_t words =
      span(d.rows, d.stride_y, d.dilation_y) * pitch_for(span(d.columns, d.stride_x, d.dilation_x)) + filter_plane(d);
  const dim3 grid(planes(d), blocks_for(d.out_height, kSide) * blocks_for(d.out_width, kSide));
  launch(depthwise_cached, grid, dim3(kSide, kSide), static_cast<std::size_t>(words) * sizeof(float), stream)(
      tensors.input, tensors.filter, tensors.output, d);
}

class DepthwiseCached final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits& limits) const override {
    const Verdict verdict = check_depthwise(problem, tiles(problem), "tiles of 16x16 outputs");
    if (!verdict.accepted()) return verdict;
    const std::int64_t high = span(problem.r, problem.stride_h, problem.dilation_h);
    const std::int64_t pitch = pitch_for(span(problem.s, problem.stride_w, problem.dilation_w));
    const std::int64_t room = limits.shared_bytes_per_block / static_cast<std::int64_t>(sizeof(float));  // words
    if (high <= room / pitch && problem.r * problem.s <= room - high * pitch) return verdict;
    return Verdict::refuse("a tile of {} x {} words and its filter must fit in {} bytes of shared memory", high, pitch,
                           limits.shared_bytes_per_block);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    launch_depthwise_cached(tensors, depthwise_of(problem), stream);
  }
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::DepthwiseCached)
