// 32 implicit-gemm-hopper, its stage. The kernels, and what they do, are in implicit_gemm_hopper.cuh.
#include "chapters/32-implicit-gemm-hopper/implicit_gemm_hopper.cuh"
#include "chapters/32-implicit-gemm-hopper/prediction.hpp"
#include "common/stage/tunable.hpp"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

// The knob: positions of a wgmma, the width of a strip or the size of a tile.
constexpr int kPositions[] = {56, 64, 112, 128, 208, 216, 232, 240, 248};
constexpr Knob kKnobs[] = {{"positions", kPositions, 240}};

class ImplicitGemmHopper final : public TunableStage {
  Knobs knobs() const override { return kKnobs; }
  Verdict check_configuration(const ConvProblem& problem, const DeviceLimits&,
                              const Configuration& configuration) const override {
    const int positions = configuration["positions"];
    if (has_kernel<Halves>(problem, positions)) return Verdict::accept();
    return Verdict::refuse(by_rows(problem) ? "strips, for up to 64 channels, are 56, 112 or 240 wide; got positions={}"
                                            : "tiles, for more than 64 channels, have 64, 128, 208, 216, 232 or 248 "
                                              "positions; got positions={}",
                           positions);
  }
  Configuration default_configuration(const ConvProblem& problem, const DeviceLimits& limits) const override {
    Configuration configuration = knobs();
    configuration["positions"] = cheapest<Halves>(kPositions, problem, limits.multiprocessors);
    return configuration;
  }

  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    return check_implicit_gemm_hopper(problem, kTilePixel / Halves::kBytes, kFilters);
  }

  int positions() const { return knob("positions"); }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    constexpr int kChannels = kTilePixel / Halves::kBytes;
    const int filters = static_cast<int>(problem.k), channels = static_cast<int>(problem.c);
    const int channel_blocks = blocks_for(channels, kChannels);
    const int size = blocks_for(filters, kFilters) * kFilters * channel_blocks * kTaps * kTaps * kChannels;
    packed_.allocate<half>(size);
    convladder::launch(pack, dim3(blocks_for(size, kThreads)), dim3(kThreads), 0, stream)(
        tensors.filter, packed_.as<half>(), filters, channels, channel_blocks, size);
    if (wide_size<Halves>(problem) > 0) wide_.allocate<half>(wide_size<Halves>(problem));
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const half* const input = widened<Halves>(problem, tensors.half_input, wide_.as<half>(), stream);
    const Halves::Filters filters{packed_.as<half>()};
    if (by_rows(problem))
      launch_rows<Halves>(Halves::StripSizes{}, positions(), problem, input, filters, tensors.half_output, stream);
    else
      launch_tiles<Halves>(Halves::TileSizes{}, positions(), problem, input, filters, tensors.half_output, stream);
  }

  Prediction predict(const ConvProblem& problem) const override { return prediction_of<Halves>(problem, positions()); }

  Workspace packed_{*this, "packed filter"};
  Workspace wide_{*this, "widened input"};
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::ImplicitGemmHopper)
