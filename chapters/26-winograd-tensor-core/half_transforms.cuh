// The transforms of fp16 Winograd convolution, F(4 x 4) with the points 3/4 and 3/2 or F(2 x 2), and what the kernels
// of stages 26 to 30 share.
//
//   U [position][channel block][filter][16]     G g G^T, transformed in fp32, rounded once
//   V [position][channel block][tile][16]       B^T d B, in fp16, two channels at a time
//   M [position][tile][filter]                  the sums over the channels, rounded to fp16; transformed back in fp32
//
// A channel block is 16 channels: what one matrix fragment takes. Its 16 rows of 16 halves lie in one piece of memory.
// Channels and filters are rounded up to multiples of 16 and tiles to multiples of 32, with zeros.
#pragma once
#include "common/kernel/kernel.hpp"
#include "common/kernel/tracks/winograd_half.hpp"
#include "common/kernel/wmma.hpp"

namespace convladder {
namespace {

namespace wmma = nvcuda::wmma;

constexpr int kBlock = 16;         // channels of a block: the depth of a fragment
constexpr int kTileUnit = 32;      // tiles are rounded up to a multiple of it
constexpr int kHalfThreads = 256;  // of a block of threads here

template <class Form>
constexpr int kPositions = kTileSize<Form>* kTileSize<Form>;

// The shape of a fragment's sums. Fragments are 16 x 16 x 16, 32 x 8 x 16 or 8 x 32 x 16: tiles, filters, channels.
template <int Tiles, int Filters>
struct FragmentShape {
  static constexpr int kTiles = Tiles, kFilters = Filters;
};
template <class Shape, class T>
using FragmentA = wmma::fragment<wmma::matrix_a, Shape::kTiles, Shape::kFilters, kBlock, T, wmma::row_major>;
template <class Shape, class T>
using FragmentB = wmma::fragment<wmma::matrix_b, Shape::kTiles, Shape::kFilters, kBlock, T, wmma::col_major>;
template <class Shape, class T>
using FragmentSums = wmma::fragment<wmma::accumulator, Shape::kTiles, Shape::kFilters, kBlock, T>;

// A block of the product has TBM tiles and TBN filters; a step of it TBK channels. In the simulator these are
// variables. A GPU's kernel has them as constants, so that loops unroll and sums lie in registers.
struct BlockTile {
  int tbm, tbn, tbk;
};
template <int Tbm, int Tbn, int Tbk>
struct FixedBlockTile {
  static constexpr int tbm = Tbm, tbn = Tbn, tbk = Tbk;
};
// What arrays have room for: the most that the numbers can be.
template <class Block>
struct Room : FixedBlockTile<64, 64, 64> {};
template <int Tbm, int Tbn, int Tbk>
struct Room<FixedBlockTile<Tbm, Tbn, Tbk>> : FixedBlockTile<Tbm, Tbn, Tbk> {};

// Channels and filters, and tiles, with what they are padded with.
__host__ __device__ __forceinline__ int channel_blocks(const Winograd& w) { return blocks_for(w.channels, kBlock); }
__host__ __device__ __forceinline__ int padded_filters(const Winograd& w) {
  return blocks_for(w.filters, kBlock) * kBlock;
}
__host__ __device__ __forceinline__ int padded_tiles(const Winograd& w) {
  return blocks_for(w.tiles, kTileUnit) * kTileUnit;
}

// The transformed taps of filter k and channel c; zeros past the last.
template <class Form>
__device__ __forceinline__ void load_filter(const float* filter,  // [filters][channels][3][3]
                                            const Winograd& w, int k, int c,
                                            float (&tile)[kTileSize<Form>][kTileSize<Form>]) {
  const bool inside = k < w.filters && c < w.channels;
  const float* taps = filter + (k * w.channels + c) * 9;
  float g[3][3];
  UNROLL
  for (int r = 0; r < 3; ++r) {
    UNROLL
    for (int s = 0; s < 3; ++s) g[r][s] = inside ? taps[r * 3 + s] : 0.0f;
  }
  transform_filter<Form>(g, tile);
}

// The transformed tile of channels c and c + 1 (c even); zeros past the last channel and tile.
template <class Form>
__device__ __forceinline__ void load_tile(const half* input,  // [batch][height][width][channels]
                                          const Winograd& w, int t, int c,
                                          half2 (&tile)[kTileSize<Form>][kTileSize<Form>]) {
  constexpr int kSize = kTileSize<Form>;
  const half zero = __float2half_rn(0.0f);
  const TilePlace place = place_of(w, t);
  int rows[kSize], columns[kSize];  // halves to a pixel's row and from there to its channel; -1 outside
  UNROLL
  for (int i = 0; i < kSize; ++i) {
    const int row = tile_index(place.row - w.pad_y + i, w.height, w.pad_y, w.padding);
    const int column = tile_index(place.column - w.pad_x + i, w.width, w.pad_x, w.padding);
    rows[i] = row < 0 || t >= w.tiles ? -1 : (place.image * w.height + row) * w.width * w.channels;
    columns[i] = column < 0 || c >= w.channels ? -1 : column * w.channels + c;
  }
  const auto load_pixels = [&](const auto& load) {
    UNROLL
    for (int i = 0; i < kSize; ++i) {
      UNROLL
      for (int j = 0; j < kSize; ++j)
        tile[i][j] = (rows[i] | columns[j]) >= 0 ? load(input + rows[i] + columns[j]) : __halves2half2(zero, zero);
    }
  };
  if (w.channels % 2 == 0) {
    load_pixels([](const half* pixel) { return *reinterpret_cast<const half2*>(pixel); });
  } else {  // 4-byte loads would be misaligned, and the last channel has no neighbour
    const bool two = c + 1 < w.channels;
    load_pixels([=](const half* pixel) { return __halves2half2(pixel[0], two ? pixel[1] : zero); });
  }
  transform_input<Form>(tile);
}

// U, in prepare(): a thread transforms one filter of one channel.
template <class Form>
__global__ void transform_filters(const float* filter,  // [filters][channels][3][3]
                                  half* u,              // [position][channel block][padded filters][16]
                                  Winograd w) {
  const int filters = padded_filters(w), elements = channel_blocks(w) * filters * kBlock;
  const int i = blockIdx.x * kHalfThreads + threadIdx.x;  // (channel block, filter, channel of the block)
  if (i >= elements) return;
  float tile[kTileSize<Form>][kTileSize<Form>];
  load_filter<Form>(filter, w, i / kBlock % filters, i / kBlock / filters * kBlock + i % kBlock, tile);
  UNROLL
  for (int position = 0; position < kPositions<Form>; ++position)
    u[position * elements + i] = __float2half_rn(tile[position / kTileSize<Form>][position % kTileSize<Form>]);
}

// V: a thread transforms one tile of two channels. Eight threads take a channel block, four such groups four tiles:
// they write 128 bytes in one piece. The block's other threads take the tiles' other channels.
template <class Form>
__global__ void transform_inputs(const half* input,  // [batch][height][width][channels]
                                 half* v,            // [position][channel block][padded tiles][16]
                                 Winograd w) {
  const int tiles = padded_tiles(w), elements = channel_blocks(w) * tiles * kBlock;
  const int i = blockIdx.x * kHalfThreads + threadIdx.x;
  if (i >= elements / 2) return;
  const int pair = i % 8, block = i / 32 % channel_blocks(w), t = i / 32 / channel_blocks(w) * 4 + i / 8 % 4;
  half2 tile[kTileSize<Form>][kTileSize<Form>];
  load_tile<Form>(input, w, t, block * kBlock + pair * 2, tile);
  half* out = v + (block * tiles + t) * kBlock + pair * 2;
  UNROLL
  for (int position = 0; position < kPositions<Form>; ++position)
    *reinterpret_cast<half2*>(out + position * elements) = tile[position / kTileSize<Form>][position % kTileSize<Form>];
}

// The outputs of tile t for filters k and k + 1 (k even), from their sums: sum_of(position, 0 or 1).
template <class Form, class SumOf>
__device__ __forceinline__ void store_outputs(const SumOf& sum_of,
                                              half* output,  // [batch][out_height][out_width][filters]
                                              const Winograd& w, int t, int k) {
  constexpr int kSize = kTileSize<Form>, kOutputs = kTileOutputs<Form>;
  float y[2][kOutputs][kOutputs];
  UNROLL
  for (int high = 0; high < 2; ++high) {
    float tile[kSize][kSize];
    UNROLL
    for (int position = 0; position < kPositions<Form>; ++position)
      tile[position / kSize][position % kSize] = sum_of(position, high);
    transform_output<Form>(tile, y[high]);
  }
  const TilePlace place = place_of(w, t);
  UNROLL
  for (int a = 0; a < kOutputs; ++a) {
    UNROLL
    for (int b = 0; b < kOutputs; ++b) {
      const int p = place.row + a, q = place.column + b;
      if (p >= w.out_height || q >= w.out_width) continue;
      half* out = output + ((place.image * w.out_height + p) * w.out_width + q) * w.filters + k;
      if (w.filters % 2 == 0) {
        *reinterpret_cast<half2*>(out) = __floats2half2_rn(y[0][a][b], y[1][a][b]);
      } else {
        out[0] = __float2half_rn(y[0][a][b]);
        if (k + 1 < w.filters) out[1] = __float2half_rn(y[1][a][b]);
      }
    }
  }
}

// The same from halves.
template <class Form>
__device__ __forceinline__ void store_tile(const half2 (&sums)[kPositions<Form>], half* output, const Winograd& w,
                                           int t, int k) {
  store_outputs<Form>([&](int i, int high) { return high ? __high2float(sums[i]) : __low2float(sums[i]); }, output, w,
                      t, k);
}

// The output: a thread transforms one tile of two filters back.
template <class Form>
__global__ void transform_outputs(const half* m,  // [position][padded tiles][padded filters]
                                  half* output,   // [batch][out_height][out_width][filters]
                                  Winograd w) {
  const int filters = padded_filters(w), pairs = (w.filters + 1) / 2;
  const int i = blockIdx.x * kHalfThreads + threadIdx.x, t = i / pairs, k = i % pairs * 2;
  if (t >= w.tiles) return;
  half2 sums[kPositions<Form>];
  UNROLL
  for (int position = 0; position < kPositions<Form>; ++position)
    sums[position] = *reinterpret_cast<const half2*>(m + (position * padded_tiles(w) + t) * filters + k);
  store_tile<Form>(sums, output, w, t, k);
}

// Zero sums at some rows of positions, fragments down and across.
template <class Shape, class T, int Rows, int Down, int Across>
__device__ __forceinline__ void fill_sums(FragmentSums<Shape, T> (&sums)[Rows][Down][Across], int down, int across) {
  UNROLL
  for (int row = 0; row < Rows; ++row) {
    UNROLL
    for (int i = 0; i < down; ++i) {
      UNROLL
      for (int j = 0; j < across; ++j) wmma::fill_fragment(sums[row][i][j], T{0});
    }
  }
}

// A warp's 256 sums of a fragment go to M as halves, through a patch of shared memory that is the warp's own. A
// lane takes eight of a row from there. Rows begin so many numbers apart that no two of those that are stored together,
// and of those that eight lanes load together, lie in the same bank.
template <class Shape>
struct Patch {
  static constexpr int kPitch = Shape::kFilters == 8 ? 8 : Shape::kFilters == 16 ? 24 : 36;
  static constexpr int kLanes = Shape::kFilters / 8;  // of a row
  static __device__ __forceinline__ int row(int lane) { return lane / kLanes; }
  static __device__ __forceinline__ int column(int lane) { return lane % kLanes * 8; }
  // Whether the lane loads the second four of its sums first.
  static __device__ __forceinline__ bool turned(int lane) {
    return Shape::kFilters == 8 ? lane / 4 % 2 != 0 : Shape::kFilters == 16 && lane % 2 != 0;
  }
};
constexpr int kPatch = 16 * 24;  // numbers of the largest

template <class Shape, class Four, class Number>
__device__ __forceinline__ void load_eight(const Number* patch, int lane, Four& low, Four& high) {
  const bool turned = Patch<Shape>::turned(lane);
  const Number* eight = patch + Patch<Shape>::row(lane) * Patch<Shape>::kPitch + Patch<Shape>::column(lane);
  const Four first = *reinterpret_cast<const Four*>(eight + (turned ? 4 : 0));
  const Four second = *reinterpret_cast<const Four*>(eight + (turned ? 0 : 4));
  low = turned ? second : first;
  high = turned ? first : second;
}

// 16 bytes that are stored at once.
struct __align__(16) Halves8 {
  half2 pairs[4];
};

template <class Shape>
__device__ __forceinline__ void store_sums(const FragmentSums<Shape, float>& sums,
                                           float* patch,            // of the warp
                                           half* out, int pitch) {  // row 0, column 0; halves from row to row
  wmma::store_matrix_sync(patch, sums, Patch<Shape>::kPitch, wmma::mem_row_major);
  __syncwarp();
  const int lane = threadIdx.x % 32;
  float4 low, high;
  load_eight<Shape>(patch, lane, low, high);
  __syncwarp();  // the patch is read
  Halves8 halves = {__floats2half2_rn(low.x, low.y), __floats2half2_rn(low.z, low.w), __floats2half2_rn(high.x, high.y),
                    __floats2half2_rn(high.z, high.w)};
  *reinterpret_cast<uint4*>(out + Patch<Shape>::row(lane) * pitch + Patch<Shape>::column(lane)) =
      *reinterpret_cast<const uint4*>(&halves);
}

#if !defined(__CUDACC_RTC__)

// Elements of U, V and M.
template <class Form>
std::int64_t filter_elements(const Winograd& w) {
  return std::int64_t{kPositions<Form>} * channel_blocks(w) * kBlock * padded_filters(w);
}
template <class Form>
std::int64_t input_elements(const Winograd& w) {
  return std::int64_t{kPositions<Form>} * channel_blocks(w) * kBlock * padded_tiles(w);
}
template <class Form>
std::int64_t product_elements(const Winograd& w) {
  return std::int64_t{kPositions<Form>} * padded_filters(w) * padded_tiles(w);
}

template <class Form>
void launch_transform_filters(const float* filter, half* u, const Winograd& w, Stream stream) {
  launch(transform_filters<Form>, dim3(blocks_for(channel_blocks(w) * kBlock * padded_filters(w), kHalfThreads)),
         dim3(kHalfThreads), 0, stream)(filter, u, w);
}

template <class Form>
void launch_transform_inputs(const half* input, half* v, const Winograd& w, Stream stream) {
  launch(transform_inputs<Form>, dim3(blocks_for(channel_blocks(w) * padded_tiles(w) * kBlock / 2, kHalfThreads)),
         dim3(kHalfThreads), 0, stream)(input, v, w);
}

template <class Form>
void launch_transform_outputs(const half* m, half* output, const Winograd& w, Stream stream) {
  launch(transform_outputs<Form>, dim3(blocks_for(w.tiles * ((w.filters + 1) / 2), kHalfThreads)), dim3(kHalfThreads),
         0, stream)(m, output, w);
}

#endif

}  // namespace
}  // namespace convladder
