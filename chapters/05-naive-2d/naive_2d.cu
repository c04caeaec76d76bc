// 05 naive-2d: one thread, one pixel.
//
//   y[i][j] = sum over r, s of filter[r][s] * x[i - pad_y + r][j - pad_x + s]
//
// Since 02: a second dimension. The filter stays in constant memory. A block is a rectangle of 8 rows and 32 columns,
// so that a warp still holds 32 neighbours of one row and its loads and stores stay together.
//
//   1. The thread finds its pixel: the block's tile, then its own place in it.
//   2. For each row of the filter it finds the row of the input, and for each tap the column.
//   3. It multiplies, adds, and stores once.

#include "common/kernel/border.hpp"
#include "common/kernel/tracks/image.hpp"

namespace convladder {
namespace {

constexpr int kWidth = 32, kHeight = 8;  // of a block

__constant__ float c_filter[kMaxFilterTaps];

__global__ void naive_2d(const float* input,  // [batch][height][width]
                         float* output,       // [batch][out_height][out_width]
                         Image image) {
  // 1.
  const BlockTile tile = block_tile(image, kHeight, kWidth);
  const int y = tile.y + threadIdx.y, x = tile.x + threadIdx.x;
  if (tile.image >= image.batch || y >= image.out_height || x >= image.out_width) return;
  const float* in = input + tile.image * input_pixels(image);
  float* out = output + tile.image * output_pixels(image);

  // 2.
  float sum = 0.0f;
  for (int r = 0; r < image.rows; ++r) {
    const int i = border_index(y - image.pad_y + r, image.height, image.padding);
    if (i < 0) continue;
    const float* row = in + static_cast<std::int64_t>(i) * image.width;
    for (int s = 0; s < image.columns; ++s) {
      const int j = border_index(x - image.pad_x + s, image.width, image.padding);
      if (j >= 0) sum += row[j] * c_filter[r * image.columns + s];
    }
  }

  // 3.
  out[static_cast<std::int64_t>(y) * image.out_width + x] = sum;
}

void launch_naive_2d(const Tensors& tensors, const Image& image, Stream stream) {
  launch(naive_2d, image_grid(image, kHeight, kWidth), dim3(kWidth, kHeight), 0, stream)(tensors.input, tensors.output,
                                                                                         image);
}

class Naive2d final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override { return check_image(problem); }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    upload_constant(c_filter, tensors.filter, static_cast<std::size_t>(problem.filter_size()), stream);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    launch_naive_2d(tensors, image_of(problem), stream);
  }

  // Each output reads its whole window.
  Prediction predict(const ConvProblem& problem) const override {
    const Image image = image_of(problem);
    Prediction p;
    p.global_load_bytes = reads_by_output(image) * 4;
    p.global_store_bytes = problem.output_size() * 4;
    p.global_store_requests = warps_over_outputs(image);
    p.shared_load_requests = p.barriers = 0;
    p.flops = problem.flops();
    return p;
  }
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::Naive2d)
