// The host side of stage 28: its knobs, what it refuses, and its memory. The kernels are in winograd_pkf_shmem.cuh and,
// for "fused=output", in output_fusion.cuh.

#include "chapters/28-winograd-pkf-shmem/prediction.hpp"
#include "chapters/28-winograd-pkf-shmem/winograd_pkf_shmem.cuh"
#include "common/stage/tunable.hpp"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

// The knobs: TBM, the tiles of a block; and which transform is fused with the product.
constexpr int kTileCounts[] = {16, 32}, kFused[] = {kInput, kOutput};
constexpr const char* kFusedWords[] = {"input", "output"};
constexpr Knob kKnobs[] = {{"tbm", kTileCounts, 16}, {"fused", kFused, kFusedWords, kInput}};

class WinogradPkfShmem final : public TunableStage {
  Knobs knobs() const override { return {kKnobs, /*to_search=*/false}; }
  Verdict check_configuration(const ConvProblem& problem, const DeviceLimits& limits,
                              const Configuration& configuration) const override {
    const int tbm = configuration["tbm"], fused = configuration["fused"];
    const std::int64_t bytes = shared_bytes(tbm, fused);
    if (bytes > limits.shared_bytes_per_block)
      return Verdict::refuse("tbm={},fused={} takes {} bytes of shared memory; a block may have {}", tbm,
                             kFusedWords[fused], bytes, limits.shared_bytes_per_block);
    return check(problem, limits);
  }

  Verdict check(const ConvProblem& problem, const DeviceLimits& limits) const override {
    const std::int64_t bytes = shared_bytes(16, kInput);
    if (bytes > limits.shared_bytes_per_block)
      return Verdict::refuse("a block needs {} bytes of shared memory; it may have {}", bytes,
                             limits.shared_bytes_per_block);
    return check_winograd(problem, kTileOutputs<Form>, kTileUnit);
  }

  int tbm() const { return knob("tbm"); }
  int fused() const { return knob("fused"); }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Winograd w = winograd_of(problem, kTileOutputs<Form>);
    u_.allocate<half>(filter_elements<Form>(w));
    if (fused() == kInput)
      m_.allocate<half>(product_elements<Form>(w));
    else
      v_.allocate<half>(input_elements<Form>(w));
    launch_transform_filters<Form>(tensors.filter, u_.as<half>(), w, stream);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Winograd w = winograd_of(problem, kTileOutputs<Form>);
    const auto launch_all = tbm() == 16 ? launch_kernels<16> : launch_kernels<32>;
    launch_all({tensors.half_input, u_.as<half>(), v_.as<half>(), m_.as<half>(), tensors.half_output}, fused(), w,
               stream);
  }

  ErrorModel error_model(const ConvProblem&, const float*) const override {
    return WinogradForm{kTileOutputs<Form>, true, Precision::fp16, true};
  }

  Prediction predict(const ConvProblem& problem) const override { return prediction(problem, tbm(), fused()); }

  Workspace u_{*this, "transformed filter"};
  Workspace v_{*this, "transformed input"};
  Workspace m_{*this, "products"};
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::WinogradPkfShmem)
