// 23, exercise: tiles of 2 x 4.
//
// Nesting needs no square. With F(2, 3) along the columns of a tile and F(4, 3) along its rows, 4 x 6 pixels give 2 x 4
// outputs, by 24 multiplications instead of 72.
//
//   output tile (2 x 4) = A2^T [ sum over c of (G2 g G4^T) . (B2^T d B4) ] A4
//
//   1. Tiles are numbered as in 23, from the top left of the first image; a tile is 2 rows high and 4 columns wide.
//   2. Nested transforms: a line of F2 for each column, a line of F4 for each row.
//   3. The input's tiles overlap by two, and reach past its border; the output's may reach past its end.
//
// Rules: the products are those of `multiply`, 24 a tile, channel and filter. Any problem that stage 23 takes.
// Graded: the outputs, at every border and with every padding; no fault; what is stored and loaded.

#include "common/kernel/tracks/winograd.hpp"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

constexpr int kThreads = 128;
constexpr int kRows = kTileSize<F2>, kColumns = kTileSize<F4>;                    // of a transformed tile: 4 x 6
constexpr int kOutputRows = kTileOutputs<F2>, kOutputColumns = kTileOutputs<F4>;  // of a tile: 2 x 4
constexpr int kPositions = kRows * kColumns;

// 1. The sizes, and how many tiles there are.
Winograd sizes_of(const ConvProblem& problem) {
  Winograd w = winograd_of(problem, kOutputRows);
  // SOLUTION
  w.tiles_down = blocks_for(w.out_height, kOutputRows);
  w.tiles_across = blocks_for(w.out_width, kOutputColumns);
  // STARTER
  // | // Those of 2 x 2: too many.
  // END
  w.tiles = w.batch * w.tiles_down * w.tiles_across;
  return w;
}

// Where tile t lies: its image, and the row and column of its first output.
__device__ __forceinline__ TilePlace place(const Winograd& w, int t) {
  // SOLUTION
  const int row = t / w.tiles_across;
  return {row / w.tiles_down, row % w.tiles_down * kOutputRows, t % w.tiles_across * kOutputColumns};
  // STARTER
  // | return place_of(w, t);  // of 2 x 2
  // END
}

// 2. U: a thread transforms one filter of one channel.
__global__ void transform_filters(const float* filter,  // [filters][channels][3][3]
                                  float* u,             // [position][channels][filters]
                                  Winograd w) {
  const int i = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  if (i >= w.filters * w.channels) return;
  const int k = i % w.filters, c = i / w.filters;
  const float* taps = filter + (k * w.channels + c) * 9;
  float tile[kRows][kColumns] = {};
  // SOLUTION
  float rows[3][kColumns];  // g G4^T
  UNROLL
  for (int r = 0; r < 3; ++r) {
    const float line[3] = {taps[r * 3], taps[r * 3 + 1], taps[r * 3 + 2]};
    transform_filter_line<F4>(line, rows[r]);
  }
  UNROLL
  for (int j = 0; j < kColumns; ++j) {
    const float line[3] = {rows[0][j], rows[1][j], rows[2][j]};
    float column[kRows];
    transform_filter_line<F2>(line, column);
    UNROLL
    for (int row = 0; row < kRows; ++row) tile[row][j] = column[row];
  }
  // STARTER
  // | // One line of three, and not transformed along the columns.
  // | const float line[3] = {taps[0], taps[1], taps[2]};
  // | transform_filter_line<F4>(line, tile[0]);
  // END
  UNROLL
  for (int p = 0; p < kPositions; ++p) u[p * w.channels * w.filters + i] = tile[p / kColumns][p % kColumns];
}

// 2., 3. V: a thread transforms one tile of one channel.
__global__ void transform_inputs(const float* input,  // [batch][channels][height][width]
                                 float* v,            // [position][channels][tiles]
                                 Winograd w) {
  const int t = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x), c = block_in_y();
  if (t >= w.tiles || c >= w.channels) return;
  const TilePlace at = place(w, t);
  const float* plane = input + (at.image * w.channels + c) * w.height * w.width;
  float tile[kRows][kColumns] = {};
  // SOLUTION
  UNROLL
  for (int i = 0; i < kRows; ++i) {
    const int row = tile_index(at.row - w.pad_y + i, w.height, w.pad_y, w.padding);
    UNROLL
    for (int j = 0; j < kColumns; ++j) {
      const int column = tile_index(at.column - w.pad_x + j, w.width, w.pad_x, w.padding);
      tile[i][j] = row >= 0 && column >= 0 ? plane[row * w.width + column] : 0.0f;
    }
  }
  UNROLL
  for (int j = 0; j < kColumns; ++j) {
    const float line[kRows] = {tile[0][j], tile[1][j], tile[2][j], tile[3][j]};
    float column[kRows];
    transform_input_line<F2>(line, column);
    UNROLL
    for (int i = 0; i < kRows; ++i) tile[i][j] = column[i];
  }
  UNROLL
  for (int i = 0; i < kRows; ++i) {
    float row[kColumns];
    transform_input_line<F4>(tile[i], row);
    UNROLL
    for (int j = 0; j < kColumns; ++j) tile[i][j] = row[j];
  }
  // STARTER
  // | // The tile's first pixel only, without a look at the borders.
  // | float line[kColumns] = {};
  // | line[0] = plane[at.row * w.width + at.column];
  // | transform_input_line<F4>(line, tile[0]);
  // END
  UNROLL
  for (int p = 0; p < kPositions; ++p) v[(p * w.channels + c) * w.tiles + t] = tile[p / kColumns][p % kColumns];
}

// As in 23: a thread sums one element of one tile and filter over all channels.
__global__ void multiply(const float* u,  // [position][channels][filters]
                         const float* v,  // [position][channels][tiles]
                         float* m,        // [position][filters][tiles]
                         Winograd w) {
  const int t = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x), row = block_in_y();
  const int position = row / w.filters, k = row % w.filters;
  if (t >= w.tiles || position >= kPositions) return;
  const float* filter = u + position * w.channels * w.filters + k;
  const float* tile = v + position * w.channels * w.tiles + t;
  float sum = 0.0f;
  for (int c = 0; c < w.channels; ++c) sum += filter[c * w.filters] * tile[c * w.tiles];
  m[row * w.tiles + t] = sum;
}

// 2., 3. The output: a thread transforms one tile of one filter back.
__global__ void transform_outputs(const float* m,  // [position][filters][tiles]
                                  float* output,   // [batch][filters][out_height][out_width]
                                  Winograd w) {
  const int t = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x), k = block_in_y();
  if (t >= w.tiles || k >= w.filters) return;
  float tile[kRows][kColumns];
  UNROLL
  for (int p = 0; p < kPositions; ++p) tile[p / kColumns][p % kColumns] = m[(p * w.filters + k) * w.tiles + t];
  const TilePlace at = place(w, t);
  float* plane = output + (at.image * w.filters + k) * w.out_height * w.out_width;
  // SOLUTION
  float rows[kRows][kOutputColumns];  // m A4
  UNROLL
  for (int i = 0; i < kRows; ++i) transform_output_line<F4>(tile[i], rows[i]);
  UNROLL
  for (int j = 0; j < kOutputColumns; ++j) {
    const float line[kRows] = {rows[0][j], rows[1][j], rows[2][j], rows[3][j]};
    float y[kOutputRows];
    transform_output_line<F2>(line, y);
    UNROLL
    for (int i = 0; i < kOutputRows; ++i) {
      const int p = at.row + i, q = at.column + j;
      if (p < w.out_height && q < w.out_width) plane[p * w.out_width + q] = y[i];
    }
  }
  // STARTER
  // | // The tile's first output only.
  // | float y[kOutputColumns];
  // | transform_output_line<F4>(tile[0], y);
  // | plane[at.row * w.out_width + at.column] = y[0];
  // END
}

class TilesOfTwoByFour final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    return check_winograd(problem, kOutputRows);
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Winograd w = sizes_of(problem);
    u_.allocate(std::int64_t{kPositions} * w.channels * w.filters);
    v_.allocate(std::int64_t{kPositions} * w.channels * w.tiles);
    sums_.allocate(std::int64_t{kPositions} * w.filters * w.tiles);
    convladder::launch(transform_filters, dim3(blocks_for(w.filters * w.channels, kThreads)), dim3(kThreads), 0,
                       stream)(tensors.filter, u_.floats(), w);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Winograd w = sizes_of(problem);
    const int blocks = blocks_for(w.tiles, kThreads);
    convladder::launch(transform_inputs, grid_in_y(blocks, w.channels), dim3(kThreads), 0, stream)(tensors.input,
                                                                                                   v_.floats(), w);
    convladder::launch(multiply, grid_in_y(blocks, kPositions * w.filters), dim3(kThreads), 0, stream)(
        u_.floats(), v_.floats(), sums_.floats(), w);
    convladder::launch(transform_outputs, grid_in_y(blocks, w.filters), dim3(kThreads), 0, stream)(sums_.floats(),
                                                                                                   tensors.output, w);
  }

  Workspace u_{*this, "transformed filter"};
  Workspace v_{*this, "transformed input"};
  Workspace sums_{*this, "products"};
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::TilesOfTwoByFour)
