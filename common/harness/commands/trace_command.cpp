#include "common/harness/commands/trace_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "common/harness/commands/commands.hpp"
#include "common/harness/device/block_trace.hpp"
#include "common/harness/device/print_stderr.hpp"
#include "common/harness/files/errors.hpp"
#include "common/harness/files/problem_io.hpp"
#include "common/harness/files/spelling.hpp"
#include "common/harness/files/text_table.hpp"
#include "common/harness/ladder/settings.hpp"
#include "common/harness/report/report.hpp"
#include "common/harness/run/runner.hpp"

namespace convladder {
namespace {

using Json = nlohmann::ordered_json;

/// "1,0,2": what is left out is 0.
std::array<unsigned, 3> parse_block(std::string_view text) {
  std::array<unsigned, 3> block{};
  const char *at = text.data(), *const end = text.data() + text.size();
  for (std::size_t i = 0; i < block.size(); ++i) {
    const auto [rest, error] = std::from_chars(at, end, block[i]);
    if (error != std::errc()) break;
    if (rest == end) return block;
    if (*rest != ',') break;
    at = rest + 1;
  }
  throw UsageError(fmt::format("--block takes x, x,y or x,y,z, as in 0,1; got {}", in_quotes(text)));
}

std::string text_of_index(const std::array<unsigned, 3>& index) {
  return fmt::format("({},{},{})", index[0], index[1], index[2]);
}

/// What the command line asked to see: of other warps only what concerns the whole block.
std::vector<const TraceEvent*> chosen(const BlockTrace& trace, const std::optional<int>& warp) {
  std::vector<const TraceEvent*> events;
  for (const TraceEvent& event : trace.events)
    if (!warp || static_cast<int>(event.warp) == *warp || event.what == "barrier") events.push_back(&event);
  return events;
}

/// "from byte 64, 4 apart", "at byte 64", or the bytes at which lanes differ most: "bytes 0 to 124".
std::string text_of_places(const TraceEvent& event) {
  if (event.at.empty()) return "";
  const std::vector<std::int64_t>& at = event.at;
  const std::int64_t step = at.size() > 1 ? at[1] - at[0] : 0;
  const bool even = std::adjacent_find(at.begin(), at.end(),
                                       [step](std::int64_t a, std::int64_t b) { return b - a != step; }) == at.end();
  if (at.size() == 1 || (even && step == 0)) return fmt::format("at byte {}", at[0]);
  if (even) return fmt::format("from byte {}, {} apart", at[0], step);
  const auto [low, high] = std::minmax_element(at.begin(), at.end());
  return fmt::format("bytes {} to {}", *low, *high + event.bytes - 1);
}

/// "32 x 4 bytes", "8192 bytes", "N = 112"
std::string text_of_size(const TraceEvent& event) {
  if (event.what == "wgmma") return fmt::format("N = {}", event.bytes);
  if (event.bytes == 0) return "";
  if (event.what.starts_with("bulk")) return fmt::format("{} bytes", event.bytes);
  return fmt::format("{} x {} bytes", std::popcount(event.lanes), event.bytes);
}

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string text_of_cost(const TraceEvent& event) {
  if (event.space == "global" || event.what.starts_with("bulk")) return fmt::format("{} sectors", event.cost);
  if (event.space == "shared" && event.cost > 0) return fmt::format("{} extra passes", event.cost);
  return "";
}

Json json_of(const TraceEvent& event) {
  return {{"what", event.what},   {"warp", event.warp},   {"lanes", event.lanes},   {"file", event.file},
          {"line", event.line},   {"space", event.space}, {"object", event.object}, {"origin", event.origin},
          {"bytes", event.bytes}, {"cost", event.cost},   {"at", event.at}};
}

Json json_of(const std::vector<BlockTrace>& traces, const TraceCommand& command) {
  Json launches = Json::array();
  for (const BlockTrace& trace : traces) {
    Json events = Json::array();
    for (const TraceEvent* event : chosen(trace, command.warp)) events.push_back(json_of(*event));
    launches.push_back({{"kernel", trace.kernel},
                        {"grid", trace.grid},
                        {"block", trace.block},
                        {"events", std::move(events)},
                        {"left_out", trace.left_out}});
  }
  return launches;
}

void print_text(const std::vector<BlockTrace>& traces, const TraceCommand& command) {
  for (const BlockTrace& trace : traces) {
    fmt::print("\n{}: grid {}, blocks of {}\n", trace.kernel, text_of_index(trace.grid), text_of_index(trace.block));
    TextTable table({"warp", "line", "what", "in", "size", "where", "cost"}, 7);
    for (const TraceEvent* event : chosen(trace, command.warp)) {
      table.add({std::to_string(event->warp), fmt::format("{}:{}", base_name(event->file), event->line), event->what,
                 event->object, text_of_size(*event), text_of_places(*event), text_of_cost(*event)});
    }
    fmt::print("{}", table.text(terminal_of(stdout)));
    if (trace.left_out > 0) fmt::print("and {} more: --events takes a larger number\n", grouped(trace.left_out));
  }
}

Json json_of(const std::vector<TensorLoads>& loads) {
  Json tensors = Json::array();
  for (const TensorLoads& each : loads)
    tensors.push_back({{"kernel", each.kernel}, {"tensor", each.tensor}, {"bytes", each.bytes}, {"loads", each.loads}});
  return tensors;
}

void print_text(const std::vector<TensorLoads>& loads) {
  TextTable table({"tensor", "sectors", "loads", "least", "mean", "most", "kernel"}, 1);
  for (const TensorLoads& each : loads) {
    const auto [least, most] = std::minmax_element(each.loads.begin(), each.loads.end());
    const std::int64_t sum = std::accumulate(each.loads.begin(), each.loads.end(), std::int64_t{0});
    const auto sectors = static_cast<std::int64_t>(each.loads.size());
    table.add({each.tensor, grouped(sectors), grouped(sum), grouped(*least),
               fmt::format("{:.2f}", static_cast<double>(sum) / static_cast<double>(sectors)), grouped(*most),
               each.kernel});
  }
  fmt::print("\n{}", table.text(terminal_of(stdout)));
}

}  // namespace

void require_usable(const TraceCommand& command) {
  const StageInfo& stage = find_stage(command.stage);
  if (runs_on_host(stage))
    throw UsageError(
        fmt::format("{} runs on the CPU: it has no blocks; trace takes a stage with kernels", stage.folder));
  if (!command.configuration.empty()) require_settings(command.configuration, {&stage});
  parse_block(command.block);
}

int trace_command(const TraceCommand& command) {
  const StageInfo& stage = find_stage(command.stage);
  const std::array<unsigned, 3> block = parse_block(command.block);
  RunOptions options;
  options.time = false;
  options.settings = command.configuration;
  const UserProblem problem = read_problem(command.problem, {&stage});
  require_valid(problem.problem);
  const Workload workload = make_workload(problem, command.problem.seed);
  RunResult result;
  const auto run = [&] { result = run_stage(stage, workload, options); };
  const std::vector<TensorLoads> loads = command.loads ? loads_of(run) : std::vector<TensorLoads>{};
  const std::vector<BlockTrace> traces =
      command.loads ? std::vector<BlockTrace>{} : traces_of(block, static_cast<std::size_t>(command.events), run);
  if (result.status == Status::refused) {
    print_stderr("./lab: {} refuses: {}\n", stage.name, result.reason);
    return exit_status({result});
  }
  if (traces.empty() && !command.loads)
    throw UsageError(fmt::format("no launch of {} has a block {} on {}", stage.folder, text_of_index(block),
                                 to_string(workload.problem)));
  if (command.json) {
    Json json{{"stage", stage.name},
              {"number", on_ladder(stage) ? Json(stage.number) : Json()},
              {"shape", to_string(workload.problem)}};
    if (!command.loads) json["block"] = block;
    json["status"] = to_string(result.status);
    if (command.loads)
      json["tensors"] = json_of(loads);
    else
      json["launches"] = json_of(traces, command);
    fmt::print("{}", text_of(json));
  } else {
    fmt::print("{} {} on {}: ", label_of(stage), stage.name, to_string(workload.problem));
    if (command.loads) {
      fmt::print("how often each sector is loaded, in the simulator\n");
      print_text(loads);
    } else {
      fmt::print("what block {} does, in the simulator\n", text_of_index(block));
      print_text(traces, command);
    }
  }
  return exit_status({result});
}

}  // namespace convladder
