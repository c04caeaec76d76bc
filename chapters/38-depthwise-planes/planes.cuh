// The kernel of 38: blocks that take whole planes.
//
// As in 15 it is compiled twice: by NVRTC for one problem and one plan, whose numbers are then constants; and with the
// program for any numbers, which is what runs in the simulator, and on a GPU where there is no NVRTC.
//
//   1. A block has `groups` groups of `planes` planes each, which follow each other in memory. A thread has a strip of
//      `rows` x `columns` outputs, the same one in every group.
//   2. Fetch: one thread asks for a group's pixels by one bulk copy, and for its taps by another. A group may begin
//      anywhere, a copy only at a multiple of 16 bytes: it begins up to three pixels early, and ends up to three late.
//   3. With two buffers the next group is asked for before anybody waits for this one.
//   4. Sum: each row of input that the strip needs comes to registers once, and is added to all rows that it serves.
//      A strip as wide as the plane knows at compile time which taps meet the border: they cost nothing.
//   5. The sums take the pixels' place in shared memory, once nobody reads these any more.
//   6. Give: one thread has them stored by one bulk copy, and the outputs at its ends one by one.
#pragma once
#include "common/kernel/hopper.hpp"
#include "common/kernel/tracks/strips.hpp"

namespace convladder {

// What a block and a thread have. When compiled by NVRTC, a type with the same names as static constants stands for it.
struct Plan {
  int planes;         // of a group
  int rows, columns;  // outputs of a thread
  int groups;         // of a block
  int buffers;        // 2: the next group comes while this one is summed
};

constexpr int kMostOutputs = 128;  // of a thread
constexpr int kPiece = 4;          // floats of 16 bytes

// ---- Sizes that follow. D is Depthwise, S is Plan, or types with the same names as static constants. ---------------

// The widest access that divides rows of so many floats.
__host__ __device__ __forceinline__ constexpr int vector_of(int width) {
  return width % 4 == 0 ? 4 : width % 2 == 0 ? 2 : 1;
}

// Threads of a block: whole warps.
template <class D, class S>
__host__ __device__ __forceinline__ constexpr long long threads_of(const D& d, const S& s) {
  return round_up(static_cast<long long>(s.planes) * strips_down(d, s) * strips_across(d, s), 32);
}

// Floats from a filter to the next: an odd multiple of 16 bytes, so that eight threads that read 16 bytes each, of
// filters that follow each other, have no bank conflict.
template <class D>
__host__ __device__ __forceinline__ constexpr long long taps_pitch(const D& d) {
  const long long pieces = (static_cast<long long>(d.rows) * d.columns + kPiece - 1) / kPiece;
  return (pieces % 2 == 0 ? pieces + 1 : pieces) * kPiece;
}
// Floats of a buffer for the pixels of a group, or its outputs, wherever in 16 bytes they begin.
template <class D, class S>
__host__ __device__ __forceinline__ constexpr long long pixel_floats(const D& d, const S& s) {
  const long long in = static_cast<long long>(d.height) * d.width;
  const long long out = static_cast<long long>(d.out_height) * d.out_width;
  return round_up(s.planes * (in > out ? in : out) + kPiece - 1, kPiece);
}
template <class D, class S>
__host__ __device__ __forceinline__ constexpr long long buffer_floats(const D& d, const S& s) {
  return pixel_floats(d, s) + s.planes * taps_pitch(d);
}
template <class D, class S>
__host__ __device__ __forceinline__ constexpr long long shared_bytes(const D& d, const S& s) {
  return s.buffers * (buffer_floats(d, s) * 4 + static_cast<long long>(sizeof(Mbarrier)));
}

// Array sizes and loop lengths that must be constants.
template <class D, class S>
struct PlanSizes {
  static constexpr bool unrolled = unrolls(D{}, S{}, vector_of(D::width));
  static constexpr int outputs = S::rows * S::columns;
  static constexpr int window =
      asks_for_each(D{}, S{}, vector_of(D::width)) ? 1 : static_cast<int>(window_of(D{}, S{}, vector_of(D::width)));
  static constexpr int taps = unrolled ? static_cast<int>(taps_pitch(D{})) : 1;
  static constexpr int row_unrolling = unrolled ? kMostUnrolled : 1;
  static constexpr int column_unrolling = asks_for_each(D{}, S{}, vector_of(D::width)) ? 1 : kMostUnrolled;
};
// Of a kernel for any problem: as much as any needs.
template <class D>
struct PlanSizes<D, Plan> {
  static constexpr bool unrolled = false;
  static constexpr int outputs = kMostOutputs, window = kMostWindow, taps = 1, row_unrolling = 1, column_unrolling = 1;
};

// ---- The filters, once ---------------------------------------------------------------------------------------------

// The filters with taps_pitch from one to the next; after the last one the first, and so on.
template <class D>
__global__ void spread_filters(const float* filter, float* spread, D d, long long count) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const long long tap = i % taps_pitch(d), taps = static_cast<long long>(d.rows) * d.columns;
  spread[i] = tap < taps ? filter[i / taps_pitch(d) % d.channels * taps + tap] : 0.0f;
}

// ---- 2. and 6. Copies ----------------------------------------------------------------------------------------------

// Planes that follow each other in memory: `count` of them, from plane `first` on.
struct Group {
  int first, count;
};

template <class D, class S>
__device__ __forceinline__ Group group_of(int number, const D& d, const S& s) {
  const int planes = d.batch * d.channels, first = number * s.planes;
  return {first, smaller(s.planes, planes - first)};
}

// How far behind a multiple of 16 bytes the group's planes begin, in floats.
__device__ __forceinline__ int behind(const Group& group, long long plane) {
  return static_cast<int>(group.first * plane % kPiece);
}

// 2. By one thread. The buffer's last readers and writers have come to a barrier since.
template <class D, class S>
__device__ __forceinline__ void fetch(float* buffer, Mbarrier* full, const float* input, const float* filter,
                                      const Group& group, const D& d, const S& s) {
  const long long plane = static_cast<long long>(d.height) * d.width, pixels = d.batch * d.channels * plane;
  const long long first = group.first * plane, end = first + group.count * plane;
  const long long begin = first / kPiece * kPiece;
  // No copy may touch what follows the input's last whole 16 bytes.
  const long long copied = round_up(end, kPiece) <= pixels ? round_up(end, kPiece) : pixels / kPiece * kPiece;
  if (pixels % kPiece != 0)
    for (long long i = copied < first ? first : copied; i < end; ++i) buffer[i - begin] = input[i];
  fence_async_proxy();
  const int bytes = static_cast<int>(copied - begin) * 4,
            taps_bytes = static_cast<int>(group.count * taps_pitch(d)) * 4;
  mbarrier_expect(full, bytes + taps_bytes);
  if (bytes > 0) bulk_load(buffer, input + begin, bytes, full);
  bulk_load(buffer + pixel_floats(d, s), filter + group.first % d.channels * taps_pitch(d), taps_bytes, full);
}

// 6. By one thread, once all have fenced what they wrote and met.
template <class D, class S>
__device__ __forceinline__ void give(float* output, const float* buffer, const Group& group, const D& d, const S& s) {
  const long long plane = static_cast<long long>(d.out_height) * d.out_width;
  const long long first = group.first * plane, end = first + group.count * plane;
  const long long begin = first / kPiece * kPiece, last = end / kPiece * kPiece;
  const long long copied = first == begin ? begin : begin + kPiece;
  const bool has_ends = s.planes * plane % kPiece != 0 || d.batch * d.channels * plane % kPiece != 0;
  for (long long i = first; has_ends && i < end && i < copied; ++i) output[i] = buffer[i - begin];
  if (copied < last) {
    bulk_store(output + copied, buffer + (copied - begin), static_cast<int>(last - copied) * 4);
    bulk_commit();
  }
  for (long long i = last < copied ? copied : last; has_ends && i < end; ++i) output[i] = buffer[i - begin];
}

// ---- 4. Sum --------------------------------------------------------------------------------------------------------

// A vector of floats.
template <int Vector>
__device__ __forceinline__ void get(float* to, const float* from) {
  if constexpr (Vector == 4) {
    const float4 four = *reinterpret_cast<const float4*>(from);
    to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
  } else {
    const float2 two = *reinterpret_cast<const float2*>(from);
    to[0] = two.x, to[1] = two.y;
  }
}

// The part of a row that the strip needs, to registers: from column `left` on, or all of it.
template <class D, class S>
__device__ __forceinline__ void load(float (&window)[PlanSizes<D, S>::window], const float* row, int left, const D& d,
                                     const S& s) {
  const bool whole = strips_across(d, s) == 1, vectors = whole || d.padding == Padding::zero;
  const int vector = vector_of(d.width), count = static_cast<int>(window_of(d, s, vector));
  if (vectors && vector > 1) {
    UNROLL
    for (int i = 0; i < count; i += vector) {
      if (whole || (left + i >= 0 && left + i < d.width)) {
        if (vector == 4)
          get<4>(window + i, row + left + i);
        else
          get<2>(window + i, row + left + i);
      } else {
        UNROLL
        for (int e = 0; e < vector; ++e) window[i + e] = 0.0f;
      }
    }
    return;
  }
  UNROLL
  for (int i = 0; i < count; ++i) {
    const int x = source_at(left + i, d.width, d.pad_x, d.padding);
    window[i] = whole ? row[i] : x >= 0 ? row[x] : 0.0f;
  }
}

// Adds a row of input to row v of the strip, through a row of taps.
template <class D, class S>
__device__ __forceinline__ void add(float (&sums)[PlanSizes<D, S>::outputs],
                                    const float (&window)[PlanSizes<D, S>::window], const float* row, const float* taps,
                                    int v, int q, const D& d, const S& s) {
  UNROLL_BY((PlanSizes<D, S>::column_unrolling))
  for (int c = 0; c < d.columns; ++c) {
    UNROLL
    for (int e = 0; e < s.columns; ++e) {
      if (strips_across(d, s) == 1 && e >= d.out_width) continue;
      if (asks_for_each(d, s, vector_of(d.width))) {
        const int x = source_at((q + e) * d.stride_x - d.pad_x + c * d.dilation_x, d.width, d.pad_x, d.padding);
        if (x >= 0) sums[v * s.columns + e] += row[x] * taps[c];
      } else {
        const int i = in_window(e, c, d, s, vector_of(d.width));
        if (i >= 0) sums[v * s.columns + e] += window[i] * taps[c];
      }
    }
  }
}

// The strip from output (p, q) of a plane on.
template <class D, class S>
__device__ __forceinline__ void sum(float (&sums)[PlanSizes<D, S>::outputs], const float* pixels, const float* taps,
                                    int p, int q, const D& d, const S& s) {
  using Sizes = PlanSizes<D, S>;
  const int left = strips_across(d, s) == 1 ? 0 : q * d.stride_x - d.pad_x - lead(d, vector_of(d.width));
  float window[Sizes::window], held[Sizes::taps];
  UNROLL_BY((Sizes::row_unrolling))
  for (int i = 0; i < steps_of(d, s); ++i) {
    if constexpr (Sizes::unrolled) {  // taps that this step is the first to need
      const int first = by_pairs(d, s) ? (i % s.rows == 0 ? i / s.rows : d.rows) : i;
      if (first < d.rows) {
        UNROLL
        for (int k = ceil_div(first * d.columns, kPiece); k < ceil_div((first + 1) * d.columns, kPiece); ++k)
          get<4>(held + k * kPiece, taps + k * kPiece);
      }
    }
    const int y = source_at(p * d.stride_y - d.pad_y + step_below(i, d, s), d.height, d.pad_y, d.padding);
    if (y < 0) continue;
    const float* const row = pixels + y * d.width;
    if (!asks_for_each(d, s, vector_of(d.width))) load(window, row, left, d, s);
    UNROLL
    for (int v = 0; v < s.rows; ++v) {
      if (strips_down(d, s) == 1 && v >= d.out_height) continue;
      const int r = step_taps(i, v, d, s);
      if (r < 0 || r >= d.rows) continue;
      add(sums, window, row, (Sizes::unrolled ? held : taps) + r * d.columns, v, q, d, s);
    }
  }
}

// 5. The strip's outputs that exist, to the buffer.
template <class D, class S>
__device__ __forceinline__ void put(float* plane, const float (&sums)[PlanSizes<D, S>::outputs], int p, int q,
                                    const D& d, const S& s) {
  const int vector = vector_of(d.out_width);
  UNROLL
  for (int v = 0; v < s.rows; ++v) {
    if (p + v >= d.out_height) continue;
    float* const row = plane + (p + v) * d.out_width + q;
    const float* const from = sums + v * s.columns;
    UNROLL
    for (int e = 0; e < s.columns; e += vector) {
      if (q + e >= d.out_width) continue;
      if (vector == 4)
        *reinterpret_cast<float4*>(row + e) = make_float4(from[e], from[e + 1], from[e + 2], from[e + 3]);
      else if (vector == 2)
        *reinterpret_cast<float2*>(row + e) = make_float2(from[e], from[e + 1]);
      else
        row[e] = from[e];
    }
  }
}

// ---- The kernel ----------------------------------------------------------------------------------------------------

template <class D, class S>
__device__ __forceinline__ void convolve_planes(const float* input,   // [planes][height][width]
                                                const float* filter,  // [channels + planes of a group][taps_pitch]
                                                float* output,        // [planes][out_height][out_width]
                                                const D& d, const S& s) {
  float* const buffers = dynamic_shared_1024<float>();
  Mbarrier* const full = reinterpret_cast<Mbarrier*>(buffers + s.buffers * buffer_floats(d, s));
  const auto buffer = [&](int it) { return buffers + it % s.buffers * buffer_floats(d, s); };
  // 1.
  const int t = static_cast<int>(threadIdx.x), all = ceil_div(d.batch * d.channels, s.planes);
  const int first = static_cast<int>(blockIdx.x) * s.groups, count = smaller(s.groups, all - first);
  const int strips = strips_down(d, s) * strips_across(d, s), own = t / strips;
  const int p = t % strips / strips_across(d, s) * s.rows, q = t % strips_across(d, s) * s.columns;
  if (t == 0) {
    for (int b = 0; b < s.buffers; ++b) mbarrier_init(full + b, 1);
    fence_mbarrier_init();
    if (s.buffers > 1) fetch(buffer(0), full, input, filter, group_of(first, d, s), d, s);
  }
  __syncthreads();

  for (int it = 0; it < count; ++it) {
    // 3.
    const int next = it + s.buffers - 1;
    if (t == 0 && next < count) {
      bulk_wait_read<0>();  // the sums that the buffer held are on their way
      fetch(buffer(next), full + next % s.buffers, input, filter, group_of(first + next, d, s), d, s);
    }
    const Group group = group_of(first + it, d, s);
    const long long plane = static_cast<long long>(d.height) * d.width;
    const long long out_plane = static_cast<long long>(d.out_height) * d.out_width;
    mbarrier_wait(full + it % s.buffers, it / s.buffers % 2);
    // 4.
    float sums[PlanSizes<D, S>::outputs] = {};
    if (own < group.count)
      sum(sums, buffer(it) + behind(group, plane) + own * plane, buffer(it) + pixel_floats(d, s) + own * taps_pitch(d),
          p, q, d, s);
    __syncthreads();
    // 5.
    if (own < group.count) put(buffer(it) + behind(group, out_plane) + own * out_plane, sums, p, q, d, s);
    fence_async_proxy();
    __syncthreads();
    // 6.
    if (t == 0) give(output, buffer(it), group, d, s);
  }
  if (t == 0) bulk_wait_read<0>();
}

}  // namespace convladder
