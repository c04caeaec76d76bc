// 33, exercise: the transform in registers.
//
// Stage 33 stores V to shared memory, two rows for each that it loads, and wgmma reads it there. But wgmma also takes
// its left matrix from registers. So here pixels are the left matrix, filters the right one:
//
//   Mi[64 positions][64 filters] = sum over s and channels of Vi, s positions further [64][64] x Ui,s [64][64]
//
// Only the rows of the input are in shared memory. Each warp loads pieces of them to registers, adds and subtracts
// there, and multiplies. V is never stored.
//
//   1. In prepare(): the filters' transform along the height (given).
//   2. A block of four warps computes two rows of 64 outputs, for 64 filters (given).
//   3. Its four rows of the input go to shared memory; a bulk copy brings the filters (given).
//   4. For each column s and 16 channels: 16 positions of all four rows by ldmatrix; V0 to V3; four products.
//   5. Two rows of outputs from M0 to M3.
//   6. They are stored as halves (given).
//
// Rules: rows stay in shared memory as they are given; the products are made by wgmma, with V in registers. Graded: the
// outputs for every size and padding; no fault; requests to shared memory.

#include "common/kernel/tracks/winograd_half.hpp"
#include "common/stage/workspace.hpp"
//
#include "common/kernel/hopper.hpp"
#include "common/kernel/mma.hpp"

namespace convladder {
namespace {

constexpr int kSize = kTileSize<F2>, kOutputRows = kTileOutputs<F2>;  // rows of the input, and of outputs, of a block
constexpr int kPositions = 64, kFilters = 64, kChannels = 64;         // of a block
constexpr int kPixels = kPositions + kWinogradTaps - 1;
constexpr int kRow = kChannels * 2;               // bytes of a pixel or filter in shared memory
constexpr int kChunk = 8;                         // halves in 16 bytes
constexpr int kChunks = kChannels / kChunk;       // of a pixel
constexpr int kTap = kFilters * kRow;             // bytes of the filters of one column
constexpr int kFilterRow = kWinogradTaps * kTap;  // of Ui
constexpr int kInputRow = (kPixels + 7) / 8 * 8 * kRow;
constexpr int kThreads = 128;
constexpr int kSharedBytes = kSize * (kFilterRow + kInputRow) + static_cast<int>(sizeof(Mbarrier));

// 16 bytes that are moved at once.
struct __align__(16) Halves8 {
  half2 pairs[4];
};

// Where chunk c of row r lies in rows of 128 bytes, in bytes.
__device__ __forceinline__ int place(int row, int chunk) { return row * kRow + (chunk ^ row % 8) * 16; }

// ---- Given: words of two halves -------------------------------------------------------------------------------------

[[maybe_unused]] __device__ __forceinline__ unsigned plus(unsigned a, unsigned b) {
  const half2 sum = __hadd2(*reinterpret_cast<const half2*>(&a), *reinterpret_cast<const half2*>(&b));
  return *reinterpret_cast<const unsigned*>(&sum);
}
[[maybe_unused]] __device__ __forceinline__ unsigned minus(unsigned a, unsigned b) {
  const half2 difference = __hsub2(*reinterpret_cast<const half2*>(&a), *reinterpret_cast<const half2*>(&b));
  return *reinterpret_cast<const unsigned*>(&difference);
}

// ---- Given: 1. A thread for a column s of a filter and channel ------------------------------------------------------

__global__ void transform_filters(const float* filter,  // [filters][channels][3][3]
                                  half* u,              // [block of 64 filters][U0 to U3][s][64][64 swizzled]
                                  Winograd w) {
  const int i = blockIdx.x * kThreads + threadIdx.x, block = i / (kWinogradTaps * kFilters * kChannels);
  if (block >= blocks_for(w.filters, kFilters)) return;
  const int row = i / kChannels % kFilters, c = i % kChannels, s = i / (kFilters * kChannels) % kWinogradTaps;
  const int k = block * kFilters + row;
  const bool inside = k < w.filters && c < w.channels;
  float taps[kWinogradTaps], transformed[kSize];
  UNROLL
  for (int r = 0; r < kWinogradTaps; ++r)
    taps[r] = inside ? filter[((k * w.channels + c) * kWinogradTaps + r) * kWinogradTaps + s] : 0.0f;
  transform_filter_line<F2>(taps, transformed);
  UNROLL
  for (int v = 0; v < kSize; ++v)
    u[((block * kSize + v) * kWinogradTaps + s) * (kTap / 2) + place(row, c / kChunk) / 2 + c % kChunk] =
        __float2half_rn(transformed[v]);
}

// ---- Given: 3. Eight channels of a pixel, zeros where it reads none -------------------------------------------------

__device__ __forceinline__ uint4 load_chunk(const half* input,  // [batch][height][width][channels]
                                            const Winograd& w, int image, int y, int x, int c) {
  const int row = tile_index(y - w.pad_y, w.height, w.pad_y, w.padding);
  const int column = tile_index(x - w.pad_x, w.width, w.pad_x, w.padding);
  const half zero = __float2half_rn(0.0f);
  const half* const pixel = input + ((image * w.height + row) * w.width + column) * w.channels + c;
  const int count = row >= 0 && column >= 0 ? w.channels - c : 0;
  if (w.channels % kChunk == 0) return count > 0 ? *reinterpret_cast<const uint4*>(pixel) : make_uint4(0, 0, 0, 0);
  Halves8 chunk;
  UNROLL
  for (int i = 0; i < 4; ++i)
    chunk.pairs[i] = __halves2half2(2 * i < count ? pixel[2 * i] : zero, 2 * i + 1 < count ? pixel[2 * i + 1] : zero);
  return *reinterpret_cast<const uint4*>(&chunk);
}

// ---- Two rows of outputs --------------------------------------------------------------------------------------------

__global__ void __launch_bounds__(kThreads, 1) convolve(const half* input,  // [batch][height][width][channels]
                                                        const half* u,      // as transform_filters() leaves it
                                                        half* output,       // [batch][out_height][out_width][filters]
                                                        Winograd w) {
  unsigned char* const filters = dynamic_shared_1024<unsigned char>();  // [U0 to U3][s][64][kRow]
  unsigned char* const rows = filters + kSize * kFilterRow;             // [d0 to d3][kPixels, rounded up][kRow]
  Mbarrier* const filters_full = reinterpret_cast<Mbarrier*>(rows + kSize * kInputRow);
  // 2.
  const int thread = threadIdx.x, lane = thread % 32, warp = warp_index();
  const int filter_blocks = blocks_for(w.filters, kFilters), across = blocks_for(w.out_width, kPositions);
  const int filter_block = static_cast<int>(blockIdx.x) % filter_blocks;
  const int first_q = static_cast<int>(blockIdx.x) / filter_blocks % across * kPositions;
  const int first_p = static_cast<int>(blockIdx.x) / filter_blocks / across % w.tiles_down * kOutputRows;
  const int image = static_cast<int>(blockIdx.x) / filter_blocks / across / w.tiles_down;

  // 3.
  if (thread == 0) {
    mbarrier_init(filters_full, 1);
    fence_mbarrier_init();
    mbarrier_expect(filters_full, kSize * kFilterRow);
    bulk_load(filters, u + filter_block * (kSize * kFilterRow / 2), kSize * kFilterRow, filters_full);
  }
  for (int i = thread; i < kSize * kPixels * kChunks; i += kThreads) {
    const int chunk = i % kChunks, pixel = i / kChunks % kPixels, row = i / kChunks / kPixels;
    *reinterpret_cast<uint4*>(rows + row * kInputRow + place(pixel, chunk)) =
        load_chunk(input, w, image, first_p + row, first_q + pixel, chunk * kChunk);
  }
  __syncthreads();

  float y[kOutputRows][kFilters / 2] = {};  // as wgmma leaves them: positions down, filters across
  // SOLUTION
  // 4.
  float m[kSize][kFilters / 2];
  mbarrier_wait(filters_full, 0);
  const std::uint64_t taps = swizzled_descriptor(filters, Swizzle::bytes128);
  UNROLL
  for (int s = 0; s < kWinogradTaps; ++s) {
    UNROLL
    for (int pair = 0; pair < kChunks; pair += 2) {
      unsigned d[kSize][4], v[kSize][4];
      UNROLL
      for (int i = 0; i < kSize; ++i)
        ldmatrix(d[i], rows + i * kInputRow + place(warp * 16 + lane % 16 + s, pair + lane / 16));
      UNROLL
      for (int j = 0; j < 4; ++j) {
        v[0][j] = minus(d[0][j], d[2][j]);
        v[1][j] = plus(d[1][j], d[2][j]);
        v[2][j] = minus(d[2][j], d[1][j]);
        v[3][j] = minus(d[3][j], d[1][j]);
      }
      wgmma_fence();
      UNROLL
      for (int i = 0; i < kSize; ++i)
        wgmma<kFilters>(m[i], v[i], taps + (i * kFilterRow + s * kTap + pair * 16) / 16, s + pair > 0);
      wgmma_commit();
      wgmma_wait<0>();
      UNROLL
      for (int i = 0; i < kSize; ++i) pin(m[i]);
    }
  }
  // 5.
  UNROLL
  for (int j = 0; j < kFilters / 2; ++j) {
    y[0][j] = m[0][j] + m[1][j] + m[2][j];
    y[1][j] = m[1][j] - m[2][j] + m[3][j];
  }
  // STARTER
  // | // Steps 4 and 5 are missing: the outputs are zero yet.
  // | mbarrier_wait(filters_full, 0);
  // END

  // 6. Given.
  UNROLL
  for (int r = 0; r < kOutputRows; ++r) {
    UNROLL
    for (int j = 0; j < kFilters / 2; ++j) {
      const int p = first_p + r, q = first_q + warp * 16 + lane / 4 + j / 2 % 2 * 8;
      const int k = filter_block * kFilters + j / 4 * 8 + lane % 4 * 2 + j % 2;
      if (p < w.out_height && q < w.out_width && k < w.filters)
        output[((image * w.out_height + p) * w.out_width + q) * w.filters + k] = __float2half_rn(y[r][j]);
    }
  }
}

class TransformInRegisters final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    if (problem.c > kChannels)
      return Verdict::refuse("there must be at most {} channels; got c={}", kChannels, problem.c);
    return check_winograd(problem, kOutputRows, kFilters);
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Winograd w = winograd_of(problem, kOutputRows);
    const int threads = blocks_for(w.filters, kFilters) * kWinogradTaps * kFilters * kChannels;
    u_.allocate<half>(kSize * threads);
    convladder::launch(transform_filters, dim3(blocks_for(threads, kThreads)), dim3(kThreads), 0, stream)(
        tensors.filter, u_.as<half>(), w);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Winograd w = winograd_of(problem, kOutputRows);
    const int blocks = blocks_for(w.filters, kFilters) * blocks_for(w.out_width, kPositions) * w.tiles_down * w.batch;
    convladder::launch(convolve, dim3(blocks), dim3(kThreads), kSharedBytes, stream)(tensors.half_input, u_.as<half>(),
                                                                                     tensors.half_output, w);
  }

  Workspace u_{*this, "transformed filter"};
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::TransformInRegisters)
