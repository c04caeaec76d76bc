// 08 separable, both passes in one kernel: the row sums stay in shared memory (fused=yes).
//
// A block goes down a strip of 128 columns, 32 rows at a time. Global memory sees the input and the output, and no
// image between them.
//
//      32 rows of input, and a halo        the last rows of sums             outputs
//      +------------------------+          +-----------------+
//      |         pixels         |   rows   |                 |  columns  +-----------------+
//      +------------------------+  ----->  |       sums      |  ------>  |                 |
//      |   the next, on its way |          |                 |           +-----------------+
//      +------------------------+          +-----------------+
//            128 + columns - 1                    128                           128
//
//   1. The pixels of the next 32 rows are on their way, by cp.async, while the block sums.
//   2. Rows: a thread sums 16 neighbours of one row. The lanes of a warp are below each other: the pitch of the rows
//   puts
//      the 16 bytes that 8 of them read at once on different banks.
//   3. Columns: a thread sums 16 outputs of one column, the lanes are side by side. Output rows lag behind the input,
//   by
//      as many times 32 rows as the column of the filter needs; so many sums are kept, and the oldest overwritten.
//
// A strip is cut into segments, so that all multiprocessors have some. Each begins with rows of sums that the one above
// has made too.
#pragma once
#include "chapters/08-separable/separable.cuh"
#include "common/kernel/tracks/tap_count.hpp"

namespace convladder {
namespace {

constexpr int kStrip = 128;     // columns of a block
constexpr int kBand = 32;       // rows that it loads and sums at a time
constexpr int kFusedEach = 16;  // outputs of a thread, in either pass
constexpr int kFusedThreads = kStrip * kBand / kFusedEach;
constexpr int kFusedWarps = kFusedThreads / 32;
constexpr int kFusedBlocks = 2;                                    // of a multiprocessor
constexpr int kHalves = kBand / kFusedEach;                        // a band of sums is two times 16 rows
constexpr int kGap = 4;                                            // pitches are 4 more than a multiple of 32
constexpr int kSumPitch = kStrip + kGap;                           // floats from one row of sums to the next
constexpr int kPixelRounds = (kStrip + kMaxFilterSide + 31) / 32;  // loads of a lane in a row, at most

// Pixels of a row that are staged: to the end of the last thread's last 16-byte read.
__host__ __device__ constexpr int staged_pixels(int columns) {
  return kStrip - kFusedEach + (kFusedEach + columns - 1 + 3) / 4 * 4;
}
// Floats from one staged row to the next.
__host__ __device__ constexpr int pixel_pitch(int columns) {
  return (staged_pixels(columns) - kGap + 31) / 32 * 32 + kGap;
}
// By how many bands the outputs lag behind the input.
__host__ __device__ constexpr int lag_of(int rows) { return (rows - 1 + kBand - 1) / kBand; }

constexpr std::int64_t fused_bytes(int rows, int columns) {
  return static_cast<std::int64_t>(sizeof(float)) *
         (2 * kBand * pixel_pitch(columns) + (lag_of(rows) + 1) * kBand * kSumPitch);
}

// 2. Adds taps [first, first + kTaps) to 16 neighbours of a row; `first` is a multiple of 16.
template <int kTaps>
__device__ __forceinline__ void add_to_row(float (&sum)[kFusedEach], const float* pixels, int first) {
  constexpr int kVectors = (kFusedEach + kTaps - 1 + 3) / 4;
  float window[4 * kVectors];
  UNROLL
  for (int u = 0; u < kVectors; ++u) {
    const float4 four = reinterpret_cast<const float4*>(pixels + first)[u];
    window[4 * u] = four.x;
    window[4 * u + 1] = four.y;
    window[4 * u + 2] = four.z;
    window[4 * u + 3] = four.w;
  }
  UNROLL
  for (int t = 0; t < kTaps; ++t) {
    UNROLL
    for (int e = 0; e < kFusedEach; ++e) sum[e] += window[t + e] * c_row[first + t];
  }
}

// 16 rows of sums in a column.
struct Column {
  float rows[kFusedEach];
};
template <int kCount>
__device__ __forceinline__ Column read_column(const float* sums) {
  Column column;
  UNROLL
  for (int v = 0; v < kCount; ++v) column.rows[v] = sums[v * kSumPitch];
  return column;
}

// 3. The same for 16 outputs of a column. They meet 16 rows of sums, and up to 15 of the next 16.
template <int kTaps>
__device__ __forceinline__ void add_to_column(float (&sum)[kFusedEach], const Column& upper, const Column& lower,
                                              int first) {
  UNROLL
  for (int t = 0; t < kTaps; ++t) {
    UNROLL
    for (int v = 0; v < kFusedEach; ++v)
      sum[v] += (t + v < kFusedEach ? upper.rows[t + v] : lower.rows[t + v - kFusedEach]) * c_column[first + t];
  }
}

// kSide: rows and columns of the filter, or 0 to take them from `image`.
template <int kSide>
__global__ void __launch_bounds__(kFusedThreads, kFusedBlocks)
    convolve_both(const float* input,  // [batch][height][width]
                  float* output,       // [batch][out_height][out_width]
                  Image image,
                  int segment) {  // rows of outputs of a block
  if (kSide > 0) image.rows = image.columns = kSide;
  const BlockTile tile = block_tile(image, segment, kStrip);
  if (tile.image >= image.batch) return;
  const int staged = staged_pixels(image.columns), pitch = pixel_pitch(image.columns);
  const int lag = lag_of(image.rows), halves = (lag + 1) * kHalves;
  float* pixels = dynamic_shared<float>();   // [2][kBand][pitch]
  float* sums = pixels + 2 * kBand * pitch;  // [lag + 1][kBand][kSumPitch]
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const float* in = input + tile.image * input_pixels(image);

  // 1. The columns that the lane loads are the same in every row; -1 where they read zero, and where no output needs
  // them.
  const int tile_height = min(segment, image.out_height - tile.y), tile_width = min(kStrip, image.out_width - tile.x);
  const int needed_rows = tile_height + image.rows - 1, needed_columns = tile_width + image.columns - 1;
  const bool whole = tile.x >= image.pad_x && tile.x - image.pad_x + kStrip + image.columns - 1 <= image.width &&
                     tile_width == kStrip;  // every column is one of the input
  const auto start = [&](int band) {
    const int first = band * kBand, top = tile.y - image.pad_y + first;
    float* to = pixels + (band % 2 * kBand + warp) * pitch + lane;
    if (whole && top >= 0 && top + kBand <= image.height && first + kBand <= needed_rows) {  // no index needs a look
      const float* row = in + static_cast<std::int64_t>(top + warp) * image.width + tile.x - image.pad_x + lane;
      UNROLL
      for (int r = 0; r < kBand; r += kFusedWarps) {
        UNROLL
        for (int u = 0; u < kPixelRounds; ++u)
          if (lane + 32 * u < staged)
            copy_async<4>(to + r * pitch + 32 * u, row + 32 * u, lane + 32 * u < kStrip + image.columns - 1);
        row += kFusedWarps * static_cast<std::int64_t>(image.width);
      }
    } else {
      UNROLL_BY(1)
      for (int r = 0; r < kBand; r += kFusedWarps) {
        const int below = first + warp + r;
        const int i = below < needed_rows ? border_index(top + warp + r, image.height, image.padding) : -1;
        const float* row = in + static_cast<std::int64_t>(i) * image.width;
        UNROLL_BY(1)
        for (int t = lane; t < staged; t += 32) {
          const int j = t < needed_columns ? border_index(tile.x - image.pad_x + t, image.width, image.padding) : -1;
          copy_async<4>(to + r * pitch + t - lane, row + j, i >= 0 && j >= 0);
        }
      }
    }
    commit_copies();
  };

  const int bands = (tile_height + kBand - 1) / kBand;
  start(0);
  UNROLL_BY(1)
  for (int band = 0; band < bands + lag; ++band) {
    wait_copies<0>();
    __syncthreads();  // this band's pixels are there, and the sums of the band that is overwritten now are done with
    if (band + 1 < bands + lag) start(band + 1);

    // 2. Rows.
    {
      const float* own = pixels + (band % 2 * kBand + lane) * pitch + warp * kFusedEach;
      float sum[kFusedEach] = {};
      int t = 0;
      for (; t + 16 <= image.columns; t += 16) add_to_row<16>(sum, own, t);
      with_rest<15>(image.columns - t, [&](auto rest) { add_to_row<decltype(rest)::kTaps>(sum, own, t); });
      float4* to = reinterpret_cast<float4*>(sums + (band % (lag + 1) * kBand + lane) * kSumPitch + warp * kFusedEach);
      UNROLL
      for (int e = 0; e < kFusedEach; e += 4) to[e / 4] = make_float4(sum[e], sum[e + 1], sum[e + 2], sum[e + 3]);
    }
    __syncthreads();  // this band is summed

    // 3. Columns of the band that has all of its sums now.
    const int x = threadIdx.x % kStrip, half = threadIdx.x / kStrip, y = (band - lag) * kBand + half * kFusedEach;
    if (band < lag || x >= tile_width || y >= tile_height) continue;
    float sum[kFusedEach] = {};
    int at = ((band - lag) * kHalves + half) % halves;
    const auto next = [&] {
      const float* rows = sums + at * kFusedEach * kSumPitch + x;
      at = at + 1 == halves ? 0 : at + 1;
      return rows;
    };
    Column upper = read_column<kFusedEach>(next());
    int t = 0;
    for (; t + 16 <= image.rows; t += 16) {
      const Column lower = read_column<kFusedEach>(next());
      add_to_column<16>(sum, upper, lower, t);
      upper = lower;
    }
    with_rest<15>(image.rows - t, [&](auto rest) {
      constexpr int kTaps = decltype(rest)::kTaps;
      add_to_column<kTaps>(sum, upper, read_column<kTaps - 1>(next()), t);
    });
    float* out = output + tile.image * output_pixels(image) + static_cast<std::int64_t>(tile.y + y) * image.out_width +
                 tile.x + x;
    if (y + kFusedEach <= tile_height) {
      UNROLL
      for (int v = 0; v < kFusedEach; ++v, out += image.out_width) *out = sum[v];
    } else {
      UNROLL
      for (int v = 0; v < kFusedEach; ++v, out += image.out_width)
        if (y + v < tile_height) *out = sum[v];
    }
  }
}

// Rows of outputs of a block: such that all blocks together take the fewest steps of a band, if a multiprocessor has
// kFusedBlocks of them at a time.
int segment_of(const Image& image, int multiprocessors) {
  const std::int64_t strips = static_cast<std::int64_t>((image.out_width + kStrip - 1) / kStrip) * image.batch;
  const int all = (image.out_height + kBand - 1) / kBand;
  const std::int64_t at_once = static_cast<std::int64_t>(kFusedBlocks) * (multiprocessors > 0 ? multiprocessors : 1);
  constexpr int kMostBands = 64;
  int best = 1;
  std::int64_t fewest = INT64_MAX;
  for (int bands = 1; bands <= all && bands <= kMostBands; ++bands) {
    const std::int64_t waves = (strips * ((all + bands - 1) / bands) + at_once - 1) / at_once;
    const std::int64_t steps = waves * (bands + lag_of(image.rows));
    if (steps > fewest) continue;
    fewest = steps;
    best = bands;
  }
  return best * kBand;
}

void launch_both(const float* input, float* output, const Image& image, int segment, Stream stream) {
  const auto bytes = static_cast<std::size_t>(fused_bytes(image.rows, image.columns));
  const auto start = [&](auto kernel) {
    launch(kernel, image_grid(image, segment, kStrip), kFusedThreads, bytes, stream)(input, output, image, segment);
  };
  switch (image.rows == image.columns ? image.rows : 0) {
    case 3:
      return start(convolve_both<3>);
    case 5:
      return start(convolve_both<5>);
    case 7:
      return start(convolve_both<7>);
    case 9:
      return start(convolve_both<9>);
    case 11:
      return start(convolve_both<11>);
    case 31:
      return start(convolve_both<31>);
    default:
      return start(convolve_both<0>);
  }
}

}  // namespace
}  // namespace convladder
