// 03, exercise: four outputs a thread (thread coarsening).
//
// A block of 256 threads computes 1024 outputs from one tile. Each weight that a thread reads then serves four
// multiply-adds, and the halo of taps - 1 samples serves 1024 outputs instead of 256.
//
//   1. The threads load the tile together (given, as in 03).
//   2. A barrier (given).
//   3. Each thread sums four windows of the tile, and stores four outputs.
//
//   input     ... |<- pad ->|<-------------- 1024 ------------->|<- taps-1-pad ->| ...
//   tile          [0 ............................................... 1024+taps-2]
//
// Rules: 256 threads, four outputs each; which four is yours to choose. The last tile of a signal may be shorter: read
// no element that was not loaded, write no output that does not exist.
// Graded: the outputs inside, at the ends, and of every length; no fault; weights and samples read for each output; no
// bank conflict; whole sectors stored.

#include "common/kernel/border.hpp"
#include "common/kernel/tracks/signal.hpp"

namespace convladder {
namespace {

constexpr int kThreads = 256;            // of a block
constexpr int kEach = 4;                 // outputs of a thread
constexpr int kTile = kThreads * kEach;  // outputs of a block

__constant__ float c_filter[kMaxConstantTaps];

__global__ void coarse_1d(const float* input,  // [batch][length]
                          float* output,       // [batch][out_length]
                          Signal s) {
  float* tile = dynamic_shared<float>();  // [kTile + taps - 1]
  const int signal = blockIdx.y + gridDim.y * blockIdx.z;
  if (signal >= s.batch) return;
  const float* x = input + static_cast<std::int64_t>(signal) * s.length;
  float* y = output + static_cast<std::int64_t>(signal) * s.out_length;
  const int start = blockIdx.x * kTile;                  // first output of the block
  const int outputs = min(kTile, s.out_length - start);  // fewer in the last block
  const int tile_size = outputs + s.taps - 1;

  // 1.
  for (int t = threadIdx.x; t < tile_size; t += kThreads) {
    const int j = border_index(start - s.pad + t, s.length, s.padding);
    tile[t] = j < 0 ? 0.0f : x[j];
  }

  // 2.
  __syncthreads();

  // 3.
  // SOLUTION
  float sum[kEach] = {};
  for (int t = 0; t < s.taps; ++t) {
    const float weight = c_filter[t];  // read once, used four times
    UNROLL
    for (int e = 0; e < kEach; ++e) {
      const int i = e * kThreads + threadIdx.x;  // neighbouring lanes: neighbouring outputs
      if (i < outputs) sum[e] += tile[i + t] * weight;
    }
  }
  UNROLL
  for (int e = 0; e < kEach; ++e) {
    const int i = e * kThreads + threadIdx.x;
    if (i < outputs) y[start + i] = sum[e];
  }
  // STARTER
  // | // As in 03: one output a thread. Of the 1024 outputs of a block 768 are never written.
  // | const int i = threadIdx.x;
  // | if (i >= outputs) return;
  // | float sum = 0.0f;
  // | for (int t = 0; t < s.taps; ++t) sum += tile[i + t] * c_filter[t];
  // | y[start + i] = sum;
  // END
}

std::int64_t tile_bytes(std::int64_t taps) { return (kTile + taps - 1) * static_cast<std::int64_t>(sizeof(float)); }

void launch_coarse_1d(const Tensors& tensors, const Signal& s, Stream stream) {
  const auto bytes = static_cast<std::size_t>(tile_bytes(s.taps));
  launch(coarse_1d, signal_grid(s, kTile), kThreads, bytes, stream)(tensors.input, tensors.output, s);
}

class Coarse1d final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits& limits) const override {
    return check_tile(problem, limits, tile_bytes(problem.s));
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    upload_constant(c_filter, tensors.filter, static_cast<std::size_t>(problem.s), stream);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    launch_coarse_1d(tensors, signal_of(problem), stream);
  }
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::Coarse1d)
