#include "common/harness/commands/prune.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/harness/files/errors.hpp"
#include "common/harness/files/problem_io.hpp"
#include "common/harness/ladder/workloads.hpp"
#include "common/harness/run/refusal.hpp"
#include "common/harness/run/runner.hpp"

namespace convladder {
namespace {

constexpr std::uint64_t kSeed = 1;

/// Adds what one shape's run met to what others have met.
void merge(const Barrier& barrier, std::vector<BarrierFinding>& findings) {
  const auto found = std::find_if(findings.begin(), findings.end(), [&](const BarrierFinding& finding) {
    return finding.barrier.file == barrier.file && finding.barrier.line == barrier.line;
  });
  if (found == findings.end()) {
    findings.push_back({barrier, {}});
    return;
  }
  Barrier& known = found->barrier;
  known.passed += barrier.passed;
  const auto add = [](const auto& more, auto& list) {
    for (const auto& item : more)
      if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(item);
  };
  add(barrier.kernels, known.kernels);
  add(barrier.calls, known.calls);
}

}  // namespace

bool BarrierFinding::needed() const {
  return std::any_of(trials.begin(), trials.end(),
                     [](const BarrierTrial& trial) { return !trial.right || !trial.faults.empty(); });
}

int BarrierFinding::faults_unseen() const {
  return static_cast<int>(std::count_if(
      trials.begin(), trials.end(), [](const BarrierTrial& trial) { return trial.right && !trial.faults.empty(); }));
}

std::pair<const Fault*, const BarrierTrial*> BarrierFinding::first_fault() const {
  const Fault* first = nullptr;
  const BarrierTrial* of = nullptr;
  for (const BarrierTrial& trial : trials) {
    for (const Fault& fault : trial.faults) {
      if (first && (first->kind == "race" || fault.kind != "race")) continue;
      first = &fault;
      of = &trial;
    }
  }
  return {first, of};
}

std::vector<ConvProblem> prune_shapes(std::string_view track) {
  std::vector<ConvProblem> shapes;
  for (const std::string_view text : track_named(track).prune_shapes) shapes.push_back(parse_shape(text));
  return shapes;
}

PruneReport prune(const StageInfo& stage, const std::vector<ConvProblem>& shapes, const RunOptions& options,
                  Removal removal) {
  PruneReport report;
  std::vector<Workload> workloads;
  std::vector<std::vector<Barrier>> passed;  // of each workload
  for (const ConvProblem& shape : shapes) {
    if (!refusal(stage, shape, nullptr).empty()) continue;
    Workload workload = make_workload("", shape, InputKind::normal, track_of(stage).filter, kSeed);
    RunResult result;
    passed.push_back(barriers_of([&] { result = run_stage(stage, workload, options); }));
    if (result.status != Status::ok) {
      throw UsageError(
          fmt::format("{} does not run as it stands on {}: {}", stage.folder, to_string(shape), result.reason));
    }
    report.shapes.push_back(shape);
    workloads.push_back(std::move(workload));
    for (const Barrier& barrier : passed.back()) merge(barrier, report.findings);
  }
  if (workloads.empty()) throw UsageError(fmt::format("{} refuses every shape that prune knows", stage.folder));

  std::sort(report.findings.begin(), report.findings.end(), [](const BarrierFinding& a, const BarrierFinding& b) {
    return std::pair(a.barrier.file, a.barrier.line) < std::pair(b.barrier.file, b.barrier.line);
  });
  Barrier away;  // what stays away, with the one that is tried
  for (BarrierFinding& finding : report.findings) {
    const std::size_t before = away.calls.size();
    away.calls.insert(away.calls.end(), finding.barrier.calls.begin(), finding.barrier.calls.end());
    for (std::size_t i = 0; i < workloads.size(); ++i) {
      const bool met = std::any_of(passed[i].begin(), passed[i].end(), [&](const Barrier& barrier) {
        return barrier.file == finding.barrier.file && barrier.line == finding.barrier.line;
      });
      if (!met) continue;
      RunResult result;
      without_barrier(away, [&] { result = run_stage(stage, workloads[i], options); });
      finding.trials.push_back({workloads[i].problem, result.check && result.check->ok, std::move(result.faults)});
    }
    if (removal == Removal::each_alone || finding.needed()) away.calls.resize(before);
  }
  return report;
}

}  // namespace convladder
