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
#include "common/divisor.hpp"
#include "common/lowering.hpp"

namespace convladder {

constexpr int kIm2winThreads = 256;
constexpr int kIm2winVector = 4;  // floats that a thread writes at once

/// The sizes that a place in an image's part of the tensor is divided by.
struct Im2winDivisors {
  Divisor rows, padded_width, out_height;
};

/// Each thread writes four neighbouring floats. Grid: (vectors of an image's part of the tensor in blocks, images).
static __global__ void im2win(
    const float* __restrict__ input,  // [batch][channels][height][width]
    float* __restrict__ tensor,       // [batch][channels][out_height][padded_width][rows], 16-byte aligned
    Lowering l, Im2winDivisors by) {
  const int n = block_in_y(), size = l.channels * im2win_plane(l);
  if (n >= l.batch) return;
  float* out = tensor + static_cast<std::int64_t>(n) * size;
  // Where an image's part does not begin at a multiple of 16 bytes, its vectors begin up to 3 elements earlier.
  const int skew = static_cast<int>(static_cast<std::int64_t>(n) * size % kIm2winVector);
  const int first = static_cast<int>(blockIdx.x * kIm2winThreads + threadIdx.x) * kIm2winVector - skew;
  if (first >= size) return;

  // The first element's place, from the innermost dimension outwards.
  unsigned place = first < 0 ? 0 : first;
  int r = place % by.rows;
  place = place / by.rows;
  int j = place % by.padded_width;
  place = place / by.padded_width;
  int p = place % by.out_height;
  const float* plane = input + (n * l.channels + static_cast<int>(place / by.out_height)) * input_plane(l);

  float values[kIm2winVector];
  UNROLL
  for (int e = 0; e < kIm2winVector; ++e) {
    const bool mine = first + e >= 0 && first + e < size;
    int y = p * l.stride_y - l.pad_y + r * l.dilation_y, x = j - l.pad_x;
    bool inside = y >= 0 && y < l.height && x >= 0 && x < l.width;
    if (l.padding != Padding::zero) {
      y = border_index(y, l.height, l.padding);
      x = border_index(x, l.width, l.padding);
      inside = true;
    }
    values[e] = mine && inside ? plane[static_cast<std::int64_t>(y) * l.width + x] : 0.0f;
    // On to the next place, by selections: lanes that turn at different elements stay together.
    r += mine;
    const bool next_column = r == l.rows;
    r = next_column ? 0 : r;
    j += next_column;
    const bool next_row = j == padded_width(l);
    j = next_row ? 0 : j;
    p += next_row;
    const bool next_plane = p == l.out_height;
    p = next_plane ? 0 : p;
    plane += next_plane ? input_plane(l) : 0;
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
  launch(im2win, grid_in_y(blocks_for(vectors, kIm2winThreads), l.batch), dim3(kIm2winThreads), 0, stream)(
      input, tensor, l, Im2winDivisors{divisor_of(l.rows), divisor_of(padded_width(l)), divisor_of(l.out_height)});
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
