#include "common/harness/commands/bench_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "common/harness/baselines/rows_beside.hpp"
#include "common/harness/files/errors.hpp"
#include "common/harness/files/spelling.hpp"

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

[[noreturn]] void throw_unknown_workload(const std::string& name, const std::vector<std::string>& tracks) {
  std::vector<std::string> known;
  for (const std::string& track : tracks)
    for (const NamedWorkload& workload : workloads_of(track, backend())) known.push_back(in_quotes(workload.name));
  throw UsageError(
      fmt::format("unknown workload {}; the workloads are {}, or 'all'", in_quotes(name), fmt::join(known, ", ")));
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
  std::set<int> numbers;
  for (const std::string& designation : command.stages) numbers.insert(find_stage(designation).number);
  std::vector<const StageInfo*> chosen;
  for (const StageInfo& stage : stages()) {
    if (!numbers.empty() && !numbers.contains(stage.number)) continue;
    if (!command.tracks.empty() && !contains(command.tracks, stage.track)) continue;
    chosen.push_back(&stage);
  }
  if (chosen.empty()) throw UsageError("no stage is both in --stage and in --track; leave one of them out");
  return chosen;
}

std::vector<PlannedWorkload> planned_workloads(const BenchCommand& command) {
  const std::vector<const StageInfo*> chosen = chosen_stages(command);
  std::vector<std::string> tracks;
  for (const StageInfo* stage : chosen)
    if (!contains(tracks, stage->track)) tracks.emplace_back(stage->track);

  std::vector<PlannedWorkload> planned;
  std::set<std::string> found;
  for (const std::string& track : tracks) {
    std::vector<NamedWorkload> workloads;
    if (command.workloads.empty()) workloads = bench_workloads(track, backend());
    for (const std::string& name : command.workloads) {
      for (NamedWorkload& workload : select_workloads(track, backend(), name)) {
        found.insert(name);
        const auto same = [&](const NamedWorkload& other) { return other.name == workload.name; };
        if (std::none_of(workloads.begin(), workloads.end(), same)) workloads.push_back(std::move(workload));
      }
    }
    if (workloads_of(track, backend()).empty())
      fmt::print(stderr, "the track {} has no workloads yet; left out\n", track);
    for (NamedWorkload& workload : workloads) {
      PlannedWorkload& here = planned.emplace_back(PlannedWorkload{std::move(workload), {}});
      for (const StageInfo* stage : chosen)
        if (stage->track == track) here.stages.push_back(stage);
      if (!command.stages.empty()) continue;
      for (const StageInfo* row : rows_beside(track, backend())) here.stages.push_back(row);
    }
  }
  for (const std::string& name : command.workloads)
    if (!found.contains(name)) throw_unknown_workload(name, tracks);
  if (planned.empty()) throw UsageError("there is no workload to run; try ./lab run with --shape");
  return planned;
}

}  // namespace convladder
