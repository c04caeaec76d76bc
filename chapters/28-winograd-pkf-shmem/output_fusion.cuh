// The other way to fuse two of the three kernels: the product with the output transform. V comes from global memory, as
// in stage 27; M never goes there.
//
//   1. A block computes TBM tiles x TBN filters at all positions, its warps as in stage 28.
//   2. All channels, in one loop without a barrier: fragments come from global memory, as in 27. The sums stay in
//      registers.
//   3. They meet in shared memory, as halves: the sums of a tile and filter come from the warps of all columns.
//   4. A thread transforms one tile of two filters back, and stores the outputs.
#pragma once
#include "chapters/26-winograd-tensor-core/half_transforms.cuh"

namespace convladder {
namespace {

// Halves from tile to tile where the sums meet: four tiles of 16 filters begin 8 or 24 banks apart.
__host__ __device__ __forceinline__ constexpr int exchange_pitch_of(int tbn) { return tbn == 16 ? 16 : tbn + 16; }

template <class Form, class Shape, class Block, int Groups>
__global__ void __launch_bounds__(32 * Groups * kTileSize<Form>, 1)
    multiply_and_transform(const half* u,  // [position][channel block][padded filters][16]
                           const half* v,  // [position][channel block][padded tiles][16]
                           half* output,   // [batch][out_height][out_width][filters]
                           Winograd w, Block b) {
  constexpr int kSize = kTileSize<Form>, kThreads = 32 * Groups * kSize;
  const int down = b.tbm / Shape::kTiles, across = b.tbn / Shape::kFilters / Groups, pitch = exchange_pitch_of(b.tbn);
  half* const exchange = dynamic_shared<half>();  // [position][TBM][pitch]
  float* const patches = reinterpret_cast<float*>(exchange + kPositions<Form> * b.tbm * pitch);
  // 1.
  const int filters = padded_filters(w), tiles = padded_tiles(w), blocks = channel_blocks(w);
  const int filter_blocks = blocks_for(filters, b.tbn), thread = threadIdx.x, warp = thread / 32;
  const int column = warp % kSize, first_of_warp = warp / kSize * (b.tbn / Groups);
  const int first_k = static_cast<int>(blockIdx.x) % filter_blocks * b.tbn;
  const int first_t = static_cast<int>(blockIdx.x) / filter_blocks * b.tbm;
  const auto past_tiles = [&](int i) { return b.tbm > kTileUnit && first_t + Shape::kTiles * i >= tiles; };
  FragmentSums<Shape, float> sums[kSize][Room<Block>::tbm / Shape::kTiles][Room<Block>::tbn / Shape::kFilters / Groups];
  fill_sums<Shape, float>(sums, down, across);

  // 2.
  UNROLL_BY(1)
  for (int block = 0; block < blocks; ++block) {
    UNROLL
    for (int row = 0; row < kSize; ++row) {
      const int of_position = (row * kSize + column) * blocks + block;
      FragmentA<Shape, half> tile_rows[Room<Block>::tbm / Shape::kTiles];
      FragmentB<Shape, half> filter_rows;
      UNROLL
      for (int i = 0; i < down; ++i) {
        if (past_tiles(i)) continue;
        wmma::load_matrix_sync(tile_rows[i], v + (of_position * tiles + first_t + Shape::kTiles * i) * kBlock, kBlock);
      }
      UNROLL
      for (int j = 0; j < across; ++j) {
        const int k = first_k + first_of_warp + Shape::kFilters * j;
        if (k >= filters) continue;
        wmma::load_matrix_sync(filter_rows, u + (of_position * filters + k) * kBlock, kBlock);
        UNROLL
        for (int i = 0; i < down; ++i) {
          if (past_tiles(i)) continue;
          wmma::mma_sync(sums[row][i][j], tile_rows[i], filter_rows, sums[row][i][j]);
        }
      }
    }
  }
  // 3.
  UNROLL
  for (int row = 0; row < kSize; ++row) {
    UNROLL
    for (int i = 0; i < down; ++i) {
      UNROLL
      for (int j = 0; j < across; ++j) {
        const int position = row * kSize + column, k = first_of_warp + Shape::kFilters * j;
        if (first_k + k < filters)
          store_sums<Shape>(sums[row][i][j], patches + warp * kPatch,
                            exchange + (position * b.tbm + Shape::kTiles * i) * pitch + k, pitch);
      }
    }
  }
  __syncthreads();
  // 4.
  UNROLL_BY(1)
  for (int i = thread; i < b.tbm * b.tbn / 2; i += kThreads) {
    // Tiles 0, 2, 1, 3: where a warp has two, their rows begin 16 banks apart.
    const int in_turn = i / (b.tbn / 2), t = in_turn / 4 * 4 + in_turn % 2 * 2 + in_turn / 2 % 2;
    const int k = i % (b.tbn / 2) * 2;
    if (first_t + t >= w.tiles || first_k + k >= w.filters) continue;
    half2 of_tile[kPositions<Form>];
    UNROLL
    for (int position = 0; position < kPositions<Form>; ++position)
      of_tile[position] = *reinterpret_cast<const half2*>(exchange + (position * b.tbm + t) * pitch + k);
    store_tile<Form>(of_tile, output, w, first_t + t, first_k + k);
  }
}

}  // namespace
}  // namespace convladder
