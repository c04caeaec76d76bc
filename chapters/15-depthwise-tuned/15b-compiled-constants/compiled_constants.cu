// 15b compiled-constants: the schedule of 15a, compiled for one problem when that is known.
//
// The idea: 15a could write out four sums by hand, and not the loops over r and s, since their lengths come with the
// problem. So the kernel is compiled when the problem is known, by NVRTC, a compiler in a library: prepare() writes a
// few lines of CUDA in which all sizes are constants, includes the kernel, and has it compiled for the GPU present.
// `--configuration constants=no` runs the same source as it was compiled with the program, with the sizes as variables:
// the difference is what constants are worth. The simulator has no time, and compiles nothing: it counts the same
// requests for both. `--sass` prints the machine code of the kernel without constants, in which there are still loops.
//
// The kernel is in compiled_constants.cuh.

#include <cstdio>

#include "chapters/15-depthwise-tuned/15b-compiled-constants/compiled_constants.cuh"
#include "common/kernel/compiled_kernel.hpp"
#include "common/kernel/tracks/depthwise.hpp"
#include "common/stage/tunable.hpp"

namespace convladder {
namespace {

constexpr int kMaxTaps = 1024;  // of a filter: compiling more of them, written out, takes long

__global__ void __launch_bounds__(kThreads)
    depthwise_any_problem(const float* input, const float* filter, float* output, Depthwise d) {
  depthwise_cached(input, filter, output, d);
}

// A type with the members of Depthwise as constants, and a kernel for it.
struct Source {
  char text[2048];

  explicit Source(const Depthwise& d) {
    std::snprintf(text, sizeof text,
                  R"(#include "chapters/15-depthwise-tuned/15b-compiled-constants/compiled_constants.cuh"
namespace convladder {
struct Problem {
  static constexpr int channels = %d, height = %d, width = %d, out_height = %d, out_width = %d, rows = %d, columns = %d;
  static constexpr int pad_y = %d, pad_x = %d, stride_y = %d, stride_x = %d, dilation_y = %d, dilation_x = %d;
  static constexpr Padding padding = static_cast<Padding>(%d);
};
}
extern "C" __global__ void __launch_bounds__(convladder::kThreads)
    compiled_constants(const float* __restrict__ input, const float* __restrict__ filter, float* __restrict__ output) {
  convladder::depthwise_cached(input, filter, output, convladder::Problem{});
})",
                  d.channels, d.height, d.width, d.out_height, d.out_width, d.rows, d.columns, d.pad_y, d.pad_x,
                  d.stride_y, d.stride_x, d.dilation_y, d.dilation_x, static_cast<int>(d.padding));
  }
};

constexpr int kChoices[] = {0, 1};
constexpr const char* kWords[] = {"no", "yes"};
constexpr Knob kKnobs[] = {{"constants", kChoices, kWords, 1}};

std::int64_t shared_bytes(const Depthwise& d) { return 4 * (tile_rows(d) * tile_columns(d) + filter_plane(d)); }

std::int64_t blocks_of(const Depthwise& d) {
  return std::int64_t{planes(d)} * blocks_for(d.out_height, kRows) * blocks_for(d.out_width, kColumns);
}

class CompiledConstants final : public TunableStage {
  Knobs knobs() const override { return {kKnobs, false}; }

  Verdict check(const ConvProblem& problem, const DeviceLimits& limits) const override {
    if (const Verdict verdict = check_depthwise(problem); !verdict.accepted()) return verdict;
    const Depthwise d = depthwise_of(problem);
    if (filter_plane(d) > kMaxTaps)
      return Verdict::refuse("a filter may have up to {} taps, which are all written out; got {}", kMaxTaps,
                             filter_plane(d));
    // Each alone, since their product may be beyond 64 bits.
    if (tile_rows(d) > limits.shared_bytes_per_block || tile_columns(d) > limits.shared_bytes_per_block ||
        shared_bytes(d) > limits.shared_bytes_per_block)
      return Verdict::refuse("tile and filter must fit in {} bytes of shared memory; got a tile of {} x {} floats",
                             limits.shared_bytes_per_block, tile_rows(d), tile_columns(d));
    if (blocks_of(d) > INT32_MAX) return Verdict::refuse("a grid has at most 2^31 - 1 blocks; got {}", blocks_of(d));
    return Verdict::accept();
  }

  void prepare(const ConvProblem& problem, const Tensors&, Stream) override {
    if (knob("constants")) kernel_.compile(Source(depthwise_of(problem)).text, "compiled_constants");
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Depthwise d = depthwise_of(problem);
    const auto blocks = static_cast<unsigned>(blocks_of(d));
    const auto bytes = static_cast<std::size_t>(shared_bytes(d));
    if (kernel_.compiled())
      kernel_.launch(blocks, kThreads, bytes, stream)(tensors.input, tensors.filter, tensors.output);
    else
      convladder::launch(depthwise_any_problem, blocks, kThreads, bytes, stream)(tensors.input, tensors.filter,
                                                                                 tensors.output, d);
  }

  // As 15a.
  Prediction predict(const ConvProblem& problem) const override {
    const Depthwise d = depthwise_of(problem);
    const std::int64_t warps =
        std::int64_t{planes(d)} * blocks_for(d.out_height, kOutputs) * blocks_for(d.out_width, kColumns);
    const std::int64_t taps = filter_plane(d);
    Prediction p;
    p.global_load_bytes = 4 * (planes(d) * reads_by_tile(vertical(d), kRows) * reads_by_tile(horizontal(d), kColumns) +
                               blocks_of(d) * taps);
    p.global_store_bytes = 4 * planes(d) * output_plane(d);
    p.shared_load_requests = warps * taps * (kOutputs + 1);
    p.shared_store_requests = blocks_of(d) * ((tile_rows(d) * tile_columns(d) - 1) / 32 + 1 + (taps - 1) / 32 + 1);
    if (d.stride_x % 2 == 1) p.shared_load_conflicts = 0;
    p.shared_store_conflicts = p.constant_load_requests = p.atomic_requests = 0;
    p.barriers = blocks_of(d);
    p.flops = 2 * planes(d) * output_plane(d) * taps;
    return p;
  }

  CompiledKernel kernel_;
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::CompiledConstants)
