// 08 separable: two passes in place of one.
//
// Since 07: fewer operations. A filter of rank one is a column times a row, w[r][s] = column[r] * row[s], and then
//
//   y[i][j] = sum over r of column[r] * (sum over s of row[s] * x[i + r][j + s])
//
// The inner sum is a 1-D convolution of every row, the outer one of every column: rows + columns multiplications for a
// pixel in place of rows * columns. Between the two lies an intermediate image, which is written and read once more.
//
//   prepare: the filter is split at its largest tap; a filter that is no such product is refused.
//   1. Rows: a block stages 2 rows of 256 outputs each with their halos; a thread sums 4 neighbours of each (as in 04).
//   2. Columns: a block stages 32 columns of 128 outputs with their halos; a thread sums 16 outputs of one column, 8
//   taps
//      at a time, and reads each pixel once for all outputs that need it with these taps.

#include <cmath>

#include "common/kernel/border.hpp"
#include "common/kernel/tracks/image.hpp"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

constexpr double kRankTolerance = 1e-6;  // of the largest tap, for each tap
constexpr double kNormTolerance = 1e-5;  // of the root of all taps' squares, for all of them together

// Pass 1.
constexpr int kRowThreads = 64;
constexpr int kRowEach = 4;  // neighbouring outputs of a thread: a float4
constexpr int kRowTile = kRowThreads * kRowEach;
constexpr int kRowTiles = 2;  // rows of a block, and of a thread
// Pass 2.
constexpr int kColumnWidth = 32;
constexpr int kColumnThreads = 8;  // down
constexpr int kColumnEach = 16;    // outputs of a thread
constexpr int kColumnTile = kColumnThreads * kColumnEach;
constexpr int kChunk = 8;  // taps for which a window is held in registers

__constant__ float c_row[kMaxFilterSide];
__constant__ float c_column[kMaxFilterSide];

// ---- prepare: the split ---------------------------------------------------------------------------------------------

// One block; thread i looks through row i. With the largest tap at (a, b): column[i] = w[i][b] / w[a][b], row[j] =
// w[a][j].
__global__ void split_filter(const float* filter,  // [rows][columns]
                             float* parts,         // [kMaxFilterSide] column, [kMaxFilterSide] row
                             int rows, int columns) {
  __shared__ float largest[kMaxFilterSide];
  __shared__ int where[kMaxFilterSide];
  const int i = threadIdx.x;
  if (i < rows) {
    int best = 0;
    for (int j = 1; j < columns; ++j)
      if (fabsf(filter[i * columns + j]) > fabsf(filter[i * columns + best])) best = j;
    largest[i] = fabsf(filter[i * columns + best]);
    where[i] = best;
  }
  __syncthreads();
  int a = 0;
  for (int row = 1; row < rows; ++row)
    if (largest[row] > largest[a]) a = row;
  const int b = where[a];
  const float pivot = filter[a * columns + b];
  if (i < rows) parts[i] = pivot == 0.0f ? 0.0f : filter[i * columns + b] / pivot;
  if (i < columns) parts[kMaxFilterSide + i] = filter[a * columns + i];
}

// The largest tap, and how far the tap that fits worst is from the product.
struct Deviation {
  double pivot = 0, size = 0;
  double beyond = 0;  // how far, of all taps, beyond fp32's roundings of a product
  double share = 0;   // all deviations together over all taps: root of the sums of squares
  int a = 0, b = 0;   // the largest tap
  int i = 0, j = 0;   // the tap that fits worst
  double product = 0;
};

// The same split on the host, in double.
Deviation largest_deviation(const float* filter, int rows, int columns) {
  Deviation d;
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      if (std::fabs(filter[i * columns + j]) <= std::fabs(d.pivot)) continue;
      d.pivot = filter[i * columns + j];
      d.a = i;
      d.b = j;
    }
  }
  if (d.pivot == 0) return d;
  double deviations = 0, taps = 0;
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      const double tap = filter[i * columns + j];
      const double product = static_cast<double>(filter[i * columns + d.b]) * filter[d.a * columns + j] / d.pivot;
      const double size = std::fabs(tap - product);
      deviations += size * size;
      taps += tap * tap;
      d.beyond = std::fmax(d.beyond, size - 4 * 0x1p-24 * std::fabs(tap));
      if (size <= d.size) continue;
      d.size = size;
      d.i = i;
      d.j = j;
      d.product = product;
    }
  }
  d.share = std::sqrt(deviations / taps);
  return d;
}

Verdict check_rank_one(const float* filter, int rows, int columns) {
  for (int i = 0; i < rows * columns; ++i) {
    if (!std::isfinite(filter[i]))
      return Verdict::refuse("only finite filters can be split; tap (%d,%d) is %g", i / columns, i % columns,
                             static_cast<double>(filter[i]));
  }
  const Deviation d = largest_deviation(filter, rows, columns);
  if (d.size <= kRankTolerance * std::fabs(d.pivot) && d.share <= kNormTolerance) return Verdict::accept();
  return Verdict::refuse(
      "the filter is not of rank one: no column times row gives it; tap (%d,%d) is %.6g, but the row and column of the "
      "largest tap, (%d,%d), give %.6g",
      d.i, d.j, static_cast<double>(filter[d.i * columns + d.j]), d.a, d.b, d.product);
}

// ---- 1. Rows --------------------------------------------------------------------------------------------------------

// Floats from one staged row to the next: to the end of the last thread's last 16-byte read.
__host__ __device__ constexpr int row_pitch(int columns) { return (kRowTile + columns + 3) / 4 * 4; }

// Adds taps [first, first + kTaps) to a thread's outputs; `first` is a multiple of 4.
template <int kTaps>
__device__ __forceinline__ void add_row_taps(float (&sum)[kRowTiles][kRowEach], const float* staged, int pitch,
                                             int first) {
  constexpr int kVectors = (kRowEach + kTaps - 1 + 3) / 4;
  UNROLL
  for (int m = 0; m < kRowTiles; ++m) {
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
__global__ void __launch_bounds__(kRowThreads) convolve_rows(const float* input,  // [batch][height][width]
                                                             float* between,      // [batch][height][out_width]
                                                             Image image) {
  constexpr int kLoads = (row_pitch(kMaxFilterSide) + kRowThreads - 1) / kRowThreads;  // of a thread, a row
  float* staged = dynamic_shared<float>();                                             // [kRowTiles][pitch]
  image.out_height = image.height;
  const BlockTile tile = block_tile(image, kRowTiles, kRowTile);
  if (tile.image >= image.batch) return;
  const int pitch = row_pitch(image.columns), thread = threadIdx.x;
  const float* in = input + tile.image * input_pixels(image) + static_cast<std::int64_t>(tile.y) * image.width;
  const int first = tile.x - image.pad_x;
  const int needed = min(kRowTile, image.out_width - tile.x) + image.columns - 1;
  const bool inside = first >= 0 && first + needed <= image.width && tile.y + kRowTiles <= image.height;
  float held[kRowTiles][kLoads];  // all on their way before one is waited for
  UNROLL
  for (int u = 0; u < kLoads; ++u) {
    const int t = thread + u * kRowThreads;
    const int j = inside ? first + t : t < needed ? border_index(first + t, image.width, image.padding) : -1;
    UNROLL
    for (int m = 0; m < kRowTiles; ++m) {
      const bool reads = inside ? t < needed : j >= 0 && tile.y + m < image.height;
      held[m][u] = reads ? in[static_cast<std::int64_t>(m) * image.width + j] : 0.0f;
    }
  }
  UNROLL
  for (int u = 0; u < kLoads; ++u) {
    UNROLL
    for (int m = 0; m < kRowTiles; ++m)
      if (thread + u * kRowThreads < pitch) staged[m * pitch + thread + u * kRowThreads] = held[m][u];
  }
  __syncthreads();
  const int x = tile.x + kRowEach * thread;
  if (x >= image.out_width) return;

  const float* own = staged + kRowEach * thread;
  float sum[kRowTiles][kRowEach] = {};
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
  for (int m = 0; m < kRowTiles; ++m) {
    if (tile.y + m >= image.height) break;
    float* out = between + (static_cast<std::int64_t>(tile.image) * image.height + tile.y + m) * image.out_width + x;
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
    if (above >= 0 && above + staged_rows <= image.height) {
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

// ---- The stage ------------------------------------------------------------------------------------------------------

void launch_separable(const Tensors& tensors, float* between, const Image& image, Stream stream) {
  Image intermediate = image;
  intermediate.out_height = image.height;
  const std::size_t row_bytes = kRowTiles * sizeof(float) * row_pitch(image.columns);
  const std::size_t column_bytes =
      static_cast<std::size_t>(kColumnTile + image.rows - 1) * kColumnWidth * sizeof(float);
  launch(convolve_rows, image_grid(intermediate, kRowTiles, kRowTile), kRowThreads, row_bytes, stream)(tensors.input,
                                                                                                       between, image);
  launch(convolve_columns, image_grid(image, kColumnTile, kColumnWidth), dim3(kColumnWidth, kColumnThreads),
         column_bytes, stream)(static_cast<const float*>(between), tensors.output, image);
}

class Separable final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override { return check_image(problem); }

  Verdict check_filter(const ConvProblem& problem, const float* filter) const override {
    return check_rank_one(filter, static_cast<int>(problem.r), static_cast<int>(problem.s));
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    between_.allocate(problem.n * problem.h * problem.q(), "the intermediate image");
    parts_.allocate(2 * kMaxFilterSide, "the filter's column and row");
    convladder::launch(split_filter, 1, 96, 0, stream)(tensors.filter, parts_.floats(), static_cast<int>(problem.r),
                                                       static_cast<int>(problem.s));
    const float* const parts = parts_.floats();
    upload_constant(c_column, parts, static_cast<std::size_t>(problem.r), stream);
    upload_constant(c_row, parts + kMaxFilterSide, static_cast<std::size_t>(problem.s), stream);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    launch_separable(tensors, between_.floats(), image_of(problem), stream);
  }

  // Both passes: the input by rows, the intermediate image by columns.
  Prediction predict(const ConvProblem& problem) const override {
    const Image image = image_of(problem);
    const std::int64_t row_reads = image.height * reads_by_tile(horizontal(image), kRowTile);
    const std::int64_t column_reads = reads_by_tile(vertical(image), kColumnTile) * image.out_width;
    const std::int64_t between = problem.n * problem.h * problem.q();
    Prediction p;
    p.global_load_bytes = (row_reads + column_reads) * image.batch * 4;
    p.global_store_bytes = (between + problem.output_size()) * 4;
    p.shared_load_conflicts = p.shared_store_conflicts = 0;
    p.flops = 2 * (between * problem.s + problem.output_size() * problem.r);
    return p;
  }

  std::int64_t workspace_bytes() const override { return between_.bytes() + parts_.bytes(); }

  bool workspace_intact() const override { return between_.intact() && parts_.intact(); }

  // Two shorter sums, and a few roundings more for the split.
  std::int64_t roundings(const ConvProblem& problem) const override { return problem.r + problem.s + 8; }

  // What the rank test lets pass.
  double filter_error(const ConvProblem& problem, const float* filter) const override {
    return largest_deviation(filter, static_cast<int>(problem.r), static_cast<int>(problem.s)).beyond;
  }

  Workspace between_, parts_;
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::Separable)
