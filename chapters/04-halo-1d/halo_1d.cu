// 04 halo-1d: left halo, body and right halo, loaded apart.
//
// Since 03: the same elements, in another order. In 03 every warp's load began `pad` words before a sector boundary and
// touched 5 sectors for 32 floats. Here the body is loaded from where the block's outputs start, a multiple of 256: 4
// sectors a warp, the least there is. Only the few halo elements are left to begin anywhere.
//
//   1. Left halo: `pad` elements before the first output.
//   2. Body: one element a thread, aligned.
//   3. Right halo: `taps - 1 - pad` elements after the last.
//   4. A barrier, then the sum as in 03. A halo longer than the block takes several rounds.
//
//   input     ... |<- left ->|<-------------- body 256 ------------->|<- right ->| ...

#include "common/border.hpp"
#include "common/signal.hpp"

namespace convladder {
namespace {

constexpr int kBlock = 256;

__constant__ float c_filter[kMaxConstantTaps];

__global__ void halo_1d(const float* input,  // [batch][length]
                        float* output,       // [batch][out_length]
                        Signal s) {
  float* tile = dynamic_shared<float>();  // [pad][kBlock][taps - 1 - pad]
  const int signal = blockIdx.y + gridDim.y * blockIdx.z;
  if (signal >= s.batch) return;
  const float* x = input + static_cast<std::int64_t>(signal) * s.length;
  const int start = blockIdx.x * kBlock;
  const int outputs = min(kBlock, s.out_length - start);
  const int tile_size = outputs + s.taps - 1;
  const int i = threadIdx.x;

  // 1.
  for (int t = i; t < min(s.pad, tile_size); t += kBlock) {
    const int j = border_index(start - s.pad + t, s.length, s.padding);
    tile[t] = j < 0 ? 0.0f : x[j];
  }
  // 2.
  if (s.pad + i < tile_size) {
    const int j = border_index(start + i, s.length, s.padding);
    tile[s.pad + i] = j < 0 ? 0.0f : x[j];
  }
  // 3.
  for (int t = s.pad + kBlock + i; t < tile_size; t += kBlock) {
    const int j = border_index(start - s.pad + t, s.length, s.padding);
    tile[t] = j < 0 ? 0.0f : x[j];
  }

  // 4.
  __syncthreads();
  if (i >= outputs) return;
  float sum = 0.0f;
  for (int t = 0; t < s.taps; ++t) sum += tile[i + t] * c_filter[t];
  output[static_cast<std::int64_t>(signal) * s.out_length + start + i] = sum;
}

void launch_halo_1d(const Tensors& tensors, const Signal& s, Stream stream) {
  const std::size_t tile_bytes = static_cast<std::size_t>(kBlock + s.taps - 1) * sizeof(float);
  launch(halo_1d, signal_grid(s, kBlock), kBlock, tile_bytes, stream)(tensors.input, tensors.output, s);
}

class Halo1d final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits& limits) const override {
    return check_tile(problem, limits, kBlock);
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    upload_constant(c_filter, tensors.filter, static_cast<std::size_t>(problem.s), stream);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    launch_halo_1d(tensors, signal_of(problem), stream);
  }

  // The same elements as in 03, in fewer sectors.
  Prediction predict(const ConvProblem& problem) const override {
    const Signal s = signal_of(problem);
    const std::int64_t warps = warps_over_outputs(s);
    Prediction p;
    p.global_load_bytes = reads_by_tile(s, kBlock) * 4;
    p.global_store_bytes = problem.output_size() * 4;
    p.global_store_requests = warps;
    p.shared_load_requests = warps * s.taps;
    p.shared_load_conflicts = p.shared_store_conflicts = 0;
    p.constant_load_requests = warps * s.taps;
    p.barriers = (s.out_length + kBlock - 1) / kBlock * static_cast<std::int64_t>(s.batch);
    p.flops = problem.flops();
    return p;
  }
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::Halo1d)
