/// @file
/// Threads that walk down a band of rows of outputs, with sums that move up: for depthwise kernels. Each row of input
/// is loaded once, and added to all rows of outputs that it serves.
#pragma once
#include "common/kernel/tracks/strips.hpp"

namespace convladder {

/// Rows of outputs that a row of input serves at most, of a filter of so many rows: those whose sums a thread holds.
__host__ __device__ __forceinline__ constexpr int served_rows(int rows, int stride) { return ceil_div(rows, stride); }

/// Rows of outputs of each band of a plane, of which there are as many as strips of `rows`, all equally high. Where
/// bands do not divide the plane the last one begins earlier, and computes some rows that the one before it does, too.
template <class D, class S>
__host__ __device__ __forceinline__ constexpr int band_rows(const D& d, const S& s) {
  return ceil_div(d.out_height, strips_down(d, s));
}
/// Rows of input that a band needs.
template <class D, class S>
__host__ __device__ __forceinline__ constexpr int band_span(const D& d, const S& s) {
  return (band_rows(d, s) - 1) * d.stride_y + d.rows;
}
/// The first row of outputs of a band.
template <class D, class S>
__host__ __device__ __forceinline__ constexpr int band_top(int band, const D& d, const S& s) {
  return smaller(band * band_rows(d, s), d.out_height - band_rows(d, s));
}

/// Goes through the rows of input that a band of `high` rows of outputs needs, without dilation and with a stride of
/// `rows` at most. Rows are numbered from the band's first one on; row i lies in slot i % (ahead + 1) from its load on,
/// `ahead` rows before it is added, until the next one is loaded there. All numbers of slots, and of the rows that are
/// served, are constants where the arguments are and loops are unrolled.
/// @tparam kUnrolling of loops whose length is known then
/// @param load `load(i, slot)`
/// @param move_up `move_up()`: each sum becomes that of the row below, the last one zero
/// @param add `add(i, slot, tap, first, last)`: adds row i to sums `first` to `last`, through row tap - k stride of the
/// filter to sum k
/// @param store `store(t)`: row t of the band's outputs is complete, in sum 0
template <int kUnrolling, class Load, class MoveUp, class Add, class Store>
__device__ __forceinline__ void walk_down(int high, int rows, int stride, int ahead, const Load& load,
                                          const MoveUp& move_up, const Add& add, const Store& store) {
  const int served = served_rows(rows, stride), slots = ahead + 1;
  // Row t of outputs gets the last `stride` rows that it needs, which are the first that row t + served - 1 needs.
  // Slots begin with that of row `slot`.
  const auto step = [&](int t, int slot, int first, int last) {
    move_up();
    UNROLL_BY(kUnrolling)
    for (int j = 0; j < stride; ++j) {
      const int tap = rows - stride + j, i = t * stride + tap;
      if (i < 0) continue;
      load(i + ahead, (slot + j + ahead) % slots);
      add(i, (slot + j) % slots, tap, first, last);
    }
    if (t >= 0) store(t);
  };
  const auto slot_of = [&](int t) { return (t * stride + rows - stride + served * stride * slots) % slots; };
  UNROLL_BY(kUnrolling)
  for (int i = 0; i < ahead; ++i) load(i, i);
  UNROLL_BY(kUnrolling)
  for (int t = 1 - served; t < 0; ++t) step(t, slot_of(t), -t, served - 1);
  int t = 0;
  UNROLL_BY(1)
  for (; t + slots + served - 1 <= high; t += slots) {
    UNROLL_BY(kUnrolling)
    for (int more = 0; more < slots; ++more) step(t + more, slot_of(more), 0, served - 1);
  }
  UNROLL_BY(kUnrolling)
  for (int more = 0; more < slots - 1; ++more)
    if (t + more + served - 1 < high) step(t + more, slot_of(more), 0, served - 1);
  UNROLL_BY(kUnrolling)
  for (int below = served - 2; below >= 0; --below)
    if (high - 1 - below >= 0) step(high - 1 - below, slot_of(high - 1 - below), 0, below);
}

}  // namespace convladder
