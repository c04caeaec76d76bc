// 26, exercise: narrow fragments for few filters.
//
// A fragment of 16 x 16 x 16 has 16 filters. With 8 filters half of U, of M and of the products would be zeros. Here
// fragments are 32 x 8 x 16: 32 tiles and 8 filters. All four warps of a block multiply the same 8 filters, each its
// own 32 tiles.
//
//   1. The transforms of filter, input and output (given); filters are rounded up to multiples of 8.
//   2. A step: 64 channels of 128 tiles and 8 filters are copied to shared memory, 16 bytes a copy, without a bank
//      conflict; zeros past the ends.
//   3. Each warp multiplies its 32 tiles with the 8 filters, 16 channels at a time.
//   4. The sums are stored as halves (given).
//
// Rules: the fragments and the block's part as they are; each number is copied once for a block; asynchronous copies.
// Graded: the outputs for every size and padding; no fault; the bytes loaded; no bank conflict.

#include "common/kernel/tracks/winograd_half.hpp"
#include "common/kernel/wmma.hpp"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

namespace wmma = nvcuda::wmma;
using Form = F4Fractions;

constexpr int kSize = kTileSize<Form>, kPositions = kSize * kSize;
constexpr int kBlock = 16;     // channels of a block: the depth of a fragment
constexpr int kTileUnit = 32;  // tiles are rounded up to a multiple of it, filters to one of kFilterUnit
constexpr int kFilterUnit = 8;
constexpr int kTransformThreads = 256;

constexpr int kThreads = 128;
constexpr int kTiles = 128, kFilters = 8;            // of a block
[[maybe_unused]] constexpr int kDepth = 64;          // channels of a step
[[maybe_unused]] constexpr int kPitch = kDepth + 8;  // halves from row to row in shared memory

__host__ __device__ __forceinline__ int channel_blocks(const Winograd& w) { return blocks_for(w.channels, kBlock); }
__host__ __device__ __forceinline__ int padded_filters(const Winograd& w) {
  return blocks_for(w.filters, kFilterUnit) * kFilterUnit;
}
__host__ __device__ __forceinline__ int padded_tiles(const Winograd& w) {
  return blocks_for(w.tiles, kTileUnit) * kTileUnit;
}

// ---- Given: the transforms ------------------------------------------------------------------------------------------

// The transformed tile t of channels c and c + 1; zeros past the last tile and channel.
__device__ __forceinline__ void load_tile(const half* input,  // [batch][height][width][channels]
                                          const Winograd& w, int t, int c, half2 (&tile)[kSize][kSize]) {
  const half zero = __float2half_rn(0.0f);
  const TilePlace place = place_of(w, t);
  UNROLL
  for (int i = 0; i < kPositions; ++i) {
    const int row = tile_index(place.row - w.pad_y + i / kSize, w.height, w.pad_y, w.padding);
    const int column = tile_index(place.column - w.pad_x + i % kSize, w.width, w.pad_x, w.padding);
    const bool inside = t < w.tiles && row >= 0 && column >= 0;
    const half* pixel = input + ((place.image * w.height + row) * w.width + column) * w.channels + c;
    tile[i / kSize][i % kSize] =
        __halves2half2(inside && c < w.channels ? pixel[0] : zero, inside && c + 1 < w.channels ? pixel[1] : zero);
  }
  transform_input<Form>(tile);
}

// U: a thread transforms one filter of one channel.
__global__ void transform_filters(const float* filter,  // [filters][channels][3][3]
                                  half* u,              // [position][channel block][padded filters][16]
                                  Winograd w) {
  const int filters = padded_filters(w), elements = channel_blocks(w) * filters * kBlock;
  const int i = blockIdx.x * kTransformThreads + threadIdx.x;  // (channel block, filter, channel of the block)
  if (i >= elements) return;
  const int k = i / kBlock % filters, c = i / kBlock / filters * kBlock + i % kBlock;
  const bool inside = k < w.filters && c < w.channels;
  float g[3][3], tile[kSize][kSize];
  UNROLL
  for (int j = 0; j < 9; ++j) g[j / 3][j % 3] = inside ? filter[(k * w.channels + c) * 9 + j] : 0.0f;
  transform_filter<Form>(g, tile);
  UNROLL
  for (int position = 0; position < kPositions; ++position)
    u[position * elements + i] = __float2half_rn(tile[position / kSize][position % kSize]);
}

// V: a thread transforms one tile of two channels; eight threads take a channel block.
__global__ void transform_inputs(const half* input,  // [batch][height][width][channels]
                                 half* v,            // [position][channel block][padded tiles][16]
                                 Winograd w) {
  const int elements = channel_blocks(w) * padded_tiles(w) * kBlock;
  const int i = blockIdx.x * kTransformThreads + threadIdx.x;
  if (i >= elements / 2) return;
  half2 tile[kSize][kSize];
  load_tile(input, w, i / 8 % padded_tiles(w), i / 8 / padded_tiles(w) * kBlock + i % 8 * 2, tile);
  UNROLL
  for (int position = 0; position < kPositions; ++position)
    *reinterpret_cast<half2*>(v + position * elements + i * 2) = tile[position / kSize][position % kSize];
}

// The output: a thread transforms one tile of one filter back.
__global__ void transform_outputs(const half* m,  // [position][padded tiles][padded filters]
                                  half* output,   // [batch][out_height][out_width][filters]
                                  Winograd w) {
  constexpr int kOutputs = kTileOutputs<Form>;
  const int i = blockIdx.x * kTransformThreads + threadIdx.x, t = i / w.filters, k = i % w.filters;
  if (t >= w.tiles) return;
  float tile[kSize][kSize], y[kOutputs][kOutputs];
  UNROLL
  for (int position = 0; position < kPositions; ++position)
    tile[position / kSize][position % kSize] =
        __half2float(m[(position * padded_tiles(w) + t) * padded_filters(w) + k]);
  transform_output<Form>(tile, y);
  const TilePlace place = place_of(w, t);
  UNROLL
  for (int j = 0; j < kOutputs * kOutputs; ++j) {
    const int p = place.row + j / kOutputs, q = place.column + j % kOutputs;
    if (p < w.out_height && q < w.out_width)
      output[((place.image * w.out_height + p) * w.out_width + q) * w.filters + k] =
          __float2half_rn(y[j / kOutputs][j % kOutputs]);
  }
}

// ---- Given: the epilogue --------------------------------------------------------------------------------------------

// 16 bytes that are stored at once.
struct __align__(16) Halves8 {
  half2 pairs[4];
};

using Sums = wmma::fragment<wmma::accumulator, 32, 8, 16, float>;

// A warp's 32 x 8 sums go to M as halves, a row of 8 for each lane, through a patch of the warp's own. Rows that
// lie 4 apart share their banks: every other four lanes begin with the second half of their row.
__device__ __forceinline__ void store_sums(const Sums& sums,
                                           float* patch,            // of the warp
                                           half* out, int pitch) {  // row 0, column 0; halves from row to row
  wmma::store_matrix_sync(patch, sums, kFilters, wmma::mem_row_major);
  __syncwarp();
  const int row = threadIdx.x % 32, first = row / 4 % 2 * 4;
  const float4 one = *reinterpret_cast<const float4*>(patch + row * kFilters + first);
  const float4 other = *reinterpret_cast<const float4*>(patch + row * kFilters + 4 - first);
  const float4 low = first ? other : one, high = first ? one : other;
  Halves8 halves = {__floats2half2_rn(low.x, low.y), __floats2half2_rn(low.z, low.w), __floats2half2_rn(high.x, high.y),
                    __floats2half2_rn(high.z, high.w)};
  *reinterpret_cast<uint4*>(out + row * pitch) = *reinterpret_cast<const uint4*>(&halves);
}

// ---- The product ----------------------------------------------------------------------------------------------------

__global__ void multiply(const half* u,  // [position][channel block][padded filters][16]
                         const half* v,  // [position][channel block][padded tiles][16]
                         half* m,        // [position][padded tiles][padded filters]
                         Winograd w) {
  __shared__ __align__(32) float patches[kThreads / 32][32 * kFilters];
  const int filters = padded_filters(w), tiles = padded_tiles(w), blocks = channel_blocks(w);
  const int filter_blocks = filters / kFilters, position = blockIdx.y, warp = threadIdx.x / 32;
  const int first_k = static_cast<int>(blockIdx.x) % filter_blocks * kFilters;
  const int first_t = static_cast<int>(blockIdx.x) / filter_blocks * kTiles;
  Sums sums;
  wmma::fill_fragment(sums, 0.0f);

  // Steps 2 and 3 are missing: the sums are zero yet.
  static_cast<void>(u);
  static_cast<void>(v);
  static_cast<void>(blocks);

  // 4.
  const int t = first_t + warp * 32;
  if (t < tiles) store_sums(sums, patches[warp], m + (position * tiles + t) * filters + first_k, filters);
}

class NarrowFragments final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    return check_winograd(problem, kTileOutputs<Form>, kTileUnit);
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Winograd w = winograd_of(problem, kTileOutputs<Form>);
    const int filters = channel_blocks(w) * kBlock * padded_filters(w);
    u_.allocate<half>(std::int64_t{kPositions} * filters);
    v_.allocate<half>(std::int64_t{kPositions} * channel_blocks(w) * kBlock * padded_tiles(w));
    m_.allocate<half>(std::int64_t{kPositions} * padded_tiles(w) * padded_filters(w));
    convladder::launch(transform_filters, dim3(blocks_for(filters, kTransformThreads)), dim3(kTransformThreads), 0,
                       stream)(tensors.filter, u_.as<half>(), w);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Winograd w = winograd_of(problem, kTileOutputs<Form>);
    convladder::launch(transform_inputs, dim3(blocks_for(channel_blocks(w) * padded_tiles(w) * 8, kTransformThreads)),
                       dim3(kTransformThreads), 0, stream)(tensors.half_input, v_.as<half>(), w);
    const dim3 grid(padded_filters(w) / kFilters * blocks_for(padded_tiles(w), kTiles), kPositions);
    convladder::launch(multiply, grid, dim3(kThreads), 0, stream)(u_.as<half>(), v_.as<half>(), m_.as<half>(), w);
    convladder::launch(transform_outputs, dim3(blocks_for(w.tiles * w.filters, kTransformThreads)),
                       dim3(kTransformThreads), 0, stream)(m_.as<half>(), tensors.half_output, w);
  }

  Workspace u_{*this, "transformed filter"};
  Workspace v_{*this, "transformed input"};
  Workspace m_{*this, "products"};
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::NarrowFragments)
