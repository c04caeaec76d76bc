// 04 halo-1d, for long filters: 16 outputs of a thread (outputs=16).
//
// With four outputs a thread reads 16 bytes of shared memory for 16 multiply-adds, and that alone takes the memory's
// whole bandwidth: four passes over the banks for each of four schedulers, in the 16 cycles that these take. With 16
// outputs, 8 reads serve 16 taps, 256 multiply-adds, and take half of it.
//
//   1. The tile of 2048 outputs comes by cp.async: no register holds what is on its way. Four words are left free after
//      16, so that the 8 lanes that one pass serves, 20 words apart, read different banks.
//   2. A thread adds 16 taps at a time to its 16 neighbours, and then the rest.
//   3. It stores them 16 bytes at a time.
#pragma once
#include "chapters/04-halo-1d/halo_1d.cuh"
#include "common/kernel/tracks/tap_count.hpp"

namespace convladder {
namespace {

constexpr int kLongEach = 16;  // outputs of a thread, and taps at a time
constexpr int kLongThreads = 128;
constexpr int kLongTile = kLongThreads * kLongEach;  // outputs of a block
constexpr int kGap = 4;                              // words left free after 16

// Where element t of the tile lies.
__host__ __device__ constexpr int skewed(int t) { return t + t / kLongEach * kGap; }
// 16-byte reads of a thread for so many taps, at most 16 of them.
__host__ __device__ constexpr int vectors_for(int taps) { return (kLongEach + taps - 1 + 3) / 4; }
// Elements of the tile: to the end of the last thread's last read.
__host__ __device__ constexpr int long_elements(int taps) {
  return kLongTile - kLongEach + (kLongEach + taps + 2) / 4 * 4;
}

std::int64_t long_bytes(std::int64_t taps) {
  return static_cast<std::int64_t>(sizeof(float)) * (skewed(long_elements(static_cast<int>(taps)) - 1) + 1);
}

// Adds taps [first, first + kTaps); `window` is where the thread's first output meets the first of them.
template <int kTaps>
__device__ __forceinline__ void add_long_taps(float (&sum)[kLongEach], const float* window, int first) {
  float held[4 * vectors_for(kTaps)];
  UNROLL
  for (int u = 0; u < vectors_for(kTaps); ++u) {
    const float4 four = *reinterpret_cast<const float4*>(window + skewed(4 * u));
    held[4 * u] = four.x;
    held[4 * u + 1] = four.y;
    held[4 * u + 2] = four.z;
    held[4 * u + 3] = four.w;
  }
  UNROLL
  for (int t = 0; t < kTaps; ++t) {
    const float tap = c_filter[first + t];
    UNROLL
    for (int e = 0; e < kLongEach; ++e) sum[e] += held[t + e] * tap;
  }
}

__global__ void __launch_bounds__(kLongThreads) long_filter(const float* input,  // [batch][length]
                                                            float* output,       // [batch][out_length]
                                                            Signal s) {
  float* tile = dynamic_shared<float>();
  const int signal = blockIdx.y + gridDim.y * blockIdx.z;
  if (signal >= s.batch) return;
  const float* x = input + static_cast<std::int64_t>(signal) * s.length;
  float* y = output + static_cast<std::int64_t>(signal) * s.out_length;
  const int start = blockIdx.x * kLongTile, begin = start - s.pad, elements = long_elements(s.taps);

  // 1.
  if (begin >= 0 && begin + elements <= s.length) {  // no index needs a look
    UNROLL_BY(8)
    for (int t = threadIdx.x; t < elements; t += kLongThreads)
      copy_async<4>(tile + skewed(t), x + begin + t, t < kLongTile + s.taps - 1);
  } else {
    UNROLL_BY(1)
    for (int t = threadIdx.x; t < elements; t += kLongThreads) {
      const bool needed = t < kLongTile + s.taps - 1 && begin + t < s.length + s.pad;
      const int j = needed ? border_index(begin + t, s.length, s.padding) : -1;
      copy_async<4>(tile + skewed(t), x + j, j >= 0);
    }
  }
  commit_copies();
  wait_copies<0>();
  __syncthreads();

  // 2.
  const float* window = tile + skewed(kLongEach * threadIdx.x);
  float sum[kLongEach] = {};
  int t = 0;
  UNROLL_BY(1)
  for (; t + kLongEach <= s.taps; t += kLongEach) {
    add_long_taps<kLongEach>(sum, window, t);
    window += skewed(kLongEach);
  }
  with_rest<kLongEach - 1>(s.taps - t, [&](auto rest) { add_long_taps<decltype(rest)::kTaps>(sum, window, t); });

  // 3.
  const int i = start + kLongEach * threadIdx.x;
  if (start + kLongTile <= s.out_length && s.out_length % 4 == 0) {  // every row begins at a multiple of 16 bytes
    UNROLL
    for (int e = 0; e < kLongEach; e += 4)
      *reinterpret_cast<float4*>(y + i + e) = make_float4(sum[e], sum[e + 1], sum[e + 2], sum[e + 3]);
  } else {
    UNROLL
    for (int e = 0; e < kLongEach; ++e) {
      if (i + e < s.out_length) y[i + e] = sum[e];
    }
  }
}

void launch_long_filter(const Tensors& tensors, const Signal& s, Stream stream) {
  launch(long_filter, signal_grid(s, kLongTile), kLongThreads, static_cast<std::size_t>(long_bytes(s.taps)), stream)(
      tensors.input, tensors.output, s);
}

}  // namespace
}  // namespace convladder
