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
//   3. A step transforms and quantises 64 channels of the tiles: into shared memory (as in 28), or into a buffer of the
//      block's own in global memory that fits in L2 (as in 29). A barrier before the loads, and one after them.
//   4. Epilogue: the sums are multiplied by their scales and stored as halves. A kernel of its own transforms them
//   back.

#pragma once
#include "chapters/26-winograd-tensor-core/half_transforms.cuh"

namespace convladder {
namespace {

using Form = F2;

constexpr int kSize = kTileSize<Form>;
constexpr int kGroups = 2;  // warps of a column
constexpr int kWarps = kGroups * kSize, kThreads = 32 * kWarps;
constexpr int kStepBlocks = 4;  // channel blocks of a step
constexpr int kSums = 1024;     // of a block at a position
constexpr float kLargest = 127.0f;

constexpr int kSampleTiles = 1024;  // at most, evenly spread over the batch, with all their channels
constexpr int kCandidates = 8;      // clipping values: the largest element, and 9, 8, ... 3 tenths of it
constexpr int kCalibrationThreads = 256;

template <int Tiles>
constexpr int kFilters = kSums / Tiles;
// Bytes from one channel block of a step to the next. In shared memory 32 more than it takes: the four blocks that a
// warp stores at once then lie in different banks.
template <int Tiles, bool Llc>
constexpr int kBlockPitch = Tiles* kBlock + (Llc ? 0 : 32);
// Bytes of a step's tiles: [position][channel block][Tiles][16]
template <int Tiles, bool Llc>
constexpr int kBuffer = kPositions<Form>* kStepBlocks* kBlockPitch<Tiles, Llc>;

// A warp's sums: four positions, 16 x 16 tiles and filters a fragment.
template <int Tiles>
constexpr int kDown = Tiles / 16;
template <int Tiles>
constexpr int kAcross = kFilters<Tiles> / 16 / kGroups;
using Fragment = wmma::fragment<wmma::accumulator, 16, 16, 16, int>;
template <int Tiles>
using Sums = Fragment[kSize][kDown<Tiles>][kAcross<Tiles>];

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
template <int Tiles, bool Llc>
__device__ __forceinline__ void transform_step(const half* input, const float* scale_v, const Winograd& w, int first_t,
                                               int first_block, int step_blocks, signed char* transformed) {
  constexpr int kPitch = kBlockPitch<Tiles, Llc>;
  UNROLL_BY(1)
  for (int i = threadIdx.x; i < Tiles * step_blocks * kBlock / 2; i += kThreads) {
    const int pair = i % 8, block = i / 8 % step_blocks, t = i / 8 / step_blocks;
    half2 tile[kSize][kSize];
    load_tile<Form>(input, w, first_t + t, (first_block + block) * kBlock + pair * 2, tile);
    signed char* out = transformed + block * kPitch + t * kBlock + pair * 2;
    UNROLL
    for (int p = 0; p < kPositions<Form>; ++p) {
      const float inverse = scale_v[kPositions<Form> + p];
      const int low = quantise(__low2float(tile[p / kSize][p % kSize]), inverse);
      const int high = quantise(__high2float(tile[p / kSize][p % kSize]), inverse);
      *reinterpret_cast<short*>(out + p * kStepBlocks * kPitch) = static_cast<short>((low & 255) | high << 8);
    }
  }
}

template <int Tiles, bool Llc>
__device__ __forceinline__ void multiply_step(const signed char* transformed, const signed char* u, const Winograd& w,
                                              int first_k, int first_block, int step_blocks, int column,
                                              Sums<Tiles>& sums) {
  constexpr int kPitch = kBlockPitch<Tiles, Llc>;
  const int filters = padded_filters(w), blocks = channel_blocks(w);
  UNROLL_BY(1)
  for (int block = 0; block < step_blocks; ++block) {
    UNROLL
    for (int row = 0; row < kSize; ++row) {
      const int position = row * kSize + column;
      wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> a[kDown<Tiles>];
      wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> b;
      UNROLL
      for (int i = 0; i < kDown<Tiles>; ++i)
        wmma::load_matrix_sync(a[i], transformed + (position * kStepBlocks + block) * kPitch + 16 * i * kBlock, kBlock);
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

// 4. A lane has eight sums of a row. `out` is where row 0 and column 0 go, `pitch` the halves from row to row.
__device__ __forceinline__ void store_scaled(const Fragment& sums, int* patch, float scale, const float* scale_u,
                                             half* out, int pitch, int lane) {
  const int y = lane / 2, x = lane % 2 * 8;
  wmma::store_matrix_sync(patch, sums, kPatchPitch, wmma::mem_row_major);
  __syncwarp();
  int4 eight[2];
  load_eight(patch, lane, eight[0], eight[1]);
  Halves8 halves;
  UNROLL
  for (int j = 0; j < 2; ++j) {
    const int4& sum = eight[j];
    const float4 of_filter = *reinterpret_cast<const float4*>(scale_u + x + 4 * j);
    halves.pairs[2 * j] = __floats2half2_rn(static_cast<float>(sum.x) * (scale * of_filter.x),
                                            static_cast<float>(sum.y) * (scale * of_filter.y));
    halves.pairs[2 * j + 1] = __floats2half2_rn(static_cast<float>(sum.z) * (scale * of_filter.z),
                                                static_cast<float>(sum.w) * (scale * of_filter.w));
  }
  __syncwarp();  // the patch is read
  *reinterpret_cast<uint4*>(out + y * pitch + x) = *reinterpret_cast<const uint4*>(&halves);
}

template <int Tiles>
__device__ __forceinline__ void store_products(const Sums<Tiles>& sums, int* patch, const float* scale_v,
                                               const float* scale_u, half* m, const Winograd& w, int first_t,
                                               int first_k, int column, int lane) {
  const int filters = padded_filters(w), tiles = padded_tiles(w);
  UNROLL
  for (int row = 0; row < kSize; ++row) {
    UNROLL
    for (int i = 0; i < kDown<Tiles> * kAcross<Tiles>; ++i) {
      const int position = row * kSize + column;
      const int k = first_k + 16 * (i % kAcross<Tiles>), t = first_t + 16 * (i / kAcross<Tiles>);
      if (k >= filters) continue;
      store_scaled(sums[row][i / kAcross<Tiles>][i % kAcross<Tiles>], patch, scale_v[position],
                   scale_u + position * filters + k, m + (position * tiles + t) * filters + k, filters, lane);
    }
  }
}

// 2.
template <int Tiles, bool Llc>
__global__ void __launch_bounds__(kThreads, 2)
    multiply(const half* input,     // [batch][height][width][channels]
             const signed char* u,  // [position][channel block][padded filters][16]
             const float* scale_v,  // [position], then the inverses
             const float* scale_u,  // [position][padded filters]
             signed char* buffers,  // [block][kBuffer], with Llc
             half* m,               // [position][padded tiles][padded filters]
             Winograd w) {
  __shared__ __align__(32) int patches[kWarps][kPatch];
  signed char* const transformed =
      Llc ? buffers + static_cast<int>(blockIdx.x) * kBuffer<Tiles, Llc> : dynamic_shared<signed char>();
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32, column = warp % kSize;
  const int filter_parts = blocks_for(padded_filters(w), kFilters<Tiles>);
  const int parts = padded_tiles(w) / Tiles * filter_parts, blocks = channel_blocks(w);

  UNROLL_BY(1)
  for (int part = blockIdx.x; part < parts; part += gridDim.x) {
    const int first_k = part % filter_parts * kFilters<Tiles> + warp / kSize * (kFilters<Tiles> / kGroups);
    const int first_t = part / filter_parts * Tiles;
    Sums<Tiles> sums;
    UNROLL
    for (int i = 0; i < kSize * kDown<Tiles> * kAcross<Tiles>; ++i)
      wmma::fill_fragment(
          sums[i / kAcross<Tiles> / kDown<Tiles>][i / kAcross<Tiles> % kDown<Tiles>][i % kAcross<Tiles>], 0);

    UNROLL_BY(1)
    for (int first_block = 0; first_block < blocks; first_block += kStepBlocks) {
      const int step_blocks = min(kStepBlocks, blocks - first_block);
      transform_step<Tiles, Llc>(input, scale_v, w, first_t, first_block, step_blocks, transformed);
      __syncthreads();
      multiply_step<Tiles, Llc>(transformed, u, w, first_k, first_block, step_blocks, column, sums);
      __syncthreads();  // the transformed tiles are read
    }
    store_products<Tiles>(sums, patches[warp], scale_v, scale_u, m, w, first_t, first_k, column, lane);
  }
}

// ---- Launch ---------------------------------------------------------------------------------------------------------

void launch_quantise_filters(const float* filter, signed char* u, float* scales, const Winograd& w, Stream stream) {
  launch(quantise_filters, dim3(blocks_for(padded_filters(w), kHalfThreads / 32)), dim3(kHalfThreads), 0, stream)(
      filter, u, scales, w);
}

void launch_calibrate(const half* input, float* scale, const Winograd& w, Stream stream) {
  launch(calibrate, dim3(kPositions<Form>), dim3(kCalibrationThreads), 0, stream)(input, scale, w);
}

template <int Tiles>
std::int64_t parts(const Winograd& w) {
  return std::int64_t{padded_tiles(w) / Tiles} * blocks_for(padded_filters(w), kFilters<Tiles>);
}

// Blocks that are started with Llc: two for each multiprocessor, as long as their buffers take at most half of L2.
template <int Tiles>
int resident_blocks(const Winograd& w) {
  const DeviceLimits limits = device_limits();
  const std::int64_t fitting = limits.l2_bytes / 2 / kBuffer<Tiles, true>;
  std::int64_t blocks = 2 * limits.multiprocessors < fitting ? 2 * limits.multiprocessors : fitting;
  if (parts<Tiles>(w) < blocks) blocks = parts<Tiles>(w);
  return blocks < 1 ? 1 : static_cast<int>(blocks);
}

// What the kernels read and write; buffers with llc alone.
struct Int8Tensors {
  const half* input;
  const signed char* u;
  const float *scale_v, *scale_u;
  signed char* buffers;
  half *m, *output;
};

template <int Tiles>
void launch_kernels(const Int8Tensors& t, bool llc, const Winograd& w, Stream stream) {
  const auto kernel = llc ? multiply<Tiles, true> : multiply<Tiles, false>;
  const unsigned blocks = static_cast<unsigned>(llc ? resident_blocks<Tiles>(w) : parts<Tiles>(w));
  const std::size_t shared_bytes = llc ? 0 : kBuffer<Tiles, false>;
  launch(kernel, dim3(blocks), dim3(kThreads), shared_bytes, stream)(t.input, t.u, t.scale_v, t.scale_u, t.buffers, t.m,
                                                                     w);
  launch_transform_outputs<Form>(t.m, t.output, w, stream);
}

}  // namespace
}  // namespace convladder
