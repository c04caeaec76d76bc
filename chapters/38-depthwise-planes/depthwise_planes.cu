// 38 depthwise-planes: whole planes by bulk copies, the next ones while these are summed.
//
// Since 15: no halo and no tile. Where planes are small, a block takes some of them whole, as they lie in memory, by
// one request of one thread. planes.cuh has the kernel and its numbered steps; this file has the plans that a search
// may try, what runs where nothing was tuned, the filter's copy and the launch.
//
// A filter belongs to a channel, and planes that follow each other to channels that do. So the filters of a group
// follow each other too, until the last channel, after which comes the first. prepare() makes a copy of the filter that
// goes on after its end, so that those of any group are contiguous.

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
constexpr int kPlanes[] = {1, 2, 4, 8, 16, 32, 64}, kRows[] = {1, 2, 4, 8, 16, 32}, kColumns[] = {4, 8, 16, 28, 32};
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

// A strip as wide as the plane where that leaves registers for more than one row, and else a narrow one; planes for
// four warps, and two groups of them where there are blocks enough for the GPU. What does not fit is given up.
Plan default_plan(const Depthwise& d, const DeviceLimits& limits) {
  constexpr int kSums = 64;  // of a thread, and room for the window and the taps beside them
  const auto least = [](const auto& values, int needed) {
    for (const int value : values)
      if (value >= needed) return value;
    return 0;
  };
  const auto valid = [&](const Plan& s) { return check_plan(d, s, limits.shared_bytes_per_block).accepted(); };
  Plan s{1, 4, 8, 1, 1};
  const int whole = least(kColumns, d.out_width);
  if (whole && d.width <= kMostWindow) {
    s.columns = whole;
    s.rows = 1;
    for (const int rows : kRows)
      if (rows * s.columns <= kMostOutputs && (d.out_height % rows == 0 || rows >= d.out_height) &&
          smaller(rows, d.out_height) * d.out_width <= kSums && !is_twin(kRows, rows, d.out_height))
        s.rows = rows;
  } else {
    s.columns = d.columns > 15 ? 28 : 8;
    s.rows = d.columns > 15 ? 2 : 4;
  }
  while (is_twin(kRows, s.rows, d.out_height)) s.rows /= 2;
  while (is_twin(kColumns, s.columns, d.out_width)) s.columns = s.columns == 28 ? 16 : s.columns / 2;
  // Larger strips, where a plane has more of them than a block has threads.
  for (const int columns : kColumns)
    for (const int rows : kRows)
      if (!valid(s) && rows * columns <= kMostOutputs && valid({1, rows, columns, 1, 1}))
        s.rows = rows, s.columns = columns;
  if (!valid(s)) return s;

  const auto larger = [&](int Plan::*member, int factor, const auto& enough) {
    Plan next = s;
    next.*member *= factor;
    while (!enough(s) && valid(next) && shared_bytes(d, next) <= limits.shared_bytes_per_block / 2) {
      s = next;
      next.*member *= factor;
    }
  };
  larger(&Plan::planes, 2,
         [&](const Plan& now) { return threads_of(d, now) >= 128 || groups_in_all(d, now) <= limits.multiprocessors; });
  Plan ahead = s;
  ahead.groups = ahead.buffers = 2;
  if (groups_in_all(d, s) >= 4 * limits.multiprocessors && valid(ahead) &&
      shared_bytes(d, ahead) <= limits.shared_bytes_per_block / 2)
    s = ahead;
  return s;
}

// ---- The launch ----------------------------------------------------------------------------------------------------

__global__ void depthwise_planes_any(const float* input, const float* filter, float* output, Depthwise d, Plan s) {
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
    const dim3 grid(static_cast<unsigned>(ceil_div(groups_in_all(d, s), s.groups)));
    const dim3 block(static_cast<unsigned>(threads_of(d, s)));
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
    p.barriers = ceil_div(groups_in_all(d, s), s.groups) + 2 * groups_in_all(d, s);
    p.flops = problem.flops();
    return p;
  }

  Workspace spread_{*this, "spread filter"};
  CompiledKernel kernel_;
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::DepthwisePlanes)
