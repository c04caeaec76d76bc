// 34 int8-hopper, its stage. What is new in the kernels is in int8_hopper.cuh.
#include "chapters/32-implicit-gemm-hopper/configurations.hpp"
#include "chapters/32-implicit-gemm-hopper/prediction.hpp"
#include "chapters/34-int8-hopper/int8_hopper.cuh"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

// The knobs of 32.
constexpr int kPositions[] = {32, 64, 96, 112, 128, 160, 192, 208, 224, 240, 256};
constexpr Knob kKnobs[] = {{"positions", kPositions, 240},
                           {"tiles", kTiles, kWhose, kOwnTiles},
                           {"split", kSlices, 1},
                           {"loads", kLoads, kOfWhat, kBoxes}};

class Int8Hopper final : public TunableStage {
  Knobs knobs() const override { return kKnobs; }
  Verdict check_configuration(const ConvProblem& problem, const DeviceLimits&,
                              const Configuration& configuration) const override {
    return check_choice<Bytes>(problem, choice_of(configuration));
  }
  Configuration default_configuration(const ConvProblem& problem, const DeviceLimits& limits) const override {
    return cheapest_configuration<Bytes>(knobs(), kPositions, problem, limits);
  }

  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    const Verdict verdict = check_problem<Bytes>(problem, kPositions);
    if (verdict.accepted() && problem.c * problem.r * problem.s > kMostProducts)
      return Verdict::refuse("sums of c r s products of bytes are kept in 32 bits: at most {} of them; got {}",
                             kMostProducts, problem.c * problem.r * problem.s);
    return verdict;
  }

  bool has_epilogue() const override { return true; }

  Choice choice() const { return choice_of(configuration()); }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const int filters = static_cast<int>(problem.k), channels = static_cast<int>(problem.c);
    const int pixel = by_rows(problem) ? kRowChannels : kTilePixel, channel_blocks = blocks_for(channels, pixel),
              padded_filters = packed_filters(filters, choice().shared);
    const TapOrder order = tap_order(in_tiles<Bytes>(problem));
    packed_.allocate<std::int8_t>(std::int64_t{padded_filters} * channel_blocks * order.taps * pixel);
    scales_.allocate<float>(padded_filters);
    const FusedBytes::Range range = FusedBytes::range_of(problem.has_relu());
    const double input_scale = static_cast<double>(tensors.input_step) / tensors.output_step / range.steps;
    convladder::launch(by_rows(problem) ? pack<kRowChannels> : pack<kTilePixel>,
                       dim3(blocks_for(padded_filters, kThreads / 32)), dim3(kThreads), 0, stream)(
        tensors.filter, packed_.as<std::int8_t>(), scales_.floats(), order, layout_of<Bytes>(problem), filters,
        padded_filters, channels, channel_blocks, input_scale);
    if (wide_size<Bytes>(problem) > 0) wide_.allocate<std::int8_t>(wide_size<Bytes>(problem));
    if (!problem.has_bias()) return;
    bias_.allocate<float>(padded_filters);
    convladder::launch(pad_bias, dim3(blocks_for(padded_filters, kThreads)), dim3(kThreads), 0, stream)(
        tensors.bias, bias_.floats(), filters, padded_filters, 1 / (tensors.output_step * range.steps),
        -range.least / range.steps);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const std::int8_t* const input = widened<Bytes>(problem, tensors.byte_input, wide_.as<std::int8_t>(), stream);
    const Bytes::Filters filters{packed_.as<std::int8_t>(), scales_.floats()};
    if (!problem.has_bias()) return multiply<Bytes>(problem, input, filters, tensors.byte_output, stream);
    const FusedBytes::Range range = FusedBytes::range_of(problem.has_relu());
    const float residual_scale = tensors.residual_step / tensors.output_step / range.steps;
    multiply<FusedBytes>(problem, input, {filters, bias_.floats(), tensors.byte_residual, residual_scale, range},
                         tensors.byte_output, stream);
  }

  template <class Element>
  void multiply(const ConvProblem& problem, const std::int8_t* input, const typename Element::Filters& filters,
                std::int8_t* output, Stream stream) {
    if (by_rows(problem))
      launch_rows<Element>(Bytes::StripSizes{}, choice().positions, problem, input, filters, output, stream);
    else if (choice().columns)
      launch_lines<Element>(problem, choice(), input, filters, output, stream);
    else
      launch_tiles<Element>(problem, choice(), input, filters, output, stream);
  }

  Prediction predict(const ConvProblem& problem) const override {
    return problem.has_bias() ? prediction_of<FusedBytes>(problem, choice()) : prediction_of<Bytes>(problem, choice());
  }

  Workspace packed_{*this, "packed filter"};
  Workspace scales_{*this, "scales"};
  Workspace wide_{*this, "widened input"};
  Workspace bias_{*this, "bias"};
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::Int8Hopper)
