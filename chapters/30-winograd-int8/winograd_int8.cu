// The host side of stage 30: its knobs, what it refuses, and its memory. The kernels are in winograd_int8.cuh.

#include "chapters/30-winograd-int8/winograd_int8.cuh"
#include "common/stage/tunable.hpp"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

// The knobs: where the transformed tiles lie, and TBM.
enum { kShmem, kLlc };
constexpr int kFusions[] = {kShmem, kLlc};
constexpr const char* kFusionWords[] = {"shmem", "llc"};
constexpr int kTileCounts[] = {16, 32};
constexpr Knob kKnobs[] = {{"fusion", kFusions, kFusionWords, kShmem}, {"tbm", kTileCounts, 16}};

class WinogradInt8 final : public TunableStage {
  Knobs knobs() const override { return {kKnobs, /*to_search=*/false}; }

  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    constexpr std::int64_t kMaxChannels = 0x7fffffff / (127 * 127);
    if (problem.c > kMaxChannels)
      return Verdict::refuse("32-bit sums of products of bytes take {} channels; got c={}", kMaxChannels, problem.c);
    return check_winograd(problem, kTileOutputs<Form>, kTileUnit);
  }

  bool llc() const { return knob("fusion") == kLlc; }
  int tbm() const { return knob("tbm"); }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Winograd w = winograd_of(problem, kTileOutputs<Form>);
    u_.allocate<signed char>(filter_elements<Form>(w));
    scales_u_.allocate(kPositions<Form> * padded_filters(w));
    scales_v_.allocate(2 * kPositions<Form>);
    m_.allocate<half>(product_elements<Form>(w));
    if (llc())
      buffers_.allocate<signed char>(tbm() == 16 ? resident_blocks<16>(w) * std::int64_t{kBuffer<16, true>}
                                                 : resident_blocks<32>(w) * std::int64_t{kBuffer<32, true>});
    launch_quantise_filters(tensors.filter, u_.as<signed char>(), scales_u_.floats(), w, stream);
    launch_calibrate(tensors.half_input, scales_v_.floats(), w, stream);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Winograd w = winograd_of(problem, kTileOutputs<Form>);
    const auto launch_all = tbm() == 16 ? launch_kernels<16> : launch_kernels<32>;
    launch_all({tensors.half_input, u_.as<signed char>(), scales_v_.floats(), scales_u_.floats(),
                buffers_.as<signed char>(), m_.as<half>(), tensors.half_output},
               llc(), w, stream);
  }

  ErrorModel error_model(const ConvProblem&, const float*) const override {
    return WinogradForm{kTileOutputs<Form>, false, Precision::int8, true};
  }

  Prediction predict(const ConvProblem& problem) const override {
    const Winograd w = winograd_of(problem, kTileOutputs<Form>);
    const std::int64_t filter_parts = blocks_for(padded_filters(w), kSums / tbm()),
                       tile_parts = padded_tiles(w) / tbm();
    const std::int64_t steps = blocks_for(channel_blocks(w), kStepBlocks);
    Prediction p;
    p.global_store_bytes = (llc() ? input_elements<Form>(w) * filter_parts : 0) + 2 * product_elements<Form>(w) +
                           2 * problem.output_size();
    p.constant_load_requests = 0;
    p.barriers = tile_parts * filter_parts * steps * 2;
    p.flops = 2 * kPositions<Form> * std::int64_t{w.tiles} * w.channels * w.filters;
    return p;
  }

  Workspace u_{*this, "transformed filter"};
  Workspace scales_u_{*this, "scales of the filters"};
  Workspace scales_v_{*this, "scales of the input"};
  Workspace buffers_{*this, "the blocks' transformed tiles"};
  Workspace m_{*this, "products"};
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::WinogradInt8)
