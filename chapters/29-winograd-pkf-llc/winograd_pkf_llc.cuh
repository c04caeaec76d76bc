// 29 winograd-pkf-llc: partial kernel fusion through the last-level cache.
//
// Since 28: the transformed tiles go to global memory again, but no more of them than the L2 cache holds. Each block
// has a buffer of its own there, and overwrites it with the next tiles: nothing forces its lines out of L2 to DRAM.
// Shared memory no longer limits TBM.
//
//   1. A persistent kernel: as many blocks as multiprocessors, fewer if their buffers would not fit in L2 together. A
//      block takes one part of the product after the other, TBM tiles x TBN filters at all positions.
//   2. A step transforms TBK channels of the tiles into the block's buffer. A barrier orders these stores before the
//      loads of the other warps; no other block reads them. They are loaded by plain loads: the read-only path (__ldg)
//      may return what lay there before.
//   3. Each warp multiplies as in 28. A second barrier before the buffer is overwritten.
//   4. Epilogue: the sums are stored as halves.

#pragma once
#include "chapters/26-winograd-tensor-core/half_transforms.cuh"

namespace convladder {
namespace {

constexpr int kGroups = 2;  // warps of a column
template <class Form>
constexpr int kWarps = kGroups* kTileSize<Form>;
template <class Form>
constexpr int kThreads = 32 * kWarps<Form>;

// Halves of a block's buffer: [position][channel block of the step][TBM][16]
template <class Block>
__host__ __device__ __forceinline__ constexpr int buffer_of(int positions, Block b) {
  return positions * b.tbk * b.tbm;
}

// A warp's sums: fragments down and across, at each position of its column.
template <class Form, class Shape, class Block>
using Sums = FragmentSums<Shape, float>[kTileSize<Form>][Room<Block>::tbm / Shape::kTiles]
                                       [Room<Block>::tbn / Shape::kFilters / kGroups];

// 2. Eight threads take a channel block of a tile, four such groups four tiles: 128 consecutive bytes.
template <class Form, class Block>
__device__ __forceinline__ void transform_step(const half* input,  // [batch][height][width][channels]
                                               const Winograd& w, int first_t, int first_block, int step_blocks,
                                               half* transformed, Block b) {
  constexpr int kSize = kTileSize<Form>;
  UNROLL_BY(1)
  for (int i = threadIdx.x; i < b.tbm * step_blocks * kBlock / 2; i += kThreads<Form>) {
    const int pair = i % 8, block = i / 32 % step_blocks, t = i / 32 / step_blocks * 4 + i / 8 % 4;
    half2 tile[kSize][kSize];
    load_tile<Form>(input, w, first_t + t, (first_block + block) * kBlock + pair * 2, tile);
    half* out = transformed + (block * b.tbm + t) * kBlock + pair * 2;
    UNROLL
    for (int position = 0; position < kPositions<Form>; ++position)
      *reinterpret_cast<half2*>(out + position * b.tbm * b.tbk) = tile[position / kSize][position % kSize];
  }
}

// 3.
template <class Form, class Shape, class Block>
__device__ __forceinline__ void multiply_step(const half* transformed,
                                              const half* u,  // [position][channel block][padded filters][16]
                                              const Winograd& w, int first_k, int first_block, int step_blocks,
                                              int column, Sums<Form, Shape, Block>& sums, Block b) {
  const int filters = padded_filters(w), blocks = channel_blocks(w), most_blocks = b.tbk / kBlock;
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
                               transformed + ((position * most_blocks + block) * b.tbm + Shape::kTiles * i) * kBlock,
                               kBlock);
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

// 1. Each block takes every gridDim.x-th part: TBM tiles x TBN filters, at all positions.
template <class Form, class Shape, class Block>
__global__ void __launch_bounds__(kThreads<Form>, 1)
    multiply(const half* input,  // [batch][height][width][channels]
             const half* u,      // [position][channel block][padded filters][16]
             half* buffers,      // [block][buffer_of()]
             half* m,            // [position][padded tiles][padded filters]
             Winograd w, Block b) {
  __shared__ __align__(32) float patches[kWarps<Form>][kPatch];
  half* const transformed = buffers + static_cast<int>(blockIdx.x) * buffer_of(kPositions<Form>, b);
  const int thread = threadIdx.x, warp = thread / 32, column = warp % kTileSize<Form>;
  const int filter_parts = blocks_for(padded_filters(w), b.tbn), blocks = channel_blocks(w);
  const int parts = blocks_for(padded_tiles(w), b.tbm) * filter_parts, most_blocks = b.tbk / kBlock;
  UNROLL_BY(1)
  for (int part = blockIdx.x; part < parts; part += gridDim.x) {
    const int first_k = part % filter_parts * b.tbn + warp / kTileSize<Form> * (b.tbn / kGroups);
    const int first_t = part / filter_parts * b.tbm;
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
    store_products<Form, Shape>(sums, patches[warp], m, w, first_t, first_k, column, b);
  }
}

}  // namespace
}  // namespace convladder
