#include "common/harness/commands/filter_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>

#include "common/harness/device/device.hpp"
#include "common/harness/device/print_stderr.hpp"
#include "common/harness/files/errors.hpp"
#include "common/harness/files/spelling.hpp"
#include "common/harness/run/refusal.hpp"

namespace convladder {
namespace {

/// Operations that the simulator does in a second, about; by stage 09 twice as many.
constexpr double kSimulatedPerSecond = 20e6;
/// A wait worth a warning.
constexpr double kLongSeconds = 3;

std::vector<const StageInfo*> stages_with(TrackFlag flag) {
  std::vector<const StageInfo*> found;
  for (const StageInfo& stage : stages()) {
    if (track_of(stage).*flag) found.push_back(&stage);
  }
  return found;
}

}  // namespace

void require_filter_name(std::string_view name, const std::vector<std::string_view>& names) {
  if (std::find(names.begin(), names.end(), name) != names.end()) return;
  const std::string_view nearest = nearest_name(name, names);
  throw UsageError(fmt::format("unknown filter {}{}; the filters are {}", in_quotes(name),
                               nearest.empty() ? "" : fmt::format(", did you mean {}?", nearest),
                               fmt::join(names, ", ")));
}

void refuse_option(bool given, std::string_view option, std::string_view name, std::string_view whose) {
  if (!given) return;
  throw UsageError(fmt::format("{} does not belong to {}; leave it out (it is for {})", option, name, whose));
}

const StageInfo* chosen_stage(const std::optional<std::string>& name, TrackFlag flag, std::string_view command) {
  if (!name) return nullptr;
  const StageInfo& stage = find_stage(*name);
  if (track_of(stage).*flag) return &stage;
  std::vector<std::string_view> folders;
  for (const StageInfo* other : stages_with(flag)) folders.push_back(other->folder);
  throw UsageError(
      fmt::format("{} is of the track {}; {} takes {}", stage.folder, stage.track, command, fmt::join(folders, ", ")));
}

std::string filters_refusal(const StageInfo& stage, const ConvProblem& problem,
                            const std::vector<std::vector<float>>& filters) {
  for (const std::vector<float>& taps : filters) {
    std::string rule = refusal(stage, problem, taps.data());
    if (!rule.empty()) return rule;
  }
  return "";
}

const StageInfo& stage_for(const std::optional<std::string>& name, TrackFlag flag, std::string_view command,
                           const ConvProblem& problem, const std::vector<std::vector<float>>& filters) {
  const StageInfo* stage = chosen_stage(name, flag, command);
  if (!stage) {
    for (const StageInfo* candidate : stages_with(flag)) {
      if (!stage || filters_refusal(*candidate, problem, filters).empty()) stage = candidate;
    }
  }
  if (!stage) throw UsageError(fmt::format("this program has no stage that {} takes; build all of it", command));
  if (const std::string rule = device_refusal(*stage); !rule.empty()) throw MachineError(rule);
  if (const std::string rule = filters_refusal(*stage, problem, filters); !rule.empty())
    throw RefusedError(fmt::format("{} refuses: {}", stage->folder, rule));
  return *stage;
}

void warn_of_the_wait(const StageInfo& stage, const ConvProblem& problem, std::size_t runs) {
  if (backend() != Backend::sim) return;
  const std::unique_ptr<Stage> instance(stage.make());
  const std::int64_t claimed = instance->predict(problem).flops;
  const double operations =
      static_cast<double>((claimed > 0 ? claimed : problem.flops()) * static_cast<std::int64_t>(runs));
  const double seconds = operations / kSimulatedPerSecond;
  if (seconds < kLongSeconds) return;
  print_stderr("note: the simulator does {:.0f} million operations for this, in about {:.0f} seconds\n",
               operations / 1e6, std::ceil(seconds));
}

}  // namespace convladder
