// 34, exercise: the epilogue, for 1 x 1 filters in int8.
//
//   [filters][pixels] = [filters][channels] x [channels][pixels]
//
// Without taps beside each other all pixels of all images are one line, and a block multiplies 64 filters by 128 of
// them. What is left to do is what makes int8 out of it: the steps of the filters, and the way from sums of 32 bits to
// bytes that lie side by side.
//
//   1. In prepare(): a warp packs a filter as bytes, by a step of its own. Which row of the product it becomes is up to
//      the epilogue.
//   2. One thread asks for the block's filters and pixels; four warps multiply (given).
//   3. Sums become bytes: multiplied by their filter's scale, rounded, saturated at -127 and 127. To stmatrix two
//      filters of a pixel are one "half"; it stores 16 filters of 32 pixels at once.
//   4. A lane stores the warp's 16 filters of a pixel, 16 bytes.
//
// Rules: the block's part, and wgmma, as given. Graded: the outputs for every size; no fault; few and wide stores.

#include "common/kernel/grid.hpp"
#include "common/stage/workspace.hpp"
//
#include "common/kernel/hopper.hpp"
#include "common/kernel/mma.hpp"

namespace convladder {
namespace {

constexpr int kThreads = 128;       // a warpgroup
constexpr int kFilters = 64;        // of a block
constexpr int kWarpFilters = 16;    // of a warp
constexpr int kPixels = 128;        // of a block
constexpr int kChannels = 128;      // bytes of a pixel and of a filter in shared memory, zeros from the last on
constexpr int kStep = 32;           // channels of a wgmma
constexpr float kLargest = 127.0f;  // steps
constexpr int kTapsBytes = kFilters * kChannels, kPixelsBytes = kPixels * kChannels;
constexpr int kStaging = kPixels * kWarpFilters;  // bytes of a warp, for its outputs
constexpr int kSharedBytes = kTapsBytes + kPixelsBytes + 4 * kStaging + static_cast<int>(sizeof(Mbarrier));

// 1. A warp a filter.
__global__ void pack(const float* filter,  // [filters][channels]
                     std::int8_t* packed,  // [filter block][64 rows][128 channels], swizzled
                     float* scales,        // [filter block][64]: of a sum
                     int filters, int channels, float input_scale) {
  const int k = static_cast<int>(blockIdx.x * kThreads + threadIdx.x) / 32, lane = threadIdx.x % 32;
  const int count = k < filters ? channels : 0;  // the others are zeros
  const float* const taps = filter + k * channels;
  // SOLUTION
  float largest = 0.0f;
  for (int c = lane; c < count; c += 32) largest = fmaxf(largest, fabsf(taps[c]));
  for (int bits = 16; bits > 0; bits /= 2) largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, bits));
  const float step = fmaxf(largest / kLargest, 0x1p-126f);  // of a filter of zeros any will do
  const float scale = input_scale * step;
  // Filters 2 i and 2 i + 1 of a warp's 16 are rows i and i + 8, which a lane holds both.
  const int row = k - k % kWarpFilters + k % kWarpFilters / 2 + k % 2 * (kWarpFilters / 2);
  // STARTER
  // | const float step = 1.0f, scale = input_scale;  // the same for all filters yet
  // | const int row = k;                             // in their own order yet
  // END
  if (lane == 0) scales[k] = scale;
  for (int c = lane; c < kChannels; c += 32) {
    const float steps = c < count ? taps[c] / step : 0.0f;
    packed[row * kChannels + (c / 16 ^ row % 8) * 16 + c % 16] =
        static_cast<std::int8_t>(__float2int_rn(fminf(fmaxf(steps, -kLargest), kLargest)));
  }
}

// SOLUTION
// 3. The output of a sum as a byte, the lowest of the result.
__device__ __forceinline__ unsigned byte_of(int sum, float scale) {
  const float steps = fminf(fmaxf(static_cast<float>(sum) * scale, -kLargest), kLargest);
  return static_cast<unsigned>(__float2int_rn(steps)) & 255;
}

// Two filters of each of two pixels, from a lane's four sums: rows l / 4 and l / 4 + 8, and a pixel and the next.
__device__ __forceinline__ unsigned bytes_of(const int* d, float first, float second) {
  return byte_of(d[0], first) | byte_of(d[2], second) << 8 | byte_of(d[1], first) << 16 | byte_of(d[3], second) << 24;
}
// STARTER
// | // 3. How sums become bytes is yours.
// END

__global__ void __launch_bounds__(kThreads) multiply(const __grid_constant__ TensorMap input,  // [pixels][channels]
                                                     const std::int8_t* packed,  // [filter block][64][128]
                                                     const float* scales,        // [filter block][64]
                                                     std::int8_t* output,        // [pixels][filters]
                                                     int pixels, int filters) {
  unsigned char* const taps = dynamic_shared_1024<unsigned char>();  // [64][128]
  unsigned char* const block_pixels = taps + kTapsBytes;             // [128][128]
  unsigned char* const staging = block_pixels + kPixelsBytes;        // [4 warps][kStaging]
  Mbarrier* const full = reinterpret_cast<Mbarrier*>(staging + 4 * kStaging);
  const int warp = warp_index(), lane = threadIdx.x % 32;
  const int first_pixel = blockIdx.x * kPixels, filter_block = blockIdx.y;

  // 2. Given.
  if (threadIdx.x == 0) {
    mbarrier_init(full, 1);
    fence_mbarrier_init();
    mbarrier_expect(full, kTapsBytes + kPixelsBytes);
    bulk_load(taps, packed + filter_block * kTapsBytes, kTapsBytes, full);
    tensor_load(block_pixels, input, full, 0, first_pixel);
  }
  __syncthreads();
  mbarrier_wait(full, 0);
  int sums[kPixels / 2];
  const std::uint64_t a = swizzled_descriptor(taps, Swizzle::bytes128),
                      b = swizzled_descriptor(block_pixels, Swizzle::bytes128);
  wgmma_fence();
  UNROLL
  for (int c = 0; c < kChannels; c += kStep) wgmma<kPixels>(sums, a + c / 16, b + c / 16, c > 0);
  wgmma_commit();
  wgmma_wait<0>();
  pin(sums);

  const int k = filter_block * kFilters + warp * kWarpFilters;  // the first of the warp's 16
  // SOLUTION
  // 3.
  const float first = scales[k + lane / 4 * 2], second = scales[k + lane / 4 * 2 + 1];
  unsigned char* const staged = staging + warp * kStaging;  // [kPixels][kWarpFilters]
  UNROLL
  for (int j = 0; j < kPixels / 8; j += 4) {
    const int* const d = sums + 4 * j;
    stmatrix_transposed<4>(staged + (j * 8 + lane) * kWarpFilters,
                           {bytes_of(d, first, second), bytes_of(d + 4, first, second), bytes_of(d + 8, first, second),
                            bytes_of(d + 12, first, second)});
  }
  __syncwarp();

  // 4.
  if (k >= filters) return;
  for (int i = lane; i < kPixels && first_pixel + i < pixels; i += 32)
    *reinterpret_cast<uint4*>(output + (first_pixel + i) * filters + k) =
        *reinterpret_cast<const uint4*>(staged + i * kWarpFilters);
  // STARTER
  // | // 3. and 4. are missing: zeros are stored yet, byte by byte.
  // | static_cast<void>(scales);
  // | for (int i = lane; i < kPixels * kWarpFilters; i += 32) {
  // |   const int pixel = first_pixel + i / kWarpFilters, f = k + i % kWarpFilters;
  // |   if (pixel < pixels && f < filters) output[pixel * filters + f] = 0;
  // | }
  // END
}

class Pointwise final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    if (problem.r != 1 || problem.s != 1 || problem.stride_h != 1 || problem.stride_w != 1 || problem.groups != 1 ||
        problem.pad_h != 0 || problem.pad_w != 0)
      return Verdict::refuse("the filter must be 1 x 1, the stride and the groups 1, and the padding 0");
    if (problem.c % 16 != 0 || problem.c > kChannels || problem.k % 16 != 0)
      return Verdict::refuse("channels must be a multiple of 16 up to 128, and filters a multiple of 16");
    if (problem.input_size() > 1 << 28 || problem.output_size() > 1 << 28)
      return Verdict::refuse("input and output may have up to 2^28 elements");
    return Verdict::accept();
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const int filters = static_cast<int>(problem.k), padded = blocks_for(filters, kFilters) * kFilters;
    packed_.allocate<std::int8_t>(padded * kChannels);
    scales_.allocate<float>(padded);
    convladder::launch(pack, dim3(padded * 32 / kThreads), dim3(kThreads), 0, stream)(
        tensors.filter, packed_.as<std::int8_t>(), scales_.floats(), filters, static_cast<int>(problem.c),
        tensors.input_step / tensors.output_step);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const std::int64_t pixels = problem.n * problem.h * problem.w;
    const auto size = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
    const TensorMap input = make_tensor_map(
        tensors.byte_input, {TensorElement::int8,
                             Swizzle::bytes128,
                             2,
                             {{size(problem.c), 1, kChannels}, {size(pixels), size(problem.c), kPixels}}});
    const dim3 grid(static_cast<unsigned>((pixels - 1) / kPixels + 1),
                    static_cast<unsigned>(blocks_for(static_cast<int>(problem.k), kFilters)));
    convladder::launch(multiply, grid, dim3(kThreads), kSharedBytes, stream)(
        input, packed_.as<std::int8_t>(), scales_.floats(), tensors.byte_output, static_cast<int>(pixels),
        static_cast<int>(problem.k));
  }

  Workspace packed_{*this, "packed filter"};
  Workspace scales_{*this, "scales"};
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::Pointwise)
