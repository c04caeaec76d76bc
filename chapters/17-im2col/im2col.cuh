// The unfolding of the input, im2col: each image becomes a matrix with a column for each output and a row for each
// product of its sum. Used by chapter 17, and by the harness for the row where cuBLAS multiplies.
//
//   matrix[n][(c, r, s)][(p, q)] = input[n][c][p stride_y - pad_y + r dilation_y][q stride_x - pad_x + s dilation_x]
//
// An element of the input is written once for each window that holds it: about r s / (stride_y stride_x) times.
#pragma once
#include "common/kernel/border.hpp"
#include "common/kernel/tracks/lowering.hpp"

namespace convladder {

constexpr int kIm2colThreads = 256;

/// A thread writes what one window holds of one channel: neighbouring threads write neighbouring columns of a row.
/// Grid: (channels x windows of an image in blocks, images).
static __global__ void im2col(const float* __restrict__ input,  // [batch][channels][height][width]
                              float* __restrict__ matrix,  // [batch][channels * rows * columns][out_height * out_width]
                              Lowering l) {
  const int n = block_in_y(), cpq = blockIdx.x * kIm2colThreads + threadIdx.x;
  if (n >= l.batch || cpq >= l.channels * output_plane(l)) return;
  const int c = cpq / output_plane(l), pq = cpq % output_plane(l);
  const int top = pq / l.out_width * l.stride_y - l.pad_y, left = pq % l.out_width * l.stride_x - l.pad_x;
  const std::int64_t plane = static_cast<std::int64_t>(n) * l.channels + c;
  const float* in = input + plane * input_plane(l);
  float* out = matrix + plane * window(l) * output_plane(l) + pq;
  for (int r = 0; r < l.rows; ++r) {
    const int i = border_index(top + r * l.dilation_y, l.height, l.padding);
    for (int s = 0; s < l.columns; ++s) {
      const int j = border_index(left + s * l.dilation_x, l.width, l.padding);
      *out = i >= 0 && j >= 0 ? in[static_cast<std::int64_t>(i) * l.width + j] : 0.0f;
      out += output_plane(l);
    }
  }
}

static inline void launch_im2col(const float* input, float* matrix, const Lowering& l, Stream stream) {
  launch(im2col, grid_in_y(blocks_for(l.channels * output_plane(l), kIm2colThreads), l.batch), dim3(kIm2colThreads), 0,
         stream)(input, matrix, l);
}

}  // namespace convladder
