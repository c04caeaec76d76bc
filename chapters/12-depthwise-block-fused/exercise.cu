// 12, exercise: threads along the sum.
//
// 12 binds the loops over outputs, whose iterations do not depend on each other. The loops over taps add to one sum.
// They can be bound too, if every thread has a sum of its own, a part, and the parts are added up in the end. Here the
// 32 lanes of a warp share the taps of one output.
//
//   1. Each lane's part: every 32nd tap.
//   2. The sum of the 32 parts, by shuffles.
//   3. The stores, 32 outputs at a time.
//
// Rules: a block for each row of each plane, as in 12, of one warp; no shared memory, no barrier.
// Graded: the outputs for every filter, padding mode, stride and dilation; no fault; load and store requests for each
// output.

#include "common/kernel/border.hpp"
#include "common/kernel/tracks/depthwise.hpp"

namespace convladder {
namespace {

constexpr int kLanes = 32;                                     // of a warp, which is the block
[[maybe_unused]] constexpr unsigned kEveryLane = 0xffffffffu;  // take part in a shuffle

__global__ void depthwise_summed(const float* input,   // [batch][channels][height][width]
                                 const float* filter,  // [channels][rows][columns]
                                 float* output,        // [batch][channels][out_height][out_width]
                                 Depthwise d) {
  const int nc = blockIdx.x, p = blockIdx.y, lane = threadIdx.x;
  const float* in = input + nc * input_plane(d);
  const float* taps = filter + nc % d.channels * filter_plane(d);
  float* out = output + nc * output_plane(d) + static_cast<std::int64_t>(p) * d.out_width;

  // As in 12, by lane 0 alone, and only the first output of the row: the others are never written.
  if (lane > 0) return;
  float sum = 0.0f;
  for (int r = 0; r < d.rows; ++r) {
    const int i = border_index(p * d.stride_y - d.pad_y + r * d.dilation_y, d.height, d.padding);
    if (i < 0) continue;
    const float* row = in + static_cast<std::int64_t>(i) * d.width;
    for (int s = 0; s < d.columns; ++s) {
      const int j = border_index(-d.pad_x + s * d.dilation_x, d.width, d.padding);
      if (j >= 0) sum += row[j] * taps[r * d.columns + s];
    }
  }
  out[0] = sum;
}

void launch_depthwise_summed(const Tensors& tensors, const Depthwise& d, Stream stream) {
  launch(depthwise_summed, dim3(planes(d), d.out_height), dim3(kLanes), 0, stream)(tensors.input, tensors.filter,
                                                                                   tensors.output, d);
}

class DepthwiseSummed final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    return check_depthwise(problem, problem.p(), "rows of outputs");
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    launch_depthwise_summed(tensors, depthwise_of(problem), stream);
  }
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::DepthwiseSummed)
