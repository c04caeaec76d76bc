#include "common/harness/report/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "common/harness/files/observation_json.hpp"
#include "common/harness/files/problem_io.hpp"
#include "common/harness/ladder/tuning_log.hpp"

namespace convladder {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(); }
Json number(const std::optional<double>& value) { return value ? number(*value) : Json(); }
/// For facts that the device does not tell.
Json positive(double value) { return value > 0 ? Json(value) : Json(); }
Json positive(std::int64_t value) { return value > 0 ? Json(value) : Json(); }
Json text(std::string_view value) { return value.empty() ? Json() : Json(value); }

Json array() { return Json::array(); }

Json time_json(const std::optional<TimeSummary>& time) {
  if (!time) return {};
  return {{"median", number(time->median)},
          {"min", number(time->min)},
          {"spread", number(time->spread)},
          {"samples", Json(time->samples)}};
}

Json conditions_json(const std::optional<GpuConditions>& gpu) {
  if (!gpu) return {};
  return {{"sm_mhz", positive(gpu->sm_clock_mhz)},
          {"least_sm_mhz", positive(gpu->least_sm_clock_mhz)},
          {"power_w", positive(gpu->power_w)},
          {"most_power_w", positive(gpu->most_power_w)},
          {"clock_reasons", Json(clock_reasons(gpu->clock_reasons))},
          {"samples_repeated", gpu->repeated},
          {"samples_slowed", gpu->slowed}};
}

Json kernels_json(const RunResult& result) {
  if (result.backend != "gpu" || result.kernels.empty()) return {};
  Json list = array();
  for (const KernelInfo& kernel : result.kernels) {
    list.push_back({{"name", kernel.name},
                    {"registers", kernel.registers},
                    {"spill_bytes", kernel.spill_bytes},
                    {"shared_bytes", kernel.shared_bytes},
                    {"occupancy", number(kernel.occupancy)}});
  }
  return list;
}

Json configuration_json(const std::optional<UsedConfiguration>& used) {
  return used ? to_json(used->configuration) : Json();
}

Json compared_json(const std::optional<ComparedWith>& other) {
  if (!other) return {};
  return {{"stage", other->stage->name},
          {"configuration", configuration_json(other->configuration)},
          {"tile", text(other->tile)},
          {"time_us", number(other->time_us)}};
}

Json knobs_json(const std::optional<CudnnConfiguration>& configuration) {
  if (!configuration) return {};
  Json knobs = Json::object();
  for (const auto& [type, value] : configuration->knobs) knobs[fmt::to_string(type)] = value;
  return knobs;
}

Json cudnn_json(const std::optional<CudnnBaseline>& cudnn) {
  if (!cudnn || !cudnn->unavailable.empty()) return {};
  Json list = array();
  for (const CudnnTrial& trial : cudnn->trials) {
    list.push_back({{"algorithm", trial.algorithm},
                    {"layout", trial.layout},
                    {"status", trial.status},
                    {"time_us", number(trial.time_us)},
                    {"workspace_bytes", trial.workspace_bytes},
                    {"family", text(trial.family())},
                    {"dtype", to_string(trial.precision)},
                    {"rel_l2_err", number(trial.rel_l2_err)},
                    {"time_again_us", number(trial.time_again_us)},
                    {"time_cold_us", number(trial.time_cold_us)},
                    {"version", text(cudnn->version)},
                    {"engine", trial.configuration ? Json(trial.configuration->engine) : Json()},
                    {"knobs", knobs_json(trial.configuration)},
                    {"found_by", trial.origin ? Json(to_string(*trial.origin)) : Json()},
                    {"output", to_string(trial.output)}});
  }
  return list;
}

Json search_json(const std::optional<CudnnSearchSummary>& search) {
  if (!search) return {};
  Json outcomes = Json::object();
  for (const CudnnOutcome outcome : kCudnnOutcomes) {
    const auto found = search->outcomes.find(outcome);
    outcomes[to_string(outcome)] = found == search->outcomes.end() ? 0 : found->second;
  }
  return {{"engines", search->engines},      {"not_strict", search->not_strict}, {"combinations", search->combinations},
          {"complete", search->complete},    {"tried", search->tried()},         {"tried_before", search->from_journal},
          {"outcomes", std::move(outcomes)}, {"searched_s", search->searched_s}, {"compile_s", search->compile_s},
          {"run_s", search->run_s}};
}

Json roofline_json(const std::optional<Roofline>& roofline) {
  if (!roofline) return {};
  return {{"bytes", roofline->bytes},
          {"flops", roofline->flops},
          {"floor_us", number(roofline->floor_us)},
          {"share", number(roofline->share)},
          {"bound", text(roofline->bound)}};
}

Json effective_tflops(const RunResult& result) {
  if (!result.time_us) return {};
  return number(static_cast<double>(result.problem.flops()) / result.time_us->median * 1e-6);
}

Json clocks_json(const DeviceInfo& info) {
  return {{"sm_mhz", positive(info.sm_clock_mhz)}, {"memory_mhz", positive(info.memory_clock_mhz)}};
}

bool all_on_cpu(const std::vector<RunResult>& rows) {
  return !rows.empty() &&
         std::all_of(rows.begin(), rows.end(), [](const RunResult& row) { return row.backend == "cpu"; });
}

Json device_json(const BenchReport& report) {
  const DeviceInfo& info = report.device;
  const bool gpu = !info.driver.empty(), host = all_on_cpu(report.rows);
  return {{"name", info.name},
          {"backend", host  ? "cpu"
                      : gpu ? "gpu"
                            : "sim"},
          {"compute_capability", host ? Json() : Json(info.compute_capability)},
          {"multiprocessors", gpu ? Json(info.multiprocessors) : Json()},
          {"memory_bytes", gpu ? Json(info.memory_bytes) : Json()},
          {"shared_bytes_per_block", host ? Json() : Json(info.shared_bytes_per_block)},
          {"l2_bytes", positive(info.l2_bytes)},
          {"clocks_before", gpu ? clocks_json(info) : Json()},
          {"clocks_after", gpu ? clocks_json(report.device_after) : Json()}};
}

std::string cudnn_version(const std::vector<RunResult>& rows) {
  for (const RunResult& row : rows)
    if (row.cudnn && !row.cudnn->version.empty()) return row.cudnn->version;
  return "";
}

Json toolchain_json(const BenchReport& report) {
#ifdef __clang__
  const char* const compiler = __VERSION__;
#else
  const char* const compiler = "g++ " __VERSION__;
#endif
  return {{"compiler", compiler},
          {"cuda_toolkit", text(report.device.toolkit)},
          {"cuda_driver", text(report.device.driver)},
          {"cudnn", text(cudnn_version(report.rows))}};
}

Json ceilings_json(const std::optional<Ceilings>& ceilings) {
  if (!ceilings) return {};
  return {{"dram_bytes_per_s", number(ceilings->dram_bytes_per_s)},
          {"l2_bytes_per_s", number(ceilings->l2_bytes_per_s)},
          {"fp32_flops_per_s", number(ceilings->fp32_flops_per_s)},
          {"launch_us", number(ceilings->launch_us)},
          {"fp16_flops_per_s", positive(ceilings->fp16_flops_per_s)},
          {"int8_ops_per_s", positive(ceilings->int8_ops_per_s)}};
}

/// A column of the CSV: its heading, and where its value lies in a result's JSON.
struct Column {
  std::string heading;
  Json::json_pointer place;
};

std::vector<Column> csv_columns() {
  std::vector<Column> columns;
  const auto add = [&](const std::string& heading, const std::string& place) {
    columns.push_back({heading, Json::json_pointer(place)});
  };
  for (const char* key : {"number", "stage", "backend", "device", "workload_name"}) add(key, std::string("/") + key);
  const Json problem = problem_json({});
  for (const auto& item : problem.items()) add(item.key(), "/workload/" + item.key());
  for (const char* key : {"status", "reason", "verified", "max_abs_err", "rel_l2_err", "tolerance"})
    add(key, std::string("/") + key);
  for (const char* key : {"median", "min", "spread"})
    add(std::string("time_us_") + key, std::string("/time_us/") + key);
  add("time_cold_us_median", "/time_cold_us/median");
  add("time_without_transform_us_median", "/time_without_transform_us/median");
  for (const char* key : {"effective_tflops", "prepare_us", "workspace_bytes"}) add(key, std::string("/") + key);
  for (const char* key : {"previous", "first", "cudnn_winograd", "cudnn_best", "cudnn_gemm", "cudnn_fft"})
    add(std::string("speedup_") + key, std::string("/speedup/") + key);
  for (const char* key : {"bytes", "flops", "floor_us", "share", "bound"})
    add(std::string("roofline_") + key, std::string("/roofline/") + key);
  for (const CounterField& field : kCounterFields) add(field.name, std::string("/counters/") + field.name);
  for (const char* key : {"stage", "configuration", "tile"})
    add(std::string("speedup_over_") + key, std::string("/speedup/over/") + key);
  add("tile", "/tile");
  add("epilogue", "/workload/epilogue");  // empty of a problem without one
  return columns;
}

/// A string as it is; an object, which is a configuration, as `--configuration` takes it: "m=4,tbm=32".
std::string csv_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_object()) return value.dump();
  std::string list;
  for (const auto& item : value.items()) list += (list.empty() ? "" : ",") + item.key() + "=" + csv_text(item.value());
  return list;
}

std::string csv_cell(const Json& row, const Json::json_pointer& place) {
  if (!row.contains(place)) return "";  // beneath a null
  const Json& value = row.at(place);
  if (value.is_null()) return "";
  std::string cell = csv_text(value);
  if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
  for (std::size_t at = 0; (at = cell.find('"', at)) != std::string::npos; at += 2) cell.insert(at, 1, '"');
  return '"' + cell + '"';
}

/// @param line_break a newline and the indentation of the line that the value begins on
void append_text(std::string& text, const Json& json, const std::string& line_break) {
  const auto holds_more = [](const Json& value) { return value.is_structured() && !value.empty(); };
  if (!holds_more(json)) {
    text += json.dump(-1, ' ', false, Json::error_handler_t::replace);
    return;
  }
  const bool on_lines = std::any_of(json.begin(), json.end(), holds_more);
  const std::string inner = on_lines ? line_break + "  " : "";
  std::string_view separator;
  text += json.is_object() ? '{' : '[';
  for (const auto& item : json.items()) {
    text.append(separator).append(inner);
    if (json.is_object()) text += Json(item.key()).dump(-1, ' ', false, Json::error_handler_t::replace) + ": ";
    append_text(text, item.value(), inner);
    separator = on_lines ? "," : ", ";
  }
  if (on_lines) text += line_break;
  text += json.is_object() ? '}' : ']';
}

}  // namespace

Json to_json(const StageInfo& stage) {
  return {{"number", stage.number},
          {"name", stage.name},
          {"title", stage.title},
          {"track", stage.track},
          {"idea", stage.idea},
          {"previous", stage.previous > 0 ? Json(stage.previous) : Json()},
          {"dtype", stage.dtype},
          {"types", types_of(stage)},
          {"layout", stage.layout},
          {"source", stage.source},
          {"requires", runs_on_host(stage) ? Json() : Json(stage.requires_capability)},
          {"tensors",
           {{"input", to_string(stage.tensors)}, {"filter", "fp32 KCRS"}, {"output", to_string(stage.tensors)}}}};
}

Json to_json(const RunResult& result) {
  const auto from_check = [&](double CheckResult::*member) {
    return result.check ? number((*result.check).*member) : Json();
  };
  return {{"stage", result.stage->name},
          {"number", on_ladder(*result.stage) ? Json(result.stage->number) : Json()},
          {"backend", result.backend},
          {"device", result.device},
          {"workload", problem_json(result.problem)},
          {"status", to_string(result.status)},
          {"reason", text(result.reason)},
          {"verified", result.verified},
          {"max_abs_err", from_check(&CheckResult::max_abs_err)},
          {"rel_l2_err", from_check(&CheckResult::rel_l2_err)},
          {"tolerance", from_check(&CheckResult::tolerance)},
          {"time_us", time_json(result.time_us)},
          {"effective_tflops", effective_tflops(result)},
          {"prepare_us", number(result.prepare_us)},
          {"workspace_bytes", result.workspace_bytes ? Json(*result.workspace_bytes) : Json()},
          {"kernels", kernels_json(result)},
          {"speedup",
           {{"previous", number(result.speedup.previous)},
            {"first", number(result.speedup.first)},
            {"cudnn_winograd", number(result.speedup.cudnn_winograd)},
            {"cudnn_best", number(result.speedup.cudnn_best)},
            {"cudnn_gemm", number(result.speedup.cudnn_gemm)},
            {"cudnn_fft", number(result.speedup.cudnn_fft)},
            {"over", compared_json(result.speedup.over)}}},
          {"cudnn", cudnn_json(result.cudnn)},
          {"roofline", roofline_json(result.roofline)},
          {"counters", result.counters ? counters_json(*result.counters) : Json()},
          {"faults", faults_json(result.faults)},
          {"workload_name", text(result.workload_name)},
          {"time_cold_us", time_json(result.time_cold_us)},
          {"cold_unavailable", text(result.cold_unavailable)},
          {"prediction", result.prediction ? counters_json(*result.prediction) : Json()},
          {"lines", lines_json(result.lines)},
          {"cudnn_unavailable", result.cudnn ? text(result.cudnn->unavailable) : Json()},
          {"configuration", configuration_json(result.configuration)},
          {"configuration_origin", result.configuration ? Json(result.configuration->origin) : Json()},
          {"time_without_transform_us", time_json(result.time_without_transform_us)},
          {"dtype", result.stage->dtype},
          {"tile", text(result.tile)},
          {"library", text(result.library)},
          {"cudnn_search", result.cudnn ? search_json(result.cudnn->search) : Json()},
          {"gpu", conditions_json(result.gpu)}};
}

/// The results; cuDNN's trials where they are not those of a row above, on the same workload in the same type.
static Json rows_json(const std::vector<RunResult>& results) {
  Json rows = array();
  std::map<std::string, Json> trials;
  for (const RunResult& result : results) {
    Json& row = rows.emplace_back(to_json(result));
    Json& above = trials[fmt::format("{}, {}, {}", result.workload_name, row["workload"].dump(), result.stage->dtype)];
    if (row["cudnn"] == above) {
      row["cudnn"] = row["cudnn_search"] = nullptr;
    } else if (!row["cudnn"].is_null()) {
      above = row["cudnn"];
    }
  }
  return rows;
}

Json to_json(const BenchReport& report) {
  Json json = {{"device", device_json(report)},
               {"toolchain", toolchain_json(report)},
               {"ceilings", ceilings_json(report.ceilings)},
               {"rows", rows_json(report.rows)}};
  if (!report.shard.empty()) json["shard"] = report.shard;
  return json;
}

std::string to_csv(const std::vector<RunResult>& results) {
  const std::vector<Column> columns = csv_columns();
  std::string csv;
  for (const Column& column : columns) csv += (csv.empty() ? "" : ",") + column.heading;
  csv += "\r\n";
  for (const RunResult& result : results) {
    const Json row = to_json(result);
    std::string line;
    for (const Column& column : columns) line += "," + csv_cell(row, column.place);
    csv += line.substr(1) + "\r\n";
  }
  return csv;
}

std::string text_of(const Json& json) {
  std::string text;
  append_text(text, json, "\n");
  return text + "\n";
}

}  // namespace convladder
