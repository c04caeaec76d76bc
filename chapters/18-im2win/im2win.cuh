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
#include "common/kernel/border.hpp"
#include "common/kernel/divisor.hpp"
#include "common/kernel/tracks/lowering.hpp"

namespace convladder {

constexpr int kIm2winThreads = 256;
constexpr int kIm2winColumns = 4;  // of a thread, 32 apart
constexpr int kIm2winAtOnce = 4;   // rows that a thread loads before it stores the first
constexpr int kIm2winRows = 12;    // the most that are turned in shared memory: 48 KB a block

/// The sizes that the number of a column of the tensor is divided by.
struct Im2winDivisors {
  Divisor padded_width, out_height;
};

/// A column of the tensor, (c, p, j), lies along a column of the input, and is one piece of `rows` floats in the
/// tensor. A warp takes 128 columns: it loads them row by row, 32 neighbouring pixels a request, turns them in a piece
/// of shared memory of its own, and stores them in the tensor's order, 32 neighbouring floats a request. Each thread
/// has 16 loads under way at once. Columns too long for that (Turned = false) go to the tensor as they are loaded.
/// Grid: (columns of an image's part of the tensor, in blocks, images).
template <bool Turned>
static __global__ void im2win(const float* __restrict__ input,  // [batch][channels][height][width]
                              float* __restrict__ tensor,       // [batch][channels][out_height][padded_width][rows]
                              Lowering l, Im2winDivisors by) {
  constexpr int kOfWarp = 32 * kIm2winColumns;
  const int n = block_in_y(), columns = l.channels * l.out_height * padded_width(l);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int first = (blockIdx.x * (kIm2winThreads / 32) + warp) * kOfWarp, count = min(columns - first, kOfWarp);
  if (n >= l.batch || count <= 0) return;
  float* out = tensor + (static_cast<std::int64_t>(n) * columns + first) * l.rows;  // [count][rows]
  float* piece = Turned ? dynamic_shared<float>() + warp * kOfWarp * l.rows : out;  // the same

  const float* from[kIm2winColumns];  // each column of the input, at its row 0
  int x[kIm2winColumns];              // its place, or -1: zeros
  int top[kIm2winColumns];            // the row of the input that the first element comes from
  UNROLL
  for (int g = 0; g < kIm2winColumns; ++g) {
    const unsigned column = min(first + 32 * g + lane, columns - 1), cp = column / by.padded_width;
    const int j = column % by.padded_width, c = cp / by.out_height, p = cp % by.out_height;
    x[g] = 32 * g + lane < count ? border_index(j - l.pad_x, l.width, l.padding) : -1;
    from[g] = input + (n * l.channels + c) * input_plane(l) + max(x[g], 0);
    top[g] = p * l.stride_y - l.pad_y;
  }
  for (int r = 0; r < l.rows; r += kIm2winAtOnce) {
    float values[kIm2winColumns][kIm2winAtOnce];
    UNROLL
    for (int g = 0; g < kIm2winColumns; ++g) {
      UNROLL
      for (int i = 0; i < kIm2winAtOnce; ++i) {
        // Unsigned, since past the last row it may exceed an int.
        int y = static_cast<int>(top[g] + (r + i) * static_cast<unsigned>(l.dilation_y));
        bool inside = r + i < l.rows && x[g] >= 0;
        if (inside && (y < 0 || y >= l.height) && l.padding != Padding::zero) y = border_index(y, l.height, l.padding);
        inside = inside && y >= 0 && y < l.height;
        values[g][i] = inside ? from[g][static_cast<std::int64_t>(y) * l.width] : 0.0f;
      }
    }
    UNROLL
    for (int g = 0; g < kIm2winColumns; ++g) {
      UNROLL
      for (int i = 0; i < kIm2winAtOnce; ++i)
        if (r + i < l.rows && (Turned || 32 * g + lane < count)) piece[(32 * g + lane) * l.rows + r + i] = values[g][i];
    }
  }
  if (!Turned) return;
  __syncwarp();
  UNROLL_BY(4)
  for (int i = lane; i < count * l.rows; i += 32) out[i] = piece[i];
}

static inline void launch_im2win(const float* input, float* tensor, const Lowering& l, Stream stream) {
  const bool turned = l.rows <= kIm2winRows;
  const int columns = l.channels * l.out_height * padded_width(l), of_block = kIm2winThreads * kIm2winColumns;
  launch(turned ? im2win<true> : im2win<false>, grid_in_y(blocks_for(columns, of_block), l.batch), dim3(kIm2winThreads),
         turned ? of_block * l.rows * sizeof(float) : 0,
         stream)(input, tensor, l, Im2winDivisors{divisor_of(padded_width(l)), divisor_of(l.out_height)});
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

/// How many requests of a warp the transform reads from shared memory: 32 floats each but for the last of a warp.
static inline std::int64_t im2win_shared_loads(const Lowering& l) {
  if (l.rows > kIm2winRows) return 0;
  const int of_warp = 32 * kIm2winColumns, columns = l.channels * l.out_height * padded_width(l);
  const int rest = columns % of_warp * l.rows;
  return static_cast<std::int64_t>(l.batch) * (columns / of_warp * kIm2winColumns * l.rows + (rest + 31) / 32);
}

}  // namespace convladder
