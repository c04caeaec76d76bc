// 15, exercise: outputs per thread.
//
// The block's tile is in shared memory, as in lab 14. But a thread that computes one output reads it 49 times with
// 7 x 7 taps, 4 bytes at a time. Here a thread computes a strip of 2 x 4 outputs, whose windows are nearly the same
// pixels, and reads them 16 bytes at a time.
//
//   for nc                                    blockIdx.x
//     for pq_outer                            blockIdx.y
//       for a row, a column of the tile       all threads    <- cache(input)
//       the barrier
//       for p_inner / 2                       threadIdx.y
//         for q_inner / 4                     threadIdx.x
//           for i, a row of the window        8 rows for 2 outputs and 7 taps
//             for v, for s, for e             products: v of 2 outputs, e of 4
//
//   1. The block's tile of outputs.
//   2. All threads load its pixels.
//   3. Each thread sums its eight windows, and stores them.
//
// Rules: blocks of 16 x 8 threads, tiles of 16 x 64 outputs, strips of 2 x 4. Any depthwise problem of stride 1 and
// dilation 1 whose tile fits in shared memory, and whose filters fit in constant memory.
// Graded: the outputs without padding, with every padding, and of every size; no fault; windows read 16 bytes at a time
// and without bank conflicts, each row of them once; a weight serves four outputs; pixels loaded as before, outputs
// stored 16 bytes at a time.

#include "common/kernel/border.hpp"
#include "common/kernel/tracks/depthwise.hpp"

namespace convladder {
namespace {

constexpr int kStripRows = 2, kStripColumns = 4;              // outputs of a thread
constexpr int kThreadsDown = 8, kThreadsAcross = 16;          // threads of a block
constexpr int kTileRows = kThreadsDown * kStripRows;          // 16 rows of outputs
constexpr int kTileColumns = kThreadsAcross * kStripColumns;  // 64 columns of them
constexpr std::int64_t kMaxTaps = 16384;                      // in 64 KB of constant memory

__constant__ float c_filter[kMaxTaps];

// Words from one row of the tile to the next, at least the `width` that the tile's outputs read.
__host__ __device__ __forceinline__ constexpr std::int64_t pitch_for(std::int64_t width) {
  // The rows of the tile follow each other without a gap.
  return width;
}

// The pixel at a position of the padded plane; zero where no output needs one.
__device__ __forceinline__ float padded_pixel(const float* in, int y, int x, const Depthwise& d) {
  if (y >= d.height + d.pad_y || x >= d.width + d.pad_x) return 0.0f;
  const int i = border_index(y, d.height, d.padding);
  const int j = border_index(x, d.width, d.padding);
  return i < 0 || j < 0 ? 0.0f : in[static_cast<std::int64_t>(i) * d.width + j];
}

__global__ void depthwise_strips(const float* input,  // [batch][channels][height][width]
                                 float* output,       // [batch][channels][out_height][out_width]
                                 Depthwise d) {
  const int high = kTileRows + d.rows - 1;
  const int pitch = static_cast<int>(pitch_for(kTileColumns + d.columns - 1));
  float* pixels = dynamic_shared<float>();  // [high][pitch]

  // 1.
  const int nc = blockIdx.x;
  const int across = blocks_for(d.out_width, kTileColumns);
  const int first_p = static_cast<int>(blockIdx.y) / across * kTileRows;
  const int first_q = static_cast<int>(blockIdx.y) % across * kTileColumns;
  const float* in = input + nc * input_plane(d);

  // 2. Whole rows of `pitch` words: where the pitch is larger than the tile, the next pixels too.
  for (int y = threadIdx.y; y < high; y += kThreadsDown)
    for (int x = threadIdx.x; x < pitch; x += kThreadsAcross)
      pixels[y * pitch + x] = padded_pixel(in, first_p - d.pad_y + y, first_q - d.pad_x + x, d);
  __syncthreads();

  // 3. The strip's first output is (p, q) of the plane, and (y, x) of the tile.
  const int y = threadIdx.y * kStripRows, x = threadIdx.x * kStripColumns;
  const int p = first_p + y, q = first_q + x;
  const float* taps = c_filter + nc % d.channels * filter_plane(d);
  float* out = output + nc * output_plane(d) + static_cast<std::int64_t>(p) * d.out_width + q;
  if (p >= d.out_height || q >= d.out_width) return;
  // The strip's first output, and no other.
  float sum = 0.0f;
  for (int r = 0; r < d.rows; ++r)
    for (int s = 0; s < d.columns; ++s) sum += pixels[(y + r) * pitch + x + s] * taps[r * d.columns + s];
  out[0] = sum;
}

std::int64_t tiles(const ConvProblem& problem) {
  return ((problem.p() - 1) / kTileRows + 1) * ((problem.q() - 1) / kTileColumns + 1);
}

void launch_depthwise_strips(const Tensors& tensors, const Depthwise& d, Stream stream) {
  const std::int64_t words = (kTileRows + d.rows - 1) * pitch_for(kTileColumns + d.columns - 1);
  const dim3 grid(planes(d), blocks_for(d.out_height, kTileRows) * blocks_for(d.out_width, kTileColumns));
  launch(depthwise_strips, grid, dim3(kThreadsAcross, kThreadsDown), static_cast<std::size_t>(words) * sizeof(float),
         stream)(tensors.input, tensors.output, d);
}

class DepthwiseStrips final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits& limits) const override {
    const Verdict verdict = check_depthwise(problem, tiles(problem), "tiles of 16x64 outputs");
    if (!verdict.accepted()) return verdict;
    if (problem.stride_h != 1 || problem.stride_w != 1 || problem.dilation_h != 1 || problem.dilation_w != 1)
      return Verdict::refuse("strides and dilations must be 1");
    if (problem.filter_size() > kMaxTaps)
      return Verdict::refuse("constant memory holds {} taps; got {}", kMaxTaps, problem.filter_size());
    const std::int64_t high = kTileRows + problem.r - 1, pitch = pitch_for(kTileColumns + problem.s - 1);
    const std::int64_t bytes = high * pitch * static_cast<std::int64_t>(sizeof(float));
    if (bytes <= limits.shared_bytes_per_block) return verdict;
    return Verdict::refuse("a tile of {} x {} words must fit in {} bytes of shared memory", high, pitch,
                           limits.shared_bytes_per_block);
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    upload_constant(c_filter, tensors.filter, static_cast<std::size_t>(problem.filter_size()), stream);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    launch_depthwise_strips(tensors, depthwise_of(problem), stream);
  }
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::DepthwiseStrips)
