#include "common/harness/run/stage_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/harness/check/device_tensors.hpp"
#include "common/harness/check/half_bits.hpp"
#include "common/harness/check/winograd_error.hpp"
#include "common/harness/ladder/settings.hpp"
#include "common/harness/ladder/tuning_log.hpp"
#include "common/harness/run/refusal.hpp"

namespace convladder {
namespace {

/// "4x4"; "2x1" of F(2, 3) down the columns alone; "" where no tiles are transformed.
std::string tile_text(const WinogradForm& form) {
  if (form.m == 0) return "";
  return fmt::format("{}x{}", form.m, form.along_height ? 1 : form.m_across > 0 ? form.m_across : form.m);
}

}  // namespace

std::string describe(const Fault& fault) {
  std::string text = fault.kind;
  if (!fault.file.empty()) text += fmt::format(" at {}:{}", fault.file, fault.line);
  if (!fault.kernel.empty()) text += " in " + fault.kernel;
  if (!fault.other.empty()) text += (fault.kind == "race" ? " with " : ": ") + fault.other;
  return text;
}

std::string configure_stage(const StageInfo& info, Stage& instance, const ConvProblem& problem,
                            const RunOptions& options, std::optional<UsedConfiguration>& used) {
  auto* const stage = dynamic_cast<TunableStage*>(&instance);
  if (!stage) return "";
  const DeviceLimits limits = limits_of(info);
  const std::string_view settings = info.settings.empty() ? std::string_view(options.settings) : info.settings;
  const auto tuned = [&] { return runs_on_host(info) ? std::nullopt : tuned_configuration(info, *stage, problem); };
  Configuration by_name = stage->default_configuration(problem, limits);
  UsedConfiguration chosen;
  if (options.configuration) {
    chosen = {*options.configuration, "given"};
  } else if (!settings.empty() && apply_settings(settings, by_name)) {
    chosen = {stage->decided(problem, limits, by_name), "given"};
  } else if (const auto found = tuned()) {
    chosen = {*found, "tuned"};
  } else {
    chosen = {stage->decided(problem, limits, by_name), "default"};
  }
  const Verdict verdict = stage->check_configuration(problem, limits, chosen.configuration);
  if (!verdict.accepted()) return verdict.reason();
  stage->use(chosen.configuration);
  used = std::move(chosen);
  return "";
}

std::string half_refusal(const StageInfo& stage, const ConvProblem& problem, const std::vector<float>& input,
                         const std::vector<float>& residual) {
  const auto rule = [&](const char* name, const std::vector<float>& values, std::int64_t channels, std::int64_t height,
                        std::int64_t width) -> std::string {
    const std::optional<std::size_t> found = first_beyond(stage.tensors, values);
    if (!found) return "";
    const auto index = static_cast<std::int64_t>(*found);
    return fmt::format("the {} is rounded to {} and has {:.{}e} at ({},{},{},{}), beyond {:.6g}", name,
                       takes_bf16(stage) ? "bf16" : "fp16", values[*found], takes_bf16(stage) ? 6 : 1,
                       index / width / height / channels, index / width / height % channels, index / width % height,
                       index % width, takes_bf16(stage) ? kLargestBf16 : kLargestHalf);
  };
  std::string of_input = rule("input", input, problem.c, problem.h, problem.w);
  return of_input.empty() ? rule("residual", residual, problem.k, problem.p(), problem.q()) : of_input;
}

void StageRun::execute() {
  if (!accepted() || !configure()) return;
  place_tensors();
  if (!prepare()) return;
  if (result_.library.empty()) result_.library = stage_->library();
  errors_ = stage_->error_model(workload_.problem, workload_.tensors.filter.data());
  result_.tile = tile_text(errors_->winograd);
  if (!launch_and_check()) return;
  if (options_.time && has_time()) {
    time_launch();
    if (!measure_product()) {
      result_.reason = "the product alone: " + result_.reason;
      return;
    }
    if (!launch_and_check()) {
      result_.reason = "right before the timing, not after it: " + result_.reason;
      return;
    }
  }
  if (options_.keep_output) result_.output = std::move(output_);
  result_.verified = true;
  result_.status = Status::ok;
}

/// Makes the stage. @return whether no rule forbids the problem
bool StageRun::accepted() {
  std::string rule = device_refusal(*result_.stage);
  if (rule.empty()) {
    stage_.reset(result_.stage->make());
    rule = refusal(*result_.stage, *stage_, workload_.problem, workload_.tensors.filter.data());
  }
  if (rule.empty())
    rule = half_refusal(*result_.stage, workload_.problem, workload_.tensors.input, workload_.tensors.residual);
  if (rule.empty()) return true;
  result_.status = Status::refused;
  result_.reason = std::move(rule);
  return false;
}

/// Chooses what a tunable stage runs with. @return whether no rule forbids it
bool StageRun::configure() {
  std::string rule = configure_stage(*result_.stage, *stage_, workload_.problem, options_, result_.configuration);
  if (rule.empty()) return true;
  result_.status = Status::refused;
  result_.reason = std::move(rule);
  return false;
}

std::unique_ptr<Stage> StageRun::make_another() const {
  std::unique_ptr<Stage> stage(result_.stage->make());
  if (result_.configuration) dynamic_cast<TunableStage&>(*stage).use(result_.configuration->configuration);
  return stage;
}

/// Whether it ran without fault and its result is right. Notes what it saw; a later call replaces what an earlier one
/// noted.
bool StageRun::launch_and_check() {
  poison_output();
  const Observation seen = observe_work([&](Stream stream) { launch(stream); });
  note_observation(seen);
  return check(seen);
}

/// Checks and times the product alone, where the stage has one. @return whether it is right
bool StageRun::measure_product() {
  bool has_product = false;
  poison_output();
  const Observation seen = observe_work([&](Stream stream) { has_product = launch_product(stream); });
  if (!has_product) return true;
  if (!check(seen)) return false;
  time_product();
  return true;
}

bool StageRun::check(const Observation& seen) {
  output_.resize(static_cast<std::size_t>(workload_.problem.output_size()));
  download_output(output_.data());
  result_.check = compare_with_reference();

  std::vector<Fault> faults = seen.faults;
  add_guard_faults(faults);
  if (!faults.empty()) return note_faults(faults);
  if (result_.check->ok) return true;
  result_.status = Status::wrong;
  result_.reason = result_.check->message;
  return false;
}

CheckResult StageRun::compare_with_reference() {
  const WinogradForm& form = errors_->winograd;
  const StageInfo& stage = *result_.stage;
  if (form.m == 0 && !takes_halves(stage) && !takes_bf16(stage) && !takes_bytes(stage)) {
    const SumBound sum{.steps = static_cast<double>(errors_->roundings),
                       .exact = workload_.inputs == InputKind::integers,
                       .spread = errors_->spread,
                       .absolute = error_of_taps(errors_->filter_error)};
    return check_output(workload_.problem, output_, workload_.reference, sum);
  }
  if (!bounds_) {
    WinogradForm way = form;
    if (form.m == 0)
      way.stored = takes_bytes(stage) ? Precision::int8 : takes_bf16(stage) ? Precision::bf16 : Precision::fp16;
    bounds_ = workload_.bounds->of(way, workload_.problem, workload_.tensors, workload_.reference);
  }
  return check_output(workload_.problem, output_, workload_.reference, *bounds_);
}

/// What an output may be off by if each tap that the stage applies is off by `tap`.
double StageRun::error_of_taps(double tap) const {
  if (tap == 0) return 0;
  double largest = 0;
  for (const float value : workload_.tensors.input) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(static_cast<double>(value)));
  }
  return tap * largest * static_cast<double>(workload_.problem.reduction_length());
}

void StageRun::note_observation(const Observation& seen) {
  result_.kernels = seen.kernels;
  result_.lines = seen.lines;
  result_.prediction = stage_->predict(workload_.problem);
  if (result_.backend != "sim") return;
  result_.counters = seen.counters;
  result_.counters->flops = std::max<std::int64_t>(result_.prediction->flops, 0);
}

void StageRun::add_guard_faults(std::vector<Fault>& faults) const {
  const auto add = [&](const char* name) {
    Fault fault;
    fault.kind = "out_of_bounds";
    if (!result_.kernels.empty()) fault.kernel = result_.kernels.front().name;
    fault.other = fmt::format(
        "something wrote just outside '{}'; {} names the line", name,
        runs_on_host(*result_.stage) ? "a build with -fsanitize=address" : "--backend sim or compute-sanitizer");
    faults.push_back(std::move(fault));
  };
  for (const char* name : damaged()) add(name);
  if (!stage_->workspace_intact()) add("workspace");
}

bool StageRun::note_faults(const std::vector<Fault>& faults) {
  result_.faults = faults;
  result_.status = Status::fault;
  result_.reason = describe(faults.front());
  return false;
}

}  // namespace convladder
