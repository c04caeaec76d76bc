/// @file
/// What the stages share that lower a convolution with many channels to a matrix multiplication, and its two
/// rearrangements of the input.
#pragma once
#include "common/kernel/grid.hpp"
#include "common/kernel/tracks/axis.hpp"

namespace convladder {

/// A batch of images that is convolved with `filters` filters over all channels: input
/// [batch][channels][height][width], filter [filters][channels][rows][columns], output
/// [batch][filters][out_height][out_width]. Passed to kernels by value. Tap (c, r, s) of output (p, q) reads the input
/// at (c, p * stride_y - pad_y + r * dilation_y, q * stride_x - pad_x + s * dilation_x).
struct Lowering {
  int batch, channels;
  int height, width;          ///< of an input plane
  int filters;                ///< output channels
  int out_height, out_width;  ///< of an output plane
  int rows, columns;          ///< of a filter
  int pad_y, pad_x;
  int stride_y, stride_x;
  int dilation_y, dilation_x;
  Padding padding;
};

/// Accepts groups = 1 with any filter, stride, dilation and padding, as long as what the kernels index with 32 bits
/// fits: positions, the planes of the batch, and one image's matrix in either rearrangement.
Verdict check_lowering(const ConvProblem& problem);
/// Accepts groups = 1 with any filter, stride, dilation and padding, for kernels that gather their windows from the
/// input itself: as long as positions, tensors and the filters fit, whose elements the kernels index with 32 bits.
/// @param channels, filters what they are rounded up to multiples of when the filters are packed
Verdict check_implicit_gemm(const ConvProblem& problem, int channels, int filters);
/// Accepts of these problems those with zero padding, a filter of up to kMostTaps taps, and strides of 1 and 2.
Verdict check_implicit_gemm_hopper(const ConvProblem& problem, int channels, int filters);
/// Accepts of these problems those that are a plain product: a 1 x 1 filter with stride 1 and no padding, channels and
/// filters in whole multiples of `unit`.
Verdict check_pointwise(const ConvProblem& problem, int unit);
/// The problem as these kernels take it.
Lowering lowering_of(const ConvProblem& problem);

/// Elements of one input plane.
__host__ __device__ __forceinline__ std::int64_t input_plane(const Lowering& l) {
  return static_cast<std::int64_t>(l.height) * l.width;
}
/// Outputs of one image and filter: columns of an image's im2col matrix.
__host__ __device__ __forceinline__ int output_plane(const Lowering& l) { return l.out_height * l.out_width; }
/// Taps of one channel: elements of a window.
__host__ __device__ __forceinline__ int window(const Lowering& l) { return l.rows * l.columns; }
/// Products that are summed for one output: rows of an image's im2col matrix.
__host__ __device__ __forceinline__ int depth(const Lowering& l) { return l.channels * window(l); }
/// Columns of the padded input.
__host__ __device__ __forceinline__ int padded_width(const Lowering& l) { return l.width + 2 * l.pad_x; }
/// Elements of an im2win row: those that the windows of one row of outputs share, `rows` for each padded column.
__host__ __device__ __forceinline__ int im2win_row(const Lowering& l) { return padded_width(l) * l.rows; }
/// Elements of the im2win tensor's plane of one channel of one image.
__host__ __device__ __forceinline__ int im2win_plane(const Lowering& l) { return l.out_height * im2win_row(l); }

/// Floats of the im2col matrices of the whole batch: n c r s p q.
std::int64_t im2col_size(const ConvProblem& problem);
/// Floats of the im2win tensor of the whole batch: n c p r (w + 2 pad_w).
std::int64_t im2win_size(const ConvProblem& problem);

/// How many filters a tile of a matrix multiplication takes, of 128, 96 and 64: those that leave the fewest rows of the
/// last tile empty; of two that do, the more.
int tile_filters(int filters);

/// Rows of an input plane, as a dimension of their own.
Axis vertical(const Lowering& l);
/// Columns of a plane, likewise.
Axis horizontal(const Lowering& l);

}  // namespace convladder
