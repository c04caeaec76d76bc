// The second kernel of 38, for planes that are too wide for a strip: a thread walks down some columns of a plane.
//
// As planes.cuh it is compiled twice: by NVRTC for one problem and one plan, and with the program for any.
//
//   1. A thread has `columns` columns of outputs of a band of rows of one plane, and all taps of the plane's filter in
//      registers. Nothing is shared, so that no thread waits for another.
//   2. Rows of input come one after the other, the part of each that the columns need, `ahead` rows before it is added.
//   3. A row of input is added to all rows of outputs that it serves: to as many as the filter has rows. The sum of the
//      uppermost is then complete, and all others move up by one. That costs no instruction: the first multiply-add of
//      each reads its old register and writes that of the one above.
//   4. The complete row of outputs is stored.
//   5. The first rows of a band serve only outputs from its first one on, and its last ones only those up to its last.
//      walk.hpp has this order.
#pragma once
#include "chapters/38-depthwise-planes/planes.cuh"
#include "common/kernel/tracks/walk.hpp"

namespace convladder {

constexpr int kColumnThreads = 128;  // of a block
constexpr int kMostAhead = 2;        // rows that are on their way

// What a thread holds at most: taps in whole vectors, and of sums and of a row of input.
constexpr int kMostTaps = 84, kMostTapRows = 16, kMostColumns = 8, kMostPixels = 24;

// Threads for a band of all planes.
template <class D, class S>
__host__ __device__ __forceinline__ constexpr long long threads_of_band(const D& d, const S& s) {
  return static_cast<long long>(d.batch) * d.channels * strips_across(d, s);
}

// Array sizes and loop lengths that must be constants.
template <class D, class S>
struct ColumnSizes {
  static constexpr int columns = S::columns, rows = served_rows(D::rows, D::stride_y), ring = S::ahead + 1,
                       unrolling = kMostUnrolled;
  static constexpr int taps = static_cast<int>(taps_pitch(D{}));
  static constexpr int window = static_cast<int>(window_of(D{}, S{}, vector_of(D::width)));
};
// Of a kernel for any problem: as much as any needs.
template <class D>
struct ColumnSizes<D, Plan> {
  static constexpr int columns = kMostColumns, rows = kMostTapRows, ring = kMostAhead + 1, unrolling = 1;
  static constexpr int taps = kMostTaps, window = kMostPixels;
};

template <class D, class S>
using Window = float[ColumnSizes<D, S>::window];
template <class D, class S>
using Row = float[ColumnSizes<D, S>::columns];

// 2. The part of a row from column `left` on. What is outside of the plane stays as it is: zero.
template <class D, class S>
__device__ __forceinline__ void load_part(Window<D, S>& window, const float* row, int left, const D& d, const S& s) {
  const bool whole = strips_across(d, s) == 1;
  const int vector = d.padding == Padding::zero || whole ? vector_of(d.width) : 1;
  UNROLL_BY((ColumnSizes<D, S>::unrolling))
  for (int i = 0; i < static_cast<int>(window_of(d, s, vector_of(d.width))); i += vector) {
    const int x = whole ? i : vector > 1 ? left + i : source_at(left + i, d.width, d.pad_x, d.padding);
    if (x < 0 || x >= d.width) continue;
    if (vector == 4)
      get<4>(window + i, row + x);
    else if (vector == 2)
      get<2>(window + i, row + x);
    else
      window[i] = row[x];
  }
}

// 3. A row of input to the sums of rows `first` to `last`: through row tap - k stride of the taps to those of row k.
template <class D, class S>
__device__ __forceinline__ void add_row(Row<D, S> (&sums)[ColumnSizes<D, S>::rows], const Window<D, S>& window,
                                        const float (&taps)[ColumnSizes<D, S>::taps], int tap, int first, int last,
                                        const D& d, const S& s) {
  UNROLL_BY((ColumnSizes<D, S>::unrolling))
  for (int k = 0; k < served_rows(d.rows, d.stride_y); ++k) {
    const int r = tap - k * d.stride_y;
    if (k < first || k > last || r < 0) continue;
    UNROLL_BY((ColumnSizes<D, S>::unrolling))
    for (int c = 0; c < d.columns; ++c) {
      UNROLL
      for (int e = 0; e < s.columns; ++e) {
        if (strips_across(d, s) == 1 && e >= d.out_width) continue;
        const int i = in_window(e, c, d, s, vector_of(d.width));
        if (i >= 0) sums[k][e] += window[i] * taps[r * d.columns + c];
      }
    }
  }
}

// 4. A row of outputs, from column q on. Of plain stores of a vector the compiler makes one for each of its floats.
template <class D, class S>
__device__ __forceinline__ void store_row(float* row, const Row<D, S>& sums, int q, const D& d, const S& s) {
  const int vector = vector_of(d.out_width);
  UNROLL
  for (int e = 0; e < s.columns; e += vector) {
    if (q + e >= d.out_width) continue;
    if (vector == 4)
      __stcg(reinterpret_cast<float4*>(row + q + e), make_float4(sums[e], sums[e + 1], sums[e + 2], sums[e + 3]));
    else if (vector == 2)
      __stcg(reinterpret_cast<float2*>(row + q + e), make_float2(sums[e], sums[e + 1]));
    else
      row[q + e] = sums[e];
  }
}

template <class D, class S>
__device__ __forceinline__ void convolve_columns(const float* __restrict__ input,   // [planes][height][width]
                                                 const float* __restrict__ filter,  // [channels][taps_pitch]
                                                 float* __restrict__ output,        // [planes][out_height][out_width]
                                                 const D& d, const S& s) {
  using Sizes = ColumnSizes<D, S>;
  // 1.
  const unsigned id = blockIdx.x * kColumnThreads + threadIdx.x, across = strips_across(d, s);
  if (id >= threads_of_band(d, s)) return;
  const int plane = static_cast<int>(id / across), q = static_cast<int>(id % across) * s.columns;
  const int top = band_top(static_cast<int>(blockIdx.y), d, s), first_y = top * d.stride_y - d.pad_y;
  const int left = strips_across(d, s) == 1 ? 0 : q * d.stride_x - d.pad_x - lead(d, vector_of(d.width));
  const float* const in = input + static_cast<long long>(plane) * d.height * d.width;
  const float* const first_row = in + static_cast<long long>(first_y) * d.width;
  float* const out = output + (static_cast<long long>(plane) * d.out_height + top) * d.out_width;
  float taps[Sizes::taps];
  Window<D, S> ring[Sizes::ring] = {};
  Row<D, S> sums[Sizes::rows] = {};
  UNROLL_BY((Sizes::unrolling))
  for (int k = 0; k < d.rows * d.columns; k += kPiece)
    get<4>(taps + k, filter + plane % d.channels * taps_pitch(d) + k);

  const auto exists = [&](int i) {
    return d.padding != Padding::zero || static_cast<unsigned>(first_y + i) < static_cast<unsigned>(d.height);
  };
  // 2.
  const auto load = [&](int i, int slot) {
    if (i >= band_span(d, s) || !exists(i)) return;
    const float* const row =
        d.padding == Padding::zero
            ? first_row + static_cast<long long>(i) * d.width
            : in + static_cast<long long>(border_index(first_y + i, d.height, d.padding)) * d.width;
    load_part(ring[slot], row, left, d, s);
  };
  // 3.
  const auto move_up = [&] {
    UNROLL_BY((Sizes::unrolling))
    for (int k = 0; k < served_rows(d.rows, d.stride_y); ++k) {
      UNROLL
      for (int e = 0; e < s.columns; ++e) sums[k][e] = k + 1 < served_rows(d.rows, d.stride_y) ? sums[k + 1][e] : 0.0f;
    }
  };
  const auto add = [&](int i, int slot, int tap, int first, int last) {
    // A row that serves as many rows of outputs as any row does is in the plane, unless the padding is unusually large.
    const bool inner = last - first + 1 == served_rows(d.rows, d.stride_y) && d.pad_y <= d.rows - d.stride_y;
    if (inner || exists(i)) add_row(sums, ring[slot], taps, tap, first, last, d, s);
  };
  // 4. Bands that do not divide the plane: the last one leaves out what the one before it stores.
  const auto store = [&](int t) {
    if (d.out_height % band_rows(d, s) == 0 || top + t >= static_cast<int>(blockIdx.y) * band_rows(d, s))
      store_row(out + static_cast<long long>(t) * d.out_width, sums[0], q, d, s);
  };
  // 5.
  walk_down<Sizes::unrolling>(band_rows(d, s), d.rows, d.stride_y, s.ahead, load, move_up, add, store);
}

}  // namespace convladder
