// 32b one-wgmma: the product of 31a by wgmma, from shared memory.
//
//   [pixels][filters] = [pixels][channels] x [channels][filters]           a convolution with a 1 x 1 filter
//
// The idea: wgmma takes both matrices from shared memory. No lane loads a fragment: four warps, a warpgroup, start a
// product of 64 pixels x 16 channels x 64 filters together, and go on while it runs. 31a tells ldmatrix where each row
// lies; here a descriptor says it once, in 64 bits: where the matrix begins, that 8 rows of it are 1024 bytes, and that
// their chunks of 16 bytes are exchanged by the swizzle of 31a, chunk c of row r at c xor r % 8.
//
//   1. A block is one warpgroup, and has 64 pixels x 64 filters: 32 sums a lane.
//   2. For each 64 channels the block copies a tile of pixels and a tile of filters, 64 rows of 128 bytes each. The
//      tiles begin at multiples of 1024 bytes: the swizzle goes by the address.
//   3. wgmma reads shared memory through the asynchronous proxy, another way than that of ordinary loads: each thread
//      makes its stores visible there, and then all meet.
//   4. Four wgmmas, of 16 channels each. The next 16 begin 32 bytes further: 2 more in a descriptor, which counts in 16
//      bytes. The fence is for the sums, registers that ordinary instructions used before.
//   5. The commit makes one group of them, and the wait is for this group. Then the sums are there, and the tiles may
//      be overwritten.
//   6. Warp w holds pixels 16 w to 16 w + 15, each lane those of 31a. The lane stores its sums as halves.

#include "common/kernel/half.hpp"
#include "common/kernel/hopper.hpp"
#include "common/kernel/tracks/lowering.hpp"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

constexpr int kTile = 64;   // pixels of a block, and filters
constexpr int kDepth = 64;  // channels of a step: rows of 128 bytes
constexpr int kChunk = 8;   // halves in 16 bytes
constexpr int kThreads = 128;

struct Product {
  int pixels, channels, filters;
  int steps, filter_blocks;  // of 64 channels, of 64 filters
};

__global__ void pack(const float* filter,  // [filters][channels]
                     half* packed,         // the same, with zeros up to whole tiles
                     Product g) {
  const int i = blockIdx.x * kThreads + threadIdx.x, k = i / (g.steps * kDepth), c = i % (g.steps * kDepth);
  if (k >= g.filter_blocks * kTile) return;
  packed[i] = __float2half_rn(k < g.filters && c < g.channels ? filter[k * g.channels + c] : 0.0f);
}

// Where a chunk of a row lies in a tile, in halves.
__device__ __forceinline__ int place(int row, int chunk) { return row * kDepth + (chunk ^ row % 8) * kChunk; }

__global__ void __launch_bounds__(kThreads) multiply(const half* input,   // [pixels][channels]
                                                     const half* packed,  // [filters][channels], whole tiles
                                                     half* output,        // [pixels][filters]
                                                     Product g) {
  half* const pixels = dynamic_shared_1024<half>();  // [64][64], swizzled
  half* const filters = pixels + kTile * kDepth;     // [64][64], swizzled
  // 1.
  const int first_pixel = static_cast<int>(blockIdx.x) / g.filter_blocks * kTile;
  const int first_filter = static_cast<int>(blockIdx.x) % g.filter_blocks * kTile;
  const int thread = threadIdx.x, lane = thread % 32, warp_pixel = thread / 32 * 16;
  const std::uint64_t a = swizzled_descriptor(pixels, Swizzle::bytes128);
  const std::uint64_t b = swizzled_descriptor(filters, Swizzle::bytes128);
  float sums[kTile / 2];

  for (int step = 0; step < g.steps; ++step) {
    // 2.
    for (int i = thread; i < kTile * kDepth / kChunk; i += kThreads) {
      const int row = i / (kDepth / kChunk), chunk = i % (kDepth / kChunk), c = step * kDepth + chunk * kChunk;
      const bool inside = first_pixel + row < g.pixels && c < g.channels;
      *reinterpret_cast<uint4*>(pixels + place(row, chunk)) =
          inside ? *reinterpret_cast<const uint4*>(input + (first_pixel + row) * g.channels + c)
                 : make_uint4(0, 0, 0, 0);
      *reinterpret_cast<uint4*>(filters + place(row, chunk)) =
          *reinterpret_cast<const uint4*>(packed + (first_filter + row) * (g.steps * kDepth) + c);
    }
    // 3.
    fence_async_proxy();
    __syncthreads();
    // 4.
    wgmma_fence();
    UNROLL
    for (int slice = 0; slice < kDepth / 16; ++slice)
      wgmma<kTile>(sums, a + slice * 2, b + slice * 2, step > 0 || slice > 0);
    // 5.
    wgmma_commit();
    wgmma_wait<0>();
    pin(sums);
    __syncthreads();
  }

  // 6.
  UNROLL
  for (int i = 0; i < kTile / 8 * 2; ++i) {
    const int pixel = first_pixel + warp_pixel + lane / 4 + i % 2 * 8, filter = first_filter + i / 2 * 8;
    if (pixel < g.pixels && filter < g.filters)
      *reinterpret_cast<half2*>(output + pixel * g.filters + filter + lane % 4 * 2) =
          __floats2half2_rn(sums[2 * i], sums[2 * i + 1]);
  }
}

// ---- The host side --------------------------------------------------------------------------------------------------

Product product_of(const ConvProblem& problem) {
  const int channels = static_cast<int>(problem.c), filters = static_cast<int>(problem.k);
  return {static_cast<int>(problem.n * problem.h * problem.w), channels, filters, blocks_for(channels, kDepth),
          blocks_for(filters, kTile)};
}

int blocks_of(const Product& g) { return blocks_for(g.pixels, kTile) * g.filter_blocks; }

class OneWgmma final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    return check_pointwise(problem, kChunk);
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Product g = product_of(problem);
    const int size = g.filter_blocks * kTile * g.steps * kDepth;
    packed_.allocate<half>(size);
    convladder::launch(pack, blocks_for(size, kThreads), kThreads, 0, stream)(tensors.filter, packed_.as<half>(), g);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Product g = product_of(problem);
    convladder::launch(multiply, blocks_of(g), kThreads, 2 * kTile * kDepth * sizeof(half), stream)(
        tensors.half_input, packed_.as<half>(), tensors.half_output, g);
  }

  // wgmma reads shared memory without a request of a warp.
  Prediction predict(const ConvProblem& problem) const override {
    const Product g = product_of(problem);
    const std::int64_t tiles = std::int64_t{blocks_of(g)} * g.steps;
    Prediction p;
    p.global_load_bytes = 2 * (problem.input_size() * g.filter_blocks + tiles * kTile * kDepth);
    p.global_store_bytes = 2 * problem.output_size();
    p.shared_store_requests = tiles * 2 * kTile * (kDepth / kChunk) / 32;
    p.shared_load_requests = p.shared_load_conflicts = p.shared_store_conflicts = 0;
    p.constant_load_requests = p.atomic_requests = 0;
    p.barriers = 2 * tiles;
    p.flops = problem.flops();
    return p;
  }

  Workspace packed_{*this, "packed filter"};
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::OneWgmma)
