// 09 register-2d: many outputs of a thread, in registers.
//
// Since 07: a thread computes 16 or 32 outputs instead of one, so that what it has read serves all of them. Two walls
// stand in the way, so there are two kernels, each with an idea of its own:
//
//   small_filter, for 3x3, 5x5 and 7x7: the wall is bandwidth. Pixels come by 16-byte loads and stay in registers; what
//     a lane needs of its neighbours' pixels, they lend. No shared memory, no barrier.
//   large_filter, for all others: the wall is the multiply-add unit. Nothing else should take its issue slots: a read
//     from shared memory serves as many multiply-adds as registers allow.
//
// Pixels are floats. The same kernels filter pictures, whose pixels are bytes: bytes.cuh has what differs.
#pragma once
#include "chapters/09-register-2d/bytes.cuh"
#include "common/kernel/border.hpp"
#include "common/kernel/tracks/byte_images.hpp"
#include "common/kernel/tracks/image.hpp"

namespace convladder {
namespace {

constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffffu;
constexpr int kFour = 4;  // columns of one access: 16 bytes

__constant__ float c_filter[kMaxFilterTaps];

// Floats are read and stored as they are. The outputs' scale is for bytes (bytes.cuh).
__device__ __forceinline__ float4 load_four(const float* p) { return *reinterpret_cast<const float4*>(p); }
__device__ __forceinline__ void store(float* p, float sum, float) { *p = sum; }
__device__ __forceinline__ void store_four(float* p, float a, float b, float c, float d, float) {
  *reinterpret_cast<float4*>(p) = make_float4(a, b, c, d);
}

// ---- Small filters: the wall is bandwidth ---------------------------------------------------------------------------
//
//   1. A lane owns 4 columns and 4 rows of outputs. It asks for each row of its strip by one 16-byte load, for all of
//      them before the first is used.
//   2. What a window needs beside the lane's own 4 columns the neighbouring lanes hold: shuffles bring it. So the first
//      and the last lane only lend theirs, and a warp stores 120 of the 128 columns that it loads.
//   3. A row is added to every output that needs it, and then is done with. Results leave by 16-byte stores.

constexpr int kStripRows = 4;   // outputs of a thread, down
constexpr int kStripWarps = 4;  // of a block, one below the other
constexpr int kStripHeight = kStripWarps * kStripRows;
constexpr int kStripWidth = (kWarp - 2) * kFour;  // outputs of a block, across
// Blocks that a multiprocessor must hold: keeps registers few, 48 or 64 a thread.
constexpr int strip_blocks(int rows) { return rows < 7 ? 10 : 8; }

// The input's index at a position, or -1 where it reads zero and where no output needs it.
__device__ __forceinline__ int index_at(int position, int size, int pad, Padding padding) {
  return position < -pad || position >= size + pad ? -1 : border_index(position, size, padding);
}

// What a strip asks L2 for on behalf of later blocks: nothing. ahead.cuh has images for which it does.
template <class Pixel>
__device__ __forceinline__ void ask_ahead(const Pixel*, const Image&, int, int) {}

template <int kRows, int kColumns, class Pixel, class Images, int kBlocks = strip_blocks(kRows)>
__global__ void __launch_bounds__(kWarp* kStripWarps, kBlocks)
    small_filter(const Pixel* input,  // [batch][height][width]
                 Pixel* output,       // [batch][out_height][width]
                 Images image, float scale) {
  constexpr int kPad = (kColumns - 1) / 2, kCount = kStripRows + kRows - 1;
  const BlockTile tile = block_tile(image, kStripHeight, kStripWidth);
  const int lane = threadIdx.x;
  const int y = tile.y + kStripRows * threadIdx.y, x = tile.x + kFour * (lane - 1);
  if (tile.image >= image.batch || y >= image.out_height) return;
  const Pixel* in = input + tile.image * input_pixels(image);
  Pixel* out = output + tile.image * output_pixels(image);

  // 1. A branch that a whole warp takes together.
  float own[kCount][kFour];
  const int first_y = y - image.pad_y, first_x = tile.x - kFour;
  if (first_y >= 0 && first_y + kCount <= image.height && first_x >= 0 && first_x + kWarp * kFour <= image.width) {
    const Pixel* row = in + static_cast<std::int64_t>(first_y) * image.width + x;
    UNROLL
    for (int i = 0; i < kCount; ++i) {
      const float4 four = load_four(row);
      own[i][0] = four.x;
      own[i][1] = four.y;
      own[i][2] = four.z;
      own[i][3] = four.w;
      row += image.width;
    }
  } else {
    int columns[kFour];
    UNROLL
    for (int e = 0; e < kFour; ++e) columns[e] = index_at(x + e, image.width, image.pad_x, image.padding);
    UNROLL
    for (int i = 0; i < kCount; ++i) {
      const int j = index_at(first_y + i, image.height, image.pad_y, image.padding);
      const Pixel* row = in + static_cast<std::int64_t>(j) * image.width;
      UNROLL
      for (int e = 0; e < kFour; ++e) own[i][e] = j >= 0 && columns[e] >= 0 ? row[columns[e]] : 0.0f;
    }
  }

  ask_ahead(in, image, y, x);

  float sum[kStripRows][kFour] = {};
  UNROLL
  for (int i = 0; i < kCount; ++i) {
    // 2. kPad columns of the lane on the left, the thread's own 4, kPad of the lane on the right.
    float window[kFour + 2 * kPad];
    UNROLL
    for (int e = 0; e < kFour; ++e) window[kPad + e] = own[i][e];
    UNROLL
    for (int e = 0; e < kPad; ++e) {
      window[e] = __shfl_up_sync(kAllLanes, own[i][kFour - kPad + e], 1);
      window[kPad + kFour + e] = __shfl_down_sync(kAllLanes, own[i][e], 1);
    }
    // 3. Row i of the strip is row i - v of output v's window.
    UNROLL
    for (int v = 0; v < kStripRows; ++v) {
      if (i < v || i - v >= kRows) continue;
      UNROLL
      for (int s = 0; s < kColumns; ++s) {
        UNROLL
        for (int e = 0; e < kFour; ++e) sum[v][e] += window[s + e] * c_filter[(i - v) * kColumns + s];
      }
    }
  }
  if (lane == 0 || lane == kWarp - 1 || x >= image.width) return;
  UNROLL
  for (int v = 0; v < kStripRows; ++v) {
    if (y + v < image.out_height)
      store_four(out + static_cast<std::int64_t>(y + v) * image.width + x, sum[v][0], sum[v][1], sum[v][2], sum[v][3],
                 scale);
  }
}

// Which filters and images small_filter takes: "same" padding across, rows of whole vectors.
bool is_small(const Image& image) {
  return image.rows == image.columns && (image.columns == 3 || image.columns == 5 || image.columns == 7) &&
         image.pad_x == (image.columns - 1) / 2 && image.width % kFour == 0;
}

template <class Pixel, class Images>
void launch_small(const Pixel* input, Pixel* output, const Images& image, float scale, Stream stream) {
  const auto start = [&](auto kernel) {
    launch(kernel, image_grid(image, kStripHeight, kStripWidth), dim3(kWarp, kStripWarps), 0, stream)(input, output,
                                                                                                      image, scale);
  };
  switch (image.columns) {
    case 3:
      return start(small_filter<3, 3, Pixel, Images>);
    case 5:
      return start(small_filter<5, 5, Pixel, Images>);
    default:
      return start(small_filter<7, 7, Pixel, Images>);
  }
}

// ---- Large filters: the wall is the multiply-add unit ---------------------------------------------------------------
//
//   1. The block stages a tile of 32 x 256 outputs with its halo in shared memory.
//   2. A thread owns 16 columns and 2 rows. For each row of the filter it reads its 2 windows 16 bytes at a time: with
//      11 columns 14 loads serve 11 taps of 32 outputs, and a weight serves 32 outputs.
//   3. Results leave through shared memory, so that a warp stores 32 neighbours at a time, wherever rows begin.

// A warp is 2 lanes across and 16 down.
constexpr int kLanesX = 2, kLanesY = 16;
constexpr int kTileWarps = 8;         // of a block, side by side
constexpr int kWide = 16, kTall = 2;  // outputs of a thread; its rows are kLanesY apart
constexpr int kTileWidth = kTileWarps * kLanesX * kWide;
constexpr int kTileHeight = kLanesY * kTall;
constexpr int kGroup = 16;  // taps that a filter of any size takes at once

// Floats from one staged row to the next: to the end of the last thread's last 16-byte read, and such that the 8 lanes
// that one pass over the banks serves, some across (kWide words apart) and some down, meet 8 different groups of 4
// banks.
__host__ __device__ constexpr int tile_pitch(int columns) {
  const int needed = kTileWidth - kWide + (kWide + columns - 1 + 3) / 4 * 4;
  return (needed - 4 + kWide - 1) / kWide * kWide + 4;
}

// Adds kTaps taps of one filter row. `staged` is where the thread's first window begins; kLanesY rows further down, the
// next one.
template <int kTaps>
__device__ __forceinline__ void add_taps(float (&sum)[kTall][kWide], const float* staged, int pitch,
                                         const float* taps) {
  constexpr int kVectors = (kWide + kTaps - 1 + 3) / 4;
  float window[kTall][4 * kVectors];
  UNROLL
  for (int u = 0; u < kVectors; ++u) {
    UNROLL
    for (int v = 0; v < kTall; ++v) {
      const float4 four = load_four(staged + v * kLanesY * pitch + 4 * u);
      window[v][4 * u] = four.x;
      window[v][4 * u + 1] = four.y;
      window[v][4 * u + 2] = four.z;
      window[v][4 * u + 3] = four.w;
    }
  }
  UNROLL
  for (int t = 0; t < kTaps; ++t) {
    const float tap = taps[t];
    UNROLL
    for (int v = 0; v < kTall; ++v) {
      UNROLL
      for (int e = 0; e < kWide; ++e) sum[v][e] += window[v][t + e] * tap;
    }
  }
}

// kColumns: of the filter, or 0 to take it from `image`.
template <int kColumns, class Pixel, class Images>
__global__ void __launch_bounds__(kWarp* kTileWarps) large_filter(const Pixel* input,  // [batch][height][width]
                                                                  Pixel* output,       // [batch][out_height][out_width]
                                                                  Images image, float scale) {
  if (kColumns > 0) image.columns = kColumns;
  float* staged = dynamic_shared<float>();  // [kTileHeight + rows - 1][pitch]
  const int pitch = tile_pitch(image.columns);
  const BlockTile tile = block_tile(image, kTileHeight, kTileWidth);
  if (tile.image >= image.batch) return;
  const Pixel* in = input + tile.image * input_pixels(image);

  // 1.
  const int lane = threadIdx.x;
  const int first_y = tile.y - image.pad_y, first_x = tile.x - image.pad_x;
  const int staged_rows = kTileHeight + image.rows - 1, staged_columns = kTileWidth + image.columns - 1;
  if (first_y >= 0 && first_y + staged_rows <= image.height && first_x >= 0 &&
      first_x + staged_columns <= image.width) {  // no index needs a look
    constexpr int kLoads = (tile_pitch(kColumns > 0 ? kColumns : kMaxFilterSide) + kWarp - 1) / kWarp;
    for (int r = threadIdx.y; r < staged_rows; r += kTileWarps) {
      const Pixel* row = in + static_cast<std::int64_t>(first_y + r) * image.width + first_x;
      float held[kLoads];  // all on their way before one is waited for
      UNROLL
      for (int u = 0; u < kLoads; ++u) held[u] = lane + u * kWarp < staged_columns ? row[lane + u * kWarp] : 0.0f;
      UNROLL
      for (int u = 0; u < kLoads; ++u)
        if (lane + u * kWarp < pitch) staged[r * pitch + lane + u * kWarp] = held[u];
    }
  } else {  // zeros where no output needs a pixel
    const int needed_y = min(kTileHeight, image.out_height - tile.y) + image.rows - 1;
    const int needed_x = min(kTileWidth, image.out_width - tile.x) + image.columns - 1;
    for (int r = threadIdx.y; r < staged_rows; r += kTileWarps) {
      const int i = r < needed_y ? border_index(first_y + r, image.height, image.padding) : -1;
      const Pixel* row = in + static_cast<std::int64_t>(i) * image.width;
      UNROLL_BY(4)
      for (int t = lane; t < pitch; t += kWarp) {
        const int j = t < needed_x ? border_index(first_x + t, image.width, image.padding) : -1;
        staged[r * pitch + t] = i < 0 || j < 0 ? 0.0f : row[j];
      }
    }
  }
  __syncthreads();

  // 2.
  const int lane_x = lane % kLanesX, lane_y = lane / kLanesX;
  const int own_x = (threadIdx.y * kLanesX + lane_x) * kWide;
  float sum[kTall][kWide] = {};
  for (int r = 0; r < image.rows; ++r) {
    const float* window = staged + (lane_y + r) * pitch + own_x;
    const float* taps = c_filter + r * image.columns;
    if (kColumns > 0) {
      add_taps<(kColumns > 0 ? kColumns : 1)>(sum, window, pitch, taps);
      continue;
    }
    int s = 0;
    for (; s + kGroup <= image.columns; s += kGroup) add_taps<kGroup>(sum, window + s, pitch, taps + s);
    if (s + 8 <= image.columns) {
      add_taps<8>(sum, window + s, pitch, taps + s);
      s += 8;
    }
    for (; s + 4 <= image.columns; s += 4) add_taps<4>(sum, window + s, pitch, taps + s);
    if (s + 3 == image.columns) add_taps<3>(sum, window + s, pitch, taps + s);
    if (s + 2 == image.columns) add_taps<2>(sum, window + s, pitch, taps + s);
    if (s + 1 == image.columns) add_taps<1>(sum, window + s, pitch, taps + s);
  }

  // 3. Through shared memory, so that a warp stores 32 neighbours at a time, wherever rows begin.
  __syncthreads();
  UNROLL
  for (int v = 0; v < kTall; ++v) {
    float4* own = reinterpret_cast<float4*>(staged + (lane_y + v * kLanesY) * pitch + own_x);
    UNROLL
    for (int e = 0; e < kWide; e += kFour)
      own[e / kFour] = make_float4(sum[v][e], sum[v][e + 1], sum[v][e + 2], sum[v][e + 3]);
  }
  __syncthreads();
  const int tile_height = min(kTileHeight, image.out_height - tile.y);
  const int tile_width = min(kTileWidth, image.out_width - tile.x);
  Pixel* out =
      output + tile.image * output_pixels(image) + static_cast<std::int64_t>(tile.y) * image.out_width + tile.x;
  for (int r = threadIdx.y; r < tile_height; r += kTileWarps) {
    Pixel* row = out + static_cast<std::int64_t>(r) * image.out_width;
    UNROLL
    for (int u = 0; u < kTileWidth / kWarp; ++u) {
      const int t = lane + u * kWarp;
      if (t < tile_width) store(row + t, staged[r * pitch + t], scale);
    }
  }
}

std::size_t tile_bytes(const Image& image) {
  return static_cast<std::size_t>(kTileHeight + image.rows - 1) * tile_pitch(image.columns) * sizeof(float);
}

template <class Pixel, class Images>
void launch_large(const Pixel* input, Pixel* output, const Images& image, float scale, Stream stream) {
  const auto start = [&](auto kernel) {
    launch(kernel, image_grid(image, kTileHeight, kTileWidth), dim3(kWarp, kTileWarps), tile_bytes(image), stream)(
        input, output, image, scale);
  };
  switch (image.columns) {
    case 3:
      return start(large_filter<3, Pixel, Images>);
    case 5:
      return start(large_filter<5, Pixel, Images>);
    case 7:
      return start(large_filter<7, Pixel, Images>);
    case 9:
      return start(large_filter<9, Pixel, Images>);
    case 11:
      return start(large_filter<11, Pixel, Images>);
    case 15:
      return start(large_filter<15, Pixel, Images>);
    case 31:
      return start(large_filter<31, Pixel, Images>);
    default:
      return start(large_filter<0, Pixel, Images>);
  }
}

// ---- As functions ---------------------------------------------------------------------------------------------------

// Images: Image; or what lesson 42 derives from it, of which a launch makes some tiles alone.
template <class Pixel, class Images>
void launch_register_2d(const Pixel* input, Pixel* output, const Images& image, float scale, Stream stream) {
  if (is_small(image))
    launch_small(input, output, image, scale, stream);
  else
    launch_large(input, output, image, scale, stream);
}

// The rule of both kernels.
inline Verdict check_register_2d(const ConvProblem& problem, const DeviceLimits& limits) {
  const Verdict verdict = check_image(problem);
  if (!verdict.accepted()) return verdict;
  const auto bytes = static_cast<std::int64_t>(tile_bytes(image_of(problem)));
  if (bytes > limits.shared_bytes_per_block)
    return Verdict::refuse("the tile needs {} bytes of shared memory, a block has {}; got r={}, s={}", bytes,
                           limits.shared_bytes_per_block, problem.r, problem.s);
  return verdict;
}

// Along one dimension: elements that are loaded if every `outputs` outputs load their windows and `more` on either
// side.
inline std::int64_t reads_by_strips(const Axis& axis, std::int64_t outputs, std::int64_t more) {
  std::int64_t reads = 0;
  for (std::int64_t start = 0; start < axis.out_size; start += outputs) {
    std::int64_t begin = start - axis.pad - more, end = start - axis.pad + outputs + axis.taps - 1 + more;
    if (begin < -axis.pad) begin = -axis.pad;
    if (end > axis.size + axis.pad) end = axis.size + axis.pad;
    reads += reads_of_range(axis, begin, end - begin);
  }
  return reads;
}

// What one launch moves and computes.
inline Prediction predict_register_2d(const ConvProblem& problem) {
  const Image image = image_of(problem);
  Prediction p;
  p.global_store_bytes = problem.output_size() * 4;
  p.shared_load_conflicts = p.shared_store_conflicts = 0;
  p.flops = problem.flops();
  const std::int64_t blocks = static_cast<std::int64_t>(image_grid(image, kTileHeight, kTileWidth).x) * image.batch;
  if (is_small(image)) {
    p.global_load_bytes = reads_by_strips(vertical(image), kStripRows, 0) *
                          reads_by_strips(horizontal(image), kStripWidth, kFour - image.pad_x) * image.batch * 4;
    p.shared_load_requests = p.barriers = 0;
    return p;
  }
  // Each tile loads what it needs once.
  p.global_load_bytes = reads_by_tile(image, kTileHeight, kTileWidth) * 4;
  p.barriers = 3 * blocks;
  p.constant_load_requests = blocks * kTileWarps * problem.filter_size();
  return p;
}

}  // namespace
}  // namespace convladder
