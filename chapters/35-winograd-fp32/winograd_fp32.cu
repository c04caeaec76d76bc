// 35 winograd-fp32, host side: the bound and the tile, step 6, and what is refused. The kernels are in
// winograd_fp32.cuh.

#include "chapters/35-winograd-fp32/prediction.hpp"
#include "chapters/35-winograd-fp32/winograd_fp32.cuh"
#include "common/stage/tunable.hpp"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

// ---- 6. The tile ----------------------------------------------------------------------------------------------------

// The knobs: the bound, and the tile.
constexpr int kBounds[] = {1, 2, 5, 10, 20, 50, 100};  // in 1e-6
constexpr const char* kBoundWords[] = {"1e-6", "2e-6", "5e-6", "1e-5", "2e-5", "5e-5", "1e-4"};
enum { kAuto, k2x2, k4x4, k6x6, k7x4, k7x7 };
constexpr int kTileNumbers[] = {kAuto, k2x2, k4x4, k6x6, k7x4, k7x7};
constexpr const char* kTileWords[] = {"auto", "2x2", "4x4", "6x6", "7x4", "7x7"};
constexpr Knob kKnobs[] = {{"bound", kBounds, kBoundWords, 10}, {"tile", kTileNumbers, kTileWords, kAuto}};

// Calls `work` with the tile's forms, down and across.
template <class Work>
auto with_forms(int tile, const Work& work) {
  switch (tile) {
    case k2x2:
      return work(F2{}, F2{});
    case k4x4:
      return work(F4Fractions{}, F4Fractions{});
    case k6x6:
      return work(F6{}, F6{});
    case k7x4:
      return work(F7{}, F4Fractions{});
    default:
      return work(F7{}, F7{});
  }
}

struct TileSize {
  int down, across;  // outputs
  double amplification;
};

TileSize size_of(int tile) {
  return with_forms(tile, [](auto down, auto across) {
    using Down = decltype(down);
    using Across = decltype(across);
    constexpr double kAmplification = winograd_amplification<Down>() * winograd_amplification<Across>();
    return TileSize{kTileOutputs<Down>, kTileOutputs<Across>, kAmplification};
  });
}

Plan plan_of(const ConvProblem& problem, int tile) {
  const TileSize size = size_of(tile);
  Plan p{winograd_of(problem, size.down, size.across), 0, 0, 0, {}, divisor_of(static_cast<int>(problem.k))};
  p.tiles = blocks_for(p.w.tiles, kTiles) * kTiles;
  p.channels = blocks_for(p.w.channels, kDepth) * kDepth;
  p.filters = blocks_for(p.w.filters, kFilters) * kFilters;
  p.by_channels = divisor_of(p.channels);
  return p;
}

double error_of(const ConvProblem& problem, int tile) {
  const Winograd w = plan_of(problem, tile).w;
  return winograd_error(size_of(tile).amplification, problem.c, 1.0 * w.tiles * w.filters);
}

// The product's multiply-adds, padding and masked outputs included; and the transforms: each number of V and M is
// written once and read once, and a byte takes as long as about six multiply-adds.
std::int64_t work_of(const ConvProblem& problem, int tile) {
  constexpr std::int64_t kMultiplyAddsOfByte = 6;
  const Plan p = plan_of(problem, tile);
  const std::int64_t bytes = 2 * 4 * (input_elements(p) + sum_elements(p));
  return input_elements(p) * p.filters + kMultiplyAddsOfByte * bytes;
}

Verdict check_tile(const ConvProblem& problem, int tile) {
  return check_winograd(problem, size_of(tile).down, size_of(tile).across, kTiles);
}

double value_of_bound(int bound) { return bound * 1e-6; }

class WinogradFp32 final : public TunableStage {
  Knobs knobs() const override { return {kKnobs, /*to_search=*/false}; }
  // Of the tiles within the bound the one with the least work; auto if there is none.
  Configuration decided(const ConvProblem& problem, const DeviceLimits&,
                        const Configuration& configuration) const override {
    if (configuration["tile"] != kAuto) return configuration;
    Configuration best = configuration;
    int& chosen = best["tile"];
    for (int tile = k2x2; tile <= k7x7; ++tile) {
      if (!check_tile(problem, tile).accepted() || error_of(problem, tile) > value_of_bound(configuration["bound"]))
        continue;
      if (chosen == kAuto || work_of(problem, tile) < work_of(problem, chosen)) chosen = tile;
    }
    return best;
  }
  Verdict check_configuration(const ConvProblem& problem, const DeviceLimits&,
                              const Configuration& configuration) const override {
    const int tile = configuration["tile"] == kAuto ? k2x2 : configuration["tile"];
    if (const Verdict verdict = check_tile(problem, tile); !verdict.accepted()) return verdict;
    if (error_of(problem, tile) > value_of_bound(configuration["bound"]))
      return Verdict::refuse("tiles of {}x{} have relative RMS errors of up to {:.1e} with c={}; the bound is {:.0e}",
                             size_of(tile).down, size_of(tile).across, error_of(problem, tile), problem.c,
                             value_of_bound(configuration["bound"]));
    return Verdict::accept();
  }

  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    Verdict verdict = Verdict::accept();
    for (int tile = k2x2; tile <= k7x7; ++tile)
      if (verdict = check_tile(problem, tile); verdict.accepted()) break;
    return verdict;
  }

  int tile() const { return knob("tile"); }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Plan p = plan_of(problem, tile());
    u_.allocate(filter_elements(p));
    v_.allocate(input_elements(p));
    sums_.allocate(sum_elements(p));
    with_forms(tile(), [&](auto down, auto across) {
      launch_filters<decltype(down), decltype(across)>(tensors.filter, u_.floats(), p, stream);
    });
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Plan p = plan_of(problem, tile());
    with_forms(tile(), [&](auto down, auto across) {
      launch_convolution<decltype(down), decltype(across)>(tensors.input, u_.floats(), v_.floats(), sums_.floats(),
                                                           tensors.output, p, stream);
    });
  }

  ErrorModel error_model(const ConvProblem&, const float*) const override {
    const TileSize size = size_of(tile());
    return WinogradForm{size.down, true, Precision::fp32, false, false, size.across};
  }

  Prediction predict(const ConvProblem& problem) const override {
    return prediction_of(problem, plan_of(problem, tile()));
  }

  Workspace u_{*this, "transformed filter"};
  Workspace v_{*this, "transformed input"};
  Workspace sums_{*this, "products"};
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::WinogradFp32)
