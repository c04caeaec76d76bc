// A correct implicit GEMM in fp16, simpler than stage 31, and versions of it with one mistake each. The tests must
// reject every one of them.
#include "common/kernel/border.hpp"
#include "common/kernel/tracks/lowering.hpp"
#include "common/stage/workspace.hpp"
#include "tests/mutants/hopper_mutants.hpp"
//
#include "common/kernel/half.hpp"
#include "common/kernel/mma.hpp"

namespace convladder {
namespace {

constexpr int kThreads = 64;
constexpr int kOutputs = 32, kFilters = 8, kDepth = 16;  // of a block, and channels of a step
constexpr int kChunk = 8;

__host__ __device__ __forceinline__ int steps_of(const Lowering& l) {
  return window(l) * blocks_for(l.channels, kDepth);
}
__host__ __device__ __forceinline__ int padded_filters(const Lowering& l) {
  return blocks_for(l.filters, kFilters) * kFilters;
}
// In a tile of rows of two chunks, which change places with every fourth row.
__device__ __forceinline__ int place(int row, int chunk) { return row * kDepth + (chunk ^ row / 4 % 2) * kChunk; }

struct __align__(16) Halves8 {
  half2 pairs[4];
};

// What the epilogue adds; null where it does not.
struct Added {
  const float* bias;
  const half* residual;
  bool relu;
};

// [row, column, channel block][padded filters][16]
template <GatherMutation M>
__global__ void pack(const float* filter, half* packed, Lowering l) {
  const int i = blockIdx.x * kThreads + threadIdx.x, step = i / kDepth / padded_filters(l);
  if (step >= steps_of(l)) return;
  const int k = i / kDepth % padded_filters(l), blocks = blocks_for(l.channels, kDepth), tap = step / blocks;
  const int c = step % blocks * kDepth + i % kDepth;
  const int read = M == GatherMutation::taps_by_columns ? tap % l.rows * l.columns + tap / l.rows : tap;
  packed[i] = half(k < l.filters && c < l.channels ? filter[(k * l.channels + c) * window(l) + read] : 0.0f);
}

template <GatherMutation M>
__device__ float finished(float sum, const Added& added, int position, int k, const Lowering& l) {
  const bool clamps_early = M == GatherMutation::relu_before_residual;
  const auto clamped = [&](float value) {
    return added.relu && M != GatherMutation::relu_lost && value < 0 ? 0 : value;
  };
  const bool biased = M != GatherMutation::bias_of_last_block_lost || k < (l.filters - 1) / kFilters * kFilters;
  if (added.bias && biased) sum += added.bias[k];
  if (clamps_early) sum = clamped(sum);
  const int below = position + l.out_width, row = position / l.out_width % l.out_height;
  const int read = M == GatherMutation::residual_of_next_row && row + 1 < l.out_height ? below : position;
  if (added.residual) sum += __half2float(added.residual[read * l.filters + k]);
  return clamps_early ? sum : clamped(sum);
}

template <GatherMutation M>
__global__ void gather_and_multiply(const half* input, const half* packed, half* output, Added added, Lowering l) {
  __shared__ __align__(16) half pixels[2][kOutputs * kDepth];
  __shared__ __align__(16) half taps[2][kFilters * kDepth];
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  const int filter_blocks = padded_filters(l) / kFilters, blocks = blocks_for(l.channels, kDepth);
  const int first_output = static_cast<int>(blockIdx.x) / filter_blocks * kOutputs;
  const int first_filter = static_cast<int>(blockIdx.x) % filter_blocks * kFilters;
  const int outputs = l.batch * output_plane(l);
  const bool strides_swapped = M == GatherMutation::strides_swapped,
             pads_swapped = M == GatherMutation::swapped_padding;

  const int row = thread / 2, chunk = thread % 2, o = first_output + row, pq = o % output_plane(l);
  const int n = (M == GatherMutation::image_of_first ? first_output : o) / output_plane(l);
  const int top = pq / l.out_width * (strides_swapped ? l.stride_x : l.stride_y) - (pads_swapped ? l.pad_x : l.pad_y);
  const int left = pq % l.out_width * (strides_swapped ? l.stride_y : l.stride_x) - (pads_swapped ? l.pad_y : l.pad_x);
  const auto index = [&](int i, int size) {
    const bool zeros = M == GatherMutation::replicate_reads_zero && l.padding == Padding::replicate;
    return border_index(i, size, zeros ? Padding::zero : l.padding);
  };
  const auto copy_step = [&](int step, int buffer) {
    const int tap = step / blocks, first = step % blocks * kDepth + chunk * kChunk;
    const int y = index(top + tap / l.columns * l.dilation_y, l.height);
    const int position = left + tap % l.columns * (M == GatherMutation::dilation_ignored ? 1 : l.dilation_x);
    const int x = index(position, l.width);
    bool inside = o < outputs && y >= 0 && x >= 0;
    int pixel = inside ? (n * l.height + y) * l.width + x : 0;
    if (M == GatherMutation::reads_row_before && o < outputs && y >= 0 && l.padding == Padding::zero) {
      pixel = (n * l.height + y) * l.width + position;
      inside = pixel >= 0 && pixel < l.batch * l.height * l.width;
    }
    Halves8 halves;
    for (int i = 0; i < kChunk; i += 2) {
      const auto channel = [&](int c) {
        if (M == GatherMutation::channels_above_32 && c >= 32) return half(0.0f);
        const bool read = inside && (c < l.channels || M == GatherMutation::channels_of_next_pixel);
        return read ? input[pixel * l.channels + c] : half(0.0f);
      };
      const half low = channel(first + i), high = channel(first + i + 1);
      halves.pairs[i / 2] = __halves2half2(low, high);
    }
    *reinterpret_cast<uint4*>(&pixels[buffer][place(row, chunk)]) = *reinterpret_cast<const uint4*>(&halves);
    if (thread < 2 * kFilters)
      copy_async<16>(&taps[buffer][place(row, chunk)],
                     packed + (step * padded_filters(l) + first_filter + row) * kDepth + chunk * kChunk);
    commit_copies();
  };

  float sums[4] = {};
  copy_step(0, 0);
  for (int step = 0, steps = steps_of(l); step < steps; ++step) {
    const int buffer = step % 2;
    const bool more = step + 1 < steps_of(l);
    if (M == GatherMutation::copies_before_barrier && more) copy_step(step + 1, buffer ^ 1);
    if (M != GatherMutation::missing_wait && M != GatherMutation::wait_after_barrier) wait_copies<0>();
    if (M != GatherMutation::missing_barrier) __syncthreads();
    if (M == GatherMutation::wait_after_barrier) wait_copies<0>();
    if (M != GatherMutation::copies_before_barrier && more) copy_step(step + 1, buffer ^ 1);
    const auto read = [&](int r, int c) {
      return M == GatherMutation::unswizzled_reads ? r * kDepth + c * kChunk : place(r, c);
    };
    unsigned a[4], b[2];
    ldmatrix(a, &pixels[buffer][read(warp * 16 + lane % 16, lane / 16)]);
    const half* const filters = &taps[buffer][read(lane % 8, lane / 8 % 2)];
    if (M == GatherMutation::filters_transposed)
      ldmatrix_transposed(b, filters);
    else
      ldmatrix(b, filters);
    if (M == GatherMutation::registers_swapped) {
      const unsigned one = a[1];
      a[1] = a[2];
      a[2] = one;
    }
    mma_m16n8k16(sums, a, b);
  }
  for (int i = 0; i < (M == GatherMutation::lower_rows_lost ? 2 : 4); ++i) {
    const int stored = first_output + warp * 16 + lane / 4 + i / 2 * 8, k = first_filter + lane % 4 * 2 + i % 2;
    // Far past the end there may be no guard band; near it, what is written must be noticed.
    const int end = outputs + (M == GatherMutation::outputs_past_end ? 1 : 0);
    const int filter_end = M == GatherMutation::filters_past_end ? (l.filters + 1) / 2 * 2 : l.filters;
    if (stored < end && k < filter_end)
      output[stored * l.filters + k] = half(finished<M>(sums[i], added, stored, k, l));
  }
}

template <GatherMutation M>
class Mutant final : public Stage {
  bool has_epilogue() const override { return true; }
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    return check_implicit_gemm(problem, kDepth, kFilters);
  }
  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Lowering l = lowering_of(problem);
    const int size = steps_of(l) * padded_filters(l) * kDepth;
    packed_.allocate<half>(size);
    convladder::launch(pack<M>, dim3(blocks_for(size, kThreads)), dim3(kThreads), 0, stream)(tensors.filter,
                                                                                             packed_.as<half>(), l);
  }
  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Lowering l = lowering_of(problem);
    const int blocks = blocks_for(l.batch * output_plane(l), kOutputs) * (padded_filters(l) / kFilters);
    convladder::launch(gather_and_multiply<M>, dim3(blocks), dim3(kThreads), 0, stream)(
        tensors.half_input, packed_.as<half>(), tensors.half_output,
        Added{tensors.bias, tensors.half_residual, problem.has_relu()}, l);
  }
  Prediction predict(const ConvProblem&) const override { return {}; }

  Workspace packed_{*this, "packed filter"};
};

}  // namespace

template <GatherMutation M>
Stage* make_gather_mutant() {
  return new Mutant<M>();
}

template Stage* make_gather_mutant<GatherMutation::none>();
template Stage* make_gather_mutant<GatherMutation::image_of_first>();
template Stage* make_gather_mutant<GatherMutation::strides_swapped>();
template Stage* make_gather_mutant<GatherMutation::swapped_padding>();
template Stage* make_gather_mutant<GatherMutation::dilation_ignored>();
template Stage* make_gather_mutant<GatherMutation::replicate_reads_zero>();
template Stage* make_gather_mutant<GatherMutation::reads_row_before>();
template Stage* make_gather_mutant<GatherMutation::channels_of_next_pixel>();
template Stage* make_gather_mutant<GatherMutation::taps_by_columns>();
template Stage* make_gather_mutant<GatherMutation::channels_above_32>();
template Stage* make_gather_mutant<GatherMutation::unswizzled_reads>();
template Stage* make_gather_mutant<GatherMutation::registers_swapped>();
template Stage* make_gather_mutant<GatherMutation::filters_transposed>();
template Stage* make_gather_mutant<GatherMutation::lower_rows_lost>();
template Stage* make_gather_mutant<GatherMutation::outputs_past_end>();
template Stage* make_gather_mutant<GatherMutation::filters_past_end>();
template Stage* make_gather_mutant<GatherMutation::bias_of_last_block_lost>();
template Stage* make_gather_mutant<GatherMutation::residual_of_next_row>();
template Stage* make_gather_mutant<GatherMutation::relu_before_residual>();
template Stage* make_gather_mutant<GatherMutation::relu_lost>();
template Stage* make_gather_mutant<GatherMutation::missing_wait>();
template Stage* make_gather_mutant<GatherMutation::wait_after_barrier>();
template Stage* make_gather_mutant<GatherMutation::missing_barrier>();
template Stage* make_gather_mutant<GatherMutation::copies_before_barrier>();

}  // namespace convladder
