// 38, exercise: bands of rows.
//
// Stage 38 refuses planes that do not fit in shared memory. But rows follow each other in memory as planes do, so a
// band of rows is contiguous, too. Here a block has 16 rows of outputs, and takes the rows of input that they need,
// those above and below among them, by one bulk copy.
//
//   1. The block's rows of outputs, and the rows of the plane that they need: those that exist.
//   2. Thread 0 makes the mbarrier, and asks for the rows. They may begin at any pixel, but a copy begins and ends at
//      a multiple of 16 bytes, wherever the first and the last pixel lie.
//      It may not reach past the end of the input.
//   3. All threads bring the taps, and wait.
//   4. Each thread sums outputs, one after the other.
//
// Rules: blocks of 128 threads, bands of 16 rows of outputs. Any depthwise problem of stride 1, dilation 1 and padding
// of zeros whose band fits in shared memory. Graded: the outputs where rows begin at 16 bytes, where they begin
// anywhere, and with any padding and of every size; no fault; a band's pixels loaded once, by one request.

#include "common/kernel/hopper.hpp"
#include "common/kernel/kernel.hpp"
#include "common/kernel/tracks/depthwise.hpp"

namespace convladder {
namespace {

constexpr int kThreads = 128;
constexpr int kRows = 16;  // of outputs of a block
constexpr int kPiece = 4;  // floats of 16 bytes

__host__ __device__ __forceinline__ constexpr int smaller(int a, int b) { return a < b ? a : b; }
__host__ __device__ __forceinline__ constexpr int larger(int a, int b) { return a > b ? a : b; }

// Floats for the rows of a band, wherever in 16 bytes they begin and end.
__host__ __device__ __forceinline__ constexpr std::int64_t band_floats(std::int64_t rows, std::int64_t width) {
  return ((kRows - 1 + rows) * width + 2 * (kPiece - 1)) / kPiece * kPiece;
}

__global__ void __launch_bounds__(kThreads) depthwise_bands(const float* input,   // [planes][height][width]
                                                            const float* filter,  // [channels][rows][columns]
                                                            float* output,        // [planes][out_height][out_width]
                                                            Depthwise d) {
  float* const pixels = dynamic_shared_1024<float>();  // the band's rows of input
  float* const taps = pixels + band_floats(d.rows, d.width);

  // 1.
  const int t = static_cast<int>(threadIdx.x), bands = blocks_for(d.out_height, kRows);
  const int plane = static_cast<int>(blockIdx.x) / bands, p = static_cast<int>(blockIdx.x) % bands * kRows;
  const int rows = smaller(kRows, d.out_height - p);  // of outputs
  const int top = larger(0, smaller(d.height, p - d.pad_y));
  const int bottom = larger(top, smaller(d.height, p - d.pad_y + rows - 1 + d.rows));  // the first row below
  // In the input: the first pixel that is needed, and the one after the last.
  const std::int64_t first = plane * input_plane(d) + static_cast<std::int64_t>(top) * d.width;
  const std::int64_t end = first + static_cast<std::int64_t>(bottom - top) * d.width;
  const float* const own_filter = filter + plane % d.channels * filter_plane(d);
  for (int i = t; i < d.rows * d.columns; i += kThreads) taps[i] = own_filter[i];

  // SOLUTION
  // 2.
  __shared__ Mbarrier arrived;
  const std::int64_t all = planes(d) * input_plane(d), begin = first / kPiece * kPiece;
  const int behind = static_cast<int>(first - begin);
  if (t == 0) {
    mbarrier_init(&arrived, 1);
    fence_mbarrier_init();
    const std::int64_t whole = (end + kPiece - 1) / kPiece * kPiece;
    const std::int64_t copied = whole <= all ? whole : all / kPiece * kPiece;
    for (std::int64_t i = copied; i < end; ++i) pixels[i - begin] = input[i];
    const int bytes = copied > begin ? static_cast<int>(copied - begin) * 4 : 0;
    mbarrier_expect(&arrived, bytes);
    if (bytes > 0) bulk_load(pixels, input + begin, bytes, &arrived);
  }
  // 3.
  __syncthreads();
  mbarrier_wait(&arrived, 0);
  const float* const band = pixels + behind;
  // STARTER
  // | // Every thread copies some pixels of the rows, one after the other, and nobody waits for the others.
  // | for (int i = t; i < end - first; i += kThreads) pixels[i] = input[first + i];
  // | const float* const band = pixels;
  // END

  for (int i = t; i < rows * d.out_width; i += kThreads) {
    const int y = i / d.out_width, x = i % d.out_width;
    // SOLUTION
    // 4.
    float sum = 0.0f;
    for (int r = 0; r < d.rows; ++r) {
      const int row = p + y - d.pad_y + r;
      if (row < 0 || row >= d.height) continue;
      for (int s = 0; s < d.columns; ++s) {
        const int column = x - d.pad_x + s;
        if (column >= 0 && column < d.width) sum += band[(row - top) * d.width + column] * taps[r * d.columns + s];
      }
    }
    // STARTER
    // | // The first tap alone, and no padding.
    // | const float sum = band[y * d.width + x] * taps[0];
    // END
    output[plane * output_plane(d) + static_cast<std::int64_t>(p + y) * d.out_width + x] = sum;
  }
}

std::int64_t shared_floats(const ConvProblem& problem) {
  return band_floats(problem.r, problem.w) + problem.r * problem.s;
}

class DepthwiseBands final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits& limits) const override {
    const Verdict verdict = check_depthwise(problem);
    if (!verdict.accepted()) return verdict;
    if (problem.stride_h != 1 || problem.stride_w != 1 || problem.dilation_h != 1 || problem.dilation_w != 1)
      return Verdict::refuse("strides and dilations must be 1");
    if (problem.padding != Padding::zero) return Verdict::refuse("the padding must be zeros");
    if ((problem.p() - 1) / kRows + 1 > INT32_MAX / (problem.n * problem.c))
      return Verdict::refuse("a grid has at most {} blocks", INT32_MAX);
    const std::int64_t room = limits.shared_bytes_per_block / static_cast<std::int64_t>(sizeof(float));
    // An mbarrier beside memory at a multiple of 1024 bytes takes 1024 of its own.
    if (problem.r > room || problem.w > room || problem.r * problem.s > room || shared_floats(problem) + 256 > room)
      return Verdict::refuse("a band of rows and its filter must fit in {} bytes of shared memory",
                             limits.shared_bytes_per_block);
    return verdict;
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Depthwise d = depthwise_of(problem);
    const dim3 grid(static_cast<unsigned>(planes(d) * blocks_for(d.out_height, kRows)));
    ::convladder::launch(depthwise_bands, grid, dim3(kThreads),
                         static_cast<std::size_t>(shared_floats(problem)) * sizeof(float),
                         stream)(tensors.input, tensors.filter, tensors.output, d);
  }
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::DepthwiseBands)
