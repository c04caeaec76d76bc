#include "common/harness/report/text_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <vector>

#include "common/harness/files/problem_io.hpp"
#include "common/harness/files/text_table.hpp"
#include "common/harness/ladder/tuning_log.hpp"
#include "common/kernel/tracks/lowering.hpp"

namespace convladder {
namespace {

double ratio(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

/// A row for each counter that was measured or predicted.
std::string counters_table(const Counters& counters, const Prediction& prediction, const Terminal& terminal) {
  TextTable table({"counter", "measured", "predicted", ""});
  for (const CounterField& field : kCounterFields) {
    const std::int64_t measured = counters.*field.member, claim = prediction.*field.member;
    if (measured == 0 && claim <= 0) continue;
    table.add({field.name, grouped(measured), claim < 0 ? "-" : grouped(claim),
               claim < 0           ? ""
               : claim == measured ? "as predicted"
                                   : "DIFFERS"});
  }
  return table.text(terminal);
}

std::string figures_text(const Counters& counters, std::int64_t outputs) {
  const CounterFigures figures = figures_of(counters, outputs);
  return fmt::format(
      "per output: {} bytes loaded ({} of them unique), {} sectors loaded\n"
      "sectors a request: {} loading, {} storing\n",
      short_number(figures.load_bytes_per_output), short_number(figures.unique_bytes_per_output),
      short_number(figures.sectors_per_output), short_number(figures.sectors_per_load),
      short_number(figures.sectors_per_store));
}

/// A row for each source line, a column for each counter that any of them has.
std::string lines_table(const std::vector<LineCounters>& lines, const Terminal& terminal) {
  std::vector<const CounterField*> used;
  for (const CounterField& field : kCounterFields) {
    const auto counts = [&](const LineCounters& line) { return line.counters.*field.member != 0; };
    if (std::any_of(lines.begin(), lines.end(), counts)) used.push_back(&field);
  }
  std::vector<std::string> headings{"line"};
  for (const CounterField* field : used) headings.emplace_back(field->name);
  headings.emplace_back("");
  TextTable table(headings);
  for (const LineCounters& line : lines) {
    std::vector<std::string> cells{fmt::format("{}:{}", line.file, line.line)};
    for (const CounterField* field : used) {
      const std::int64_t value = line.counters.*field->member;
      cells.push_back(value == 0 ? "." : grouped(value));
    }
    cells.emplace_back("");
    table.add(cells);
  }
  return table.text(terminal);
}

std::string time_line(const char* label, const TimeSummary& time) {
  return fmt::format("{}: median {}, min {}, spread {}\n", label, time_text(time.median), time_text(time.min),
                     percent_text(time.spread));
}

/// "the GPU meanwhile: 1980 MHz (least 1965), 540 W (most 612)", with what held its clocks down.
std::string conditions_line(const GpuConditions& gpu) {
  const std::string throttle = throttle_text(gpu);
  return fmt::format("the GPU meanwhile: {:.0f} MHz (least {:.0f}), {:.0f} W (most {:.0f}){}{}\n", gpu.sm_clock_mhz,
                     gpu.least_sm_clock_mhz, gpu.power_w, gpu.most_power_w, throttle.empty() ? "" : "; ", throttle);
}

std::string times_text(const RunResult& result) {
  std::string text = time_line("time (hot, the headline)", *result.time_us);
  text += result.time_cold_us ? time_line("time (cold)", *result.time_cold_us)
                              : fmt::format("time (cold): n/a: {}\n", result.cold_unavailable);
  if (result.time_without_transform_us)
    text += time_line("time of the product alone (hot)", *result.time_without_transform_us);
  const double tflops = static_cast<double>(result.problem.flops()) / result.time_us->median * 1e-6;
  text += result.backend == "cpu" ? fmt::format("{} GFLOP/s of the direct form", short_number(1e3 * tflops))
                                  : fmt::format("{} TFLOP/s of the direct form", short_number(tflops));
  if (result.roofline && result.roofline->share) {
    text += fmt::format("; {} of the floor of {} ({})", percent_text(*result.roofline->share),
                        time_text(*result.roofline->floor_us), result.roofline->bound);
  }
  text += '\n';
  if (result.gpu) text += conditions_line(*result.gpu);
  if (result.prepare_us) text += fmt::format("prepare: {}", time_text(*result.prepare_us));
  if (result.workspace_bytes) text += fmt::format("; workspace {} bytes", grouped(*result.workspace_bytes));
  return text + "\n";
}

std::string kernels_table(const std::vector<KernelInfo>& kernels, const Terminal& terminal) {
  TextTable table({"kernel", "registers", "spill bytes", "shared bytes", "occupancy", ""});
  for (const KernelInfo& kernel : kernels) {
    table.add({kernel.name, std::to_string(kernel.registers), grouped(kernel.spill_bytes), grouped(kernel.shared_bytes),
               percent_text(kernel.occupancy), ""});
  }
  return table.text(terminal);
}

std::string fault_line(const Fault& fault) {
  std::string line = fault.kind;
  if (!fault.file.empty()) line += fmt::format(" at {}:{}", fault.file, fault.line);
  if (!fault.kernel.empty()) line += " in " + fault.kernel;
  if (!fault.block.empty())
    line += fault.whole_warp ? fmt::format(", block {} warp {}", fault.block, fault.warp)
                             : fmt::format(", block {} thread {}", fault.block, fault.thread);
  if (!fault.other.empty()) line += fmt::format("  [{}]", fault.other);
  if (fault.count > 1) line += fmt::format("  ({} times)", grouped(fault.count));
  return line + "\n";
}

}  // namespace

std::string throttle_text(const GpuConditions& gpu) {
  const std::string why = fmt::to_string(fmt::join(clock_reasons(gpu.clock_reasons), ", "));
  if (gpu.slowed > 0) return fmt::format("the GPU was slowed in {} of the samples, and stayed so: {}", gpu.slowed, why);
  if (gpu.repeated > 0) return fmt::format("samples taken again, since the GPU was slowed: {}; {}", gpu.repeated, why);
  return (gpu.clock_reasons & kPowerCap) != 0 ? "the GPU was at its power limit" : "";
}

std::string device_line(const DeviceInfo& info) {
  if (info.driver.empty()) return info.name;
  constexpr double kMiB = 1 << 20, kGiB = 1 << 30;
  std::string line = fmt::format("{} (sm_{}, {} multiprocessors, {:.0f} GiB, L2 {:.0f} MiB, CUDA driver {})", info.name,
                                 info.compute_capability, info.multiprocessors, info.memory_bytes / kGiB,
                                 info.l2_bytes / kMiB, info.driver);
  if (info.sm_clock_mhz > 0)
    line += fmt::format(", clocks {:.0f} and {:.0f} MHz", info.sm_clock_mhz, info.memory_clock_mhz);
  return line;
}

bool lowers(const StageInfo& stage) { return track_of(stage).lowers; }

std::string bytes_text(std::int64_t bytes) { return short_number(static_cast<double>(bytes) * 1e-6) + " MB"; }

std::string memory_text(const ConvProblem& problem) {
  const std::int64_t im2col = im2col_size(problem), im2win = im2win_size(problem);
  return fmt::format("input {}, im2col's matrix {}, im2win's tensor {} ({} of it)",
                     bytes_text(4 * problem.input_size()), bytes_text(4 * im2col), bytes_text(4 * im2win),
                     percent_text(ratio(im2win, im2col)));
}

std::string verdict_line(const RunResult& result) {
  std::string line = result.status == Status::ok ? "verified" : to_string(result.status);
  if (result.check && result.check->ok) {
    line += fmt::format(": relative L2 error {:.2g} (tolerance {:.2g}), largest error {:.2g}", result.check->rel_l2_err,
                        result.check->tolerance, result.check->max_abs_err);
    if (result.check->unchecked > 0) {
      line += fmt::format("; {} of {} outputs unchecked: their terms overflow fp32 to infinity or NaN",
                          grouped(result.check->unchecked), grouped(result.problem.output_size()));
    }
  }
  if (!result.reason.empty()) line += ": " + result.reason;
  return line;
}

CounterFigures figures_of(const Counters& c, std::int64_t outputs) {
  return {ratio(c.global_load_bytes, outputs), ratio(c.global_load_unique_bytes, outputs),
          ratio(c.global_load_sectors, outputs), ratio(c.global_load_sectors, c.global_load_requests),
          ratio(c.global_store_sectors, c.global_store_requests)};
}

std::string configuration_line(const UsedConfiguration& used) {
  std::string line = fmt::format("configuration ({}):", used.origin);
  const Knobs& knobs = used.configuration.knobs;
  for (int i = 0; i < knobs.count; ++i) {
    const Knob& knob = knobs.knobs[i];
    line += fmt::format("{} {} {}", i == 0 ? "" : ",", knob.name, value_text(knob, used.configuration.values[i]));
  }
  return line + "\n";
}

std::string cudnn_reason(const std::optional<CudnnBaseline>& cudnn, std::string_view prefix) {
  if (!cudnn) return "cuDNN was not measured";
  if (!cudnn->unavailable.empty()) return cudnn->unavailable;
  std::map<std::string, std::vector<std::string>> who_said;
  for (const CudnnTrial& trial : cudnn->trials) {
    if (trial.algorithm.starts_with(prefix))
      who_said[trial.status].push_back(fmt::format("{} {}", trial.algorithm, trial.layout));
  }
  std::vector<std::string> answers;
  for (const auto& [status, names] : who_said)
    answers.push_back(fmt::format("{} ({})", status, fmt::join(names, ", ")));
  return fmt::format("no {}algorithm of cuDNN {} computes this{}{}", prefix.empty() ? "" : "Winograd ", cudnn->version,
                     prefix.empty() || answers.empty() ? "" : ": ",
                     prefix.empty() ? "" : fmt::to_string(fmt::join(answers, ", ")));
}

std::string other_configuration(const RunResult& result) {
  const std::optional<ComparedWith>& over = result.speedup.over;
  if (!over) return "";
  const bool other_tile = over->tile != result.tile && !over->tile.empty() && !result.tile.empty();
  if (on_ladder(*over->stage) && !other_tile) return "";
  return fmt::format("{}{}", over->stage->name,
                     other_tile ? fmt::format("; tiles of {} against {}", result.tile, over->tile) : "");
}

std::string run_text(const RunResult& result, const Terminal& terminal) {
  const StageInfo& stage = *result.stage;
  std::string text = fmt::format("{} {}: {}\n", label_of(stage), stage.name, stage.title);
  text += fmt::format("problem: {}, padding {}\n", to_string(result.problem), to_string(result.problem.padding));
  text += with_coloured_status(result.faults.empty() ? verdict_line(result) : "fault:", terminal) + "\n";
  for (const Fault& fault : result.faults) text += fault_line(fault);
  if (result.configuration) text += configuration_line(*result.configuration);
  if (result.time_us) text += "\n" + times_text(result);
  if (result.workspace_bytes && result.status == Status::ok && lowers(stage))
    text += fmt::format("memory: workspace {}; {}\n", bytes_text(*result.workspace_bytes), memory_text(result.problem));
  if (!result.kernels.empty()) text += "\n" + kernels_table(result.kernels, terminal);
  if (result.counters && result.status != Status::fault) {
    text += "\n" + counters_table(*result.counters, *result.prediction, terminal);
    text += figures_text(*result.counters, result.problem.output_size());
  }
  if (!result.lines.empty()) text += "\n" + lines_table(result.lines, terminal);
  return text;
}

}  // namespace convladder
