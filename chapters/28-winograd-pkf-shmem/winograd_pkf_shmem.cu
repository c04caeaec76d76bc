// The host side of stage 28: its knobs, its rules, what it chooses by the problem and the GPU, and its memory. The
// kernels are in winograd_pkf_shmem.cuh and, for "fused=output", in output_fusion.cuh.

#include "chapters/26-winograd-tensor-core/design_space.hpp"
#include "chapters/28-winograd-pkf-shmem/prediction.hpp"
#include "chapters/28-winograd-pkf-shmem/winograd_pkf_shmem.cuh"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

// The knobs: those of 26 to 30; and which transform is fused with the product.
constexpr int kFused[] = {kAuto, kInput, kOutput};
constexpr const char* kFusedWords[] = {"auto", "input", "output"};
constexpr Knob kKnobs[] = {{"tbm", kBlockNumbers, 16},
                           {"tbn", kFilterNumbers, kFilterNumberWords, kChosenFilters},
                           {"tbk", kBlockNumbers, 64},
                           {"m", kOutputSides, 4},
                           {"fragment", kFragments, kFragmentWords, k16x16x16},
                           {"fused", kFused, kFusedWords, kAuto}};
constexpr int kMostSums = 128;  // of a thread: 384 threads have 168 registers each
constexpr int kLeastTbk = 16;   // also where the output is fused, and no step has an end

// What is compiled with the program: what runs by default, on GPUs with less than 99 KB of shared memory the second.
using Usual = FixedPoint<F4Fractions, 16, 16, 16, 64, 64>;
using Small = FixedPoint<F4Fractions, 16, 16, 16, 64, 32>;
using UsualOutput = FixedPoint<F4Fractions, 16, 16, 16, 64, kLeastTbk>;

std::int64_t shared_bytes(const Point& p, int fused) {
  const int pitch = fused == kInput ? pitch_of(p.block.tbk) : exchange_pitch_of(p.block.tbn);
  return std::int64_t{2} * p.positions() * p.block.tbm * pitch + 4 * kGroups * p.size() * kPatch;
}

// The transform that is fused by default. Each part of the filters transforms its tiles anew: with two or more, the
// output's transform is the cheaper one. And with few blocks a multiprocessor, where there is little else to run while
// a block stands at its barriers: measured on an NVIDIA H200, up to about 3 blocks the output's, from 6 on the input's.
int cheaper_to_fuse(const Point& p, const Winograd& w, const DeviceLimits& limits) {
  constexpr std::int64_t kFewBlocks = 4;  // a multiprocessor
  const bool fits = shared_bytes(p, kOutput) <= limits.shared_bytes_per_block;
  const bool few = p.parts(w) < kFewBlocks * limits.multiprocessors;
  return fits && (few || p.filter_parts(w) > 1) ? kOutput : kInput;
}

class WinogradPkfShmem final : public TunableStage {
  Knobs knobs() const override { return {kKnobs, /*to_search=*/false}; }

  // As many channels a step as shared memory holds.
  Configuration default_configuration(const ConvProblem&, const DeviceLimits& limits) const override {
    Configuration c(kKnobs);
    while (c["tbk"] > kLeastTbk && shared_bytes(point_of(c, c["m"]), kInput) > limits.shared_bytes_per_block)
      c["tbk"] /= 2;
    return c;
  }

  Configuration decided(const ConvProblem& problem, const DeviceLimits& limits,
                        const Configuration& configuration) const override {
    const Point p = point_of(configuration, configuration["m"]);
    Configuration c = configuration;
    c["tbn"] = p.block.tbn;
    if (c["fused"] == kAuto) c["fused"] = cheaper_to_fuse(p, winograd_of(problem, p.m), limits);
    if (c["fused"] == kOutput) c["tbk"] = kLeastTbk;
    return c;
  }

  Verdict check_configuration(const ConvProblem& problem, const DeviceLimits& limits,
                              const Configuration& configuration) const override {
    if (configuration["tbn"] == kChosenFilters || configuration["fused"] == kAuto)
      return Verdict::refuse("auto stands for one of the other values");
    const Point p = point_of(configuration, configuration["m"]);
    const int fused = configuration["fused"];
    if (fused == kOutput && p.block.tbk != kLeastTbk)
      return Verdict::refuse("with fused=output no channels are kept for a step: tbk is {}", kLeastTbk);
    const std::int64_t bytes = shared_bytes(p, fused);
    if (bytes > limits.shared_bytes_per_block)
      return Verdict::refuse("tbm={},tbn={},tbk={},fused={} takes {} bytes of shared memory; a block may have {}",
                             p.block.tbm, p.block.tbn, p.block.tbk, kFusedWords[fused], bytes,
                             limits.shared_bytes_per_block);
    if (const Verdict verdict = check_sums(p, p.size(), kGroups, kMostSums); !verdict.accepted()) return verdict;
    if (!is_built_in(p, fused) && *cannot_compile()) return Verdict::refuse("{}", cannot_compile());
    return check_point(problem, p, p.block.tbm, p.block.tbn / kGroups);
  }

  Verdict check(const ConvProblem& problem, const DeviceLimits& limits) const override {
    const std::int64_t bytes = shared_bytes({4, k16x16x16, {16, 64, kLeastTbk}}, kInput);
    if (bytes > limits.shared_bytes_per_block)
      return Verdict::refuse("a block needs {} bytes of shared memory; it may have {}", bytes,
                             limits.shared_bytes_per_block);
    return check_winograd(problem, kOutputSides[0], kTileUnit);
  }

  static bool is_built_in(const Point& p, int fused) {
    return fused == kInput ? Usual::is(p) || Small::is(p) : UsualOutput::is(p);
  }

  Point point() const { return point_of(configuration(), knob("m")); }
  int fused() const { return knob("fused"); }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Point p = point();
    const Winograd w = winograd_of(problem, p.m);
    with_form(p.m, [&](auto form) {
      using Form = decltype(form);
      u_.allocate<half>(filter_elements<Form>(w));
      if (fused() == kInput)
        m_.allocate<half>(product_elements<Form>(w));
      else
        v_.allocate<half>(input_elements<Form>(w));
      launch_transform_filters<Form>(tensors.filter, u_.as<half>(), w, stream);
    });
    if (is_built_in(p, fused())) return;
    constexpr const char* kFile = "28-winograd-pkf-shmem/winograd_pkf_shmem.cuh";
    if (fused() == kInput)
      compile_point(kernel_, p, kFile, "multiply", form_text(p), "");
    else
      compile_point(kernel_, p, kFile, "multiply_and_transform", form_text(p), ", convladder::kGroups");
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Point p = point();
    const Winograd w = winograd_of(problem, p.m);
    const dim3 grid(static_cast<unsigned>(p.parts(w))), threads(32 * kGroups * p.size());
    const auto bytes = static_cast<std::size_t>(shared_bytes(p, fused()));
    const half *const input = tensors.half_input, *const u = u_.as<half>();
    half *const v = v_.as<half>(), *const m = m_.as<half>(), *const output = tensors.half_output;
    with_form(p.m, [&](auto form) {
      if (fused() == kOutput) launch_transform_inputs<decltype(form)>(input, v, w, stream);
    });
    if (kernel_.compiled()) {
      const auto start = kernel_.launch(grid, threads, bytes, stream);
      fused() == kInput ? start(input, u, m, w, p.block) : start(u, v, output, w, p.block);
    } else if (fused() == kInput) {
      with_kernel_types<Usual, Small>(p, [&](auto form, auto shape, auto block) {
        const auto kernel = multiply<decltype(form), decltype(shape), decltype(block)>;
        convladder::launch(kernel, grid, threads, bytes, stream)(input, u, m, w, block);
      });
    } else {
      with_kernel_types<UsualOutput>(p, [&](auto form, auto shape, auto block) {
        const auto kernel = multiply_and_transform<decltype(form), decltype(shape), decltype(block), kGroups>;
        convladder::launch(kernel, grid, threads, bytes, stream)(u, v, output, w, block);
      });
    }
    with_form(p.m, [&](auto form) {
      if (fused() == kInput) launch_transform_outputs<decltype(form)>(m, output, w, stream);
    });
  }

  ErrorModel error_model(const ConvProblem&, const float*) const override {
    return WinogradForm{knob("m"), true, Precision::fp16, true};
  }

  Prediction predict(const ConvProblem& problem) const override {
    Prediction p;
    with_form(knob("m"), [&](auto form) { p = prediction<decltype(form)>(problem, point(), fused()); });
    return p;
  }

  Workspace u_{*this, "transformed filter"};
  Workspace v_{*this, "transformed input"};
  Workspace m_{*this, "products"};
  CompiledKernel kernel_;
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::WinogradPkfShmem)
