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
constexpr int kMappings[] = {kBalanced, kPerImage, kPerPlace};
constexpr const char* kMappingWords[] = {"balanced", "per-image", "per-place"};
constexpr int kRegisterCounts[] = {kUnrolled, 1, 2, 3};
constexpr const char* kRegisterWords[] = {"unrolled", "1", "2", "3"};
constexpr Knob kKnobs[] = {{"buffers", kBufferCounts, 2},
                           {"padding", kPaddings, kPaddingWords, kMask},
                           {"tiles", kMappings, kMappingWords, kBalanced},
                           {"registers", kRegisterCounts, kRegisterWords, kUnrolled}};

class WinogradFused final : public TunableStage {
  Knobs knobs() const override { return {kKnobs, /*to_search=*/false}; }
  Configuration default_configuration(const ConvProblem& problem, const DeviceLimits& limits) const override {
    Configuration configuration = knobs();
    if (shared_bytes(configuration["buffers"]) > limits.shared_bytes_per_block) configuration["buffers"] = 1;
    if (problem.padding != Padding::zero) configuration["padding"] = kCopy;
    return configuration;
  }
  Verdict check_configuration(const ConvProblem& problem, const DeviceLimits& limits,
                              const Configuration& configuration) const override {
    if (configuration["padding"] == kMask && problem.padding != Padding::zero)
      return Verdict::refuse("padding=mask is for padding with zeros; padding=copy takes every padding");
    if (configuration["padding"] == kCopy && configuration["registers"] != kUnrolled)
      return Verdict::refuse("registers={} is for padding=mask; padding=copy takes registers=unrolled",
                             configuration["registers"]);
    const int buffers = configuration["buffers"];
    if (shared_bytes(buffers) > limits.shared_bytes_per_block)
      return Verdict::refuse("buffers={} takes {} bytes of shared memory; a block may have {}", buffers,
                             shared_bytes(buffers), limits.shared_bytes_per_block);
    return check(problem, limits);
  }

  Verdict check(const ConvProblem& problem, const DeviceLimits& limits) const override {
    if (shared_bytes(1) > limits.shared_bytes_per_block)
      return Verdict::refuse("a block needs {} bytes of shared memory; it may have {}", shared_bytes(1),
                             limits.shared_bytes_per_block);
    return check_winograd(problem, 2, kFilters);
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Winograd w = winograd_of(problem, 2);
    u_.allocate(filter_elements(w));
    launch_transform_filters(tensors.filter, u_.floats(), w, stream);
    if (knob("padding") == kCopy) padded_.allocate(padded_rows(w) * padded_width(w));
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Winograd w = winograd_of(problem, 2);
    const Form form{knob("buffers"), knob("padding") == kMask, knob("registers"), knob("tiles")};
    if (!form.masked) launch_pad_input(tensors.input, padded_.floats(), w, stream);
    launch_winograd_fused(form.masked ? tensors.input : padded_.floats(), u_.floats(), tensors.output, w, form, stream);
  }

  ErrorModel error_model(const ConvProblem&, const float*) const override { return WinogradForm{2}; }

  Prediction predict(const ConvProblem& problem) const override {
    return prediction(problem, knob("buffers"), knob("padding") == kCopy, knob("tiles"));
  }

  Workspace u_{*this, "transformed filter"};
  Workspace padded_{*this, "padded input"};
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::WinogradFused)
