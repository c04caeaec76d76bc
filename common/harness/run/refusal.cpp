#include "common/harness/run/refusal.hpp"

#include <fmt/format.h>

#include <memory>

#include "common/harness/device/host.hpp"
#include "common/harness/files/errors.hpp"
#include "common/harness/files/problem_io.hpp"
#include "common/harness/files/spelling.hpp"

namespace convladder {

const Gpu& gpu_named(std::string_view name, std::string_view hint) {
  if (const Gpu* const gpu = find_gpu(name)) return *gpu;
  std::string names;
  for (const Gpu& gpu : gpus()) names += (names.empty() ? "" : ", ") + std::string(gpu.name);
  throw UsageError(fmt::format("--gpu must be one of {}; got {}{}", names, in_quotes(name), hint));
}

std::string refusal(const StageInfo& stage, const ConvProblem& problem, const float* filter) {
  std::string rule = device_refusal(stage);
  if (!rule.empty()) return rule;
  return refusal(stage, *std::unique_ptr<Stage>(stage.make()), problem, filter);
}

std::string refusal(const StageInfo& stage, const Stage& instance, const ConvProblem& problem, const float* filter) {
  if (problem.epilogue != Epilogue::none && !instance.has_epilogue())
    return fmt::format("the epilogue must be none; got {}", to_string(problem.epilogue));
  const Verdict verdict = instance.check(problem, limits_of(stage));
  if (!verdict.accepted() || !filter) return verdict.reason();
  return instance.check_filter(problem, filter).reason();
}

DeviceInfo device_of(const StageInfo& stage) { return runs_on_host(stage) ? host_info() : device_info(); }

DeviceLimits limits_of(const StageInfo& stage) { return runs_on_host(stage) ? DeviceLimits{0, 0} : device_limits(); }

std::string device_refusal(const StageInfo& stage) {
  if (runs_on_host(stage)) return "";
  const int have = device_limits().compute_capability;
  if (runs_on(stage, have)) return "";
  return fmt::format("{} needs a GPU of {}{} and {} is sm_{}{}", stage.name, stage.requires_capability,
                     stage.requires_capability.ends_with('a') ? "" : " or later", device_info().name, have,
                     backend() == Backend::gpu ? "; use --backend sim" : "");
}

}  // namespace convladder
