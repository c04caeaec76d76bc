// 13 depthwise-thread-2d: 16 x 16 threads a block.
//
//   for nc                                    blockIdx.x
//     for p_outer                             blockIdx.y     <- split(p, 16): p = 16 p_outer + p_inner
//       for p_inner                           threadIdx.y    <- bind
//         for q_outer                         a loop of each thread
//           for q_inner                       threadIdx.x    <- split(q, 16): q = 16 q_outer + q_inner, bind
//             for r, s
//
// Since 12: a block has 256 threads instead of one. A split makes a loop into two, of which the inner one has a length
// that suits the hardware. Where 16 does not divide the size, the last iteration reaches past the end: so a condition
// guards it.
//
//   1. The thread's row and, in its first round, its column.
//   2. The threads of a block move along the rows together, 16 outputs at a time.

#include "common/kernel/border.hpp"
#include "common/kernel/tracks/depthwise.hpp"

namespace convladder {
namespace {

constexpr int kSide = 16;  // threads of a block in each direction

__global__ void depthwise_thread_2d(const float* input,   // [batch][channels][height][width]
                                    const float* filter,  // [channels][rows][columns]
                                    float* output,        // [batch][channels][out_height][out_width]
                                    Depthwise d) {
  // 1.
  const int nc = blockIdx.x;
  const float* in = input + nc * input_plane(d);
  const float* taps = filter + nc % d.channels * filter_plane(d);
  const int p = block_in_y() * kSide + static_cast<int>(threadIdx.y);
  if (p >= d.out_height) return;
  float* out = output + nc * output_plane(d) + static_cast<std::int64_t>(p) * d.out_width;

  // 2.
  for (int q = threadIdx.x; q < d.out_width; q += kSide) {
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

void launch_depthwise_thread_2d(const Tensors& tensors, const Depthwise& d, Stream stream) {
  launch(depthwise_thread_2d, grid_in_y(planes(d), blocks_for(d.out_height, kSide)), dim3(kSide, kSide), 0, stream)(
      tensors.input, tensors.filter, tensors.output, d);
}

class DepthwiseThread2d final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override { return check_depthwise(problem); }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    launch_depthwise_thread_2d(tensors, depthwise_of(problem), stream);
  }

  Prediction predict(const ConvProblem& problem) const override { return predict_direct(problem); }
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::DepthwiseThread2d)
