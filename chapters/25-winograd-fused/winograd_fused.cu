// The host side of stage 25: its knobs, what it refuses, and its memory. The kernels are in winograd_fused.cuh.

#include "chapters/25-winograd-fused/prediction.hpp"
#include "chapters/25-winograd-fused/winograd_fused.cuh"
#include "common/stage/tunable.hpp"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

// The knobs, each an idea to be switched off.
constexpr int kBufferCounts[] = {1, 2, 3};
enum { kMask, kCopy };
constexpr int kPaddings[] = {kMask, kCopy};
constexpr const char* kPaddingWords[] = {"mask", "copy"};
enum { kBalanced, kPerImage };
constexpr int kMappings[] = {kBalanced, kPerImage};
constexpr const char* kMappingWords[] = {"balanced", "per-image"};
constexpr Knob kKnobs[] = {{"buffers", kBufferCounts, nullptr, 3},
                           {"padding", kPaddings, kPaddingWords, 2},
                           {"tiles", kMappings, kMappingWords, 2}};

class WinogradFused final : public TunableStage {
  Knobs knobs() const override { return {kKnobs, 3}; }
  Configuration default_configuration(const ConvProblem& problem, const DeviceLimits&) const override {
    return {{2, problem.padding == Padding::zero ? kMask : kCopy, kBalanced}};
  }
  Verdict check_configuration(const ConvProblem& problem, const DeviceLimits& limits,
                              const Configuration& configuration) const override {
    if (configuration.values[1] == kMask && problem.padding != Padding::zero)
      return Verdict::refuse("padding=mask is for padding with zeros; padding=copy takes every padding");
    if (shared_bytes(configuration.values[0]) > limits.shared_bytes_per_block)
      return Verdict::refuse("buffers=%d takes %lld bytes of shared memory; a block may have %lld",
                             configuration.values[0], static_cast<long long>(shared_bytes(configuration.values[0])),
                             static_cast<long long>(limits.shared_bytes_per_block));
    return check(problem, limits);
  }
  bool searched() const override { return false; }
  void use(const Configuration& configuration) override { knobs_ = configuration; }

  Verdict check(const ConvProblem& problem, const DeviceLimits& limits) const override {
    if (shared_bytes(1) > limits.shared_bytes_per_block)
      return Verdict::refuse("a block needs %lld bytes of shared memory; it may have %lld",
                             static_cast<long long>(shared_bytes(1)),
                             static_cast<long long>(limits.shared_bytes_per_block));
    return check_winograd(problem, 2, kFilters);
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Winograd w = winograd_of(problem, 2);
    u_.allocate(filter_elements(w), "transformed filter");
    launch_transform_filters(tensors.filter, u_.floats(), w, stream);
    if (knobs_.values[1] == kCopy) padded_.allocate(padded_rows(w) * padded_width(w), "padded input");
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Winograd w = winograd_of(problem, 2);
    const bool copy = knobs_.values[1] == kCopy;
    if (copy) launch_pad_input(tensors.input, padded_.floats(), w, stream);
    launch_winograd_fused(copy ? padded_.floats() : tensors.input, u_.floats(), tensors.output, w, knobs_.values[0],
                          !copy, knobs_.values[2] == kBalanced, stream);
  }

  std::int64_t workspace_bytes() const override { return u_.bytes() + padded_.bytes(); }
  bool workspace_intact() const override { return u_.intact() && padded_.intact(); }
  WinogradForm winograd(const ConvProblem&) const override { return {2}; }

  Prediction predict(const ConvProblem& problem) const override {
    return prediction(problem, knobs_.values[0], knobs_.values[1] == kCopy, knobs_.values[2] == kBalanced);
  }

  Configuration knobs_{{2, kMask, kBalanced}};
  Workspace u_, padded_;
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::WinogradFused)
