#include "common/harness/commands/commands.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/harness/baselines/settings_rows.hpp"
#include "common/harness/commands/disassembly.hpp"
#include "common/harness/device/print_stderr.hpp"
#include "common/harness/files/errors.hpp"
#include "common/harness/files/npy.hpp"
#include "common/harness/files/output_file.hpp"
#include "common/harness/files/text_table.hpp"
#include "common/harness/ladder/settings.hpp"
#include "common/harness/report/comparison.hpp"
#include "common/harness/report/report.hpp"
#include "common/harness/report/text_report.hpp"
#include "common/harness/run/refusal.hpp"
#include "common/harness/run/runner.hpp"
#include "common/harness/run/standing.hpp"

namespace convladder {
namespace {

/// Of a GPU, if one of the stages runs there.
std::optional<Limits> limits_here(const std::vector<const StageInfo*>& stages) {
  if (backend() != Backend::gpu || all_on_host(stages)) return std::nullopt;
  return measure_limits();
}

/// A stage that this device cannot run at all is the machine's fault, not the problem's.
void require_device(const StageInfo& stage) {
  if (const std::string rule = device_refusal(stage); !rule.empty()) throw MachineError(rule);
}

/// What one stage is compared with.
struct Beside {
  std::vector<const StageInfo*> followed;  ///< the previous stage in its configurations
  bool cudnn = false;
};

/// In the simulator, which has no times to tell the fastest configuration by, the previous stage as it comes.
Beside beside(const StageInfo& stage) {
  std::vector<const StageInfo*> followed = previous_configurations(stage);
  if (backend() != Backend::gpu && followed.size() > 1) followed.resize(1);
  return {std::move(followed), backend() == Backend::gpu && !runs_on_host(stage)};
}

/// Runs the stages on one problem. Where a rule refuses the problem itself, every result is that refusal.
/// @param beside measured too unless all stages refuse; the results of `followed` come last
std::vector<RunResult> run_all(const std::vector<const StageInfo*>& stages, const ProblemOptions& problem,
                               const RunOptions& options, const Beside& beside = {}) {
  for (const StageInfo* stage : stages) require_device(*stage);
  UserProblem user = read_problem(problem, stages);
  std::vector<RunResult> results;
  try {
    if (all_on_host(stages)) {
      require_valid_on_host(user.problem);
    } else {
      require_valid(user.problem);
    }
  } catch (const RefusedError& error) {
    for (const StageInfo* stage : stages) results.push_back(refused(*stage, user.problem, error.what()));
    return results;
  }
  // Before the reference, which may take long.
  const float* const filter = user.tensors ? user.tensors->filter.data() : nullptr;
  for (const StageInfo* stage : stages) {
    std::string rule = refusal(*stage, user.problem, filter);
    if (rule.empty()) break;
    results.push_back(refused(*stage, user.problem, std::move(rule)));
  }
  if (results.size() == stages.size()) return results;
  results.clear();
  const Workload workload = make_workload(std::move(user), problem.seed);
  const std::optional<Limits> limits = limits_here(stages);
  const auto run = [&](const StageInfo& stage, const RunOptions& its_options) {
    RunResult result = run_stage(stage, workload, its_options);
    add_roofline(result, limits && !runs_on_host(stage) ? &*limits : nullptr);
    return result;
  };
  std::optional<CudnnBaseline> cudnn;
  if (beside.cudnn) cudnn = cudnn_beside(workload, precision_of(*stages.front()));
  std::vector<RunResult> followed;
  for (const StageInfo* stage : beside.followed) followed.push_back(run(*stage, {}));
  for (const StageInfo* stage : stages) results.push_back(run(*stage, options));
  if (cudnn) {
    try {
      measure_cudnn_again(workload.problem, workload.tensors, *cudnn);
    } catch (const std::exception& error) {  // the result stays, without these times
      print_stderr("cuDNN again: {}\n", error.what());
    }
    results.front().cudnn = std::move(cudnn);
  }
  std::move(followed.begin(), followed.end(), std::back_inserter(results));
  add_speedups(results);
  return results;
}

/// The devices that the stages run on, a line each.
std::string device_lines(const std::vector<const StageInfo*>& stages) {
  std::string lines;
  for (const StageInfo* stage : stages) {
    const std::string line = device_line(device_of(*stage)) + "\n";
    if (lines.find(line) == std::string::npos) lines += line;
  }
  return lines;
}

std::vector<std::int64_t> output_shape(const ConvProblem& x) { return {x.n, x.k, x.p(), x.q()}; }

}  // namespace

int exit_status(const std::vector<RunResult>& results) {
  bool any_refused = false;
  for (const RunResult& result : results) {
    if (result.status == Status::refused) {
      any_refused = true;
    } else if (result.status != Status::ok) {
      return 1;
    }
  }
  return any_refused ? 3 : 0;
}

int list_stages(bool json) {
  if (json) {
    auto list = nlohmann::ordered_json::array();
    for (const StageInfo& stage : stages()) list.push_back(to_json(stage));
    fmt::print("{}", text_of(list));
    return 0;
  }
  TextTable table({"no.", "name", "track", "type", "needs", "after", "idea"}, 5);
  const auto add = [&](const StageInfo& stage) {
    table.add({std::string(label_of(stage)), std::string(stage.name), std::string(stage.track),
               fmt::format("{}", fmt::join(types_of(stage), ", ")),
               runs_on_host(stage) ? "-" : std::string(stage.requires_capability),
               stage.previous > 0 ? fmt::format("{:02}", stage.previous) : "-", std::string(stage.idea)});
  };
  for (const StageInfo& stage : stages()) {
    add(stage);
    for (const StageInfo* step : steps_of(stage)) add(*step);
  }
  fmt::print("{}", table.text(terminal_of(stdout)));
  return 0;
}

int print_sass(const StageInfo& stage) {
  fmt::print("{}", sass_of(stage));
  return 0;
}

int run_command(const StageInfo& stage, const RunCommand& command) {
  if (command.output) {
    require_ending("--output", *command.output, ".npy");
    require_writable(*command.output);
    if (command.problem.input) require_different("--output", *command.output, "--input", *command.problem.input);
    if (command.problem.filter) require_different("--output", *command.output, "--filter", *command.problem.filter);
  }
  if (!command.configuration.empty()) require_settings(command.configuration, {&stage});
  RunOptions options;
  options.settings = command.configuration;
  options.lines = command.lines;
  options.keep_output = command.output.has_value();
  std::vector<RunResult> results =
      run_all({&stage}, command.problem, options, command.beside ? beside(stage) : Beside{});
  const RunResult result = std::move(results.front());
  results.erase(results.begin());

  const bool write = command.output && result.status == Status::ok;
  if (write) write_npy(*command.output, {output_shape(result.problem), result.output});
  if (command.json) {
    nlohmann::ordered_json json = to_json(result);
    if (command.beside) {
      auto list = nlohmann::ordered_json::array();
      for (const RunResult& other : results) list.push_back(to_json(other));
      json["beside"] = std::move(list);
    }
    fmt::print("{}", text_of(json));
  } else if (result.status != Status::refused) {
    fmt::print("{}{}", device_lines({&stage}), run_text(result, terminal_of(stdout)));
    if (command.beside && result.status == Status::ok)
      fmt::print("{}", beside_text(result, results, terminal_of(stdout)));
    if (write) fmt::print("wrote {}\n", command.output->string());
  }
  if (result.status == Status::refused) print_stderr("./lab: {} refuses: {}\n", stage.name, result.reason);
  std::erase_if(results, [](const RunResult& other) { return other.status == Status::refused; });  // its own affair
  results.push_back(result);
  return exit_status(results);
}

int compare_command(const std::vector<const StageInfo*>& stages, const CompareCommand& command) {
  if (!command.configuration.empty()) require_settings(command.configuration, stages);
  RunOptions options;
  options.settings = command.configuration;
  const std::vector<RunResult> results = run_all(stages, command.problem, options);
  if (command.json) {
    auto list = nlohmann::ordered_json::array();
    for (const RunResult& result : results) list.push_back(to_json(result));
    fmt::print("{}", text_of(list));
  } else {
    fmt::print("{}{}", device_lines(stages), comparison_text(results));
  }
  return exit_status(results);
}

}  // namespace convladder
