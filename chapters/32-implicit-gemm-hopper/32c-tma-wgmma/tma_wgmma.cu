// 32c tma-wgmma: the product of 32b, its tiles brought by the TMA of 32a into a ring of two buffers.
//
//   [pixels][filters] = [pixels][channels] x [channels][filters]           a convolution with a 1 x 1 filter
//
// The idea: copying and multiplying go on at the same time. One thread, the producer, only asks TMA for tiles; a
// warpgroup, the consumer, only multiplies. A buffer has two mbarriers: `full` ends a phase when its tiles have come,
// `empty` when all four warps have multiplied them. No block barrier stands in the loop, and the producer is ahead as
// far as the ring lets it.
//
//   1. A block is a warpgroup and one more warp, and has 64 pixels x 64 filters.
//   2. One thread makes the mbarriers. A phase of `full` has one arrival, the producer's, and the bytes of two tiles; a
//      phase of `empty` has an arrival of each consumer warp.
//   3. Producer: for each 64 channels it waits until the buffer is empty, says how many bytes will come, and asks for
//      both tiles. TMA writes them with the swizzle that wgmma wants, and zeros outside of the matrices. A buffer's
//      first tiles wait for nobody; its entry i, from 0 on, waits for phase i - 1 of `empty`.
//   4. Consumer: waits until the buffer is full, for phase i of its entry i, and starts the wgmmas of 32b. No fence
//      stands between, since TMA writes through the proxy by which wgmma reads.
//   5. When they are complete, one lane of each warp says that the buffer is empty.
//   6. Each lane stores its sums as halves, as in 32b.

#include "common/kernel/half.hpp"
#include "common/kernel/hopper.hpp"
#include "common/kernel/tracks/lowering.hpp"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

constexpr int kTile = 64;   // pixels of a block, and filters
constexpr int kDepth = 64;  // channels of a step: rows of 128 bytes
constexpr int kChunk = 8;   // halves in 16 bytes
constexpr int kConsumerWarps = 4, kThreads = 32 * (kConsumerWarps + 1);
constexpr int kBuffers = 2;
constexpr int kBufferHalves = 2 * kTile * kDepth;  // a tile of pixels and one of filters

struct Product {
  int pixels, channels, filters;
  int steps, filter_blocks;  // of 64 channels, of 64 filters
};

__global__ void pack(const float* filter, half* packed, int size) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i < size) packed[i] = __float2half_rn(filter[i]);
}

__global__ void __launch_bounds__(kThreads) multiply(const __grid_constant__ TensorMap input,   // [pixels][channels]
                                                     const __grid_constant__ TensorMap packed,  // [filters][channels]
                                                     half* output,                              // [pixels][filters]
                                                     Product g) {
  half* const ring = dynamic_shared_1024<half>();  // [buffer][pixels, then filters][64][64], swizzled
  Mbarrier* const full = reinterpret_cast<Mbarrier*>(ring + kBuffers * kBufferHalves);
  Mbarrier* const empty = full + kBuffers;
  // 1.
  const int first_pixel = static_cast<int>(blockIdx.x) / g.filter_blocks * kTile;
  const int first_filter = static_cast<int>(blockIdx.x) % g.filter_blocks * kTile;
  const int warp = warp_index(), lane = static_cast<int>(threadIdx.x) % 32;

  // 2.
  if (threadIdx.x == 0) {
    for (int i = 0; i < kBuffers; ++i) {
      mbarrier_init(full + i, 1);
      mbarrier_init(empty + i, kConsumerWarps);
    }
    fence_mbarrier_init();
  }
  __syncthreads();

  // 3. Producer.
  if (warp == kConsumerWarps) {
    if (lane != 0) return;
    for (int step = 0; step < g.steps; ++step) {
      const int buffer = step % kBuffers, entry = step / kBuffers;
      half* const pixels = ring + buffer * kBufferHalves;
      if (entry > 0) mbarrier_wait(empty + buffer, (entry - 1) % 2);
      mbarrier_expect(full + buffer, kBufferHalves * static_cast<int>(sizeof(half)));
      tensor_load(pixels, input, full + buffer, step * kDepth, first_pixel);
      tensor_load(pixels + kTile * kDepth, packed, full + buffer, step * kDepth, first_filter);
    }
    return;
  }

  // 4. Consumer.
  float sums[kTile / 2];
  for (int step = 0; step < g.steps; ++step) {
    const int buffer = step % kBuffers, entry = step / kBuffers;
    const half* const pixels = ring + buffer * kBufferHalves;
    const std::uint64_t a = swizzled_descriptor(pixels, Swizzle::bytes128);
    const std::uint64_t b = swizzled_descriptor(pixels + kTile * kDepth, Swizzle::bytes128);
    mbarrier_wait(full + buffer, entry % 2);
    wgmma_fence();
    UNROLL
    for (int slice = 0; slice < kDepth / 16; ++slice)
      wgmma<kTile>(sums, a + slice * 2, b + slice * 2, step > 0 || slice > 0);
    wgmma_commit();
    wgmma_wait<0>();
    pin(sums);
    // 5.
    if (lane == 0) mbarrier_arrive(empty + buffer);
  }

  // 6.
  UNROLL
  for (int i = 0; i < kTile / 8 * 2; ++i) {
    const int pixel = first_pixel + warp * 16 + lane / 4 + i % 2 * 8, filter = first_filter + i / 2 * 8;
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

// Rows of so many channels, of which one copy moves a tile.
TensorMap map_of(const half* matrix, int rows, int channels) {
  const std::uint64_t row_bytes = channels * sizeof(half);
  return make_tensor_map(matrix, {TensorElement::fp16,
                                  Swizzle::bytes128,
                                  2,
                                  {{static_cast<std::uint64_t>(channels), sizeof(half), kDepth},
                                   {static_cast<std::uint64_t>(rows), row_bytes, kTile}}});
}

class TmaWgmma final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    return check_pointwise(problem, kChunk);
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const int size = static_cast<int>(problem.filter_size());
    packed_.allocate<half>(size);
    convladder::launch(pack, blocks_for(size, kThreads), kThreads, 0, stream)(tensors.filter, packed_.as<half>(), size);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    constexpr int kSharedBytes = kBuffers * (kBufferHalves * sizeof(half) + 2 * sizeof(Mbarrier));
    const Product g = product_of(problem);
    convladder::launch(multiply, blocks_of(g), kThreads, kSharedBytes, stream)(
        map_of(tensors.half_input, g.pixels, g.channels), map_of(packed_.as<half>(), g.filters, g.channels),
        tensors.half_output, g);
  }

  // Of both matrices what lies inside of them; a request is a tile.
  Prediction predict(const ConvProblem& problem) const override {
    const Product g = product_of(problem);
    const int pixel_blocks = blocks_for(g.pixels, kTile);
    Prediction p;
    p.global_load_bytes = 2 * (problem.input_size() * g.filter_blocks + problem.filter_size() * pixel_blocks);
    p.global_load_requests = std::int64_t{blocks_of(g)} * g.steps * 2;
    p.global_store_bytes = 2 * problem.output_size();
    p.shared_load_requests = p.shared_load_conflicts = p.shared_store_requests = p.shared_store_conflicts = 0;
    p.constant_load_requests = p.atomic_requests = 0;
    p.barriers = blocks_of(g);
    p.flops = problem.flops();
    return p;
  }

  Workspace packed_{*this, "packed filter"};
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::TmaWgmma)
