// A correct tiled 1-D kernel, and versions of it with one mistake each. The tests must reject every one of them.
#include "common/kernel/border.hpp"
#include "common/kernel/tracks/signal.hpp"
#include "tests/mutants/signal_mutants.hpp"

namespace convladder {
namespace {

constexpr int kBlock = 256;

/// border_index with a mistake.
template <SignalMutation M>
__device__ __forceinline__ int mutated_border_index(int i, int size, Padding padding) {
  if (M == SignalMutation::replicate_reads_zero && padding == Padding::replicate) padding = Padding::zero;
  if (M == SignalMutation::reflect_repeats_edge && padding == Padding::reflect)
    return i < 0 ? -i - 1 : i >= size ? 2 * size - 1 - i : i;
  return border_index(i, size, padding);
}

template <SignalMutation M>
__global__ void mutant(const float* input, const float* filter, float* output, Signal s) {
  float* tile = dynamic_shared<float>();
  const int signal = blockIdx.y + gridDim.y * blockIdx.z;
  if (signal >= s.batch) return;
  const int source = M == SignalMutation::batch_ignored ? 0 : signal;
  const float* x = input + static_cast<std::int64_t>(source) * s.length;
  const int start = blockIdx.x * kBlock;
  const int outputs = min(kBlock, s.out_length - start);
  const int loaded = outputs + s.taps - (M == SignalMutation::short_halo && s.taps > 1 ? 2 : 1);
  const int first = start - s.pad + (M == SignalMutation::shifted_halo ? 1 : 0);
  for (int t = threadIdx.x; t < loaded; t += kBlock) {
    const int j = mutated_border_index<M>(first + t, s.length, s.padding);
    tile[t] = j < 0 || j >= s.length ? 0.0f : x[j];
    if (M == SignalMutation::nan_swallowed && !(tile[t] == tile[t])) tile[t] = 0.0f;
  }
  if (M != SignalMutation::missing_barrier) __syncthreads();
  const int i = threadIdx.x;
  const int last = M == SignalMutation::unwritten_tail   ? outputs - 1
                   : M == SignalMutation::write_past_end ? kBlock
                                                         : outputs;
  if (i >= last) return;
  float sum = 0.0f;
  for (int t = 0; t < s.taps && i < outputs; ++t)
    sum += tile[i + t] * filter[M == SignalMutation::flipped_filter ? s.taps - 1 - t : t];
  output[static_cast<std::int64_t>(signal) * s.out_length + start + i] = sum;
}

template <SignalMutation M>
class Mutant final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits& limits) const override {
    return check_tile(problem, limits, (kBlock + problem.s - 1) * 4);
  }
  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Signal s = signal_of(problem);
    const std::size_t tile_bytes = static_cast<std::size_t>(kBlock + s.taps - 1) * sizeof(float);
    convladder::launch(mutant<M>, signal_grid(s, kBlock), kBlock, tile_bytes, stream)(tensors.input, tensors.filter,
                                                                                      tensors.output, s);
  }
  Prediction predict(const ConvProblem&) const override { return {}; }
};

}  // namespace

template <SignalMutation M>
Stage* make_signal_mutant() {
  return new Mutant<M>;
}
template Stage* make_signal_mutant<SignalMutation::none>();
template Stage* make_signal_mutant<SignalMutation::short_halo>();
template Stage* make_signal_mutant<SignalMutation::shifted_halo>();
template Stage* make_signal_mutant<SignalMutation::flipped_filter>();
template Stage* make_signal_mutant<SignalMutation::missing_barrier>();
template Stage* make_signal_mutant<SignalMutation::unwritten_tail>();
template Stage* make_signal_mutant<SignalMutation::write_past_end>();
template Stage* make_signal_mutant<SignalMutation::replicate_reads_zero>();
template Stage* make_signal_mutant<SignalMutation::reflect_repeats_edge>();
template Stage* make_signal_mutant<SignalMutation::nan_swallowed>();
template Stage* make_signal_mutant<SignalMutation::batch_ignored>();

}  // namespace convladder
