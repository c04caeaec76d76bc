// 17 im2col: the convolution becomes a matrix multiplication.
//
//   output[n] = filter x matrix[n]      [filters][(p, q)] = [filters][(c, r, s)] x [(c, r, s)][(p, q)]
//
// Since 16: the input is unfolded first (im2col.cuh), so that the sum of an output runs down a column of a matrix, with
// no border and no window. What is left is the best known kernel of all, a tiled matrix multiplication:
//
//   1. A block computes 64 filters x 64 columns of one image; a thread 4 x 4 of them, 16 apart.
//   2. It goes down the matrix 16 rows at a time. All threads load the two tiles into shared memory.
//   3. Each thread multiplies: for each row 4 + 4 numbers from shared memory, 16 multiply-adds.
//   4. The sums are stored. Past the ends of the matrices, tiles hold zeros, and nothing is stored.

#include "chapters/17-im2col/im2col.cuh"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

constexpr int kTile = 64;                  // filters, and columns, of a block
constexpr int kDepth = 16;                 // products of a step
constexpr int kSide = 16;                  // threads of a block in each direction
constexpr int kPerThread = kTile / kSide;  // outputs of a thread in each direction

__global__ void multiply(const float* filter,  // [filters][depth]
                         const float* matrix,  // [batch][depth][columns]
                         float* output,        // [batch][filters][columns]
                         int batch, int filters, int depth, int columns) {
  __shared__ float filter_tile[kDepth][kTile + 2];  // + 2: a warp writes 16 rows of 2 columns, 32 banks
  __shared__ float matrix_tile[kDepth][kTile];
  // 1.
  const int x = threadIdx.x, y = threadIdx.y, thread = y * kSide + x;
  const int n = block_in_y(), column_tiles = blocks_for(columns, kTile);
  if (n >= batch) return;
  const int first_column = blockIdx.x % column_tiles * kTile, first_filter = blockIdx.x / column_tiles * kTile;
  matrix += static_cast<std::int64_t>(n) * depth * columns;
  output += static_cast<std::int64_t>(n) * filters * columns;
  float sums[kPerThread][kPerThread] = {};

  for (int step = 0; step < depth; step += kDepth) {
    // 2.
    for (int i = thread; i < kTile * kDepth; i += kSide * kSide) {
      const int k = i / kDepth, d = i % kDepth;
      const bool inside = first_filter + k < filters && step + d < depth;
      filter_tile[d][k] = inside ? filter[(first_filter + k) * depth + step + d] : 0.0f;
    }
    for (int i = thread; i < kDepth * kTile; i += kSide * kSide) {
      const int d = i / kTile, column = i % kTile;
      const bool inside = step + d < depth && first_column + column < columns;
      matrix_tile[d][column] = inside ? matrix[(step + d) * columns + first_column + column] : 0.0f;
    }
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
      const int k = first_filter + y + kSide * i, column = first_column + x + kSide * j;
      if (k < filters && column < columns) output[k * columns + column] = sums[i][j];
    }
  }
}

void launch_product(const float* filter, const float* matrix, float* output, const Lowering& l, Stream stream) {
  const int columns = output_plane(l), tiles = blocks_for(columns, kTile) * blocks_for(l.filters, kTile);
  launch(multiply, grid_in_y(tiles, l.batch), dim3(kSide, kSide), 0, stream)(filter, matrix, output, l.batch, l.filters,
                                                                             depth(l), columns);
}

class Im2col final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override { return check_lowering(problem); }

  void prepare(const ConvProblem& problem, const Tensors&, Stream) override { matrix_.allocate(im2col_size(problem)); }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    launch_im2col(tensors.input, matrix_.floats(), lowering_of(problem), stream);
    launch_without_transform(problem, tensors, stream);
  }

  bool launch_without_transform(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    launch_product(tensors.filter, matrix_.floats(), tensors.output, lowering_of(problem), stream);
    return true;
  }

  Prediction predict(const ConvProblem& problem) const override {
    const Lowering l = lowering_of(problem);
    const std::int64_t unfolded = im2col_size(problem);
    const std::int64_t reads = reads_by_output(vertical(l)) * reads_by_output(horizontal(l)) * problem.n * problem.c;
    const std::int64_t column_tiles = blocks_for(output_plane(l), kTile), filter_tiles = blocks_for(l.filters, kTile);
    const std::int64_t blocks = column_tiles * filter_tiles * problem.n, steps = blocks_for(depth(l), kDepth);
    Prediction p;
    // The matrix is written once and read once for each 64 filters; the filters once for each 64 columns of an image.
    p.global_load_bytes = (reads + unfolded * filter_tiles + problem.filter_size() * column_tiles * problem.n) * 4;
    p.global_store_bytes = (unfolded + problem.output_size()) * 4;
    p.shared_load_requests = blocks * steps * kDepth * 2 * kPerThread * (kSide * kSide / 32);
    p.constant_load_requests = 0;
    p.barriers = blocks * steps * 2;
    p.flops = problem.flops();
    return p;
  }

  Workspace matrix_{*this, "im2col matrix"};
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::Im2col)
