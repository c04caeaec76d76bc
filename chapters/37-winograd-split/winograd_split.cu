// 37 winograd-split, its stage: the bound, the tile, step 6, and what is refused. The kernels, and what they do, are in
// winograd_split.cuh.
#include "chapters/37-winograd-split/prediction.hpp"
#include "chapters/37-winograd-split/winograd_split.cuh"
#include "common/stage/tunable.hpp"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

// The knobs: the bound, the tile, and how many tiles a block of the product has.
constexpr int kAuto = 0;
constexpr int kBounds[] = {1, 2, 5, 10, 20, 50, 100};  // in 1e-6
constexpr const char* kBoundWords[] = {"1e-6", "2e-6", "5e-6", "1e-5", "2e-5", "5e-5", "1e-4"};
enum { k2x2 = 1, k4x4, k6x6, k7x4, k7x7 };
constexpr int kTileNumbers[] = {kAuto, k2x2, k4x4, k6x6, k7x4, k7x7};
constexpr const char* kTileWords[] = {"auto", "2x2", "4x4", "6x6", "7x4", "7x7"};
constexpr int kBlockTiles[] = {kAuto, 64, 88, 112, 128};
constexpr const char* kBlockWords[] = {"auto", "64", "88", "112", "128"};
constexpr Knob kKnobs[] = {{"bound", kBounds, kBoundWords, 5},
                           {"tile", kTileNumbers, kTileWords, kAuto},
                           {"block", kBlockTiles, kBlockWords, kAuto}};

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

// The exponent of the least power of two that is not below the sum of a row's magnitudes.
template <int Columns>
int exponent_of(const Ratio (&row)[Columns]) {
  double sum = 0;
  for (const Ratio element : row) sum += fabs(element.value());
  int exponent = 0;
  while (sum > 1) sum /= 2, ++exponent;
  while (sum <= 0.5) sum *= 2, --exponent;
  return exponent;
}

template <class Form>
struct Exponents {
  int input = 0;  // the largest of B^T's rows
  signed char filter[9] = {};
  Exponents() {
    const WinogradMatrices<Form> matrices;
    for (int i = 0; i < kTileSize<Form>; ++i) {
      if (const int row = exponent_of(matrices.input[i]); row > input) input = row;
      filter[i] = static_cast<signed char>(exponent_of(matrices.filter[i]));
    }
  }
};

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

Plan plan_of(const ConvProblem& problem, const Configuration& configuration) {
  const int tile = configuration["tile"], block = configuration["block"];
  const TileSize size = size_of(tile);
  Plan p{};
  p.w = winograd_of(problem, size.down, size.across);
  p.positions = (size.down + 2) * (size.across + 2);
  p.channel_blocks = blocks_for(p.w.channels, kBlock);
  p.filters = blocks_for(p.w.filters, kFilters) * kFilters;
  p.tiles = blocks_for(p.w.tiles, block) * block;
  with_forms(tile, [&](auto down, auto across) {
    const Exponents<decltype(down)> of_down;
    const Exponents<decltype(across)> of_across;
    p.input_exponent = of_down.input + of_across.input;
    for (int i = 0; i < 9; ++i) p.down[i] = of_down.filter[i], p.across[i] = of_across.filter[i];
  });
  p.by_channel_blocks = divisor_of(p.channel_blocks);
  p.by_filters = divisor_of(p.w.filters);
  return p;
}

// The relative RMS error on normal inputs and filters. As of 35, but 64 channels are summed at a time: their sums cut
// off, and both factors' halves, are worth 8 more roundings, and the master sum adds C / 64 times.
double error_of(const ConvProblem& problem, int tile) {
  constexpr double kUnit = 0x1p-24;
  const TileSize size = size_of(tile);
  const Winograd w = winograd_of(problem, size.down, size.across);
  const double roundings = 16 + static_cast<double>(problem.c) / kBlock / 2, sums = 1.0 * w.tiles * w.filters;
  return kUnit * std::sqrt(size.amplification * roundings / 4 * (1 + 2 / std::sqrt(sums)));
}

// The three kernels' time in microseconds, as it was measured on an H200. The transforms move V and M. A block of the
// product takes so long for 64 channels, and so long to begin and to store its sums.
double time_of(const ConvProblem& problem, const DeviceLimits& limits, const Configuration& configuration) {
  const Plan p = plan_of(problem, configuration);
  const int block = configuration["block"];
  const double transforms = 4.0 * static_cast<double>(input_elements(p) + sum_elements(p)) / 2.15e6;
  const std::int64_t rounds = (works_of(p, block) - 1) / limits.multiprocessors + 1;
  return transforms + static_cast<double>(rounds) * (p.channel_blocks * (0.27 + 0.0065 * block) + 0.018 * block);
}

double value_of_bound(int bound) { return bound * 1e-6; }

class WinogradSplit final : public TunableStage {
  Knobs knobs() const override { return {kKnobs, /*to_search=*/false}; }
  // Of the tiles within the bound, and of what is left open, the fastest.
  Configuration decided(const ConvProblem& problem, const DeviceLimits& limits,
                        const Configuration& configuration) const override {
    Configuration best = configuration;
    double least = 0;
    for (int tile = k2x2; tile <= k7x7; ++tile) {
      Configuration one = configuration;
      if (one["tile"] == kAuto) one["tile"] = tile;
      if (one["tile"] != tile || !check_configuration(problem, limits, one).accepted()) continue;
      for (const int block : kBlockTiles) {
        if (block == kAuto || (configuration["block"] != kAuto && configuration["block"] != block)) continue;
        one["block"] = block;
        const double time = time_of(problem, limits, one);
        if (least > 0 && time >= least) continue;
        best = one, least = time;
      }
    }
    return best;
  }
  static Verdict check_tile(const ConvProblem& problem, int tile) {
    return check_winograd(problem, size_of(tile).down, size_of(tile).across, 256);
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

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Plan p = plan_of(problem, configuration());
    u_.allocate<half>(2 * filter_elements(p));
    v_.allocate<unsigned>(input_elements(p));
    sums_.allocate(sum_elements(p));
    back_.allocate(std::int64_t{p.channel_blocks} * p.tiles);
    scales_.allocate<SumScale>(std::int64_t{p.positions} * p.filters);
    exponents_.allocate<int>(p.filters);
    convladder::launch(find_exponents, dim3(p.filters / (kThreads / 32)), dim3(kThreads), 0, stream)(
        tensors.filter, exponents_.ints(), p.w.filters, p.w.channels * 9);
    with_forms(configuration()["tile"], [&](auto down, auto across) {
      convladder::launch(transform_filters<decltype(down), decltype(across)>,
                         dim3(blocks_for(p.channel_blocks * kBlock * p.filters, kThreads)), dim3(kThreads), 0,
                         stream)(tensors.filter, exponents_.ints(), u_.as<half>(), scales_.as<SumScale>(), p);
    });
  }

  template <int N>
  void multiply_all(const Plan& p, Stream stream) {
    const std::int64_t works = works_of(p, N);
    const int multiprocessors = device_limits().multiprocessors;
    const int blocks = works < multiprocessors ? static_cast<int>(works) : multiprocessors;
    const std::size_t bytes = kStages<N> * (kStagePitch<N> + 2 * sizeof(Mbarrier));
    convladder::launch(multiply<N>, dim3(blocks), dim3(kMultiplyThreads), bytes, stream)(
        u_.as<half>(), v_.as<unsigned>(), back_.floats(), scales_.as<SumScale>(), sums_.floats(), p);
  }
  void multiply_all(const Plan& p, Stream stream) {
    switch (knob("block")) {
      case 64:
        return multiply_all<64>(p, stream);
      case 88:
        return multiply_all<88>(p, stream);
      case 112:
        return multiply_all<112>(p, stream);
      default:
        return multiply_all<128>(p, stream);
    }
  }

  template <class Down, class Across>
  void convolve(const Plan& p, const Tensors& tensors, Stream stream) {
    const auto transform =
        p.w.padding == Padding::zero ? transform_inputs<Down, Across, true> : transform_inputs<Down, Across, false>;
    convladder::launch(transform, dim3(p.tiles / (kThreads / 32) * p.channel_blocks), dim3(kThreads), 0, stream)(
        tensors.input, v_.as<unsigned>(), back_.floats(), p);
    multiply_all(p, stream);
    convladder::launch(transform_outputs<Down, Across>, dim3(blocks_for(p.w.tiles * p.w.filters, kThreads)),
                       dim3(kThreads), 0, stream)(sums_.floats(), tensors.input, tensors.filter, tensors.output, p);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Plan p = plan_of(problem, configuration());
    with_forms(knob("tile"),
               [&](auto down, auto across) { convolve<decltype(down), decltype(across)>(p, tensors, stream); });
  }

  ErrorModel error_model(const ConvProblem&, const float*) const override {
    const TileSize size = size_of(knob("tile"));
    return WinogradForm{size.down, true, Precision::fp32, false, false, size.across, kBlock};
  }

  Prediction predict(const ConvProblem& problem) const override {
    return prediction_of(problem, plan_of(problem, configuration()), knob("block"));
  }

  Workspace u_{*this, "transformed filter"};
  Workspace v_{*this, "transformed input"};
  Workspace sums_{*this, "products"};
  Workspace back_{*this, "scales of the input"};
  Workspace scales_{*this, "scales of the sums"};
  Workspace exponents_{*this, "exponents of the filters"};
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::WinogradSplit)
