// 32, exercise: stride 2.
//
//   [filters][outputs] += [filters][channels] of a tap x [channels][pixels 2 x + s]
//
// The strips of stage 32 take stride 1: the pixels that a tap of 64 outputs reads lie side by side. With stride 2 they
// are every other pixel. No product can skip the ones between. But TMA can: told of a tensor that holds every other
// column, it brings these side by side. Tap 2 then reads what tap 0 does, one pixel further.
//
//   1. In prepare(): the taps as halves, swizzled (given).
//   2. Two maps of the input: its even columns, and its odd ones.
//   3. A block has 8 rows of 64 outputs, and 64 filters (given). Its first four warps multiply.
//   4. The fifth warp asks for the taps, and for each row of pixels, once, into a ring: a slot has the columns that
//      tap 0 begins with, and behind them those between.
//   5. The four warps multiply nine taps for each row of outputs, and release the rows of pixels that no other needs.
//   6. The sums are stored as halves (given).
//
// Rules: the block's part, the layout of the taps, tensor_load for pixels, wgmma; one __syncthreads, at the beginning.
// Graded: the outputs for every size and padding; no fault; that each row of pixels is loaded once.

#include "common/kernel/tracks/lowering.hpp"
#include "common/stage/workspace.hpp"
//
#include "common/kernel/half.hpp"
#include "common/kernel/hopper.hpp"

namespace convladder {
namespace {

constexpr int kTaps = 3;                 // of a filter, down and across
constexpr int kPixel = 128;              // bytes: 64 channels, zeros from the last on
constexpr int kFilters = 64;             // of a block
constexpr int kTap = kFilters * kPixel;  // bytes
constexpr int kOutputs = 64;             // of a row
constexpr int kRows = 8;                 // of outputs, of a block
constexpr int kThreads = 160;
[[maybe_unused]] constexpr int kStep = 32;  // bytes of a pixel that a wgmma takes: 16 channels

// A row of pixels in the ring: every other column in a part of its own, one more than outputs.
constexpr int kColumns = kOutputs + 1;
constexpr int kPart = (kColumns + 7) / 8 * 8 * kPixel;  // bytes, a multiple of 1024
constexpr int kSlot = 2 * kPart;
constexpr int kSlots = 6;
constexpr int kBarriers = 2 * kSlots + 1;  // full and empty slots, and the taps
constexpr int kSharedBytes = kTaps * kTaps * kTap + kSlots * kSlot + kBarriers * static_cast<int>(sizeof(Mbarrier));

// 1. A thread an element.
__global__ void pack(const float* filter,  // [filters][channels][3][3]
                     half* packed,         // [filter block][tap][64 filters][64 channels], swizzled
                     Lowering l) {
  const int i = blockIdx.x * kThreads + threadIdx.x, row = i / 64, tap = row / kFilters % 9, block = row / kFilters / 9;
  if (block * kFilters >= l.filters) return;
  const int k = block * kFilters + row % kFilters, c = i % 64 ^ row % 8 * 8;
  const bool inside = k < l.filters && c < l.channels;
  packed[i] = __float2half_rn(inside ? filter[(k * l.channels + c) * 9 + tap] : 0.0f);
}

// 2. The map of the columns 2 i + parity of the input [batch][height][width][channels]. A box is kColumns of one row.
TensorMap every_other_column(const half* input, const Lowering& l, int parity) {
  // SOLUTION
  const auto bytes = [](std::int64_t elements) { return static_cast<std::uint64_t>(elements) * sizeof(half); };
  const auto size = [](int count) { return static_cast<std::uint64_t>(count); };
  const std::int64_t row = std::int64_t{l.width} * l.channels;
  return make_tensor_map(input + parity * l.channels,
                         {TensorElement::fp16,
                          Swizzle::bytes128,
                          4,
                          {{size(l.channels), bytes(1), 64},
                           {size((l.width + 1 - parity) / 2), bytes(2 * l.channels), kColumns},
                           {size(l.height), bytes(row), 1},
                           {size(l.batch), bytes(row * l.height), 1}}});
  // STARTER
  // | // So far of all columns.
  // | static_cast<void>(parity);
  // | const auto bytes = [](std::int64_t elements) { return static_cast<std::uint64_t>(elements) * sizeof(half); };
  // | const auto size = [](int count) { return static_cast<std::uint64_t>(count); };
  // | const std::int64_t row = std::int64_t{l.width} * l.channels;
  // | return make_tensor_map(input, {TensorElement::fp16,
  // |                                Swizzle::bytes128,
  // |                                4,
  // |                                {{size(l.channels), bytes(1), 64},
  // |                                 {size(l.width), bytes(l.channels), kColumns},
  // |                                 {size(l.height), bytes(row), 1},
  // |                                 {size(l.batch), bytes(row * l.height), 1}}});
  // END
}

__global__ void __launch_bounds__(kThreads)
    multiply(const __grid_constant__ TensorMap even,  // columns 0, 2, ... of the input
             const __grid_constant__ TensorMap odd,   // columns 1, 3, ...
             const half* packed,                      // [filter block][tap][64][64]
             half* output,                            // [batch][out_height][out_width][filters]
             Lowering l) {
  unsigned char* const taps = dynamic_shared_1024<unsigned char>();  // [tap][64 filters][kPixel]
  unsigned char* const ring = taps + kTaps * kTaps * kTap;           // [slot][2][kPart]
  Mbarrier* const full = reinterpret_cast<Mbarrier*>(ring + kSlots * kSlot);
  Mbarrier* const empty = full + kSlots;
  Mbarrier* const taps_full = empty + kSlots;
  const int warp = warp_index(), thread = threadIdx.x, lane = thread % 32;

  // 3. x and y are the first output's; the rows of pixels that the block needs are 2 y - pad_y and the next.
  const int strips = blocks_for(l.out_width, kOutputs), parts = blocks_for(l.out_height, kRows);
  const int filter_block = static_cast<int>(blockIdx.y), block = static_cast<int>(blockIdx.x);
  const int x = block % strips * kOutputs, y = block / strips % parts * kRows, image = block / strips / parts;
  const int rows = min(kRows, l.out_height - y);
  const half* const taps_of_block = packed + filter_block * kTaps * kTaps * (kTap / 2);

  // SOLUTION
  if (thread == 128) {
    for (int slot = 0; slot < kSlots; ++slot) {
      mbarrier_init(full + slot, 1);
      mbarrier_init(empty + slot, 4);
    }
    mbarrier_init(taps_full, 1);
    fence_mbarrier_init();
  }
  __syncthreads();

  // 4.
  if (warp == 4) {
    if (lane != 0) return;
    mbarrier_expect(taps_full, kTaps * kTaps * kTap);
    bulk_load(taps, taps_of_block, kTaps * kTaps * kTap, taps_full);
    const int first = 2 * x - l.pad_x;  // the column that tap 0 of the first output reads
    const TensorMap& own = l.pad_x % 2 == 0 ? even : odd;
    const TensorMap& between = l.pad_x % 2 == 0 ? odd : even;
    for (int row = 0; row < 2 * rows + 1; ++row) {
      const int slot = row % kSlots;
      if (row >= kSlots) mbarrier_wait(empty + slot, (row / kSlots - 1) & 1);
      mbarrier_expect(full + slot, 2 * kColumns * kPixel);
      const int from = 2 * y - l.pad_y + row;
      tensor_load(ring + slot * kSlot, own, full + slot, 0, first >> 1, from, image);
      tensor_load(ring + slot * kSlot + kPart, between, full + slot, 0, (first + 1) >> 1, from, image);
    }
    return;
  }

  // 5.
  mbarrier_wait(taps_full, 0);
  // STARTER
  // | // Steps 4 and 5 are missing: so far the sums are zero.
  // | static_cast<void>(even);
  // | static_cast<void>(odd);
  // | static_cast<void>(taps_of_block);
  // | static_cast<void>(taps_full);
  // | if (warp == 4) return;
  // END
  float sums[kOutputs / 2] = {};
  for (int row = 0; row < rows; ++row) {
    // SOLUTION
    for (int r = 0; r < kTaps; ++r) mbarrier_wait(full + (2 * row + r) % kSlots, (2 * row + r) / kSlots & 1);
    wgmma_fence();
    UNROLL
    for (int tap = 0; tap < kTaps * kTaps; ++tap) {
      const int r = tap / kTaps, s = tap % kTaps;
      const unsigned char* const pixels = ring + (2 * row + r) % kSlots * kSlot + s % 2 * kPart;
      const std::uint64_t a = swizzled_descriptor(taps + tap * kTap, Swizzle::bytes128);
      const std::uint64_t b = swizzled_descriptor(pixels, Swizzle::bytes128) + s / 2 * kPixel / 16;
      UNROLL
      for (int c = 0; c < kPixel; c += kStep) wgmma<kOutputs>(sums, a + c / 16, b + c / 16, tap > 0 || c > 0);
    }
    wgmma_commit();
    wgmma_wait<0>();
    pin(sums);
    for (int r = 0; r < 2; ++r)
      if (lane == 0) mbarrier_arrive(empty + (2 * row + r) % kSlots);
    // STARTER
    // | // The products of a row.
    // END

    // 6. Given.
    UNROLL
    for (int i = 0; i < kOutputs / 2; ++i) {
      const int k = filter_block * kFilters + warp * 16 + lane / 4 + i / 2 % 2 * 8;
      const int p = x + i / 4 * 8 + lane % 4 * 2 + i % 2;
      if (k < l.filters && p < l.out_width)
        output[((image * l.out_height + y + row) * l.out_width + p) * l.filters + k] = __float2half_rn(sums[i]);
    }
  }
}

class StrideTwo final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    if (problem.r != kTaps || problem.s != kTaps || problem.stride_h != 2 || problem.stride_w != 2 ||
        problem.dilation_h != 1 || problem.dilation_w != 1 || problem.padding != Padding::zero)
      return Verdict::refuse("the filter must be 3 x 3, the stride 2, the dilation 1 and the padding zeros");
    if (problem.c % 8 != 0 || problem.c > 64 || problem.w < 2)
      return Verdict::refuse("channels must be a multiple of 8 up to 64, and columns two or more");
    return check_implicit_gemm(problem, 64, kFilters);
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Lowering l = lowering_of(problem);
    const int size = blocks_for(l.filters, kFilters) * kTaps * kTaps * kFilters * 64;
    packed_.allocate<half>(size);
    convladder::launch(pack, dim3(blocks_for(size, kThreads)), dim3(kThreads), 0, stream)(tensors.filter,
                                                                                          packed_.as<half>(), l);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Lowering l = lowering_of(problem);
    const int blocks = blocks_for(l.out_width, kOutputs) * blocks_for(l.out_height, kRows) * l.batch;
    convladder::launch(multiply, dim3(blocks, blocks_for(l.filters, kFilters)), dim3(kThreads), kSharedBytes, stream)(
        every_other_column(tensors.half_input, l, 0), every_other_column(tensors.half_input, l, 1), packed_.as<half>(),
        tensors.half_output, l);
  }

  Workspace packed_{*this, "packed filter"};
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::StrideTwo)
