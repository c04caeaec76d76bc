// 08, exercise: both passes in one kernel.
//
// The two passes of stage 08 write an intermediate image to global memory and read it again. Here a block keeps its
// part of it in shared memory: pixels come in once, outputs go out once, and nothing else.
//
//              columns - 1 + 32
//            +------------------+          +-----------+
//            |                  |   rows   |           |  columns   +-----------+
//   64 +     |     pixels       |  ----->  |  between  |  ------->  |  outputs  |  64
//   rows - 1 |                  |          |           |            |           |
//            +------------------+          +-----------+            +-----------+
//                                               32                       32
//
//   prepare: the filter is split into a column and a row (given).
//   1. The block loads the pixels of its window (given).
//   2. Rows: each row of the window is summed with the filter's row.
//   3. Columns: the sums are summed with the filter's column, and leave.
//
// Rules: one launch beside prepare's; a block makes kHeight x kWidth outputs, fewer at the image's ends. The filter is
// of rank one: the grader draws no others.
// Graded: the outputs inside, at the edges for every padding mode, and of every size and batch; no fault; one image in
// and one out; rows + columns products for an output.

#include "common/kernel/border.hpp"
#include "common/kernel/tracks/image.hpp"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

constexpr int kWidth = 32, kHeight = 64;  // outputs of a block
constexpr int kThreadsDown = 8;           // of a block, each row of which has kWidth threads

__constant__ float c_row[kMaxFilterSide];
__constant__ float c_column[kMaxFilterSide];

// As in 08. One block; thread i looks through row i. With the largest tap at (a, b): column[i] = w[i][b] / w[a][b],
// row[j] = w[a][j].
__global__ void split_filter(const float* filter,  // [rows][columns]
                             float* parts,         // [kMaxFilterSide] column, [kMaxFilterSide] row
                             int rows, int columns) {
  __shared__ float largest[kMaxFilterSide];
  __shared__ int where[kMaxFilterSide];
  const int i = threadIdx.x;
  if (i < rows) {
    int best = 0;
    for (int j = 1; j < columns; ++j)
      if (fabsf(filter[i * columns + j]) > fabsf(filter[i * columns + best])) best = j;
    largest[i] = fabsf(filter[i * columns + best]);
    where[i] = best;
  }
  __syncthreads();
  int a = 0;
  for (int row = 1; row < rows; ++row)
    if (largest[row] > largest[a]) a = row;
  const int b = where[a];
  const float pivot = filter[a * columns + b];
  if (i < rows) parts[i] = pivot == 0.0f ? 0.0f : filter[i * columns + b] / pivot;
  if (i < columns) parts[kMaxFilterSide + i] = filter[a * columns + i];
}

// The pixel at a position of the padded image; zero where no output needs one.
__device__ __forceinline__ float padded_pixel(const float* in, int y, int x, const Image& image) {
  if (y >= image.height + image.pad_y || x >= image.width + image.pad_x) return 0.0f;
  const int i = border_index(y, image.height, image.padding);
  const int j = border_index(x, image.width, image.padding);
  return i < 0 || j < 0 ? 0.0f : in[static_cast<std::int64_t>(i) * image.width + j];
}

__global__ void both_passes(const float* input,  // [batch][height][width]
                            float* output,       // [batch][out_height][out_width]
                            Image image) {
  const int window_height = kHeight + image.rows - 1, pitch = kWidth + image.columns - 1;
  float* pixels = dynamic_shared<float>();          // [window_height][pitch]
  float* between = pixels + window_height * pitch;  // [window_height][kWidth]
  const BlockTile tile = block_tile(image, kHeight, kWidth);
  if (tile.image >= image.batch) return;
  const float* in = input + tile.image * input_pixels(image);
  float* out = output + tile.image * output_pixels(image);
  const int ty = threadIdx.y, tx = threadIdx.x, out_x = tile.x + tx;

  // 1.
  for (int y = ty; y < window_height; y += kThreadsDown)
    for (int x = tx; x < pitch; x += kWidth)
      pixels[y * pitch + x] = padded_pixel(in, tile.y - image.pad_y + y, tile.x - image.pad_x + x, image);

  // SOLUTION
  __syncthreads();  // the window is whole

  // 2. Also the rows of the halo: the outputs at the tile's ends need their sums.
  for (int y = ty; y < window_height; y += kThreadsDown) {
    float sum = 0.0f;
    for (int s = 0; s < image.columns; ++s) sum += pixels[y * pitch + tx + s] * c_row[s];
    between[y * kWidth + tx] = sum;
  }
  __syncthreads();  // all rows are summed

  // 3.
  for (int y = ty; y < min(kHeight, image.out_height - tile.y) && out_x < image.out_width; y += kThreadsDown) {
    float sum = 0.0f;
    for (int r = 0; r < image.rows; ++r) sum += between[(y + r) * kWidth + tx] * c_column[r];
    out[static_cast<std::int64_t>(tile.y + y) * image.out_width + out_x] = sum;
  }
  // STARTER
  // | // No sums yet: pixels pass through, each thread's own, so that no barrier is needed.
  // | for (int y = ty; y < kHeight; y += kThreadsDown) between[y * kWidth + tx] = pixels[y * pitch + tx];
  // | for (int y = ty; y < min(kHeight, image.out_height - tile.y) && out_x < image.out_width; y += kThreadsDown)
  // |   out[static_cast<std::int64_t>(tile.y + y) * image.out_width + out_x] = between[y * kWidth + tx];
  // END
}

// Both arrays. With the largest filter, 65x65: 128 x (96 + 32) floats, 64 KB.
std::int64_t shared_bytes(std::int64_t rows, std::int64_t columns) {
  return (kHeight + rows - 1) * (kWidth + columns - 1 + kWidth) * static_cast<std::int64_t>(sizeof(float));
}

void launch_both_passes(const Tensors& tensors, const Image& image, Stream stream) {
  const auto bytes = static_cast<std::size_t>(shared_bytes(image.rows, image.columns));
  launch(both_passes, image_grid(image, kHeight, kWidth), dim3(kWidth, kThreadsDown), bytes, stream)(
      tensors.input, tensors.output, image);
}

class BothPasses final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits& limits) const override {
    const Verdict verdict = check_image(problem);
    if (verdict.accepted() && shared_bytes(problem.r, problem.s) > limits.shared_bytes_per_block)
      return Verdict::refuse("the window and its sums take {} bytes of shared memory; a block has {}",
                             shared_bytes(problem.r, problem.s), limits.shared_bytes_per_block);
    return verdict;
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    parts_.allocate(2 * kMaxFilterSide);
    convladder::launch(split_filter, 1, 96, 0, stream)(tensors.filter, parts_.floats(), static_cast<int>(problem.r),
                                                       static_cast<int>(problem.s));
    const float* const parts = parts_.floats();
    upload_constant(c_column, parts, static_cast<std::size_t>(problem.r), stream);
    upload_constant(c_row, parts + kMaxFilterSide, static_cast<std::size_t>(problem.s), stream);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    launch_both_passes(tensors, image_of(problem), stream);
  }

  Workspace parts_{*this, "the filter's column and row"};
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::BothPasses)
