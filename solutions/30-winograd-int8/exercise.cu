// Lab 30: the last round trip. Winograd in int8, F(2 x 2, 3 x 3), with the output transform in the same kernel.
//
//   1. The sums of 2 x 16 filters and 16 tiles meet in shared memory, all 16 positions of them.
//   2. A thread takes a tile and two filters: 2 x 16 sums, each times its scales.
//   3. It transforms them back, and stores the outputs that exist.
//
// Rules: one kernel in launch(), three in prepare(); no sum in global memory.
// Graded: the outputs of whole and of torn tiles, for every padding mode; no fault; what is stored.

#include "common/kernel/kernel.hpp"
#include "common/kernel/tracks/winograd_half.hpp"
#include "common/kernel/wmma.hpp"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

namespace wmma = nvcuda::wmma;

constexpr int kSize = 4, kPositions = 16;       // of a tile of F(2 x 2)
constexpr int kBlock = 16;                      // channels of a fragment
constexpr int kTiles = 16, kFilters = 64;       // of a block of threads
constexpr int kGroups = 2, kOfGroup = 32;       // the filters' two groups, and the filters of one
constexpr int kRounds = kOfGroup / 16;          // fragments of a warp at a position
constexpr int kThreads = 32 * kGroups * kSize;  // a warp for each group and column of positions
constexpr int kStepBlocks = 4;                  // channel blocks of a step
constexpr int kPitch = kTiles * kBlock + 32;    // bytes from one channel block of a step to the next
constexpr int kSumPitch = 16;                   // sums from one tile to the next, of 16 filters
constexpr int kExchange = kGroups * kPositions * kTiles * kSumPitch * 4, kStage = kPositions * kStepBlocks * kPitch;
constexpr int kSharedBytes = kExchange > kStage ? kExchange : kStage;
constexpr float kLargest = 127.0f;

__host__ __device__ __forceinline__ int channel_blocks(const Winograd& w) { return blocks_for(w.channels, kBlock); }
__host__ __device__ __forceinline__ int padded_filters(const Winograd& w) {
  return blocks_for(w.filters, kFilters) * kFilters;
}

__device__ __forceinline__ int quantise(float value, float scale) {
  const float scaled = scale > 0.0f ? value / scale : 0.0f;
  return __float2int_rn(fminf(fmaxf(scaled, -kLargest), kLargest));
}

// The transformed taps of filter k and channel c; zeros past the last.
__device__ __forceinline__ void load_filter(const float* filter, const Winograd& w, int k, int c,
                                            float (&tile)[kSize][kSize]) {
  float g[3][3];
  UNROLL
  for (int r = 0; r < 3; ++r) {
    UNROLL
    for (int s = 0; s < 3; ++s)
      g[r][s] = k < w.filters && c < w.channels ? filter[(k * w.channels + c) * 9 + r * 3 + s] : 0.0f;
  }
  transform_filter<F2>(g, tile);
}

// The transformed tile t of channel c; zeros past the last.
__device__ __forceinline__ void load_tile(const half* input, const Winograd& w, int t, int c,
                                          float (&tile)[kSize][kSize]) {
  const TilePlace place = place_of(w, min(t, w.tiles - 1));
  UNROLL
  for (int i = 0; i < kPositions; ++i) {
    const int y = tile_index(place.row - w.pad_y + i / kSize, w.height, w.pad_y, w.padding);
    const int x = tile_index(place.column - w.pad_x + i % kSize, w.width, w.pad_x, w.padding);
    const bool inside = t < w.tiles && c < w.channels && y >= 0 && x >= 0;
    tile[i / kSize][i % kSize] =
        inside ? __half2float(input[((place.image * w.height + y) * w.width + x) * w.channels + c]) : 0.0f;
  }
  transform_input<F2>(tile);
}

// A thread quantises a filter: its scale at a position is its largest element there over 127.
__global__ void quantise_filters(const float* filter,  // [filters][channels][3][3]
                                 signed char* u,       // [position][channel block][padded filters][16]
                                 float* scales,        // [position][padded filters]
                                 Winograd w) {
  const int k = blockIdx.x * 32 + threadIdx.x, filters = padded_filters(w), channels = channel_blocks(w) * kBlock;
  float largest[kPositions] = {}, tile[kSize][kSize];
  for (int c = 0; c < channels; ++c) {
    load_filter(filter, w, k, c, tile);
    UNROLL
    for (int i = 0; i < kPositions; ++i) largest[i] = fmaxf(largest[i], fabsf(tile[i / kSize][i % kSize]));
  }
  UNROLL
  for (int i = 0; i < kPositions; ++i) scales[i * filters + k] = largest[i] / kLargest;
  for (int c = 0; c < channels; ++c) {
    load_filter(filter, w, k, c, tile);
    UNROLL
    for (int i = 0; i < kPositions; ++i)
      u[((i * channels / kBlock + c / kBlock) * filters + k) * kBlock + c % kBlock] =
          static_cast<signed char>(quantise(tile[i / kSize][i % kSize], largest[i] / kLargest));
  }
}

// A warp finds the largest element at its position, of all tiles. Nothing is clipped here.
__global__ void find_scale(const half* input,  // [batch][height][width][channels]
                           float* scale,       // [position]
                           Winograd w) {
  const int position = blockIdx.x, lane = threadIdx.x;
  float largest = 0.0f, tile[kSize][kSize];
  for (int i = lane; i < w.tiles * w.channels; i += 32) {
    load_tile(input, w, i / w.channels, i % w.channels, tile);
    UNROLL
    for (int p = 0; p < kPositions; ++p)
      if (p == position) largest = fmaxf(largest, fabsf(tile[p / kSize][p % kSize]));
  }
  UNROLL
  for (int bits = 16; bits > 0; bits /= 2) largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, bits));
  if (lane == 0) scale[position] = largest / kLargest;
}

__global__ void __launch_bounds__(kThreads, 2) fused(const half* input,     // [batch][height][width][channels]
                                                     const signed char* u,  // [position][channel block][filters][16]
                                                     const float* scale_v,  // [position]
                                                     const float* scale_u,  // [position][padded filters]
                                                     half* output,          // [batch][out_height][out_width][filters]
                                                     Winograd w) {
  signed char* const stage = dynamic_shared<signed char>();  // [position][channel block][tile][16], in kPitch
  const int filters = padded_filters(w), blocks = channel_blocks(w), parts = filters / kFilters;
  const int thread = threadIdx.x, warp = thread / 32, column = warp % kSize, group = warp / kSize;
  const int first_k = static_cast<int>(blockIdx.x) % parts * kFilters;
  const int first_t = static_cast<int>(blockIdx.x) / parts * kTiles;

  wmma::fragment<wmma::accumulator, 16, 16, 16, int> sums[kSize][kRounds];  // [row][sixteen filters], of the column
  UNROLL
  for (int i = 0; i < kSize * kRounds; ++i) wmma::fill_fragment(sums[i / kRounds][i % kRounds], 0);

  UNROLL_BY(1)
  for (int first_block = 0; first_block < blocks; first_block += kStepBlocks) {
    const int step_blocks = min(kStepBlocks, blocks - first_block);
    for (int i = thread; i < kTiles * step_blocks * kBlock; i += kThreads) {
      const int channel = i % kBlock, block = i / kBlock % step_blocks, t = i / kBlock / step_blocks;
      float tile[kSize][kSize];
      load_tile(input, w, first_t + t, (first_block + block) * kBlock + channel, tile);
      UNROLL
      for (int p = 0; p < kPositions; ++p)
        stage[(p * kStepBlocks + block) * kPitch + t * kBlock + channel] =
            static_cast<signed char>(quantise(tile[p / kSize][p % kSize], scale_v[p]));
    }
    __syncthreads();
    for (int block = 0; block < step_blocks; ++block) {
      UNROLL
      for (int row = 0; row < kSize; ++row) {
        const int position = row * kSize + column;
        wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> a;
        wmma::load_matrix_sync(a, stage + (position * kStepBlocks + block) * kPitch, kBlock);
        UNROLL
        for (int j = 0; j < kRounds; ++j) {
          wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> b;
          const int k = first_k + group * kOfGroup + 16 * j;
          wmma::load_matrix_sync(b, u + ((position * blocks + first_block + block) * filters + k) * kBlock, kBlock);
          wmma::mma_sync(sums[row][j], a, b, sums[row][j]);
        }
      }
    }
    __syncthreads();  // the stage is read: in the end it is free for the sums
  }

  int* const exchange = reinterpret_cast<int*>(stage);  // [group][position][tile][16 filters]
  // SOLUTION
  const int pair = thread % 8 * 2, t = thread / 8 % kTiles, of_group = thread / 8 / kTiles;  // of the outputs
  const int* const mine = exchange + of_group * kPositions * kTiles * kSumPitch + t * kSumPitch + pair;
  UNROLL
  for (int j = 0; j < kRounds; ++j) {
    // 1.
    UNROLL
    for (int row = 0; row < kSize; ++row) {
      const int position = row * kSize + column;
      wmma::store_matrix_sync(exchange + (group * kPositions + position) * kTiles * kSumPitch, sums[row][j], kSumPitch,
                              wmma::mem_row_major);
    }
    __syncthreads();
    // 2.
    const int k = first_k + of_group * kOfGroup + 16 * j + pair;
    float y[2][2][2];
    UNROLL
    for (int high = 0; high < 2; ++high) {
      float m[kSize][kSize];
      UNROLL
      for (int p = 0; p < kPositions; ++p)
        m[p / kSize][p % kSize] =
            static_cast<float>(mine[p * kTiles * kSumPitch + high]) * (scale_v[p] * scale_u[p * filters + k + high]);
      // 3.
      transform_output<F2>(m, y[high]);
    }
    if (first_t + t < w.tiles && k < w.filters) {
      const TilePlace place = place_of(w, first_t + t);
      UNROLL
      for (int i = 0; i < 4; ++i) {
        const int p = place.row + i / 2, q = place.column + i % 2;
        if (p >= w.out_height || q >= w.out_width) continue;
        half* out = output + ((place.image * w.out_height + p) * w.out_width + q) * w.filters + k;
        if (w.filters % 2 == 0) {
          *reinterpret_cast<half2*>(out) = __floats2half2_rn(y[0][i / 2][i % 2], y[1][i / 2][i % 2]);
        } else {
          out[0] = __float2half_rn(y[0][i / 2][i % 2]);
          if (k + 1 < w.filters) out[1] = __float2half_rn(y[1][i / 2][i % 2]);
        }
      }
    }
    __syncthreads();  // the sums are read
  }
  // STARTER
  // | // Of all 16 positions only the first yet, of the first 16 filters of each group, and one output of each tile.
  // | if (column == 0) {
  // |   int* const sum = exchange + group * kPositions * kTiles * kSumPitch;
  // |   wmma::store_matrix_sync(sum, sums[0][0], kSumPitch, wmma::mem_row_major);
  // |   __syncwarp();
  // |   const int lane = thread % 32, t = lane % kTiles;
  // |   const TilePlace place = place_of(w, min(first_t + t, w.tiles - 1));
  // |   half* const at = output + ((place.image * w.out_height + place.row) * w.out_width + place.column) * w.filters;
  // |   for (int i = lane / kTiles; i < 16; i += 2) {
  // |     const int k = first_k + group * kOfGroup + i;
  // |     const float scale = scale_v[0] * scale_u[k];
  // |     if (first_t + t < w.tiles && k < w.filters)
  // |       at[k] = __float2half_rn(static_cast<float>(sum[t * kSumPitch + i]) * scale);
  // |   }
  // | }
  // END
}

class FusedInt8 final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    return check_winograd(problem, 2, kFilters);
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Winograd w = winograd_of(problem, 2);
    u_.allocate<signed char>(std::int64_t{kPositions} * channel_blocks(w) * kBlock * padded_filters(w));
    scale_u_.allocate(std::int64_t{kPositions} * padded_filters(w));
    scale_v_.allocate(kPositions);
    convladder::launch(quantise_filters, dim3(padded_filters(w) / 32), dim3(32), 0, stream)(
        tensors.filter, u_.as<signed char>(), scale_u_.floats(), w);
    convladder::launch(find_scale, dim3(kPositions), dim3(32), 0, stream)(tensors.half_input, scale_v_.floats(), w);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Winograd w = winograd_of(problem, 2);
    convladder::launch(fused, dim3(blocks_for(w.tiles, kTiles) * (padded_filters(w) / kFilters)), dim3(kThreads),
                       kSharedBytes, stream)(tensors.half_input, u_.as<signed char>(), scale_v_.floats(),
                                             scale_u_.floats(), tensors.half_output, w);
  }

  Workspace u_{*this, "quantised filter"};
  Workspace scale_u_{*this, "scales of the filters"};
  Workspace scale_v_{*this, "scales of the input"};
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::FusedInt8)
