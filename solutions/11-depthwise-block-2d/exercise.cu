// 11, exercise: a plane in shared memory.
//
// In 11 a block has a plane of its own, and reads each of its pixels and each weight about R * S times from global
// memory. A plane of a network's inner layers is small: it fits in shared memory as a whole, beside its filter. Then
// there is no halo to think of, and each pixel and each weight is loaded once.
//
//   1. Copy plane and filter.
//   2. Wait.
//   3. The outputs, from shared memory, in rounds of 256.
//
// Rules: a block of 256 threads for each image and channel; the plane and the filter together have at most 48 KB.
// Graded: the outputs of planes of every size, for every padding mode, stride and dilation; no fault; bytes loaded,
// requests to shared memory and barriers.

#include "common/kernel/border.hpp"
#include "common/kernel/tracks/depthwise.hpp"

namespace convladder {
namespace {

constexpr int kThreads = 256;            // of a block
constexpr int kSharedBytes = 48 * 1024;  // that a block has without asking for more

__global__ void depthwise_kept(const float* input,   // [batch][channels][height][width]
                               const float* filter,  // [channels][rows][columns]
                               float* output,        // [batch][channels][out_height][out_width]
                               Depthwise d) {
  const int n = blockIdx.x, c = blockIdx.y, t = threadIdx.x;
  const std::int64_t plane = static_cast<std::int64_t>(n) * d.channels + c;
  const float* in = input + plane * input_plane(d);
  const float* taps = filter + c * filter_plane(d);
  float* out = output + plane * output_plane(d);

  // SOLUTION
  float* pixels = dynamic_shared<float>();   // [height][width]
  float* weights = pixels + input_plane(d);  // [rows][columns]

  // 1.
  for (int i = t; i < input_plane(d); i += kThreads) pixels[i] = in[i];
  for (int i = t; i < filter_plane(d); i += kThreads) weights[i] = taps[i];

  // 2.
  __syncthreads();

  // 3. Output p, q of the plane has place p * out_width + q: the two loops are one.
  for (std::int64_t place = t; place < output_plane(d); place += kThreads) {
    const int p = static_cast<int>(place / d.out_width), q = static_cast<int>(place % d.out_width);
    float sum = 0.0f;
    for (int r = 0; r < d.rows; ++r) {
      const int i = border_index(p * d.stride_y - d.pad_y + r * d.dilation_y, d.height, d.padding);
      if (i < 0) continue;
      for (int s = 0; s < d.columns; ++s) {
        const int j = border_index(q * d.stride_x - d.pad_x + s * d.dilation_x, d.width, d.padding);
        if (j >= 0) sum += pixels[i * d.width + j] * weights[r * d.columns + s];
      }
    }
    out[place] = sum;
  }
  // STARTER
  // | // The launch gives a block shared memory for the plane and, behind it, the filter:
  // | //   float* pixels = dynamic_shared<float>();
  // | //   float* weights = pixels + input_plane(d);
  // | // One output a thread, from global memory. What a plane has beyond 256 outputs is never written.
  // | const int p = t / d.out_width, q = t % d.out_width;
  // | if (p >= d.out_height) return;
  // | float sum = 0.0f;
  // | for (int r = 0; r < d.rows; ++r) {
  // |   const int i = border_index(p * d.stride_y - d.pad_y + r * d.dilation_y, d.height, d.padding);
  // |   if (i < 0) continue;
  // |   for (int s = 0; s < d.columns; ++s) {
  // |     const int j = border_index(q * d.stride_x - d.pad_x + s * d.dilation_x, d.width, d.padding);
  // |     if (j >= 0) sum += in[i * d.width + j] * taps[r * d.columns + s];
  // |   }
  // | }
  // | out[t] = sum;
  // END
}

std::int64_t shared_bytes(const ConvProblem& problem) { return (problem.h * problem.w + problem.r * problem.s) * 4; }

void launch_depthwise_kept(const Tensors& tensors, const Depthwise& d, std::int64_t shared, Stream stream) {
  launch(depthwise_kept, dim3(d.batch, d.channels), dim3(kThreads), static_cast<std::size_t>(shared), stream)(
      tensors.input, tensors.filter, tensors.output, d);
}

class DepthwiseKept final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    const Verdict verdict = check_depthwise(problem, problem.c, "channels");
    if (!verdict.accepted() || shared_bytes(problem) <= kSharedBytes) return verdict;
    return Verdict::refuse("a plane and its filter must fit in {} bytes; got h={}, w={}, r={}, s={}", kSharedBytes,
                           problem.h, problem.w, problem.r, problem.s);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    launch_depthwise_kept(tensors, depthwise_of(problem), shared_bytes(problem), stream);
  }
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::DepthwiseKept)
