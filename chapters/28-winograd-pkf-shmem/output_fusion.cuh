// The other way to fuse two of the three kernels: the product with the output transform. V comes from global memory, as
// in stage 27; M never goes there.
//
//   1. A block computes Tiles tiles x Filters filters at all 36 positions, its twelve warps as in stage 28.
//   2. All channels, in one loop without a barrier: fragments come from global memory, as in 27. The sums stay in
//      registers.
//   3. They meet in shared memory, as halves: the sums of a tile and filter come from six warps.
//   4. A thread transforms one tile of two filters back, and stores the outputs.
#pragma once
#include "chapters/26-winograd-tensor-core/half_transforms.cuh"

namespace convladder {
namespace {

// Halves from tile to tile where the sums meet: four tiles of 16 filters begin 8 banks apart.
template <int Filters>
constexpr int kExchangePitch = Filters + 16;

template <class Form, int Tiles, int Filters, int Groups>
__global__ void __launch_bounds__(32 * Groups * kTileSize<Form>, 1)
    multiply_and_transform(const half* u,  // [position][channel block][padded filters][16]
                           const half* v,  // [position][channel block][padded tiles][16]
                           half* output,   // [batch][out_height][out_width][filters]
                           Winograd w) {
  constexpr int kSize = kTileSize<Form>, kThreads = 32 * Groups * kSize, kPitch = kExchangePitch<Filters>;
  constexpr int kDown = Tiles / 16, kAcross = Filters / 16 / Groups;
  half* const exchange = dynamic_shared<half>();  // [position][Tiles][kPitch]
  float* const patches = reinterpret_cast<float*>(exchange + kPositions<Form> * Tiles * kPitch);
  // 1.
  const int filters = padded_filters(w), tiles = padded_tiles(w), blocks = channel_blocks(w);
  const int filter_blocks = blocks_for(filters, Filters), thread = threadIdx.x, warp = thread / 32;
  const int column = warp % kSize, first_of_warp = warp / kSize * (Filters / Groups);
  const int first_k = static_cast<int>(blockIdx.x) % filter_blocks * Filters;
  const int first_t = static_cast<int>(blockIdx.x) / filter_blocks * Tiles;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[kSize][kDown][kAcross];
  UNROLL
  for (int i = 0; i < kSize * kDown * kAcross; ++i)
    wmma::fill_fragment(sums[i / kAcross / kDown][i / kAcross % kDown][i % kAcross], 0.0f);

  // 2.
  UNROLL_BY(1)
  for (int block = 0; block < blocks; ++block) {
    UNROLL
    for (int row = 0; row < kSize; ++row) {
      const int of_position = (row * kSize + column) * blocks + block;
      wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a[kDown];
      wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> b;
      UNROLL
      for (int i = 0; i < kDown; ++i)
        wmma::load_matrix_sync(a[i], v + (of_position * tiles + first_t + 16 * i) * kBlock, kBlock);
      UNROLL
      for (int j = 0; j < kAcross; ++j) {
        const int k = first_k + first_of_warp + 16 * j;
        if (k >= filters) continue;
        wmma::load_matrix_sync(b, u + (of_position * filters + k) * kBlock, kBlock);
        UNROLL
        for (int i = 0; i < kDown; ++i) wmma::mma_sync(sums[row][i][j], a[i], b, sums[row][i][j]);
      }
    }
  }
  // 3.
  UNROLL
  for (int row = 0; row < kSize; ++row) {
    UNROLL
    for (int i = 0; i < kDown * kAcross; ++i) {
      const int position = row * kSize + column, k = first_of_warp + 16 * (i % kAcross), t = 16 * (i / kAcross);
      if (first_k + k < filters)
        store_sums(sums[row][i / kAcross][i % kAcross], patches + warp * kPatch,
                   exchange + (position * Tiles + t) * kPitch + k, kPitch);
    }
  }
  __syncthreads();
  // 4.
  UNROLL_BY(1)
  for (int i = thread; i < Tiles * Filters / 2; i += kThreads) {
    // Tiles 0, 2, 1, 3: where a warp has two, their rows begin 16 banks apart.
    const int in_turn = i / (Filters / 2), t = in_turn / 4 * 4 + in_turn % 2 * 2 + in_turn / 2 % 2;
    const int k = i % (Filters / 2) * 2;
    if (first_t + t >= w.tiles || first_k + k >= w.filters) continue;
    half2 of_tile[kPositions<Form>];
    UNROLL
    for (int position = 0; position < kPositions<Form>; ++position)
      of_tile[position] = *reinterpret_cast<const half2*>(exchange + (position * Tiles + t) * kPitch + k);
    store_tile<Form>(of_tile, output, w, first_t + t, first_k + k);
  }
}

}  // namespace
}  // namespace convladder
