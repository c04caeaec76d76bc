// 31 implicit-gemm, host side: the knob, which kernel a problem takes, and what is refused. The kernel is in
// implicit_gemm.cuh.

#include "chapters/31-implicit-gemm/implicit_gemm.cuh"
#include "chapters/31-implicit-gemm/prediction.hpp"
#include "common/stage/tunable.hpp"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

// The knobs: outputs x filters of a block, and into how many slices the channels go.
constexpr int kTiles[] = {0, 1, 2, 3};
constexpr const char* kTileWords[] = {"128x64", "256x64", "128x128", "192x128"};
constexpr int kSlices[] = {1, 2, 4, 8};
constexpr Knob kKnobs[] = {{"tile", kTiles, kTileWords, 0}, {"split", kSlices, 1}};

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

Gemm gemm_of(const ConvProblem& problem, const Tile& tile, int slices) {
  const Lowering l = lowering_of(problem);
  return {l,
          divisor_of(l.out_height),
          divisor_of(l.out_width),
          divisor_of(l.out_width + (taps_of(l, tile) - 1) * l.dilation_x),
          l.batch * output_plane(l),
          blocks_for(l.channels, kDepth),
          blocks_for(l.filters, tile.filters),
          tile.filters,
          slices};
}

// Of the busiest multiprocessor, in the unit of Tile::time, about 18 ns. A second kernel takes about 3 us, and what it
// reads was written before: 8 bytes for each sum, at 4 TB/s. Reckoned, not fitted.
std::int64_t time_of(const Gemm& g, const Tile& tile, int multiprocessors) {
  constexpr std::int64_t kSecondKernel = 170, kBytes = 72000;
  const std::int64_t most = (blocks_of(g, tile.outputs) * g.slices - 1) / multiprocessors + 1;
  const std::int64_t steps = std::int64_t{window(g.l)} * blocks_for(g.channel_blocks, g.slices);
  const std::int64_t products = steps * (most == 1 ? tile.alone : most * tile.time);
  return g.slices == 1 ? products : products + kSecondKernel + 8 * sums_of_slices(g, tile.outputs) / kBytes;
}

// Whether the channels can be in so many slices; or the rule that says no.
Verdict check_slices(const Gemm& g, const Tile& tile) {
  constexpr std::int64_t kMostSums = std::int64_t{1} << 28;
  if (g.slices == 1) return Verdict::accept();
  if (pixels_of(g.l) != Pixels::in_zeros)
    return Verdict::refuse("split={} wants channels in whole multiples of {} and zero padding; got c={}", g.slices,
                           kChunk, g.l.channels);
  if (g.slices > g.channel_blocks)
    return Verdict::refuse("split={} wants as many blocks of {} channels; got c={}", g.slices, kDepth, g.l.channels);
  if (sums_of_slices(g, tile.outputs) > kMostSums)
    return Verdict::refuse("split={} stores at most {} sums; got {}", g.slices, kMostSums,
                           sums_of_slices(g, tile.outputs));
  return Verdict::accept();
}

template <class T>
using LaunchMultiply = void (*)(const T*, const T*, T*, float*, const Gemm&, Stream);

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
  Verdict check_configuration(const ConvProblem& problem, const DeviceLimits&,
                              const Configuration& configuration) const override {
    const Tile& tile = kTileSizes[configuration["tile"]];
    return check_slices(gemm_of(problem, tile, configuration["split"]), tile);
  }
  // The tile with which the multiprocessor that has the most blocks is done first; of two the smaller. And slices, with
  // any tile, where they save a tenth.
  Configuration default_configuration(const ConvProblem& problem, const DeviceLimits& limits) const override {
    Configuration best = knobs();
    std::int64_t shortest = 0;
    for (const int i : kTiles) {
      const Tile& tile = kTileSizes[i];
      const std::int64_t blocks = blocks_of(gemm_of(problem, tile, 1), tile.outputs);
      const std::int64_t time = ((blocks - 1) / limits.multiprocessors + 1) * tile.time;
      if (i != 0 && time >= shortest) continue;
      best["tile"] = i;
      shortest = time;
    }
    const Tile& whole = kTileSizes[best["tile"]];
    std::int64_t least = time_of(gemm_of(problem, whole, 1), whole, limits.multiprocessors) * 9 / 10;
    for (const int slices : kSlices)
      for (const int i : kTiles) {
        const Gemm g = gemm_of(problem, kTileSizes[i], slices);
        const std::int64_t time = time_of(g, kTileSizes[i], limits.multiprocessors);
        if (slices == 1 || !check_slices(g, kTileSizes[i]).accepted() || time >= least) continue;
        best["tile"] = i;
        best["split"] = slices;
        least = time;
      }
    return best;
  }

  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    return check_implicit_gemm(problem, kDepth, kFilterUnit);
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Tile& tile = kTileSizes[knob("tile")];
    const Gemm g = gemm_of(problem, tile, knob("split"));
    packed_.allocate<T>(packed_size(g));
    if (g.slices > 1) slices_.allocate(sums_of_slices(g, tile.outputs));
    launch_pack(tensors.filter, packed_.as<T>(), g, stream);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Tile& tile = kTileSizes[knob("tile")];
    const Gemm g = gemm_of(problem, tile, knob("split"));
    launch_of<T>(knob("tile"), taps_of(g.l, tile), pixels_of(g.l))(input_of<T>(tensors), packed_.as<T>(),
                                                                   output_of<T>(tensors), slices_.floats(), g, stream);
  }

  Prediction predict(const ConvProblem& problem) const override {
    const Tile& tile = kTileSizes[knob("tile")];
    const Gemm g = gemm_of(problem, tile, knob("split"));
    return prediction_of(problem, g, tile, taps_of(g.l, tile));
  }

  Workspace packed_{*this, "packed filter"};
  Workspace slices_{*this, "sums of slices"};
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::ImplicitGemm<half>)
CONVLADDER_STAGE_IN_BF16(convladder::ImplicitGemm<convladder::bfloat16>)
