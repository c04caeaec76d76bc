// 04 halo-1d: left halo, body and right halo, loaded apart.
//
// Since 03: the same elements, in another order, and a block that makes use of it. In 03 every warp's load began `pad`
// words before a sector boundary and touched 5 sectors for 32 floats, and how often the loading loop ran was known only
// at run time. The body of a tile is as long as its outputs and begins where they begin, a multiple of 256: 4 sectors a
// warp, and a fixed number of loads, which a thread can therefore all have on their way before it stores the first.
//
//   input     ... |<- left: pad ->|<-------------- body: 256 ------------->|<- right: taps-1-pad ->| ...
//   tile          [0 ................................................................... 256+taps-2]
//
// Five ideas, and the setting that switches each of them off (`./lab run 4 --configuration tiles=1`):
//
//   1. Split load. Each thread asks for its part of the body and waits for nothing, loads the left and the right halo,
//      in as many rounds as they need, and then stores its part of the body to shared memory.  load=whole,tiles=1
//   2. Two tiles of a block are on their way together.                                         tiles=1
//   3. A thread sums 4 neighbouring outputs of a tile, so that a block has 64 threads.         outputs=1,window=4
//   4. It moves over their windows 16 bytes at a time.                                         window=4
//   5. The compiler knows the length of short filters: no loop is left.                        taps=run-time
//
// The README shows what each of them brings.

#pragma once
#include "common/kernel/border.hpp"
#include "common/kernel/tracks/signal.hpp"

namespace convladder {
namespace {

constexpr int kTile = 256;  // outputs of a tile

// The ideas 1 to 4, as a block has them. The stage runs Form<true, 2, 4, 16> unless told otherwise.
template <bool SplitLoad, int Tiles, int Outputs, int Window>
struct Form {
  static constexpr bool kSplitLoad = SplitLoad;
  static constexpr int kTiles = Tiles;              // of a block
  static constexpr int kOutputs = Outputs;          // of a thread in a tile, 4 or 1
  static constexpr int kWindow = Window;            // bytes of a read, 16 or 4
  static constexpr int kThreads = kTile / Outputs;  // of a block
};

__constant__ float c_filter[kMaxConstantTaps];

// Floats from one tile to the next: what its outputs need, to the end of the last thread's last 16-byte read.
__host__ __device__ __forceinline__ int tile_pitch(int taps) { return (kTile + taps + 3) / 4 * 4; }

// Element t of the tile whose first output is `start`; zero where no output needs it.
__device__ __forceinline__ float tile_element(const float* x, int start, int t, const Signal& s) {
  const int position = start - s.pad + t;
  if (start >= s.out_length || t >= kTile + s.taps - 1 || position >= s.length + s.pad) return 0.0f;
  const int j = border_index(position, s.length, s.padding);
  return j < 0 ? 0.0f : x[j];
}

// 1. kInside: the block's tiles lie wholly inside the signal, so that no index needs a look.
template <class F, bool kInside>
__device__ __forceinline__ void load_split(float* tiles,    // [F::kTiles][pitch]
                                           const float* x,  // [length]
                                           int first,       // first output of the block
                                           int pitch, const Signal& s) {
  constexpr int kEach = kTile / F::kThreads;  // elements of a thread in a tile's body
  const int i = threadIdx.x;
  // The body is asked for. 2. That of all tiles.
  float body[F::kTiles][kEach];
  UNROLL
  for (int m = 0; m < F::kTiles; ++m) {
    UNROLL
    for (int e = 0; e < kEach; ++e) {
      const int offset = e * F::kThreads + i;
      if (kInside)
        body[m][e] = x[first + m * kTile + offset];
      else
        body[m][e] = tile_element(x, first + m * kTile, s.pad + offset, s);
    }
  }
  // The left and the right halo.
  UNROLL
  for (int m = 0; m < F::kTiles; ++m) {
    float* tile = tiles + m * pitch;
    UNROLL_BY(1)
    for (int t = i; t < min(s.pad, pitch); t += F::kThreads) tile[t] = tile_element(x, first + m * kTile, t, s);
    UNROLL_BY(1)
    for (int t = s.pad + kTile + i; t < pitch; t += F::kThreads) tile[t] = tile_element(x, first + m * kTile, t, s);
  }
  // The body arrives.
  UNROLL
  for (int m = 0; m < F::kTiles; ++m) {
    UNROLL
    for (int e = 0; e < kEach; ++e) {
      const int t = s.pad + e * F::kThreads + i;
      if (kInside || t < pitch) tiles[m * pitch + t] = body[m][e];  // more padding than filter: the body is not needed
    }
  }
}

// 1, switched off: one tile, from its first element on, as in 03.
template <class F>
__device__ __forceinline__ void load_whole(float* tile, const float* x, int first, int pitch, const Signal& s) {
  for (int t = threadIdx.x; t < pitch; t += F::kThreads) tile[t] = tile_element(x, first, t, s);
}

// Adds tap `c` at an offset of the window (a, b) to four outputs.
__device__ __forceinline__ void add_tap(float4& sum, float c, float a0, float a1, float a2, float a3) {
  sum.x += a0 * c;
  sum.y += a1 * c;
  sum.z += a2 * c;
  sum.w += a3 * c;
}

// 4. Unrolled whole where the caller knows `taps` at compile time. window[0] holds the first sample of each of the four
// outputs; the last tap of the last output needs taps - 1 more.
__device__ __forceinline__ float4 four_outputs(const float4* window, int taps) {
  float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  float4 a = window[0];
  int t = 0;
  UNROLL_BY(2)
  for (; t + 4 <= taps; t += 4) {
    const float4 b = window[t / 4 + 1];
    add_tap(sum, c_filter[t], a.x, a.y, a.z, a.w);
    add_tap(sum, c_filter[t + 1], a.y, a.z, a.w, b.x);
    add_tap(sum, c_filter[t + 2], a.z, a.w, b.x, b.y);
    add_tap(sum, c_filter[t + 3], a.w, b.x, b.y, b.z);
    a = b;
  }
  add_tap(sum, c_filter[t], a.x, a.y, a.z, a.w);  // an odd filter leaves one tap, or three
  if (taps % 4 == 3) {
    const float4 b = window[t / 4 + 1];
    add_tap(sum, c_filter[t + 1], a.y, a.z, a.w, b.x);
    add_tap(sum, c_filter[t + 2], a.z, a.w, b.x, b.y);
  }
  return sum;
}

// 4, switched off: a word at a time. Lanes read 16 bytes apart, four of them from each bank. Volatile, since nvcc would
// make 16-byte reads of these again.
__device__ __forceinline__ float4 four_outputs(const volatile float* window, int taps) {
  float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  float a0 = window[0], a1 = window[1], a2 = window[2];
  for (int t = 0; t < taps; ++t) {
    const float a3 = window[t + 3];
    add_tap(sum, c_filter[t], a0, a1, a2, a3);
    a0 = a1;
    a1 = a2;
    a2 = a3;
  }
  return sum;
}

// 3, switched off.
__device__ __forceinline__ float one_output(const float* window, int taps) {
  float sum = 0.0f;
  for (int t = 0; t < taps; ++t) sum += window[t] * c_filter[t];
  return sum;
}

// kTaps: the filter's length, or 0 to take it from `s`.
template <int kTaps, class F>
__global__ void __launch_bounds__(F::kThreads) halo_1d(const float* input,  // [batch][length]
                                                       float* output,       // [batch][out_length]
                                                       Signal s) {
  if (kTaps > 0) s.taps = kTaps;           // 5.
  float* tiles = dynamic_shared<float>();  // [F::kTiles][pitch]
  const int signal = blockIdx.y + gridDim.y * blockIdx.z;
  if (signal >= s.batch) return;
  const float* x = input + static_cast<std::int64_t>(signal) * s.length;
  float* y = output + static_cast<std::int64_t>(signal) * s.out_length;
  const int first = blockIdx.x * F::kTiles * kTile;
  const int pitch = tile_pitch(s.taps);

  const bool inside = s.pad < s.taps && first >= s.pad && first - s.pad + F::kTiles * kTile + s.taps - 1 <= s.length;
  if (!F::kSplitLoad)  // one tile
    load_whole<F>(tiles, x, first, pitch, s);
  else if (inside)
    load_split<F, true>(tiles, x, first, pitch, s);
  else
    load_split<F, false>(tiles, x, first, pitch, s);
  __syncthreads();

  UNROLL
  for (int m = 0; m < F::kTiles; ++m) {
    const int start = first + m * kTile;
    if (start >= s.out_length) break;
    const float* tile = tiles + m * pitch;
    if (F::kOutputs == 1) {
      const float sum = one_output(tile + threadIdx.x, s.taps);
      const int i = start + threadIdx.x;
      if (i < s.out_length) y[i] = sum;
      continue;
    }
    // 3.
    const float4 sum = F::kWindow == 16 ? four_outputs(reinterpret_cast<const float4*>(tile) + threadIdx.x, s.taps)
                                        : four_outputs(tile + 4 * threadIdx.x, s.taps);
    const int i = start + 4 * threadIdx.x;
    if (start + kTile <= s.out_length && s.out_length % 4 == 0) {  // every row begins at a multiple of 16 bytes
      *reinterpret_cast<float4*>(y + i) = sum;
    } else {
      if (i < s.out_length) y[i] = sum.x;
      if (i + 1 < s.out_length) y[i + 1] = sum.y;
      if (i + 2 < s.out_length) y[i + 2] = sum.z;
      if (i + 3 < s.out_length) y[i + 3] = sum.w;
    }
  }
}

std::int64_t tile_bytes(int tiles, std::int64_t taps) {
  return tiles * static_cast<std::int64_t>(sizeof(float)) * tile_pitch(static_cast<int>(taps));
}

// 5. The kernel for a filter of so many taps; for 0, for a filter of any length.
template <class F>
auto kernel_for(int taps) {
  switch (taps) {
    case 3:
      return halo_1d<3, F>;
    case 5:
      return halo_1d<5, F>;
    case 7:
      return halo_1d<7, F>;
    case 9:
      return halo_1d<9, F>;
    case 11:
      return halo_1d<11, F>;
    default:
      return halo_1d<0, F>;
  }
}

template <class F>
void launch_halo_1d(const Tensors& tensors, const Signal& s, bool known_taps, Stream stream) {
  const auto bytes = static_cast<std::size_t>(tile_bytes(F::kTiles, s.taps));
  launch(kernel_for<F>(known_taps ? s.taps : 0), signal_grid(s, F::kTiles * kTile), F::kThreads, bytes, stream)(
      tensors.input, tensors.output, s);
}

}  // namespace
}  // namespace convladder
