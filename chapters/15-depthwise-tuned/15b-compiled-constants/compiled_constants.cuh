// The kernel of 15b, compiled twice from this source: with the program, for D = Depthwise, whose members are variables;
// and when the program runs, by NVRTC, for a type D with the same names as static constants. The steps are those of
// 15a. In the second kernel
//
//   1. the divisions by `across` and `down` are multiplications and shifts, or gone where a plane is one tile;
//   2. so are those by `width`, and the kind of padding is known;
//   3. the loops over r and s are written out as the four sums are, and a pixel's address is a register and a constant.
#pragma once
#include "common/kernel/border.hpp"

namespace convladder {

constexpr int kRows = 16, kColumns = 32;  // outputs of a block
constexpr int kOutputs = 4;               // of a thread, in a column
constexpr int kThreads = kRows / kOutputs * kColumns;

// Positions of the input that so many outputs in a row reach.
__host__ __device__ __forceinline__ constexpr long long reach(int outputs, int stride, int taps, int dilation) {
  return (outputs - 1LL) * stride + (taps - 1LL) * dilation + 1;
}
// The tile in shared memory: for whole threads' outputs, but for no more of them than the plane has.
template <class D>
__host__ __device__ __forceinline__ constexpr long long tile_rows(D d) {
  const int rows = ((d.out_height - 1) / kOutputs + 1) * kOutputs;
  return reach(rows < kRows ? rows : kRows, d.stride_y, d.rows, d.dilation_y);
}
template <class D>
__host__ __device__ __forceinline__ constexpr long long tile_columns(D d) {
  return reach(d.out_width < kColumns ? d.out_width : kColumns, d.stride_x, d.columns, d.dilation_x);
}

template <class D>
__device__ __forceinline__ void depthwise_cached(const float* __restrict__ input,   // [planes][height][width]
                                                 const float* __restrict__ filter,  // [channels][rows][columns]
                                                 float* __restrict__ output,        // [planes][out_height][out_width]
                                                 D d) {
  const int height = static_cast<int>(tile_rows(d)), width = static_cast<int>(tile_columns(d));
  const int count = d.rows * d.columns;
  float* const tile = dynamic_shared<float>();  // [height][width]
  float* const taps = tile + height * width;    // [rows][columns]
  // 1.
  const int across = (d.out_width - 1) / kColumns + 1, down = (d.out_height - 1) / kRows + 1;
  const int thread = threadIdx.x, block = blockIdx.x, nc = block / across / down;
  const int first_p = block / across % down * kRows, first_q = block % across * kColumns;

  // 2.
  const float* in = input + static_cast<long long>(nc) * d.height * d.width;
  const int top = first_p * d.stride_y - d.pad_y, left = first_q * d.stride_x - d.pad_x;
  const auto used_rows = reach(min(kRows, d.out_height - first_p), d.stride_y, d.rows, d.dilation_y);
  const auto used_columns = reach(min(kColumns, d.out_width - first_q), d.stride_x, d.columns, d.dilation_x);
  for (int at = thread; at < height * width; at += kThreads) {
    const int y = at / width, x = at % width;
    const bool used = y < used_rows && x < used_columns;
    const int i = used ? border_index(top + y, d.height, d.padding) : -1;
    const int j = used ? border_index(left + x, d.width, d.padding) : -1;
    tile[at] = i >= 0 && j >= 0 ? in[static_cast<long long>(i) * d.width + j] : 0.0f;
  }
  for (int at = thread; at < count; at += kThreads)
    taps[at] = filter[static_cast<long long>(nc % d.channels) * count + at];
  __syncthreads();

  // 3.
  const int p = first_p + thread / kColumns * kOutputs, q = first_q + thread % kColumns;
  if (p >= d.out_height || q >= d.out_width) return;
  const float* window = tile + ((p - first_p) * d.stride_y * width + (q - first_q) * d.stride_x);
  const int next = d.stride_y * width;  // to the window of the output below
  float sums[kOutputs] = {};
  UNROLL
  for (int r = 0; r < d.rows; ++r) {
    UNROLL
    for (int s = 0; s < d.columns; ++s) {
      const float tap = taps[r * d.columns + s];
      const float* pixel = window + r * d.dilation_y * width + s * d.dilation_x;
      UNROLL
      for (int i = 0; i < kOutputs; ++i) sums[i] += pixel[i * next] * tap;
    }
  }

  // 4.
  float* out = output + (static_cast<long long>(nc) * d.out_height + p) * d.out_width + q;
  UNROLL
  for (int i = 0; i < kOutputs; ++i)
    if (p + i < d.out_height) out[static_cast<long long>(i) * d.out_width] = sums[i];
}

}  // namespace convladder
