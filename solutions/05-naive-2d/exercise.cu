// 05, exercise: four pixels of a column.
//
// A thread computes four outputs that lie one below the other. Their windows overlap: together they have rows + 3 rows
// of pixels, where four windows apart have 4 rows. So each pixel that is read once, and kept in a register, serves up
// to four outputs, and so does each weight.
//
//   1. The block's tile, and in it the thread's four outputs.
//   2. The four sums, column by column of the filter.
//   3. The stores.
//
// Rules: blocks of 32 x 8 threads, tiles of 32 x 32 outputs. Any image, also one whose last tile is not whole; filters
// with odd and even sides; more padding than the filter, and less.
// Graded: the outputs inside, at the borders for every padding mode, and of every size; no fault; pixels and weights
// read for each output; whole sectors.

#include "common/kernel/border.hpp"
#include "common/kernel/tracks/image.hpp"

namespace convladder {
namespace {

constexpr int kWidth = 32, kHeight = 8;  // threads of a block
constexpr int kEach = 4;                 // outputs of a thread

__constant__ float c_filter[kMaxFilterTaps];

// The pixel at a position of the padded image; zero where no output needs one.
__device__ __forceinline__ float padded_pixel(const float* in, int y, int x, const Image& image) {
  if (y >= image.height + image.pad_y || x >= image.width + image.pad_x) return 0.0f;
  const int i = border_index(y, image.height, image.padding);
  const int j = border_index(x, image.width, image.padding);
  return i < 0 || j < 0 ? 0.0f : in[static_cast<std::int64_t>(i) * image.width + j];
}

__global__ void column_2d(const float* input,  // [batch][height][width]
                          float* output,       // [batch][out_height][out_width]
                          Image image) {
  const BlockTile tile = block_tile(image, kHeight * kEach, kWidth);
  if (tile.image >= image.batch) return;
  const float* in = input + tile.image * input_pixels(image);
  float* out = output + tile.image * output_pixels(image);

  // SOLUTION
  // 1. Four neighbours of a column. The output at (y, x) begins to read at (y - pad_y, x - pad_x).
  const int y = tile.y + kEach * threadIdx.y, x = tile.x + threadIdx.x;
  if (y >= image.out_height || x >= image.out_width) return;

  // 2. Tap (r, s) of output e meets the pixel r + e rows below the first one of column s.
  float sum[kEach] = {};
  for (int s = 0; s < image.columns; ++s) {
    const int j = x - image.pad_x + s;
    float pixel[kEach] = {};  // the pixels that one tap of the four outputs meets
    UNROLL
    for (int e = 0; e < kEach - 1; ++e) pixel[e] = padded_pixel(in, y - image.pad_y + e, j, image);
    for (int r = 0; r < image.rows; ++r) {
      pixel[kEach - 1] = padded_pixel(in, y - image.pad_y + r + kEach - 1, j, image);  // one new pixel a tap
      const float weight = c_filter[r * image.columns + s];
      UNROLL
      for (int e = 0; e < kEach; ++e) sum[e] += pixel[e] * weight;
      UNROLL
      for (int e = 0; e < kEach - 1; ++e) pixel[e] = pixel[e + 1];  // one row down
    }
  }

  // 3.
  UNROLL
  for (int e = 0; e < kEach; ++e)
    if (y + e < image.out_height) out[static_cast<std::int64_t>(y + e) * image.out_width + x] = sum[e];
  // STARTER
  // | // As in 05: one output a thread. Of the 32 rows of a tile 24 are never written.
  // | const int y = tile.y + threadIdx.y, x = tile.x + threadIdx.x;
  // | if (y >= image.out_height || x >= image.out_width) return;
  // | float sum = 0.0f;
  // | for (int r = 0; r < image.rows; ++r)
  // |   for (int s = 0; s < image.columns; ++s)
  // |     sum += padded_pixel(in, y - image.pad_y + r, x - image.pad_x + s, image) * c_filter[r * image.columns + s];
  // | out[static_cast<std::int64_t>(y) * image.out_width + x] = sum;
  // END
}

void launch_column_2d(const Tensors& tensors, const Image& image, Stream stream) {
  launch(column_2d, image_grid(image, kHeight * kEach, kWidth), dim3(kWidth, kHeight), 0, stream)(
      tensors.input, tensors.output, image);
}

class Column2d final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override { return check_image(problem); }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    upload_constant(c_filter, tensors.filter, static_cast<std::size_t>(problem.filter_size()), stream);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    launch_column_2d(tensors, image_of(problem), stream);
  }
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::Column2d)
