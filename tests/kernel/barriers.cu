// The barriers that the test looks for carry a marker: "// <- name".
#include "common/kernel/kernel.hpp"
#include "tests/kernel/barriers.hpp"

namespace convladder {
namespace {

template <int kBlock>
__global__ void pairs(const float* input, const float* filter, float* output, int outputs) {
  __shared__ float tile[kBlock + 1];
  const int t = threadIdx.x, i = blockIdx.x * kBlock + t;
  if (t == 0) tile[0] = input[i];
  tile[t + 1] = i < outputs ? input[i + 1] : 0.0f;
  __syncthreads();  // <- unseen: a thread reads what it and the one before it have written
  const float sum = filter[0] * tile[t] + filter[1] * tile[t + 1];
  __syncthreads();  // <- seen: the first thread overwrites what the last one reads
  tile[kBlock - t] = sum;
  __syncthreads();  // <- unneeded: a thread reads what it has written itself
  if (i < outputs) output[i] = tile[kBlock - t];
}

class WithBarriers final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    const bool pair = problem.s == 2 && problem.pad_w == 0 && problem.n * problem.c * problem.h * problem.k == 1;
    return pair ? Verdict::accept() : Verdict::refuse("want one signal and two taps");
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const int outputs = static_cast<int>(problem.q());
    if (outputs < 100)
      convladder::launch(pairs<32>, dim3((outputs + 31) / 32), dim3(32), 0, stream)(tensors.input, tensors.filter,
                                                                                    tensors.output, outputs);
    else
      convladder::launch(pairs<64>, dim3((outputs + 63) / 64), dim3(64), 0, stream)(tensors.input, tensors.filter,
                                                                                    tensors.output, outputs);
  }
};

}  // namespace

Stage* make_stage_with_barriers() { return new WithBarriers; }

}  // namespace convladder
