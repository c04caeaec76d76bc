// 39 depthwise-fp16: pairs of channels in half2, NHWC.
//
// Since 15: half the bytes, and another layout. In NHWC the channels of a pixel lie side by side, and a depthwise layer
// does the same with each of them. So neighbouring lanes take neighbouring channels, not neighbouring pixels, and two
// channels fill the 32 bits of a half2. No lane shares anything with another: there is no shared memory, and no
// barrier. pairs.cuh has the kernel and its numbered steps; this file has the strips, the filter's copy and the launch.

#include "chapters/39-depthwise-fp16/pairs.cuh"
#include "common/kernel/compiled_kernel.hpp"
#include "common/kernel/tracks/depthwise.hpp"
#include "common/kernel/tracks/depthwise_source.hpp"
#include "common/stage/tunable.hpp"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

// The first two are Strip's members.
constexpr int kRows[] = {1, 2, 4, 8}, kColumns[] = {1, 2, 4, 7, 8, 14}, kThreads[] = {64, 128, 256};
constexpr Knob kKnobs[] = {{"rows", kRows, 2}, {"columns", kColumns, 4}, {"threads", kThreads, 128}};

// Whether a smaller value covers everything already.
template <int kCount>
bool is_twin(const int (&values)[kCount], int value, int needed) {
  for (const int smaller_one : values)
    if (smaller_one < value && smaller_one >= needed) return true;
  return false;
}

std::int64_t blocks_of(const Depthwise& d, const Strip& s, int threads) {
  return (threads_in_all(d, s) - 1) / threads + 1;
}

Verdict check_strip(const Depthwise& d, const Strip& s, int threads) {
  if (is_twin(kRows, s.rows, d.out_height) || is_twin(kColumns, s.columns, d.out_width))
    return Verdict::refuse("a smaller value covers all rows or columns already");
  if (s.rows * s.columns > kMostPairs)
    return Verdict::refuse("a thread has at most {} outputs of two channels; got {}", kMostPairs, s.rows * s.columns);
  if (blocks_of(d, s, threads) > INT32_MAX)
    return Verdict::refuse("a grid has at most 2^31 - 1 blocks; got {}", blocks_of(d, s, threads));
  return Verdict::accept();
}

// The largest strip of up to 28 outputs, of which at most a ninth lie past the plane, that leaves two warps for each
// of the GPU's schedulers. These are rules of thumb; nothing was measured yet.
Strip default_strip(const Depthwise& d, const DeviceLimits& limits) {
  constexpr int kOutputs = 28, kWarps = 8;  // of a thread, of a multiprocessor
  Strip best{1, 1};
  for (const int columns : kColumns) {
    for (const int rows : kRows) {
      const Strip s{rows, columns};
      const std::int64_t covered = std::int64_t{strips_down(d, s)} * rows * strips_across(d, s) * columns;
      const bool fits = check_strip(d, s, kThreads[0]).accepted() && covered <= output_plane(d) / 8 * 9;
      const bool busy = threads_in_all(d, s) >= std::int64_t{limits.multiprocessors} * kWarps * 32;
      if (fits && busy && rows * columns <= kOutputs && rows * columns > best.rows * best.columns) best = s;
    }
  }
  return best;
}

// ---- The launch ----------------------------------------------------------------------------------------------------

__global__ void depthwise_pairs_any(const half* input, const half2* taps, half* output, Depthwise d, Strip s) {
  convolve_pairs(input, taps, output, d, s);
}

// What NVRTC compiles.
KernelSource source_of(const Depthwise& d, const Configuration& configuration) {
  KernelSource source;
  source.add(R"(#include "chapters/39-depthwise-fp16/pairs.cuh"
namespace convladder {)");
  source.add_problem(d);
  source.add("struct Point {");
  source.add_knobs(configuration);
  source.add(R"(};
}
extern "C" __global__ void __launch_bounds__(convladder::Point::threads)
    depthwise_pairs(const half* __restrict__ input, const half2* __restrict__ taps, half* __restrict__ output) {
  convladder::convolve_pairs(input, taps, output, convladder::Problem{}, convladder::Point{});
})");
  return source;
}

class DepthwiseFp16 final : public TunableStage {
  Verdict check(const ConvProblem& problem, const DeviceLimits& limits) const override {
    const Verdict verdict = check_depthwise_past_plane(problem, 14);
    if (!verdict.accepted()) return verdict;
    const Depthwise d = depthwise_of(problem);
    return check_strip(d, default_strip(d, limits), knob("threads"));
  }

  Knobs knobs() const override { return kKnobs; }

  Strip strip() const { return {knob("rows"), knob("columns")}; }

  Verdict check_configuration(const ConvProblem& problem, const DeviceLimits&,
                              const Configuration& configuration) const override {
    return check_strip(depthwise_of(problem), {configuration["rows"], configuration["columns"]},
                       configuration["threads"]);
  }

  Configuration default_configuration(const ConvProblem& problem, const DeviceLimits& limits) const override {
    const Strip s = default_strip(depthwise_of(problem), limits);
    Configuration configuration(kKnobs);
    configuration["rows"] = s.rows;
    configuration["columns"] = s.columns;
    return configuration;
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    constexpr int kPairing = 256;
    const Depthwise d = depthwise_of(problem);
    const std::int64_t count = filter_plane(d) * pairs_of(d);
    taps_.allocate<half2>(count);
    ::convladder::launch(pair_taps<Depthwise>, dim3(static_cast<unsigned>((count - 1) / kPairing + 1)), dim3(kPairing),
                         0, stream)(tensors.filter, taps_.as<half2>(), d, count);
    kernel_.compile(source_of(d, configuration()).text, "depthwise_pairs");
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Depthwise d = depthwise_of(problem);
    const Strip s = strip();
    const int threads = knob("threads");
    const dim3 grid(static_cast<unsigned>(blocks_of(d, s, threads))), block(static_cast<unsigned>(threads));
    const half2* const taps = taps_.as<half2>();
    if (kernel_.compiled())
      kernel_.launch(grid, block, 0, stream)(tensors.half_input, taps, tensors.half_output);
    else
      ::convladder::launch(depthwise_pairs_any, grid, block, 0, stream)(tensors.half_input, taps, tensors.half_output,
                                                                        d, s);
  }

  Prediction predict(const ConvProblem& problem) const override {
    const Depthwise d = depthwise_of(problem);
    const Strip s = strip();
    const Axis down = vertical(d), across = horizontal(d);
    const std::int64_t served = reads_by_output(down);  // pairs of a row of outputs and a row of taps
    const std::int64_t rows =
        asks_for_each(d, s, 1) ? served : reads_of_tiles(readable(down), s.rows, 0, span_down(d, s));
    const std::int64_t columns = asks_for_each(d, s, 1) ? reads_by_output(across)
                                 : strips_across(d, s) == 1
                                     ? d.width
                                     : reads_of_tiles(readable(across), s.columns, 0, window_of(d, s, 1));
    Prediction p;
    if (asks_for_each(d, s, 1) || !by_pairs(d, s))  // else rows past the last output are read, too
      p.global_load_bytes =
          d.batch * (rows * columns * d.channels * 2 + served * strips_across(d, s) * d.columns * pairs_of(d) * 4);
    p.global_store_bytes = problem.output_size() * 2;
    p.shared_load_requests = p.barriers = 0;
    p.flops = problem.flops();
    return p;
  }

  Workspace taps_{*this, "paired taps"};
  CompiledKernel kernel_;
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::DepthwiseFp16)
