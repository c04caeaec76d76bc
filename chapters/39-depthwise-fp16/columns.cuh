// The other kernel of 39: a thread walks down some columns of an image, as threads of 38 do where planes are wide.
//
//   1. A thread has a pair of channels, `columns` columns of outputs of a band of rows, and all taps of the pair in
//      registers.
//   2. Rows of input come one after the other, a half2 a pixel, `ahead` rows before they are added.
//   3. A row of input becomes floats once, and is added to all rows of outputs that it serves; the sums of the rows of
//      outputs move up as the rows of input pass.
//   4. A complete row of outputs is rounded, to a half2 each, and stored.
#pragma once
#include "chapters/39-depthwise-fp16/pairs.cuh"
#include "common/kernel/tracks/walk.hpp"

namespace convladder {

constexpr int kMostAhead = 2;  // rows that are on their way
// What a thread holds at most: taps, rows and columns of sums, and pixels of a row, each of two channels.
constexpr int kMostTaps = 49, kMostTapRows = 16, kMostColumns = 8, kMostPixels = 24;

// Threads for a band of all images.
template <class D, class S>
__host__ __device__ __forceinline__ constexpr long long threads_of_band(const D& d, const S& s) {
  return static_cast<long long>(d.batch) * strips_across(d, s) * pairs_of(d);
}

// Array sizes and loop lengths that must be constants.
template <class D, class S>
struct ColumnSizes {
  static constexpr int columns = S::columns, rows = served_rows(D::rows, D::stride_y), ring = S::ahead + 1;
  static constexpr int taps = D::rows * D::columns, window = static_cast<int>(window_of(D{}, S{}, 1));
  static constexpr int unrolling = kMostUnrolled;
};
// Of a kernel for any problem: as much as any needs.
template <class D>
struct ColumnSizes<D, Strip> {
  static constexpr int columns = kMostColumns, rows = kMostTapRows, ring = kMostAhead + 1, taps = kMostTaps;
  static constexpr int window = kMostPixels, unrolling = 1;
};

// 3. A row of input to the sums of rows `first` to `last`: through row tap - k stride of the taps to those of row k.
template <class D, class S>
__device__ __forceinline__ void add_row(float2 (&sums)[ColumnSizes<D, S>::rows][ColumnSizes<D, S>::columns],
                                        const half2 (&pixels)[ColumnSizes<D, S>::window],
                                        const float2 (&taps)[ColumnSizes<D, S>::taps], int tap, int first, int last,
                                        const D& d, const S& s) {
  using Sizes = ColumnSizes<D, S>;
  float2 window[Sizes::window];
  UNROLL_BY((Sizes::unrolling))
  for (int j = 0; j < static_cast<int>(window_of(d, s, 1)); ++j) window[j] = __half22float2(pixels[j]);
  UNROLL_BY((Sizes::unrolling))
  for (int k = 0; k < served_rows(d.rows, d.stride_y); ++k) {
    const int r = tap - k * d.stride_y;
    if (k < first || k > last || r < 0) continue;
    UNROLL_BY((Sizes::unrolling))
    for (int c = 0; c < d.columns; ++c) {
      UNROLL_BY((Sizes::unrolling))
      for (int e = 0; e < s.columns; ++e) {
        if (strips_across(d, s) == 1 && e >= d.out_width) continue;
        if (const int j = in_window(e, c, d, s, 1); j >= 0)
          multiply_add(sums[k][e], window[j], taps[r * d.columns + c]);
      }
    }
  }
}

template <class D, class S>
__device__ __forceinline__ void convolve_columns(const half* __restrict__ input, const half2* __restrict__ filter,
                                                 half* __restrict__ output, const D& d, const S& s) {
  using Sizes = ColumnSizes<D, S>;
  // 1.
  const long long id = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (id >= threads_of_band(d, s)) return;
  const int pair = static_cast<int>(id % pairs_of(d)), across = strips_across(d, s);
  const int q = static_cast<int>(id / pairs_of(d) % across) * s.columns, band = static_cast<int>(blockIdx.y);
  const long long image = id / pairs_of(d) / across;
  const int top = band_top(band, d, s), first_y = top * d.stride_y - d.pad_y;
  const int left = across == 1 ? 0 : q * d.stride_x - d.pad_x;
  const bool whole = across == 1, has_second = 2 * pair + 1 < d.channels;
  const half* const in = input + image * d.height * d.width * d.channels + 2 * pair;
  half* const out = output + ((image * d.out_height + top) * d.out_width + q) * d.channels + 2 * pair;
  float2 taps[Sizes::taps], sums[Sizes::rows][Sizes::columns] = {};
  half2 ring[Sizes::ring][Sizes::window] = {};
  UNROLL_BY((Sizes::unrolling))
  for (int k = 0; k < d.rows * d.columns; ++k)
    taps[k] = __half22float2(filter[static_cast<long long>(k) * pairs_of(d) + pair]);

  const auto exists = [&](int i) {
    return d.padding != Padding::zero || static_cast<unsigned>(first_y + i) < static_cast<unsigned>(d.height);
  };
  // 2. Pixels outside of the plane stay as they are: zero. Only windows at the plane's edges have any.
  const half* const first_pixel = in + (static_cast<long long>(first_y) * d.width + left) * d.channels;
  const int last_left = whole ? 0 : (across - 1) * s.columns * d.stride_x - d.pad_x;
  const auto load = [&](int i, int slot) {
    if (i >= band_span(d, s) || !exists(i)) return;
    UNROLL_BY((Sizes::unrolling))
    for (int j = 0; j < static_cast<int>(window_of(d, s, 1)); ++j) {
      if (d.padding == Padding::zero) {
        const bool after = whole || j >= d.pad_x || left + j >= 0,
                   before = last_left + j < d.width || left + j < d.width;
        const half* const pixel = first_pixel + (static_cast<long long>(i) * d.width + j) * d.channels;
        if (after && before) ring[slot][j] = load_pair(pixel, has_second, d);
      } else if (const int x = whole ? j : source_at(left + j, d.width, d.pad_x, d.padding); x >= 0) {
        const int y = border_index(first_y + i, d.height, d.padding);
        ring[slot][j] = load_pair(in + (static_cast<long long>(y) * d.width + x) * d.channels, has_second, d);
      }
    }
  };
  // 3.
  const auto move_up = [&] {
    UNROLL_BY((Sizes::unrolling))
    for (int k = 0; k < served_rows(d.rows, d.stride_y); ++k) {
      UNROLL_BY((Sizes::unrolling))
      for (int e = 0; e < s.columns; ++e)
        sums[k][e] = k + 1 < served_rows(d.rows, d.stride_y) ? sums[k + 1][e] : make_float2(0.0f, 0.0f);
    }
  };
  const auto add = [&](int i, int slot, int tap, int first, int last) {
    // A row that serves as many rows of outputs as any row does is in the plane, unless the padding is unusually large.
    const bool inner = last - first + 1 == served_rows(d.rows, d.stride_y) && d.pad_y <= d.rows - d.stride_y;
    if (inner || exists(i)) add_row(sums, ring[slot], taps, tap, first, last, d, s);
  };
  // 4. Bands that do not divide the plane: the last one leaves out what the one before it stores.
  const auto store = [&](int t) {
    if (d.out_height % band_rows(d, s) != 0 && top + t < band * band_rows(d, s)) return;
    UNROLL_BY((Sizes::unrolling))
    for (int e = 0; e < s.columns; ++e) {
      if (d.out_width % s.columns != 0 && q + e >= d.out_width) continue;
      store_pair(out + (static_cast<long long>(t) * d.out_width + e) * d.channels, sums[0][e], has_second, d);
    }
  };
  walk_down<Sizes::unrolling>(band_rows(d, s), d.rows, d.stride_y, s.ahead, load, move_up, add, store);
}

}  // namespace convladder
