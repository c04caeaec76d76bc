#include "common/bench_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <span>
#include <vector>

#include "common/problem_io.hpp"
#include "common/text_report.hpp"
#include "common/text_table.hpp"

namespace convladder {
namespace {

using Rows = std::span<const RunResult>;

std::string status_cell(const RunResult& row, Footnotes& notes) {
  if (row.configuration && row.configuration->origin == "tuned")
    return notes.mark(to_string(row.status),
                      row.status == Status::ok ? "with the configuration that ./lab tune found here" : row.reason);
  return row.status == Status::ok ? "ok" : notes.mark(to_string(row.status), row.reason);
}

std::string ratio_or(const std::optional<double>& ratio, const std::string& reason, Footnotes& notes) {
  return ratio ? ratio_text(*ratio) : notes.mark("n/a", reason);
}

/// Why no algorithm of this name (or no algorithm at all, where it is empty) worked.
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

std::string previous_cell(const RunResult& row, Footnotes& notes) {
  if (row.stage->previous == 0) return "-";
  return ratio_or(row.speedup.previous, fmt::format("no time of stage {:02} to compare with", row.stage->previous),
                  notes);
}

std::string first_cell(const RunResult& row, Footnotes& notes) {
  if (!on_ladder(*row.stage)) return "-";
  return ratio_or(row.speedup.first, "no time of the track's first stage to compare with", notes);
}

std::string stage_cell(const RunResult& row) {
  return fmt::format("{}{}", row.stage->folder, on_ladder(*row.stage) ? "" : " (no stage)");
}

std::string gpu_table(Rows rows) {
  TextTable table({"stage", "time", "spread", "cold", "vs previous", "vs first", "vs cuDNN Winograd", "vs cuDNN best",
                   "of floor", "status"});
  Footnotes notes;
  for (const RunResult& row : rows) {
    const std::string stage = stage_cell(row), status = status_cell(row, notes);
    if (!row.time_us) {
      table.add({stage, "-", "-", "-", "-", "-", "-", "-", "-", status});
      continue;
    }
    table.add({stage, time_text(row.time_us->median), "±" + percent_text(row.time_us->spread),
               row.time_cold_us ? time_text(row.time_cold_us->median) : notes.mark("n/a", row.cold_unavailable),
               previous_cell(row, notes), first_cell(row, notes),
               ratio_or(row.speedup.cudnn_winograd, cudnn_reason(row.cudnn, "WINOGRAD"), notes),
               ratio_or(row.speedup.cudnn_best, cudnn_reason(row.cudnn, ""), notes),
               row.roofline && row.roofline->share ? percent_text(*row.roofline->share) : "-", status});
  }
  return table.text() + notes.text();
}

std::string prediction_cell(const RunResult& row, Footnotes& notes) {
  const std::vector<const CounterField*> broken = broken_claims(*row.counters, *row.prediction);
  if (broken.empty()) return "yes";
  std::vector<std::string> texts;
  for (const CounterField* field : broken) {
    texts.push_back(fmt::format("{} is {}, predicted {}", field->name, grouped((*row.counters).*field->member),
                                grouped((*row.prediction).*field->member)));
  }
  return notes.mark("no", fmt::format("{}: {}", row.stage->folder, fmt::join(texts, "; ")));
}

std::string sim_table(Rows rows) {
  TextTable table({"stage", "loads B/output", "sectors/request", "sectors/output", "unique bytes", "shared requests",
                   "conflicts", "constant requests", "barriers", "as predicted", "status"});
  Footnotes notes;
  for (const RunResult& row : rows) {
    const std::string stage(row.stage->folder), status = status_cell(row, notes);
    if (!row.counters || row.status == Status::fault) {
      table.add({stage, "-", "-", "-", "-", "-", "-", "-", "-", "-", status});
      continue;
    }
    const Counters& c = *row.counters;
    const CounterFigures figures = figures_of(c, row.problem.output_size());
    table.add({stage, short_number(figures.load_bytes_per_output), short_number(figures.sectors_per_load),
               short_number(figures.sectors_per_output), grouped(c.global_load_unique_bytes),
               grouped(c.shared_load_requests + c.shared_store_requests),
               grouped(c.shared_load_conflicts + c.shared_store_conflicts), grouped(c.constant_load_requests),
               grouped(c.barriers), prediction_cell(row, notes), status});
  }
  return table.text() + notes.text();
}

/// What the ratios and shares in a table refer to.
std::string references_text(const RunResult& row) {
  std::string text;
  if (row.roofline && row.roofline->floor_us) {
    text += fmt::format("  floor: {} ({})\n", time_text(*row.roofline->floor_us), row.roofline->bound);
  }
  if (!row.cudnn) return text;
  const auto line = [&](const char* label, const CudnnTrial* trial) {
    if (!trial) return;
    text += fmt::format("  cuDNN {}{}{} ({}) in {}\n", row.cudnn->version, label, trial->algorithm, trial->layout,
                        time_text(*trial->time_us));
  };
  line(" Winograd: ", row.cudnn->best_winograd());
  line(" best: ", row.cudnn->best());
  line(", ", row.cudnn->best_two_pass());
  return text;
}

std::string workload_text(Rows rows) {
  const RunResult& first = rows.front();
  std::string text = fmt::format("{}: {} ({})\n", first.stage->track, first.workload_name, to_string(first.problem));
  text += first.backend == "gpu" ? gpu_table(rows) : sim_table(rows);
  return text + references_text(first);
}

std::string header_text(const BenchReport& report) {
  std::string text = device_line(report.device) + "\n";
  if (report.device_after.sm_clock_mhz > 0) {
    text += fmt::format("clocks after the run: {:.0f} and {:.0f} MHz\n", report.device_after.sm_clock_mhz,
                        report.device_after.memory_clock_mhz);
  }
  if (!report.ceilings) return text;
  const Ceilings& c = *report.ceilings;
  return text + fmt::format(
                    "measured ceilings: DRAM {:.2f} TB/s, L2 {:.2f} TB/s (read + written), fp32 {:.1f} TFLOP/s, launch "
                    "{:.2f} us\ntimes are hot medians; spread is the interquartile range\n",
                    c.dram_bytes_per_s * 1e-12, c.l2_bytes_per_s * 1e-12, c.fp32_flops_per_s * 1e-12, c.launch_us);
}

}  // namespace

std::string bench_text(const BenchReport& report) {
  std::string text = header_text(report);
  const Rows rows = report.rows;
  for (std::size_t begin = 0, end; begin < rows.size(); begin = end) {
    end = begin;
    while (end < rows.size() && rows[end].workload_name == rows[begin].workload_name &&
           rows[end].stage->track == rows[begin].stage->track) {
      ++end;
    }
    text += "\n" + workload_text(rows.subspan(begin, end - begin));
  }
  return text;
}

}  // namespace convladder
