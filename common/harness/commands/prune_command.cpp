#include "common/harness/commands/prune_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/harness/commands/prune.hpp"
#include "common/harness/files/errors.hpp"
#include "common/harness/files/observation_json.hpp"
#include "common/harness/files/problem_io.hpp"
#include "common/harness/files/text_table.hpp"
#include "common/harness/ladder/settings.hpp"
#include "common/harness/report/report.hpp"
#include "common/harness/report/text_report.hpp"

namespace convladder {
namespace {

using Json = nlohmann::ordered_json;

/// "multiply, copy": the kernels' names, without what a template is given.
std::string kernels_text(const Barrier& barrier) {
  std::vector<std::string> names;
  for (const std::string& kernel : barrier.kernels) {
    std::string name = kernel.substr(0, kernel.find('<'));
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string text_of_finding(const BarrierFinding& finding, bool greedy) {
  const Barrier& barrier = finding.barrier;
  std::string text = fmt::format("{}:{} in {}: {}", barrier.file, barrier.line, kernels_text(barrier),
                                 finding.needed() ? "needed" : "not needed on these shapes");
  if (greedy) text += finding.needed() ? ", put back" : ", stays away";
  text += '\n';
  if (const auto [fault, trial] = finding.first_fault(); fault) {
    text += fmt::format("  {} at {}:{}", fault->kind, fault->file, fault->line);
    if (!fault->other.empty()) text += fmt::format("\n    {}{}", fault->kind == "race" ? "with " : "", fault->other);
    text += fmt::format("\n    on {}\n", to_string(trial->problem));
  }
  const auto right =
      std::count_if(finding.trials.begin(), finding.trials.end(), [](const BarrierTrial& each) { return each.right; });
  text += fmt::format("  without it, the output is right on {} of {} shapes", right, finding.trials.size());
  if (finding.faults_unseen() > 0)
    text += fmt::format("; on {} of these by luck: there is a fault", finding.faults_unseen());
  return text + "\n";
}

Json json_of(const BarrierFinding& finding) {
  Json trials = Json::array();
  for (const BarrierTrial& trial : finding.trials) {
    trials.push_back(
        {{"shape", to_string(trial.problem)}, {"right", trial.right}, {"faults", faults_json(trial.faults)}});
  }
  return {{"file", finding.barrier.file},       {"line", finding.barrier.line},
          {"kernels", finding.barrier.kernels}, {"passed", finding.barrier.passed},
          {"needed", finding.needed()},         {"faults_unseen", finding.faults_unseen()},
          {"trials", std::move(trials)}};
}

}  // namespace

void require_usable(const PruneCommand& command) {
  const StageInfo& stage = find_stage(command.stage);
  if (!runs_on_host(stage)) {
    if (!command.configuration.empty()) require_settings(command.configuration, {&stage});
    return;
  }
  throw UsageError(
      fmt::format("{} runs on the CPU: it has no block barriers; prune takes a stage with kernels", stage.folder));
}

int prune_command(const PruneCommand& command) {
  const StageInfo& stage = find_stage(command.stage);
  RunOptions options;
  options.time = false;
  options.settings = command.configuration;
  const PruneReport report =
      prune(stage, is_step(stage) ? std::vector{parse_shape(stage.shape)} : prune_shapes(stage.track), options,
            command.greedy ? Removal::greedy : Removal::each_alone);
  const auto& findings = report.findings;
  const auto needed = std::count_if(findings.begin(), findings.end(), [](const auto& each) { return each.needed(); });
  const auto unseen = std::count_if(findings.begin(), findings.end(), [](const BarrierFinding& finding) {
    return finding.needed() && std::all_of(finding.trials.begin(), finding.trials.end(),
                                           [](const BarrierTrial& trial) { return trial.right; });
  });
  const auto unneeded = static_cast<std::ptrdiff_t>(findings.size()) - needed;
  if (command.json) {
    Json shapes = Json::array(), list = Json::array();
    for (const ConvProblem& shape : report.shapes) shapes.push_back(to_string(shape));
    for (const BarrierFinding& finding : findings) list.push_back(json_of(finding));
    fmt::print("{}", text_of(Json{{"stage", stage.name},
                                  {"number", on_ladder(stage) ? Json(stage.number) : Json()},
                                  {"greedy", command.greedy},
                                  {"shapes", std::move(shapes)},
                                  {"barriers", std::move(list)},
                                  {"needed", needed},
                                  {"not_needed", unneeded},
                                  {"needed_but_output_right", unseen}}));
    return 0;
  }
  fmt::print("{} {}: {} taken away, on {} shapes in the simulator\n\n", label_of(stage), stage.name,
             command.greedy ? "one block barrier after another" : "each block barrier", report.shapes.size());
  for (const BarrierFinding& finding : findings) fmt::print("{}\n", text_of_finding(finding, command.greedy));
  fmt::print("{} barrier{}: {} needed, {} not needed on these shapes", findings.size(), findings.size() == 1 ? "" : "s",
             needed, unneeded);
  if (unseen > 0) fmt::print("; {} of the needed would not be missed by a look at the outputs", unseen);
  fmt::print("\n");
  return 0;
}

}  // namespace convladder
