// The window order, im2win: what the windows of a row of outputs share is stored once. Used by chapters 18 to 21.
//
//   tensor[n][c][p][j][r] = input[n][c][p stride_y - pad_y + r dilation_y][j - pad_x]       j: a padded column
//
// A row p of the tensor holds, column by column, the `rows` pixels of each column that the outputs of row p see. So the
// window of output (p, q) is one piece, columns after columns, that begins at q stride_x rows: rows x columns
// neighbouring floats (with dilation_x = 1), and the next window begins stride_x columns later, inside this one. An
// element of the input is written once for each row of outputs that sees it: about rows / stride_y times, where im2col
// writes it columns / stride_x times as often.
#pragma once
#include "common/border.hpp"
#include "common/lowering.hpp"

namespace convladder {

constexpr int kIm2winThreads = 256;
constexpr int kIm2winVector = 4;  // floats that a thread writes at once

/// Grid: (vectors of an image's part of the tensor in blocks, images).
static __global__ void im2win(const float* input,  // [batch][channels][height][width]
                              float* tensor,       // [batch][channels][out_height][padded_width][rows], 16-byte aligned
                              Lowering l) {
  const int n = block_in_y(), size = l.channels * im2win_plane(l);
  if (n >= l.batch) return;
  const float* image = input + n * l.channels * input_plane(l);
  float* out = tensor + static_cast<std::int64_t>(n) * size;
  // Where an image's part does not begin at a multiple of 16 bytes, its vectors begin up to 3 elements earlier.
  const int skew = static_cast<int>(static_cast<std::int64_t>(n) * size % kIm2winVector);
  const int first = static_cast<int>(blockIdx.x * kIm2winThreads + threadIdx.x) * kIm2winVector - skew;
  if (first >= size) return;

  const int start = first < 0 ? 0 : first;
  int r = start % l.rows, j = start / l.rows % padded_width(l);
  int p = start / im2win_row(l) % l.out_height, c = start / im2win_plane(l);
  float values[kIm2winVector];
  UNROLL
  for (int e = 0; e < kIm2winVector; ++e) {
    values[e] = 0.0f;
    if (first + e < 0 || first + e >= size) continue;
    const int y = border_index(p * l.stride_y - l.pad_y + r * l.dilation_y, l.height, l.padding);
    const int x = border_index(j - l.pad_x, l.width, l.padding);
    if (y >= 0 && x >= 0) values[e] = image[c * input_plane(l) + static_cast<std::int64_t>(y) * l.width + x];
    if (++r == l.rows) {
      r = 0;
      if (++j == padded_width(l)) {
        j = 0;
        if (++p == l.out_height) {
          p = 0;
          ++c;
        }
      }
    }
  }
  if (first >= 0 && first + kIm2winVector <= size) {
    *reinterpret_cast<float4*>(out + first) = make_float4(values[0], values[1], values[2], values[3]);
  } else {
    UNROLL
    for (int e = 0; e < kIm2winVector; ++e)
      if (first + e >= 0 && first + e < size) out[first + e] = values[e];
  }
}

static inline void launch_im2win(const float* input, float* tensor, const Lowering& l, Stream stream) {
  const int vectors = blocks_for(l.channels * im2win_plane(l) + kIm2winVector - 1, kIm2winVector);
  launch(im2win, grid_in_y(blocks_for(vectors, kIm2winThreads), l.batch), dim3(kIm2winThreads), 0, stream)(input,
                                                                                                           tensor, l);
}

/// Where the window of output (p, q) of image n begins in the tensor.
__device__ __forceinline__ std::int64_t window_start(const Lowering& l, int n, int p, int q) {
  return static_cast<std::int64_t>(n) * l.channels * im2win_plane(l) + p * im2win_row(l) + q * l.stride_x * l.rows;
}

/// Where, from its window's start, product d of a sum finds its pixel: products are in the tensor's order, (c, s, r).
__device__ __forceinline__ int window_offset(const Lowering& l, int d) {
  const int c = d / window(l), s = d % window(l) / l.rows, r = d % l.rows;
  return c * im2win_plane(l) + s * l.dilation_x * l.rows + r;
}

/// The tap of product d of a sum: the place in a filter [channels][rows][columns].
__device__ __forceinline__ int tap_of_product(const Lowering& l, int d) {
  const int c = d / window(l), s = d % window(l) / l.rows, r = d % l.rows;
  return (c * l.rows + r) * l.columns + s;
}

/// How many pixels the transform reads: with zero padding, none outside.
static inline std::int64_t im2win_reads(const Lowering& l) {
  const std::int64_t columns = l.padding == Padding::zero ? l.width : padded_width(l);
  return static_cast<std::int64_t>(l.batch) * l.channels * reads_by_output(vertical(l)) * columns;
}

}  // namespace convladder
