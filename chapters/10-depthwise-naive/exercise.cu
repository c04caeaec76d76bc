// 10, exercise: several filters a channel.
//
// Here a channel is convolved with `multiplier` filters instead of one, and gives as many channels of the output:
// k = multiplier * c, groups = c. Filter k belongs to channel k / multiplier. The windows are the same for all of its
// filters: so a pixel that is read once, and kept in a register, serves up to four of them.
//
//   1. The sums: one for each of up to four filters, together.
//   2. The stores.
//   3. What check() accepts.
//
// Rules: a block an image, one thread a block, as in 10. Any multiplier, also one that four does not divide.
// Graded: the outputs for every multiplier, padding mode, stride and dilation; no fault; pixels read for each output.

#include "common/kernel/border.hpp"
#include "common/kernel/tracks/depthwise.hpp"

namespace convladder {
namespace {

[[maybe_unused]] constexpr int kTogether = 4;  // filters whose sums a thread keeps in registers

// d.channels are the input's; the output has multiplier * d.channels.
__global__ void depthwise_multiplied(const float* input,   // [batch][channels][height][width]
                                     const float* filter,  // [channels][multiplier][rows][columns]
                                     float* output,        // [batch][channels][multiplier][out_height][out_width]
                                     Depthwise d, int multiplier) {
  const int n = blockIdx.x;
  for (int c = 0; c < d.channels; ++c) {
    const std::int64_t plane = static_cast<std::int64_t>(n) * d.channels + c;
    const float* in = input + plane * input_plane(d);
    // As in 10: one filter a channel, the first. The outputs of the others are never written.
    const float* taps = filter + static_cast<std::int64_t>(c) * multiplier * filter_plane(d);
    float* out = output + plane * multiplier * output_plane(d);
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
}

void launch_depthwise_multiplied(const Tensors& tensors, const Depthwise& d, int multiplier, Stream stream) {
  launch(depthwise_multiplied, dim3(d.batch), dim3(1), 0, stream)(tensors.input, tensors.filter, tensors.output, d,
                                                                  multiplier);
}

class DepthwiseMultiplied final : public Stage {
  // k and c are multiples of groups: the harness has seen to that.
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    return check_depthwise(problem);  // refuses all but one filter a channel
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    launch_depthwise_multiplied(tensors, depthwise_of(problem), static_cast<int>(problem.k / problem.c), stream);
  }
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::DepthwiseMultiplied)
