/// @file
/// What the depthwise stages share: each channel of each image is a plane with a filter of its own.
#pragma once
#include "common/kernel/grid.hpp"
#include "common/kernel/tracks/axis.hpp"

namespace convladder {

/// A batch of images whose channels are convolved one by one: input and output are [batch][channels][height][width],
/// the filter is [channels][rows][columns]. Passed to kernels by value. Tap (r, s) of output (y, x) reads the input at
/// (y * stride_y - pad_y + r * dilation_y, x * stride_x - pad_x + s * dilation_x).
struct Depthwise {
  int batch, channels;
  int height, width;          ///< of an input plane
  int out_height, out_width;  ///< of an output plane
  int rows, columns;          ///< of a filter
  int pad_y, pad_x;
  int stride_y, stride_x;
  int dilation_y, dilation_x;
  Padding padding;
};

/// The most that h + 2 pad_h, w + 2 pad_w, a stride or a dilation may be: room for blocks and tiles past the end.
inline constexpr std::int64_t kMaxDepthwisePosition = INT32_MAX - 65536;

/// Accepts groups = c = k with filters of odd sides, any stride and any dilation.
Verdict check_depthwise(const ConvProblem& problem);
/// The same, for a kernel whose grid has `grid_y` blocks in y alone: `what` they are ("rows of outputs").
Verdict check_depthwise(const ConvProblem& problem, std::int64_t grid_y, const char* what);
/// The same, for a kernel whose threads have several rows and columns of outputs, which may reach past the plane by up
/// to `strides` strides.
Verdict check_depthwise_past_plane(const ConvProblem& problem, int strides);
/// The problem as the depthwise kernels take it.
Depthwise depthwise_of(const ConvProblem& problem);

/// Elements of one input plane.
__host__ __device__ __forceinline__ std::int64_t input_plane(const Depthwise& d) {
  return static_cast<std::int64_t>(d.height) * d.width;
}
/// Elements of one output plane.
__host__ __device__ __forceinline__ std::int64_t output_plane(const Depthwise& d) {
  return static_cast<std::int64_t>(d.out_height) * d.out_width;
}
/// Taps of one filter.
__host__ __device__ __forceinline__ std::int64_t filter_plane(const Depthwise& d) {
  return static_cast<std::int64_t>(d.rows) * d.columns;
}
/// Planes of the batch.
__host__ __device__ __forceinline__ int planes(const Depthwise& d) { return d.batch * d.channels; }

/// Rows of a plane, as a dimension of their own.
Axis vertical(const Depthwise& d);
/// Columns of a plane, likewise.
Axis horizontal(const Depthwise& d);

/// How many (output, tap) pairs read inside the input; outside, zero padding reads nothing.
std::int64_t reads_by_output(const Depthwise& d);
/// What a stage does whose threads read a pixel and a tap for each product, from global memory, and store each output
/// once.
Prediction predict_direct(const ConvProblem& problem);

}  // namespace convladder
