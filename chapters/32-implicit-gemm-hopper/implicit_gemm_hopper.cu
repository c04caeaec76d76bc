// 32 implicit-gemm-hopper, its stage. The kernels, and what they do, are in implicit_gemm_hopper.cuh.
#include "chapters/32-implicit-gemm-hopper/configurations.hpp"
#include "chapters/32-implicit-gemm-hopper/implicit_gemm_hopper.cuh"
#include "chapters/32-implicit-gemm-hopper/prediction.hpp"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

// The knobs: positions of a wgmma, the width of a strip or the size of a tile; whose a tile is; into how many
// slices its passes go; and what a load of pixels is.
constexpr int kPositions[] = {32, 56, 64, 96, 104, 112, 128, 192, 208, 216, 224, 232, 240, 248};
constexpr Knob kKnobs[] = {{"positions", kPositions, 240},
                           {"tiles", kTiles, kWhose, kOwnTiles},
                           {"split", kSlices, 1},
                           {"loads", kLoads, kOfWhat, kBoxes}};

template <class T>
class ImplicitGemmHopper final : public TunableStage {
  using Element = TwoBytes<T>;
  static constexpr bool kHasEpilogue = std::is_same_v<Element, Halves>;

  Knobs knobs() const override { return kKnobs; }
  Verdict check_configuration(const ConvProblem& problem, const DeviceLimits&,
                              const Configuration& configuration) const override {
    return check_choice<Element>(problem, choice_of(configuration));
  }
  Configuration default_configuration(const ConvProblem& problem, const DeviceLimits& limits) const override {
    return cheapest_configuration<Element>(knobs(), kPositions, problem, limits);
  }

  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    return check_problem<Element>(problem, kPositions);
  }

  bool has_epilogue() const override { return kHasEpilogue; }

  Choice choice() const { return choice_of(configuration()); }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    constexpr int kChannels = kTilePixel / Element::kBytes;
    const int filters = static_cast<int>(problem.k), channels = static_cast<int>(problem.c);
    const int channel_blocks = blocks_for(channels, kChannels);
    const TapOrder order = tap_order(in_tiles<Element>(problem));
    const int size = packed_filters(filters, choice().shared) * channel_blocks * order.taps * kChannels;
    packed_.allocate<T>(size);
    convladder::launch(pack<T>, dim3(blocks_for(size, kThreads)), dim3(kThreads), 0, stream)(
        tensors.filter, packed_.as<T>(), order, layout_of<Element>(problem), filters, channels, channel_blocks, size);
    if (wide_size<Element>(problem) > 0) wide_.allocate<T>(wide_size<Element>(problem));
    if (!problem.has_bias()) return;
    const int padded_filters = packed_filters(filters, choice().shared);
    bias_.allocate<float>(padded_filters);
    convladder::launch(pad_bias, dim3(blocks_for(padded_filters, kThreads)), dim3(kThreads), 0, stream)(
        tensors.bias, bias_.floats(), filters, padded_filters, 1.0f, 0.0f);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const T* const input = widened<Element>(problem, input_of<T>(tensors), wide_.as<T>(), stream);
    const typename Element::Filters filters{packed_.as<T>()};
    if constexpr (kHasEpilogue) {
      const float least = problem.has_relu() ? 0.0f : -std::numeric_limits<float>::infinity();
      if (problem.has_bias())
        return multiply<FusedHalves>(problem, input, {filters, bias_.floats(), tensors.half_residual, least},
                                     tensors.half_output, stream);
    }
    multiply<Element>(problem, input, filters, output_of<T>(tensors), stream);
  }

  template <class Which>
  void multiply(const ConvProblem& problem, const T* input, const typename Which::Filters& filters, T* output,
                Stream stream) {
    if (by_rows(problem))
      launch_rows<Which>(typename Which::StripSizes{}, choice().positions, problem, input, filters, output, stream);
    else if (choice().columns)
      launch_lines<Which>(problem, choice(), input, filters, output, stream);
    else
      launch_tiles<Which>(problem, choice(), input, filters, output, stream);
  }

  Prediction predict(const ConvProblem& problem) const override {
    return problem.has_bias() ? prediction_of<FusedHalves>(problem, choice())
                              : prediction_of<Element>(problem, choice());
  }

  Workspace packed_{*this, "packed filter"};
  Workspace wide_{*this, "widened input"};
  Workspace bias_{*this, "bias"};
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::ImplicitGemmHopper<half>)
CONVLADDER_STAGE_IN_BF16(convladder::ImplicitGemmHopper<convladder::bfloat16>)
