// 01 naive-1d: one thread, one output.
//
//   y[i] = sum over t of filter[t] * x[i - pad + t]          t = 0 .. taps-1
//
//   1. The thread finds which output is its own.
//   2. For each tap it finds which sample it needs; outside the signal the padding mode decides.
//   3. It multiplies, adds, and stores once.
//
// Nothing is reused: each sample is fetched by up to `taps` threads, each tap by every thread.

#include "common/kernel/border.hpp"
#include "common/kernel/tracks/signal.hpp"

namespace convladder {
namespace {

constexpr int kBlock = 256;  // outputs of a block, and its threads

__global__ void naive_1d(const float* input,   // [batch][length]
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
  for (int t = 0; t < s.taps; ++t) {
    const int j = border_index(i - s.pad + t, s.length, s.padding);
    if (j >= 0) sum += x[j] * filter[t];
  }

  // 3.
  output[static_cast<std::int64_t>(signal) * s.out_length + i] = sum;
}

void launch_naive_1d(const Tensors& tensors, const Signal& s, Stream stream) {
  launch(naive_1d, signal_grid(s, kBlock), kBlock, 0, stream)(tensors.input, tensors.filter, tensors.output, s);
}

class Naive1d final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override { return check_signal(problem); }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    launch_naive_1d(tensors, signal_of(problem), stream);
  }

  // Each output asks for `taps` samples and `taps` filter words, less what zero padding need not read.
  Prediction predict(const ConvProblem& problem) const override {
    const Signal s = signal_of(problem);
    Prediction p;
    p.global_load_bytes = reads_by_output(s) * (4 + 4);
    p.global_store_bytes = problem.output_size() * 4;
    p.global_store_requests = warps_over_outputs(s);
    p.shared_load_requests = p.constant_load_requests = p.barriers = 0;
    p.flops = problem.flops();
    return p;
  }
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::Naive1d)
