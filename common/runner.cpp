#include "common/runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <utility>

#include "common/device_tensors.hpp"
#include "common/host_run.hpp"
#include "common/quantise.hpp"
#include "common/stage_run.hpp"
#include "common/timing.hpp"

namespace convladder {
namespace {

constexpr double kGroupUs = 2000;  // how long one replay of a timed graph should last
constexpr std::size_t kLeastSamples = 5;
constexpr std::chrono::seconds kSamplingTime{1};  // then kLeastSamples samples will do

TimeSummary time(const std::vector<std::function<void(Stream)>>& launches, const Sampling& sampling) {
  const int rounds = std::max(1, repetitions_for(launches.front(), kGroupUs) / static_cast<int>(launches.size()));
  GraphTimer timer(launches, rounds);
  const TimeSeries series{sampling([&] { return timer.sample(); })};
  return {series.median(), series.min(), series.spread()};
}

/// On the program's device: a GPU or the simulator.
class DeviceRun final : public StageRun {
 public:
  using StageRun::StageRun;

 private:
  Tensors tensors() const override { return tensors_->view(); }

  void place_tensors() override { tensors_.emplace(make_tensors()); }

  DeviceTensors make_tensors() const {
    const HostTensors& host = workload_.tensors;
    const StageInfo& stage = *result_.stage;
    const Elements elements = takes_halves(stage)      ? Elements::halves
                              : takes_bytes(stage)     ? Elements::bytes
                              : stage.layout == "NHWC" ? Elements::floats_nhwc
                                                       : Elements::floats;
    const float output_step = takes_bytes(stage) ? int8_step(workload_.reference.output) : 1;
    return DeviceTensors(workload_.problem, elements, host.input.data(), host.filter.data(), output_step);
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

  /// The first use of a module loads it; that is no part of preparing.
  void warm_up() {
    const std::unique_ptr<Stage> other = make_stage();
    run_and_wait([&](Stream stream) { other->prepare(workload_.problem, tensors(), stream); });
  }

  void poison_output() override { tensors_->poison_output(); }

  Observation observe_work(const std::function<void(Stream)>& work) override { return observe(work, options_.lines); }

  void download_output(float* output) const override { tensors_->download_output(output); }

  std::vector<const char*> damaged() const override { return tensors_->damaged(); }

  bool has_time() const override { return backend() == Backend::gpu; }

  void time_launch() override {
    result_.time_us = time({[&](Stream stream) { launch(stream); }}, options_.sampling);
    if (options_.cold) time_cold();
  }

  void time_product() override {
    result_.time_without_transform_us = time({[&](Stream stream) { launch_product(stream); }}, take_samples);
  }

  void time_cold() {
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
      Copy& copy = copies.emplace_back(Copy{make_tensors(), make_stage()});
      run_and_wait([&](Stream stream) { copy.stage->prepare(workload_.problem, copy.tensors.view(), stream); });
      launches.push_back(
          [this, &copy](Stream stream) { copy.stage->launch(workload_.problem, copy.tensors.view(), stream); });
    }
    result_.time_cold_us = time(launches, take_samples);
  }

  std::optional<DeviceTensors> tensors_;
};

RunResult blank(const StageInfo& stage, const ConvProblem& problem) {
  RunResult result;
  result.stage = &stage;
  result.problem = problem;
  result.backend = runs_on_host(stage) ? "cpu" : backend() == Backend::gpu ? "gpu" : "sim";
  result.device = device_of(stage).name;
  return result;
}

}  // namespace

Workload make_workload(std::string name, const ConvProblem& problem, InputKind inputs, FilterForm filter,
                       std::uint64_t seed) {
  Workload workload{std::move(name), problem, inputs, make_inputs(problem, inputs, filter, seed), {}};
  workload.reference = convolve_reference(problem, workload.tensors.input, workload.tensors.filter);
  return workload;
}

const char* to_string(Status status) {
  switch (status) {
    case Status::ok:
      return "ok";
    case Status::wrong:
      return "wrong";
    case Status::fault:
      return "fault";
    case Status::refused:
      return "refused";
    case Status::error:
      return "error";
  }
  throw std::logic_error("not a status");
}

std::vector<const CounterField*> broken_claims(const Counters& counters, const Prediction& prediction) {
  std::vector<const CounterField*> broken;
  for (const CounterField& field : kCounterFields) {
    const std::int64_t claim = prediction.*field.member;
    if (claim >= 0 && claim != counters.*field.member) broken.push_back(&field);
  }
  return broken;
}

std::vector<double> take_samples(const std::function<double()>& sample) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  std::vector<double> samples;
  while (samples.size() < kLeastSamples || (samples.size() < kSamples && Clock::now() - start < kSamplingTime))
    samples.push_back(sample());
  return samples;
}

RunResult run_stage(const StageInfo& stage, const Workload& workload, const RunOptions& options) {
  RunResult result = blank(stage, workload.problem);
  result.workload_name = workload.name;
  try {
    if (runs_on_host(stage)) {
      run_on_host(workload, options, result);
    } else {
      DeviceRun(workload, options, result).execute();
    }
  } catch (const DeviceError& error) {
    result.status = Status::error;
    result.reason = error.what();
  }
  return result;
}

RunResult refused(const StageInfo& stage, const ConvProblem& problem, std::string rule) {
  RunResult result = blank(stage, problem);
  result.status = Status::refused;
  result.reason = std::move(rule);
  return result;
}

std::string refusal(const StageInfo& stage, const ConvProblem& problem, const float* filter) {
  std::string rule = device_refusal(stage);
  if (!rule.empty()) return rule;
  const std::unique_ptr<Stage> instance(stage.make());
  const Verdict verdict = instance->check(problem, limits_of(stage));
  if (!verdict.accepted() || !filter) return verdict.reason();
  return instance->check_filter(problem, filter).reason();
}

DeviceInfo device_of(const StageInfo& stage) { return runs_on_host(stage) ? host_info() : device_info(); }

DeviceLimits limits_of(const StageInfo& stage) { return runs_on_host(stage) ? DeviceLimits{0, 0} : device_limits(); }

std::string device_refusal(const StageInfo& stage) {
  if (runs_on_host(stage)) return "";
  const int have = device_limits().compute_capability;
  if (runs_on(stage, have)) return "";
  return fmt::format("{} needs a GPU of {}{} and {} is sm_{}; use --backend sim", stage.name, stage.requires_capability,
                     stage.requires_capability.ends_with('a') ? "" : " or later", device_info().name, have);
}

}  // namespace convladder
