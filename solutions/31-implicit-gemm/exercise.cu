// 31, exercise: the first layer of a network.
//
//   [outputs][filters] = [outputs][(r, s, c)] x [(r, s, c)][filters]
//
// Stage 31 gives each tap whole steps of 32 channels. An image has three: of 32 products 29 would be with zeros. Here
// the products of all taps stand side by side, without a gap, and a step is 32 of them: 7 x 7 taps of 3 channels are
// 147 products, five steps instead of 49. Each half is gathered for itself, as stage 31 does with three channels too.
//
//   1. In prepare(): the filters as halves, step by step (given).
//   2. A block of 4 warps computes 128 outputs x 64 filters, a warp 32 x 64.
//   3. A step: the threads gather 32 products of 128 outputs, half by half, and store them in shared memory, eight at a
//      time; and 32 taps of 64 filters. No bank conflict.
//   4. Each warp loads 16 x 16 pieces by ldmatrix, and multiplies 2 x 8 times, for each 16 products.
//   5. The sums are stored as halves (given).
//
// Rules: the block's part and the layout of the filters as they are; tiles of 32 products in shared memory; ldmatrix
// and mma_m16n8k16. Graded: the outputs for every size, stride and padding; no fault; requests and conflicts.

#include "common/kernel/border.hpp"
#include "common/kernel/tracks/lowering.hpp"
#include "common/stage/workspace.hpp"
//
#include "common/kernel/half.hpp"
#include "common/kernel/mma.hpp"

namespace convladder {
namespace {

constexpr int kThreads = 128;
constexpr int kOutputs = 128, kFilters = 64;  // of a block
constexpr int kDepth = 32;                    // products of a step
constexpr int kWarpOutputs = 32;
[[maybe_unused]] constexpr int kChunk = 8;  // halves in 16 bytes

__host__ __device__ __forceinline__ int steps_of(const Lowering& l) { return blocks_for(depth(l), kDepth); }
__host__ __device__ __forceinline__ int padded_filters(const Lowering& l) {
  return blocks_for(l.filters, kFilters) * kFilters;
}

// 16 bytes that are stored at once.
struct __align__(16) Halves8 {
  half2 pairs[4];
};

// ---- Given: one product ---------------------------------------------------------------------------------------------

// What product d of output o reads: tap (r, s) of channel c is product (r * columns + s) * channels + c. Zero past the
// last product and output, and where the padding is zero.
[[maybe_unused]] __device__ __forceinline__ half pixel(const half* input,  // [batch][height][width][channels]
                                                       const Lowering& l, int o, int d) {
  const half zero = __float2half_rn(0.0f);
  if (o >= l.batch * output_plane(l) || d >= depth(l)) return zero;
  const int tap = d / l.channels, pq = o % output_plane(l);
  const int y =
      border_index(pq / l.out_width * l.stride_y - l.pad_y + tap / l.columns * l.dilation_y, l.height, l.padding);
  const int x =
      border_index(pq % l.out_width * l.stride_x - l.pad_x + tap % l.columns * l.dilation_x, l.width, l.padding);
  if (y < 0 || x < 0) return zero;
  return input[((o / output_plane(l) * l.height + y) * l.width + x) * l.channels + d % l.channels];
}

// 1. A thread an element.
__global__ void pack(const float* filter,  // [filters][channels][rows][columns]
                     half* packed,         // [step][padded filters][32]
                     Lowering l) {
  const int i = blockIdx.x * kThreads + threadIdx.x, filters = padded_filters(l), step = i / kDepth / filters;
  if (step >= steps_of(l)) return;
  const int k = i / kDepth % filters, d = step * kDepth + i % kDepth;
  const bool inside = k < l.filters && d < depth(l);
  packed[i] = __float2half_rn(inside ? filter[(k * l.channels + d % l.channels) * window(l) + d / l.channels] : 0.0f);
}

// ---- The product ----------------------------------------------------------------------------------------------------

// SOLUTION
// Where 16 bytes lie in a tile of rows of 64 bytes, in halves: chunks change places with every second row.
__device__ __forceinline__ int place(int row, int chunk) { return row * kDepth + (chunk ^ row / 2 % 4) * kChunk; }

// STARTER
// END
__global__ void __launch_bounds__(kThreads) multiply(const half* input,   // [batch][height][width][channels]
                                                     const half* packed,  // [step][padded filters][32]
                                                     half* output,        // [batch][out_height][out_width][filters]
                                                     Lowering l) {
  // 2.
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  const int filter_blocks = padded_filters(l) / kFilters;
  const int first_output = static_cast<int>(blockIdx.x) / filter_blocks * kOutputs;
  const int first_filter = static_cast<int>(blockIdx.x) % filter_blocks * kFilters;
  float sums[kWarpOutputs / 16][kFilters / 8][4] = {};

  // SOLUTION
  __shared__ __align__(16) half pixels[kOutputs * kDepth];
  __shared__ __align__(16) half taps[kFilters * kDepth];
  for (int step = 0; step < steps_of(l); ++step) {
    // 3. Four neighbouring threads take the chunks of a row.
    for (int i = thread; i < kOutputs * kDepth / kChunk; i += kThreads) {
      const int row = i / 4, chunk = i % 4, d = step * kDepth + chunk * kChunk;
      Halves8 eight;
      UNROLL
      for (int j = 0; j < 4; ++j) {
        const half low = pixel(input, l, first_output + row, d + 2 * j);
        const half high = pixel(input, l, first_output + row, d + 2 * j + 1);
        eight.pairs[j] = __halves2half2(low, high);
      }
      *reinterpret_cast<uint4*>(pixels + place(row, chunk)) = *reinterpret_cast<const uint4*>(&eight);
    }
    const half* step_taps = packed + (step * padded_filters(l) + first_filter) * kDepth;
    for (int i = thread; i < kFilters * kDepth / kChunk; i += kThreads)
      *reinterpret_cast<uint4*>(taps + place(i / 4, i % 4)) = *reinterpret_cast<const uint4*>(step_taps + i * kChunk);
    __syncthreads();
    // 4.
    UNROLL
    for (int pair = 0; pair < kDepth / kChunk; pair += 2) {
      unsigned a[2][4], b[4][4];
      UNROLL
      for (int i = 0; i < 2; ++i)
        ldmatrix(a[i], pixels + place(warp * kWarpOutputs + i * 16 + lane % 16, pair + lane / 16));
      UNROLL
      for (int j = 0; j < 4; ++j) ldmatrix(b[j], taps + place(j * 16 + lane / 16 * 8 + lane % 8, pair + lane / 8 % 2));
      UNROLL
      for (int i = 0; i < 2; ++i) {
        UNROLL
        for (int j = 0; j < 8; ++j) {
          const unsigned column[2] = {b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]};
          mma_m16n8k16(sums[i][j], a[i], column);
        }
      }
    }
    __syncthreads();  // the tiles are read
  }
  // STARTER
  // | // Steps 3 and 4 are missing: the sums are zero yet.
  // | static_cast<void>(input);
  // | static_cast<void>(packed);
  // END

  // 5. Given.
  UNROLL
  for (int i = 0; i < kWarpOutputs / 16; ++i) {
    UNROLL
    for (int j = 0; j < kFilters / 8; ++j) {
      UNROLL
      for (int e = 0; e < 4; ++e) {
        const int o = first_output + warp * kWarpOutputs + i * 16 + lane / 4 + e / 2 * 8;
        const int k = first_filter + j * 8 + lane % 4 * 2 + e % 2;
        if (o < l.batch * output_plane(l) && k < l.filters) output[o * l.filters + k] = __float2half_rn(sums[i][j][e]);
      }
    }
  }
}

class FirstLayer final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    return check_implicit_gemm(problem, kDepth, kFilters);
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Lowering l = lowering_of(problem);
    const int size = steps_of(l) * padded_filters(l) * kDepth;
    packed_.allocate<half>(size);
    convladder::launch(pack, dim3(blocks_for(size, kThreads)), dim3(kThreads), 0, stream)(tensors.filter,
                                                                                          packed_.as<half>(), l);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Lowering l = lowering_of(problem);
    const int blocks = blocks_for(l.batch * output_plane(l), kOutputs) * (padded_filters(l) / kFilters);
    convladder::launch(multiply, dim3(blocks), dim3(kThreads), 0, stream)(tensors.half_input, packed_.as<half>(),
                                                                          tensors.half_output, l);
  }

  Workspace packed_{*this, "packed filter"};
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::FirstLayer)
