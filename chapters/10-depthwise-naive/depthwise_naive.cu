// 10 depthwise-naive: the loop nest as it stands, an image a block.
//
//   for n                                     blockIdx.x     <- bind
//     for c, p, q                             loops of the block's one thread
//       for r, s
//         y[n][c][p][q] += filter[c][r][s] * padded(x)[n][c][p * stride_y + r * dilation_y][...]
//
// Depthwise: a channel is convolved with a filter of its own, and nothing is summed over channels. Two primitives of a
// schedule are enough to run the nest on a GPU:
//
//   1. bind: an iteration of the outermost loop becomes a block. Nothing else is parallel; a block is one thread.
//   2. inline: the padded input is never stored. Each tap asks where its pixel lies when it needs it.
//   3. The sum stays in a register, and each output is stored once.

#include "common/kernel/border.hpp"
#include "common/kernel/tracks/depthwise.hpp"

namespace convladder {
namespace {

__global__ void depthwise_naive(const float* input,   // [batch][channels][height][width]
                                const float* filter,  // [channels][rows][columns]
                                float* output,        // [batch][channels][out_height][out_width]
                                Depthwise d) {
  // 1.
  const int n = blockIdx.x;
  for (int c = 0; c < d.channels; ++c) {
    const std::int64_t plane = static_cast<std::int64_t>(n) * d.channels + c;
    const float* in = input + plane * input_plane(d);
    const float* taps = filter + c * filter_plane(d);
    float* out = output + plane * output_plane(d);
    for (int p = 0; p < d.out_height; ++p) {
      for (int q = 0; q < d.out_width; ++q) {
        float sum = 0.0f;
        for (int r = 0; r < d.rows; ++r) {
          // 2.
          const int i = border_index(p * d.stride_y - d.pad_y + r * d.dilation_y, d.height, d.padding);
          if (i < 0) continue;
          const float* row = in + static_cast<std::int64_t>(i) * d.width;
          for (int s = 0; s < d.columns; ++s) {
            const int j = border_index(q * d.stride_x - d.pad_x + s * d.dilation_x, d.width, d.padding);
            if (j >= 0) sum += row[j] * taps[r * d.columns + s];
          }
        }
        // 3.
        out[static_cast<std::int64_t>(p) * d.out_width + q] = sum;
      }
    }
  }
}

void launch_depthwise_naive(const Tensors& tensors, const Depthwise& d, Stream stream) {
  launch(depthwise_naive, dim3(d.batch), dim3(1), 0, stream)(tensors.input, tensors.filter, tensors.output, d);
}

class DepthwiseNaive final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override { return check_depthwise(problem); }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    launch_depthwise_naive(tensors, depthwise_of(problem), stream);
  }

  Prediction predict(const ConvProblem& problem) const override { return predict_direct(problem); }
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::DepthwiseNaive)
