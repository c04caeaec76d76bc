// 31 implicit-gemm, host side: the knob, which kernel a problem takes, and what is refused. The kernel is in
// implicit_gemm.cuh.

#include "chapters/31-implicit-gemm/implicit_gemm.cuh"
#include "chapters/31-implicit-gemm/prediction.hpp"
#include "common/stage/tunable.hpp"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

// The knob: outputs x filters of a block.
constexpr int kTiles[] = {0, 1, 2, 3};
constexpr const char* kTileWords[] = {"128x64", "256x64", "128x128", "192x128"};
constexpr Knob kKnobs[] = {{"tile", kTiles, kTileWords, 0}};

// What the kernel can rely on when it copies pixels.
Pixels pixels_of(const Lowering& l) {
  return l.channels % kChunk != 0 ? Pixels::any : l.padding != Padding::zero ? Pixels::padded : Pixels::in_zeros;
}

// Taps of a step: three if they are a row of the filter and the pixels of a block's outputs fit into its tile. Each row
// of outputs reads a few more pixels than it has outputs.
int taps_of(const Lowering& l, const Tile& tile) {
  const std::int64_t rows = (tile.outputs - 2) / l.out_width + 2, more = (kTaps - 1) * std::int64_t{l.dilation_x};
  const bool fit = tile.outputs + rows * more <= tile.slots;
  return pixels_of(l) == Pixels::in_zeros && l.columns == kTaps && l.stride_x == 1 && fit ? kTaps : 1;
}

Gemm gemm_of(const ConvProblem& problem, const Tile& tile) {
  const Lowering l = lowering_of(problem);
  return {l,
          divisor_of(l.out_height),
          divisor_of(l.out_width),
          divisor_of(l.out_width + (taps_of(l, tile) - 1) * l.dilation_x),
          l.batch * output_plane(l),
          blocks_for(l.channels, kDepth),
          blocks_for(l.filters, tile.filters),
          tile.filters};
}

template <class T>
using LaunchMultiply = void (*)(const T*, const T*, T*, const Gemm&, Stream);

template <class T, int Taps, Pixels Kind>
LaunchMultiply<T> launch_of(int tile) {
  constexpr LaunchMultiply<T> kLaunches[] = {
      launch_multiply<T, Small, Taps, Kind>, launch_multiply<T, Tall, Taps, Kind>,
      launch_multiply<T, Square, Taps, Kind>, launch_multiply<T, Large, Taps, Kind>};
  return kLaunches[tile];
}

template <class T>
LaunchMultiply<T> launch_of(int tile, int taps, Pixels kind) {
  if (taps != 1) return launch_of<T, kTaps, Pixels::in_zeros>(tile);
  return kind == Pixels::any      ? launch_of<T, 1, Pixels::any>(tile)
         : kind == Pixels::padded ? launch_of<T, 1, Pixels::padded>(tile)
                                  : launch_of<T, 1, Pixels::in_zeros>(tile);
}

template <class T>
class ImplicitGemm final : public TunableStage {
  Knobs knobs() const override { return kKnobs; }
  // The tile with which the multiprocessor that has the most blocks is done first; of two the smaller.
  Configuration default_configuration(const ConvProblem& problem, const DeviceLimits& limits) const override {
    Configuration best = knobs();
    std::int64_t shortest = 0;
    for (const int i : kTiles) {
      const Tile& tile = kTileSizes[i];
      const std::int64_t blocks = blocks_of(gemm_of(problem, tile), tile.outputs);
      const std::int64_t time = ((blocks - 1) / limits.multiprocessors + 1) * tile.time;
      if (i != 0 && time >= shortest) continue;
      best["tile"] = i;
      shortest = time;
    }
    return best;
  }

  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    return check_implicit_gemm(problem, kDepth, kFilterUnit);
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Gemm g = gemm_of(problem, kTileSizes[knob("tile")]);
    packed_.allocate<T>(packed_size(g));
    launch_pack(tensors.filter, packed_.as<T>(), g, stream);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Tile& tile = kTileSizes[knob("tile")];
    const Gemm g = gemm_of(problem, tile);
    launch_of<T>(knob("tile"), taps_of(g.l, tile), pixels_of(g.l))(input_of<T>(tensors), packed_.as<T>(),
                                                                   output_of<T>(tensors), g, stream);
  }

  Prediction predict(const ConvProblem& problem) const override {
    const Tile& tile = kTileSizes[knob("tile")];
    const Gemm g = gemm_of(problem, tile);
    return prediction_of(problem, g, tile, taps_of(g.l, tile));
  }

  Workspace packed_{*this, "packed filter"};
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::ImplicitGemm<half>)
CONVLADDER_STAGE_IN_BF16(convladder::ImplicitGemm<convladder::bfloat16>)
