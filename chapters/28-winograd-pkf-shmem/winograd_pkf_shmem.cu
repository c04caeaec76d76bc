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
constexpr Knob kKnobs[] = {{"tbm", kTileCounts, nullptr, 2}, {"fused", kFused, kFusedWords, 2}};

class WinogradPkfShmem final : public TunableStage {
  Knobs knobs() const override { return {kKnobs, 2}; }
  Verdict check_configuration(const ConvProblem& problem, const DeviceLimits& limits,
                              const Configuration& configuration) const override {
    const int tbm = configuration.values[0], fused = configuration.values[1];
    const std::int64_t bytes = shared_bytes(tbm, fused);
    if (bytes > limits.shared_bytes_per_block)
      return Verdict::refuse("tbm=%d,fused=%s takes %lld bytes of shared memory; a block may have %lld", tbm,
                             kFusedWords[fused], static_cast<long long>(bytes),
                             static_cast<long long>(limits.shared_bytes_per_block));
    return check(problem, limits);
  }
  Configuration default_configuration(const ConvProblem&, const DeviceLimits&) const override { return {{16, kInput}}; }
  bool searched() const override { return false; }
  void use(const Configuration& configuration) override { knobs_ = configuration; }

  Verdict check(const ConvProblem& problem, const DeviceLimits& limits) const override {
    const std::int64_t bytes = shared_bytes(16, kInput);
    if (bytes > limits.shared_bytes_per_block)
      return Verdict::refuse("a block needs %lld bytes of shared memory; it may have %lld",
                             static_cast<long long>(bytes), static_cast<long long>(limits.shared_bytes_per_block));
    return check_winograd(problem, kTileOutputs<Form>, kTileUnit);
  }

  int tbm() const { return knobs_.values[0]; }
  int fused() const { return knobs_.values[1]; }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Winograd w = winograd_of(problem, kTileOutputs<Form>);
    u_.allocate<half>(filter_elements<Form>(w), "transformed filter");
    if (fused() == kInput)
      m_.allocate<half>(product_elements<Form>(w), "products");
    else
      v_.allocate<half>(input_elements<Form>(w), "transformed input");
    launch_transform_filters<Form>(tensors.filter, u_.as<half>(), w, stream);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Winograd w = winograd_of(problem, kTileOutputs<Form>);
    const auto launch_all = tbm() == 16 ? launch_kernels<16> : launch_kernels<32>;
    launch_all({tensors.half_input, u_.as<half>(), v_.as<half>(), m_.as<half>(), tensors.half_output}, fused(), w,
               stream);
  }

  std::int64_t workspace_bytes() const override { return u_.bytes() + v_.bytes() + m_.bytes(); }
  bool workspace_intact() const override { return u_.intact() && v_.intact() && m_.intact(); }
  WinogradForm winograd(const ConvProblem&) const override { return {kTileOutputs<Form>, true, Precision::fp16, true}; }

  Prediction predict(const ConvProblem& problem) const override { return prediction(problem, tbm(), fused()); }

  Configuration knobs_{{16, kInput}};
  Workspace u_, v_, m_;
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::WinogradPkfShmem)
