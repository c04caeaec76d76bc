// The host side of stage 29: its knob and its memory. The kernel is in winograd_pkf_llc.cuh.

#include "chapters/29-winograd-pkf-llc/winograd_pkf_llc.cuh"
#include "common/stage/tunable.hpp"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

// The knob: TBM, the tiles of a block.
constexpr int kTileCounts[] = {16, 32};
constexpr Knob kKnobs[] = {{"tbm", kTileCounts, 16}};

class WinogradPkfLlc final : public TunableStage {
  Knobs knobs() const override { return {kKnobs, /*to_search=*/false}; }

  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    return check_winograd(problem, kTileOutputs<Form>, kTileUnit);
  }

  int tbm() const { return knob("tbm"); }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Winograd w = winograd_of(problem, kTileOutputs<Form>);
    u_.allocate<half>(filter_elements<Form>(w));
    buffers_.allocate<half>(tbm() == 16 ? resident_blocks<16>(w) * std::int64_t{kBuffer<16>}
                                        : resident_blocks<32>(w) * std::int64_t{kBuffer<32>});
    m_.allocate<half>(product_elements<Form>(w));
    launch_transform_filters<Form>(tensors.filter, u_.as<half>(), w, stream);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Winograd w = winograd_of(problem, kTileOutputs<Form>);
    const auto launch_all = tbm() == 16 ? launch_kernels<16> : launch_kernels<32>;
    launch_all({tensors.half_input, u_.as<half>(), buffers_.as<half>(), m_.as<half>(), tensors.half_output}, w, stream);
  }

  ErrorModel error_model(const ConvProblem&, const float*) const override {
    return WinogradForm{kTileOutputs<Form>, true, Precision::fp16, true};
  }

  Prediction predict(const ConvProblem& problem) const override {
    const Winograd w = winograd_of(problem, kTileOutputs<Form>);
    const std::int64_t filter_parts = blocks_for(padded_filters(w), kSums / tbm()),
                       tile_parts = padded_tiles(w) / tbm();
    const std::int64_t steps = blocks_for(channel_blocks(w), kStepBlocks), pairs = (w.filters + 1) / 2;
    const std::int64_t transformed = 2 * input_elements<Form>(w) * filter_parts;  // bytes, written for each part
    Prediction p;
    p.global_load_bytes = 2 * tile_reads(w) * filter_parts + kGroups * transformed +  // both warps of a column
                          2 * filter_elements<Form>(w) * tile_parts +
                          kPositions<Form> * std::int64_t{w.tiles} * pairs * 4;
    p.global_store_bytes = transformed + 2 * (product_elements<Form>(w) + problem.output_size());
    p.constant_load_requests = 0;
    p.barriers = tile_parts * filter_parts * steps * 2;
    p.flops = 2 * kPositions<Form> * std::int64_t{w.tiles} * w.channels * w.filters;
    return p;
  }

  Workspace u_{*this, "transformed filter"};
  Workspace buffers_{*this, "the blocks' transformed tiles"};
  Workspace m_{*this, "products"};
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::WinogradPkfLlc)
