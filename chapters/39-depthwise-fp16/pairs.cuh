// The kernel of 39: a pair of channels for each thread.
//
// As in 15 it is compiled twice: by NVRTC for one problem and one strip, whose numbers are then constants; and with the
// program for any numbers, which is what runs in the simulator, and on a GPU where there is no NVRTC.
//
//   1. A thread has two channels that follow each other, and a strip of `rows` x `columns` outputs of one image.
//      Neighbouring threads have neighbouring pairs: of a pixel, a warp loads 64 channels, 128 bytes side by side.
//   2. Each row of input that the strip needs comes to registers, a half2 a pixel, and becomes two floats.
//   3. It is added to all rows of outputs that it serves, in fp32: a tap's half2 becomes two floats as well.
//   4. The sums are rounded once, to a half2 an output.
#pragma once
#include "common/kernel/half.hpp"
#include "common/kernel/tracks/strips.hpp"

namespace convladder {

// The outputs of a thread, each of two channels. When compiled by NVRTC, a type with the same names as static constants
// stands for it.
struct Strip {
  int rows, columns;
};

constexpr int kMostPairs = 32;  // outputs of a thread

// Pairs of channels, the last of which may have one.
template <class D>
__host__ __device__ __forceinline__ constexpr int pairs_of(const D& d) {
  return ceil_div(d.channels, 2);
}
// Threads that have something to do.
template <class D, class S>
__host__ __device__ __forceinline__ constexpr long long threads_in_all(const D& d, const S& s) {
  return static_cast<long long>(d.batch) * strips_down(d, s) * strips_across(d, s) * pairs_of(d);
}

// Array sizes and loop lengths that must be constants.
template <class D, class S>
struct StripSizes {
  static constexpr bool asks = asks_for_each(D{}, S{}, 1);
  static constexpr int outputs = S::rows * S::columns;
  static constexpr int window = asks ? 1 : static_cast<int>(window_of(D{}, S{}, 1));
  static constexpr int row_unrolling = unrolls(D{}, S{}, 1) ? kMostUnrolled : 1;
  static constexpr int column_unrolling = asks ? 1 : kMostUnrolled;
};
// Of a kernel for any problem: as much as any needs.
template <class D>
struct StripSizes<D, Strip> {
  static constexpr int outputs = kMostPairs, window = kMostWindow, row_unrolling = 1, column_unrolling = 1;
};

// The filter, once: as halves, [rows][columns][pairs], with zeros in the last pair where channels are odd.
template <class D>
__global__ void pair_taps(const float* filter, half2* taps, D d, long long count) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const long long of_filter = static_cast<long long>(d.rows) * d.columns, tap = i / pairs_of(d);
  const int c = static_cast<int>(i % pairs_of(d)) * 2;
  taps[i] =
      __floats2half2_rn(filter[c * of_filter + tap], c + 1 < d.channels ? filter[(c + 1) * of_filter + tap] : 0.0f);
}

// Two channels of a pixel. Where channels are odd, every other pixel's pairs are not at multiples of 4 bytes.
template <class D>
__device__ __forceinline__ float2 load_pair(const half* pixel, bool has_second, const D& d) {
  if (d.channels % 2 == 0) return __half22float2(*reinterpret_cast<const half2*>(pixel));
  return make_float2(__half2float(pixel[0]), has_second ? __half2float(pixel[1]) : 0.0f);
}

// 4.
template <class D>
__device__ __forceinline__ void store_pair(half* pixel, float2 sum, bool has_second, const D& d) {
  const half2 rounded = __floats2half2_rn(sum.x, sum.y);
  if (d.channels % 2 == 0) {
    *reinterpret_cast<half2*>(pixel) = rounded;
  } else {
    pixel[0] = __low2half(rounded);
    if (has_second) pixel[1] = __high2half(rounded);
  }
}

template <class D, class S>
__device__ __forceinline__ void convolve_pairs(const half* __restrict__ input,  // [batch][height][width][channels]
                                               const half2* __restrict__ taps,  // [rows][columns][pairs]
                                               half* __restrict__ output,  // [batch][out_height][out_width][channels]
                                               const D& d, const S& s) {
  using Sizes = StripSizes<D, S>;
  // 1.
  const long long id = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (id >= threads_in_all(d, s)) return;
  const int across = strips_across(d, s), down = strips_down(d, s), pair = static_cast<int>(id % pairs_of(d));
  const long long strip = id / pairs_of(d);
  const int q = static_cast<int>(strip % across) * s.columns, p = static_cast<int>(strip / across % down) * s.rows;
  const long long image = strip / across / down;
  const bool has_second = 2 * pair + 1 < d.channels, whole = across == 1;
  const half* const in = input + image * d.height * d.width * d.channels + 2 * pair;
  const int left = whole ? 0 : q * d.stride_x - d.pad_x;

  float2 sums[Sizes::outputs] = {}, window[Sizes::window];
  UNROLL_BY((Sizes::row_unrolling))
  for (int i = 0; i < steps_of(d, s); ++i) {
    const int y = source_at(p * d.stride_y - d.pad_y + step_below(i, d, s), d.height, d.pad_y, d.padding);
    if (y < 0) continue;
    const half* const row = in + static_cast<long long>(y) * d.width * d.channels;
    const auto pixel = [&](int x) { return load_pair(row + static_cast<long long>(x) * d.channels, has_second, d); };
    // 2.
    if (!asks_for_each(d, s, 1)) {
      UNROLL
      for (int j = 0; j < static_cast<int>(window_of(d, s, 1)); ++j) {
        const int x = whole ? j : source_at(left + j, d.width, d.pad_x, d.padding);
        window[j] = x >= 0 ? pixel(x) : make_float2(0.0f, 0.0f);
      }
    }
    // 3.
    UNROLL
    for (int v = 0; v < s.rows; ++v) {
      const int r = step_taps(i, v, d, s);
      if (r < 0 || r >= d.rows || p + v >= d.out_height) continue;
      UNROLL_BY((Sizes::column_unrolling))
      for (int c = 0; c < d.columns; ++c) {
        const float2 tap = __half22float2(taps[(static_cast<long long>(r) * d.columns + c) * pairs_of(d) + pair]);
        UNROLL
        for (int e = 0; e < s.columns; ++e) {
          if (whole && e >= d.out_width) continue;
          float2& sum = sums[v * s.columns + e];
          if (asks_for_each(d, s, 1)) {
            const int x = source_at((q + e) * d.stride_x - d.pad_x + c * d.dilation_x, d.width, d.pad_x, d.padding);
            if (x < 0 || q + e >= d.out_width) continue;
            const float2 value = pixel(x);
            sum.x += value.x * tap.x;
            sum.y += value.y * tap.y;
          } else if (const int j = in_window(e, c, d, s, 1); j >= 0) {
            sum.x += window[j].x * tap.x;
            sum.y += window[j].y * tap.y;
          }
        }
      }
    }
  }

  // 4.
  half* const out = output + image * d.out_height * d.out_width * d.channels + 2 * pair;
  UNROLL
  for (int v = 0; v < s.rows; ++v) {
    UNROLL
    for (int e = 0; e < s.columns; ++e) {
      if (p + v >= d.out_height || q + e >= d.out_width) continue;
      const long long at = (static_cast<long long>(p + v) * d.out_width + q + e) * d.channels;
      store_pair(out + at, sums[v * s.columns + e], has_second, d);
    }
  }
}

}  // namespace convladder
