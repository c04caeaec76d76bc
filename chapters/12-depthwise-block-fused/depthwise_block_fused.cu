// 12 depthwise-block-fused: a block for each row of each plane.
//
//   for nc                                    blockIdx.x     <- fuse(n, c), bind
//     for p                                   blockIdx.y     <- bind
//       for q                                 a loop of the block's one thread
//         for r, s
//
// Since 11: n and c become one loop, so that one dimension of the grid holds both, and the other is free for the rows.
// Fusing costs a division where an index is still needed alone: the filter belongs to channel nc % channels.
//
//   1. The block's plane and row.
//   2. The thread walks along its row.

#include "common/kernel/border.hpp"
#include "common/kernel/tracks/depthwise.hpp"

namespace convladder {
namespace {

__global__ void depthwise_block_fused(const float* input,   // [batch][channels][height][width]
                                      const float* filter,  // [channels][rows][columns]
                                      float* output,        // [batch][channels][out_height][out_width]
                                      Depthwise d) {
  // 1.
  const int nc = blockIdx.x, p = block_in_y();
  if (p >= d.out_height) return;
  const float* in = input + nc * input_plane(d);
  const float* taps = filter + nc % d.channels * filter_plane(d);
  float* out = output + nc * output_plane(d) + static_cast<std::int64_t>(p) * d.out_width;

  // 2.
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
    out[q] = sum;
  }
}

void launch_depthwise_block_fused(const Tensors& tensors, const Depthwise& d, Stream stream) {
  launch(depthwise_block_fused, grid_in_y(planes(d), d.out_height), dim3(1), 0, stream)(tensors.input, tensors.filter,
                                                                                        tensors.output, d);
}

class DepthwiseBlockFused final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override { return check_depthwise(problem); }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    launch_depthwise_block_fused(tensors, depthwise_of(problem), stream);
  }

  Prediction predict(const ConvProblem& problem) const override { return predict_direct(problem); }
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::DepthwiseBlockFused)
