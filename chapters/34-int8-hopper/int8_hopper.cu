// 34 int8-hopper, its stage. What is new in the kernels is in int8_hopper.cuh.
#include "chapters/32-implicit-gemm-hopper/prediction.hpp"
#include "chapters/34-int8-hopper/int8_hopper.cuh"
#include "common/stage/tunable.hpp"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

// The knob: positions of a wgmma, the width of a strip or the size of a tile.
constexpr int kPositions[] = {64, 112, 128, 160, 208, 224, 240, 256};
constexpr Knob kKnobs[] = {{"positions", kPositions, 240}};

class Int8Hopper final : public TunableStage {
  Knobs knobs() const override { return kKnobs; }
  Verdict check_configuration(const ConvProblem& problem, const DeviceLimits&,
                              const Configuration& configuration) const override {
    const int positions = configuration["positions"];
    if (has_kernel<Bytes>(problem, positions)) return Verdict::accept();
    return Verdict::refuse(by_rows(problem)
                               ? "strips, for up to 64 channels, are 64, 112, 160 or 240 wide; got positions={}"
                               : "tiles, for more than 64 channels, have 64, 128, 208, 224, 240 or 256 "
                                 "positions; got positions={}",
                           positions);
  }
  Configuration default_configuration(const ConvProblem& problem, const DeviceLimits& limits) const override {
    Configuration configuration = knobs();
    configuration["positions"] = cheapest<Bytes>(kPositions, problem, limits.multiprocessors);
    return configuration;
  }

  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    if (problem.c > kMostChannels)
      return Verdict::refuse("sums of 9 c products of bytes are kept in 32 bits: c at most {}; got {}", kMostChannels,
                             problem.c);
    return check_implicit_gemm_hopper(problem, kTilePixel, kFilters);
  }

  int positions() const { return knob("positions"); }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const int filters = static_cast<int>(problem.k), channels = static_cast<int>(problem.c);
    const int pixel = by_rows(problem) ? kRowChannels : kTilePixel, channel_blocks = blocks_for(channels, pixel),
              padded_filters = blocks_for(filters, kFilters) * kFilters;
    packed_.allocate<std::int8_t>(std::int64_t{padded_filters} * channel_blocks * kTaps * kTaps * pixel);
    scales_.allocate<float>(padded_filters);
    const double input_scale = static_cast<double>(tensors.input_step) / tensors.output_step / (2 * kLargest);
    convladder::launch(by_rows(problem) ? pack<kRowChannels> : pack<kTilePixel>,
                       dim3(blocks_for(padded_filters, kThreads / 32)), dim3(kThreads), 0, stream)(
        tensors.filter, packed_.as<std::int8_t>(), scales_.floats(), filters, channels, channel_blocks, input_scale);
    if (wide_size<Bytes>(problem) > 0) wide_.allocate<std::int8_t>(wide_size<Bytes>(problem));
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const std::int8_t* const input = widened<Bytes>(problem, tensors.byte_input, wide_.as<std::int8_t>(), stream);
    const Bytes::Filters filters{packed_.as<std::int8_t>(), scales_.floats()};
    if (by_rows(problem))
      launch_rows<Bytes>(Bytes::StripSizes{}, positions(), problem, input, filters, tensors.byte_output, stream);
    else
      launch_tiles<Bytes>(Bytes::TileSizes{}, positions(), problem, input, filters, tensors.byte_output, stream);
  }

  Prediction predict(const ConvProblem& problem) const override { return prediction_of<Bytes>(problem, positions()); }

  Workspace packed_{*this, "packed filter"};
  Workspace scales_{*this, "scales"};
  Workspace wide_{*this, "widened input"};
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::Int8Hopper)
