// 01, exercise: a signal that wraps around.
//
//   y[i] = sum over t of filter[t] * x[(i - pad + t) mod length]          t = 0 .. taps-1
//
// The signal is one period of a signal without end: left of its first sample stands its last one, right of its last
// sample its first one, and so on in both directions. The problem's padding mode plays no part.
//
//   1. The thread finds which output is its own (given).
//   2. For each tap it finds the sample, with circular_index, and adds.
//   3. It stores once (given).
//
// Rules: one launch, no shared memory, no padded copy of the signal. Any length from 1 on, any odd filter, any pad, any
// number of signals.
// Graded: the outputs inside and at the ends, filters longer than the signal, pads of several lengths; no fault; one
// sample and one weight loaded for each tap; neighbouring threads read neighbouring samples.

#include "common/kernel/border.hpp"
#include "common/kernel/tracks/signal.hpp"

namespace convladder {
namespace {

constexpr int kBlock = 256;  // outputs of a block, and its threads

// position mod length, from 0 to length - 1, for any position, negative ones too.
__device__ __forceinline__ int circular_index(int position, int length) {
  return min(max(position, 0), length - 1);  // this holds on to the ends, as replicate does: make it wrap
}

__global__ void circular_1d(const float* input,   // [batch][length]
                            const float* filter,  // [taps]
                            float* output,        // [batch][out_length]
                            Signal s) {
  // 1.
  const int i = blockIdx.x * kBlock + threadIdx.x;
  const int signal = blockIdx.y + gridDim.y * blockIdx.z;
  if (i >= s.out_length || signal >= s.batch) return;
  const float* x = input + static_cast<std::int64_t>(signal) * s.length;

  // 2.
  float sum = 0.0f;
  sum += x[circular_index(i - s.pad, s.length)] * filter[0];  // the first tap only: add the others

  // 3.
  output[static_cast<std::int64_t>(signal) * s.out_length + i] = sum;
}

void launch_circular_1d(const Tensors& tensors, const Signal& s, Stream stream) {
  launch(circular_1d, signal_grid(s, kBlock), kBlock, 0, stream)(tensors.input, tensors.filter, tensors.output, s);
}

class Circular1d final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override { return check_signal(problem); }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    launch_circular_1d(tensors, signal_of(problem), stream);
  }
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::Circular1d)
