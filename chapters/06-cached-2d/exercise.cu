// 06, exercise: warps that agree.
//
// In 06 the lanes of a warp often answer differently where their pixel lies, and the warp then makes two requests for
// one tap: one to shared memory, one to global memory. Here the body is as wide as the block's windows. Then the answer
// depends on the row alone, and a warp is one row: all its lanes go the same way.
//
//              |<- 32 + columns - 1 ->|
//              +----------------------+
//              |   rows above: from   |
//              |   global memory      |
//              +----------------------+
//              |   body: 32 rows in   |
//              |   shared memory      |
//              +----------------------+
//              |   rows below: from   |
//              |   global memory      |
//              +----------------------+
//
//   1. The threads load the body together.
//   2. A barrier.
//   3. For each row of the filter: if it meets the body, all its taps read shared memory; if not, all read global
//      memory.
//
// Rules: 32 x 32 threads and outputs a block; the body has 32 rows. Any image, filter and padding that 06 takes.
// Graded: the outputs inside, at the borders for every padding mode, and of every size; no fault; requests and bytes
// for each output.

#include "common/kernel/border.hpp"
#include "common/kernel/tracks/image.hpp"

namespace convladder {
namespace {

constexpr int kTile = 32;                           // outputs of a block in each direction, and its threads
constexpr int kPitch = kTile + kMaxFilterSide - 1;  // of a row of the body, so wide is the widest

__constant__ float c_filter[kMaxFilterTaps];

// The pixel at a position of the padded image; zero where no output needs one.
__device__ __forceinline__ float padded_pixel(const float* in, int y, int x, const Image& image) {
  if (y >= image.height + image.pad_y || x >= image.width + image.pad_x) return 0.0f;
  const int i = border_index(y, image.height, image.padding);
  const int j = border_index(x, image.width, image.padding);
  return i < 0 || j < 0 ? 0.0f : in[static_cast<std::int64_t>(i) * image.width + j];
}

__global__ void agreeing_2d(const float* input,  // [batch][height][width]
                            float* output,       // [batch][out_height][out_width]
                            Image image) {
  __shared__ float body[kTile][kPitch];  // columns 0 ... kTile + columns - 2 are used
  const BlockTile tile = block_tile(image, kTile, kTile);
  if (tile.image >= image.batch) return;
  const float* in = input + tile.image * input_pixels(image);
  const int ty = threadIdx.y, tx = threadIdx.x;
  const int first_y = tile.y - image.pad_y, first_x = tile.x - image.pad_x;  // of the block's first window
  const int middle_y = (image.rows - 1) / 2;  // row 0 of the body is at first_y + middle_y

  // 1. One pixel a thread: of each row of the body 32 pixels are loaded, the others are not.
  body[ty][tx] = padded_pixel(in, first_y + middle_y + ty, first_x + tx, image);

  // 2.
  __syncthreads();
  if (tile.y + ty >= image.out_height || tile.x + tx >= image.out_width) return;

  // 3. The rows of the filter that meet the body. The others are left out.
  float sum = 0.0f;
  for (int r = 0; r < image.rows; ++r) {
    const int by = ty + r - middle_y;
    if (by < 0 || by >= kTile) continue;
    for (int s = 0; s < image.columns; ++s) sum += c_filter[r * image.columns + s] * body[by][tx + s];
  }
  output[tile.image * output_pixels(image) + static_cast<std::int64_t>(tile.y + ty) * image.out_width + tile.x + tx] =
      sum;
}

void launch_agreeing_2d(const Tensors& tensors, const Image& image, Stream stream) {
  launch(agreeing_2d, image_grid(image, kTile, kTile), dim3(kTile, kTile), 0, stream)(tensors.input, tensors.output,
                                                                                      image);
}

class Agreeing2d final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override { return check_image(problem); }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    upload_constant(c_filter, tensors.filter, static_cast<std::size_t>(problem.filter_size()), stream);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    launch_agreeing_2d(tensors, image_of(problem), stream);
  }
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::Agreeing2d)
