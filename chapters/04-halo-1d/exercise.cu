// 04, exercise: a block that walks, and keeps its halo.
//
// A block computes eight tiles of 1024 outputs, one after the other. The last taps - 1 samples of a tile are the first
// taps - 1 of the next: they are in shared memory already, so they are kept there and not loaded again.
//
//   tile 0        [<- halo ->|<------------- 1024 new ------------>]
//   tile 1                                              [<- halo ->|<------------- 1024 new ------------>]
//                                                        kept, not loaded             halo = taps - 1
//
//   1. The first tile's halo is loaded, once a block.
//   2. For each tile: load the 1024 samples behind the halo, compute 1024 outputs, keep the last taps - 1 samples.
//
// Rules: one launch; a block walks over kTiles tiles. The last block of a signal may have fewer, and the last tile
// fewer outputs. check() refuses filters whose halo is longer than a tile.
// Graded: the outputs inside, at the ends for every padding mode, and of every length and batch; no fault, races among
// them; each sample loaded once a block; at most three barriers a tile.

#include "common/kernel/border.hpp"
#include "common/kernel/tracks/signal.hpp"

namespace convladder {
namespace {

constexpr int kThreads = 256;  // of a block
constexpr int kTile = 1024;    // outputs of a tile
constexpr int kTiles = 8;      // tiles that a block walks over

__constant__ float c_filter[kMaxConstantTaps];

// The sample at a position of the padded signal; zero where no output needs one.
__device__ __forceinline__ float padded_sample(const float* x, int position, const Signal& s) {
  if (position >= s.length + s.pad) return 0.0f;
  const int j = border_index(position, s.length, s.padding);
  return j < 0 ? 0.0f : x[j];
}

// The output whose samples begin at window[0].
__device__ __forceinline__ float window_sum(const float* window, int taps) {
  float sum = 0.0f;
  for (int t = 0; t < taps; ++t) sum += window[t] * c_filter[t];
  return sum;
}

__global__ void walk_1d(const float* input,  // [batch][length]
                        float* output,       // [batch][out_length]
                        Signal s) {
  float* tile = dynamic_shared<float>();  // [halo + kTile]
  const int signal = blockIdx.y + gridDim.y * blockIdx.z;
  if (signal >= s.batch) return;
  const float* x = input + static_cast<std::int64_t>(signal) * s.length;
  float* y = output + static_cast<std::int64_t>(signal) * s.out_length;
  const int halo = s.taps - 1;
  const int first = blockIdx.x * kTiles * kTile;                      // the block's first output
  const int end = first + min(kTiles * kTile, s.out_length - first);  // behind its last one

  // One tile, as in 03, and no walk: every output from the block's second tile on is never written.
  const int loaded = min(kTile, end - first) + halo;
  for (int t = threadIdx.x; t < loaded; t += kThreads) tile[t] = padded_sample(x, first - s.pad + t, s);
  __syncthreads();
  for (int i = threadIdx.x; i < loaded - halo; i += kThreads) y[first + i] = window_sum(tile + i, s.taps);
}

std::int64_t tile_bytes(std::int64_t taps) { return (kTile + taps - 1) * static_cast<std::int64_t>(sizeof(float)); }

void launch_walk_1d(const Tensors& tensors, const Signal& s, Stream stream) {
  const auto bytes = static_cast<std::size_t>(tile_bytes(s.taps));
  launch(walk_1d, signal_grid(s, kTiles * kTile), kThreads, bytes, stream)(tensors.input, tensors.output, s);
}

class Walk1d final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits& limits) const override {
    if (problem.s - 1 > kTile)
      return Verdict::refuse("the halo, s - 1 samples, must fit a tile of {}; got s={}", kTile, problem.s);
    return check_tile(problem, limits, tile_bytes(problem.s));
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    upload_constant(c_filter, tensors.filter, static_cast<std::size_t>(problem.s), stream);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    launch_walk_1d(tensors, signal_of(problem), stream);
  }
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::Walk1d)
