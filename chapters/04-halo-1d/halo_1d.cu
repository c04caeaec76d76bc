// 04 halo-1d: left halo, body and right halo, loaded apart.
//
// Since 03: the same elements, in another order. In 03 every warp's load began `pad` words before a sector boundary and
// touched 5 sectors for 32 floats, and how often the loading loop ran was known only at run time. The body of a tile is
// as long as its outputs and begins where they begin, a multiple of 256: 4 sectors a warp, and a fixed number of loads,
// which a thread can therefore all have on their way before it stores the first.
//
//   input     ... |<- left: pad ->|<-------------- body: 256 ------------->|<- right: taps-1-pad ->| ...
//   tile          [0 ................................................................... 256+taps-2]
//
//   1. Body: each thread asks for 4 elements of each of the block's 2 tiles; none is waited for.
//   2. Left and right halo, in as many rounds as they need.
//   3. The body arrives in shared memory; a barrier.
//   4. Each thread sums 4 neighbouring outputs of each tile, moving over its window 16 bytes at a time.
//
// A block of few threads with several outputs each keeps more bytes in flight than one of many threads with one, and a
// filter length that the compiler knows takes the loop's bookkeeping away: the README shows what each choice brings.

#include "common/kernel/border.hpp"
#include "common/kernel/tracks/signal.hpp"

namespace convladder {
namespace {

constexpr int kTile = 256;               // outputs of a tile
constexpr int kTiles = 2;                // tiles of a block
constexpr int kThreads = 64;             // of a block
constexpr int kEach = kTile / kThreads;  // outputs of a thread in a tile: a float4

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

// kInside: the block's tiles lie wholly inside the signal, so that no index needs a look.
template <bool kInside>
__device__ __forceinline__ void load_tiles(float* tiles,    // [kTiles][pitch]
                                           const float* x,  // [length]
                                           int first,       // first output of the block
                                           int pitch, const Signal& s) {
  const int i = threadIdx.x;
  // 1.
  float body[kTiles][kEach];
  UNROLL
  for (int m = 0; m < kTiles; ++m) {
    UNROLL
    for (int e = 0; e < kEach; ++e) {
      const int offset = e * kThreads + i;
      if (kInside)
        body[m][e] = x[first + m * kTile + offset];
      else
        body[m][e] = tile_element(x, first + m * kTile, s.pad + offset, s);
    }
  }
  // 2.
  UNROLL
  for (int m = 0; m < kTiles; ++m) {
    float* tile = tiles + m * pitch;
    UNROLL_BY(1)
    for (int t = i; t < min(s.pad, pitch); t += kThreads) tile[t] = tile_element(x, first + m * kTile, t, s);
    UNROLL_BY(1)
    for (int t = s.pad + kTile + i; t < pitch; t += kThreads) tile[t] = tile_element(x, first + m * kTile, t, s);
  }
  // 3.
  UNROLL
  for (int m = 0; m < kTiles; ++m) {
    UNROLL
    for (int e = 0; e < kEach; ++e) {
      const int t = s.pad + e * kThreads + i;
      if (kInside || t < pitch) tiles[m * pitch + t] = body[m][e];  // more padding than filter: the body is not needed
    }
  }
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

// kTaps: the filter's length, or 0 to take it from `s`.
template <int kTaps>
__global__ void __launch_bounds__(kThreads) halo_1d(const float* input,  // [batch][length]
                                                    float* output,       // [batch][out_length]
                                                    Signal s) {
  if (kTaps > 0) s.taps = kTaps;
  float* tiles = dynamic_shared<float>();  // [kTiles][pitch]
  const int signal = blockIdx.y + gridDim.y * blockIdx.z;
  if (signal >= s.batch) return;
  const float* x = input + static_cast<std::int64_t>(signal) * s.length;
  float* y = output + static_cast<std::int64_t>(signal) * s.out_length;
  const int first = blockIdx.x * kTiles * kTile;
  const int pitch = tile_pitch(s.taps);

  const bool inside = s.pad < s.taps && first >= s.pad && first - s.pad + kTiles * kTile + s.taps - 1 <= s.length;
  if (inside)
    load_tiles<true>(tiles, x, first, pitch, s);
  else
    load_tiles<false>(tiles, x, first, pitch, s);
  __syncthreads();

  UNROLL
  for (int m = 0; m < kTiles; ++m) {
    const int start = first + m * kTile;
    if (start >= s.out_length) break;
    const float4 sum = four_outputs(reinterpret_cast<const float4*>(tiles + m * pitch) + threadIdx.x, s.taps);
    const int i = start + kEach * threadIdx.x;
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

std::int64_t tile_bytes(std::int64_t taps) {
  return kTiles * static_cast<std::int64_t>(sizeof(float)) * tile_pitch(static_cast<int>(taps));
}

void launch_halo_1d(const Tensors& tensors, const Signal& s, Stream stream) {
  const auto bytes = static_cast<std::size_t>(tile_bytes(s.taps));
  const auto start = [&](void (*kernel)(const float*, float*, Signal)) {
    launch(kernel, signal_grid(s, kTiles * kTile), kThreads, bytes, stream)(tensors.input, tensors.output, s);
  };
  switch (s.taps) {
    case 3:
      return start(halo_1d<3>);
    case 5:
      return start(halo_1d<5>);
    case 7:
      return start(halo_1d<7>);
    case 9:
      return start(halo_1d<9>);
    case 11:
      return start(halo_1d<11>);
    default:
      return start(halo_1d<0>);
  }
}

class Halo1d final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits& limits) const override {
    const Verdict verdict = check_constant_filter(problem);
    if (!verdict.accepted()) return verdict;
    return check_tile(problem, limits, tile_bytes(problem.s));
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    upload_constant(c_filter, tensors.filter, static_cast<std::size_t>(problem.s), stream);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    launch_halo_1d(tensors, signal_of(problem), stream);
  }

  // The same elements as in 03, in fewer sectors. A tile's two warps read taps + 3 floats a thread, four at a time.
  Prediction predict(const ConvProblem& problem) const override {
    const Signal s = signal_of(problem);
    const std::int64_t tiles = (s.out_length + kTile - 1) / kTile;
    const std::int64_t warps = tiles * (kThreads / 32) * s.batch;
    Prediction p;
    p.global_load_bytes = reads_by_tile(s, kTile) * 4;
    p.global_store_bytes = problem.output_size() * 4;
    p.shared_load_requests = warps * (1 + (s.taps + 1) / 4);
    p.shared_load_conflicts = p.shared_store_conflicts = 0;
    p.constant_load_requests = warps * s.taps;
    p.barriers = (tiles + kTiles - 1) / kTiles * static_cast<std::int64_t>(s.batch);
    p.flops = problem.flops();
    return p;
  }
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::Halo1d)
