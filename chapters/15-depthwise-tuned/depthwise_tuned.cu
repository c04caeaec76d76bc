// 15 depthwise-tuned: a space of schedules, searched.
//
// Since 14: two more primitives, cache and unroll, and no answer by hand to how large the tiles are, which loop is
// outermost, and what is kept where. schedule.cuh has a kernel for every answer; this file has the space.
//
//   1. The knobs: 51,840 combinations.
//   2. The rule that says which of them are valid for a problem and a GPU.
//   3. What runs where nothing was tuned.
//   4. The launch: the kernel compiled for this problem and schedule, or the one compiled with the program.
//
// `lab tune` searches the space.

#include "chapters/15-depthwise-tuned/prediction.hpp"
#include "chapters/15-depthwise-tuned/schedule.cuh"
#include "common/kernel/compiled_kernel.hpp"
#include "common/kernel/tracks/depthwise.hpp"
#include "common/kernel/tracks/depthwise_source.hpp"
#include "common/stage/tunable.hpp"

namespace convladder {

// The kernel that is compiled with the program: its arrays are as large as any schedule needs, and nothing unrolls.
template <>
struct Sizes<Depthwise, Schedule> {
  static constexpr int rows = 8, columns = 4, window = 72, row_unrolling = 1, column_unrolling = 1, batch = 4,
                       parts = 1;
};

namespace {

// 1. In this order they are Schedule's members.
constexpr int kBlockPlanes[] = {1, 2, 4, 8}, kBlockRows[] = {4, 8, 16, 32, 64}, kBlockColumns[] = {16, 32, 64};
constexpr int kThreadRows[] = {1, 2, 4, 8}, kThreadColumns[] = {1, 2, 4};
constexpr int kOrders[] = {kFilterRows, kInputRows};
constexpr int kInputs[] = {kInputCache, kInputRegisters, kInputShared};
constexpr int kFilters[] = {kFilterCache, kFilterConstant, kFilterShared};
constexpr int kUnrolling[] = {0, 1}, kStages[] = {1, 2};
constexpr const char* kOrderWords[] = {"filter-rows", "input-rows"};
constexpr const char* kInputWords[] = {"cache", "registers", "shared"};
constexpr const char* kFilterWords[] = {"cache", "constant", "shared"};
constexpr const char* kUnrollWords[] = {"no", "rows"};

constexpr Knob kKnobs[] = {{"block_planes", kBlockPlanes, 1},
                           {"block_rows", kBlockRows, 4},
                           {"block_columns", kBlockColumns, 32},
                           {"thread_rows", kThreadRows, 1},
                           {"thread_columns", kThreadColumns, 1},
                           {"order", kOrders, kOrderWords, kInputRows},
                           {"input", kInputs, kInputWords, kInputShared},
                           {"filter", kFilters, kFilterWords, kFilterShared},
                           {"unroll", kUnrolling, kUnrollWords, 1},
                           {"stages", kStages, 1}};

Schedule schedule_of(const Configuration& c) {
  return {c["block_planes"], c["block_rows"], c["block_columns"], c["thread_rows"], c["thread_columns"],
          c["order"],        c["input"],      c["filter"],        c["unroll"],      c["stages"]};
}

Configuration configuration_of(const Schedule& s) {
  Configuration c(kKnobs);
  c["block_planes"] = s.block_planes;
  c["block_rows"] = s.block_rows;
  c["block_columns"] = s.block_columns;
  c["thread_rows"] = s.thread_rows;
  c["thread_columns"] = s.thread_columns;
  c["order"] = s.order;
  c["input"] = s.input;
  c["filter"] = s.filter;
  c["unroll"] = s.unroll;
  c["stages"] = s.stages;
  return c;
}

constexpr int kMaxThreads = 1024;
constexpr int kMaxConstant = 16384;  // floats: 64 KB
constexpr int kMaxUnrolled = 4096;   // products of a thread in straight-line code: above it compiling takes long
constexpr int kMaxUnrolledFromCache = 1024;  // the same where each product asks for its pixel

// Whether a smaller value of the knob, half of this one, does the same: it covers the whole plane already.
bool is_twin(int value, int smallest, int needed) { return value > smallest && value / 2 >= needed; }

// Blocks that run: one for each tile. With two stages as many as the GPU has at a time, if a thread takes at most 64
// registers; each then goes from tile to tile.
long long blocks_of(const Depthwise& d, const Schedule& s, const DeviceLimits& limits) {
  const long long tiles = tiles_of(d, s);
  if (s.stages == 1) return tiles;
  constexpr int kRegisters = 65536 / 64, kReserved = 1024;  // of a multiprocessor; bytes of each of its blocks
  const long long by_memory = (limits.shared_bytes_per_block + kReserved) / (shared_floats(d, s) * 4 + kReserved);
  const long long by_threads = kRegisters / threads_of(d, s);
  const long long resident = by_memory < by_threads ? by_memory : by_threads;
  const long long at_once = limits.multiprocessors * (resident > 0 ? resident : 1);
  return tiles < at_once ? tiles : at_once;
}

// 2.
Verdict check_schedule(const Depthwise& d, const Schedule& s, const DeviceLimits& limits) {
  const std::int64_t shared_bytes_per_block = limits.shared_bytes_per_block;
  if (is_twin(s.block_planes, 1, planes(d)) || is_twin(s.block_rows, 4, d.out_height) ||
      is_twin(s.block_columns, 16, d.out_width) || is_twin(s.thread_rows, 1, d.out_height) ||
      is_twin(s.thread_columns, 1, d.out_width))
    return Verdict::refuse("half of it covers all planes, rows or columns already");
  if (s.thread_rows > s.block_rows)
    return Verdict::refuse("a thread has {} rows, its block {}", s.thread_rows, s.block_rows);
  if (threads_of(d, s) > kMaxThreads)
    return Verdict::refuse("a block has at most {} threads; got {}", kMaxThreads, threads_of(d, s));
  if (s.input != kInputCache && window_columns(d, s) > Sizes<Depthwise, Schedule>::window)
    return Verdict::refuse("a window is at most {} columns wide; got {}", Sizes<Depthwise, Schedule>::window,
                           window_columns(d, s));
  if (s.filter == kFilterConstant && d.channels * filter_plane(d) > kMaxConstant)
    return Verdict::refuse("constant memory holds {} taps; got {}", kMaxConstant, d.channels * filter_plane(d));
  if (s.order == kInputRows && window_rows(d, s) > static_cast<long long>(d.rows) * s.thread_rows)
    return Verdict::refuse("a thread would walk over {} rows of input, where its taps need {}", window_rows(d, s),
                           static_cast<long long>(d.rows) * s.thread_rows);
  const std::int64_t floats = shared_bytes_per_block / 4;
  if (s.input == kInputShared && (staged_rows(d, s) > floats || staged_columns(d, s) > floats))
    return Verdict::refuse("a block has {} bytes of shared memory; got a tile of {} by {}", shared_bytes_per_block,
                           staged_rows(d, s), staged_columns(d, s));
  if (shared_floats(d, s) > floats)
    return Verdict::refuse("a block has {} bytes of shared memory; got {}", shared_bytes_per_block,
                           shared_floats(d, s) * 4);
  const long long products = filter_plane(d) * s.thread_rows * s.thread_columns;
  const int most = s.input == kInputCache ? kMaxUnrolledFromCache : kMaxUnrolled;
  if (s.unroll && products > most)
    return Verdict::refuse("at most {} products of a thread are unrolled; got {}", most, products);
  if (tiles_of(d, s) > INT32_MAX) return Verdict::refuse("a grid has at most 2^31 - 1 blocks; got {}", tiles_of(d, s));
  if (s.stages > 1 && s.input != kInputShared) return Verdict::refuse("only tiles in shared memory come in stages");
  if (s.stages > 1 && blocks_of(d, s, limits) == tiles_of(d, s))
    return Verdict::refuse("a block has one tile, and none comes after it: stages=1 does the same");
  return Verdict::accept();
}

// 3. Tiles of one plane, all cached in shared memory; the more outputs there are, the more of them a thread has. These
// are rules of thumb from tuning on an NVIDIA H200. What a problem does not allow is given up, from the most useful to
// the least.
Schedule default_schedule(const Depthwise& d, const DeviceLimits& limits) {
  constexpr long long kFew = 1 << 15, kMany = 1 << 20;
  const long long outputs = planes(d) * output_plane(d);
  Schedule s = schedule_of(Configuration(kKnobs));
  if (outputs >= kMany && d.stride_x == 1) {
    s.block_rows = 32;
    s.block_columns = 64;
    s.thread_rows = d.out_height < 28 ? 2 : 4;
    s.thread_columns = d.out_width < 8 ? 2 : 4;
  } else if (outputs >= kMany) {
    s.block_rows = 8;
    s.thread_rows = 4;  // in one column: neighbours' windows would begin a few words apart, on the same banks
  } else if (outputs >= kFew) {
    s.block_rows = 8;
    s.thread_columns = 2;
  }
  const auto shrink = [](int& value, int smallest, int needed) {
    while (is_twin(value, smallest, needed)) value /= 2;
  };
  shrink(s.block_rows, 4, d.out_height);
  shrink(s.block_columns, 16, d.out_width);
  shrink(s.thread_rows, 1, d.out_height);
  shrink(s.thread_columns, 1, d.out_width);
  // Small planes: several of them make a block of some warps.
  while (s.block_planes < 8 && s.block_planes < planes(d) && threads_of(d, s) < 64) s.block_planes *= 2;
  const auto valid = [&] { return check_schedule(d, s, limits).accepted(); };
  if (!valid()) s.order = kFilterRows;
  if (!valid()) s.unroll = 0;
  if (!valid()) s.thread_rows = s.thread_columns = 1, s.block_rows = 4, s.block_columns = 16;
  if (!valid()) s.input = kInputCache;
  if (!valid()) s.filter = kFilterCache;
  return s;
}

// ---- 4. The launch --------------------------------------------------------------------------------------------------

__constant__ float c_filter[kMaxConstant];

__global__ void __launch_bounds__(kMaxThreads)
    depthwise_any_schedule(const float* input, const float* filter, float* output, Depthwise d, Schedule s) {
  depthwise_scheduled(input, filter, c_filter, output, d, s);
}

// The translation unit that NVRTC compiles: types with the members of Depthwise and Schedule as constants, and a kernel
// for these.
KernelSource source_of(const Depthwise& d, const Schedule& s) {
  KernelSource source;
  source.add(R"(#include "chapters/15-depthwise-tuned/schedule.cuh"
namespace convladder {)");
  source.add_problem(d);
  source.add("struct Point {");
  source.add_knobs(configuration_of(s));
  source.constant("threads", threads_of(d, s));
  source.constant("constant_taps", s.filter == kFilterConstant ? d.channels * filter_plane(d) : 1);
  source.add(R"(};
}
extern "C" {
__constant__ float c_filter[convladder::Point::constant_taps];
__global__ void __launch_bounds__(convladder::Point::threads)
    depthwise_tuned(const float* __restrict__ input, const float* __restrict__ filter, float* __restrict__ output) {
  convladder::depthwise_scheduled(input, filter, c_filter, output, convladder::Problem{}, convladder::Point{});
}
})");
  return source;
}

class DepthwiseTuned final : public TunableStage {
  Verdict check(const ConvProblem& problem, const DeviceLimits& limits) const override {
    const Verdict verdict = check_depthwise_past_plane(problem, 8);
    if (!verdict.accepted()) return verdict;
    const Depthwise d = depthwise_of(problem);
    return check_schedule(d, default_schedule(d, limits), limits);
  }

  Knobs knobs() const override { return kKnobs; }

  Verdict check_configuration(const ConvProblem& problem, const DeviceLimits& limits,
                              const Configuration& configuration) const override {
    return check_schedule(depthwise_of(problem), schedule_of(configuration), limits);
  }

  Configuration default_configuration(const ConvProblem& problem, const DeviceLimits& limits) const override {
    return configuration_of(default_schedule(depthwise_of(problem), limits));
  }

  Schedule schedule() const { return schedule_of(configuration()); }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Depthwise d = depthwise_of(problem);
    const Schedule s = schedule();
    kernel_.compile(source_of(d, s).text, "depthwise_tuned");
    if (s.filter != kFilterConstant) return;
    const auto count = static_cast<std::size_t>(problem.filter_size());
    if (kernel_.compiled())
      kernel_.upload_constant("c_filter", tensors.filter, count, stream);
    else
      upload_constant(c_filter, tensors.filter, count, stream);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Depthwise d = depthwise_of(problem);
    const Schedule s = schedule();
    const dim3 grid(static_cast<unsigned>(blocks_of(d, s, device_limits()))), block(threads_of(d, s));
    const auto bytes = static_cast<std::size_t>(shared_floats(d, s) * 4);
    if (kernel_.compiled())
      kernel_.launch(grid, block, bytes, stream)(tensors.input, tensors.filter, tensors.output);
    else
      ::convladder::launch(depthwise_any_schedule, grid, block, bytes, stream)(tensors.input, tensors.filter,
                                                                               tensors.output, d, s);
  }

  Prediction predict(const ConvProblem& problem) const override {
    return prediction_of(depthwise_of(problem), schedule());
  }

  CompiledKernel kernel_;
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::DepthwiseTuned)
