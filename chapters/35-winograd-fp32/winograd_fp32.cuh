// 35 winograd-fp32: the largest tile that the error allows.
//
//   output tile (m x m') = A^T [ sum over c of (G g G'^T) . (B^T d B') ] A'      F(m, 3) down, F(m', 3) across
//
// Since 25: tiles of up to 7 x 7 outputs, which take 81 products instead of 441. They do not fit a fused kernel, so
// there are three kernels again, as in 24; the one in the middle multiplies at nearly the rate of the multiply-add
// units. A larger tile has less work and larger rounding errors. The user names a bound of the error; of the tiles that
// stay within it, the stage takes the one with the least work.
//
//   1. In prepare(): the filters are transformed in double, rounded once, and laid out as blocks copy them. Filters
//      change places with their neighbours, and registers of a product lie in different banks (stage 20).
//   2. V: a thread transforms one tile of one channel. Four tiles stand side by side: so a warp, with four tiles of
//      eight channels, reads whole sectors of NHWC, and writes 128 neighbouring bytes.
//   3. A block multiplies 128 tiles x 64 filters at one position, each of its threads 8 x 8.
//   4. 16 channels are a step. Two steps are on their way while a third is multiplied. One barrier a step.
//   5. A thread transforms the sums of one tile and filter back.
//   6. The tile: its error follows from its matrices and the channels, its work from the sizes (winograd_fp32.cu).

#pragma once
#include "common/kernel/divisor.hpp"
#include "common/kernel/kernel.hpp"
#include "common/kernel/tracks/winograd.hpp"

namespace convladder {
namespace {

constexpr int kThreads = 128, kWarps = kThreads / 32;
constexpr int kTiles = 128, kFilters = 64;  // of a block
constexpr int kQuads = kTiles / 4;          // tiles go by fours
constexpr int kDepth = 16;                  // channels of a step
constexpr int kBuffers = 3;                 // steps that shared memory holds
constexpr int kQuadPitch = 4 * kDepth + 4;  // floats; four more, and the quads that a warp reads lie in different banks

// The problem as the kernels take it. V, M and U are padded to whole blocks and steps.
struct Plan {
  Winograd w;
  int tiles, channels, filters;     // padded to multiples of kTiles, kDepth and kFilters
  Divisor by_channels, by_filters;  // for division by the padded channels, and by the filters themselves
};

// 1. A thread a filter and channel.
template <class Down, class Across>
__global__ void transform_filters(const float* filter,  // [filters][channels][3][3]
                                  float* u,             // [position][filter block][channel][64]
                                  Plan p) {
  constexpr int kRows = kTileSize<Down>, kColumns = kTileSize<Across>;
  const int i = blockIdx.x * kThreads + threadIdx.x;  // of the elements at a position
  if (i >= p.channels * p.filters) return;
  const int c = i / kFilters % p.channels, k = i / kFilters / p.channels * kFilters + (i % kFilters ^ 1);
  const bool inside = k < p.w.filters && c < p.w.channels;
  const float* taps = filter + (k * p.w.channels + c) * 9;
  double rows[kWinogradTaps][kColumns];  // g G'^T
  UNROLL
  for (int r = 0; r < kWinogradTaps; ++r) {
    double line[kWinogradTaps];
    UNROLL
    for (int s = 0; s < kWinogradTaps; ++s) line[s] = inside ? taps[r * kWinogradTaps + s] : 0.0f;
    transform_filter_line<Across>(line, rows[r]);
  }
  UNROLL
  for (int j = 0; j < kColumns; ++j) {
    const double line[kWinogradTaps] = {rows[0][j], rows[1][j], rows[2][j]};
    double column[kRows];
    transform_filter_line<Down>(line, column);
    UNROLL
    for (int r = 0; r < kRows; ++r) u[(r * kColumns + j) * p.channels * p.filters + i] = static_cast<float>(column[r]);
  }
}

// 2.
template <class Down, class Across, bool InZeros>
__global__ void __launch_bounds__(kThreads) transform_inputs(const float* input,  // [batch][height][width][channels]
                                                             float* v,            // [position][tile / 4][channel][4]
                                                             Plan p) {
  constexpr int kRows = kTileSize<Down>, kColumns = kTileSize<Across>;
  const Winograd& w = p.w;
  const unsigned i = blockIdx.x * kThreads + threadIdx.x;  // of the elements at a position
  const int c = static_cast<int>(i / 4 % p.by_channels), t = static_cast<int>(i / 4 / p.by_channels * 4 + i % 4);
  const bool exists = t < w.tiles && c < w.channels;
  const TilePlace place = place_of(w, min(t, w.tiles - 1));
  const auto index = [&](int i, int size, int pad) {
    if constexpr (InZeros) return static_cast<unsigned>(i) < static_cast<unsigned>(size) ? i : -1;
    return tile_index(i, size, pad, w.padding);
  };
  int columns[kColumns];  // where they begin in a row of pixels; negative where they are zeros
  UNROLL
  for (int x = 0; x < kColumns; ++x)
    columns[x] = exists ? index(place.column - w.pad_x + x, w.width, w.pad_x) * w.channels : -1;
  const float* channel = input + place.image * w.height * w.width * w.channels + c;
  float tile[kRows][kColumns];
  UNROLL
  for (int y = 0; y < kRows; ++y) {
    const int row = index(place.row - w.pad_y + y, w.height, w.pad_y);
    const float* pixels = channel + row * w.width * w.channels;
    UNROLL
    for (int x = 0; x < kColumns; ++x) tile[y][x] = row >= 0 && columns[x] >= 0 ? pixels[columns[x]] : 0.0f;
  }
  UNROLL
  for (int x = 0; x < kColumns; ++x) {
    float line[kRows], column[kRows];
    UNROLL
    for (int y = 0; y < kRows; ++y) line[y] = tile[y][x];
    transform_input_line<Down>(line, column);
    UNROLL
    for (int y = 0; y < kRows; ++y) tile[y][x] = column[y];
  }
  float* to = v + i;
  UNROLL
  for (int y = 0; y < kRows; ++y) {
    float row[kColumns];
    transform_input_line<Across>(tile[y], row);
    UNROLL
    for (int x = 0; x < kColumns; ++x, to += p.tiles * p.channels) *to = row[x];
  }
}

__device__ __forceinline__ void unpack(const float4& v, float* values) {
  values[0] = v.x;
  values[1] = v.y;
  values[2] = v.z;
  values[3] = v.w;
}

// 3.
__global__ void __launch_bounds__(kThreads, 4) multiply(const float* u,  // [position][filter block][channel][64]
                                                        const float* v,  // [position][tile / 4][channel][4]
                                                        float* m,        // [position][tile][filter]
                                                        Plan p) {
  __shared__ __align__(16) float tile_buffers[kBuffers][kQuads][kQuadPitch];  // [..][quad][channel][4]
  __shared__ __align__(16) float filter_buffers[kBuffers][kDepth][kFilters];
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  // Blocks with the same tiles and other filters are neighbours; then other tiles, then other positions.
  const int filter_blocks = p.filters / kFilters, filter_block = static_cast<int>(blockIdx.x) % filter_blocks;
  const int tile_blocks = p.tiles / kTiles, row = static_cast<int>(blockIdx.x) / filter_blocks;
  const int first_tile = row % tile_blocks * kTiles, position = row / tile_blocks;

  // 4.
  constexpr int kCopiedTogether = kThreads / kDepth;  // quads
  const int copied_quad = thread / kDepth, copied_channel = thread % kDepth;
  const float* tiles = v + (position * p.tiles + first_tile + 4 * copied_quad) * p.channels + 4 * copied_channel;
  const float* filters = u + (position * filter_blocks + filter_block) * p.channels * kFilters + 4 * thread;
  const auto start_copies = [&](int buffer) {
    UNROLL
    for (int i = 0; i < kQuads / kCopiedTogether; ++i)
      copy_async<16>(&tile_buffers[buffer][copied_quad + i * kCopiedTogether][4 * copied_channel],
                     tiles + i * kCopiedTogether * 4 * p.channels);
    UNROLL
    for (int i = 0; i < kDepth * kFilters / 4 / kThreads; ++i)
      copy_async<16>(&filter_buffers[buffer][0][0] + 4 * (thread + i * kThreads), filters + 4 * i * kThreads);
    tiles += 4 * kDepth;
    filters += kDepth * kFilters;
  };

  // The thread's tiles are those of quads y and y + 4, its filters four from x on and four from x + 32 on. Of eight
  // lanes that read 16 bytes at a time, two have different quads, and four different filters.
  const int y = warp * 8 + (lane / 2 % 2 + lane / 16 * 2), x = 4 * (lane % 2 + lane / 4 % 4 * 2);
  float sums[8][8] = {};
  float4 down[2][2], across[2][2];
  const auto fetch = [&](int buffer, int c) {
    UNROLL
    for (int half = 0; half < 2; ++half) {
      down[c % 2][half] = *reinterpret_cast<const float4*>(&tile_buffers[buffer][y + 4 * half][4 * c]);
      across[c % 2][half] = *reinterpret_cast<const float4*>(&filter_buffers[buffer][c][x + 32 * half]);
    }
  };
  const auto multiply_add = [&](int c) {
    float a[8], b[8];
    UNROLL
    for (int half = 0; half < 2; ++half) {
      unpack(down[c % 2][half], a + 4 * half);
      unpack(across[c % 2][half], b + 4 * half);
    }
    UNROLL
    for (int i = 0; i < 8; ++i) {
      UNROLL
      for (int column = 0; column < 8; ++column) {
        const int j = i % 2 ? 7 - column : column;  // there and back: the last filter is used again
        sums[i][j] += a[i] * b[j ^ 1];
      }
    }
  };

  const int steps = p.channels / kDepth;
  UNROLL
  for (int step = 0; step < kBuffers - 1; ++step) {
    if (step < steps) start_copies(step);
    commit_copies();
  }
  wait_copies<kBuffers - 2>();
  __syncthreads();
  fetch(0, 0);
  int reading = 0, writing = kBuffers - 1;
  UNROLL_BY(1)
  for (int step = 0; step < steps; ++step) {
    if (step + kBuffers - 1 < steps) start_copies(writing);
    commit_copies();
    UNROLL
    for (int c = 0; c + 1 < kDepth; ++c) {
      fetch(reading, c + 1);
      multiply_add(c);
    }
    reading = reading + 1 == kBuffers ? 0 : reading + 1;
    writing = writing + 1 == kBuffers ? 0 : writing + 1;
    if (step + 1 < steps) {
      wait_copies<kBuffers - 2>();
      __syncthreads();  // the next step's buffer is everybody's, and nobody reads this one's any more
      fetch(reading, 0);
    }
    multiply_add(kDepth - 1);
  }

  float* to = m + (position * p.tiles + first_tile + 4 * y) * p.filters + filter_block * kFilters + x;
  UNROLL
  for (int i = 0; i < 8; ++i) {
    UNROLL
    for (int half = 0; half < 2; ++half)
      *reinterpret_cast<float4*>(to + (i / 4 * 16 + i % 4) * p.filters + 32 * half) =
          make_float4(sums[i][4 * half], sums[i][4 * half + 1], sums[i][4 * half + 2], sums[i][4 * half + 3]);
  }
}

// 5.
template <class Down, class Across>
__global__ void __launch_bounds__(kThreads) transform_outputs(const float* m,  // [position][tile][filter]
                                                              float* output,  // [batch][out_height][out_width][filters]
                                                              Plan p) {
  constexpr int kRows = kTileSize<Down>, kColumns = kTileSize<Across>;
  constexpr int kOutputRows = kTileOutputs<Down>, kOutputColumns = kTileOutputs<Across>;
  const Winograd& w = p.w;
  const unsigned i = blockIdx.x * kThreads + threadIdx.x;
  const int k = static_cast<int>(i % p.by_filters), t = static_cast<int>(i / p.by_filters);
  if (t >= w.tiles) return;
  const float* from = m + t * p.filters + k;
  float sums[kRows][kColumns];
  UNROLL
  for (int y = 0; y < kRows; ++y) {
    UNROLL
    for (int x = 0; x < kColumns; ++x, from += p.tiles * p.filters) sums[y][x] = *from;
  }
  float rows[kRows][kOutputColumns];
  UNROLL
  for (int y = 0; y < kRows; ++y) transform_output_line<Across>(sums[y], rows[y]);
  const TilePlace place = place_of(w, t);
  float* to = output + ((place.image * w.out_height + place.row) * w.out_width + place.column) * w.filters + k;
  UNROLL
  for (int x = 0; x < kOutputColumns; ++x) {
    float line[kRows], column[kOutputRows];
    UNROLL
    for (int y = 0; y < kRows; ++y) line[y] = rows[y][x];
    transform_output_line<Down>(line, column);
    UNROLL
    for (int y = 0; y < kOutputRows; ++y)
      if (place.row + y < w.out_height && place.column + x < w.out_width)
        to[(y * w.out_width + x) * w.filters] = column[y];
  }
}

// ---- The launches ---------------------------------------------------------------------------------------------------

int positions_of(const Plan& p) { return (p.w.m + 2) * (p.w.m_across + 2); }
std::int64_t filter_elements(const Plan& p) { return std::int64_t{positions_of(p)} * p.channels * p.filters; }
std::int64_t input_elements(const Plan& p) { return std::int64_t{positions_of(p)} * p.tiles * p.channels; }
std::int64_t sum_elements(const Plan& p) { return std::int64_t{positions_of(p)} * p.tiles * p.filters; }
std::int64_t blocks_of(const Plan& p) { return sum_elements(p) / (kTiles * kFilters); }

template <class Down, class Across>
void launch_filters(const float* filter, float* u, const Plan& p, Stream stream) {
  launch(transform_filters<Down, Across>, dim3(blocks_for(p.channels * p.filters, kThreads)), dim3(kThreads), 0,
         stream)(filter, u, p);
}

// 2. to 5.
template <class Down, class Across>
void launch_convolution(const float* input, const float* u, float* v, float* m, float* output, const Plan& p,
                        Stream stream) {
  const auto transform =
      p.w.padding == Padding::zero ? transform_inputs<Down, Across, true> : transform_inputs<Down, Across, false>;
  launch(transform, dim3(p.tiles * p.channels / kThreads), dim3(kThreads), 0, stream)(input, v, p);
  launch(multiply, dim3(static_cast<unsigned>(blocks_of(p))), dim3(kThreads), 0, stream)(u, v, m, p);
  launch(transform_outputs<Down, Across>, dim3(blocks_for(p.w.tiles * p.w.filters, kThreads)), dim3(kThreads), 0,
         stream)(m, output, p);
}

}  // namespace
}  // namespace convladder
