#include "common/harness/run/host_run.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>
#include <string_view>

#include "common/harness/run/stage_run.hpp"

namespace convladder {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kAlignment = 64;        // of a cache line, and of the longest vector
constexpr std::size_t kGuardFloats = 1024;    // of each guard band; a multiple of the alignment
constexpr std::uint32_t kGuard = 0xFFFFFFFF;  // a NaN that arithmetic does not make
constexpr double kGroupUs = 2000;             // how long one sample should last
constexpr int kMostSamples = 20, kLeastSamples = 3;
constexpr double kEnoughUs = 300'000;     // of all samples together
constexpr double kTooLongUs = 3'000'000;  // then fewer than kLeastSamples will do

constexpr double kShared = 50;  // involuntary waits for a core, a second, that only other programs can cause

/// Floats with a guard band on either side.
class HostBuffer {
 public:
  explicit HostBuffer(std::int64_t count) : count_(static_cast<std::size_t>(count)) {
    const std::size_t bytes = (count_ + 2 * kGuardFloats) * sizeof(float);
    memory_.reset(
        static_cast<float*>(std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment)));
    if (!memory_) throw std::bad_alloc();
    write_guards();
  }
  explicit HostBuffer(const std::vector<float>& values) : HostBuffer(static_cast<std::int64_t>(values.size())) {
    std::copy(values.begin(), values.end(), floats());
  }

  float* floats() const { return memory_.get() + kGuardFloats; }
  std::size_t count() const { return count_; }

  void poison() {
    fill(floats(), count_, kPoison);
    write_guards();
  }
  bool guards_intact() const { return intact(memory_.get()) && intact(floats() + count_); }

 private:
  struct Free {
    void operator()(float* memory) const { std::free(memory); }
  };

  static void fill(float* begin, std::size_t count, std::uint32_t word) {
    const auto value = std::bit_cast<float>(word);
    std::fill_n(begin, count, value);
  }
  static bool intact(const float* band) {
    return std::all_of(band, band + kGuardFloats,
                       [](const float& value) { return std::bit_cast<std::uint32_t>(value) == kGuard; });
  }
  void write_guards() {
    fill(memory_.get(), kGuardFloats, kGuard);
    fill(floats() + count_, kGuardFloats, kGuard);
  }

  std::size_t count_;
  std::unique_ptr<float, Free> memory_;
};

template <class Work>
double time_of(const Work& work) {
  const Clock::time_point start = Clock::now();
  work();
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

/// How often another program took a core from this one so far.
std::int64_t interruptions() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nivcsw;
}

class HostRun final : public StageRun {
 public:
  using StageRun::StageRun;

 private:
  /// The three tensors, the input and filter filled in.
  struct HostMemory {
    HostBuffer input, filter, output;

    explicit HostMemory(const Workload& workload)
        : input(workload.tensors.input), filter(workload.tensors.filter), output(workload.problem.output_size()) {}
  };

  Tensors tensors() const override {
    return {memory_->input.floats(), memory_->filter.floats(), memory_->output.floats()};
  }

  void place_tensors() override { memory_.emplace(workload_); }

  bool prepare() override {
    result_.prepare_us = time_of([&] { stage_->prepare(workload_.problem, tensors(), nullptr); });
    result_.workspace_bytes = stage_->workspace_bytes();
    return true;
  }

  void poison_output() override { memory_->output.poison(); }

  Observation observe_work(const std::function<void(Stream)>& work) override {
    work(nullptr);
    return {};
  }

  void download_output(float* output) const override {
    std::memcpy(output, memory_->output.floats(), memory_->output.count() * sizeof(float));
  }

  std::vector<const char*> damaged() const override {
    std::vector<const char*> names;
    if (!memory_->input.guards_intact()) names.push_back("input");
    if (!memory_->filter.guards_intact()) names.push_back("filter");
    if (!memory_->output.guards_intact()) names.push_back("output");
    return names;
  }

  bool has_time() const override { return true; }

  void time_launch() override {
    result_.time_us = time_on_host(result_.stage->folder, [&] { launch(nullptr); });
    result_.cold_unavailable = "on the CPU the caches are left as the launch before leaves them";
  }

  void time_product() override {
    result_.time_without_transform_us = time_on_host(result_.stage->folder, [&] { launch_product(nullptr); });
  }

  std::optional<HostMemory> memory_;
};

}  // namespace

TimeSummary time_on_host(std::string_view what, const std::function<void()>& launch) {
  const std::int64_t before = interruptions();
  const double once = time_of(launch);
  const int repetitions = static_cast<int>(std::clamp(kGroupUs / std::max(once, 0.1), 1.0, 1000.0));
  TimeSeries series;
  double total = 0;
  const auto enough = [&] {
    const int count = static_cast<int>(series.groups.size());
    return count >= kMostSamples || total >= kTooLongUs || (count >= kLeastSamples && total >= kEnoughUs);
  };
  do {
    const double sample = time_of([&] {
      for (int i = 0; i < repetitions; ++i) launch();
    });
    total += sample;
    series.groups.push_back(sample / repetitions);
  } while (!enough());
  const double rate = static_cast<double>(interruptions() - before) / total * 1e6;
  if (rate > kShared)
    fmt::print(
        stderr,
        "warning: other programs took this machine's cores {:.0f} times a second from {}: its times are too long\n",
        rate, what);
  return {series.median(), series.min(), series.spread(), series.groups};
}

void run_on_host(const Workload& workload, const RunOptions& options, RunResult& result) {
  HostRun(workload, options, result).execute();
}

}  // namespace convladder
