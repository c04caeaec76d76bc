// 24, exercise: half of the output transform in the product.
//
// Stage 24 stores 16 sums for each tile and filter, and the output transform loads them again. The transform is nested:
// first the rows of the tile, then its columns. A row is four positions. A block that multiplies at these four has the
// whole row in registers, and can transform it before it stores: 2 numbers instead of 4.
//
//   multiply       half [row][column of outputs][filter][tile]   8 numbers a tile and filter: m A
//   finish         output = A^T half
//
//   1. A block computes 32 filters x 64 tiles at the four positions of one row of the tile; grid y is the row.
//   2. A step brings 8 channels of both matrices, at four positions.
//   3. A thread has 4 filters x 4 tiles at four positions: 64 sums.
//   4. It transforms rows, and stores two numbers for each.
//   5. The second kernel transforms columns.
//
// Rules: F(2 x 2, 3 x 3). Any problem that stage 24 takes.
// Graded: the outputs; no fault; what is stored and loaded; the barriers, and the requests to shared memory.

#include "common/kernel/tracks/winograd.hpp"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

constexpr int kThreads = 128;
constexpr int kSize = 4, kPositions = kSize * kSize;  // of a transformed tile, along a side and in all
constexpr int kOutputs = 2;                           // of a tile along a side
constexpr int kFilters = 32, kTiles = 64;             // of a block
constexpr int kDepth = 8;                             // channels of a step
constexpr int kSide = 4;                              // a thread has 4 filters x 4 tiles

// As in 23.
__global__ void transform_filters(const float* filter,  // [filters][channels][3][3]
                                  float* u,             // [position][channels][filters]
                                  Winograd w) {
  const int i = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  if (i >= w.filters * w.channels) return;
  const int k = i % w.filters, c = i / w.filters;
  float taps[3][3], tile[kSize][kSize];
  UNROLL
  for (int j = 0; j < 9; ++j) taps[j / 3][j % 3] = filter[(k * w.channels + c) * 9 + j];
  transform_filter<F2>(taps, tile);
  UNROLL
  for (int p = 0; p < kPositions; ++p) u[p * w.channels * w.filters + i] = tile[p / kSize][p % kSize];
}

// As in 23.
__global__ void transform_inputs(const float* input,  // [batch][channels][height][width]
                                 float* v,            // [position][channels][tiles]
                                 Winograd w) {
  const int t = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x), c = block_in_y();
  if (t >= w.tiles || c >= w.channels) return;
  const TilePlace place = place_of(w, t);
  const float* plane = input + (place.image * w.channels + c) * w.height * w.width;
  float tile[kSize][kSize];
  UNROLL
  for (int i = 0; i < kSize; ++i) {
    const int row = tile_index(place.row - w.pad_y + i, w.height, w.pad_y, w.padding);
    UNROLL
    for (int j = 0; j < kSize; ++j) {
      const int column = tile_index(place.column - w.pad_x + j, w.width, w.pad_x, w.padding);
      tile[i][j] = row >= 0 && column >= 0 ? plane[row * w.width + column] : 0.0f;
    }
  }
  transform_input<F2>(tile);
  UNROLL
  for (int p = 0; p < kPositions; ++p) v[(p * w.channels + c) * w.tiles + t] = tile[p / kSize][p % kSize];
}

__global__ void __launch_bounds__(kThreads) multiply(const float* u,  // [position][channels][filters]
                                                     const float* v,  // [position][channels][tiles]
                                                     float* half,     // [row][column of outputs][filters][tiles]
                                                     Winograd w) {
  // SOLUTION
  __shared__ __align__(16) float filter_tile[kSize][kDepth][kFilters];
  __shared__ __align__(16) float input_tile[kSize][kDepth][kTiles];
  // STARTER
  // | __shared__ __align__(16) float filter_tile[kDepth][kFilters];
  // | __shared__ __align__(16) float input_tile[kDepth][kTiles];
  // END
  // 1.
  const int filter_blocks = blocks_for(w.filters, kFilters), thread = static_cast<int>(threadIdx.x);
  const int first_k = static_cast<int>(blockIdx.x) % filter_blocks * kFilters;
  const int first_t = static_cast<int>(blockIdx.x) / filter_blocks * kTiles;
  const int row = static_cast<int>(blockIdx.y);
  const int y = thread / 16 * kSide, x = thread % 16 * kSide;  // the thread's first filter and tile in the block's

  // SOLUTION
  float sums[kSize][kSide][kSide] = {};
  for (int step = 0; step < w.channels; step += kDepth) {
    // 2.
    for (int i = thread; i < kSize * kDepth * kFilters; i += kThreads) {
      const int column = i / (kDepth * kFilters), d = i / kFilters % kDepth, k = first_k + i % kFilters;
      const int channel = step + d, position = row * kSize + column;
      filter_tile[column][d][i % kFilters] =
          channel < w.channels && k < w.filters ? u[(position * w.channels + channel) * w.filters + k] : 0.0f;
    }
    for (int i = thread; i < kSize * kDepth * kTiles; i += kThreads) {
      const int column = i / (kDepth * kTiles), d = i / kTiles % kDepth, t = first_t + i % kTiles;
      const int channel = step + d, position = row * kSize + column;
      input_tile[column][d][i % kTiles] =
          channel < w.channels && t < w.tiles ? v[(position * w.channels + channel) * w.tiles + t] : 0.0f;
    }
    __syncthreads();
    // 3.
    UNROLL
    for (int column = 0; column < kSize; ++column) {
      UNROLL
      for (int d = 0; d < kDepth; ++d) {
        const float4 down = *reinterpret_cast<const float4*>(&filter_tile[column][d][y]);
        const float4 across = *reinterpret_cast<const float4*>(&input_tile[column][d][x]);
        const float taps[kSide] = {down.x, down.y, down.z, down.w};
        const float pixels[kSide] = {across.x, across.y, across.z, across.w};
        UNROLL
        for (int i = 0; i < kSide; ++i) {
          UNROLL
          for (int j = 0; j < kSide; ++j) sums[column][i][j] += taps[i] * pixels[j];
        }
      }
    }
    __syncthreads();
  }
  // STARTER
  // | // One position of the row: the other three are missing.
  // | float sums[kSide][kSide] = {};
  // | const int position = row * kSize;
  // | for (int step = 0; step < w.channels; step += kDepth) {
  // |   // 2.
  // |   for (int i = thread; i < kDepth * kFilters; i += kThreads) {
  // |     const int channel = step + i / kFilters, k = first_k + i % kFilters;
  // |     filter_tile[i / kFilters][i % kFilters] =
  // |         channel < w.channels && k < w.filters ? u[(position * w.channels + channel) * w.filters + k] : 0.0f;
  // |   }
  // |   for (int i = thread; i < kDepth * kTiles; i += kThreads) {
  // |     const int channel = step + i / kTiles, t = first_t + i % kTiles;
  // |     input_tile[i / kTiles][i % kTiles] =
  // |         channel < w.channels && t < w.tiles ? v[(position * w.channels + channel) * w.tiles + t] : 0.0f;
  // |   }
  // |   __syncthreads();
  // |   // 3.
  // |   UNROLL
  // |   for (int d = 0; d < kDepth; ++d) {
  // |     const float4 down = *reinterpret_cast<const float4*>(&filter_tile[d][y]);
  // |     const float4 across = *reinterpret_cast<const float4*>(&input_tile[d][x]);
  // |     const float taps[kSide] = {down.x, down.y, down.z, down.w};
  // |     const float pixels[kSide] = {across.x, across.y, across.z, across.w};
  // |     UNROLL
  // |     for (int i = 0; i < kSide; ++i) {
  // |       UNROLL
  // |       for (int j = 0; j < kSide; ++j) sums[i][j] += taps[i] * pixels[j];
  // |     }
  // |   }
  // |   __syncthreads();
  // | }
  // END

  // 4.
  UNROLL
  for (int i = 0; i < kSide; ++i) {
    UNROLL
    for (int j = 0; j < kSide; ++j) {
      const int k = first_k + y + i, t = first_t + x + j;
      if (k >= w.filters || t >= w.tiles) continue;
      // SOLUTION
      const float line[kSize] = {sums[0][i][j], sums[1][i][j], sums[2][i][j], sums[3][i][j]};
      float outputs[kOutputs];
      transform_output_line<F2>(line, outputs);
      UNROLL
      for (int column = 0; column < kOutputs; ++column)
        half[((row * kOutputs + column) * w.filters + k) * w.tiles + t] = outputs[column];
      // STARTER
      // | // Not transformed.
      // | half[(row * kOutputs * w.filters + k) * w.tiles + t] = sums[i][j];
      // END
    }
  }
}

// 5. A thread transforms the columns of one tile of one filter.
__global__ void finish(const float* half,  // [row][column of outputs][filters][tiles]
                       float* output,      // [batch][filters][out_height][out_width]
                       Winograd w) {
  const int t = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x), k = block_in_y();
  if (t >= w.tiles || k >= w.filters) return;
  const TilePlace place = place_of(w, t);
  float* plane = output + (place.image * w.filters + k) * w.out_height * w.out_width;
  UNROLL
  for (int j = 0; j < kOutputs; ++j) {
    float outputs[kOutputs];
    // SOLUTION
    float line[kSize];
    UNROLL
    for (int row = 0; row < kSize; ++row) line[row] = half[((row * kOutputs + j) * w.filters + k) * w.tiles + t];
    transform_output_line<F2>(line, outputs);
    // STARTER
    // | // Not transformed.
    // | for (int i = 0; i < kOutputs; ++i) outputs[i] = half[(i * kOutputs * w.filters + k) * w.tiles + t];
    // END
    UNROLL
    for (int i = 0; i < kOutputs; ++i) {
      const int p = place.row + i, q = place.column + j;
      if (p < w.out_height && q < w.out_width) plane[p * w.out_width + q] = outputs[i];
    }
  }
}

class RowsInTheProduct final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    return check_winograd(problem, kOutputs);
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Winograd w = winograd_of(problem, kOutputs);
    u_.allocate(std::int64_t{kPositions} * w.channels * w.filters);
    v_.allocate(std::int64_t{kPositions} * w.channels * w.tiles);
    half_.allocate(std::int64_t{kSize * kOutputs} * w.filters * w.tiles);
    convladder::launch(transform_filters, dim3(blocks_for(w.filters * w.channels, kThreads)), dim3(kThreads), 0,
                       stream)(tensors.filter, u_.floats(), w);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Winograd w = winograd_of(problem, kOutputs);
    const int blocks = blocks_for(w.tiles, kThreads);
    convladder::launch(transform_inputs, grid_in_y(blocks, w.channels), dim3(kThreads), 0, stream)(tensors.input,
                                                                                                   v_.floats(), w);
    const dim3 grid(static_cast<unsigned>(blocks_for(w.filters, kFilters)) * blocks_for(w.tiles, kTiles), kSize);
    convladder::launch(multiply, grid, dim3(kThreads), 0, stream)(u_.floats(), v_.floats(), half_.floats(), w);
    convladder::launch(finish, grid_in_y(blocks, w.filters), dim3(kThreads), 0, stream)(half_.floats(), tensors.output,
                                                                                        w);
  }

  Workspace u_{*this, "transformed filter"};
  Workspace v_{*this, "transformed input"};
  Workspace half_{*this, "rows transformed back"};
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::RowsInTheProduct)
