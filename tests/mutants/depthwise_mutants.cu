// A correct depthwise kernel, a thread for each output, and versions of it with one mistake each. The tests must reject
// every one of them.
#include "common/kernel/border.hpp"
#include "common/kernel/tracks/depthwise.hpp"
#include "tests/mutants/depthwise_mutants.hpp"

namespace convladder {
namespace {

constexpr int kSide = 16;  // threads of a block, and outputs of a tile, in each direction

/// border_index with a mistake.
template <DepthwiseMutation M>
__device__ __forceinline__ int mutated_border_index(int i, int size, Padding padding) {
  if (M == DepthwiseMutation::replicate_reads_zero && padding == Padding::replicate) padding = Padding::zero;
  if (M == DepthwiseMutation::reflect_repeats_edge && padding == Padding::reflect)
    return i < 0 ? -i - 1 : i >= size ? 2 * size - 1 - i : i;
  return border_index(i, size, padding);
}

/// Where output `at` begins to read along the rows or the columns, and the distance of its taps.
struct Walk {
  int first, step;
};
template <DepthwiseMutation M>
__device__ __forceinline__ Walk walk_down(const Depthwise& d, int at) {
  const int stride = M == DepthwiseMutation::stride_ignored           ? 1
                     : M == DepthwiseMutation::stride_across_for_both ? d.stride_x
                                                                      : d.stride_y;
  return {at * stride - (M == DepthwiseMutation::swapped_padding ? d.pad_x : d.pad_y),
          M == DepthwiseMutation::dilation_swapped ? d.dilation_x : d.dilation_y};
}
template <DepthwiseMutation M>
__device__ __forceinline__ Walk walk_across(const Depthwise& d, int at) {
  return {at * d.stride_x - (M == DepthwiseMutation::swapped_padding ? d.pad_y : d.pad_x) -
              (M == DepthwiseMutation::even_centre ? 1 : 0),
          M == DepthwiseMutation::dilation_ignored   ? 1
          : M == DepthwiseMutation::dilation_swapped ? d.dilation_y
                                                     : d.dilation_x};
}

/// The input at row y and column x of the padded plane `nc`.
template <DepthwiseMutation M>
__device__ __forceinline__ float pixel(const float* input, const Depthwise& d, int nc, int y, int x) {
  int i = mutated_border_index<M>(y, d.height, d.padding), j = mutated_border_index<M>(x, d.width, d.padding);
  if (M == DepthwiseMutation::reads_plane_above && i < 0) i = y;
  if (M == DepthwiseMutation::reads_row_before && j < 0) j = x;
  const bool inside = (i >= 0 && i < d.height) || M == DepthwiseMutation::reads_plane_above;
  if (!inside || ((j < 0 || j >= d.width) && M != DepthwiseMutation::reads_row_before)) return 0.0f;
  const int channel = nc % d.channels, image = nc / d.channels;
  const int plane = M == DepthwiseMutation::planes_swapped  ? channel * d.batch + image
                    : M == DepthwiseMutation::batch_ignored ? channel
                                                            : nc;
  const std::int64_t first = plane * (M == DepthwiseMutation::plane_of_output ? output_plane(d) : input_plane(d));
  const std::int64_t at = first + static_cast<std::int64_t>(i) * d.width + j;
  // What these mistakes read is part of the tensor, so that nothing but the result shows them.
  if (at < 0 || at >= planes(d) * input_plane(d)) return 0.0f;
  const float value = input[at];
  return M == DepthwiseMutation::nan_swallowed && !(value == value) ? 0.0f : value;
}

template <DepthwiseMutation M>
__global__ void mutant(const float* input, const float* filter, float* output, Depthwise d) {
  const int nc = blockIdx.x;
  const int across = blocks_for(d.out_width, kSide);
  const int p = static_cast<int>(blockIdx.y) / across * kSide + threadIdx.y;
  const int q = static_cast<int>(blockIdx.y) % across * kSide + threadIdx.x;
  const int width = M == DepthwiseMutation::write_past_row   ? (d.out_width + 3) / 4 * 4
                    : M == DepthwiseMutation::unwritten_tail ? d.out_width / kSide * kSide
                                                             : d.out_width;
  if (p >= d.out_height || q >= width) return;
  if (M == DepthwiseMutation::channels_above_32 && nc % d.channels >= 32) return;

  const int channel = M == DepthwiseMutation::first_filter      ? 0
                      : M == DepthwiseMutation::filter_of_image ? nc / d.channels % d.channels
                      : M == DepthwiseMutation::filter_of_plane ? nc
                                                                : nc % d.channels;
  const float* taps = filter + channel * filter_plane(d);
  const Walk down = walk_down<M>(d, p), right = walk_across<M>(d, q);
  float sum = 0.0f;
  for (int r = 0; r < d.rows; ++r) {
    for (int s = 0; s < d.columns; ++s) {
      const int tap = M == DepthwiseMutation::transposed_filter ? s * d.rows + r : r * d.columns + s;
      sum += pixel<M>(input, d, nc, down.first + r * down.step, right.first + s * right.step) *
             taps[M == DepthwiseMutation::flipped_filter ? d.rows * d.columns - 1 - tap : tap];
    }
  }
  output[nc * output_plane(d) + static_cast<std::int64_t>(p) * d.out_width + q] = sum;
}

template <DepthwiseMutation M>
class Mutant final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override { return check_depthwise(problem); }
  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Depthwise d = depthwise_of(problem);
    convladder::launch(mutant<M>, dim3(planes(d), blocks_for(d.out_height, kSide) * blocks_for(d.out_width, kSide)),
                       dim3(kSide, kSide), 0, stream)(tensors.input, tensors.filter, tensors.output, d);
  }
  Prediction predict(const ConvProblem&) const override { return {}; }
};

}  // namespace

template <DepthwiseMutation M>
Stage* make_depthwise_mutant() {
  return new Mutant<M>;
}
template Stage* make_depthwise_mutant<DepthwiseMutation::none>();
template Stage* make_depthwise_mutant<DepthwiseMutation::first_filter>();
template Stage* make_depthwise_mutant<DepthwiseMutation::filter_of_image>();
template Stage* make_depthwise_mutant<DepthwiseMutation::filter_of_plane>();
template Stage* make_depthwise_mutant<DepthwiseMutation::planes_swapped>();
template Stage* make_depthwise_mutant<DepthwiseMutation::batch_ignored>();
template Stage* make_depthwise_mutant<DepthwiseMutation::channels_above_32>();
template Stage* make_depthwise_mutant<DepthwiseMutation::unwritten_tail>();
template Stage* make_depthwise_mutant<DepthwiseMutation::write_past_row>();
template Stage* make_depthwise_mutant<DepthwiseMutation::plane_of_output>();
template Stage* make_depthwise_mutant<DepthwiseMutation::stride_ignored>();
template Stage* make_depthwise_mutant<DepthwiseMutation::stride_across_for_both>();
template Stage* make_depthwise_mutant<DepthwiseMutation::dilation_ignored>();
template Stage* make_depthwise_mutant<DepthwiseMutation::dilation_swapped>();
template Stage* make_depthwise_mutant<DepthwiseMutation::swapped_padding>();
template Stage* make_depthwise_mutant<DepthwiseMutation::reads_plane_above>();
template Stage* make_depthwise_mutant<DepthwiseMutation::reads_row_before>();
template Stage* make_depthwise_mutant<DepthwiseMutation::flipped_filter>();
template Stage* make_depthwise_mutant<DepthwiseMutation::transposed_filter>();
template Stage* make_depthwise_mutant<DepthwiseMutation::even_centre>();
template Stage* make_depthwise_mutant<DepthwiseMutation::replicate_reads_zero>();
template Stage* make_depthwise_mutant<DepthwiseMutation::reflect_repeats_edge>();
template Stage* make_depthwise_mutant<DepthwiseMutation::nan_swallowed>();

}  // namespace convladder
