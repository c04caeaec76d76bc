// 17, exercise: the matrix that is never written.
//
// Stage 17 writes the unfolded matrix to memory and reads it again. But each of its elements is an element of the
// input, or a zero of the padding, and its row and column tell which. Here the multiplication asks the input for what
// the matrix would hold: an implicit matrix. No workspace, no kernel before.
//
//   row    (c, r, s)   matrix[row][column] = input[n][c][p stride_y - pad_y + r dilation_y]
//   column (p, q)                                       [q stride_x - pad_x + s dilation_x]
//
//   1. A block computes 64 filters x 64 columns of one image, as in 17 (given).
//   2. Step by step both tiles are loaded: the filters' (given), and the matrix's, straight from the image.
//   3. Each thread multiplies (given).
//   4. The sums are stored (given).
//
// Rules: one launch, no workspace. Blocks of 16 x 16 threads, tiles of 64 x 64. Any problem that stage 17 takes.
// Graded: the outputs without padding, with every padding, and of every size; no fault; bytes stored and loaded;
// sectors.

#include "common/kernel/border.hpp"
#include "common/kernel/tracks/lowering.hpp"

namespace convladder {
namespace {

constexpr int kTile = 64;                  // filters, and columns, of a block
constexpr int kDepth = 16;                 // products of a step
constexpr int kSide = 16;                  // threads of a block in each direction
constexpr int kPerThread = kTile / kSide;  // outputs of a thread in each direction

__global__ void multiply_implicit(const float* input,   // [batch][channels][height][width]
                                  const float* filter,  // [filters][channels][rows][columns]
                                  float* output,        // [batch][filters][out_height][out_width]
                                  Lowering l) {
  __shared__ float filter_tile[kDepth][kTile + 2];  // + 2: a warp writes 16 rows of 2 columns, 32 banks
  __shared__ float matrix_tile[kDepth][kTile];
  // 1.
  const int x = threadIdx.x, y = threadIdx.y, thread = y * kSide + x;
  const int n = block_in_y(), columns = output_plane(l), column_tiles = blocks_for(columns, kTile);
  if (n >= l.batch) return;
  const int first_column = blockIdx.x % column_tiles * kTile, first_filter = blockIdx.x / column_tiles * kTile;
  const float* image = input + n * l.channels * input_plane(l);
  output += static_cast<std::int64_t>(n) * l.filters * columns;
  float sums[kPerThread][kPerThread] = {};
  // SOLUTION
  // 256 threads load 4 rows of the tile in a round: a thread always the same column.
  const int mine = thread % kTile, column = first_column + mine;
  const int top = column / l.out_width * l.stride_y - l.pad_y, left = column % l.out_width * l.stride_x - l.pad_x;
  // STARTER
  // END

  for (int step = 0; step < depth(l); step += kDepth) {
    // 2.
    for (int i = thread; i < kTile * kDepth; i += kSide * kSide) {
      const int k = i / kDepth, d = i % kDepth;
      const bool inside = first_filter + k < l.filters && step + d < depth(l);
      filter_tile[d][k] = inside ? filter[(first_filter + k) * depth(l) + step + d] : 0.0f;
    }
    // SOLUTION
    for (int d = thread / kTile; d < kDepth; d += kSide * kSide / kTile) {
      const int row = step + d;
      float pixel = 0.0f;
      if (row < depth(l) && column < columns) {
        const int c = row / window(l), r = row % window(l) / l.columns, s = row % l.columns;
        const int i = border_index(top + r * l.dilation_y, l.height, l.padding);
        const int j = border_index(left + s * l.dilation_x, l.width, l.padding);
        if (i >= 0 && j >= 0) pixel = image[c * input_plane(l) + static_cast<std::int64_t>(i) * l.width + j];
      }
      matrix_tile[d][mine] = pixel;
    }
    // STARTER
    // | // No pixels yet: nothing but zeros, and `image` is not used.
    // | static_cast<void>(image);
    // | for (int i = thread; i < kDepth * kTile; i += kSide * kSide) matrix_tile[i / kTile][i % kTile] = 0.0f;
    // END
    __syncthreads();
    // 3.
    UNROLL
    for (int d = 0; d < kDepth; ++d) {
      float taps[kPerThread], pixels[kPerThread];
      UNROLL
      for (int i = 0; i < kPerThread; ++i) taps[i] = filter_tile[d][y + kSide * i];
      UNROLL
      for (int j = 0; j < kPerThread; ++j) pixels[j] = matrix_tile[d][x + kSide * j];
      UNROLL
      for (int i = 0; i < kPerThread; ++i) {
        UNROLL
        for (int j = 0; j < kPerThread; ++j) sums[i][j] += taps[i] * pixels[j];
      }
    }
    __syncthreads();
  }
  // 4.
  UNROLL
  for (int i = 0; i < kPerThread; ++i) {
    UNROLL
    for (int j = 0; j < kPerThread; ++j) {
      const int k = first_filter + y + kSide * i, q = first_column + x + kSide * j;
      if (k < l.filters && q < columns) output[k * columns + q] = sums[i][j];
    }
  }
}

void launch_multiply_implicit(const Tensors& tensors, const Lowering& l, Stream stream) {
  const int tiles = blocks_for(output_plane(l), kTile) * blocks_for(l.filters, kTile);
  launch(multiply_implicit, grid_in_y(tiles, l.batch), dim3(kSide, kSide), 0, stream)(tensors.input, tensors.filter,
                                                                                      tensors.output, l);
}

class MultiplyImplicit final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override { return check_lowering(problem); }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    launch_multiply_implicit(tensors, lowering_of(problem), stream);
  }
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::MultiplyImplicit)
