// 29 winograd-pkf-llc: partial kernel fusion through the last-level cache.
//
// Since 28: the transformed tiles go to global memory again, but no more of them than the L2 cache holds. Each block
// has a buffer of its own there, and overwrites it with the next tiles: nothing forces its lines out of L2 to DRAM.
// Shared memory no longer limits TBM.
//
//   1. A persistent kernel: as many blocks as multiprocessors, fewer if their buffers would not fit in L2 together. A
//      block takes one part of the product after the other, TBM tiles x TBN filters at all 36 positions.
//   2. A step transforms 64 channels of the tiles into the block's buffer. A barrier orders these stores before the
//      loads of the other warps; no other block reads them. They are loaded by plain loads: the read-only path (__ldg)
//      may return what lay there before.
//   3. Each warp multiplies as in 28. A second barrier before the buffer is overwritten.
//   4. Epilogue: the sums are stored as halves.

#pragma once
#include "chapters/26-winograd-tensor-core/half_transforms.cuh"

namespace convladder {
namespace {

using Form = F4Fractions;

constexpr int kSize = kTileSize<Form>;
constexpr int kGroups = 2;  // warps of a column
constexpr int kWarps = kGroups * kSize, kThreads = 32 * kWarps;
constexpr int kStepBlocks = 4, kDepth = kStepBlocks * kBlock;  // channel blocks, and channels, of a step
constexpr int kSums = 1024;                                    // of a block at a position

template <int Tiles>
constexpr int kFilters = kSums / Tiles;

// Halves of a block's buffer: [position][channel block of the step][Tiles][16]
template <int Tiles>
constexpr int kBuffer = kPositions<Form>* kDepth* Tiles;

// A warp's sums: six positions, 16 x 16 tiles and filters a fragment.
template <int Tiles>
constexpr int kDown = Tiles / 16;
template <int Tiles>
constexpr int kAcross = kFilters<Tiles> / 16 / kGroups;
template <int Tiles>
using Sums = wmma::fragment<wmma::accumulator, 16, 16, 16, float>[kSize][kDown<Tiles>][kAcross<Tiles>];

// 2. Eight threads take a channel block of a tile, four such groups four tiles: 128 consecutive bytes.
template <int Tiles>
__device__ __forceinline__ void transform_step(const half* input,  // [batch][height][width][channels]
                                               const Winograd& w, int first_t, int first_block, int step_blocks,
                                               half* transformed) {
  UNROLL_BY(1)
  for (int i = threadIdx.x; i < Tiles * step_blocks * kBlock / 2; i += kThreads) {
    const int pair = i % 8, block = i / 32 % step_blocks, t = i / 32 / step_blocks * 4 + i / 8 % 4;
    half2 tile[kSize][kSize];
    load_tile<Form>(input, w, first_t + t, (first_block + block) * kBlock + pair * 2, tile);
    half* out = transformed + (block * Tiles + t) * kBlock + pair * 2;
    UNROLL
    for (int position = 0; position < kPositions<Form>; ++position)
      *reinterpret_cast<half2*>(out + position * Tiles * kDepth) = tile[position / kSize][position % kSize];
  }
}

// 3.
template <int Tiles>
__device__ __forceinline__ void multiply_step(const half* transformed,
                                              const half* u,  // [position][channel block][padded filters][16]
                                              const Winograd& w, int first_k, int first_block, int step_blocks,
                                              int column, Sums<Tiles>& sums) {
  const int filters = padded_filters(w), blocks = channel_blocks(w);
  UNROLL_BY(1)
  for (int block = 0; block < step_blocks; ++block) {
    UNROLL
    for (int row = 0; row < kSize; ++row) {
      const int position = row * kSize + column;
      wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a[kDown<Tiles>];
      wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> b;
      UNROLL
      for (int i = 0; i < kDown<Tiles>; ++i)
        wmma::load_matrix_sync(a[i], transformed + ((position * kStepBlocks + block) * Tiles + 16 * i) * kBlock,
                               kBlock);
      UNROLL
      for (int j = 0; j < kAcross<Tiles>; ++j) {
        if (first_k + 16 * j >= filters) continue;
        wmma::load_matrix_sync(b, u + ((position * blocks + first_block + block) * filters + first_k + 16 * j) * kBlock,
                               kBlock);
        UNROLL
        for (int i = 0; i < kDown<Tiles>; ++i) wmma::mma_sync(sums[row][i][j], a[i], b, sums[row][i][j]);
      }
    }
  }
}

// 4.
template <int Tiles>
__device__ __forceinline__ void store_products(const Sums<Tiles>& sums, float* patch,
                                               half* m,  // [position][padded tiles][padded filters]
                                               const Winograd& w, int first_t, int first_k, int column) {
  const int filters = padded_filters(w), tiles = padded_tiles(w);
  UNROLL
  for (int row = 0; row < kSize; ++row) {
    UNROLL
    for (int i = 0; i < kDown<Tiles>; ++i) {
      UNROLL
      for (int j = 0; j < kAcross<Tiles>; ++j) {
        if (first_k + 16 * j >= filters) continue;
        store_sums(sums[row][i][j], patch,
                   m + ((row * kSize + column) * tiles + first_t + 16 * i) * filters + first_k + 16 * j, filters);
      }
    }
  }
}

// Steps 2 to 4 for one part of the product: Tiles tiles x kFilters filters, at all positions.
template <int Tiles>
__device__ __forceinline__ void multiply_part(int part, int warp, const half* input, const half* u, half* transformed,
                                              float* patch, half* m, const Winograd& w) {
  const int filter_parts = blocks_for(padded_filters(w), kFilters<Tiles>), column = warp % kSize;
  const int first_k = part % filter_parts * kFilters<Tiles> + warp / kSize * (kFilters<Tiles> / kGroups);
  const int first_t = part / filter_parts * Tiles, blocks = channel_blocks(w);
  Sums<Tiles> sums;
  UNROLL
  for (int i = 0; i < kSize * kDown<Tiles> * kAcross<Tiles>; ++i)
    wmma::fill_fragment(sums[i / kAcross<Tiles> / kDown<Tiles>][i / kAcross<Tiles> % kDown<Tiles>][i % kAcross<Tiles>],
                        0.0f);

  UNROLL_BY(1)
  for (int first_block = 0; first_block < blocks; first_block += kStepBlocks) {
    const int step_blocks = min(kStepBlocks, blocks - first_block);
    transform_step<Tiles>(input, w, first_t, first_block, step_blocks, transformed);
    __syncthreads();
    multiply_step<Tiles>(transformed, u, w, first_k, first_block, step_blocks, column, sums);
    __syncthreads();  // the transformed tiles are read
  }
  store_products<Tiles>(sums, patch, m, w, first_t, first_k, column);
}

// 1. Each block takes every gridDim.x-th part.
template <int Tiles>
__global__ void __launch_bounds__(kThreads, 1) multiply(const half* input,  // [batch][height][width][channels]
                                                        const half* u,  // [position][channel block][padded filters][16]
                                                        half* buffers,  // [block][kBuffer]
                                                        half* m,        // [position][padded tiles][padded filters]
                                                        Winograd w) {
  __shared__ __align__(32) float patches[kWarps][kPatch];
  half* const transformed = buffers + static_cast<int>(blockIdx.x) * kBuffer<Tiles>;
  const int thread = threadIdx.x, warp = thread / 32;
  const int parts = padded_tiles(w) / Tiles * blocks_for(padded_filters(w), kFilters<Tiles>);
  UNROLL_BY(1)
  for (int part = blockIdx.x; part < parts; part += gridDim.x)
    multiply_part<Tiles>(part, warp, input, u, transformed, patches[warp], m, w);
}

// ---- Launch ---------------------------------------------------------------------------------------------------------

template <int Tiles>
std::int64_t parts(const Winograd& w) {
  return std::int64_t{padded_tiles(w) / Tiles} * blocks_for(padded_filters(w), kFilters<Tiles>);
}

// Blocks that are started: one for each multiprocessor, as long as their buffers together take at most half of L2.
template <int Tiles>
int resident_blocks(const Winograd& w) {
  const DeviceLimits limits = device_limits();
  const std::int64_t fitting = limits.l2_bytes / 2 / (kBuffer<Tiles> * 2);
  std::int64_t blocks = limits.multiprocessors < fitting ? limits.multiprocessors : fitting;
  if (parts<Tiles>(w) < blocks) blocks = parts<Tiles>(w);
  return blocks < 1 ? 1 : static_cast<int>(blocks);
}

// What the kernels read and write.
struct HalfTensors {
  const half *input, *u;
  half *buffers, *m, *output;
};

template <int Tiles>
void launch_kernels(const HalfTensors& t, const Winograd& w, Stream stream) {
  const dim3 blocks(resident_blocks<Tiles>(w)), threads(kThreads);
  launch(multiply<Tiles>, blocks, threads, 0, stream)(t.input, t.u, t.buffers, t.m, w);
  launch_transform_outputs<Form>(t.m, t.output, w, stream);
}

}  // namespace
}  // namespace convladder
