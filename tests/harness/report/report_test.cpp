#include "common/harness/report/report.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "common/harness/baselines/library_rows.hpp"
#include "common/harness/files/problem_io.hpp"
#include "common/harness/files/text_table.hpp"
#include "common/harness/report/bench_table.hpp"
#include "common/harness/report/text_report.hpp"
#include "common/harness/run/standing.hpp"

namespace convladder {
namespace {

using Json = nlohmann::ordered_json;

constexpr StageInfo kStage{7, "tiled-2d", "07-tiled-2d", "A tile",     "images", "Load it once.",
                           6, "fp32",     "NCHW",        "001, tiled", "sm_70",  nullptr};

/// Keys in their order.
std::vector<std::string> keys(const Json& object) {
  std::vector<std::string> names;
  for (const auto& item : object.items()) names.push_back(item.key());
  return names;
}

using Names = std::vector<std::string>;

const Names kResultKeys{"stage",
                        "number",
                        "backend",
                        "device",
                        "workload",
                        "status",
                        "reason",
                        "verified",
                        "max_abs_err",
                        "rel_l2_err",
                        "tolerance",
                        "time_us",
                        "effective_tflops",
                        "prepare_us",
                        "workspace_bytes",
                        "kernels",
                        "speedup",
                        "cudnn",
                        "roofline",
                        "counters",
                        "faults",
                        "workload_name",
                        "time_cold_us",
                        "cold_unavailable",
                        "prediction",
                        "lines",
                        "cudnn_unavailable",
                        "configuration",
                        "configuration_origin",
                        "time_without_transform_us",
                        "dtype",
                        "tile",
                        "library",
                        "cudnn_search",
                        "gpu"};

constexpr StageInfo kLoweringStage{21,
                                   "im2win-pipelined",
                                   "21-im2win-pipelined",
                                   "Overlap",
                                   "lowering",
                                   "Copy while computing.",
                                   20,
                                   "fp32",
                                   "NCHW",
                                   "004",
                                   "sm_70",
                                   nullptr};
constexpr StageInfo kCpuStage{22, "im2win-cpu", "22-im2win-cpu", "On a CPU", "cpu",   "Vectors.",
                              0,  "fp32",       "NCHW",          "004",      "sm_70", nullptr};

RunResult blank_result() {
  RunResult result;
  result.stage = &kStage;
  result.backend = "sim";
  result.device = "SIMT simulator";
  return result;
}

RunResult gpu_result() {
  RunResult result = blank_result();
  result.backend = "gpu";
  result.device = "NVIDIA H200";
  result.problem = parse_shape("w=1000,s=3");
  result.status = Status::ok;
  result.verified = true;
  result.check.emplace();
  result.check->ok = true;
  result.check->max_abs_err = 0.5;
  result.check->rel_l2_err = 0.25;
  result.check->tolerance = 0.75;
  result.time_us = TimeSummary{2, 1.5, 0.125, {1.5, 2, 2.5}};
  result.time_cold_us = TimeSummary{4, 3, 0.25};
  result.prepare_us = 10;
  result.workspace_bytes = 64;
  result.kernels = {{"tiled_2d", 32, 0, 1024, 0.75}};
  result.speedup = {2.0, 3.0, std::nullopt, 0.5, 0.5, std::nullopt};
  result.cudnn.emplace();
  result.cudnn->version = "9.19.0";
  result.cudnn->trials = {{"WINOGRAD", "NCHW", "CUDNN_STATUS_NOT_SUPPORTED", std::nullopt, 0},
                          {"IMPLICIT_GEMM", "NCHW", "ok", 1.0, 8}};
  result.cudnn->trials[1].time_again_us = 1.5;
  result.cudnn->trials[1].time_cold_us = 2.5;
  result.roofline = Roofline{8012, 6000, 1.0, 0.5, "L2"};
  return result;
}

TEST_CASE("a result's JSON has every key, in order, null where it does not apply") {
  const Json json = to_json(blank_result());
  CHECK(keys(json) == kResultKeys);
  for (const char* key :
       {"reason", "max_abs_err", "rel_l2_err", "tolerance", "time_us", "effective_tflops", "prepare_us",
        "workspace_bytes", "kernels", "cudnn", "roofline", "counters", "workload_name", "prediction"}) {
    CAPTURE(key);
    CHECK(json[key].is_null());
  }
  CHECK(keys(json["speedup"]) ==
        Names{"previous", "first", "cudnn_winograd", "cudnn_best", "cudnn_gemm", "cudnn_fft", "over"});
  for (const char* key : {"previous", "over"}) CHECK(json["speedup"][key].is_null());
  CHECK(json["tile"].is_null());
  CHECK(json["faults"] == Json::array());
  CHECK(keys(json["workload"]) == Names{"n", "c", "h", "w", "k", "r", "s", "pad_h", "pad_w", "stride_h", "stride_w",
                                        "dilation_h", "dilation_w", "groups", "padding"});
}

TEST_CASE("what the driver told of the GPU stands in the JSON, and marks the time where the GPU was slowed") {
  RunResult result = gpu_result();
  CHECK(to_json(result)["gpu"].is_null());
  result.gpu = GpuConditions{15, 1970.5, 1965, 540, 612, kPowerCap, 0, 0};
  CHECK(to_json(result)["gpu"] == Json{{"sm_mhz", 1970.5},
                                       {"least_sm_mhz", 1965.0},
                                       {"power_w", 540.0},
                                       {"most_power_w", 612.0},
                                       {"clock_reasons", {"sw_power_cap"}},
                                       {"samples_repeated", 0},
                                       {"samples_slowed", 0}});
  const auto has = [&](const char* part) {
    CHECK_MESSAGE(run_text(result).find(part) != std::string::npos, run_text(result));
    const std::string table = bench_text({device_info(), device_info(), {}, {result}});
    const std::string note(std::string_view(part).substr(std::string_view(part).find("; ") + 2));
    CHECK_MESSAGE(table.find("2.00 us [1]") != std::string::npos, table);
    CHECK_MESSAGE(table.find("[1] " + note) != std::string::npos, table);
  };
  has("the GPU meanwhile: 1970 MHz (least 1965), 540 W (most 612); the GPU was at its power limit\n");
  result.gpu->clock_reasons |= kHardwareThermal;
  result.gpu->repeated = 2;
  has("; samples taken again, since the GPU was slowed: 2; sw_power_cap, hw_thermal_slowdown\n");
  result.gpu->slowed = 3;
  has("; the GPU was slowed in 3 of the samples, and stayed so: sw_power_cap, hw_thermal_slowdown\n");
  result.gpu->clock_reasons = result.gpu->slowed = result.gpu->repeated = 0;
  CHECK(bench_text({device_info(), device_info(), {}, {result}}).find("[1] the GPU") == std::string::npos);
}

TEST_CASE("a GPU's result fills them") {
  const Json json = to_json(gpu_result());
  CHECK(keys(json) == kResultKeys);
  CHECK(json["stage"] == "tiled-2d");
  CHECK(json["number"] == 7);
  CHECK(json["workload"]["w"] == 1000);
  CHECK(json["workload"]["pad_w"] == 1);
  CHECK(json["workload"]["padding"] == "zero");
  CHECK(json["status"] == "ok");
  CHECK(json["time_us"] == Json{{"median", 2.0}, {"min", 1.5}, {"spread", 0.125}, {"samples", {1.5, 2.0, 2.5}}});
  CHECK(json["effective_tflops"].get<double>() == doctest::Approx(6000 / 2e-6 * 1e-12));
  CHECK(keys(json["kernels"][0]) == Names{"name", "registers", "spill_bytes", "shared_bytes", "occupancy"});
  CHECK(json["speedup"]["cudnn_winograd"].is_null());
  CHECK(json["speedup"]["cudnn_best"] == 0.5);
  REQUIRE(json["cudnn"].size() == 2);
  CHECK(json["cudnn"][0]["time_us"].is_null());
  CHECK(json["cudnn"][1]["time_us"] == 1.0);
  CHECK(json["roofline"] == Json{{"bytes", 8012}, {"flops", 6000}, {"floor_us", 1.0}, {"share", 0.5}, {"bound", "L2"}});
  CHECK(keys(json["cudnn"][0]) == Names{"algorithm", "layout", "status", "time_us", "workspace_bytes", "family",
                                        "dtype", "rel_l2_err", "time_again_us", "time_cold_us", "version", "engine",
                                        "knobs", "found_by", "output"});
  CHECK(json["cudnn"][0]["time_again_us"].is_null());
  CHECK(json["cudnn"][1]["time_again_us"] == 1.5);
  CHECK(json["cudnn"][1]["time_cold_us"] == 2.5);
  CHECK(json["cudnn"][1]["dtype"] == "fp32");
  CHECK(json["cudnn"][1]["rel_l2_err"].is_null());
  CHECK(json["dtype"] == "fp32");
  CHECK(json["cudnn"][0]["family"] == "WINOGRAD");
  CHECK(json["cudnn"][1]["family"] == "GEMM");
  CHECK(json["speedup"]["cudnn_gemm"] == 0.5);
  CHECK(json["speedup"]["cudnn_fft"].is_null());
  CHECK(json["cudnn_unavailable"].is_null());
  CHECK(json["time_without_transform_us"].is_null());
}

TEST_CASE("the verdict says how many outputs were not checked") {
  RunResult result = gpu_result();
  CHECK(verdict_line(result).find("unchecked") == std::string::npos);
  result.check->unchecked = 1000;
  CHECK(verdict_line(result).find("; 1,000 of 1,000 outputs unchecked") != std::string::npos);
}

TEST_CASE("without cuDNN its trials are null and the reason is there") {
  RunResult result = gpu_result();
  result.cudnn->trials.clear();
  result.cudnn->unavailable = "cuDNN is not installed";
  const Json json = to_json(result);
  CHECK(json["cudnn"].is_null());
  CHECK(json["cudnn_unavailable"] == "cuDNN is not installed");
}

TEST_CASE("infinity and NaN are null") {
  RunResult result = gpu_result();
  result.check->max_abs_err = std::numeric_limits<double>::infinity();
  result.check->rel_l2_err = std::numeric_limits<double>::quiet_NaN();
  const Json json = to_json(result);
  CHECK(json["max_abs_err"].is_null());
  CHECK(json["rel_l2_err"].is_null());
  CHECK(json["tolerance"] == 0.75);
}

TEST_CASE("counters carry every name; a prediction's missing claims are null") {
  RunResult result = blank_result();
  result.counters.emplace();
  result.counters->global_load_bytes = 44;
  result.prediction.emplace();
  result.prediction->global_load_bytes = 40;
  const Json json = to_json(result);
  Names names;
  for (const CounterField& field : kCounterFields) names.emplace_back(field.name);
  CHECK(keys(json["counters"]) == names);
  CHECK(json["counters"]["global_load_bytes"] == 44);
  CHECK(json["counters"]["barriers"] == 0);
  CHECK(json["prediction"]["global_load_bytes"] == 40);
  CHECK(json["prediction"]["barriers"].is_null());
}

TEST_CASE("a fault carries its place and the other access") {
  RunResult result = blank_result();
  Fault race;
  race.kind = "race";
  race.file = "tiled_2d.cu";
  race.line = 40;
  race.other = "tiled_2d.cu:44, thread (0,0,0)";
  race.access = "writes";
  race.second = FaultAccess{"tiled_2d.cu", 44, "(1,0,0)", "(0,0,0)", 0, true, "reads"};
  result.faults = {race};
  const Json fault = to_json(result)["faults"][0];
  CHECK(keys(fault) == Names{"kind", "kernel", "file", "line", "block", "thread", "other", "count", "warp",
                             "whole_warp", "access", "second"});
  CHECK(fault["line"] == 40);
  CHECK(fault["other"] == "tiled_2d.cu:44, thread (0,0,0)");
  CHECK(fault["access"] == "writes");
  CHECK(fault["second"] == Json{{"file", "tiled_2d.cu"},
                                {"line", 44},
                                {"block", "(1,0,0)"},
                                {"thread", "(0,0,0)"},
                                {"warp", 0},
                                {"whole_warp", true},
                                {"access", "reads"}});
}

TEST_CASE("text that is not UTF-8 does not break the JSON") {
  RunResult result = blank_result();
  result.reason = "file \xff.npy";
  CHECK(Json::accept(text_of(to_json(result))));
}

TEST_CASE("a stage's JSON: requires, and null for the first of a track") {
  StageInfo stage = kStage;
  CHECK(keys(to_json(stage)) == Names{"number", "name", "title", "track", "idea", "previous", "dtype", "types",
                                      "layout", "source", "requires", "tensors"});
  CHECK(to_json(stage)["tensors"].dump() == R"({"input":"fp32 NCHW","filter":"fp32 KCRS","output":"fp32 NCHW"})");
  CHECK(to_json(stage)["previous"] == 6);
  CHECK(to_json(stage)["requires"] == "sm_70");
  stage.previous = 0;
  CHECK(to_json(stage)["previous"].is_null());
  stage.track = "cpu";
  CHECK(to_json(stage)["requires"].is_null());
}

TEST_CASE("a bench's JSON: device, toolchain, ceilings, rows") {
  BenchReport report;
  report.device.name = "SIMT simulator";
  report.rows = {blank_result(), gpu_result()};
  Json json = to_json(report);
  CHECK(keys(json) == Names{"device", "toolchain", "ceilings", "rows"});
  CHECK(json["ceilings"].is_null());
  CHECK(json["device"]["clocks_before"].is_null());
  CHECK(json["toolchain"]["cudnn"] == "9.19.0");
  CHECK(json["rows"][1] == to_json(report.rows[1]));

  report.device.driver = "13.0";
  report.device.sm_clock_mhz = 1980;
  report.device_after.sm_clock_mhz = 1700;
  report.ceilings = Ceilings{4e12, 5e12, 6e13, 0.8};
  json = to_json(report);
  CHECK(json["device"]["clocks_before"]["sm_mhz"] == 1980);
  CHECK(json["device"]["clocks_after"]["sm_mhz"] == 1700);
  CHECK(json["ceilings"]["dram_bytes_per_s"] == 4e12);
  CHECK(keys(json["ceilings"]) == Names{"dram_bytes_per_s", "l2_bytes_per_s", "fp32_flops_per_s", "launch_us",
                                        "fp16_flops_per_s", "int8_ops_per_s"});
  CHECK(json["ceilings"]["int8_ops_per_s"].is_null());
  CHECK(bench_text(report).find("fp16") == std::string::npos);
  report.ceilings->fp16_flops_per_s = 6.5e14;
  CHECK(to_json(report)["ceilings"]["fp16_flops_per_s"] == 6.5e14);
  CHECK(bench_text(report).find(", fp16 650.0 TFLOP/s, launch") != std::string::npos);
}

TEST_CASE("cuDNN's trials stand once for a workload and a type") {
  StageInfo half = kStage;
  half.dtype = "fp16";
  BenchReport report;
  report.rows.assign(5, gpu_result());
  report.rows[2].cudnn->trials[1].time_us = 1.25;  // measured again, as for a workload that two tracks share
  report.rows[3].stage = &half;
  report.rows[4].problem = parse_shape("w=2000,s=3");
  const Json rows = to_json(report)["rows"];
  const Json trials = to_json(report.rows[0])["cudnn"];
  CHECK(rows[0]["cudnn"] == trials);
  CHECK(rows[1]["cudnn"].is_null());
  CHECK(rows[2]["cudnn"][1]["time_us"] == 1.25);
  CHECK(rows[3]["cudnn"] == trials);
  CHECK(rows[4]["cudnn"] == trials);
  for (const Json& row : rows) CHECK(keys(row) == kResultKeys);
}

TEST_CASE("what holds no other object or list stands on one line of JSON") {
  const Json json{{"a", 1}, {"b", {1.5, nullptr}}, {"c", {{{"d", "x \"y\""}, {"e", Json::array()}}, Json::object()}}};
  CHECK(
      text_of(json) ==
      "{\n  \"a\": 1,\n  \"b\": [1.5, null],\n  \"c\": [\n    {\"d\": \"x \\\"y\\\"\", \"e\": []},\n    {}\n  ]\n}\n");
  CHECK(text_of(Json::array()) == "[]\n");
  CHECK(text_of({{"a", 1}}) == "{\"a\": 1}\n");
  CHECK(Json::parse(text_of(to_json(gpu_result()))) == to_json(gpu_result()));
}

/// Splits one CSV text into records of cells, by RFC 4180.
std::vector<Names> parse_csv(const std::string& text) {
  std::vector<Names> records(1, Names(1));
  bool inside = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (inside && c == '"' && text[i + 1] == '"') {
      records.back().back() += text[++i];
    } else if (c == '"') {
      inside = !inside;
    } else if (!inside && c == ',') {
      records.back().emplace_back();
    } else if (!inside && c == '\r') {
      if (text[++i] == '\n' && i + 1 < text.size()) records.emplace_back(1);
    } else {
      records.back().back() += c;
    }
  }
  return records;
}

TEST_CASE("CSV quotes what needs it, and absent values are empty") {
  RunResult result = gpu_result();
  result.reason = "wrong, \"very\"\nwrong";
  RunResult quote = blank_result(), line_break = blank_result();
  quote.reason = "\"very\" wrong";
  line_break.reason = "very\nwrong";
  const auto records = parse_csv(to_csv({result, blank_result(), quote, line_break}));
  REQUIRE(records.size() == 5);
  const auto cell = [&](std::size_t row, const std::string& heading) {
    for (std::size_t i = 0; i < records[0].size(); ++i)
      if (records[0][i] == heading) return records[row].at(i);
    return "no column " + heading;
  };
  for (const Names& record : records) CHECK(record.size() == records[0].size());
  CHECK(cell(1, "reason") == result.reason);
  CHECK(cell(3, "reason") == quote.reason);
  CHECK(to_csv({line_break}).find("\"very\nwrong\"") != std::string::npos);
  CHECK(cell(1, "time_us_median") == "2.0");
  CHECK(cell(1, "speedup_cudnn_winograd") == "");
  CHECK(cell(1, "global_load_bytes") == "");
  CHECK(cell(1, "time_without_transform_us_median") == "");
  CHECK(cell(1, "speedup_cudnn_gemm") == "0.5");
  CHECK(cell(1, "w") == "1000");
  CHECK(cell(1, "speedup_over_stage") == "");
  CHECK(cell(2, "time_us_median") == "");
  CHECK(cell(2, "roofline_share") == "");
}

TEST_CASE("the ladder's table names what is not available, once each") {
  BenchReport report;
  report.device.name = "NVIDIA H200";
  report.device.driver = "13.0";
  report.rows = {gpu_result(), gpu_result()};
  for (RunResult& row : report.rows) row.workload_name = "one";
  report.rows[1].status = Status::wrong;
  report.rows[1].reason = "3 of 4 outputs are wrong";
  const std::string text = bench_text(report);
  CHECK(text.find("2.00x") != std::string::npos);
  CHECK(text.find("±12.5%") != std::string::npos);
  CHECK(text.find("wrong [2]") != std::string::npos);
  CHECK(text.find("[2] 3 of 4 outputs are wrong") != std::string::npos);
  const std::string reason = "[1] no Winograd algorithm of cuDNN 9.19.0 computes this: CUDNN_STATUS_NOT";
  REQUIRE(text.find(reason) != std::string::npos);
  CHECK(text.find(reason, text.find(reason) + 1) == std::string::npos);
  CHECK(text.find("best: IMPLICIT_GEMM (NCHW) in 1.00 us, after the stages 1.50 us, cold 2.50 us, workspace") !=
        std::string::npos);
}

/// A row of bench that is no stage.
RunResult cufft_result() {
  RunResult result = gpu_result();
  result.stage = &cufft_row();
  result.speedup = {};
  return result;
}

TEST_CASE("cuFFT is no stage: its number is null, and it is compared with cuDNN alone") {
  std::vector<RunResult> rows{gpu_result(), cufft_result()};
  StageInfo first = kStage;
  first.number = stages().front().number;  // of its track
  first.track = stages().front().track;
  first.previous = 0;
  rows[0].stage = &first;
  rows[0].speedup = {};
  add_speedups(rows);
  CHECK_FALSE(rows[0].speedup.previous);
  CHECK(rows[0].speedup.first == 1.0);
  const Json json = to_json(rows[1]);
  CHECK(keys(json) == kResultKeys);
  CHECK(json["stage"] == "cufft");
  CHECK(json["number"].is_null());
  CHECK(json["speedup"]["previous"].is_null());
  CHECK(json["speedup"]["first"].is_null());
  CHECK(json["speedup"]["cudnn_best"] == 0.5);
}

TEST_CASE("the ladder's table says that cuFFT is no stage") {
  BenchReport report;
  report.rows = {gpu_result(), cufft_result()};
  const std::string text = bench_text(report);
  CHECK(text.find("07-tiled-2d ") < text.find("cufft (no stage) "));
}

TEST_CASE("cuDNN's two passes stand apart from its best") {
  RunResult result = gpu_result();
  result.cudnn->trials.push_back({"two passes: GEMM + plan 2 (eng0{})", "NCHW", "ok", 0.25, 64});
  std::vector<RunResult> rows{result};
  add_speedups(rows);
  CHECK(rows[0].speedup.cudnn_best == 0.5);
  BenchReport report;
  report.rows = rows;
  const std::string text = bench_text(report);
  CHECK(text.find("best: IMPLICIT_GEMM (NCHW) in 1.00 us, after the stages 1.50 us, cold 2.50 us, workspace") !=
        std::string::npos);
  CHECK(text.find("cuDNN 9.19.0, two passes: GEMM + plan 2 (eng0{}) (NCHW) in 0.250 us") != std::string::npos);
}

TEST_CASE("every family of cuDNN's algorithms has a best of its own") {
  RunResult result = gpu_result();
  result.cudnn->trials = {{"FFT_TILING", "NCHW", "ok", 4.0, 0},
                          {"FFT plan 7 (eng5{})", "NCHW", "ok", 3.0, 0},
                          {"WINOGRAD plan 2 (eng4{})", "NHWC", "ok", 0.5, 0},
                          {"plan 3 (eng0{})", "NHWC", "ok", 1.5, 12'000'000},
                          {"DIRECT", "NCHW", "ok", 1.0, 0},
                          {"IMPLICIT_GEMM", "NCHW", "wrong result", 0.25, 0},
                          {"two passes: FFT + GEMM", "NCHW", "ok", 0.125, 0}};
  const std::vector<CudnnTrial>& trials = result.cudnn->trials;
  CHECK(result.cudnn->best_of(kFftFamily) == &trials[1]);
  CHECK(result.cudnn->best_of(kWinogradFamily) == &trials[2]);
  CHECK(result.cudnn->best_of(kGemmFamily) == &trials[4]);
  CHECK(result.cudnn->best() == &trials[2]);
  CHECK(result.cudnn->best_two_pass() == &trials[6]);
  std::vector<RunResult> rows{result};
  add_speedups(rows);
  CHECK(rows[0].speedup.cudnn_gemm == 0.5);
  CHECK(rows[0].speedup.cudnn_fft == 1.5);
  CHECK(rows[0].speedup.cudnn_winograd == 0.25);
  CHECK(to_json(rows[0])["cudnn"][6]["family"].is_null());
  BenchReport report;
  report.rows = rows;
  const std::string text = bench_text(report);
  CHECK(text.find("cuDNN 9.19.0 GEMM family: DIRECT (NCHW) in 1.00 us\n") != std::string::npos);
  CHECK(text.find("cuDNN 9.19.0 FFT: FFT plan 7 (eng5{}) (NCHW) in 3.00 us\n") != std::string::npos);
  CHECK(text.find("cuDNN 9.19.0 Winograd: WINOGRAD plan 2") != std::string::npos);
}

/// Whether a table has a column under this heading.
bool has_heading(const std::string& text, const std::string& heading) {
  return text.find("  " + heading) != std::string::npos;
}

/// 64 channels of 56 x 56 pixels, 3 x 3: im2win's tensor is 56/54 of a third of im2col's matrix.
RunResult lowering_result(const StageInfo& stage, std::string_view backend) {
  RunResult result = gpu_result();
  result.stage = &stage;
  result.backend = backend;
  result.problem = parse_shape("c=64,h=56,w=56,k=64,r=3,s=3,pad_h=0,pad_w=0");
  result.workspace_bytes = 2'322'432;
  result.time_without_transform_us = TimeSummary{1.25, 1, 0.5, {1, 1.5}};
  return result;
}

TEST_CASE("the lowering track's table tells of memory, and compares with the row beside it") {
  StageInfo row = kLoweringStage;
  row.number = 0;
  row.folder = row.name = "im2col-cublas";
  BenchReport report;
  report.rows = {lowering_result(kLoweringStage, "gpu"), lowering_result(row, "gpu")};
  report.rows[1].time_us->median = 5;
  report.rows[1].time_without_transform_us.reset();
  std::string text = bench_text(report);
  CHECK(has_heading(text, "product alone"));
  CHECK(has_heading(text, "vs im2col-cublas"));
  CHECK(has_heading(text, "workspace"));
  CHECK(text.find("2.50x") != std::string::npos);
  CHECK(text.find("1.25 us") != std::string::npos);
  CHECK(text.find("2.32 MB") != std::string::npos);
  CHECK(text.find("memory: input 0.803 MB, im2col's matrix 6.72 MB, im2win's tensor 2.32 MB (34.6% of it)\n") !=
        std::string::npos);
  report.rows = {gpu_result()};
  text = bench_text(report);
  CHECK_FALSE(has_heading(text, "product alone"));
  CHECK_FALSE(has_heading(text, "workspace"));
  CHECK(text.find("memory:") == std::string::npos);
}

/// A stage of the winograd track, one after the other.
constexpr StageInfo winograd_stage(int number, std::string_view name, int previous, std::string_view dtype) {
  return {number, name, name, name, "winograd", name, previous, dtype, "NHWC", "000", "sm_70", nullptr};
}
constexpr StageInfo kBgemm = winograd_stage(24, "24-winograd-bgemm", 23, "fp32");
constexpr StageInfo kTensorCore = winograd_stage(26, "26-winograd-tensor-core", 24, "fp16");
constexpr StageInfo kInt8 = winograd_stage(30, "30-winograd-int8", 28, "int8");

RunResult winograd_result(const StageInfo& stage, double time_us, double floor_us) {
  RunResult result = gpu_result();
  result.stage = &stage;
  result.workload_name = "conv4";
  result.check->rel_l2_err = 1.5e-3;
  result.time_us->median = time_us;
  result.roofline->floor_us = floor_us;
  result.cudnn->precision = precision_of(stage);
  result.cudnn->trials = {{"WINOGRAD_NONFUSED", "NCHW", "ok", 64.0, 0, Precision::fp16},
                          {"GEMM", "NHWC", "ok", 4.0, 0, result.cudnn->precision},
                          {"DIRECT", "NHWC", "ok", 3.0, 0, Precision::fp16}};
  return result;
}

TEST_CASE("the winograd track's table: types, errors, and cuDNN in each type") {
  BenchReport report;
  report.rows = {winograd_result(kBgemm, 16, 1), winograd_result(kTensorCore, 2, 0.5), winograd_result(kInt8, 1, 0.5)};
  add_speedups(report.rows);
  CHECK(report.rows[1].speedup.previous == 8.0);
  CHECK(report.rows[2].speedup.cudnn_winograd == 64.0);
  CHECK(report.rows[2].speedup.cudnn_best == 4.0);
  CHECK(report.rows[1].speedup.cudnn_best == 1.5);
  const std::string text = bench_text(report);
  for (const char* heading : {"type", "rel. L2 error"}) CHECK(has_heading(text, heading));
  CHECK(text.find("floor  of floor") != std::string::npos);
  CHECK(text.find("1.5e-03") != std::string::npos);
  CHECK(text.find("0.500 us (L2)") != std::string::npos);
  CHECK(text.find("cuDNN 9.19.0 int8 best: GEMM (NHWC) in 4.00 us\n") != std::string::npos);
  CHECK(text.find("cuDNN 9.19.0 fp16 best: DIRECT (NHWC) in 3.00 us\n") != std::string::npos);
  CHECK(text.find("  floor: ") == std::string::npos);

  report.rows.pop_back();
  report.rows.pop_back();
  const std::string one = bench_text(report);
  CHECK_FALSE(has_heading(one, "type"));
  CHECK(one.find("floor  of floor") == std::string::npos);
  CHECK(one.find("  floor: 1.00 us (L2)\n") != std::string::npos);
}

/// 25 over 24 with a tile of its own.
RunResult over_other_tile() {
  static constexpr int kM[] = {2, 4}, kTbm[] = {16, 32};
  static constexpr Knob kKnobs[] = {{"m", kM, 2}, {"tbm", kTbm, 16}};
  static constexpr StageInfo kFused = winograd_stage(25, "25-winograd-fused", 24, "fp32");
  static constexpr StageInfo kRow = winograd_stage(0, "winograd-bgemm m=4", 0, "fp32");
  RunResult result = winograd_result(kFused, 2, 1);
  result.tile = "2x2";
  result.speedup.previous = 1.5;
  Configuration configuration{Knobs(kKnobs)};
  configuration["m"] = 4;
  result.speedup.over = ComparedWith{&kRow, UsedConfiguration{configuration, "given"}, "4x4", 1.5};
  return result;
}

TEST_CASE("a result names the configuration of the previous stage that it is compared with, and both tiles") {
  RunResult result = over_other_tile();
  CHECK_FALSE(to_json(result)["workload"].contains("epilogue"));
  result.problem.epilogue = Epilogue::bias;
  const Json json = to_json(result);
  CHECK(json["tile"] == "2x2");
  CHECK(json["speedup"]["over"].dump() ==
        R"({"stage":"winograd-bgemm m=4","configuration":{"m":4,"tbm":16},"tile":"4x4","time_us":1.5})");
  const auto records = parse_csv(to_csv({result}));
  REQUIRE(records[0].size() > 5);
  const auto last = [&](std::size_t row) { return Names(records[row].end() - 5, records[row].end()); };
  CHECK(last(0) == Names{"speedup_over_stage", "speedup_over_configuration", "speedup_over_tile", "tile", "epilogue"});
  CHECK(last(1) == Names{"winograd-bgemm m=4", "m=4,tbm=16", "4x4", "2x2", "bias"});
  BenchReport report;
  report.rows = {result};
  const std::string text = bench_text(report);
  CHECK(text.find("1.50x [1]") != std::string::npos);
  CHECK(text.find("[1] over winograd-bgemm m=4; tiles of 2x2 against 4x4\n") != std::string::npos);
  report.rows[0].speedup.over->stage = &kBgemm;  // as it comes, with the same tile
  report.rows[0].speedup.over->tile = "2x2";
  CHECK(bench_text(report).find("] over ") == std::string::npos);
}

TEST_CASE("a user's layer is one table, with the stages of every track; what runs on the host has its own") {
  BenchReport report;
  report.rows = {gpu_result(), winograd_result(kBgemm, 16, 1), lowering_result(kLoweringStage, "gpu"),
                 lowering_result(kCpuStage, "cpu")};
  for (RunResult& row : report.rows) {
    row.problem = parse_shape("c=4,h=9,w=9,k=4,r=3,s=3");
    row.problem.padding = Padding::reflect;
    row.workload_name = to_string(row.problem);
  }
  const std::string text = bench_text(report), title = "\nn=1,c=4,h=9,w=9,k=4,r=3,s=3, padding reflect\n";
  const std::size_t first = text.find(title), second = text.find(title, first + 1);
  REQUIRE(second != std::string::npos);
  CHECK(text.find(title, second + 1) == std::string::npos);
  const std::string of_gpu = text.substr(first, second - first);
  for (const char* name : {"07-tiled-2d", "24-winograd-bgemm", "21-im2win-pipelined", "memory: "}) {
    CAPTURE(name);
    CHECK(of_gpu.find(name) != std::string::npos);
  }
  CHECK(has_heading(of_gpu, "rel. L2 error"));
  CHECK(text.find("22-im2win-cpu", second) != std::string::npos);
}

TEST_CASE("the simulator's table of the winograd track tells errors and types") {
  BenchReport report;
  for (const StageInfo* stage : {&kBgemm, &kTensorCore}) {
    RunResult& result = report.rows.emplace_back(winograd_result(*stage, 1, 1));
    result.backend = "sim";
    result.time_us.reset();
    result.counters.emplace();
    result.prediction.emplace();
  }
  const std::string text = bench_text(report);
  CHECK(has_heading(text, "type"));
  CHECK(has_heading(text, "rel. L2 error"));
  report.rows.resize(1);
  CHECK_FALSE(has_heading(bench_text(report), "type"));
}

TEST_CASE("the cpu track's table tells rates, and the device that is not the report's") {
  StageInfo row = kCpuStage;
  row.number = 0;
  row.folder = row.name = "onednn";
  BenchReport report;
  report.device.name = "SIMT simulator";
  report.rows = {lowering_result(kCpuStage, "cpu"), lowering_result(row, "cpu")};
  for (RunResult& result : report.rows) result.device = "Some CPU, 2 threads";
  report.rows[1].time_us->median = 5;
  const std::string text = bench_text(report);
  CHECK(text.find("\non Some CPU, 2 threads\n") != std::string::npos);
  CHECK(has_heading(text, "GFLOP/s"));
  CHECK(has_heading(text, "im2win-cpu vs this"));
  CHECK(text.find("2.50x") != std::string::npos);
  CHECK_FALSE(has_heading(text, "vs cuDNN best"));
  const Json json = to_json(report);
  CHECK(json["device"]["backend"] == "cpu");
  CHECK(json["device"]["compute_capability"].is_null());
  CHECK(json["rows"][0]["kernels"].is_null());
}

TEST_CASE("a run tells the product alone and the memory") {
  RunResult result = lowering_result(kCpuStage, "cpu");
  const std::string text = run_text(result);
  CHECK(text.find("time of the product alone (hot): median 1.25 us, min 1.00 us, spread 50.0%\n") != std::string::npos);
  CHECK(text.find("GFLOP/s of the direct form") != std::string::npos);
  CHECK(text.find("memory: workspace 2.32 MB; input 0.803 MB, im2col's matrix 6.72 MB") != std::string::npos);
  CHECK(to_json(result)["time_without_transform_us"] ==
        Json{{"median", 1.25}, {"min", 1.0}, {"spread", 0.5}, {"samples", {1.0, 1.5}}});
  CHECK(run_text(gpu_result()).find("memory:") == std::string::npos);
}

TEST_CASE("a broken prediction is flagged") {
  RunResult result = blank_result();
  result.status = Status::ok;
  result.counters.emplace();
  result.counters->barriers = 3;
  result.prediction.emplace();
  result.prediction->barriers = 2;
  CHECK(broken_claims(*result.counters, *result.prediction).size() == 1);
  CHECK(run_text(result).find("DIFFERS") != std::string::npos);
  BenchReport report;
  report.rows = {result};
  CHECK(bench_text(report).find("barriers is 3, predicted 2") != std::string::npos);
  result.prediction->barriers = 3;
  CHECK(run_text(result).find("DIFFERS") == std::string::npos);
}

TEST_CASE("columns line up, whatever the width of their characters") {
  TextTable table({"name", "value", ""});
  table.add({"a", "±1", "x"});
  table.add({"long", "1,000,000", ""});
  CHECK(table.text() == "name      value\na            ±1  x\nlong  1,000,000\n");
}

TEST_CASE("a table fits its terminal, and says what it left out") {
  TextTable table({"name", "value", "other", "status"});
  table.add({"a", "1", "2", "ok"});
  table.add({"b", "333", "4", "refused [1]"});
  const std::string whole = table.text();
  CHECK(table.text({31, false}) == whole);
  CHECK(table.text({30, false}) ==
        "name  value  status\na         1  ok\nb       333  refused [1]\n"
        "  left out in 30 columns: other (--json has all)\n");
  CHECK(table.text({10, false}) ==
        "name  status\na     ok\nb     refused [1]\n  left out in 10 columns: value, other (--json has all)\n");
  CHECK(table.text({31, true}).find("  \033[2mrefused\033[0m [1]\n") != std::string::npos);

  TextTable ideas({"name", "idea"});
  ideas.add({"a", "±23456789 123456789 1"});
  CHECK(ideas.text({27, false}).find("…") == std::string::npos);
  CHECK(ideas.text({26, false}) == "name  idea\na     ±23456789 123456789…\n  cut in 26 columns: idea\n");
  CHECK(ideas.text({26, true}) == ideas.text({26, false}));
}

TEST_CASE("statuses in colour") {
  CHECK(with_coloured_status("wrong: 1 of 4", {0, true}) == "\033[31mwrong\033[0m: 1 of 4");
  CHECK(with_coloured_status("ok", {0, true}) == "ok");
  CHECK(with_coloured_status("fault", {0, false}) == "fault");
}

TEST_CASE("numbers for people") {
  CHECK(grouped(0) == "0");
  CHECK(grouped(999) == "999");
  CHECK(grouped(1234567) == "1,234,567");
  CHECK(grouped(-1000) == "-1,000");
  CHECK(grouped(-100) == "-100");
  CHECK(remaining_text(0, 300, 100) == "[0/300] ");
  CHECK(remaining_text(4, 300, 100) == "[4/300] ");
  CHECK(remaining_text(5, 300, 9) == "[5/300] ");
  CHECK(remaining_text(100, 300, 60) == "[100/300, 2 min left] ");
  CHECK(remaining_text(250, 300, 250) == "[250/300, 50 s left] ");
  CHECK(remaining_text(300, 300, 250) == "[300/300] ");
  CHECK(short_number(0) == "0.00");
  CHECK(short_number(0.0472) == "0.047");
  CHECK(short_number(4.156) == "4.16");
  CHECK(short_number(44) == "44.0");
  CHECK(short_number(504.2) == "504");
  CHECK(time_text(31.25) == "31.2 us");
  CHECK(time_text(42100) == "42.1 ms");
  CHECK(time_text(2.5e6) == "2.50 s");
}

}  // namespace
}  // namespace convladder
