// The kernel of 39: a pair of channels for each thread.
//
// As in 15 it is compiled twice: by NVRTC for one problem and one strip, whose numbers are then constants; and with the
// program for any numbers, which is what runs in the simulator, and on a GPU where there is no NVRTC.
//
//   1. A thread has two channels that follow each other, and a strip of `rows` x `columns` outputs of one image.
//      Neighbouring threads have neighbouring pairs, so that their loads lie side by side.
//   2. Each row of input that the strip needs comes to registers, a half2 a pixel. All of a row's loads are on their
//      way before the first is used, and the next row's are, while this one is added.
//   3. Two floats of a half2. They are added to all rows of outputs that they serve, in fp32.
//   4. The sums are rounded once, to a half2 an output.
//
// With `staged` pairs a block has `down` x `across` strips of so many pairs, and instead of 2.:
//
//   2. It brings all pixels of its strips to shared memory, by cp.async, zeros of the padding too; and its taps, as
//      floats. A thread then looks at no border.
#pragma once
#include "common/kernel/half.hpp"
#include "common/kernel/tracks/strips.hpp"

namespace convladder {

// The outputs of a thread, each of two channels, and what a block stages. When compiled by NVRTC, a type with the same
// names as static constants stands for it.
struct Strip {
  int rows, columns;
  int staged = 0;            // pairs of channels of a block, a multiple of four; 0: nothing is staged
  int down = 1, across = 1;  // strips of a block that stages
  int ahead = 0;             // not 0: none of this, but columns.cuh
};

constexpr int kMostPairs = 32;    // outputs of a thread
constexpr int kMostRolled = 512;  // products of a thread in straight-line code: more come row by row

// Pairs of channels, the last of which may have one.
template <class D>
__host__ __device__ __forceinline__ constexpr int pairs_of(const D& d) {
  return ceil_div(d.channels, 2);
}
// Threads that have something to do, where nothing is staged.
template <class D, class S>
__host__ __device__ __forceinline__ constexpr long long threads_in_all(const D& d, const S& s) {
  return static_cast<long long>(d.batch) * strips_down(d, s) * strips_across(d, s) * pairs_of(d);
}
// Threads of a block that stages, and such blocks.
template <class S>
__host__ __device__ __forceinline__ constexpr int staging_threads(const S& s) {
  return s.staged * s.down * s.across;
}
template <class D, class S>
__host__ __device__ __forceinline__ constexpr long long staging_blocks(const D& d, const S& s) {
  return static_cast<long long>(d.batch) * ceil_div(strips_down(d, s), s.down) *
         ceil_div(strips_across(d, s), s.across) * ceil_div(pairs_of(d), s.staged);
}
// Rows and columns of pixels that a block stages: whole rows, where one strip is as wide as the plane.
template <class D, class S>
__host__ __device__ __forceinline__ constexpr long long staged_rows(const D& d, const S& s) {
  return (static_cast<long long>(s.down) * s.rows - 1) * d.stride_y +
         static_cast<long long>(d.rows - 1) * d.dilation_y + 1;
}
template <class D, class S>
__host__ __device__ __forceinline__ constexpr long long staged_columns(const D& d, const S& s) {
  return strips_across(d, s) == 1 ? d.width
                                  : (static_cast<long long>(s.across) * s.columns - 1) * d.stride_x +
                                        static_cast<long long>(d.columns - 1) * d.dilation_x + 1;
}
template <class D, class S>
__host__ __device__ __forceinline__ constexpr long long staged_bytes(const D& d, const S& s) {
  return s.staged * (staged_rows(d, s) * staged_columns(d, s) * 4 + static_cast<long long>(d.rows) * d.columns * 8);
}
// Channels of a copy: the most, of up to 16 bytes, that divide a pixel's.
template <class D>
__host__ __device__ __forceinline__ constexpr int channels_of_copy(const D& d) {
  return d.channels % 8 == 0 ? 8 : d.channels % 4 == 0 ? 4 : d.channels % 2 == 0 ? 2 : 1;
}

// Array sizes and loop lengths that must be constants.
template <class D, class S>
struct StripSizes {
  static constexpr bool asks = asks_for_each(D{}, S{}, 1);
  static constexpr int outputs = S::rows * S::columns;
  static constexpr int window = asks ? 1 : static_cast<int>(window_of(D{}, S{}, 1));
  static constexpr bool unrolled = !asks && static_cast<long long>(D::rows) * D::columns * outputs <= kMostRolled;
  static constexpr int row_unrolling = unrolled ? kMostUnrolled : 1;
  static constexpr int column_unrolling = asks ? 1 : kMostUnrolled;
  static constexpr int unrolling = kMostUnrolled, copies_unrolling = 4;
  static constexpr bool alone = S::staged == 0, stages = !alone;
};
// Of a kernel for any problem: as much as any needs.
template <class D>
struct StripSizes<D, Strip> {
  static constexpr int outputs = kMostPairs, window = kMostWindow;
  static constexpr int row_unrolling = 1, column_unrolling = 1, unrolling = 1, copies_unrolling = 1;
  static constexpr bool alone = true, stages = true;
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
__device__ __forceinline__ half2 load_pair(const half* pixel, bool has_second, const D& d) {
  if (d.channels % 2 == 0) return *reinterpret_cast<const half2*>(pixel);
  return __halves2half2(pixel[0], has_second ? pixel[1] : __float2half(0.0f));
}

__device__ __forceinline__ void multiply_add(float2& sum, float2 a, float2 b) {
  sum.x += a.x * b.x;
  sum.y += a.y * b.y;
}

// 3. The row of step i, in `window`, to all rows of the strip that it serves, of which `exist` are outputs.
template <class D, class S, class Taps>
__device__ __forceinline__ void add(float2 (&sums)[StripSizes<D, S>::outputs],
                                    const float2 (&window)[StripSizes<D, S>::window], int i, int exist,
                                    const Taps& tap_at, const D& d, const S& s) {
  UNROLL_BY((StripSizes<D, S>::unrolling))
  for (int v = 0; v < s.rows; ++v) {
    const int r = step_taps(i, v, d, s);
    if (r < 0 || r >= d.rows || v >= exist) continue;
    UNROLL_BY((StripSizes<D, S>::column_unrolling))
    for (int c = 0; c < d.columns; ++c) {
      const float2 tap = tap_at(r * d.columns + c);
      UNROLL_BY((StripSizes<D, S>::unrolling))
      for (int e = 0; e < s.columns; ++e) {
        if (strips_across(d, s) == 1 && e >= d.out_width) continue;
        if (const int j = in_window(e, c, d, s, 1); j >= 0) multiply_add(sums[v * s.columns + e], window[j], tap);
      }
    }
  }
}

// Where a thread's outputs are.
struct Place {
  long long image;
  int pair, p, q;
};

// Rows of the strip that are outputs. Where strips divide the plane, no row need be looked at.
template <class D, class S>
__device__ __forceinline__ int rows_that_exist(const Place& at, const D& d, const S& s) {
  return d.out_height % s.rows == 0 ? s.rows : smaller(s.rows, d.out_height - at.p);
}

// Two channels of a pixel.
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

// 4.
template <class D, class S>
__device__ __forceinline__ void store(half* output, const float2 (&sums)[StripSizes<D, S>::outputs], const Place& at,
                                      const D& d, const S& s) {
  const bool has_second = 2 * at.pair + 1 < d.channels;
  half* const out = output + ((at.image * d.out_height + at.p) * d.out_width + at.q) * d.channels + 2 * at.pair;
  UNROLL_BY((StripSizes<D, S>::unrolling))
  for (int v = 0; v < s.rows; ++v) {
    if (v >= rows_that_exist(at, d, s)) continue;
    UNROLL_BY((StripSizes<D, S>::unrolling))
    for (int e = 0; e < s.columns; ++e) {
      if (d.out_width % s.columns != 0 && at.q + e >= d.out_width) continue;
      half* const pixel = out + (static_cast<long long>(v) * d.out_width + e) * d.channels;
      store_pair(pixel, sums[v * s.columns + e], has_second, d);
    }
  }
}

// ---- Nothing is staged ----------------------------------------------------------------------------------------------

// The products of a row of input whose window is too large for registers: each asks for its pixel.
template <class D, class S, class Pixel, class Taps>
__device__ __forceinline__ void add_each(float2 (&sums)[StripSizes<D, S>::outputs], int i, int exist, int q,
                                         const Pixel& pixel_at, const Taps& tap_at, const D& d, const S& s) {
  for (int v = 0; v < s.rows; ++v) {
    const int r = step_taps(i, v, d, s);
    if (r < 0 || r >= d.rows || v >= exist) continue;
    for (int c = 0; c < d.columns; ++c) {
      const float2 tap = tap_at(r * d.columns + c);
      UNROLL_BY((StripSizes<D, S>::unrolling))
      for (int e = 0; e < s.columns; ++e) {
        const int x = source_at((q + e) * d.stride_x - d.pad_x + c * d.dilation_x, d.width, d.pad_x, d.padding);
        if (x >= 0 && q + e < d.out_width) multiply_add(sums[v * s.columns + e], __half22float2(pixel_at(x)), tap);
      }
    }
  }
}

template <class D, class S>
__device__ __forceinline__ void convolve_alone(const half* __restrict__ input, const half2* __restrict__ taps,
                                               half* __restrict__ output, const D& d, const S& s) {
  using Sizes = StripSizes<D, S>;
  // 1.
  const long long id = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (id >= threads_in_all(d, s)) return;
  const int across = strips_across(d, s), down = strips_down(d, s), pair = static_cast<int>(id % pairs_of(d));
  const long long strip = id / pairs_of(d);
  const Place at = {strip / across / down, pair, static_cast<int>(strip / across % down) * s.rows,
                    static_cast<int>(strip % across) * s.columns};
  const bool has_second = 2 * pair + 1 < d.channels, whole = across == 1;
  const half* const in = input + at.image * d.height * d.width * d.channels + 2 * pair;
  const int left = whole ? 0 : at.q * d.stride_x - d.pad_x, exist = rows_that_exist(at, d, s);
  const half2* const own_taps = taps + pair;
  const auto tap_at = [&](int tap) { return __half22float2(own_taps[static_cast<long long>(tap) * pairs_of(d)]); };
  const auto row_of = [&](int i) {
    return source_at(at.p * d.stride_y - d.pad_y + step_below(i, d, s), d.height, d.pad_y, d.padding);
  };

  float2 sums[Sizes::outputs] = {}, window[Sizes::window];
  half2 next[Sizes::window];
  // 2.
  const auto load = [&](int i) {
    const int y = i < steps_of(d, s) ? row_of(i) : -1;
    if (y < 0) return;
    const half* const row = in + static_cast<long long>(y) * d.width * d.channels;
    const half* const from = row + static_cast<long long>(left) * d.channels;
    UNROLL_BY((StripSizes<D, S>::unrolling))
    for (int j = 0; j < static_cast<int>(window_of(d, s, 1)); ++j) {
      const int x = left + j;
      next[j] = __float2half2_rn(0.0f);
      if (whole || (x >= 0 && x < d.width))
        next[j] = load_pair(from + static_cast<long long>(j) * d.channels, has_second, d);
      else if (d.padding != Padding::zero && source_at(x, d.width, d.pad_x, d.padding) >= 0)
        next[j] = load_pair(row + static_cast<long long>(source_at(x, d.width, d.pad_x, d.padding)) * d.channels,
                            has_second, d);
    }
  };
  if (!asks_for_each(d, s, 1)) load(0);
  UNROLL_BY((Sizes::row_unrolling))
  for (int i = 0; i < steps_of(d, s); ++i) {
    const int y = row_of(i);
    if (asks_for_each(d, s, 1)) {
      const auto pixel_at = [&](int x) {
        return load_pair(in + (static_cast<long long>(y) * d.width + x) * d.channels, has_second, d);
      };
      if (y >= 0) add_each(sums, i, exist, at.q, pixel_at, tap_at, d, s);
      continue;
    }
    UNROLL_BY((StripSizes<D, S>::unrolling))
    for (int j = 0; j < static_cast<int>(window_of(d, s, 1)); ++j) window[j] = __half22float2(next[j]);
    load(i + 1);
    if (y >= 0) add(sums, window, i, exist, tap_at, d, s);
  }
  store(output, sums, at, d, s);
}

// ---- A block stages its pixels and taps -----------------------------------------------------------------------------

template <class D, class S>
__device__ __forceinline__ void convolve_staged(const half* __restrict__ input, const half2* __restrict__ taps,
                                                half* __restrict__ output, const D& d, const S& s) {
  using Sizes = StripSizes<D, S>;
  half* const pixels = dynamic_shared<half>();  // [staged_rows][staged_columns][2 * staged]
  const int high = static_cast<int>(staged_rows(d, s)), wide = static_cast<int>(staged_columns(d, s));
  float2* const own_taps = reinterpret_cast<float2*>(pixels + static_cast<long long>(high) * wide * 2 * s.staged);

  // 1. Blocks that follow each other have the same pixels' other channels.
  const int groups = ceil_div(pairs_of(d), s.staged), blocks_across = ceil_div(strips_across(d, s), s.across);
  const int blocks_down = ceil_div(strips_down(d, s), s.down), t = static_cast<int>(threadIdx.x);
  const int first_pair = static_cast<int>(blockIdx.x) % groups * s.staged, tile = static_cast<int>(blockIdx.x) / groups;
  const int p = tile / blocks_across % blocks_down * s.down * s.rows, q = tile % blocks_across * s.across * s.columns;
  const long long image = tile / blocks_across / blocks_down;
  const int strip = t / s.staged, strip_y = strip / s.across, strip_x = strip % s.across;

  // 2.
  const bool whole = strips_across(d, s) == 1;
  const int top = p * d.stride_y - d.pad_y, left = whole ? 0 : q * d.stride_x - d.pad_x;
  const half* const in = input + image * d.height * d.width * d.channels;
  const int channels = channels_of_copy(d), copies = 2 * s.staged / channels;
  UNROLL_BY((Sizes::copies_unrolling))
  for (int k = t; k < high * wide * copies; k += staging_threads(s)) {
    const int pixel = k / copies, c = 2 * first_pair + k % copies * channels;
    const int y = source_at(top + pixel / wide, d.height, d.pad_y, d.padding);
    const int x = whole ? pixel % wide : source_at(left + pixel % wide, d.width, d.pad_x, d.padding);
    const bool inside = y >= 0 && x >= 0 && c < d.channels;
    const half* const from = inside ? in + (static_cast<long long>(y) * d.width + x) * d.channels + c : in;
    half* const to = pixels + static_cast<long long>(k) * channels;
    if (channels == 8)
      copy_async<16>(to, from, inside);
    else if (channels == 4)
      copy_async<8>(to, from, inside);
    else if (channels == 2)
      copy_async<4>(to, from, inside);
    else
      *to = inside ? *from : __float2half(0.0f);
  }
  commit_copies();
  for (int k = t; k < d.rows * d.columns * s.staged; k += staging_threads(s)) {
    const int pair = first_pair + k % s.staged;
    own_taps[k] = pair < pairs_of(d) ? __half22float2(taps[static_cast<long long>(k / s.staged) * pairs_of(d) + pair])
                                     : make_float2(0.0f, 0.0f);
  }
  wait_copies<0>();
  __syncthreads();

  const Place at = {image, first_pair + t % s.staged, p + strip_y * s.rows, q + strip_x * s.columns};
  if (at.pair >= pairs_of(d) || at.p >= d.out_height || at.q >= d.out_width) return;
  const half2* const own = reinterpret_cast<const half2*>(pixels) + t % s.staged +
                           (static_cast<long long>(strip_y) * s.rows * d.stride_y * wide +
                            static_cast<long long>(strip_x) * s.columns * d.stride_x) *
                               s.staged;
  const auto tap_at = [&](int tap) { return own_taps[tap * s.staged + t % s.staged]; };
  float2 sums[Sizes::outputs] = {}, window[Sizes::window];
  UNROLL_BY((Sizes::row_unrolling))
  for (int i = 0; i < steps_of(d, s); ++i) {
    const half2* const row = own + step_below(i, d, s) * wide * s.staged;
    UNROLL_BY((StripSizes<D, S>::unrolling))
    for (int j = 0; j < static_cast<int>(window_of(d, s, 1)); ++j) window[j] = __half22float2(row[j * s.staged]);
    add(sums, window, i, rows_that_exist(at, d, s), tap_at, d, s);
  }
  store(output, sums, at, d, s);
}

template <class D, class S>
__device__ __forceinline__ void convolve_pairs(const half* __restrict__ input,  // [batch][height][width][channels]
                                               const half2* __restrict__ taps,  // [rows][columns][pairs]
                                               half* __restrict__ output,  // [batch][out_height][out_width][channels]
                                               const D& d, const S& s) {
  if constexpr (StripSizes<D, S>::alone)
    if (s.staged == 0) convolve_alone(input, taps, output, d, s);
  if constexpr (StripSizes<D, S>::stages)
    if (s.staged > 0) convolve_staged(input, taps, output, d, s);
}

}  // namespace convladder
