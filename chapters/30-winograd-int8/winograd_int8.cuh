// 30 winograd-int8: transformed tiles and filters in 8 bits. F(2 x 2, 3 x 3), activations in fp16.
//
//   v = scale_v[position] * q_v,  u = scale_u[position][filter] * q_u,  q from -127 to 127
//   M = scale_v scale_u * sum over c of q_v q_u        the sum is exact, in 32 bits
//
// Since 28 and 29: Tensor Cores take bytes at up to twice the rate of halves, and a transformed tile half the memory.
// What is quantised is the transformed tile, not the image: so nothing is lost before the transform. Its 16 positions
// have different ranges (a sum of four pixels, a difference), and each gets a scale of its own; filters have one for
// each position and output channel. F(4 x 4) would magnify the quantisation errors too much.
//
//   1. In prepare(): each filter's scale is its largest element at the position. The input's scale comes from a sample:
//      of eight clipping values, the one that leaves the smallest squared error.
//   2. A block computes TBM tiles x TBN filters at all 16 positions. A warp has a column of them, and half the filters.
//   3. A step transforms and quantises TBK channels of the tiles: into shared memory (as in 28), or into a buffer of
//      the block's own in global memory that fits in L2 (as in 29). A barrier before the loads, and one after them.
//   4. Epilogue: the sums are multiplied by their scales and stored as halves. A kernel of its own transforms them
//      back. With "sums=int32" they are stored as they are, and that kernel multiplies.

#pragma once
#include "chapters/26-winograd-tensor-core/half_transforms.cuh"

namespace convladder {
namespace {

using Form = F2;

constexpr int kSize = kTileSize<Form>;
constexpr int kGroups = 2;  // warps of a column
constexpr int kWarps = kGroups * kSize, kThreads = 32 * kWarps;
constexpr float kLargest = 127.0f;

constexpr int kSampleTiles = 1024;  // at most, evenly spread over the batch, with all their channels
constexpr int kCandidates = 8;      // clipping values: the largest element, and 9, 8, ... 3 tenths of it
constexpr int kCalibrationThreads = 256;

// Bytes from one channel block of a step to the next. In shared memory 32 more than it takes: the blocks that a warp
// stores at once then lie in different banks.
__host__ __device__ __forceinline__ constexpr int block_pitch(int tbm, bool llc) {
  return tbm * kBlock + (llc ? 0 : 32);
}
// Bytes of a step's tiles: [position][channel block][TBM][16]
template <class Block>
__host__ __device__ __forceinline__ constexpr int buffer_of(Block b, bool llc) {
  return kPositions<Form> * (b.tbk / kBlock) * block_pitch(b.tbm, llc);
}

// A warp's sums: fragments down and across, at four positions.
template <class Shape, class Block>
using Sums =
    FragmentSums<Shape, int>[kSize][Room<Block>::tbm / Shape::kTiles][Room<Block>::tbn / Shape::kFilters / kGroups];

__device__ __forceinline__ int quantise(float value, float inverse) {
  const float scaled = value * inverse;
  return __float2int_rn(fminf(fmaxf(scaled, -kLargest), kLargest));
}

// 1. A warp quantises one filter, all channels of it.
__global__ void quantise_filters(const float* filter,  // [filters][channels][3][3]
                                 signed char* u,       // [position][channel block][padded filters][16]
                                 float* scales,        // [position][padded filters]
                                 Winograd w) {
  const int filters = padded_filters(w), channels = channel_blocks(w) * kBlock;
  const int k = (blockIdx.x * kHalfThreads + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (k >= filters) return;
  float largest[kPositions<Form>] = {}, tile[kSize][kSize];
  for (int c = lane; c < channels; c += 32) {
    load_filter<Form>(filter, w, k, c, tile);
    UNROLL
    for (int i = 0; i < kPositions<Form>; ++i) largest[i] = fmaxf(largest[i], fabsf(tile[i / kSize][i % kSize]));
  }
  UNROLL
  for (int i = 0; i < kPositions<Form>; ++i) {
    UNROLL
    for (int bits = 16; bits > 0; bits /= 2) largest[i] = fmaxf(largest[i], __shfl_xor_sync(~0u, largest[i], bits));
    if (lane == 0) scales[i * filters + k] = largest[i] / kLargest;
  }
  for (int c = lane; c < channels; c += 32) {
    load_filter<Form>(filter, w, k, c, tile);
    UNROLL
    for (int i = 0; i < kPositions<Form>; ++i)
      u[((i * channels / kBlock + c / kBlock) * filters + k) * kBlock + c % kBlock] = static_cast<signed char>(
          quantise(tile[i / kSize][i % kSize], largest[i] > 0.0f ? kLargest / largest[i] : 0.0f));
  }
}

// The largest, or the sum, of the block's values: the same order in every run.
template <bool Sum>
__device__ __forceinline__ float reduce(float value, float* shared) {
  shared[threadIdx.x] = value;
  for (int half = kCalibrationThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (static_cast<int>(threadIdx.x) < half) {
      const float other = shared[threadIdx.x + half], mine = shared[threadIdx.x];
      shared[threadIdx.x] = Sum ? mine + other : fmaxf(mine, other);
    }
  }
  __syncthreads();
  const float result = shared[0];
  __syncthreads();  // it is read
  return result;
}

// Two channels of a tile of the sample, at a position.
__device__ __forceinline__ float2 load_sample(const half* input, const Winograd& w, int position, int i) {
  const int pairs = (w.channels + 1) / 2, sample = min(w.tiles, kSampleTiles);
  half2 tile[kSize][kSize];
  const int t = static_cast<int>(static_cast<long long>(i / pairs) * w.tiles / sample);
  load_tile<Form>(input, w, t, i % pairs * 2, tile);
  float low = 0.0f, high = 0.0f;
  UNROLL
  for (int p = 0; p < kPositions<Form>; ++p) {
    low = p == position ? __low2float(tile[p / kSize][p % kSize]) : low;
    high = p == position ? __high2float(tile[p / kSize][p % kSize]) : high;
  }
  return make_float2(low, high);
}

// The step of the j-th candidate.
__device__ __forceinline__ float step_of(int j, float largest) { return largest * (10 - j) / 10 / kLargest; }

// A block finds the scale of its position.
__global__ void __launch_bounds__(kCalibrationThreads) calibrate(const half* input,  // [batch][height][width][channels]
                                                                 float* scale,       // [position], then the inverses
                                                                 Winograd w) {
  __shared__ float shared[kCalibrationThreads];
  const int position = blockIdx.x, samples = min(w.tiles, kSampleTiles) * ((w.channels + 1) / 2);
  float largest = 0.0f;
  for (int i = threadIdx.x; i < samples; i += kCalibrationThreads) {
    const float2 v = load_sample(input, w, position, i);
    largest = fmaxf(largest, fmaxf(fabsf(v.x), fabsf(v.y)));
  }
  largest = reduce<false>(largest, shared);

  float errors[kCandidates] = {};
  for (int i = threadIdx.x; i < samples; i += kCalibrationThreads) {
    const float2 v = load_sample(input, w, position, i);
    UNROLL
    for (int j = 0; j < kCandidates; ++j) {
      const float step = step_of(j, largest), inverse = step > 0.0f ? 1.0f / step : 0.0f;
      const float a = v.x - step * quantise(v.x, inverse), b = v.y - step * quantise(v.y, inverse);
      errors[j] += a * a + b * b;
    }
  }
  float best = 0.0f, best_step = 0.0f;
  UNROLL
  for (int j = 0; j < kCandidates; ++j) {
    const float error = reduce<true>(errors[j], shared);
    if (j == 0 || error < best) {
      best = error;
      best_step = step_of(j, largest);
    }
  }
  if (threadIdx.x == 0) {
    scale[position] = best_step;
    scale[kPositions<Form> + position] = best_step > 0.0f ? 1.0f / best_step : 0.0f;
  }
}

// 3. Eight threads take a channel block of a tile, and neighbours the other channel blocks of the step.
template <bool Llc, class Block>
__device__ __forceinline__ void transform_step(const half* input, const float* scale_v, const Winograd& w, int first_t,
                                               int first_block, int step_blocks, signed char* transformed, Block b) {
  const int pitch = block_pitch(b.tbm, Llc), most_blocks = b.tbk / kBlock;
  UNROLL_BY(1)
  for (int i = threadIdx.x; i < b.tbm * step_blocks * kBlock / 2; i += kThreads) {
    const int pair = i % 8, block = i / 8 % step_blocks, t = i / 8 / step_blocks;
    half2 tile[kSize][kSize];
    load_tile<Form>(input, w, first_t + t, (first_block + block) * kBlock + pair * 2, tile);
    signed char* out = transformed + block * pitch + t * kBlock + pair * 2;
    UNROLL
    for (int p = 0; p < kPositions<Form>; ++p) {
      const float inverse = scale_v[kPositions<Form> + p];
      const int low = quantise(__low2float(tile[p / kSize][p % kSize]), inverse);
      const int high = quantise(__high2float(tile[p / kSize][p % kSize]), inverse);
      *reinterpret_cast<short*>(out + p * most_blocks * pitch) = static_cast<short>((low & 255) | high << 8);
    }
  }
}

template <class Shape, bool Llc, class Block>
__device__ __forceinline__ void multiply_step(const signed char* transformed, const signed char* u, const Winograd& w,
                                              int first_k, int first_block, int step_blocks, int column,
                                              Sums<Shape, Block>& sums, Block b) {
  const int filters = padded_filters(w), blocks = channel_blocks(w);
  const int pitch = block_pitch(b.tbm, Llc), most_blocks = b.tbk / kBlock;
  const int down = b.tbm / Shape::kTiles, across = b.tbn / Shape::kFilters / kGroups;
  UNROLL_BY(1)
  for (int block = 0; block < step_blocks; ++block) {
    UNROLL
    for (int row = 0; row < kSize; ++row) {
      const int position = row * kSize + column;
      FragmentA<Shape, signed char> tile_rows[Room<Block>::tbm / Shape::kTiles];
      FragmentB<Shape, signed char> filter_rows;
      UNROLL
      for (int i = 0; i < down; ++i)
        wmma::load_matrix_sync(
            tile_rows[i], transformed + (position * most_blocks + block) * pitch + Shape::kTiles * i * kBlock, kBlock);
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

// 4. Two times four sums of a row of the patch, multiplied by their scales.
template <class Shape>
__device__ __forceinline__ void store_eight(const int4 (&eight)[2], float scale, const float* scale_u, half* out) {
  Halves8 halves;
  UNROLL
  for (int j = 0; j < 2; ++j) {
    const int4& sum = eight[j];
    const float4 of_filter = *reinterpret_cast<const float4*>(scale_u + 4 * j);
    halves.pairs[2 * j] = __floats2half2_rn(static_cast<float>(sum.x) * (scale * of_filter.x),
                                            static_cast<float>(sum.y) * (scale * of_filter.y));
    halves.pairs[2 * j + 1] = __floats2half2_rn(static_cast<float>(sum.z) * (scale * of_filter.z),
                                                static_cast<float>(sum.w) * (scale * of_filter.w));
  }
  *reinterpret_cast<uint4*>(out) = *reinterpret_cast<const uint4*>(&halves);
}
// The same as they are.
template <class Shape>
__device__ __forceinline__ void store_eight(const int4 (&eight)[2], float, const float*, int* out) {
  UNROLL
  for (int j = 0; j < 2; ++j) *reinterpret_cast<int4*>(out + 4 * j) = eight[j];
}

// A lane has eight sums of a row. `out` is where row 0 and column 0 go, `pitch` the numbers from row to row.
template <class Shape, class Sum>
__device__ __forceinline__ void store_scaled(const FragmentSums<Shape, int>& sums, int* patch, float scale,
                                             const float* scale_u, Sum* out, int pitch, int lane) {
  const int y = Patch<Shape>::row(lane), x = Patch<Shape>::column(lane);
  wmma::store_matrix_sync(patch, sums, Patch<Shape>::kPitch, wmma::mem_row_major);
  __syncwarp();
  int4 eight[2];
  load_eight<Shape>(patch, lane, eight[0], eight[1]);
  __syncwarp();  // the patch is read
  store_eight<Shape>(eight, scale, scale_u + x, out + y * pitch + x);
}

template <class Shape, class Sum, class Block>
__device__ __forceinline__ void store_products(const Sums<Shape, Block>& sums, int* patch, const float* scale_v,
                                               const float* scale_u, Sum* m, const Winograd& w, int first_t,
                                               int first_k, int column, int lane, Block b) {
  const int filters = padded_filters(w), tiles = padded_tiles(w);
  UNROLL
  for (int row = 0; row < kSize; ++row) {
    UNROLL
    for (int i = 0; i < b.tbm / Shape::kTiles; ++i) {
      const int position = row * kSize + column, t = first_t + Shape::kTiles * i;
      if (b.tbm > kTileUnit && t >= tiles) continue;
      UNROLL
      for (int j = 0; j < b.tbn / Shape::kFilters / kGroups; ++j) {
        const int k = first_k + Shape::kFilters * j;
        if (k >= filters) continue;
        store_scaled<Shape>(sums[row][i][j], patch, scale_v[position], scale_u + position * filters + k,
                            m + (position * tiles + t) * filters + k, filters, lane);
      }
    }
  }
}

// 2. @tparam Sum half or int: what is stored
template <class Shape, class Block, bool Llc, class Sum>
__global__ void __launch_bounds__(kThreads, 2)
    multiply(const half* input,     // [batch][height][width][channels]
             const signed char* u,  // [position][channel block][padded filters][16]
             const float* scale_v,  // [position], then the inverses
             const float* scale_u,  // [position][padded filters]
             signed char* buffers,  // [block][buffer_of()], with Llc
             Sum* m,                // [position][padded tiles][padded filters]
             Winograd w, Block b) {
  __shared__ __align__(32) int patches[kWarps][kPatch];
  signed char* const transformed =
      Llc ? buffers + static_cast<int>(blockIdx.x) * buffer_of(b, Llc) : dynamic_shared<signed char>();
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32, column = warp % kSize;
  const int filter_parts = blocks_for(padded_filters(w), b.tbn), most_blocks = b.tbk / kBlock;
  const int parts = blocks_for(padded_tiles(w), b.tbm) * filter_parts, blocks = channel_blocks(w);

  UNROLL_BY(1)
  for (int part = blockIdx.x; part < parts; part += gridDim.x) {
    const int first_k = part % filter_parts * b.tbn + warp / kSize * (b.tbn / kGroups);
    const int first_t = part / filter_parts * b.tbm;
    Sums<Shape, Block> sums;
    fill_sums<Shape, int>(sums, b.tbm / Shape::kTiles, b.tbn / Shape::kFilters / kGroups);

    UNROLL_BY(1)
    for (int first_block = 0; first_block < blocks; first_block += most_blocks) {
      const int step_blocks = min(most_blocks, blocks - first_block);
      transform_step<Llc>(input, scale_v, w, first_t, first_block, step_blocks, transformed, b);
      __syncthreads();
      multiply_step<Shape, Llc>(transformed, u, w, first_k, first_block, step_blocks, column, sums, b);
      __syncthreads();  // the transformed tiles are read
    }
    store_products<Shape>(sums, patches[warp], scale_v, scale_u, m, w, first_t, first_k, column, lane, b);
  }
}

// The output from sums as they are: a thread transforms one tile of two filters back.
__global__ void transform_sums(const int* m,          // [position][padded tiles][padded filters]
                               const float* scale_v,  // [position]
                               const float* scale_u,  // [position][padded filters]
                               half* output,          // [batch][out_height][out_width][filters]
                               Winograd w) {
  const int filters = padded_filters(w), pairs = (w.filters + 1) / 2;
  const int i = blockIdx.x * kHalfThreads + threadIdx.x, t = i / pairs, k = i % pairs * 2;
  if (t >= w.tiles) return;
  float2 sums[kPositions<Form>];
  UNROLL
  for (int position = 0; position < kPositions<Form>; ++position) {
    const int2 sum = *reinterpret_cast<const int2*>(m + (position * padded_tiles(w) + t) * filters + k);
    const float2 of_filter = *reinterpret_cast<const float2*>(scale_u + position * filters + k);
    sums[position] = make_float2(static_cast<float>(sum.x) * (scale_v[position] * of_filter.x),
                                 static_cast<float>(sum.y) * (scale_v[position] * of_filter.y));
  }
  store_outputs<Form>([&](int position, int high) { return high ? sums[position].y : sums[position].x; }, output, w, t,
                      k);
}

#if !defined(__CUDACC_RTC__)

// ---- Launch ---------------------------------------------------------------------------------------------------------

void launch_quantise_filters(const float* filter, signed char* u, float* scales, const Winograd& w, Stream stream) {
  launch(quantise_filters, dim3(blocks_for(padded_filters(w), kHalfThreads / 32)), dim3(kHalfThreads), 0, stream)(
      filter, u, scales, w);
}

void launch_calibrate(const half* input, float* scale, const Winograd& w, Stream stream) {
  launch(calibrate, dim3(kPositions<Form>), dim3(kCalibrationThreads), 0, stream)(input, scale, w);
}

void launch_transform_sums(const int* m, const float* scale_v, const float* scale_u, half* output, const Winograd& w,
                           Stream stream) {
  launch(transform_sums, dim3(blocks_for(w.tiles * ((w.filters + 1) / 2), kHalfThreads)), dim3(kHalfThreads), 0,
         stream)(m, scale_v, scale_u, output, w);
}

#endif

}  // namespace
}  // namespace convladder
