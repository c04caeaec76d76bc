// 35, exercise: chunks that stay in L2.
//
// Stage 35 writes V for the whole batch, then reads it; then M. For large layers both are larger than L2, and each is
// gone from there when the next kernel wants it. Here a batch is computed in chunks of 32 tiles: transform, multiply,
// transform back, and then the next 32, in the same memory. F(4 x 4), NHWC.
//
//   1. V and M have room for one chunk.
//   2. The transforms take the tiles of a chunk, wherever in the batch it begins, and however many it has.
//   3. launch(): three kernels for each chunk. The last chunk takes no more blocks than it has tiles for.
//
// Rules: chunks of 32 tiles, from the first tile on; one V and one M for all of them; `multiply` as it is.
// Graded: the outputs, whether chunks and images end together or not; no fault; what is loaded, and what is stored.

#include "common/kernel/tracks/winograd.hpp"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

using Form = F4Fractions;
constexpr int kSize = kTileSize<Form>, kOutputs = kTileOutputs<Form>, kPositions = kSize * kSize;
constexpr int kThreads = 128;              // of the transforms
constexpr int kTiles = 16, kFilters = 16;  // of a block of the product
constexpr int kDepth = 16;                 // channels of a step
constexpr int kChunk = 32;                 // tiles

struct Sizes {
  Winograd w;
  int channels, filters;  // padded to multiples of kDepth and kFilters
  int tiles;              // that V and M have room for, a multiple of kTiles
};

// Tiles that are computed together: those of the batch from `first` on.
struct Chunk {
  int first, tiles;
};

Sizes sizes_of(const ConvProblem& problem) {
  Sizes s{winograd_of(problem, kOutputs), 0, 0, 0};
  s.channels = blocks_for(s.w.channels, kDepth) * kDepth;
  s.filters = blocks_for(s.w.filters, kFilters) * kFilters;
  // 1.
  // SOLUTION
  s.tiles = kChunk;
  // STARTER
  // | // So far for the whole batch.
  // | s.tiles = blocks_for(s.w.tiles, kTiles) * kTiles;
  // END
  return s;
}

// Given: a thread a filter and channel.
__global__ void transform_filters(const float* filter,  // [filters][channels][3][3]
                                  float* u,             // [position][filter block][channel][16]
                                  Sizes s) {
  const int i = blockIdx.x * kThreads + threadIdx.x;  // its place at a position
  if (i >= s.channels * s.filters) return;
  const int c = i / kFilters % s.channels, k = i / kFilters / s.channels * kFilters + i % kFilters;
  const bool inside = k < s.w.filters && c < s.w.channels;
  const float* from = filter + (k * s.w.channels + c) * 9;
  float taps[3][3], tile[kSize][kSize];
  UNROLL
  for (int j = 0; j < 9; ++j) taps[j / 3][j % 3] = inside ? from[j] : 0.0f;
  transform_filter<Form>(taps, tile);
  UNROLL
  for (int j = 0; j < kPositions; ++j) u[j * s.channels * s.filters + i] = tile[j / kSize][j % kSize];
}

// 2. A thread a tile and channel.
__global__ void transform_inputs(const float* input,  // [batch][height][width][channels]
                                 float* v,            // [position][tile of the chunk / 4][channel][4]
                                 Sizes s, Chunk chunk) {
  const Winograd& w = s.w;
  const int i = blockIdx.x * kThreads + threadIdx.x;  // its place at a position
  const int c = i / 4 % s.channels, in_chunk = i / 4 / s.channels * 4 + i % 4;
  // SOLUTION
  const bool exists = in_chunk < chunk.tiles && c < w.channels;
  const TilePlace place = place_of(w, exists ? chunk.first + in_chunk : 0);
  // STARTER
  // | // So far the first chunk's.
  // | const bool exists = in_chunk < w.tiles && c < w.channels;
  // | const TilePlace place = place_of(w, exists ? in_chunk : 0);
  // | static_cast<void>(chunk);
  // END
  const float* image = input + place.image * w.height * w.width * w.channels + c;
  float tile[kSize][kSize];
  UNROLL
  for (int y = 0; y < kSize; ++y) {
    const int row = exists ? tile_index(place.row - w.pad_y + y, w.height, w.pad_y, w.padding) : -1;
    UNROLL
    for (int x = 0; x < kSize; ++x) {
      const int column = tile_index(place.column - w.pad_x + x, w.width, w.pad_x, w.padding);
      tile[y][x] = row >= 0 && column >= 0 ? image[(row * w.width + column) * w.channels] : 0.0f;
    }
  }
  transform_input<Form>(tile);
  UNROLL
  for (int j = 0; j < kPositions; ++j) v[j * s.tiles * s.channels + i] = tile[j / kSize][j % kSize];
}

// Given: a block of 64 threads 16 tiles x 16 filters at one position, a thread 4 x 1. Tiles past the chunk's last are
// products of whatever stands in V.
constexpr int kProductThreads = kTiles / 4 * kFilters;

__global__ void __launch_bounds__(kProductThreads) multiply(const float* u,  // [position][filter block][channel][16]
                                                            const float* v,  // [position][tile / 4][channel][4]
                                                            float* m,        // [position][tile of the chunk][filter]
                                                            Sizes s) {
  __shared__ __align__(16) float tile_stage[kTiles / 4][kDepth][4];
  __shared__ __align__(16) float filter_stage[kDepth][kFilters];
  const int thread = threadIdx.x, filter_blocks = s.filters / kFilters;
  const int filter_block = static_cast<int>(blockIdx.x) % filter_blocks;
  const int first_tile = static_cast<int>(blockIdx.x) / filter_blocks * kTiles;
  const int position = static_cast<int>(blockIdx.y);
  const float* tiles = v + (position * s.tiles + first_tile + 4 * (thread / kDepth)) * s.channels;
  const float* filters = u + (position * filter_blocks + filter_block) * s.channels * kFilters;
  const int quad = thread / kFilters, x = thread % kFilters;
  float sums[4] = {};
  for (int c = 0; c < s.channels; c += kDepth) {
    __syncthreads();
    *reinterpret_cast<float4*>(tile_stage[thread / kDepth][thread % kDepth]) =
        *reinterpret_cast<const float4*>(tiles + 4 * (c + thread % kDepth));
    *reinterpret_cast<float4*>(&filter_stage[0][0] + 4 * thread) =
        *reinterpret_cast<const float4*>(filters + c * kFilters + 4 * thread);
    __syncthreads();
    UNROLL
    for (int d = 0; d < kDepth; ++d) {
      const float4 four = *reinterpret_cast<const float4*>(tile_stage[quad][d]);
      const float a[4] = {four.x, four.y, four.z, four.w}, b = filter_stage[d][x];
      UNROLL
      for (int j = 0; j < 4; ++j) sums[j] += a[j] * b;
    }
  }
  float* to = m + (position * s.tiles + first_tile + 4 * quad) * s.filters + filter_block * kFilters + x;
  UNROLL
  for (int j = 0; j < 4; ++j) to[j * s.filters] = sums[j];
}

// 2. A thread a tile and filter.
__global__ void transform_outputs(const float* m,  // [position][tile of the chunk][filter]
                                  float* output,   // [batch][out_height][out_width][filters]
                                  Sizes s, Chunk chunk) {
  const Winograd& w = s.w;
  const int i = blockIdx.x * kThreads + threadIdx.x, k = i % w.filters, in_chunk = i / w.filters;
  // SOLUTION
  if (in_chunk >= chunk.tiles) return;
  const TilePlace place = place_of(w, chunk.first + in_chunk);
  // STARTER
  // | // So far the first chunk's.
  // | if (in_chunk >= kChunk || in_chunk >= w.tiles) return;
  // | const TilePlace place = place_of(w, in_chunk);
  // | static_cast<void>(chunk);
  // END
  float tile[kSize][kSize], out[kOutputs][kOutputs];
  UNROLL
  for (int j = 0; j < kPositions; ++j) tile[j / kSize][j % kSize] = m[(j * s.tiles + in_chunk) * s.filters + k];
  transform_output<Form>(tile, out);
  float* image = output + place.image * w.out_height * w.out_width * w.filters + k;
  UNROLL
  for (int y = 0; y < kOutputs; ++y) {
    UNROLL
    for (int x = 0; x < kOutputs; ++x) {
      if (place.row + y < w.out_height && place.column + x < w.out_width)
        image[((place.row + y) * w.out_width + place.column + x) * w.filters] = out[y][x];
    }
  }
}

class InChunks final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    return check_winograd(problem, kOutputs, kChunk);
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Sizes s = sizes_of(problem);
    u_.allocate(std::int64_t{kPositions} * s.channels * s.filters);
    v_.allocate(std::int64_t{kPositions} * s.tiles * s.channels);
    m_.allocate(std::int64_t{kPositions} * s.tiles * s.filters);
    convladder::launch(transform_filters, dim3(blocks_for(s.channels * s.filters, kThreads)), dim3(kThreads), 0,
                       stream)(tensors.filter, u_.floats(), s);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Sizes s = sizes_of(problem);
    // 3.
    // SOLUTION
    for (int first = 0; first < s.w.tiles; first += kChunk) {
      const Chunk chunk{first, s.w.tiles - first < kChunk ? s.w.tiles - first : kChunk};
      const int blocks = blocks_for(chunk.tiles, kTiles);
      convladder::launch(transform_inputs, dim3(blocks * kTiles * s.channels / kThreads), dim3(kThreads), 0, stream)(
          tensors.input, v_.floats(), s, chunk);
      const dim3 grid(blocks * (s.filters / kFilters), kPositions);
      convladder::launch(multiply, grid, dim3(kProductThreads), 0, stream)(u_.floats(), v_.floats(), m_.floats(), s);
      convladder::launch(transform_outputs, dim3(blocks_for(chunk.tiles * s.w.filters, kThreads)), dim3(kThreads), 0,
                         stream)(m_.floats(), tensors.output, s, chunk);
    }
    // STARTER
    // | // So far the first chunk.
    // | const Chunk chunk{0, kChunk};
    // | const int blocks = blocks_for(s.w.tiles < kChunk ? s.w.tiles : kChunk, kTiles);
    // | convladder::launch(transform_inputs, dim3(blocks * kTiles * s.channels / kThreads), dim3(kThreads), 0, stream)(
    // |     tensors.input, v_.floats(), s, chunk);
    // | const dim3 grid(blocks * (s.filters / kFilters), kPositions);
    // | convladder::launch(multiply, grid, dim3(kProductThreads), 0, stream)(u_.floats(), v_.floats(), m_.floats(), s);
    // | const int outputs = blocks_for(kChunk * s.w.filters, kThreads);
    // | convladder::launch(transform_outputs, dim3(outputs), dim3(kThreads), 0, stream)(m_.floats(), tensors.output, s,
    // |                                                                                 chunk);
    // END
  }

  Workspace u_{*this, "transformed filter"};
  Workspace v_{*this, "transformed input"};
  Workspace m_{*this, "products"};
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::InChunks)
