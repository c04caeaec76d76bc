// 28, exercise: transform while others multiply.
//
// Stage 28 transforms 64 channels, meets a barrier, multiplies them, meets another. Here a step has 32 channels and
// shared memory has two buffers: while a step is multiplied, the next one is transformed. One barrier a step is left.
//
//        step         0       1       2       3
//   multiplied  buffer 0       1       0       1
//   transformed buffer 1       0       1       -
//
//   1. The transforms of filter and output (given), and load_tile, which transforms one tile of two channels.
//   2. Transform a step: 32 channels of the block's 16 tiles, into one buffer.
//   3. Multiply a step: each warp at its six positions, 32 filters.
//   4. The loop, with one barrier a step.
//   5. The sums are stored as halves (given).
//
// Rules: the input's transform stays in this kernel, and nothing but the products is stored to global memory.
// Graded: the outputs for every size and padding; no fault; one barrier a step; the bytes loaded.

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
constexpr int kFilterUnit = 16;
constexpr int kTransformThreads = 256;

constexpr int kGroups = 2;  // warps of a column
constexpr int kWarps = kGroups * kSize, kThreads = 32 * kWarps;
constexpr int kTiles = 16, kFilters = 64;  // of a block
constexpr int kAcross = kFilters / kGroups / 16;
constexpr int kStepBlocks = 2, kDepth = kStepBlocks * kBlock;  // channel blocks, channels of a step
constexpr int kPitch = kDepth + 8;                             // halves from tile to tile in shared memory
constexpr int kBuffer = kPositions * kTiles * kPitch;          // halves of a buffer: [position][tile][kPitch]

__host__ __device__ __forceinline__ int channel_blocks(const Winograd& w) { return blocks_for(w.channels, kBlock); }
__host__ __device__ __forceinline__ int padded_filters(const Winograd& w) {
  return blocks_for(w.filters, kFilterUnit) * kFilterUnit;
}
__host__ __device__ __forceinline__ int padded_tiles(const Winograd& w) {
  return blocks_for(w.tiles, kTileUnit) * kTileUnit;
}

// ---- Given: the transforms ------------------------------------------------------------------------------------------

// The transformed tile t of channels c and c + 1; zeros past the last tile and channel.
[[maybe_unused]] __device__ __forceinline__ void load_tile(const half* input,  // [batch][height][width][channels]
                                                           const Winograd& w, int t, int c,
                                                           half2 (&tile)[kSize][kSize]) {
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

// A warp's 16 x 16 sums go to M as halves, through a patch of shared memory that is the warp's own. Odd lanes load
// their second four sums first: no bank conflict.
constexpr int kPatchPitch = 24;
constexpr int kPatch = 16 * kPatchPitch;

__device__ __forceinline__ void store_sums(const wmma::fragment<wmma::accumulator, 16, 16, 16, float>& sums,
                                           float* patch,            // of the warp
                                           half* out, int pitch) {  // row 0, column 0; halves from row to row
  wmma::store_matrix_sync(patch, sums, kPatchPitch, wmma::mem_row_major);
  __syncwarp();
  const int lane = threadIdx.x % 32, row = lane / 2, column = lane % 2 * 8;  // eight sums a lane
  const int first_four = row * kPatchPitch + column + lane % 2 * 4, second_four = first_four + 4 - lane % 2 * 8;
  const float4 first = *reinterpret_cast<const float4*>(patch + first_four);
  const float4 second = *reinterpret_cast<const float4*>(patch + second_four);
  const float4 low = lane % 2 ? second : first, high = lane % 2 ? first : second;
  __syncwarp();  // the patch is read
  Halves8 halves = {__floats2half2_rn(low.x, low.y), __floats2half2_rn(low.z, low.w), __floats2half2_rn(high.x, high.y),
                    __floats2half2_rn(high.z, high.w)};
  *reinterpret_cast<uint4*>(out + row * pitch + column) = *reinterpret_cast<const uint4*>(&halves);
}

// ---- The product ----------------------------------------------------------------------------------------------------

__global__ void __launch_bounds__(kThreads, 1) multiply(const half* input,  // [batch][height][width][channels]
                                                        const half* u,  // [position][channel block][padded filters][16]
                                                        half* m,        // [position][padded tiles][padded filters]
                                                        Winograd w) {
  half* const buffers = dynamic_shared<half>();  // two of kBuffer halves
  float* const patches = reinterpret_cast<float*>(buffers + 2 * kBuffer);
  const int filters = padded_filters(w), tiles = padded_tiles(w), blocks = channel_blocks(w);
  const int filter_blocks = blocks_for(filters, kFilters), thread = threadIdx.x, warp = thread / 32;
  const int column = warp % kSize;
  const int first_k = static_cast<int>(blockIdx.x) % filter_blocks * kFilters + warp / kSize * (kFilters / kGroups);
  const int first_t = static_cast<int>(blockIdx.x) / filter_blocks * kTiles;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[kSize][kAcross];
  UNROLL
  for (int i = 0; i < kSize * kAcross; ++i) wmma::fill_fragment(sums[i / kAcross][i % kAcross], 0.0f);

  // Steps 2 to 4 are missing: the sums are zero yet.
  static_cast<void>(input);
  static_cast<void>(u);
  static_cast<void>(blocks);

  // 5.
  UNROLL
  for (int row = 0; row < kSize; ++row) {
    UNROLL
    for (int j = 0; j < kAcross; ++j) {
      const int position = row * kSize + column, k = first_k + 16 * j;
      if (k < filters)
        store_sums(sums[row][j], patches + warp * kPatch, m + (position * tiles + first_t) * filters + k, filters);
    }
  }
}

constexpr int kSharedBytes = 2 * kBuffer * 2 + kWarps * kPatch * 4;

class TransformAhead final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits& limits) const override {
    if (kSharedBytes > limits.shared_bytes_per_block)
      return Verdict::refuse("a block needs {} bytes of shared memory; it may have {}", kSharedBytes,
                             limits.shared_bytes_per_block);
    return check_winograd(problem, kTileOutputs<Form>, kTileUnit);
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Winograd w = winograd_of(problem, kTileOutputs<Form>);
    const int filters = channel_blocks(w) * kBlock * padded_filters(w);
    u_.allocate<half>(std::int64_t{kPositions} * filters);
    m_.allocate<half>(std::int64_t{kPositions} * padded_tiles(w) * padded_filters(w));
    convladder::launch(transform_filters, dim3(blocks_for(filters, kTransformThreads)), dim3(kTransformThreads), 0,
                       stream)(tensors.filter, u_.as<half>(), w);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Winograd w = winograd_of(problem, kTileOutputs<Form>);
    const int blocks = blocks_for(padded_filters(w), kFilters) * (padded_tiles(w) / kTiles);
    convladder::launch(multiply, dim3(blocks), dim3(kThreads), kSharedBytes, stream)(tensors.half_input, u_.as<half>(),
                                                                                     m_.as<half>(), w);
    convladder::launch(transform_outputs, dim3(blocks_for(w.tiles * w.filters, kTransformThreads)),
                       dim3(kTransformThreads), 0, stream)(m_.as<half>(), tensors.half_output, w);
  }

  Workspace u_{*this, "transformed filter"};
  Workspace m_{*this, "products"};
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::TransformAhead)
