// 14 depthwise-outer-fused: a thread for each output.
//
//   for nc                                    blockIdx.x
//     for pq_outer                            blockIdx.y     <- reorder, fuse(p_outer, q_outer), bind
//       for p_inner                           threadIdx.y
//         for q_inner                         threadIdx.x
//           for r, s
//
// Since 13: the last serial loop over outputs is on the grid too. In 13's nest q_outer lies inside p_inner; reorder
// moves it out, next to p_outer, and then both fuse into one.
//
//   1. The block's tile of 16 x 16 outputs, and the thread's place in it.
//   2. The thread sums its window.

#include "common/kernel/border.hpp"
#include "common/kernel/tracks/depthwise.hpp"

namespace convladder {
namespace {

constexpr int kSide = 16;  // threads of a block, and outputs of a tile, in each direction

__global__ void depthwise_outer_fused(const float* input,   // [batch][channels][height][width]
                                      const float* filter,  // [channels][rows][columns]
                                      float* output,        // [batch][channels][out_height][out_width]
                                      Depthwise d) {
  // 1.
  const int nc = blockIdx.x;
  const int across = blocks_for(d.out_width, kSide);
  const int p = block_in_y() / across * kSide + static_cast<int>(threadIdx.y);
  const int q = block_in_y() % across * kSide + static_cast<int>(threadIdx.x);
  if (p >= d.out_height || q >= d.out_width) return;

  // 2.
  const float* in = input + nc * input_plane(d);
  const float* taps = filter + nc % d.channels * filter_plane(d);
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
  output[nc * output_plane(d) + static_cast<std::int64_t>(p) * d.out_width + q] = sum;
}

void launch_depthwise_outer_fused(const Tensors& tensors, const Depthwise& d, Stream stream) {
  const dim3 grid = grid_in_y(planes(d), blocks_for(d.out_height, kSide) * blocks_for(d.out_width, kSide));
  launch(depthwise_outer_fused, grid, dim3(kSide, kSide), 0, stream)(tensors.input, tensors.filter, tensors.output, d);
}

class DepthwiseOuterFused final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override { return check_depthwise(problem); }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    launch_depthwise_outer_fused(tensors, depthwise_of(problem), stream);
  }

  Prediction predict(const ConvProblem& problem) const override { return predict_direct(problem); }
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::DepthwiseOuterFused)
