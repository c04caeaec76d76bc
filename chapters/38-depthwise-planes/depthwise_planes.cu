// 38 depthwise-planes: whole planes by bulk copies, while other blocks sum theirs.
//
// Since 15: no halo and no tile. Where planes are small, a block takes some of them whole, as they lie in memory, by
// one request of one thread. planes.cuh has the kernel and its numbered steps; this file has the plans that a search
// may try, what runs where nothing was tuned, the filter's copy and the launch.
//
// A filter belongs to a channel, and planes that follow each other to channels that do. So the filters of a group
// follow each other too, until the last channel, after which comes the first. prepare() makes a copy of the filter that
// goes on after its end, so that those of any group are contiguous.

#include <algorithm>
#include <iterator>

#include "chapters/38-depthwise-planes/planes.cuh"
#include "common/kernel/compiled_kernel.hpp"
#include "common/kernel/grid.hpp"
#include "common/kernel/tracks/depthwise.hpp"
#include "common/kernel/tracks/depthwise_source.hpp"
#include "common/stage/tunable.hpp"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

// In this order they are Plan's members.
constexpr int kPlanes[] = {1, 2, 4, 8, 16, 32, 64}, kRows[] = {1, 2, 4, 8, 16, 32, 64}, kColumns[] = {4, 8, 16, 28, 32};
constexpr int kGroups[] = {1, 2, 4, 8}, kBuffers[] = {1, 2};
constexpr Knob kKnobs[] = {{"planes", kPlanes, 4},
                           {"rows", kRows, 4},
                           {"columns", kColumns, 8},
                           {"groups", kGroups, 1},
                           {"buffers", kBuffers, 1}};

Plan plan_of(const Configuration& c) { return {c["planes"], c["rows"], c["columns"], c["groups"], c["buffers"]}; }

Configuration configuration_of(const Plan& s) {
  Configuration c(kKnobs);
  c["planes"] = s.planes;
  c["rows"] = s.rows;
  c["columns"] = s.columns;
  c["groups"] = s.groups;
  c["buffers"] = s.buffers;
  return c;
}

constexpr int kMaxThreads = 1024, kSpreadThreads = 256;

// Whether a smaller value covers everything already.
template <int kCount>
bool is_twin(const int (&values)[kCount], int value, std::int64_t needed) {
  for (const int smaller_one : values)
    if (smaller_one < value && smaller_one >= needed) return true;
  return false;
}

int groups_in_all(const Depthwise& d, const Plan& s) { return ceil_div(planes(d), s.planes); }

Verdict check_plan(const Depthwise& d, const Plan& s, std::int64_t shared_bytes_per_block) {
  if (shared_bytes(d, s) > shared_bytes_per_block)
    return Verdict::refuse("whole planes and their filters must fit in {} bytes of shared memory; got {}",
                           shared_bytes_per_block, shared_bytes(d, s));
  if (is_twin(kPlanes, s.planes, planes(d)) || is_twin(kRows, s.rows, d.out_height) ||
      is_twin(kColumns, s.columns, d.out_width) || is_twin(kGroups, s.groups, groups_in_all(d, s)))
    return Verdict::refuse("a smaller value covers all planes, rows, columns or groups already");
  if (s.buffers > s.groups) return Verdict::refuse("a block of one group has nothing to fetch ahead");
  if (s.rows * s.columns > kMostOutputs)
    return Verdict::refuse("a thread has at most {} outputs; got {}", kMostOutputs, s.rows * s.columns);
  if (threads_of(d, s) > kMaxThreads)
    return Verdict::refuse("a block has at most {} threads; got {}", kMaxThreads, threads_of(d, s));
  return Verdict::accept();
}

// The most blocks and warps of a multiprocessor of compute capability 9.0 at a time, and the shared memory that each
// block takes besides its own: that is all that a multiprocessor has more than one block may have.
constexpr std::int64_t kMostBlocks = 32, kMostWarps = 64, kSystemBytes = 1024;

// Warps that a multiprocessor holds at a time, if registers allow it: no more than there are for it.
std::int64_t warps_held(const Depthwise& d, const Plan& s, const DeviceLimits& limits) {
  const std::int64_t warps = threads_of(d, s) / 32;
  const std::int64_t fit = (limits.shared_bytes_per_block + kSystemBytes) / (shared_bytes(d, s) + kSystemBytes);
  const std::int64_t there_are = ceil_div(ceil_div(groups_in_all(d, s), s.groups), limits.multiprocessors);
  return std::min({fit, there_are, kMostBlocks, kMostWarps / warps}) * warps;
}

// Blocks of one group: while one waits for pixels, or has its sums stored, others sum. So there should be many, and
// they should be small. A multiprocessor holds 32 blocks and 64 warps, so a block has planes for two warps. The strip
// is the largest of a few that leaves half of the 64 warps, or that which leaves most: one row as wide as the plane,
// whose products with padding are left out; else narrow ones. Filters of more than 15 columns have wide strips: there a
// pixel in registers serves many products.
Plan default_plan(const Depthwise& d, const DeviceLimits& limits) {
  constexpr std::int64_t kWarpsOfBlock = 2, kEnough = kMostWarps / 2;
  const auto valid = [&](const Plan& s) { return check_plan(d, s, limits.shared_bytes_per_block).accepted(); };
  Plan best{};
  std::int64_t most = 0;
  const auto try_strip = [&](int rows, int columns) {
    while (is_twin(kRows, rows, d.out_height)) rows /= 2;
    while (is_twin(kColumns, columns, d.out_width)) columns = columns == 28 ? 16 : columns / 2;
    Plan s{1, rows, columns, 1, 1};
    if (most >= kEnough || !valid(s)) return;
    for (Plan next = s; valid(next) && threads_of(d, next) <= kWarpsOfBlock * 32; next.planes *= 2) s = next;
    const std::int64_t held = warps_held(d, s, limits);
    if (held > most) best = s, most = held;
  };
  if (d.columns > 15) {
    try_strip(2, 28);
  } else {
    const int* const whole =
        std::find_if(std::begin(kColumns), std::end(kColumns), [&](int columns) { return columns >= d.out_width; });
    if (whole != std::end(kColumns) && d.width <= kMostWindow) try_strip(1, *whole);
    try_strip(4, 8);
    try_strip(2, 4);
    try_strip(1, 4);
  }
  // Larger strips, where a plane has more of them than a block has threads.
  for (const int columns : kColumns)
    for (const int rows : kRows)
      if (most == 0 && rows * columns <= kMostOutputs) try_strip(rows, columns);
  return most > 0 ? best : Plan{1, kRows[0], kColumns[0], 1, 1};
}

// ---- The launch ----------------------------------------------------------------------------------------------------

__global__ void __launch_bounds__(kMaxThreads)
    depthwise_planes_any(const float* input, const float* filter, float* output, Depthwise d, Plan s) {
  convolve_planes(input, filter, output, d, s);
}

// What NVRTC compiles.
KernelSource source_of(const Depthwise& d, const Plan& s) {
  KernelSource source;
  source.add(R"(#include "chapters/38-depthwise-planes/planes.cuh"
namespace convladder {)");
  source.add_problem(d);
  source.add("struct Point {");
  source.add_knobs(configuration_of(s));
  source.constant("threads", threads_of(d, s));
  source.add(R"(};
}
extern "C" __global__ void __launch_bounds__(convladder::Point::threads)
    depthwise_planes(const float* __restrict__ input, const float* __restrict__ filter, float* __restrict__ output) {
  convladder::convolve_planes(input, filter, output, convladder::Problem{}, convladder::Point{});
})");
  return source;
}

class DepthwisePlanes final : public TunableStage {
  Verdict check(const ConvProblem& problem, const DeviceLimits& limits) const override {
    const Verdict verdict = check_depthwise_past_plane(problem, 32);
    if (!verdict.accepted()) return verdict;
    const Depthwise d = depthwise_of(problem);
    return check_plan(d, default_plan(d, limits), limits.shared_bytes_per_block);
  }

  Knobs knobs() const override { return kKnobs; }

  Verdict check_configuration(const ConvProblem& problem, const DeviceLimits& limits,
                              const Configuration& configuration) const override {
    return check_plan(depthwise_of(problem), plan_of(configuration), limits.shared_bytes_per_block);
  }

  Configuration default_configuration(const ConvProblem& problem, const DeviceLimits& limits) const override {
    return configuration_of(default_plan(depthwise_of(problem), limits));
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Depthwise d = depthwise_of(problem);
    const Plan s = plan_of(configuration());
    const std::int64_t count = (static_cast<std::int64_t>(d.channels) + s.planes - 1) * taps_pitch(d);
    spread_.allocate(count);
    ::convladder::launch(spread_filters<Depthwise>, dim3(static_cast<unsigned>((count - 1) / kSpreadThreads + 1)),
                         dim3(kSpreadThreads), 0, stream)(tensors.filter, spread_.floats(), d, count);
    kernel_.compile(source_of(d, s).text, "depthwise_planes");
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Depthwise d = depthwise_of(problem);
    const Plan s = plan_of(configuration());
    const dim3 grid(ceil_div(groups_in_all(d, s), s.groups)), block(static_cast<unsigned>(threads_of(d, s)));
    const auto bytes = static_cast<std::size_t>(shared_bytes(d, s));
    const float* const filter = spread_.floats();
    if (kernel_.compiled())
      kernel_.launch(grid, block, bytes, stream)(tensors.input, filter, tensors.output);
    else
      ::convladder::launch(depthwise_planes_any, grid, block, bytes, stream)(tensors.input, filter, tensors.output, d,
                                                                             s);
  }

  // Pixels once, where every group begins at a multiple of 16 bytes; each group's taps; three barriers, of which one is
  // the block's.
  Prediction predict(const ConvProblem& problem) const override {
    const Depthwise d = depthwise_of(problem);
    const Plan s = plan_of(configuration());
    Prediction p;
    if (s.planes * input_plane(d) % kPiece == 0)
      p.global_load_bytes = (problem.input_size() + planes(d) * taps_pitch(d)) * 4;
    p.global_store_bytes = problem.output_size() * 4;
    p.flops = problem.flops();
    p.barriers = ceil_div(groups_in_all(d, s), s.groups) + 2 * groups_in_all(d, s);
    return p;
  }

  Workspace spread_{*this, "spread filter"};
  CompiledKernel kernel_;
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::DepthwisePlanes)
