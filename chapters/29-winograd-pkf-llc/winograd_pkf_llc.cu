// The host side of stage 29: its knobs, its rules and its memory. The kernel is in winograd_pkf_llc.cuh.

#include "chapters/26-winograd-tensor-core/design_space.hpp"
#include "chapters/29-winograd-pkf-llc/winograd_pkf_llc.cuh"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

// The knobs of 26 to 30.
constexpr Knob kKnobs[] = {{"tbm", kBlockNumbers, 16},
                           {"tbn", kFilterNumbers, kFilterNumberWords, kChosenFilters},
                           {"tbk", kBlockNumbers, 64},
                           {"m", kOutputSides, 4},
                           {"fragment", kFragments, kFragmentWords, k16x16x16}};
constexpr int kMostSums = 128;  // of a thread: 384 threads have 168 registers each

using Usual = FixedPoint<F4Fractions, 16, 16, 16, 64, 64>;  // compiled with the program

// Halves of a block's buffer.
std::int64_t buffer_elements(const Point& p) { return buffer_of(p.positions(), p.block); }

// Blocks that are started: one for each multiprocessor, as long as their buffers together take at most half of L2.
int resident_blocks(const Point& p, const Winograd& w) {
  const DeviceLimits limits = device_limits();
  const std::int64_t fitting = limits.l2_bytes / 2 / (buffer_elements(p) * 2);
  std::int64_t blocks = limits.multiprocessors < fitting ? limits.multiprocessors : fitting;
  if (p.parts(w) < blocks) blocks = p.parts(w);
  return blocks < 1 ? 1 : static_cast<int>(blocks);
}

class WinogradPkfLlc final : public TunableStage {
  Knobs knobs() const override { return {kKnobs, /*to_search=*/false}; }

  Configuration decided(const ConvProblem&, const DeviceLimits&, const Configuration& configuration) const override {
    Configuration c = configuration;
    c["tbn"] = point_of(configuration, configuration["m"]).block.tbn;
    return c;
  }

  Verdict check_configuration(const ConvProblem& problem, const DeviceLimits&,
                              const Configuration& configuration) const override {
    if (configuration["tbn"] == kChosenFilters) return Verdict::refuse("auto stands for one of the other values");
    const Point p = point_of(configuration, configuration["m"]);
    if (const Verdict verdict = check_sums(p, p.size(), kGroups, kMostSums); !verdict.accepted()) return verdict;
    if (!Usual::is(p) && *cannot_compile()) return Verdict::refuse("{}", cannot_compile());
    return check_point(problem, p, p.block.tbm, p.block.tbn / kGroups);
  }

  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    return check_winograd(problem, kOutputSides[0], kTileUnit);
  }

  Point point() const { return point_of(configuration(), knob("m")); }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Point p = point();
    const Winograd w = winograd_of(problem, p.m);
    buffers_.allocate<half>(resident_blocks(p, w) * buffer_elements(p));
    with_form(p.m, [&](auto form) {
      using Form = decltype(form);
      u_.allocate<half>(filter_elements<Form>(w));
      m_.allocate<half>(product_elements<Form>(w));
      launch_transform_filters<Form>(tensors.filter, u_.as<half>(), w, stream);
    });
    if (!Usual::is(p))
      compile_point(kernel_, p, "29-winograd-pkf-llc/winograd_pkf_llc.cuh", "multiply", form_text(p), "");
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Point p = point();
    const Winograd w = winograd_of(problem, p.m);
    const dim3 grid(resident_blocks(p, w)), threads(32 * kGroups * p.size());
    const half *const input = tensors.half_input, *const u = u_.as<half>();
    half *const buffers = buffers_.as<half>(), *const m = m_.as<half>();
    if (kernel_.compiled()) {
      kernel_.launch(grid, threads, 0, stream)(input, u, buffers, m, w, p.block);
    } else {
      with_kernel_types<Usual>(p, [&](auto form, auto shape, auto block) {
        const auto kernel = multiply<decltype(form), decltype(shape), decltype(block)>;
        convladder::launch(kernel, grid, threads, 0, stream)(input, u, buffers, m, w, block);
      });
    }
    with_form(p.m, [&](auto form) { launch_transform_outputs<decltype(form)>(m, tensors.half_output, w, stream); });
  }

  ErrorModel error_model(const ConvProblem&, const float*) const override {
    return WinogradForm{knob("m"), true, Precision::fp16, true};
  }

  template <class Form>
  Prediction predict_form(const ConvProblem& problem) const {
    const Point point = this->point();
    const Winograd w = winograd_of(problem, point.m);
    const std::int64_t filter_parts = point.filter_parts(w), pairs = (w.filters + 1) / 2;
    const std::int64_t tiles = std::int64_t{point.tile_parts(w)} * point.block.tbm;  // the last block's too
    const std::int64_t transformed =                                                 // bytes, written for each part
        2 * kPositions<Form> * std::int64_t{channel_blocks(w)} * kBlock * tiles * filter_parts;
    Prediction p;
    p.global_load_bytes = 2 * tile_reads(w) * filter_parts + kGroups * transformed +  // both warps of a column
                          2 * filter_elements<Form>(w) * point.tile_parts(w) +
                          kPositions<Form> * std::int64_t{w.tiles} * pairs * 4;
    p.global_store_bytes = transformed + 2 * (product_elements<Form>(w) + problem.output_size());
    p.constant_load_requests = 0;
    p.barriers = point.parts(w) * point.steps(w) * 2;
    p.flops = 2 * kPositions<Form> * std::int64_t{w.tiles} * w.channels * w.filters;
    return p;
  }

  Prediction predict(const ConvProblem& problem) const override {
    Prediction p;
    with_form(knob("m"), [&](auto form) { p = predict_form<decltype(form)>(problem); });
    return p;
  }

  Workspace u_{*this, "transformed filter"};
  Workspace buffers_{*this, "the blocks' transformed tiles"};
  Workspace m_{*this, "products"};
  CompiledKernel kernel_;
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::WinogradPkfLlc)
