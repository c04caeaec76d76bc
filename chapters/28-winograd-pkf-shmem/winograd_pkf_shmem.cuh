// 28 winograd-pkf-shmem: partial kernel fusion through shared memory.
//
// Since 27: the kernel that multiplies transforms the input itself. V, the largest tensor, never goes to global memory:
// a block keeps the transformed tiles of the channels that it multiplies in shared memory. The products still go
// to global memory, and the output transform stays a kernel of its own: that is the "partial" of the fusion.
//
//   1. A block computes TBM tiles x TBN filters at all 36 positions. Two warps share a column of positions, half of the
//      filters each.
//   2. A step transforms 64 channels of the block's tiles into shared memory. A barrier: warps read what others wrote.
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

using Form = F4Fractions;

constexpr int kSize = kTileSize<Form>;
constexpr int kGroups = 2;  // warps of a column
constexpr int kWarps = kGroups * kSize, kThreads = 32 * kWarps;
constexpr int kStepBlocks = 4, kDepth = kStepBlocks * kBlock;  // channel blocks, and channels, of a step
constexpr int kPitch = kDepth + 8;  // halves from tile to tile in shared memory: no two rows begin in one bank
constexpr int kSums = 1024;         // of a block at a position

template <int Tiles>
constexpr int kFilters = kSums / Tiles;

// A warp's sums: six positions, 16 x 16 tiles and filters a fragment.
template <int Tiles>
constexpr int kDown = Tiles / 16;
template <int Tiles>
constexpr int kAcross = kFilters<Tiles> / 16 / kGroups;
template <int Tiles>
using Sums = wmma::fragment<wmma::accumulator, 16, 16, 16, float>[kSize][kDown<Tiles>][kAcross<Tiles>];

// 2. A warp takes 64 channels of a tile, each thread two.
template <int Tiles>
__device__ __forceinline__ void transform_step(const half* input,  // [batch][height][width][channels]
                                               const Winograd& w, int first_t, int first_block, int step_blocks,
                                               half* transformed) {
  UNROLL_BY(1)
  for (int i = threadIdx.x; i < Tiles * kDepth / 2; i += kThreads) {
    const int c = i % (kDepth / 2) * 2, t = i / (kDepth / 2);
    if (c >= step_blocks * kBlock) continue;
    half2 tile[kSize][kSize];
    load_tile<Form>(input, w, first_t + t, first_block * kBlock + c, tile);
    half* out = transformed + t * kPitch + c;
    UNROLL
    for (int position = 0; position < kPositions<Form>; ++position)
      *reinterpret_cast<half2*>(out + position * Tiles * kPitch) = tile[position / kSize][position % kSize];
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
        wmma::load_matrix_sync(a[i], transformed + (position * Tiles + 16 * i) * kPitch + block * kBlock, kPitch);
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

// 1. Each block has one part.
template <int Tiles>
__global__ void __launch_bounds__(kThreads, 1) multiply(const half* input,  // [batch][height][width][channels]
                                                        const half* u,  // [position][channel block][padded filters][16]
                                                        half* m,        // [position][padded tiles][padded filters]
                                                        Winograd w) {
  half* const transformed = dynamic_shared<half>();  // [position][Tiles][kPitch]
  float* const patches = reinterpret_cast<float*>(transformed + kPositions<Form> * Tiles * kPitch);
  const int thread = threadIdx.x, warp = thread / 32;
  multiply_part<Tiles>(blockIdx.x, warp, input, u, transformed, patches + warp * kPatch, m, w);
}

// ---- Launch ---------------------------------------------------------------------------------------------------------

template <int Tiles>
std::int64_t parts(const Winograd& w) {
  return std::int64_t{padded_tiles(w) / Tiles} * blocks_for(padded_filters(w), kFilters<Tiles>);
}

// Which transform is fused with the product.
enum { kInput, kOutput };

std::int64_t shared_bytes(int tbm, int fused) {
  const int exchange_pitch = tbm == 16 ? kExchangePitch<kFilters<16>> : kExchangePitch<kFilters<32>>;
  const int row = fused == kInput ? kPitch : exchange_pitch;
  return kPositions<Form> * tbm * row * 2 + kWarps * kPatch * 4;
}

// What the kernels read and write; v where the output transform is fused, m where the input's is.
struct HalfTensors {
  const half *input, *u;
  half *v, *m, *output;
};

template <int Tiles>
void launch_kernels(const HalfTensors& t, int fused, const Winograd& w, Stream stream) {
  const dim3 blocks(static_cast<unsigned>(parts<Tiles>(w))), threads(kThreads);
  const auto bytes = static_cast<std::size_t>(shared_bytes(Tiles, fused));
  if (fused == kInput) {
    launch(multiply<Tiles>, blocks, threads, bytes, stream)(t.input, t.u, t.m, w);
    launch_transform_outputs<Form>(t.m, t.output, w, stream);
  } else {
    launch_transform_inputs<Form>(t.input, t.v, w, stream);
    launch(multiply_and_transform<Form, Tiles, kFilters<Tiles>, kGroups>, blocks, threads, bytes, stream)(t.u, t.v,
                                                                                                          t.output, w);
  }
}

}  // namespace
}  // namespace convladder
