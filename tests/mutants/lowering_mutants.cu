// A correct im2win with asynchronous copies to two buffers, as stage 21 has it with smaller tiles, and versions of it
// with one mistake each. The tests must reject every one of them.
#include "chapters/18-im2win/im2win.cuh"
#include "common/stage/workspace.hpp"
#include "tests/mutants/lowering_mutants.hpp"

namespace convladder {
namespace {

constexpr int kThreads = 64;
constexpr int kFilters = 16, kOutputs = 32;          // of a tile
constexpr int kDepth = 8;                            // products of a step
constexpr int kQuads = kOutputs / 4;                 // threads along the outputs, four of which each has
constexpr int kRows = kFilters * kQuads / kThreads;  // filters of a thread

/// border_index with a mistake.
template <LoweringMutation M>
__device__ __forceinline__ int mutated_border_index(int i, int size, Padding padding) {
  if (M == LoweringMutation::replicate_reads_zero && padding == Padding::replicate) padding = Padding::zero;
  if (M == LoweringMutation::reflect_repeats_edge && padding == Padding::reflect) {
    if (i < 0) return -i - 1;
    if (i >= size) return 2 * size - 1 - i;
  }
  return border_index(i, size, padding);
}

template <LoweringMutation M>
__global__ void transform(const float* input, float* tensor, Lowering l) {
  const int n = block_in_y(), at = blockIdx.x * kThreads + threadIdx.x, size = l.channels * im2win_plane(l);
  if (n >= l.batch || at >= size) return;
  const int r = at % l.rows, j = at / l.rows % padded_width(l);
  const int p = at / im2win_row(l) % l.out_height, c = at / im2win_plane(l);
  const int stride = M == LoweringMutation::stride_across_for_both ? l.stride_x : l.stride_y;
  const int dilation = M == LoweringMutation::rows_undilated ? 1 : l.dilation_y;
  const bool swapped = M == LoweringMutation::swapped_padding;
  const int y = mutated_border_index<M>(p * stride - (swapped ? l.pad_x : l.pad_y) + r * dilation, l.height, l.padding);
  const int x = mutated_border_index<M>(j - (swapped ? l.pad_y : l.pad_x), l.width, l.padding);
  // What some of the mistakes read lies outside: it is zero, so that nothing but the result shows them.
  const bool inside = y >= 0 && y < l.height && x >= 0 && x < l.width;
  const std::int64_t plane = static_cast<std::int64_t>(n) * l.channels + c;
  const float value = inside ? input[plane * input_plane(l) + static_cast<std::int64_t>(y) * l.width + x] : 0.0f;
  tensor[static_cast<std::int64_t>(n) * size + at] = M == LoweringMutation::nan_swallowed && value != value ? 0 : value;
}

/// Where the window of output `o` begins.
template <LoweringMutation M>
__device__ __forceinline__ std::int64_t start_of(const Lowering& l, int o) {
  const int n = M == LoweringMutation::batch_ignored ? 0 : o / output_plane(l), pq = o % output_plane(l);
  const int row = M == LoweringMutation::pad_columns_missing ? l.width * l.rows : im2win_row(l);
  const int stride = M == LoweringMutation::stride_ignored ? 1 : l.stride_x;
  return static_cast<std::int64_t>(n) * l.channels * im2win_plane(l) + pq / l.out_width * row +
         pq % l.out_width * stride * l.rows;
}

/// Where, from there, product `d` finds its pixel.
template <LoweringMutation M>
__device__ __forceinline__ int offset_of(const Lowering& l, int d) {
  const int c = d / window(l), s = d % window(l) / l.rows, r = d % l.rows;
  const int plane = M == LoweringMutation::channel_forgotten  ? 0
                    : M == LoweringMutation::channel_of_input ? static_cast<int>(input_plane(l))
                                                              : im2win_plane(l);
  return c * plane + s * (M == LoweringMutation::columns_undilated ? 1 : l.dilation_x) * l.rows + r;
}

/// Its tap.
template <LoweringMutation M>
__device__ __forceinline__ int tap_of(const Lowering& l, int d) {
  if (M == LoweringMutation::taps_by_row) return d;
  const int tap = tap_of_product(l, d);
  return M == LoweringMutation::flipped_filter ? d / window(l) * 2 * window(l) + window(l) - 1 - tap : tap;
}

template <LoweringMutation M>
__global__ void multiply(const float* filter, const float* tensor, float* output, Lowering l) {
  __shared__ float filter_tile[2][kDepth][kFilters];
  __shared__ float window_tile[2][kDepth][kOutputs];
  const int thread = threadIdx.x, plane = output_plane(l), outputs = l.batch * plane;
  const int filter_tiles = blocks_for(l.filters, kFilters);
  const int first_filter = blockIdx.x % filter_tiles * kFilters, first_output = blockIdx.x / filter_tiles * kOutputs;
  const int used = M == LoweringMutation::channels_above_32 ? min(l.channels, 32) * window(l) : depth(l);
  const std::int64_t tensor_size = static_cast<std::int64_t>(l.batch) * l.channels * im2win_plane(l);
  const std::int64_t start = start_of<M>(l, min(first_output + thread % kOutputs, outputs - 1));
  float sums[kRows][4] = {};

  const auto start_copies = [&](int step, int buffer) {
    for (int i = thread; i < kDepth * kFilters; i += kThreads) {
      const int d = step + i / kFilters, k = first_filter + i % kFilters;
      std::int64_t tap = static_cast<std::int64_t>(k) * depth(l) + tap_of<M>(l, d);
      bool inside = k < l.filters && d < used;
      if (M == LoweringMutation::products_past_depth) inside = k < l.filters && tap < l.filters * depth(l);
      copy_async<4>(&filter_tile[buffer][i / kFilters][i % kFilters], filter + (inside ? tap : 0), inside);
    }
    for (int i = thread / kOutputs; i < kDepth; i += kThreads / kOutputs) {
      const int d = step + i;
      std::int64_t at = start + offset_of<M>(l, d);
      bool inside = d < used;
      if (M == LoweringMutation::first_pixel_in_last_step && !inside) {
        at = start;
        inside = true;
      }
      if (M == LoweringMutation::unfilled_last_step && !inside) continue;
      if (M == LoweringMutation::products_past_depth) inside = true;
      // What some of the mistakes read lies outside, as above.
      inside = inside && at < tensor_size;
      copy_async<4>(&window_tile[buffer][i][thread % kOutputs], tensor + (inside ? at : 0), inside);
    }
    if (M != LoweringMutation::missing_commit) commit_copies();
  };
  const auto wait = [] {
    if (M == LoweringMutation::one_group_unwaited) wait_copies<1>();
    if (M != LoweringMutation::missing_wait && M != LoweringMutation::one_group_unwaited) wait_copies<0>();
  };

  const int y = thread / kQuads * kRows, x = thread % kQuads * 4;
  int buffer = 0;
  start_copies(0, 0);
  for (int step = 0; step < depth(l); step += kDepth) {
    if (M != LoweringMutation::wait_after_barrier) wait();
    const int next = M == LoweringMutation::one_buffer ? buffer : buffer ^ 1;
    const bool last = step + kDepth >= depth(l);
    if (M == LoweringMutation::copies_before_barrier && !last) start_copies(step + kDepth, next);
    if (M != LoweringMutation::missing_barrier) __syncthreads();
    if (M == LoweringMutation::wait_after_barrier) wait();
    if (M != LoweringMutation::copies_before_barrier && !last) start_copies(step + kDepth, next);
    for (int d = 0; d < kDepth; ++d) {
      for (int i = 0; i < kRows; ++i) {
        for (int j = 0; j < 4; ++j) sums[i][j] += filter_tile[buffer][d][y + i] * window_tile[buffer][d][x + j];
      }
    }
    buffer = next;
  }

  const int o = first_output + x;
  if (o >= outputs) return;
  for (int i = 0; i < kRows; ++i) {
    const int k = first_filter + y + i;
    // One filter, and four outputs, too many: on a GPU the guard bands must hold what they write.
    if (k >= l.filters + (M == LoweringMutation::filters_past_end ? 1 : 0)) continue;
    if (M == LoweringMutation::unwritten_filters && k >= l.filters / kFilters * kFilters) continue;
    if (M == LoweringMutation::filters_above_128 && k >= 128) continue;
    const auto place = [&](int of, int image) {
      return (static_cast<std::int64_t>(image) * l.filters + k) * plane + of - static_cast<std::int64_t>(image) * plane;
    };
    if (plane % 4 == 0 || (M == LoweringMutation::vector_of_any_plane && o + 4 <= outputs)) {
      *reinterpret_cast<float4*>(output + place(o, o / plane)) =
          make_float4(sums[i][0], sums[i][1], sums[i][2], sums[i][3]);
      continue;
    }
    for (int j = 0; j < 4; ++j) {
      if (o + j >= outputs && (M != LoweringMutation::outputs_past_end || k > 0)) continue;
      const int first = M == LoweringMutation::image_of_first           ? first_output
                        : M == LoweringMutation::image_of_first_of_four ? o
                                                                        : o + j;
      output[place(o + j, first / plane)] = sums[i][j];
    }
  }
}

template <LoweringMutation M>
class Mutant final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override { return check_lowering(problem); }
  void prepare(const ConvProblem& problem, const Tensors&, Stream) override { tensor_.allocate(im2win_size(problem)); }
  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Lowering l = lowering_of(problem);
    convladder::launch(transform<M>, grid_in_y(blocks_for(l.channels * im2win_plane(l), kThreads), l.batch),
                       dim3(kThreads), 0, stream)(tensors.input, tensor_.floats(), l);
    convladder::launch(multiply<M>,
                       dim3(blocks_for(l.filters, kFilters) * blocks_for(l.batch * output_plane(l), kOutputs)),
                       dim3(kThreads), 0, stream)(tensors.filter, tensor_.floats(), tensors.output, l);
  }
  Prediction predict(const ConvProblem&) const override { return {}; }

  Workspace tensor_{*this, "im2win tensor"};
};

}  // namespace

template <LoweringMutation M>
Stage* make_lowering_mutant() {
  return new Mutant<M>;
}
template Stage* make_lowering_mutant<LoweringMutation::none>();
template Stage* make_lowering_mutant<LoweringMutation::taps_by_row>();
template Stage* make_lowering_mutant<LoweringMutation::channel_forgotten>();
template Stage* make_lowering_mutant<LoweringMutation::channel_of_input>();
template Stage* make_lowering_mutant<LoweringMutation::pad_columns_missing>();
template Stage* make_lowering_mutant<LoweringMutation::rows_undilated>();
template Stage* make_lowering_mutant<LoweringMutation::columns_undilated>();
template Stage* make_lowering_mutant<LoweringMutation::stride_ignored>();
template Stage* make_lowering_mutant<LoweringMutation::stride_across_for_both>();
template Stage* make_lowering_mutant<LoweringMutation::swapped_padding>();
template Stage* make_lowering_mutant<LoweringMutation::batch_ignored>();
template Stage* make_lowering_mutant<LoweringMutation::flipped_filter>();
template Stage* make_lowering_mutant<LoweringMutation::replicate_reads_zero>();
template Stage* make_lowering_mutant<LoweringMutation::reflect_repeats_edge>();
template Stage* make_lowering_mutant<LoweringMutation::nan_swallowed>();
template Stage* make_lowering_mutant<LoweringMutation::channels_above_32>();
template Stage* make_lowering_mutant<LoweringMutation::filters_above_128>();
template Stage* make_lowering_mutant<LoweringMutation::products_past_depth>();
template Stage* make_lowering_mutant<LoweringMutation::unfilled_last_step>();
template Stage* make_lowering_mutant<LoweringMutation::first_pixel_in_last_step>();
template Stage* make_lowering_mutant<LoweringMutation::filters_past_end>();
template Stage* make_lowering_mutant<LoweringMutation::unwritten_filters>();
template Stage* make_lowering_mutant<LoweringMutation::outputs_past_end>();
template Stage* make_lowering_mutant<LoweringMutation::image_of_first>();
template Stage* make_lowering_mutant<LoweringMutation::image_of_first_of_four>();
template Stage* make_lowering_mutant<LoweringMutation::vector_of_any_plane>();
template Stage* make_lowering_mutant<LoweringMutation::missing_wait>();
template Stage* make_lowering_mutant<LoweringMutation::missing_commit>();
template Stage* make_lowering_mutant<LoweringMutation::one_group_unwaited>();
template Stage* make_lowering_mutant<LoweringMutation::wait_after_barrier>();
template Stage* make_lowering_mutant<LoweringMutation::missing_barrier>();
template Stage* make_lowering_mutant<LoweringMutation::copies_before_barrier>();
template Stage* make_lowering_mutant<LoweringMutation::one_buffer>();

}  // namespace convladder
