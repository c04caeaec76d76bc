/// @file
/// Strips of outputs that threads of depthwise kernels have, and the rows and windows of input that these need. D is
/// Depthwise, S has the members `rows` and `columns`, the outputs of a strip; or they are types with the same names as
/// static constants, as a kernel has them that is compiled when the program runs.
#pragma once
#include "common/kernel/border.hpp"

namespace convladder {

inline constexpr int kMostWindow = 96;      ///< pixels of a row that a thread holds
inline constexpr int kMostUnrolled = 4096;  ///< products of a thread in straight-line code: more compile for long

/// a / b, rounded up.
__host__ __device__ __forceinline__ constexpr int ceil_div(int a, int b) { return a / b + (a % b != 0); }
/// The smaller of two numbers.
__host__ __device__ __forceinline__ constexpr int smaller(int a, int b) { return a < b ? a : b; }
/// The next multiple of b.
__host__ __device__ __forceinline__ constexpr long long round_up(long long a, int b) { return (a + b - 1) / b * b; }

/// Strips of a plane, one below the other.
template <class D, class S>
__host__ __device__ __forceinline__ constexpr int strips_down(const D& d, const S& s) {
  return ceil_div(d.out_height, s.rows);
}
/// Strips of a plane, side by side.
template <class D, class S>
__host__ __device__ __forceinline__ constexpr int strips_across(const D& d, const S& s) {
  return ceil_div(d.out_width, s.columns);
}

/// Rows of input that a strip needs, from its first to its last.
template <class D, class S>
__host__ __device__ __forceinline__ constexpr long long span_down(const D& d, const S& s) {
  return static_cast<long long>(s.rows - 1) * d.stride_y + static_cast<long long>(d.rows - 1) * d.dilation_y + 1;
}
/// Whether a thread goes through pairs of a row of outputs and a row of taps, since the rows of input are far apart.
template <class D, class S>
__host__ __device__ __forceinline__ constexpr bool by_pairs(const D& d, const S& s) {
  return d.dilation_y != 1 || span_down(d, s) > static_cast<long long>(d.rows) * s.rows;
}
/// Rows of input that a thread goes through.
template <class D, class S>
__host__ __device__ __forceinline__ constexpr int steps_of(const D& d, const S& s) {
  return static_cast<int>(by_pairs(d, s) ? static_cast<long long>(d.rows) * s.rows : span_down(d, s));
}
/// How many rows below the strip's first one the row of step i is.
template <class D, class S>
__host__ __device__ __forceinline__ constexpr int step_below(int i, const D& d, const S& s) {
  return by_pairs(d, s) ? i % s.rows * d.stride_y + i / s.rows * d.dilation_y : i;
}
/// The row of taps through which step i serves row v of the strip; none outside of [0, d.rows).
template <class D, class S>
__host__ __device__ __forceinline__ constexpr int step_taps(int i, int v, const D& d, const S& s) {
  return !by_pairs(d, s) ? i - v * d.stride_y : i % s.rows == v ? i / s.rows : -1;
}

/// Columns that a window is begun further left than its first tap, so that it can be read by vectors.
template <class D>
__host__ __device__ __forceinline__ constexpr int lead(const D& d, int vector) {
  return static_cast<int>(round_up(d.pad_x, vector) - d.pad_x);
}
/// Pixels of a row that a thread holds: the whole row, where its strip is as wide as the plane.
template <class D, class S>
__host__ __device__ __forceinline__ constexpr long long window_of(const D& d, const S& s, int vector) {
  return strips_across(d, s) == 1 ? d.width
                                  : round_up(lead(d, vector) + static_cast<long long>(s.columns - 1) * d.stride_x +
                                                 static_cast<long long>(d.columns - 1) * d.dilation_x + 1,
                                             vector);
}
/// Whether it holds none, as they are too many, and each product asks for its pixel.
template <class D, class S>
__host__ __device__ __forceinline__ constexpr bool asks_for_each(const D& d, const S& s, int vector) {
  return window_of(d, s, vector) > kMostWindow ||
         static_cast<long long>(d.columns) * s.rows * s.columns > kMostUnrolled;
}
/// Whether all products of a thread are straight-line code, where sizes are constants.
template <class D, class S>
__host__ __device__ __forceinline__ constexpr bool unrolls(const D& d, const S& s, int vector) {
  return !asks_for_each(d, s, vector) &&
         static_cast<long long>(d.rows) * d.columns * s.rows * s.columns <= kMostUnrolled;
}
/// Where tap c of output e of a row finds its pixel in the window, or -1 where the plane's border gives zero.
template <class D, class S>
__device__ __forceinline__ int in_window(int e, int c, const D& d, const S& s, int vector) {
  const int at = e * d.stride_x + c * d.dilation_x;
  return strips_across(d, s) == 1 ? border_index(at - d.pad_x, d.width, d.padding) : lead(d, vector) + at;
}

/// The row or column of input that a position of the padded plane reads, or -1: outside of zeros, and past the padding,
/// where no output looks.
__device__ __forceinline__ int source_at(int at, int size, int pad, Padding padding) {
  return at >= -pad && at < size + pad ? border_index(at, size, padding) : -1;
}

}  // namespace convladder
