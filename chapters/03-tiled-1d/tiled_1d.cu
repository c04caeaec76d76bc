// 03 tiled-1d: a tile in shared memory.
//
// Since 02: the 256 outputs of a block need 256 + taps - 1 samples between them, most of them many times. The block
// loads each once from global memory; all further reads go to shared memory.
//
//   1. The threads load the tile together: thread t takes elements t, t + 256, t + 512, ...
//   2. A barrier: no thread may read the tile before all have written their part.
//   3. Each thread sums its own window of the tile.
//
//   input     ... |<- pad ->|<-------------- 256 ------------->|<- taps-1-pad ->| ...
//   tile          [0 ............................................... 256+taps-2]
//   thread i                 reads tile[i .. i+taps-1]

#include "common/kernel/border.hpp"
#include "common/kernel/tracks/signal.hpp"

namespace convladder {
namespace {

constexpr int kBlock = 256;

__constant__ float c_filter[kMaxConstantTaps];

__global__ void tiled_1d(const float* input,  // [batch][length]
                         float* output,       // [batch][out_length]
                         Signal s) {
  float* tile = dynamic_shared<float>();  // [kBlock + taps - 1]
  const int signal = blockIdx.y + gridDim.y * blockIdx.z;
  if (signal >= s.batch) return;  // the whole block, so none is missing at the barrier
  const float* x = input + static_cast<std::int64_t>(signal) * s.length;
  const int start = blockIdx.x * kBlock;                  // first output of the block
  const int outputs = min(kBlock, s.out_length - start);  // fewer in the last block
  const int tile_size = outputs + s.taps - 1;

  // 1. The tile starts at start - pad. Where that is no multiple of 8, the 32 floats of a warp straddle 5 sectors.
  for (int t = threadIdx.x; t < tile_size; t += kBlock) {
    const int j = border_index(start - s.pad + t, s.length, s.padding);
    tile[t] = j < 0 ? 0.0f : x[j];
  }

  // 2.
  __syncthreads();

  // 3. Neighbouring lanes read neighbouring words: 32 banks, no conflict.
  const int i = threadIdx.x;
  if (i >= outputs) return;
  float sum = 0.0f;
  for (int t = 0; t < s.taps; ++t) sum += tile[i + t] * c_filter[t];
  output[static_cast<std::int64_t>(signal) * s.out_length + start + i] = sum;
}

std::int64_t tile_bytes(std::int64_t taps) { return (kBlock + taps - 1) * static_cast<std::int64_t>(sizeof(float)); }

void launch_tiled_1d(const Tensors& tensors, const Signal& s, Stream stream) {
  const auto bytes = static_cast<std::size_t>(tile_bytes(s.taps));
  launch(tiled_1d, signal_grid(s, kBlock), kBlock, bytes, stream)(tensors.input, tensors.output, s);
}

class Tiled1d final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits& limits) const override {
    return check_tile(problem, limits, tile_bytes(problem.s));
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    upload_constant(c_filter, tensors.filter, static_cast<std::size_t>(problem.s), stream);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    launch_tiled_1d(tensors, signal_of(problem), stream);
  }

  // (256 + taps - 1) / 256 samples an output: 1 + 2r/B for taps = 2r+1.
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

CONVLADDER_STAGE(convladder::Tiled1d)
