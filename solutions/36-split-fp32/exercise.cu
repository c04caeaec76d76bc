// 36, exercise: how much of the product can be left out?
//
//   x = xh + xl, w = wh + wl           each fp32 number as two halves
//   x w = xh wh + xl wh + xh wl        and xl wl, which is left out
//
// Stage 36 does this with wgmma. Here it is mma.sync and a 1 x 1 filter: [pixels][filters] = [pixels][channels] x
// [channels][filters], in fp32, from products of halves.
//
//   1. A power of two by which a tensor is scaled, so that its halves neither overflow nor fade.
//   2. A scaled number is split into two halves. In prepare(): the filters (given).
//   3. A block has 64 pixels x 64 filters. For each 64 channels it splits its pixels into two tiles in shared memory,
//      16 bytes at a time, without bank conflicts, and copies the filters' two tiles (given).
//   4. Three products of tiles, the small ones first, from a sum that begins at zero. It is added to a master sum.
//   5. The master sum is scaled back, and stored (given).
//
// Rules: products are made by add_product(), as it is. Graded: the outputs, also of tiny and huge numbers and of long
// sums; no fault; the products that are made; requests and conflicts.

#include "common/kernel/half.hpp"
#include "common/kernel/mma.hpp"
#include "common/kernel/tracks/lowering.hpp"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

constexpr int kTile = 64;   // pixels of a block, and filters
constexpr int kDepth = 64;  // channels of a step: rows of 128 bytes
constexpr int kChunk = 8;   // halves in 16 bytes
constexpr int kThreads = 128;
constexpr int kOfInput = 0, kOfFilter = 1;  // places of the largest magnitudes

struct Product {
  int pixels, channels, filters;
  int steps, filter_blocks;  // of 64 channels, of 64 filters
};

// 16 bytes that are stored at once.
struct __align__(16) Halves8 {
  half2 pairs[4];
};

// ---- Given: powers of two, and the largest magnitude of a tensor ----------------------------------------------------

// The exponent of a positive number's leading bit: 2^e <= value < 2^(e + 1).
[[maybe_unused]] __device__ __forceinline__ int exponent_of(float value) {
  return static_cast<int>(*reinterpret_cast<const unsigned*>(&value) >> 23) - 127;
}
// 2 to this power, from -126 to 127.
[[maybe_unused]] __device__ __forceinline__ float power_of_two(int exponent) {
  const unsigned bits = static_cast<unsigned>(exponent + 127) << 23;
  return *reinterpret_cast<const float*>(&bits);
}

__global__ void clear(int* largest) { largest[threadIdx.x] = 0; }

// As an integer: for floats that are not negative the order is the same.
__global__ void find_largest(const float* values, int size, int* largest) {
  float magnitude = 0.0f;
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < size; i += gridDim.x * kThreads)
    magnitude = fmaxf(magnitude, fabsf(values[i]));
  UNROLL
  for (int bits = 16; bits > 0; bits /= 2) magnitude = fmaxf(magnitude, __shfl_xor_sync(~0u, magnitude, bits));
  if (threadIdx.x % 32 == 0) atomicMax(largest, *reinterpret_cast<const int*>(&magnitude));
}

// ---- The split ------------------------------------------------------------------------------------------------------

// 1. The factor of a tensor whose largest magnitude this is.
__device__ __forceinline__ float scale_for(float largest) {
  // SOLUTION
  return largest > 0.0f ? power_of_two(14 - exponent_of(largest)) : 1.0f;
  // STARTER
  // | static_cast<void>(largest);
  // | return 1.0f;
  // END
}

struct Split {
  half high, low;
};

// 2. Of a scaled number.
__device__ __forceinline__ Split split(float value) {
  // SOLUTION
  const half high = __float2half_rn(value);
  return {high, __float2half_rn(value - __half2float(high))};
  // STARTER
  // | // So far the high half alone.
  // | return {__float2half_rn(value), __float2half_rn(0.0f)};
  // END
}

// Given: a thread an element.
__global__ void pack(const float* filter,    // [filters][channels]
                     const float* largest,   // of the input, of the filter
                     half* high, half* low,  // the same, with zeros up to whole tiles
                     Product g) {
  const int i = blockIdx.x * kThreads + threadIdx.x, k = i / (g.steps * kDepth), c = i % (g.steps * kDepth);
  if (k >= g.filter_blocks * kTile) return;
  const float value = k < g.filters && c < g.channels ? filter[k * g.channels + c] : 0.0f;
  const Split halves = split(value * scale_for(largest[kOfFilter]));
  high[i] = halves.high;
  low[i] = halves.low;
}

// ---- The product ----------------------------------------------------------------------------------------------------

// Given: where a chunk of a row lies in a tile, in halves.
__device__ __forceinline__ int place(int row, int chunk) { return row * kDepth + (chunk ^ row % 8) * kChunk; }

// Given: sums += pixels x filters, over the 64 channels of two tiles. A warp has 16 of the pixels; lane l has the sums
// of pixel l / 4 and of pixel l / 4 + 8, for filters 8 j + 2 (l % 4) and the next.
__device__ __forceinline__ void add_product(float (&sums)[kTile / 8][4], const half* pixels, const half* filters) {
  const int lane = threadIdx.x % 32, warp_pixel = threadIdx.x / 32 * 16;
  for (int slice = 0; slice < kDepth / 16; ++slice) {
    unsigned a[4];
    ldmatrix(a, pixels + place(warp_pixel + lane % 16, 2 * slice + lane / 16));
    UNROLL
    for (int j = 0; j < kTile / 8; j += 2) {
      unsigned b[4];
      ldmatrix(b, filters + place(8 * j + lane / 16 * 8 + lane % 8, 2 * slice + lane / 8 % 2));
      mma_m16n8k16(sums[j], a, {b[0], b[1]});
      mma_m16n8k16(sums[j + 1], a, {b[2], b[3]});
    }
  }
}

__global__ void __launch_bounds__(kThreads) multiply(const float* input,    // [pixels][channels]
                                                     const half* high,      // [filters][channels], whole tiles
                                                     const half* low,       // the same
                                                     const float* largest,  // of the input, of the filter
                                                     float* output,         // [pixels][filters]
                                                     Product g) {
  half* const high_pixels = dynamic_shared<half>();        // [64][64], swizzled by place(), and so are the others
  half* const low_pixels = high_pixels + kTile * kDepth;   //
  half* const high_filters = low_pixels + kTile * kDepth;  //
  half* const low_filters = high_filters + kTile * kDepth;
  const int first_pixel = static_cast<int>(blockIdx.x) / g.filter_blocks * kTile;
  const int first_filter = static_cast<int>(blockIdx.x) % g.filter_blocks * kTile;
  const int thread = threadIdx.x, lane = thread % 32;
  float master[kTile / 8][4] = {};

  for (int step = 0; step < g.steps; ++step) {
    // Given: the filters.
    for (int i = thread; i < kTile * kDepth / kChunk; i += kThreads) {
      const int row = i / (kDepth / kChunk), chunk = i % (kDepth / kChunk);
      const int from = (first_filter + row) * (g.steps * kDepth) + step * kDepth + chunk * kChunk;
      *reinterpret_cast<uint4*>(high_filters + place(row, chunk)) = *reinterpret_cast<const uint4*>(high + from);
      *reinterpret_cast<uint4*>(low_filters + place(row, chunk)) = *reinterpret_cast<const uint4*>(low + from);
    }
    // 3.
    // SOLUTION
    const float scale = scale_for(largest[kOfInput]);
    for (int i = thread; i < kTile * kDepth / kChunk; i += kThreads) {
      const int row = i / (kDepth / kChunk), chunk = i % (kDepth / kChunk), c = step * kDepth + chunk * kChunk;
      float values[kChunk] = {};
      if (first_pixel + row < g.pixels && c < g.channels) {
        const float4* const from = reinterpret_cast<const float4*>(input + (first_pixel + row) * g.channels + c);
        const float4 first = from[0], second = from[1];
        values[0] = first.x, values[1] = first.y, values[2] = first.z, values[3] = first.w;
        values[4] = second.x, values[5] = second.y, values[6] = second.z, values[7] = second.w;
      }
      Halves8 highs, lows;
      UNROLL
      for (int j = 0; j < kChunk / 2; ++j) {
        const Split even = split(values[2 * j] * scale), odd = split(values[2 * j + 1] * scale);
        highs.pairs[j] = __halves2half2(even.high, odd.high);
        lows.pairs[j] = __halves2half2(even.low, odd.low);
      }
      *reinterpret_cast<uint4*>(high_pixels + place(row, chunk)) = *reinterpret_cast<const uint4*>(&highs);
      *reinterpret_cast<uint4*>(low_pixels + place(row, chunk)) = *reinterpret_cast<const uint4*>(&lows);
    }
    __syncthreads();
    // STARTER
    // | // So far the high halves alone, one by one.
    // | for (int i = thread; i < kTile * kDepth; i += kThreads) {
    // |   const int row = i / kDepth, c = step * kDepth + i % kDepth;
    // |   const bool inside = first_pixel + row < g.pixels && c < g.channels;
    // |   const float value = inside ? input[(first_pixel + row) * g.channels + c] : 0.0f;
    // |   high_pixels[place(row, i % kDepth / kChunk) + i % kChunk] = __float2half_rn(value);
    // | }
    // | __syncthreads();
    // END
    // 4.
    // SOLUTION
    float sums[kTile / 8][4] = {};
    add_product(sums, low_pixels, high_filters);
    add_product(sums, high_pixels, low_filters);
    add_product(sums, high_pixels, high_filters);
    UNROLL
    for (int j = 0; j < kTile / 8; ++j) {
      UNROLL
      for (int e = 0; e < 4; ++e) master[j][e] += sums[j][e];
    }
    // STARTER
    // | // So far one product.
    // | add_product(master, high_pixels, high_filters);
    // END
    __syncthreads();  // the tiles are read
  }

  // 5.
  // SOLUTION
  const float of_input = 1.0f / scale_for(largest[kOfInput]), of_filter = 1.0f / scale_for(largest[kOfFilter]);
  UNROLL
  for (int j = 0; j < kTile / 8; ++j) {
    UNROLL
    for (int e = 0; e < 4; ++e) master[j][e] *= of_input * of_filter;
  }
  // STARTER
  // | // So far nothing is scaled.
  // | static_cast<void>(largest);
  // END
  UNROLL
  for (int i = 0; i < kTile / 8 * 2; ++i) {
    const int pixel = first_pixel + thread / 32 * 16 + lane / 4 + i % 2 * 8, filter = first_filter + i / 2 * 8;
    if (pixel < g.pixels && filter < g.filters)
      *reinterpret_cast<float2*>(output + pixel * g.filters + filter + lane % 4 * 2) =
          make_float2(master[i / 2][i % 2 * 2], master[i / 2][i % 2 * 2 + 1]);
  }
}

// ---- Given: the host side -------------------------------------------------------------------------------------------

Product product_of(const ConvProblem& problem) {
  const int channels = static_cast<int>(problem.c), filters = static_cast<int>(problem.k);
  return {static_cast<int>(problem.n * problem.h * problem.w), channels, filters, blocks_for(channels, kDepth),
          blocks_for(filters, kTile)};
}

class SplitProduct final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    return check_pointwise(problem, kChunk);
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Product g = product_of(problem);
    const int inputs = g.pixels * g.channels, filters = g.filters * g.channels;
    const int packed = g.filter_blocks * kTile * g.steps * kDepth;
    high_.allocate<half>(packed);
    low_.allocate<half>(packed);
    largest_.allocate<int>(2);
    const auto run = [&](auto kernel, int blocks, int threads) {
      return convladder::launch(kernel, dim3(blocks), dim3(threads), 0, stream);
    };
    constexpr int kElements = 16;  // of a thread
    run(clear, 1, 2)(largest_.ints());
    run(find_largest, blocks_for(inputs, kElements * kThreads), kThreads)(tensors.input, inputs,
                                                                          largest_.ints() + kOfInput);
    run(find_largest, blocks_for(filters, kElements * kThreads), kThreads)(tensors.filter, filters,
                                                                           largest_.ints() + kOfFilter);
    run(pack, blocks_for(packed, kThreads), kThreads)(tensors.filter, largest_.floats(), high_.as<half>(),
                                                      low_.as<half>(), g);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Product g = product_of(problem);
    const int blocks = blocks_for(g.pixels, kTile) * g.filter_blocks;
    convladder::launch(multiply, dim3(blocks), dim3(kThreads), 4 * kTile * kDepth * sizeof(half), stream)(
        tensors.input, high_.as<half>(), low_.as<half>(), largest_.floats(), tensors.output, g);
  }

  Workspace high_{*this, "high halves of the filter"};
  Workspace low_{*this, "low halves of the filter"};
  Workspace largest_{*this, "largest magnitudes"};
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::SplitProduct)
