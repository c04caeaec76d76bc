#include "common/runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <utility>

#include "common/timing.hpp"
#include "common/tuning_log.hpp"

namespace convladder {
namespace {

constexpr double kGroupUs = 2000;     // how long one replay of a timed graph should last
constexpr std::int64_t kColdL2s = 3;  // cold buffers together exceed the L2 cache this many times
constexpr std::int64_t kMaxCopies = 64;

std::size_t bytes_of(std::int64_t floats) { return static_cast<std::size_t>(floats) * sizeof(float); }

/// The three tensors in device memory, the input and filter filled in.
struct DeviceTensors {
  DeviceBuffer input, filter, output;

  explicit DeviceTensors(const Workload& workload)
      : input(bytes_of(workload.problem.input_size()), "input"),
        filter(bytes_of(workload.problem.filter_size()), "filter"),
        output(bytes_of(workload.problem.output_size()), "output") {
    input.upload(workload.tensors.input.data());
    filter.upload(workload.tensors.filter.data());
  }

  Tensors view() const { return {input.floats(), filter.floats(), output.floats()}; }
};

std::string describe(const Fault& fault) {
  std::string text = fault.kind;
  if (!fault.file.empty()) text += fmt::format(" at {}:{}", fault.file, fault.line);
  if (!fault.kernel.empty()) text += " in " + fault.kernel;
  if (!fault.other.empty()) text += (fault.kind == "race" ? " with " : ": ") + fault.other;
  return text;
}

/// One stage on one workload, from its preparation to its last check, noted down in a RunResult.
class StageRun {
 public:
  StageRun(const Workload& workload, const RunOptions& options, RunResult& result)
      : workload_(workload), options_(options), result_(result) {}

  void execute() {
    if (!accepted()) return;
    configure();
    tensors_.emplace(workload_);
    if (!prepare() || !launch_and_check()) return;
    if (backend() == Backend::gpu && options_.time) {
      time_hot();
      if (options_.cold) time_cold();
      if (!launch_and_check()) {
        result_.reason = "right before the timing, not after it: " + result_.reason;
        return;
      }
    }
    result_.verified = true;
    result_.status = Status::ok;
  }

 private:
  bool accepted() {
    std::string rule = refusal(*result_.stage, workload_.problem, workload_.tensors.filter.data());
    if (rule.empty()) return true;
    result_.status = Status::refused;
    result_.reason = std::move(rule);
    return false;
  }

  void configure() {
    const std::unique_ptr<Stage> stage(result_.stage->make());
    if (const auto* tunable = dynamic_cast<const TunableStage*>(stage.get())) choose_configuration(*tunable);
    stage_ = make_stage();
  }

  void choose_configuration(const TunableStage& stage) {
    UsedConfiguration& used = result_.configuration.emplace();
    used.knobs = stage.knobs();
    if (options_.configuration) {
      used.configuration = *options_.configuration;
      used.origin = "given";
    } else if (const auto tuned = tuned_configuration(*result_.stage, stage, workload_.problem)) {
      used.configuration = *tuned;
      used.origin = "tuned";
    } else {
      used.configuration = stage.default_configuration(workload_.problem, device_limits());
      used.origin = "default";
    }
  }

  std::unique_ptr<Stage> make_stage() const {
    std::unique_ptr<Stage> stage(result_.stage->make());
    if (result_.configuration) dynamic_cast<TunableStage&>(*stage).use(result_.configuration->configuration);
    return stage;
  }

  bool prepare() {
    const auto work = [&](Stream stream) { stage_->prepare(workload_.problem, tensors_->view(), stream); };
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
    run_and_wait([&](Stream stream) { other->prepare(workload_.problem, tensors_->view(), stream); });
  }

  void launch(Stream stream) { stage_->launch(workload_.problem, tensors_->view(), stream); }

  /// Whether it ran without fault and its result is right. Notes what it saw; a later call replaces what an earlier
  /// one noted.
  bool launch_and_check() {
    tensors_->output.poison();
    Observation seen = observe([&](Stream stream) { launch(stream); }, options_.lines);
    note_observation(seen);
    std::vector<float> output(static_cast<std::size_t>(workload_.problem.output_size()));
    tensors_->output.download(output.data());
    const ErrorModel model{.steps = static_cast<double>(stage_->roundings(workload_.problem)),
                           .exact = workload_.inputs == InputKind::integers,
                           .spread = stage_->errors_spread(),
                           .absolute = filter_error()};
    result_.check = check_output(workload_.problem, output, workload_.reference, model);
    if (options_.keep_output) result_.output = std::move(output);

    add_guard_faults(seen.faults);
    if (!seen.faults.empty()) return note_faults(seen.faults);
    if (result_.check->ok) return true;
    result_.status = Status::wrong;
    result_.reason = result_.check->message;
    return false;
  }

  /// What an output may be off by if the stage applies other taps than it was given.
  double filter_error() const {
    const double tap = stage_->filter_error(workload_.problem, workload_.tensors.filter.data());
    if (tap == 0) return 0;
    double largest = 0;
    for (const float value : workload_.tensors.input) {
      if (std::isfinite(value)) largest = std::max(largest, std::abs(static_cast<double>(value)));
    }
    return tap * largest * static_cast<double>(workload_.problem.reduction_length());
  }

  void note_observation(const Observation& seen) {
    result_.kernels = seen.kernels;
    result_.lines = seen.lines;
    result_.prediction = stage_->predict(workload_.problem);
    if (backend() != Backend::sim) return;
    result_.counters = seen.counters;
    result_.counters->flops = std::max<std::int64_t>(result_.prediction->flops, 0);
  }

  void add_guard_faults(std::vector<Fault>& faults) const {
    const auto add = [&](const char* name) {
      Fault fault;
      fault.kind = "out_of_bounds";
      if (!result_.kernels.empty()) fault.kernel = result_.kernels.front().name;
      fault.other =
          fmt::format("something wrote just outside '{}'; --backend sim or compute-sanitizer names the line", name);
      faults.push_back(std::move(fault));
    };
    if (!tensors_->input.guards_intact()) add("input");
    if (!tensors_->filter.guards_intact()) add("filter");
    if (!tensors_->output.guards_intact()) add("output");
    if (!stage_->workspace_intact()) add("workspace");
  }

  bool note_faults(const std::vector<Fault>& faults) {
    result_.faults = faults;
    result_.status = Status::fault;
    result_.reason = describe(faults.front());
    return false;
  }

  TimeSummary time(const std::vector<std::function<void(Stream)>>& launches, const Sampling& sampling) const {
    const int rounds = std::max(1, repetitions_for(launches.front(), kGroupUs) / static_cast<int>(launches.size()));
    GraphTimer timer(launches, rounds);
    const TimeSeries series{sampling([&] { return timer.sample(); })};
    return {series.median(), series.min(), series.spread()};
  }

  void time_hot() {
    result_.time_us = time({[&](Stream stream) { launch(stream); }}, options_.sampling);
  }

  void time_cold() {
    const auto footprint =
        static_cast<std::int64_t>(tensors_->input.bytes() + tensors_->filter.bytes() + tensors_->output.bytes());
    const std::int64_t copies = std::max<std::int64_t>(2, kColdL2s * device_info().l2_bytes / footprint + 1);
    if (copies > kMaxCopies) {
      result_.cold_unavailable =
          fmt::format("{} copies of the tensors ({} bytes) do not exceed the L2 cache", kMaxCopies, footprint);
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
      Copy& copy = copies.emplace_back(Copy{DeviceTensors(workload_), make_stage()});
      run_and_wait([&](Stream stream) { copy.stage->prepare(workload_.problem, copy.tensors.view(), stream); });
      launches.push_back(
          [this, &copy](Stream stream) { copy.stage->launch(workload_.problem, copy.tensors.view(), stream); });
    }
    result_.time_cold_us = time(launches, take_samples);
  }

  const Workload& workload_;
  const RunOptions& options_;
  RunResult& result_;
  std::unique_ptr<Stage> stage_;
  std::optional<DeviceTensors> tensors_;
};

RunResult blank(const StageInfo& stage, const ConvProblem& problem) {
  RunResult result;
  result.stage = &stage;
  result.problem = problem;
  result.backend = backend() == Backend::gpu ? "gpu" : "sim";
  result.device = device_info().name;
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
  std::vector<double> samples;
  for (int i = 0; i < kSamples; ++i) samples.push_back(sample());
  return samples;
}

RunResult run_stage(const StageInfo& stage, const Workload& workload, const RunOptions& options) {
  RunResult result = blank(stage, workload.problem);
  result.workload_name = workload.name;
  try {
    StageRun(workload, options, result).execute();
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
  const Verdict verdict = instance->check(problem, device_limits());
  if (!verdict.accepted() || !filter) return verdict.reason();
  return instance->check_filter(problem, filter).reason();
}

std::string device_refusal(const StageInfo& stage) {
  const int have = device_limits().compute_capability;
  if (required_capability(stage) <= have) return "";
  return fmt::format("{} needs a GPU of {} or later and {} is sm_{}; use --backend sim", stage.name,
                     stage.requires_capability, device_info().name, have);
}

}  // namespace convladder
