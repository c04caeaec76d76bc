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
//   1. Rows: a block stages 4 rows of 256 outputs each with their halos; a thread sums 4 neighbours (as in 04).
//   2. Columns: a block stages 32 columns of 128 outputs with their halos; a thread sums 16 outputs of one column, and
//      reads each pixel once for all that need it.

#include <cmath>

#include "common/border.hpp"
#include "common/image.hpp"
#include "common/workspace.hpp"

namespace convladder {
namespace {

constexpr double kRankTolerance = 1e-6;  // of the largest tap

// Pass 1.
constexpr int kRowThreads = 64;  // across
constexpr int kRowEach = 4;      // outputs of a thread: a float4
constexpr int kRowTile = kRowThreads * kRowEach;
constexpr int kRowTiles = 4;  // rows of a block
// Pass 2.
constexpr int kColumnWidth = 32;
constexpr int kColumnThreads = 8;  // down
constexpr int kColumnEach = 16;    // outputs of a thread
constexpr int kColumnTile = kColumnThreads * kColumnEach;
constexpr int kChunk = 8;  // taps for which a window is held in registers

__constant__ float c_row[kMaxFilterSide];
__constant__ float c_column[kMaxFilterSide];

// ---- prepare: the split
// -----------------------------------------------------------------------------------------------

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

// The same on the host, in double: whether what it gives is the filter.
Verdict check_rank_one(const float* filter, int rows, int columns) {
  double pivot = 0;
  int a = 0, b = 0;
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      const double tap = filter[i * columns + j];
      if (!std::isfinite(tap)) return Verdict::refuse("08 splits finite filters only; tap (%d,%d) is %g", i, j, tap);
      if (std::fabs(tap) <= std::fabs(pivot)) continue;
      pivot = tap;
      a = i;
      b = j;
    }
  }
  if (pivot == 0) return Verdict::accept();
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      const double tap = filter[i * columns + j];
      const double product = static_cast<double>(filter[i * columns + b]) * filter[a * columns + j] / pivot;
      if (std::fabs(tap - product) > kRankTolerance * std::fabs(pivot))
        return Verdict::refuse(
            "the filter is not of rank one: no column times row gives it. Tap (%d,%d) is %.6g, where the row and "
            "column "
            "of the largest tap, (%d,%d), would give %.6g",
            i, j, tap, a, b, product);
    }
  }
  return Verdict::accept();
}

// ---- 1. Rows
// ----------------------------------------------------------------------------------------------------------

// Floats from one staged row to the next: to the end of the last thread's last 16-byte read.
__host__ __device__ __forceinline__ int row_pitch(int columns) { return (kRowTile + columns + 3) / 4 * 4; }

__device__ __forceinline__ void add_tap(float4& sum, float c, float a0, float a1, float a2, float a3) {
  sum.x += a0 * c;
  sum.y += a1 * c;
  sum.z += a2 * c;
  sum.w += a3 * c;
}

// Every row of the input makes a row of the intermediate image.
__global__ void __launch_bounds__(kRowThreads* kRowTiles) convolve_rows(const float* input,  // [batch][height][width]
                                                                        float* between,  // [batch][height][out_width]
                                                                        Image image) {
  float* tiles = dynamic_shared<float>();  // [kRowTiles][pitch]
  image.out_height = image.height;
  const BlockTile tile = block_tile(image, kRowTiles, kRowTile);
  if (tile.image >= image.batch) return;
  const int y = tile.y + threadIdx.y, pitch = row_pitch(image.columns);
  const bool inside = y < image.height;
  const std::int64_t row = static_cast<std::int64_t>(tile.image) * image.height + y;
  float* staged = tiles + threadIdx.y * pitch;
  if (inside) {
    const float* x = input + row * image.width;
    const int needed = min(kRowTile, image.out_width - tile.x) + image.columns - 1;
    UNROLL_BY(4)
    for (int t = threadIdx.x; t < pitch; t += kRowThreads) {
      const int j = t < needed ? border_index(tile.x - image.pad_x + t, image.width, image.padding) : -1;
      staged[t] = j < 0 ? 0.0f : x[j];
    }
  }
  __syncthreads();
  const int x = tile.x + kRowEach * threadIdx.x;
  if (!inside || x >= image.out_width) return;

  const float4* window = reinterpret_cast<const float4*>(staged) + threadIdx.x;
  float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f), a = window[0];
  int t = 0;
  for (; t + 4 <= image.columns; t += 4) {
    const float4 b = window[t / 4 + 1];
    add_tap(sum, c_row[t], a.x, a.y, a.z, a.w);
    add_tap(sum, c_row[t + 1], a.y, a.z, a.w, b.x);
    add_tap(sum, c_row[t + 2], a.z, a.w, b.x, b.y);
    add_tap(sum, c_row[t + 3], a.w, b.x, b.y, b.z);
    a = b;
  }
  if (t < image.columns) {  // one to three taps are left
    const float4 b = window[t / 4 + 1];
    add_tap(sum, c_row[t], a.x, a.y, a.z, a.w);
    if (t + 1 < image.columns) add_tap(sum, c_row[t + 1], a.y, a.z, a.w, b.x);
    if (t + 2 < image.columns) add_tap(sum, c_row[t + 2], a.z, a.w, b.x, b.y);
  }
  float* out = between + row * image.out_width + x;
  if (image.out_width % 4 == 0) {  // every row begins at a multiple of 16 bytes
    *reinterpret_cast<float4*>(out) = sum;
  } else {
    out[0] = sum.x;
    if (x + 1 < image.out_width) out[1] = sum.y;
    if (x + 2 < image.out_width) out[2] = sum.z;
    if (x + 3 < image.out_width) out[3] = sum.w;
  }
}

// ---- 2. Columns
// -------------------------------------------------------------------------------------------------------

// Adds taps [first, first + kTaps) to the thread's outputs.
template <int kTaps>
__device__ __forceinline__ void add_taps(float (&sum)[kColumnEach], const float* staged, int first) {
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
    // Zeros where the last thread sums outputs that are not there.
    const int outputs = min(kColumnTile, image.out_height - tile.y);
    const int summed = (outputs + kColumnEach - 1) / kColumnEach * kColumnEach;
    UNROLL_BY(8)
    for (int t = threadIdx.y; t < summed + image.rows - 1; t += kColumnThreads) {
      const int i =
          t < outputs + image.rows - 1 ? border_index(tile.y - image.pad_y + t, image.height, image.padding) : -1;
      staged[t * kColumnWidth + threadIdx.x] = i < 0 ? 0.0f : column[static_cast<std::int64_t>(i) * image.out_width];
    }
  }
  __syncthreads();
  const int first = threadIdx.y * kColumnEach;  // output row within the tile
  if (!inside || tile.y + first >= image.out_height) return;

  const float* own = staged + first * kColumnWidth + threadIdx.x;
  float sum[kColumnEach] = {};
  int t = 0;
  for (; t + kChunk <= image.rows; t += kChunk) add_taps<kChunk>(sum, own, t);
  for (; t < image.rows; ++t) add_taps<1>(sum, own, t);

  float* out =
      output + tile.image * output_pixels(image) + static_cast<std::int64_t>(tile.y + first) * image.out_width + x;
  UNROLL
  for (int v = 0; v < kColumnEach; ++v) {
    if (tile.y + first + v < image.out_height) out[static_cast<std::int64_t>(v) * image.out_width] = sum[v];
  }
}

// ---- The stage
// --------------------------------------------------------------------------------------------------------

void launch_separable(const Tensors& tensors, float* between, const Image& image, Stream stream) {
  Image intermediate = image;
  intermediate.out_height = image.height;
  const std::size_t row_bytes = kRowTiles * sizeof(float) * row_pitch(image.columns);
  const std::size_t column_bytes =
      static_cast<std::size_t>(kColumnTile + image.rows - 1) * kColumnWidth * sizeof(float);
  launch(convolve_rows, image_grid(intermediate, kRowTiles, kRowTile), dim3(kRowThreads, kRowTiles), row_bytes, stream)(
      tensors.input, between, image);
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

  // Two shorter sums. The split costs a few roundings more, and what the rank test lets pass 2 * 1e-6 / 2^-24.
  std::int64_t roundings(const ConvProblem& problem) const override { return problem.r + problem.s + 8 + 34; }

  Workspace between_, parts_;
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::Separable)
