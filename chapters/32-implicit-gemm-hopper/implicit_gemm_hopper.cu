// 32 implicit-gemm-hopper, its stage. The kernels, and what they do, are in implicit_gemm_hopper.cuh.
#include "chapters/32-implicit-gemm-hopper/configurations.hpp"
#include "chapters/32-implicit-gemm-hopper/implicit_gemm_hopper.cuh"
#include "chapters/32-implicit-gemm-hopper/prediction.hpp"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

// The knobs: positions of a wgmma, the width of a strip or the size of a tile; whose a tile is; into how many
// slices its channels go; and by how many blocks of filters its pixels are multiplied.
constexpr int kPositions[] = {56, 64, 96, 112, 128, 192, 208, 216, 232, 240, 248};
constexpr Knob kKnobs[] = {{"positions", kPositions, 240},
                           {"tiles", kTiles, kWhose, kOwnTiles},
                           {"split", kSlices, 1},
                           {"products", kProducts, 1}};

class ImplicitGemmHopper final : public TunableStage {
  Knobs knobs() const override { return kKnobs; }
  Verdict check_configuration(const ConvProblem& problem, const DeviceLimits&,
                              const Configuration& configuration) const override {
    return check_choice<Halves>(problem, choice_of(configuration));
  }
  Configuration default_configuration(const ConvProblem& problem, const DeviceLimits& limits) const override {
    return cheapest_configuration<Halves>(knobs(), kPositions, problem, limits);
  }

  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    return check_problem<Halves>(problem, kPositions);
  }

  Choice choice() const { return choice_of(configuration()); }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    constexpr int kChannels = kTilePixel / Halves::kBytes;
    const int filters = static_cast<int>(problem.k), channels = static_cast<int>(problem.c);
    const int channel_blocks = blocks_for(channels, kChannels);
    const TapOrder order = tap_order(in_tiles<Halves>(problem));
    const int size = packed_filters(filters, choice().shared) * channel_blocks * order.taps * kChannels;
    packed_.allocate<half>(size);
    convladder::launch(pack, dim3(blocks_for(size, kThreads)), dim3(kThreads), 0, stream)(
        tensors.filter, packed_.as<half>(), order, layout_of<Halves>(problem), filters, channels, channel_blocks, size);
    if (wide_size<Halves>(problem) > 0) wide_.allocate<half>(wide_size<Halves>(problem));
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const half* const input = widened<Halves>(problem, tensors.half_input, wide_.as<half>(), stream);
    const Halves::Filters filters{packed_.as<half>()};
    if (by_rows(problem))
      launch_rows<Halves>(Halves::StripSizes{}, choice().positions, problem, input, filters, tensors.half_output,
                          stream);
    else
      launch_tiles<Halves>(problem, choice(), input, filters, tensors.half_output, stream);
  }

  Prediction predict(const ConvProblem& problem) const override { return prediction_of<Halves>(problem, choice()); }

  Workspace packed_{*this, "packed filter"};
  Workspace wide_{*this, "widened input"};
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::ImplicitGemmHopper)
