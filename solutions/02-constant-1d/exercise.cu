// 02, exercise: two filters in one launch.
//
//   y[k][i] = sum over t of filter[k][t] * x[i - pad + t]          k = 0, 1;  t = 0 .. taps-1
//
// Two filters of one length go over the same signal, such as a low-pass and a high-pass. Each thread computes both
// outputs of its position, so that it loads each sample once.
//
//   1. prepare() copies both filters into constant memory. How they lie there is yours to choose.
//   2. The thread finds which position is its own (given).
//   3. It sums both filters in one loop, and stores both outputs.
//
// Rules: one launch; both filters in constant memory, up to the 8191 taps each that check() promises.
// Graded: both outputs inside and at the ends for every padding mode, batches, long filters; no fault; each sample
// loaded once for both filters.

#include "common/kernel/border.hpp"
#include "common/kernel/tracks/signal.hpp"

namespace convladder {
namespace {

constexpr int kBlock = 256;  // positions of a block, and its threads

// SOLUTION
__constant__ float c_filters[kMaxConstantTaps];  // [2][taps]: the first filter, and right behind it the second
// STARTER
// | __constant__ float c_filter[kMaxConstantTaps];  // as in 02: one filter
// END

__global__ void two_filters_1d(const float* input,  // [batch][length]
                               float* output,       // [batch][2][out_length]
                               Signal s) {
  // 2.
  const int i = blockIdx.x * kBlock + threadIdx.x;
  const int signal = blockIdx.y + gridDim.y * blockIdx.z;
  if (i >= s.out_length || signal >= s.batch) return;
  const float* x = input + static_cast<std::int64_t>(signal) * s.length;

  // 3.
  // SOLUTION
  float first = 0.0f, second = 0.0f;
  for (int t = 0; t < s.taps; ++t) {
    const int j = border_index(i - s.pad + t, s.length, s.padding);
    if (j < 0) continue;
    const float sample = x[j];
    first += sample * c_filters[t];
    second += sample * c_filters[s.taps + t];
  }
  const std::int64_t row = 2 * static_cast<std::int64_t>(signal);  // of the output: two rows a signal
  output[row * s.out_length + i] = first;
  output[(row + 1) * s.out_length + i] = second;
  // STARTER
  // | // As in 02: the first filter's output is right for the first signal, the second filter's is never written.
  // | float sum = 0.0f;
  // | for (int t = 0; t < s.taps; ++t) {
  // |   const int j = border_index(i - s.pad + t, s.length, s.padding);
  // |   if (j >= 0) sum += x[j] * c_filter[t];
  // | }
  // | output[static_cast<std::int64_t>(signal) * s.out_length + i] = sum;
  // END
}

void launch_two_filters_1d(const Tensors& tensors, const Signal& s, Stream stream) {
  launch(two_filters_1d, signal_grid(s, kBlock), kBlock, 0, stream)(tensors.input, tensors.output, s);
}

class TwoFilters1d final : public Stage {
  // The rules of 02 for one of the filters; then there must be two, and room for both.
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    ConvProblem one = problem;
    one.k = 1;
    const Verdict verdict = check_signal(one);
    if (!verdict.accepted()) return verdict;
    if (problem.k != 2) return Verdict::refuse("this exercise wants two filters: k=2; got k={}", problem.k);
    if (2 * problem.s > kMaxConstantTaps)
      return Verdict::refuse("constant memory holds two filters of at most {} taps; got s={}", kMaxConstantTaps / 2,
                             problem.s);
    return Verdict::accept();
  }

  // 1. tensors.filter is [2][taps], in device memory.
  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    // SOLUTION
    upload_constant(c_filters, tensors.filter, 2 * static_cast<std::size_t>(problem.s), stream);
    // STARTER
    // | upload_constant(c_filter, tensors.filter, static_cast<std::size_t>(problem.s), stream);
    // END
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    launch_two_filters_1d(tensors, signal_of(problem), stream);
  }
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::TwoFilters1d)
