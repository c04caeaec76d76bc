#include "common/harness/commands/bench_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "common/harness/baselines/rows_beside.hpp"
#include "common/harness/baselines/settings_rows.hpp"
#include "common/harness/device/print_stderr.hpp"
#include "common/harness/files/errors.hpp"
#include "common/harness/files/problem_io.hpp"
#include "common/harness/files/spelling.hpp"
#include "common/harness/run/refusal.hpp"
#include "common/harness/run/user_problem.hpp"

namespace convladder {
namespace {

bool contains(const std::vector<std::string>& list, std::string_view item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

std::vector<std::string> all_tracks() {
  std::vector<std::string> tracks;
  for (const StageInfo& stage : stages())
    if (!contains(tracks, stage.track)) tracks.emplace_back(stage.track);
  return tracks;
}

[[noreturn]] void throw_unknown_workload(const std::string& name, const std::vector<std::string>& tracks, Backend on) {
  std::vector<std::string> known;
  for (const std::string& track : tracks)
    for (const NamedWorkload& workload : workloads_of(track, on)) known.push_back(in_quotes(workload.name));
  throw UsageError(
      fmt::format("unknown workload {}; the workloads are {}, or 'all'", in_quotes(name), fmt::join(known, ", ")));
}

std::vector<std::string> tracks_of(const std::vector<const StageInfo*>& stages) {
  std::vector<std::string> tracks;
  for (const StageInfo* stage : stages)
    if (!contains(tracks, stage->track)) tracks.emplace_back(stage->track);
  return tracks;
}

/// The rows that stand below stages of these tracks, of the type that was asked for: none below stages that were asked
/// for by name.
void add_rows_beside(PlannedWorkload& planned, const BenchCommand& command, const std::vector<std::string>& tracks,
                     Backend on) {
  if (!command.stages.empty()) return;
  for (const std::string& track : tracks)
    for (const StageInfo* row : rows_beside(track, on)) {
      if (command.dtype && row->dtype != *command.dtype) continue;
      const auto same = [&](const StageInfo* other) { return other->name == row->name; };  // beside another track, too
      if (std::none_of(planned.stages.begin(), planned.stages.end(), same)) planned.stages.push_back(row);
    }
}

/// What the ratios over previous stages need, and the plan does not have.
void add_followed(PlannedWorkload& planned) {
  const auto is_in = [](const std::vector<const StageInfo*>& list, const StageInfo* stage) {
    return std::find(list.begin(), list.end(), stage) != list.end();
  };
  for (const StageInfo* stage : planned.stages) {
    for (const StageInfo* previous : previous_configurations(*stage))
      if (!(planned.without_ablations && is_ablation(*previous)) && !is_in(planned.stages, previous) &&
          !is_in(planned.followed, previous))
        planned.followed.push_back(previous);
  }
}

/// The stages of the named tracks on their workloads.
std::vector<PlannedWorkload> plan_of_tracks(const BenchCommand& command, const std::vector<const StageInfo*>& chosen,
                                            Backend on) {
  const std::vector<std::string> tracks = tracks_of(chosen);
  std::vector<PlannedWorkload> planned;
  std::set<std::string> found;
  for (const std::string& track : tracks) {
    std::vector<NamedWorkload> workloads;
    if (command.workloads.empty()) workloads = bench_workloads(track, on);
    for (const std::string& name : command.workloads) {
      for (NamedWorkload& workload : select_workloads(track, on, name)) {
        found.insert(name);
        const auto same = [&](const NamedWorkload& other) { return other.name == workload.name; };
        if (std::none_of(workloads.begin(), workloads.end(), same)) workloads.push_back(std::move(workload));
      }
    }
    if (workloads_of(track, on).empty()) print_stderr("the track {} has no workloads yet; left out\n", track);
    for (NamedWorkload& workload : workloads) {
      const bool first = &workload == workloads.data();
      PlannedWorkload& here = planned.emplace_back(PlannedWorkload{std::move(workload), {}});
      for (const StageInfo* stage : chosen)
        if (stage->track == track) here.stages.push_back(stage);
      add_rows_beside(here, command, {track}, on);
      here.without_ablations = command.workloads.empty() && command.stages.empty() && !first;
      if (here.without_ablations) std::erase_if(here.stages, [](const StageInfo* row) { return is_ablation(*row); });
    }
  }
  for (const std::string& name : command.workloads)
    if (!found.contains(name)) throw_unknown_workload(name, tracks, on);
  if (planned.empty()) throw UsageError("there is no workload to run; try ./lab run with --shape");
  return planned;
}

/// A user's layer, and what takes it of the chosen stages. One that was asked for by name stays, to say why it does
/// not.
/// @param notes gets a line where some are left out
PlannedWorkload plan_of_shape(const BenchCommand& command, const std::string& shape,
                              const std::vector<const StageInfo*>& chosen, Backend on, std::string& notes) {
  ProblemOptions options;
  options.shape = shape;
  options.padding = command.padding;
  PlannedWorkload planned{{"", read_problem(options, chosen.front()->track).problem}, {}};
  const ConvProblem& problem = planned.named.problem;
  planned.named.name = to_string(problem);
  if (all_on_host(chosen)) {
    require_valid_on_host(problem);
  } else {
    require_valid(problem);
  }
  std::vector<const StageInfo*> takers;
  std::string rule;
  for (const StageInfo* stage : chosen) {
    const std::string its_rule = refusal(*stage, problem, nullptr);
    if (its_rule.empty()) takers.push_back(stage);
    if (rule.empty() && !its_rule.empty()) rule = fmt::format("{}: {}", stage->folder, its_rule);
  }
  if (takers.empty()) throw RefusedError(fmt::format("no stage takes {}; {}", planned.named.name, rule));
  planned.stages = command.stages.empty() ? takers : chosen;
  if (planned.stages.size() < chosen.size()) {
    notes += fmt::format("{}: {} of {} stages take it; './lab run STAGE --shape {}{}' tells another's rule\n",
                         planned.named.name, takers.size(), chosen.size(), shape,
                         command.padding ? " --padding " + *command.padding : "");
  }
  for (const StageInfo* stage : takers)
    if (const FilterForm form = track_of(*stage).filter; form != FilterForm::dense) planned.named.filter = form;
  add_rows_beside(planned, command, tracks_of(takers), on);
  // What is counted or timed alike stands together.
  std::stable_partition(planned.stages.begin(), planned.stages.end(),
                        [](const StageInfo* stage) { return !runs_on_host(*stage); });
  return planned;
}

}  // namespace

std::optional<double> cudnn_search_seconds(const BenchCommand& command) {
  constexpr double kDefault = 60, kMost = 86400;
  if (command.cudnn == "heuristics") {
    if (command.cudnn_seconds) throw UsageError("--cudnn-seconds is of a search; add --cudnn exhaustive");
    return std::nullopt;
  }
  const double seconds = command.cudnn_seconds.value_or(kDefault);
  if (!(seconds > 0 && seconds <= kMost))
    throw UsageError(fmt::format("--cudnn-seconds must be above 0 and at most {}; got {}", kMost, seconds));
  if (backend() != Backend::gpu)
    throw UsageError("--cudnn exhaustive runs cuDNN's plans on a GPU; leave it out in the simulator");
  return seconds;
}

std::vector<const StageInfo*> chosen_stages(const BenchCommand& command) {
  for (const std::string& track : command.tracks) {
    if (contains(all_tracks(), track)) continue;
    throw UsageError(
        fmt::format("unknown track {}; the tracks are {}", in_quotes(track), fmt::join(all_tracks(), ", ")));
  }
  std::vector<const StageInfo*> named;
  for (const std::string& designation : command.stages) {
    const StageInfo& stage = require_type(find_stage(designation), command.dtype);
    if (is_step(stage))
      throw UsageError(fmt::format("{} is a step of a chapter, and bench takes the ladder's stages; try ./lab run {}",
                                   stage.folder, label_of(stage)));
    named.push_back(&stage);
  }
  std::vector<const StageInfo*> chosen;
  const auto choose = [&](const StageInfo& stage) {
    if (command.tracks.empty() || contains(command.tracks, stage.track)) chosen.push_back(&stage);
  };
  for (const StageInfo& stage : stages()) {
    if (named.empty()) {
      if (const StageInfo* const in = command.dtype ? in_type(stage, *command.dtype) : &stage) choose(*in);
      continue;
    }
    for (const std::span<const StageInfo> known : {std::span(&stage, 1), variants()})
      for (const StageInfo& each : known)
        if (each.number == stage.number && std::find(named.begin(), named.end(), &each) != named.end()) choose(each);
  }
  if (chosen.empty() && named.empty() && command.dtype)
    throw UsageError(fmt::format("no stage {}computes in {}{}", command.tracks.empty() ? "" : "in --track ",
                                 in_quotes(*command.dtype),
                                 command.tracks.empty() ? "; use fp32, fp16, bf16 or int8" : ""));
  if (chosen.empty()) throw UsageError("no stage is both in --stage and in --track; leave one of them out");
  return chosen;
}

std::vector<PlannedWorkload> planned_workloads(const BenchCommand& command, Backend on) {
  const std::vector<const StageInfo*> chosen = chosen_stages(command);
  std::vector<PlannedWorkload> planned;
  if (command.shapes.empty()) planned = plan_of_tracks(command, chosen, on);
  std::string notes;
  for (const std::string& shape : command.shapes) {
    PlannedWorkload of_shape = plan_of_shape(command, shape, chosen, on, notes);
    const auto same = [&](const PlannedWorkload& other) { return other.named.name == of_shape.named.name; };
    if (std::none_of(planned.begin(), planned.end(), same)) planned.push_back(std::move(of_shape));
  }
  print_stderr("{}", notes);
  if (on == Backend::gpu)
    for (PlannedWorkload& workload : planned) add_followed(workload);
  return planned;
}

}  // namespace convladder
