// Wrong versions of a plain kernel on bytes: a product of each pixel and tap, both in steps, and a byte for each
// output.

#include "common/kernel/border.hpp"
#include "common/kernel/tracks/lowering.hpp"
#include "common/stage/workspace.hpp"
#include "tests/mutants/byte_mutants.hpp"

namespace convladder {
namespace {

constexpr int kThreads = 128;
constexpr int kFilters = 16;  // whose order filters_as_rows changes
constexpr float kLargest = 127.0f;

// A thread quantises a filter, by its largest tap.
__global__ void quantise(const float* filter,     // [filters][depth]
                         std::int8_t* quantised,  // [filters][depth]
                         float* scales,           // [filters]
                         Lowering l, float input_scale) {
  const int k = blockIdx.x * kThreads + threadIdx.x;
  if (k >= l.filters) return;
  float largest = 0.0f;
  for (int i = 0; i < depth(l); ++i) largest = fmaxf(largest, fabsf(filter[k * depth(l) + i]));
  const float step = fmaxf(largest / kLargest, 0x1p-126f);
  scales[k] = input_scale * step;
  for (int i = 0; i < depth(l); ++i)
    quantised[k * depth(l) + i] = static_cast<std::int8_t>(__float2int_rn(filter[k * depth(l) + i] / step));
}

template <ByteMutation M>
__global__ void direct(const std::int8_t* input,   // [batch][height][width][channels]
                       const std::int8_t* filter,  // [filters][channels][rows][columns]
                       const float* scales,        // [filters]
                       std::int8_t* output,        // [batch][out_height][out_width][filters]
                       Lowering l) {
  const int i = blockIdx.x * kThreads + threadIdx.x, plane = output_plane(l);
  if (i >= l.batch * plane * l.filters) return;
  const int k = i % l.filters, pixel = i / l.filters % plane, n = i / l.filters / plane;
  int sum = 0;
  for (int r = 0; r < l.rows; ++r) {
    for (int s = 0; s < l.columns; ++s) {
      const int y = border_index(pixel / l.out_width * l.stride_y - l.pad_y + r * l.dilation_y, l.height, l.padding);
      const int x = border_index(pixel % l.out_width * l.stride_x - l.pad_x + s * l.dilation_x, l.width, l.padding);
      if (y < 0 || x < 0) continue;
      for (int c = 0; c < l.channels; ++c) {
        const int value = input[((n * l.height + y) * l.width + x) * l.channels + c];
        sum += (M == ByteMutation::unsigned_input ? value & 255 : value) *
               filter[((k * l.channels + c) * l.rows + r) * l.columns + s];
      }
    }
  }
  if (M == ByteMutation::short_sums) sum = static_cast<short>(sum);
  const int next = k + 1 < l.filters ? k + 1 : 0;
  const float scale = scales[M == ByteMutation::scale_of_next_filter ? next : M == ByteMutation::one_scale ? 0 : k];
  const float steps = static_cast<float>(sum) * scale, held = fminf(fmaxf(steps, -kLargest), kLargest);
  const int of_block = k % kFilters, row = k - of_block + of_block / 2 + of_block % 2 * (kFilters / 2);
  const int place = M == ByteMutation::filters_as_rows && k - of_block + kFilters <= l.filters ? row : k;
  output[i - k + place] = static_cast<std::int8_t>(__float2int_rn(M == ByteMutation::wraps ? steps : held));
}

template <ByteMutation M>
class Mutant final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    return check_implicit_gemm(problem, 1, 1);
  }
  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Lowering l = lowering_of(problem);
    quantised_.allocate<std::int8_t>(problem.filter_size());
    scales_.allocate<float>(problem.k);
    convladder::launch(quantise, dim3(blocks_for(l.filters, kThreads)), dim3(kThreads), 0, stream)(
        tensors.filter, quantised_.as<std::int8_t>(), scales_.floats(), l, tensors.input_step / tensors.output_step);
  }
  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const int outputs = static_cast<int>(problem.output_size());
    convladder::launch(direct<M>, dim3(blocks_for(outputs, kThreads)), dim3(kThreads), 0, stream)(
        tensors.byte_input, quantised_.as<std::int8_t>(), scales_.floats(), tensors.byte_output, lowering_of(problem));
  }
  Prediction predict(const ConvProblem&) const override { return {}; }

  Workspace quantised_{*this, "quantised filter"};
  Workspace scales_{*this, "scales"};
};

}  // namespace

template <ByteMutation M>
Stage* make_byte_mutant() {
  return new Mutant<M>;
}

template Stage* make_byte_mutant<ByteMutation::none>();
template Stage* make_byte_mutant<ByteMutation::wraps>();
template Stage* make_byte_mutant<ByteMutation::scale_of_next_filter>();
template Stage* make_byte_mutant<ByteMutation::one_scale>();
template Stage* make_byte_mutant<ByteMutation::unsigned_input>();
template Stage* make_byte_mutant<ByteMutation::short_sums>();
template Stage* make_byte_mutant<ByteMutation::filters_as_rows>();

}  // namespace convladder
