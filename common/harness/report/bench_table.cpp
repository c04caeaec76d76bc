#include "common/harness/report/bench_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "common/harness/files/problem_io.hpp"
#include "common/harness/files/text_table.hpp"
#include "common/harness/report/text_report.hpp"

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

std::string previous_cell(const RunResult& row, Footnotes& notes) {
  if (row.stage->previous == 0) return "-";
  const std::string cell =
      ratio_or(row.speedup.previous, fmt::format("no time of stage {:02} to compare with", row.stage->previous), notes);
  const std::string over = other_configuration(row);
  return over.empty() ? cell : notes.mark(cell, "over " + over);
}

std::string first_cell(const RunResult& row, Footnotes& notes) {
  if (!on_ladder(*row.stage)) return "-";
  return ratio_or(row.speedup.first, "no time of the track's first stage to compare with", notes);
}

std::string stage_cell(const RunResult& row) {
  return fmt::format("{}{}", row.stage->folder, on_ladder(*row.stage) ? "" : " (no stage)");
}

/// A column of a table, between the stage's name and the status.
struct Column {
  std::string heading;
  std::function<std::string(const RunResult&, Footnotes&)> cell;  ///< of a row that has results
};

/// Stage, columns, status.
/// @param has_results whether a row has more to show than its status
template <class HasResults>
std::string table_of(Rows rows, const std::vector<Column>& columns, const HasResults& has_results,
                     const Terminal& terminal) {
  std::vector<std::string> headings{"stage"};
  for (const Column& column : columns) headings.push_back(column.heading);
  headings.emplace_back("status");
  TextTable table(headings);
  Footnotes notes;
  for (const RunResult& row : rows) {
    std::vector<std::string> cells{stage_cell(row)};
    const std::string status = status_cell(row, notes);
    for (const Column& column : columns) cells.push_back(has_results(row) ? column.cell(row, notes) : "-");
    cells.push_back(status);
    table.add(std::move(cells));
  }
  return table.text(terminal) + notes.text();
}

bool was_timed(const RunResult& row) { return row.time_us.has_value(); }

std::string time_cell(const RunResult& row, Footnotes& notes) {
  const std::string time = time_text(row.time_us->median), throttle = row.gpu ? throttle_text(*row.gpu) : "";
  return throttle.empty() ? time : notes.mark(time, throttle);
}

std::string spread_cell(const RunResult& row, Footnotes&) { return "±" + percent_text(row.time_us->spread); }

std::string workspace_cell(const RunResult& row, Footnotes&) {
  return row.workspace_bytes ? bytes_text(*row.workspace_bytes) : "-";
}

/// The time without the transform, where a row has one.
void add_product_column(Rows rows, std::vector<Column>& columns) {
  const auto has_product = [](const RunResult& row) { return row.time_without_transform_us.has_value(); };
  if (std::none_of(rows.begin(), rows.end(), has_product)) return;
  columns.push_back({"product alone", [](const RunResult& row, Footnotes&) {
                       return row.time_without_transform_us ? time_text(row.time_without_transform_us->median) : "-";
                     }});
}

/// The first row with a right result and a time whose stage is one of those that `chosen` accepts, or null.
template <class Chosen>
const RunResult* timed_row(Rows rows, const Chosen& chosen) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const RunResult& row) {
    return row.status == Status::ok && row.time_us && chosen(*row.stage);
  });
  return found == rows.end() ? nullptr : &*found;
}

/// Whether this is the same for all rows. @param of what of a row
template <class Of>
bool all_same(Rows rows, const Of& of) {
  return std::all_of(rows.begin(), rows.end(), [&](const RunResult& row) { return of(row) == of(rows.front()); });
}

bool any_lowers(Rows rows) {
  return std::any_of(rows.begin(), rows.end(), [](const RunResult& row) { return lowers(*row.stage); });
}

std::string_view type_of(const RunResult& row) { return row.stage->dtype; }

/// The element type, where the rows have several.
void add_type_column(Rows rows, std::vector<Column>& columns) {
  if (all_same(rows, type_of)) return;
  columns.push_back({"type", [](const RunResult& row, Footnotes&) { return std::string(type_of(row)); }});
}

/// The error of each result, where the algorithm makes them differ.
void add_error_column(Rows rows, std::vector<Column>& columns) {
  const auto transforms = [](const RunResult& row) { return track_of(*row.stage).uses_winograd; };
  if (std::none_of(rows.begin(), rows.end(), transforms)) return;
  columns.push_back({"rel. L2 error", [](const RunResult& row, Footnotes&) {
                       return row.check ? fmt::format("{:.1e}", row.check->rel_l2_err) : "-";
                     }});
}

/// "12.5 us (DRAM)", or nothing.
std::string floor_text(const RunResult& row) {
  if (!row.roofline || !row.roofline->floor_us) return "";
  return fmt::format("{} ({})", time_text(*row.roofline->floor_us), row.roofline->bound);
}

std::string gpu_table(Rows rows, const Terminal& terminal) {
  const bool lowering = any_lowers(rows);
  std::vector<Column> columns;
  add_type_column(rows, columns);
  columns.insert(columns.end(),
                 {{"time", time_cell}, {"spread", spread_cell}, {"cold", [](const RunResult& row, Footnotes& notes) {
                                                                   return row.time_cold_us
                                                                              ? time_text(row.time_cold_us->median)
                                                                              : notes.mark("n/a", row.cold_unavailable);
                                                                 }}});
  add_error_column(rows, columns);
  add_product_column(rows, columns);
  columns.push_back({"vs previous", previous_cell});
  columns.push_back({"vs first", first_cell});
  const RunResult* const beside =
      timed_row(rows, [](const StageInfo& stage) { return !on_ladder(stage) && lowers(stage); });
  if (beside) {
    columns.push_back({fmt::format("vs {}", beside->stage->name), [beside](const RunResult& row, Footnotes&) {
                         return ratio_text(beside->time_us->median / row.time_us->median);
                       }});
  }
  columns.push_back({"vs cuDNN Winograd", [](const RunResult& row, Footnotes& notes) {
                       return ratio_or(row.speedup.cudnn_winograd, cudnn_reason(row.cudnn, kWinogradFamily), notes);
                     }});
  columns.push_back({"vs cuDNN best", [](const RunResult& row, Footnotes& notes) {
                       return ratio_or(row.speedup.cudnn_best, cudnn_reason(row.cudnn, ""), notes);
                     }});
  if (!all_same(rows, floor_text))
    columns.push_back({"floor", [](const RunResult& row, Footnotes&) { return floor_text(row); }});
  columns.push_back({"of floor", [](const RunResult& row, Footnotes&) {
                       return row.roofline && row.roofline->share ? percent_text(*row.roofline->share) : "-";
                     }});
  if (lowering) columns.push_back({"workspace", workspace_cell});
  return table_of(rows, columns, was_timed, terminal);
}

std::string cpu_table(Rows rows, const Terminal& terminal) {
  std::vector<Column> columns{
      {"time", time_cell}, {"spread", spread_cell}, {"GFLOP/s", [](const RunResult& row, Footnotes&) {
                                                       return short_number(static_cast<double>(row.problem.flops()) /
                                                                           row.time_us->median * 1e-3);
                                                     }}};
  add_product_column(rows, columns);
  if (const RunResult* const stage = timed_row(rows, on_ladder)) {
    columns.push_back({fmt::format("{} vs this", stage->stage->name), [stage](const RunResult& row, Footnotes&) {
                         return ratio_text(row.time_us->median / stage->time_us->median);
                       }});
  }
  columns.push_back({"workspace", workspace_cell});
  return table_of(rows, columns, was_timed, terminal);
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

std::string sim_table(Rows rows, const Terminal& terminal) {
  using Cell = std::string (*)(const Counters&, const CounterFigures&);
  const auto counted = [](std::string heading, Cell cell) {
    return Column{std::move(heading), [cell](const RunResult& row, Footnotes&) {
                    return cell(*row.counters, figures_of(*row.counters, row.problem.output_size()));
                  }};
  };
  std::vector<Column> columns;
  add_type_column(rows, columns);
  add_error_column(rows, columns);
  columns.insert(
      columns.end(),
      {counted("loads B/output", [](auto&, auto& figures) { return short_number(figures.load_bytes_per_output); }),
       counted("sectors/request", [](auto&, auto& figures) { return short_number(figures.sectors_per_load); }),
       counted("sectors/output", [](auto&, auto& figures) { return short_number(figures.sectors_per_output); }),
       counted("unique bytes", [](auto& c, auto&) { return grouped(c.global_load_unique_bytes); }),
       counted("shared requests",
               [](auto& c, auto&) { return grouped(c.shared_load_requests + c.shared_store_requests); }),
       counted("conflicts", [](auto& c, auto&) { return grouped(c.shared_load_conflicts + c.shared_store_conflicts); }),
       counted("constant requests", [](auto& c, auto&) { return grouped(c.constant_load_requests); }),
       counted("barriers", [](auto& c, auto&) { return grouped(c.barriers); }),
       {"as predicted", prediction_cell}});
  if (any_lowers(rows)) columns.push_back({"workspace", workspace_cell});
  return table_of(
      rows, columns, [](const RunResult& row) { return row.counters && row.status != Status::fault; }, terminal);
}

/// What the ratios to cuDNN in a table refer to. @param several whether the table has several element types
std::string cudnn_text(const RunResult& row, bool several) {
  if (!row.cudnn) return "";
  std::string text;
  const auto line = [&](const char* label, const CudnnTrial* trial) {
    if (!trial) return;
    const auto time = [](const char* what, const std::optional<double>& time_us) {
      return time_us ? fmt::format(", {} {}", what, time_text(*time_us)) : "";
    };
    text += fmt::format("  cuDNN {}{}{}{} ({}) in {}{}{}{}\n", row.cudnn->version,
                        several ? fmt::format(" {}", to_string(trial->precision)) : "", label, trial->algorithm,
                        trial->layout, time_text(*trial->time_us), time("after the stages", trial->time_again_us),
                        time("cold", trial->time_cold_us),
                        trial->workspace_bytes > 0 ? ", workspace " + bytes_text(trial->workspace_bytes) : "");
  };
  line(" Winograd: ", row.cudnn->best_of(kWinogradFamily));
  line(" FFT: ", row.cudnn->best_of(kFftFamily));
  line(" GEMM family: ", row.cudnn->best_of(kGemmFamily));
  line(" best: ", row.cudnn->best());
  line(", ", row.cudnn->best_two_pass());
  if (row.cudnn->search) {
    text +=
        fmt::format("  cuDNN {}{} search: {}\n", row.cudnn->version,
                    several ? fmt::format(" {}", to_string(row.cudnn->precision)) : "", to_string(*row.cudnn->search));
  }
  return text;
}

/// What the ratios and shares in a table refer to.
std::string references_text(Rows rows) {
  std::string text;
  const RunResult& first = rows.front();
  if (any_lowers(rows)) text += fmt::format("  memory: {}\n", memory_text(first.problem));
  if (const std::string floor = floor_text(first); !floor.empty() && all_same(rows, floor_text))
    text += fmt::format("  floor: {}\n", floor);
  std::vector<std::string_view> types;
  for (const RunResult& row : rows) {
    if (std::find(types.begin(), types.end(), type_of(row)) != types.end()) continue;
    types.push_back(type_of(row));
    text += cudnn_text(row, !all_same(rows, type_of));
  }
  return text;
}

/// Whether the row is of a user's layer, whose name is its shape, and not of a track's workload.
bool of_users_layer(const RunResult& row) { return row.workload_name == to_string(row.problem); }

/// Whether two rows stand in one table: those of a workload of a track, or of a user's layer all that are measured
/// alike.
bool in_one_table(const RunResult& a, const RunResult& b) {
  if (a.workload_name != b.workload_name) return false;
  return of_users_layer(a) ? a.backend == b.backend : a.stage->track == b.stage->track;
}

/// @param device that the report's first line names
std::string workload_text(Rows rows, std::string_view device, const Terminal& terminal) {
  const RunResult& first = rows.front();
  std::string text =
      of_users_layer(first)
          ? fmt::format("{}, padding {}\n", first.workload_name, to_string(first.problem.padding))
          : fmt::format("{}: {} ({})\n", first.stage->track, first.workload_name, to_string(first.problem));
  if (first.backend == "cpu" && first.device != device) text += fmt::format("on {}\n", first.device);
  text += first.backend == "gpu"   ? gpu_table(rows, terminal)
          : first.backend == "cpu" ? cpu_table(rows, terminal)
                                   : sim_table(rows, terminal);
  return text + references_text(rows);
}

std::string header_text(const BenchReport& report) {
  std::string text = device_line(report.device) + "\n";
  if (report.device_after.sm_clock_mhz > 0) {
    text += fmt::format("clocks after the run: {:.0f} and {:.0f} MHz\n", report.device_after.sm_clock_mhz,
                        report.device_after.memory_clock_mhz);
  }
  if (!report.ceilings) return text;
  const Ceilings& c = *report.ceilings;
  const auto rate = [](const char* type, double per_s, const char* unit) {
    return per_s > 0 ? fmt::format(", {} {:.1f} {}", type, per_s * 1e-12, unit) : "";
  };
  return text +
         fmt::format(
             "measured ceilings: DRAM {:.2f} TB/s, L2 {:.2f} TB/s (read + written), fp32 {:.1f} TFLOP/s{}{}, launch "
             "{:.2f} us\ntimes are hot medians; spread is the interquartile range\n",
             c.dram_bytes_per_s * 1e-12, c.l2_bytes_per_s * 1e-12, c.fp32_flops_per_s * 1e-12,
             rate("fp16", c.fp16_flops_per_s, "TFLOP/s"), rate("int8", c.int8_ops_per_s, "TOP/s"), c.launch_us);
}

}  // namespace

std::string bench_text(const BenchReport& report, const Terminal& terminal) {
  std::string text = header_text(report);
  const Rows rows = report.rows;
  for (std::size_t begin = 0, end; begin < rows.size(); begin = end) {
    end = begin;
    while (end < rows.size() && in_one_table(rows[begin], rows[end])) ++end;
    text += "\n" + workload_text(rows.subspan(begin, end - begin), report.device.name, terminal);
  }
  return text;
}

}  // namespace convladder
