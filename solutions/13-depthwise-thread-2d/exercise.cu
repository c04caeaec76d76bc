// 13, exercise: split again.
//
// Stage 13 splits rows once, by 16. Here they are split into three: blocks, the outputs of one thread, threads. All
// outputs of a plane have the same filter, so a thread that has four outputs can read each tap once for all of them.
// And columns are split by 32: then a warp is one row.
//
//   for nc                                    blockIdx.x
//     for p_outer                             blockIdx.y     <- split(p, 32)
//       for p_inner                           threadIdx.y    <- split(its 32 rows, 8): 4 outputs for each of 8 threads
//         for q_outer                         a loop of each thread
//           for q_inner                       threadIdx.x    <- split(q, 32)
//             for r, s
//               for e                         a thread's 4 outputs, unrolled  <- reorder: inside r and s
//
//   1. The thread's four rows.
//   2. The rounds over the columns; in each four sums, tap by tap.
//   3. The stores.
//
// Rules: blocks of 32 x 8 threads, 32 rows of outputs a block. Any depthwise problem: batches, strides, dilations.
// Graded: the outputs without padding, with every padding, and of every size; no fault; taps read for each output;
// sectors.

#include "common/kernel/border.hpp"
#include "common/kernel/tracks/depthwise.hpp"

namespace convladder {
namespace {

constexpr int kWidth = 32, kHeight = 8;  // threads of a block
constexpr int kEach = 4;                 // outputs of a thread in each round
constexpr int kRows = kHeight * kEach;   // rows of outputs of a block

__global__ void depthwise_split_again(const float* input,   // [batch][channels][height][width]
                                      const float* filter,  // [channels][rows][columns]
                                      float* output,        // [batch][channels][out_height][out_width]
                                      Depthwise d) {
  const int nc = blockIdx.x;
  const float* in = input + nc * input_plane(d);
  const float* taps = filter + nc % d.channels * filter_plane(d);
  float* out = output + nc * output_plane(d);

  // SOLUTION
  // 1. Rows p, p + 8, p + 16 and p + 24.
  const int p = static_cast<int>(blockIdx.y) * kRows + threadIdx.y;

  for (int q = threadIdx.x; q < d.out_width; q += kWidth) {
    // 2. One tap, four pixels, four sums.
    float sum[kEach] = {};
    for (int r = 0; r < d.rows; ++r) {
      int i[kEach];  // the row of input under this row of taps, -1 where it is zero or nobody asks
      UNROLL
      for (int e = 0; e < kEach; ++e) {
        const int row = p + e * kHeight;
        i[e] =
            row < d.out_height ? border_index(row * d.stride_y - d.pad_y + r * d.dilation_y, d.height, d.padding) : -1;
      }
      for (int s = 0; s < d.columns; ++s) {
        const int j = border_index(q * d.stride_x - d.pad_x + s * d.dilation_x, d.width, d.padding);
        if (j < 0) continue;
        const float tap = taps[r * d.columns + s];
        UNROLL
        for (int e = 0; e < kEach; ++e)
          if (i[e] >= 0) sum[e] += in[static_cast<std::int64_t>(i[e]) * d.width + j] * tap;
      }
    }

    // 3.
    UNROLL
    for (int e = 0; e < kEach; ++e) {
      const int row = p + e * kHeight;
      if (row < d.out_height) out[static_cast<std::int64_t>(row) * d.out_width + q] = sum[e];
    }
  }
  // STARTER
  // | // As in 13: one output a thread and round. Of the 32 rows of a block 24 are never written.
  // | const int p = static_cast<int>(blockIdx.y) * kRows + threadIdx.y;
  // | if (p >= d.out_height) return;
  // | for (int q = threadIdx.x; q < d.out_width; q += kWidth) {
  // |   float sum = 0.0f;
  // |   for (int r = 0; r < d.rows; ++r) {
  // |     const int i = border_index(p * d.stride_y - d.pad_y + r * d.dilation_y, d.height, d.padding);
  // |     if (i < 0) continue;
  // |     for (int s = 0; s < d.columns; ++s) {
  // |       const int j = border_index(q * d.stride_x - d.pad_x + s * d.dilation_x, d.width, d.padding);
  // |       if (j >= 0) sum += in[static_cast<std::int64_t>(i) * d.width + j] * taps[r * d.columns + s];
  // |     }
  // |   }
  // |   out[static_cast<std::int64_t>(p) * d.out_width + q] = sum;
  // | }
  // END
}

void launch_depthwise_split_again(const Tensors& tensors, const Depthwise& d, Stream stream) {
  launch(depthwise_split_again, dim3(planes(d), blocks_for(d.out_height, kRows)), dim3(kWidth, kHeight), 0, stream)(
      tensors.input, tensors.filter, tensors.output, d);
}

class DepthwiseSplitAgain final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    return check_depthwise(problem, (problem.p() - 1) / kRows + 1, "tiles of 32 rows of outputs");
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    launch_depthwise_split_again(tensors, depthwise_of(problem), stream);
  }
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::DepthwiseSplitAgain)
