// 28 winograd-pkf-shmem: partial kernel fusion through shared memory.
//
// Since 27: the kernel that multiplies transforms the input itself. V, the largest tensor, never goes to global memory:
// a block keeps the transformed tiles of the channels that it multiplies in shared memory. The products still go
// to global memory, and the output transform stays a kernel of its own: that is the "partial" of the fusion.
//
//   1. A block computes TBM tiles x TBN filters at all 36 positions. Two warps share a column of positions, half of the
//      filters each.
//   2. A step transforms TBK channels of the block's tiles into shared memory. A barrier: warps read what others wrote.
//   3. Each warp multiplies at its six positions. Their sums all stay in registers, 36 TBM TBN floats a block: that is
//      why TBN shrinks as TBM grows. A second barrier before the next channels.
//   4. Epilogue: the sums are stored as halves.
//
// For comparison, "fused=output" joins the product with the output transform instead: output_fusion.cuh.

#pragma once
#include "chapters/26-winograd-tensor-core/half_transforms.cuh"
#include "chapters/28-winograd-pkf-shmem/output_fusion.cuh"

namespace convladder {
namespace {

constexpr int kGroups = 2;  // warps of a column
template <class Form>
constexpr int kWarps = kGroups* kTileSize<Form>;
template <class Form>
constexpr int kThreads = 32 * kWarps<Form>;

// Halves from tile to tile in shared memory: no two rows begin in one bank.
__host__ __device__ __forceinline__ constexpr int pitch_of(int tbk) { return tbk + 8; }

// A warp's sums: fragments down and across, at each position of its column.
template <class Form, class Shape, class Block>
using Sums = FragmentSums<Shape, float>[kTileSize<Form>][Room<Block>::tbm / Shape::kTiles]
                                       [Room<Block>::tbn / Shape::kFilters / kGroups];

// 2. A thread takes two channels of a tile. The 64 / TBK tiles of a warp lie TBK / 8 apart: in other banks.
template <class Form, class Block>
__device__ __forceinline__ void transform_step(const half* input,  // [batch][height][width][channels]
                                               const Winograd& w, int first_t, int first_block, int step_blocks,
                                               half* transformed, Block b) {
  constexpr int kSize = kTileSize<Form>;
  const int pairs = b.tbk / 2, together = 64 / b.tbk, pitch = pitch_of(b.tbk);
  UNROLL_BY(1)
  for (int i = threadIdx.x; i < b.tbm * pairs; i += kThreads<Form>) {
    const int c = i % pairs * 2, of_eight = i / pairs % 8;
    const int t = i / pairs / 8 * 8 + of_eight % together * (8 / together) + of_eight / together;
    if (c >= step_blocks * kBlock) continue;
    half2 tile[kSize][kSize];
    load_tile<Form>(input, w, first_t + t, first_block * kBlock + c, tile);
    half* out = transformed + t * pitch + c;
    UNROLL
    for (int position = 0; position < kPositions<Form>; ++position)
      *reinterpret_cast<half2*>(out + position * b.tbm * pitch) = tile[position / kSize][position % kSize];
  }
}

// 3.
template <class Form, class Shape, class Block>
__device__ __forceinline__ void multiply_step(const half* transformed,
                                              const half* u,  // [position][channel block][padded filters][16]
                                              const Winograd& w, int first_k, int first_block, int step_blocks,
                                              int column, Sums<Form, Shape, Block>& sums, Block b) {
  const int filters = padded_filters(w), blocks = channel_blocks(w), pitch = pitch_of(b.tbk);
  const int down = b.tbm / Shape::kTiles, across = b.tbn / Shape::kFilters / kGroups;
  UNROLL_BY(1)
  for (int block = 0; block < step_blocks; ++block) {
    UNROLL
    for (int row = 0; row < kTileSize<Form>; ++row) {
      const int position = row * kTileSize<Form> + column;
      FragmentA<Shape, half> tile_rows[Room<Block>::tbm / Shape::kTiles];
      FragmentB<Shape, half> filter_rows;
      UNROLL
      for (int i = 0; i < down; ++i)
        wmma::load_matrix_sync(tile_rows[i],
                               transformed + (position * b.tbm + Shape::kTiles * i) * pitch + block * kBlock, pitch);
      UNROLL
      for (int j = 0; j < across; ++j) {
        const int k = first_k + Shape::kFilters * j;
        if (k >= filters) continue;
        wmma::load_matrix_sync(filter_rows, u + ((position * blocks + first_block + block) * filters + k) * kBlock,
                               kBlock);
        UNROLL
        for (int i = 0; i < down; ++i) wmma::mma_sync(sums[row][i][j], tile_rows[i], filter_rows, sums[row][i][j]);
      }
    }
  }
}

// 4.
template <class Form, class Shape, class Block>
__device__ __forceinline__ void store_products(const Sums<Form, Shape, Block>& sums, float* patch,
                                               half* m,  // [position][padded tiles][padded filters]
                                               const Winograd& w, int first_t, int first_k, int column, Block b) {
  const int filters = padded_filters(w), tiles = padded_tiles(w);
  UNROLL
  for (int row = 0; row < kTileSize<Form>; ++row) {
    UNROLL
    for (int i = 0; i < b.tbm / Shape::kTiles; ++i) {
      const int t = first_t + Shape::kTiles * i;
      if (b.tbm > kTileUnit && t >= tiles) continue;
      UNROLL
      for (int j = 0; j < b.tbn / Shape::kFilters / kGroups; ++j) {
        const int k = first_k + Shape::kFilters * j;
        if (k >= filters) continue;
        store_sums<Shape>(sums[row][i][j], patch, m + ((row * kTileSize<Form> + column) * tiles + t) * filters + k,
                          filters);
      }
    }
  }
}

// 1. Each block has one part: TBM tiles x TBN filters, at all positions.
template <class Form, class Shape, class Block>
__global__ void __launch_bounds__(kThreads<Form>, 1)
    multiply(const half* input,  // [batch][height][width][channels]
             const half* u,      // [position][channel block][padded filters][16]
             half* m,            // [position][padded tiles][padded filters]
             Winograd w, Block b) {
  half* const transformed = dynamic_shared<half>();  // [position][TBM][TBK + 8]
  float* const patches = reinterpret_cast<float*>(transformed + kPositions<Form> * b.tbm * pitch_of(b.tbk));
  const int thread = threadIdx.x, warp = thread / 32, part = static_cast<int>(blockIdx.x);
  const int filter_parts = blocks_for(padded_filters(w), b.tbn), column = warp % kTileSize<Form>;
  const int first_k = part % filter_parts * b.tbn + warp / kTileSize<Form> * (b.tbn / kGroups);
  const int first_t = part / filter_parts * b.tbm, blocks = channel_blocks(w), most_blocks = b.tbk / kBlock;
  Sums<Form, Shape, Block> sums;
  fill_sums<Shape, float>(sums, b.tbm / Shape::kTiles, b.tbn / Shape::kFilters / kGroups);

  UNROLL_BY(1)
  for (int first_block = 0; first_block < blocks; first_block += most_blocks) {
    const int step_blocks = min(most_blocks, blocks - first_block);
    transform_step<Form>(input, w, first_t, first_block, step_blocks, transformed, b);
    __syncthreads();
    multiply_step<Form, Shape>(transformed, u, w, first_k, first_block, step_blocks, column, sums, b);
    __syncthreads();  // the transformed tiles are read
  }
  store_products<Form, Shape>(sums, patches + warp * kPatch, m, w, first_t, first_k, column, b);
}

}  // namespace
}  // namespace convladder
