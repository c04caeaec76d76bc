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

  // As in 05: one output a thread. Of the 32 rows of a tile 24 are never written.
  const int y = tile.y + threadIdx.y, x = tile.x + threadIdx.x;
  if (y >= image.out_height || x >= image.out_width) return;
  float sum = 0.0f;
  for (int r = 0; r < image.rows; ++r)
    for (int s = 0; s < image.columns; ++s)
      sum += padded_pixel(in, y - image.pad_y + r, x - image.pad_x + s, image) * c_filter[r * image.columns + s];
  out[static_cast<std::int64_t>(y) * image.out_width + x] = sum;
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
