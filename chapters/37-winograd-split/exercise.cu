// 37, exercise: a scale for each tile
//
//   V = 2^e v for each tile and 64 channels;   M += 2^-e (Ul Vh + Uh Vl + Uh Vh)
//
// Stage 37 does this with Winograd's tiles, and wgmma. Here a pixel stands for the tile, and the filter is 1 x 1:
// [pixels][filters] = [pixels][channels] x [channels][filters], in fp32, by mma.sync, from products of halves.
//
//   1. The exponent of the power of two by which numbers are multiplied whose largest magnitude is known.
//   2. A number that was multiplied so is split into two halves. In prepare(): the filters (given).
//   3. A block has 64 pixels x 64 filters. For each 64 channels eight neighbouring lanes have a pixel, a lane eight of
//      its channels (given). They find the largest magnitude among the 64, and agree on the exponent.
//   4. They multiply, split, and store 16 bytes of each half. One lane of a pixel stores what multiplies its sums back.
//   5. Three products of tiles, the small ones first, from a sum that begins at zero. It is multiplied back pixel by
//      pixel, as it is added to the master sum.
//
// Rules: the input is read once, in multiply(); products are made by add_product(), as it is. Graded: the outputs, also
// where pixels and their groups of 64 channels have very different sizes, and where numbers have no leading bit; no
// fault; the bytes that are read; the products that are made; requests and conflicts.

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
constexpr int kLanes = kDepth / kChunk;  // of a pixel

struct Product {
  int pixels, channels, filters;
  int steps, filter_blocks;  // of 64 channels, of 64 filters
};

// 16 bytes that are stored at once.
struct __align__(16) Halves8 {
  half2 pairs[4];
};

// ---- Given: powers of two, and the largest magnitude of the filters -------------------------------------------------

// The exponent of a positive number's leading bit: 2^e <= value < 2^(e + 1). Of a number below 2^-126, and of 0, it is
// -127: there the format has no leading bit.
[[maybe_unused]] __device__ __forceinline__ int exponent_of(float value) {
  return static_cast<int>(*reinterpret_cast<const unsigned*>(&value) >> 23) - 127;
}
// 2 to this power, from -126 to 127.
[[maybe_unused]] __device__ __forceinline__ float power_of_two(int exponent) {
  const unsigned bits = static_cast<unsigned>(exponent + 127) << 23;
  return *reinterpret_cast<const float*>(&bits);
}

__global__ void clear(int* largest) { *largest = 0; }

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

// 1. Of the power of two for numbers of which this is the largest magnitude.
__device__ __forceinline__ int scaling_exponent(float largest) {
  // So far nothing is scaled.
  static_cast<void>(largest);
  return 0;
}

struct Split {
  half high, low;
};

// 2. Of a number that was multiplied already.
__device__ __forceinline__ Split split(float value) {
  // So far the high half alone.
  return {__float2half_rn(value), __float2half_rn(0.0f)};
}

// Given: a thread an element.
__global__ void pack(const float* filter,    // [filters][channels]
                     const float* largest,   // of the filters
                     half* high, half* low,  // the same, with zeros up to whole tiles
                     Product g) {
  const int i = blockIdx.x * kThreads + threadIdx.x, k = i / (g.steps * kDepth), c = i % (g.steps * kDepth);
  if (k >= g.filter_blocks * kTile) return;
  const float value = k < g.filters && c < g.channels ? filter[k * g.channels + c] : 0.0f;
  const Split halves = split(value * power_of_two(scaling_exponent(*largest)));
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
                                                     const float* largest,  // of the filters
                                                     float* output,         // [pixels][filters]
                                                     Product g) {
  half* const high_pixels = dynamic_shared<half>();        // [64][64], swizzled by place(), and so are the others
  half* const low_pixels = high_pixels + kTile * kDepth;   //
  half* const high_filters = low_pixels + kTile * kDepth;  //
  half* const low_filters = high_filters + kTile * kDepth;
  float* const back = reinterpret_cast<float*>(low_filters + kTile * kDepth);  // [64]: of each pixel, for the step
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
    // Given: the pixels. The lanes of a pixel are 8 i to 8 i + 7 of their warp.
    for (int i = thread; i < kTile * kLanes; i += kThreads) {
      const int row = i / kLanes, chunk = i % kLanes, c = step * kDepth + chunk * kChunk;
      float values[kChunk] = {};
      if (first_pixel + row < g.pixels && c < g.channels) {
        const float4* const from = reinterpret_cast<const float4*>(input + (first_pixel + row) * g.channels + c);
        const float4 first = from[0], second = from[1];
        values[0] = first.x, values[1] = first.y, values[2] = first.z, values[3] = first.w;
        values[4] = second.x, values[5] = second.y, values[6] = second.z, values[7] = second.w;
      }
      // 3.
      // So far nothing is scaled.
      // 4.
      // So far the high halves alone, one by one.
      for (int j = 0; j < kChunk; ++j) high_pixels[place(row, chunk) + j] = __float2half_rn(values[j]);
      static_cast<void>(back);
    }
    __syncthreads();
    // 5.
    // So far one product.
    add_product(master, high_pixels, high_filters);
    __syncthreads();  // the tiles are read
  }

  // Given: the filters' factor is the same for all sums.
  const float of_filters = power_of_two(-scaling_exponent(*largest));
  UNROLL
  for (int i = 0; i < kTile / 8 * 2; ++i) {
    const int pixel = first_pixel + thread / 32 * 16 + lane / 4 + i % 2 * 8, filter = first_filter + i / 2 * 8;
    if (pixel < g.pixels && filter < g.filters)
      *reinterpret_cast<float2*>(output + pixel * g.filters + filter + lane % 4 * 2) =
          make_float2(master[i / 2][i % 2 * 2] * of_filters, master[i / 2][i % 2 * 2 + 1] * of_filters);
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
    const int filters = g.filters * g.channels;
    const int packed = g.filter_blocks * kTile * g.steps * kDepth;
    high_.allocate<half>(packed);
    low_.allocate<half>(packed);
    largest_.allocate<int>(1);
    const auto run = [&](auto kernel, int blocks, int threads) {
      return convladder::launch(kernel, dim3(blocks), dim3(threads), 0, stream);
    };
    constexpr int kElements = 16;  // of a thread
    run(clear, 1, 1)(largest_.ints());
    run(find_largest, blocks_for(filters, kElements * kThreads), kThreads)(tensors.filter, filters, largest_.ints());
    run(pack, blocks_for(packed, kThreads), kThreads)(tensors.filter, largest_.floats(), high_.as<half>(),
                                                      low_.as<half>(), g);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Product g = product_of(problem);
    const int blocks = blocks_for(g.pixels, kTile) * g.filter_blocks;
    constexpr std::size_t kShared = 4 * kTile * kDepth * sizeof(half) + kTile * sizeof(float);
    convladder::launch(multiply, dim3(blocks), dim3(kThreads), kShared, stream)(
        tensors.input, high_.as<half>(), low_.as<half>(), largest_.floats(), tensors.output, g);
  }

  Workspace high_{*this, "high halves of the filter"};
  Workspace low_{*this, "low halves of the filter"};
  Workspace largest_{*this, "largest magnitude of the filter"};
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::SplitProduct)
