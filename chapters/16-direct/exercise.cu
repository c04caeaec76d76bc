// 16, exercise: four filters of a pixel.
//
// All filters of a layer read the same pixels. In stage 16 a thread has one output, and each product of its sum reads a
// pixel and a tap. Here a thread has the outputs of four filters at one position: it reads a pixel once for four
// products.
//
//   for n                                  blockIdx.y
//     for k_outer, p, q                    blockIdx.x, threadIdx.x   <- split(k, 4)
//       for c, r, s                        a loop of each thread
//         for e                            the thread's 4 filters, unrolled  <- reorder: inside c, r and s
//
//   1. The thread's position, and the first of its filters (given).
//   2. Its four sums: a pixel, and the four taps that meet it.
//   3. The stores.
//
// Rules: one launch of 256 threads a block; a thread has up to four filters of one position. Any channels, filters,
// batch, stride, dilation and padding.
// Graded: the outputs without padding, with every padding, and of every size; no fault; bytes and sectors loaded.

#include "common/kernel/border.hpp"
#include "common/kernel/tracks/lowering.hpp"

namespace convladder {
namespace {

constexpr int kThreads = 256;
constexpr int kEach = 4;  // filters of a thread

__global__ void direct_four_filters(const float* input,   // [batch][channels][height][width]
                                    const float* filter,  // [filters][channels][rows][columns]
                                    float* output,        // [batch][filters][out_height][out_width]
                                    Lowering l) {
  // 1. Groups of four filters, the last of which may be smaller.
  const int n = block_in_y(), place = blockIdx.x * kThreads + threadIdx.x;
  if (n >= l.batch || place >= blocks_for(l.filters, kEach) * output_plane(l)) return;
  const int k = place / output_plane(l) * kEach, pq = place % output_plane(l);
  const int top = pq / l.out_width * l.stride_y - l.pad_y, left = pq % l.out_width * l.stride_x - l.pad_x;
  const float* image = input + n * l.channels * input_plane(l);
  const float* taps = filter + k * depth(l);
  float* out = output + (static_cast<std::int64_t>(n) * l.filters + k) * output_plane(l) + pq;

  // As in 16, for the first of the four filters. The outputs of the other three are never written.
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
  *out = sum;
}

void launch_direct_four_filters(const Tensors& tensors, const Lowering& l, Stream stream) {
  const int places = blocks_for(l.filters, kEach) * output_plane(l);
  launch(direct_four_filters, grid_in_y(blocks_for(places, kThreads), l.batch), dim3(kThreads), 0, stream)(
      tensors.input, tensors.filter, tensors.output, l);
}

class DirectFourFilters final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override { return check_lowering(problem); }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    launch_direct_four_filters(tensors, lowering_of(problem), stream);
  }
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::DirectFourFilters)
