// 11 depthwise-block-2d: a block for each image and channel.
//
//   for n                                     blockIdx.x
//     for c                                   blockIdx.y     <- bind
//       for p, q                              loops of the block's one thread
//         for r, s
//
// Since 10: the second loop is bound too. Its iterations never depended on each other: a channel reads its own plane
// and its own filter. There are `channels` times as many blocks, and each has that much less to do.
//
//   1. The block's plane.
//   2. The thread walks over its plane, as in 10.

#include "common/kernel/border.hpp"
#include "common/kernel/tracks/depthwise.hpp"

namespace convladder {
namespace {

__global__ void depthwise_block_2d(const float* input,   // [batch][channels][height][width]
                                   const float* filter,  // [channels][rows][columns]
                                   float* output,        // [batch][channels][out_height][out_width]
                                   Depthwise d) {
  // 1.
  const int n = blockIdx.x, c = block_in_y();
  if (c >= d.channels) return;
  const std::int64_t plane = static_cast<std::int64_t>(n) * d.channels + c;
  const float* in = input + plane * input_plane(d);
  const float* taps = filter + c * filter_plane(d);
  float* out = output + plane * output_plane(d);

  // 2.
  for (int p = 0; p < d.out_height; ++p) {
    for (int q = 0; q < d.out_width; ++q) {
      float sum = 0.0f;
      for (int r = 0; r < d.rows; ++r) {
        const int i = border_index(p * d.stride_y - d.pad_y + r * d.dilation_y, d.height, d.padding);
        if (i < 0) continue;
        const float* row = in + static_cast<std::int64_t>(i) * d.width;
        for (int s = 0; s < d.columns; ++s) {
          const int j = border_index(q * d.stride_x - d.pad_x + s * d.dilation_x, d.width, d.padding);
          if (j >= 0) sum += row[j] * taps[r * d.columns + s];
        }
      }
      out[static_cast<std::int64_t>(p) * d.out_width + q] = sum;
    }
  }
}

void launch_depthwise_block_2d(const Tensors& tensors, const Depthwise& d, Stream stream) {
  launch(depthwise_block_2d, grid_in_y(d.batch, d.channels), dim3(1), 0, stream)(tensors.input, tensors.filter,
                                                                                 tensors.output, d);
}

class DepthwiseBlock2d final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override { return check_depthwise(problem); }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    launch_depthwise_block_2d(tensors, depthwise_of(problem), stream);
  }

  Prediction predict(const ConvProblem& problem) const override { return predict_direct(problem); }
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::DepthwiseBlock2d)
