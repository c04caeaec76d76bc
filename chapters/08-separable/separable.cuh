// 08 separable: two passes instead of one.
//
// Since 07: fewer operations. A filter of rank one is a column times a row, w[r][s] = column[r] * row[s], and then
//
//   y[i][j] = sum over r of column[r] * (sum over s of row[s] * x[i + r][j + s])
//
// The inner sum is a 1-D convolution of every row, the outer one of every column: rows + columns multiplications for a
// pixel instead of rows * columns. Between the two lies an intermediate image, which is written and read once more.
//
//   prepare: the filter is split, or refused (rank_one.cuh).
//   1. Rows: a block stages 2 rows of 256 outputs each with their halos; a thread sums 4 neighbours of each (as in 04).
//   2. Columns: a block stages 32 columns of 128 outputs with their halos; a thread sums 16 outputs of one column, 8
//      taps at a time, and reads each pixel once for all outputs that need it with these taps.
//
// Choices of the two passes, and the setting that changes each of them (`./lab run 8 --configuration rows=1`):
//
//   a. A thread of the row pass has 2 rows.                                     rows=1, rows=4
//   b. A block of the row pass has 64 threads, not four times as many.          threads=256
//   c. Their loads are all on their way before one is waited for, not four.     loads=in-turn
//   d. Indices are looked at where the image ends, not everywhere.              index=every
//   e. Column taps that are left over, fewer than 8, go in groups, not singly.  rest=single
//
// The README shows what they bring.

#pragma once
#include "common/kernel/border.hpp"
#include "common/kernel/tracks/image.hpp"

namespace convladder {
namespace {

// Pass 1.
constexpr int kRowThreads = 64;  // of a block, across
constexpr int kRowEach = 4;      // neighbouring outputs of a thread: a float4
constexpr int kRowTile = kRowThreads * kRowEach;
// Pass 2.
constexpr int kColumnWidth = 32;
constexpr int kColumnThreads = 8;  // down
constexpr int kColumnEach = 16;    // outputs of a thread
constexpr int kColumnTile = kColumnThreads * kColumnEach;
constexpr int kChunk = 8;  // taps for which a window is held in registers

// The choices a to d, as the row pass has them. The stage runs RowForm<2, 1, true, true> unless told otherwise.
template <int Rows, int Down, bool Together, bool BorderOnly>
struct RowForm {
  static constexpr int kRows = Rows;               // of a thread
  static constexpr int kDown = Down;               // threads of a block, down
  static constexpr int kBlockRows = Rows * Down;   // of a block
  static constexpr bool kTogether = Together;      // its loads
  static constexpr bool kBorderOnly = BorderOnly;  // where it looks at indices
};

__constant__ float c_row[kMaxFilterSide];
__constant__ float c_column[kMaxFilterSide];

// ---- 1. Rows --------------------------------------------------------------------------------------------------------

// Floats from one staged row to the next: to the end of the last thread's last 16-byte read.
__host__ __device__ constexpr int row_pitch(int columns) { return (kRowTile + columns + 3) / 4 * 4; }

// Adds taps [first, first + kTaps) to a thread's outputs; `first` is a multiple of 4.
template <int kTaps, int kRows>
__device__ __forceinline__ void add_row_taps(float (&sum)[kRows][kRowEach], const float* staged, int pitch, int first) {
  constexpr int kVectors = (kRowEach + kTaps - 1 + 3) / 4;
  UNROLL
  for (int m = 0; m < kRows; ++m) {
    float window[4 * kVectors];
    UNROLL
    for (int u = 0; u < kVectors; ++u) {
      const float4 four = reinterpret_cast<const float4*>(staged + m * pitch + first)[u];
      window[4 * u] = four.x;
      window[4 * u + 1] = four.y;
      window[4 * u + 2] = four.z;
      window[4 * u + 3] = four.w;
    }
    UNROLL
    for (int t = 0; t < kTaps; ++t) {
      UNROLL
      for (int v = 0; v < kRowEach; ++v) sum[m][v] += window[t + v] * c_row[first + t];
    }
  }
}

// Every row of the input makes a row of the intermediate image.
template <class F>
__global__ void __launch_bounds__(kRowThreads* F::kDown) convolve_rows(const float* input,  // [batch][height][width]
                                                                       float* between,  // [batch][height][out_width]
                                                                       Image image) {
  constexpr int kLoads = (row_pitch(kMaxFilterSide) + kRowThreads - 1) / kRowThreads;  // of a thread, a row
  image.out_height = image.height;
  const BlockTile tile = block_tile(image, F::kBlockRows, kRowTile);
  if (tile.image >= image.batch) return;
  const int pitch = row_pitch(image.columns), thread = threadIdx.x;
  const int first_row = F::kDown == 1 ? 0 : F::kRows * threadIdx.y, y = tile.y + first_row;
  float* staged = dynamic_shared<float>() + first_row * pitch;  // of [F::kBlockRows][pitch], the thread's own rows
  const float* in = input + tile.image * input_pixels(image) + static_cast<std::int64_t>(y) * image.width;
  const int first = tile.x - image.pad_x;
  const int needed = min(kRowTile, image.out_width - tile.x) + image.columns - 1;
  const bool inside = F::kBorderOnly && first >= 0 && first + needed <= image.width && y + F::kRows <= image.height;
  if (F::kTogether) {  // all on their way before one is waited for
    float held[F::kRows][kLoads];
    UNROLL
    for (int u = 0; u < kLoads; ++u) {
      const int t = thread + u * kRowThreads;
      const int j = inside ? first + t : t < needed ? border_index(first + t, image.width, image.padding) : -1;
      UNROLL
      for (int m = 0; m < F::kRows; ++m) {
        const bool reads = inside ? t < needed : j >= 0 && y + m < image.height;
        held[m][u] = reads ? in[static_cast<std::int64_t>(m) * image.width + j] : 0.0f;
      }
    }
    UNROLL
    for (int u = 0; u < kLoads; ++u) {
      UNROLL
      for (int m = 0; m < F::kRows; ++m)
        if (thread + u * kRowThreads < pitch) staged[m * pitch + thread + u * kRowThreads] = held[m][u];
    }
  } else {
    UNROLL_BY(4)
    for (int t = thread; t < pitch; t += kRowThreads) {
      const int j = inside ? first + t : t < needed ? border_index(first + t, image.width, image.padding) : -1;
      UNROLL
      for (int m = 0; m < F::kRows; ++m) {
        const bool reads = inside ? t < needed : j >= 0 && y + m < image.height;
        staged[m * pitch + t] = reads ? in[static_cast<std::int64_t>(m) * image.width + j] : 0.0f;
      }
    }
  }
  __syncthreads();
  const int x = tile.x + kRowEach * thread;
  if (x >= image.out_width) return;

  const float* own = staged + kRowEach * thread;
  float sum[F::kRows][kRowEach] = {};
  int t = 0;
  for (; t + kChunk <= image.columns; t += kChunk) add_row_taps<kChunk>(sum, own, pitch, t);
  if (t + 4 <= image.columns) {
    add_row_taps<4>(sum, own, pitch, t);
    t += 4;
  }
  if (t + 3 == image.columns) add_row_taps<3>(sum, own, pitch, t);
  if (t + 2 == image.columns) add_row_taps<2>(sum, own, pitch, t);
  if (t + 1 == image.columns) add_row_taps<1>(sum, own, pitch, t);

  UNROLL
  for (int m = 0; m < F::kRows; ++m) {
    if (y + m >= image.height) break;
    float* out = between + (static_cast<std::int64_t>(tile.image) * image.height + y + m) * image.out_width + x;
    if (image.out_width % 4 == 0) {  // every row begins at a multiple of 16 bytes
      *reinterpret_cast<float4*>(out) = make_float4(sum[m][0], sum[m][1], sum[m][2], sum[m][3]);
    } else {
      UNROLL
      for (int v = 0; v < kRowEach; ++v) {
        if (x + v < image.out_width) out[v] = sum[m][v];
      }
    }
  }
}

// ---- 2. Columns -----------------------------------------------------------------------------------------------------

// Adds taps [first, first + kTaps) to the thread's outputs.
template <int kTaps>
__device__ __forceinline__ void add_column_taps(float (&sum)[kColumnEach], const float* staged, int first) {
  float window[kColumnEach + kTaps - 1];
  UNROLL
  for (int v = 0; v < kColumnEach + kTaps - 1; ++v) window[v] = staged[(first + v) * kColumnWidth];
  UNROLL
  for (int t = 0; t < kTaps; ++t) {
    const float tap = c_column[first + t];
    UNROLL
    for (int v = 0; v < kColumnEach; ++v) sum[v] += window[t + v] * tap;
  }
}

template <bool kBorderOnly, bool kGroups>
__global__ void __launch_bounds__(kColumnWidth* kColumnThreads)
    convolve_columns(const float* between,  // [batch][height][out_width]
                     float* output,         // [batch][out_height][out_width]
                     Image image) {
  float* staged = dynamic_shared<float>();  // [kColumnTile + rows - 1][kColumnWidth]
  const BlockTile tile = block_tile(image, kColumnTile, kColumnWidth);
  if (tile.image >= image.batch) return;
  const int x = tile.x + threadIdx.x;
  const bool inside = x < image.out_width;
  if (inside) {
    const float* column = between + static_cast<std::int64_t>(tile.image) * image.height * image.out_width + x;
    const int above = tile.y - image.pad_y, staged_rows = kColumnTile + image.rows - 1;
    if (kBorderOnly && above >= 0 && above + staged_rows <= image.height) {
      column += static_cast<std::int64_t>(above) * image.out_width;
      UNROLL_BY(8)
      for (int t = threadIdx.y; t < staged_rows; t += kColumnThreads)
        staged[t * kColumnWidth + threadIdx.x] = column[static_cast<std::int64_t>(t) * image.out_width];
    } else {  // zeros where a thread sums outputs that are not there
      const int needed = min(kColumnTile, image.out_height - tile.y) + image.rows - 1;
      for (int t = threadIdx.y; t < staged_rows; t += kColumnThreads) {
        const int i = t < needed ? border_index(above + t, image.height, image.padding) : -1;
        staged[t * kColumnWidth + threadIdx.x] = i < 0 ? 0.0f : column[static_cast<std::int64_t>(i) * image.out_width];
      }
    }
  }
  __syncthreads();
  const int first = threadIdx.y * kColumnEach;  // output row within the tile
  if (!inside || tile.y + first >= image.out_height) return;

  const float* own = staged + first * kColumnWidth + threadIdx.x;
  float sum[kColumnEach] = {};
  int t = 0;
  for (; t + kChunk <= image.rows; t += kChunk) add_column_taps<kChunk>(sum, own, t);
  if (!kGroups)
    for (; t < image.rows; ++t) add_column_taps<1>(sum, own, t);
  if (t + 4 <= image.rows) {
    add_column_taps<4>(sum, own, t);
    t += 4;
  }
  if (t + 3 == image.rows) add_column_taps<3>(sum, own, t);
  if (t + 2 == image.rows) add_column_taps<2>(sum, own, t);
  if (t + 1 == image.rows) add_column_taps<1>(sum, own, t);

  float* out =
      output + tile.image * output_pixels(image) + static_cast<std::int64_t>(tile.y + first) * image.out_width + x;
  UNROLL
  for (int v = 0; v < kColumnEach; ++v) {
    if (tile.y + first + v < image.out_height) out[static_cast<std::int64_t>(v) * image.out_width] = sum[v];
  }
}

template <class F>
void launch_rows(const float* input, float* between, const Image& image, Stream stream) {
  Image intermediate = image;
  intermediate.out_height = image.height;
  const std::size_t bytes = F::kBlockRows * sizeof(float) * row_pitch(image.columns);
  launch(convolve_rows<F>, image_grid(intermediate, F::kBlockRows, kRowTile), dim3(kRowThreads, F::kDown), bytes,
         stream)(input, between, image);
}

template <bool kBorderOnly, bool kGroups>
void launch_columns(const float* between, float* output, const Image& image, Stream stream) {
  const std::size_t bytes = static_cast<std::size_t>(kColumnTile + image.rows - 1) * kColumnWidth * sizeof(float);
  launch(convolve_columns<kBorderOnly, kGroups>, image_grid(image, kColumnTile, kColumnWidth),
         dim3(kColumnWidth, kColumnThreads), bytes, stream)(between, output, image);
}

}  // namespace
}  // namespace convladder
