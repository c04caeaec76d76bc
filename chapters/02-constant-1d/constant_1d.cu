// 02 constant-1d: the filter in constant memory.
//
// Since 01: `filter[t]` became `c_filter[t]`. In each step of the loop the 32 lanes of a warp want the same tap, and
// that is the one access that constant memory serves in a single pass: one word, broadcast to all. The taps no longer
// travel through the path that the samples need.
//
//   1. prepare() copies the filter into c_filter, once.
//   2. The kernel is that of 01.

#include "common/kernel/border.hpp"
#include "common/kernel/tracks/signal.hpp"

namespace convladder {
namespace {

constexpr int kBlock = 256;

__constant__ float c_filter[kMaxConstantTaps];

__global__ void constant_1d(const float* input,  // [batch][length]
                            float* output,       // [batch][out_length]
                            Signal s) {
  const int i = blockIdx.x * kBlock + threadIdx.x;
  const int signal = blockIdx.y + gridDim.y * blockIdx.z;
  if (i >= s.out_length || signal >= s.batch) return;
  const float* x = input + static_cast<std::int64_t>(signal) * s.length;

  float sum = 0.0f;
  for (int t = 0; t < s.taps; ++t) {
    const int j = border_index(i - s.pad + t, s.length, s.padding);
    if (j >= 0) sum += x[j] * c_filter[t];  // the same t in every lane: one broadcast
  }
  output[static_cast<std::int64_t>(signal) * s.out_length + i] = sum;
}

void launch_constant_1d(const Tensors& tensors, const Signal& s, Stream stream) {
  launch(constant_1d, signal_grid(s, kBlock), kBlock, 0, stream)(tensors.input, tensors.output, s);
}

class Constant1d final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    return check_constant_filter(problem);
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    upload_constant(c_filter, tensors.filter, static_cast<std::size_t>(problem.s), stream);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    launch_constant_1d(tensors, signal_of(problem), stream);
  }

  // As in 01, without the filter's half.
  Prediction predict(const ConvProblem& problem) const override {
    const Signal s = signal_of(problem);
    Prediction p;
    p.global_load_bytes = reads_by_output(s) * 4;
    p.global_store_bytes = problem.output_size() * 4;
    p.global_store_requests = warps_over_outputs(s);
    p.shared_load_requests = p.barriers = 0;
    p.flops = problem.flops();
    return p;
  }
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::Constant1d)
