// 16 direct: the seven loops on a grid.
//
//   for n                                  blockIdx.y
//     for k, p, q                          blockIdx.x, threadIdx.x: 256 outputs of an image, one a thread
//       for c, r, s                        a loop of each thread
//
// New since the depthwise stages: an output is a sum over all channels, of c r s products.
//
//   1. The thread's output.
//   2. Its sum. The lanes of a warp read neighbouring pixels, and mostly the same tap.

#include "common/kernel/border.hpp"
#include "common/kernel/tracks/lowering.hpp"

namespace convladder {
namespace {

constexpr int kThreads = 256;

__global__ void direct(const float* input,   // [batch][channels][height][width]
                       const float* filter,  // [filters][channels][rows][columns]
                       float* output,        // [batch][filters][out_height][out_width]
                       Lowering l) {
  // 1.
  const int n = block_in_y(), kpq = blockIdx.x * kThreads + threadIdx.x;
  if (n >= l.batch || kpq >= l.filters * output_plane(l)) return;
  const int k = kpq / output_plane(l), pq = kpq % output_plane(l);
  const int top = pq / l.out_width * l.stride_y - l.pad_y, left = pq % l.out_width * l.stride_x - l.pad_x;
  const float* image = input + n * l.channels * input_plane(l);
  const float* taps = filter + k * depth(l);

  // 2.
  float sum = 0.0f;
  for (int c = 0; c < l.channels; ++c) {
    for (int r = 0; r < l.rows; ++r) {
      const int i = border_index(top + r * l.dilation_y, l.height, l.padding);
      if (i < 0) continue;
      const float* row = image + c * input_plane(l) + static_cast<std::int64_t>(i) * l.width;
      for (int s = 0; s < l.columns; ++s) {
        const int j = border_index(left + s * l.dilation_x, l.width, l.padding);
        if (j >= 0) sum += row[j] * taps[(c * l.rows + r) * l.columns + s];
      }
    }
  }
  output[static_cast<std::int64_t>(n) * l.filters * output_plane(l) + kpq] = sum;
}

void launch_direct(const Tensors& tensors, const Lowering& l, Stream stream) {
  launch(direct, grid_in_y(blocks_for(l.filters * output_plane(l), kThreads), l.batch), dim3(kThreads), 0, stream)(
      tensors.input, tensors.filter, tensors.output, l);
}

class Direct final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override { return check_lowering(problem); }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    launch_direct(tensors, lowering_of(problem), stream);
  }

  Prediction predict(const ConvProblem& problem) const override {
    const Lowering l = lowering_of(problem);
    const std::int64_t reads =
        reads_by_output(vertical(l)) * reads_by_output(horizontal(l));  // of a channel, by a filter
    Prediction p;
    p.global_load_bytes = 2 * reads * problem.n * problem.c * problem.k * 4;  // a pixel and a tap for each product
    p.global_store_bytes = problem.output_size() * 4;
    p.shared_load_requests = p.constant_load_requests = p.barriers = 0;
    p.flops = problem.flops();
    return p;
  }
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::Direct)
