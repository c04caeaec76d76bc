// 31a ldmatrix-mma: one product on Tensor Cores, by the instructions themselves.
//
//   [pixels][filters] = [pixels][channels] x [channels][filters]           a convolution with a 1 x 1 filter
//
// The idea: ldmatrix hands a warp matrices of 8 x 8 halves just as mma.sync wants them. It reads 8 rows of 16 bytes at
// once, and rows of 128 bytes all begin in the same bank. So each row's chunks of 16 bytes are stored in another order,
// the swizzle: chunk c of row r lies at c xor r % 8. `--configuration swizzle=no` leaves it out.
//
//   1. A block has 64 pixels x 64 filters, a warp 16 pixels x 64 filters of them: 32 sums a lane.
//   2. For each 64 channels the block copies a tile of pixels and a tile of filters, 64 rows of 128 bytes each.
//   3. Of 16 channels, ldmatrix loads 16 pixels, four matrices: lane l says where row l % 16 of half l / 16 begins.
//   4. And 16 filters: lane l says where row l % 8 of filters 8 (l / 16) begins, in half l / 8 % 2.
//   5. mma.sync adds 16 pixels x 16 channels x 8 filters. Lane l holds the sums of pixel l / 4 and of pixel l / 4 + 8,
//      for filters 2 (l % 4) and the next.
//   6. The lane stores them as halves.

#include "common/kernel/half.hpp"
#include "common/kernel/mma.hpp"
#include "common/kernel/tracks/lowering.hpp"
#include "common/stage/tunable.hpp"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

constexpr int kTile = 64;   // pixels of a block, and filters
constexpr int kDepth = 64;  // channels of a step: rows of 128 bytes
constexpr int kChunk = 8;   // halves in 16 bytes
constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;

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
template <bool Swizzled>
__device__ __forceinline__ int place(int row, int chunk) {
  return row * kDepth + (Swizzled ? chunk ^ row % 8 : chunk) * kChunk;
}

template <bool Swizzled>
__global__ void __launch_bounds__(kThreads) multiply(const half* input,   // [pixels][channels]
                                                     const half* packed,  // [filters][channels], whole tiles
                                                     half* output,        // [pixels][filters]
                                                     Product g) {
  half* const pixels = dynamic_shared<half>();    // [64][64], swizzled
  half* const filters = pixels + kTile * kDepth;  // [64][64], swizzled
  // 1.
  const int first_pixel = static_cast<int>(blockIdx.x) / g.filter_blocks * kTile;
  const int first_filter = static_cast<int>(blockIdx.x) % g.filter_blocks * kTile;
  const int thread = threadIdx.x, lane = thread % 32, warp_pixel = thread / 32 * 16;
  float sums[kTile / 8][4] = {};

  for (int step = 0; step < g.steps; ++step) {
    // 2.
    for (int i = thread; i < kTile * kDepth / kChunk; i += kThreads) {
      const int row = i / (kDepth / kChunk), chunk = i % (kDepth / kChunk), c = step * kDepth + chunk * kChunk;
      const bool inside = first_pixel + row < g.pixels && c < g.channels;
      *reinterpret_cast<uint4*>(pixels + place<Swizzled>(row, chunk)) =
          inside ? *reinterpret_cast<const uint4*>(input + (first_pixel + row) * g.channels + c)
                 : make_uint4(0, 0, 0, 0);
      *reinterpret_cast<uint4*>(filters + place<Swizzled>(row, chunk)) =
          *reinterpret_cast<const uint4*>(packed + (first_filter + row) * (g.steps * kDepth) + c);
    }
    __syncthreads();
    for (int slice = 0; slice < kDepth / 16; ++slice) {
      // 3.
      unsigned a[4];
      ldmatrix(a, pixels + place<Swizzled>(warp_pixel + lane % 16, 2 * slice + lane / 16));
      UNROLL
      for (int j = 0; j < kTile / 8; j += 2) {
        // 4.
        unsigned b[4];
        ldmatrix(b, filters + place<Swizzled>(8 * j + lane / 16 * 8 + lane % 8, 2 * slice + lane / 8 % 2));
        // 5.
        mma_m16n8k16(sums[j], a, {b[0], b[1]});
        mma_m16n8k16(sums[j + 1], a, {b[2], b[3]});
      }
    }
    __syncthreads();
  }

  // 6.
  UNROLL
  for (int i = 0; i < kTile / 8 * 2; ++i) {
    const int pixel = first_pixel + warp_pixel + lane / 4 + i % 2 * 8, filter = first_filter + i / 2 * 8;
    if (pixel < g.pixels && filter < g.filters)
      *reinterpret_cast<half2*>(output + pixel * g.filters + filter + lane % 4 * 2) =
          __floats2half2_rn(sums[i / 2][i % 2 * 2], sums[i / 2][i % 2 * 2 + 1]);
  }
}

// ---- The host side --------------------------------------------------------------------------------------------------

constexpr int kChoices[] = {0, 1};
constexpr const char* kWords[] = {"no", "yes"};
constexpr Knob kKnobs[] = {{"swizzle", kChoices, kWords, 1}};

Product product_of(const ConvProblem& problem) {
  const int channels = static_cast<int>(problem.c), filters = static_cast<int>(problem.k);
  return {static_cast<int>(problem.n * problem.h * problem.w), channels, filters, blocks_for(channels, kDepth),
          blocks_for(filters, kTile)};
}

int blocks_of(const Product& g) { return blocks_for(g.pixels, kTile) * g.filter_blocks; }

class LdmatrixMma final : public TunableStage {
  Knobs knobs() const override { return {kKnobs, false}; }

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
    const auto kernel = knob("swizzle") ? multiply<true> : multiply<false>;
    convladder::launch(kernel, blocks_of(g), kThreads, 2 * kTile * kDepth * sizeof(half), stream)(
        tensors.half_input, packed_.as<half>(), tensors.half_output, g);
  }

  // Without the swizzle the 8 rows of a matrix are in the same banks: 7 passes too many, for each of 4 matrices.
  Prediction predict(const ConvProblem& problem) const override {
    const Product g = product_of(problem);
    const std::int64_t tiles = std::int64_t{blocks_of(g)} * g.steps, ldmatrices = tiles * kWarps * (kDepth / 16) * 5;
    Prediction p;
    p.global_load_bytes = 2 * (problem.input_size() * g.filter_blocks + tiles * kTile * kDepth);
    p.global_store_bytes = 2 * problem.output_size();
    p.shared_load_requests = ldmatrices;
    p.shared_load_conflicts = knob("swizzle") ? 0 : ldmatrices * 4 * 7;
    p.shared_store_requests = tiles * 2 * kTile * (kDepth / kChunk) / 32;
    p.shared_store_conflicts = p.constant_load_requests = p.atomic_requests = 0;
    p.barriers = 2 * tiles;
    p.flops = problem.flops();
    return p;
  }

  Workspace packed_{*this, "packed filter"};
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::LdmatrixMma)
