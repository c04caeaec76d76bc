#include "common/harness/run/device_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "common/harness/check/device_tensors.hpp"
#include "common/harness/check/quantise.hpp"
#include "common/harness/device/timing.hpp"
#include "common/harness/run/stage_run.hpp"

namespace convladder {
namespace {

constexpr double kGroupUs = 2000;      // how long one replay of a timed graph should last
constexpr double kLongLaunchUs = 5e4;  // what a warm L2 saves of it is too little to measure

/// @param repetitions launches that fill a replay  @param conditions what was seen of the GPU is noted here; of a
/// second time only what slowed it
TimeSummary time(const std::vector<std::function<void(Stream)>>& launches, int repetitions, const Sampling& sampling,
                 std::optional<GpuConditions>& conditions) {
  const int rounds = std::max(1, repetitions / static_cast<int>(launches.size()));
  GraphTimer timer(launches, rounds);
  const TimeSeries series{sampling([&] { return timer.sample(); })};
  if (const std::optional<GpuConditions> seen = timer.conditions(); seen && conditions) {
    conditions->clock_reasons |= seen->clock_reasons;
    conditions->repeated += seen->repeated;
    conditions->slowed += seen->slowed;
  } else if (seen) {
    conditions = seen;
  }
  return {series.median(), series.min(), series.spread(), series.groups};
}

/// On the program's device: a GPU or the simulator.
class DeviceRun final : public StageRun {
 public:
  using StageRun::StageRun;

 private:
  Tensors tensors() const override { return tensors_->view(); }

  void place_tensors() override {
    const StageInfo& stage = *result_.stage;
    const float output_step = takes_bytes(stage) ? int8_step(workload_.reference.output) : 1;
    tensors_.emplace(workload_.problem, stage.tensors, workload_.tensors, output_step);
  }

  bool prepare() override {
    const auto work = [&](Stream stream) { stage_->prepare(workload_.problem, tensors(), stream); };
    if (backend() == Backend::gpu) {
      warm_up();
      result_.prepare_us = run_and_wait(work);
    } else if (const Observation seen = observe(work, false); !seen.faults.empty()) {
      return note_faults(seen.faults);
    }
    result_.workspace_bytes = stage_->workspace_bytes();
    return true;
  }

  /// The first use of a module loads it; that is no part of preparing. Another instance uses it, for what is timed is
  /// what an instance prepares once.
  void warm_up() {
    const std::unique_ptr<Stage> other = make_another();
    run_and_wait([&](Stream stream) { other->prepare(workload_.problem, tensors(), stream); });
  }

  void poison_output() override { tensors_->poison_output(); }

  Observation observe_work(const std::function<void(Stream)>& work) override { return observe(work, options_.lines); }

  void download_output(float* output) const override { tensors_->download_output(output); }

  std::vector<const char*> damaged() const override { return tensors_->damaged(); }

  bool has_time() const override { return backend() == Backend::gpu; }

  void time_launch() override {
    const auto work = [&](Stream stream) { launch(stream); };
    repetitions_ = repetitions_for(work, kGroupUs);
    result_.time_us = time({work}, repetitions_, options_.sampling, result_.gpu);
    if (options_.cold) time_cold();
  }

  void time_product() override {
    const auto work = [&](Stream stream) { launch_product(stream); };
    result_.time_without_transform_us = time({work}, repetitions_for(work, kGroupUs), take_samples, result_.gpu);
  }

  void time_cold() {
    if (result_.time_us->median > kLongLaunchUs) {
      result_.cold_unavailable = "a launch takes so long that what L2 holds at its start does not matter";
      return;
    }
    const std::int64_t footprint = tensors_->bytes();
    const std::int64_t copies = cold_copies(footprint, device_info().l2_bytes);
    if (copies > kMaxColdCopies) {
      result_.cold_unavailable =
          fmt::format("{} copies of the tensors ({} bytes) do not exceed the L2 cache", kMaxColdCopies, footprint);
      return;
    }
    try {
      time_copies(static_cast<std::size_t>(copies));
    } catch (const MachineError& error) {
      result_.cold_unavailable = error.what();
    }
  }

  void time_copies(std::size_t count) {
    struct Copy {
      DeviceTensors tensors;
      std::unique_ptr<Stage> stage;
    };
    std::vector<Copy> copies;
    copies.reserve(count);  // the launches below point into it
    std::vector<std::function<void(Stream)>> launches;
    for (std::size_t i = 0; i < count; ++i) {
      Copy& copy = copies.emplace_back(Copy{tensors_->copy(), make_another()});
      run_and_wait([&](Stream stream) { copy.stage->prepare(workload_.problem, copy.tensors.view(), stream); });
      launches.push_back(
          [this, &copy](Stream stream) { copy.stage->launch(workload_.problem, copy.tensors.view(), stream); });
    }
    result_.time_cold_us = time(launches, repetitions_, take_samples, result_.gpu);
  }

  std::optional<DeviceTensors> tensors_;
  int repetitions_ = 1;  ///< launches that fill a replay
};

}  // namespace

void run_on_device(const Workload& workload, const RunOptions& options, RunResult& result) {
  DeviceRun(workload, options, result).execute();
}

}  // namespace convladder
