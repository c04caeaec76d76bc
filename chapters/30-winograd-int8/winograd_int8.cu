// The host side of stage 30: its knobs, its rules and its memory. The kernels are in winograd_int8.cuh.

#include "chapters/26-winograd-tensor-core/design_space.hpp"
#include "chapters/30-winograd-int8/winograd_int8.cuh"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

// The knobs: where the transformed tiles lie; those of 26 to 30 but for m, since the errors of F(4 x 4) are beyond what
// int8 stages promise; and how M is stored.
enum { kShmem, kLlc };
constexpr int kFusions[] = {kShmem, kLlc};
constexpr const char* kFusionWords[] = {"shmem", "llc"};
enum { kHalfSums, kInt32Sums };
constexpr int kSumTypes[] = {kHalfSums, kInt32Sums};
constexpr const char* kSumWords[] = {"half", "int32"};
constexpr Knob kKnobs[] = {{"fusion", kFusions, kFusionWords, kShmem},
                           {"tbm", kBlockNumbers, 16},
                           {"tbn", kFilterNumbers, kFilterNumberWords, kChosenFilters},
                           {"tbk", kBlockNumbers, 64},
                           {"fragment", kFragments, kFragmentWords, k16x16x16},
                           {"sums", kSumTypes, kSumWords, kHalfSums}};
constexpr int kMostSums = 64;  // of a thread: two blocks share a multiprocessor, 128 registers a thread

using Usual = FixedPoint<Form, 16, 16, 16, 64, 64>;  // compiled with the program

// Blocks that are started with llc: two for each multiprocessor, as long as their buffers take at most half of L2.
int resident_blocks(const Point& p, const Winograd& w) {
  const DeviceLimits limits = device_limits();
  const std::int64_t fitting = limits.l2_bytes / 2 / buffer_of(p.block, true);
  std::int64_t blocks = 2 * limits.multiprocessors < fitting ? 2 * limits.multiprocessors : fitting;
  if (p.parts(w) < blocks) blocks = p.parts(w);
  return blocks < 1 ? 1 : static_cast<int>(blocks);
}

class WinogradInt8 final : public TunableStage {
  Knobs knobs() const override { return {kKnobs, /*to_search=*/false}; }

  Configuration decided(const ConvProblem&, const DeviceLimits&, const Configuration& configuration) const override {
    Configuration c = configuration;
    c["tbn"] = point_of(configuration, kTileOutputs<Form>).block.tbn;
    return c;
  }

  Verdict check_configuration(const ConvProblem& problem, const DeviceLimits& limits,
                              const Configuration& configuration) const override {
    if (configuration["tbn"] == kChosenFilters) return Verdict::refuse("auto stands for one of the other values");
    const Point p = point_of(configuration, kTileOutputs<Form>);
    if (const Verdict verdict = check_sums(p, kSize, kGroups, kMostSums); !verdict.accepted()) return verdict;
    if (!is_built_in(p, configuration["fusion"] == kLlc, configuration["sums"]) && *cannot_compile())
      return Verdict::refuse("{}", cannot_compile());
    const Verdict verdict = check_point(problem, p, p.block.tbm, p.block.tbn / kGroups);
    return verdict.accepted() ? check(problem, limits) : verdict;
  }

  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    constexpr std::int64_t kMaxChannels = 0x7fffffff / (127 * 127);
    if (problem.c > kMaxChannels)
      return Verdict::refuse("32-bit sums of products of bytes take {} channels; got c={}", kMaxChannels, problem.c);
    return check_winograd(problem, kTileOutputs<Form>, kTileUnit);
  }

  static bool is_built_in(const Point& p, bool llc, int sums) { return Usual::is(p) && !llc && sums == kHalfSums; }

  Point point() const { return point_of(configuration(), kTileOutputs<Form>); }
  bool llc() const { return knob("fusion") == kLlc; }
  bool exact() const { return knob("sums") == kInt32Sums; }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Point p = point();
    const Winograd w = winograd_of(problem, p.m);
    u_.allocate<signed char>(filter_elements<Form>(w));
    scales_u_.allocate(kPositions<Form> * padded_filters(w));
    scales_v_.allocate(2 * kPositions<Form>);
    if (exact())
      m_.allocate<int>(product_elements<Form>(w));
    else
      m_.allocate<half>(product_elements<Form>(w));
    if (llc()) buffers_.allocate<signed char>(std::int64_t{resident_blocks(p, w)} * buffer_of(p.block, true));
    launch_quantise_filters(tensors.filter, u_.as<signed char>(), scales_u_.floats(), w, stream);
    calibrate(problem, tensors, stream);
    if (is_built_in(p, llc(), knob("sums"))) return;
    const char* const after =
        llc() ? (exact() ? ", true, int" : ", true, __half") : (exact() ? ", false, int" : ", false, __half");
    compile_point(kernel_, p, "30-winograd-int8/winograd_int8.cuh", "multiply", "", after);
  }

  void calibrate(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    launch_calibrate(tensors.half_input, scales_v_.floats(), winograd_of(problem, point().m), stream);
  }

  // Of the program's kernels the one for half or int.
  template <class Sum>
  void launch_product(const Tensors& tensors, const Point& p, const Winograd& w, Stream stream) {
    const dim3 grid(static_cast<unsigned>(llc() ? resident_blocks(p, w) : p.parts(w))), threads(kThreads);
    const std::size_t bytes = llc() ? 0 : static_cast<std::size_t>(buffer_of(p.block, false));
    const half* const input = tensors.half_input;
    const signed char* const u = u_.as<signed char>();
    const float *const scales_v = scales_v_.floats(), *const scales_u = scales_u_.floats();
    signed char* const buffers = llc() ? buffers_.as<signed char>() : nullptr;
    Sum* const m = m_.as<Sum>();
    if (kernel_.compiled())
      return kernel_.launch(grid, threads, bytes, stream)(input, u, scales_v, scales_u, buffers, m, w, p.block);
    const auto start = [&](auto kernel, auto block) {
      convladder::launch(kernel, grid, threads, bytes, stream)(input, u, scales_v, scales_u, buffers, m, w, block);
    };
    with_shape_types<Usual>(p, [&](auto shape, auto block) {
      using Shape = decltype(shape);
      using Block = decltype(block);
#if defined(__CUDACC__)
      if constexpr (sizeof(Sum) == sizeof(half)) start(multiply<Shape, Block, false, Sum>, block);
#else
      llc() ? start(multiply<Shape, Block, true, Sum>, block) : start(multiply<Shape, Block, false, Sum>, block);
#endif
    });
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Point p = point();
    const Winograd w = winograd_of(problem, p.m);
    if (exact()) {
      launch_product<int>(tensors, p, w, stream);
      launch_transform_sums(m_.as<int>(), scales_v_.floats(), scales_u_.floats(), tensors.half_output, w, stream);
    } else {
      launch_product<half>(tensors, p, w, stream);
      launch_transform_outputs<Form>(m_.as<half>(), tensors.half_output, w, stream);
    }
  }

  ErrorModel error_model(const ConvProblem&, const float*) const override {
    return WinogradForm{kTileOutputs<Form>, false, Precision::int8, !exact()};
  }

  Prediction predict(const ConvProblem& problem) const override {
    const Point point = this->point();
    const Winograd w = winograd_of(problem, point.m);
    const std::int64_t tiles = std::int64_t{point.tile_parts(w)} * point.block.tbm;  // the last block's too
    const std::int64_t transformed = kPositions<Form> * std::int64_t{channel_blocks(w)} * kBlock * tiles;
    Prediction p;
    p.global_store_bytes = (llc() ? transformed * point.filter_parts(w) : 0) +
                           (exact() ? 4 : 2) * product_elements<Form>(w) + 2 * problem.output_size();
    p.constant_load_requests = 0;
    p.barriers = point.parts(w) * point.steps(w) * 2;
    p.flops = 2 * kPositions<Form> * std::int64_t{w.tiles} * w.channels * w.filters;
    return p;
  }

  Workspace u_{*this, "transformed filter"};
  Workspace scales_u_{*this, "scales of the filters"};
  Workspace scales_v_{*this, "scales of the input"};
  Workspace buffers_{*this, "the blocks' transformed tiles"};
  Workspace m_{*this, "products"};
  CompiledKernel kernel_;
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::WinogradInt8)
