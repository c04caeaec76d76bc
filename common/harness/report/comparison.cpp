#include "common/harness/report/comparison.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "common/harness/files/problem_io.hpp"
#include "common/harness/files/text_table.hpp"
#include "common/harness/report/text_report.hpp"

namespace convladder {
namespace {

/// One figure of every result, absent where a result has none.
struct Measure {
  std::string name;
  std::vector<std::optional<double>> values;
  bool whole = false;  ///< counts, written out in full
};

std::string value_text(const Measure& measure, double value) {
  return measure.whole ? grouped(static_cast<std::int64_t>(value)) : short_number(value);
}

template <class Value>
Measure measure_of(std::string name, const std::vector<RunResult>& results, bool whole, const Value& value) {
  Measure measure{std::move(name), {}, whole};
  for (const RunResult& result : results) measure.values.push_back(value(result));
  return measure;
}

bool worth_showing(const Measure& measure) {
  return std::any_of(measure.values.begin(), measure.values.end(),
                     [](const std::optional<double>& value) { return value && *value != 0; });
}

/// The largest of the kernels' values.
template <class Member>
std::optional<double> of_kernels(const RunResult& result, Member KernelInfo::*member) {
  std::optional<double> largest;
  for (const KernelInfo& kernel : result.kernels) {
    largest = std::max(largest.value_or(0), static_cast<double>(kernel.*member));
  }
  return largest;
}

std::optional<double> median(const std::optional<TimeSummary>& time) {
  return time ? std::optional<double>(time->median) : std::nullopt;
}

std::vector<Measure> measures_of(const std::vector<RunResult>& results) {
  std::vector<Measure> all;
  const auto add = [&](std::string name, bool whole, const auto& value) {
    Measure measure = measure_of(std::move(name), results, whole, value);
    if (worth_showing(measure)) all.push_back(std::move(measure));
  };
  using Value = std::optional<double>;
  add("time, hot (us)", false, [](const RunResult& r) { return median(r.time_us); });
  add("time, cold (us)", false, [](const RunResult& r) { return median(r.time_cold_us); });
  add("spread (%)", false, [](const RunResult& r) { return r.time_us ? Value(100 * r.time_us->spread) : Value(); });
  add("share of floor (%)", false,
      [](const RunResult& r) { return r.roofline && r.roofline->share ? Value(100 * *r.roofline->share) : Value(); });
  add("registers", true, [](const RunResult& r) { return of_kernels(r, &KernelInfo::registers); });
  add("spill bytes", true, [](const RunResult& r) { return of_kernels(r, &KernelInfo::spill_bytes); });
  add("shared bytes", true, [](const RunResult& r) { return of_kernels(r, &KernelInfo::shared_bytes); });
  add("occupancy", false, [](const RunResult& r) { return of_kernels(r, &KernelInfo::occupancy); });
  for (const CounterField& field : kCounterFields) {
    add(field.name, true, [&](const RunResult& r) {
      return r.counters && r.status != Status::fault ? Value(static_cast<double>((*r.counters).*field.member))
                                                     : Value();
    });
  }
  return all;
}

std::string ratio_cell(const Measure& measure, std::size_t i) {
  const auto &first = measure.values[0], &other = measure.values[i];
  return first && other && *first != 0 ? ratio_text(*other / *first) : "-";
}

std::string table_of(const std::vector<RunResult>& results, const std::vector<Measure>& measures) {
  std::vector<std::string> headings{""};
  for (std::size_t i = 0; i < results.size(); ++i) {
    headings.emplace_back(results[i].stage->folder);
    if (i > 0) headings.emplace_back("ratio");
  }
  headings.emplace_back("");
  TextTable table(headings);
  for (const Measure& measure : measures) {
    std::vector<std::string> cells{measure.name};
    for (std::size_t i = 0; i < results.size(); ++i) {
      cells.push_back(measure.values[i] ? value_text(measure, *measure.values[i]) : "n/a");
      if (i > 0) cells.push_back(ratio_cell(measure, i));
    }
    cells.emplace_back("");
    table.add(std::move(cells));
  }
  return table.text();
}

/// By what factor a figure rose or fell; 1 where it did neither, appeared or vanished.
double factor(const Measure& measure, std::size_t i) {
  const auto &first = measure.values[0], &other = measure.values[i];
  if (!first || !other || *first == 0 || *other == 0) return 1;
  return std::max(*other / *first, *first / *other);
}

/// "global_load_bytes falls 21x, global_load_sectors rises 2x": the largest changes first.
std::vector<std::string> largest_changes(std::vector<Measure> measures, std::size_t i) {
  constexpr std::size_t kMost = 3;
  constexpr double kLeast = 1.005;  // less shows as 1.00x
  std::erase_if(measures,
                [](const Measure& measure) { return measure.name.ends_with("(%)"); });  // no changes of their own
  std::stable_sort(measures.begin(), measures.end(),
                   [&](const Measure& a, const Measure& b) { return factor(a, i) > factor(b, i); });
  std::vector<std::string> changes;
  for (const Measure& measure : measures) {
    if (changes.size() == kMost || factor(measure, i) < kLeast) break;
    changes.push_back(fmt::format("{} {} {}", measure.name, *measure.values[i] > *measure.values[0] ? "rises" : "falls",
                                  ratio_text(factor(measure, i))));
  }
  return changes;
}

/// Names of the figures that are zero in result `without` and not in result `with`.
std::vector<std::string> only_in(const std::vector<Measure>& measures, std::size_t with, std::size_t without) {
  std::vector<std::string> names;
  for (const Measure& measure : measures) {
    const auto &there = measure.values[with], &absent = measure.values[without];
    if (there && absent && *there != 0 && *absent == 0) names.push_back(measure.name);
  }
  return names;
}

/// "03-tiled-1d against 01-naive-1d: global_load_bytes falls 21.2x, ...; new: barriers, ..."
std::string summary_of(const std::vector<RunResult>& results, const std::vector<Measure>& measures, std::size_t i) {
  std::vector<std::string> parts;
  const auto add = [&](std::string_view label, const std::vector<std::string>& items) {
    if (!items.empty()) parts.push_back(fmt::format("{}{}", label, fmt::join(items, ", ")));
  };
  add("", largest_changes(measures, i));
  add("new: ", only_in(measures, i, 0));
  add("gone: ", only_in(measures, 0, i));
  const bool comparable = std::any_of(measures.begin(), measures.end(), [&](const Measure& measure) {
    return measure.values[0].has_value() && measure.values[i].has_value();
  });
  if (parts.empty()) parts.emplace_back(comparable ? "no figure changed" : "no figure that both have");
  return fmt::format("{} against {}: {}\n", results[i].stage->folder, results[0].stage->folder, fmt::join(parts, "; "));
}

/// The table, and below it what changed most; "" where there is no figure.
std::string figures_text(const std::vector<RunResult>& results) {
  const std::vector<Measure> measures = measures_of(results);
  if (measures.empty()) return "";
  std::string text = "\n" + table_of(results, measures) + "\n";
  for (std::size_t i = 1; i < results.size(); ++i) text += summary_of(results, measures, i);
  return text;
}

std::string ratio_or_none(const std::optional<double>& ratio) { return ratio ? ratio_text(*ratio) : "n/a"; }

/// A line for each that the result is compared with: its time, and how many times as long that is.
std::string times_beside(const RunResult& result, const std::vector<RunResult>& followed, const Terminal& terminal) {
  TextTable table({"beside it", "time", "spread", fmt::format("{} vs this", result.stage->folder), "status"});
  Footnotes notes;
  for (const RunResult& other : followed) {
    const std::string status = other.status == Status::ok ? "ok" : notes.mark(to_string(other.status), other.reason);
    const bool timed = other.status == Status::ok && other.time_us;
    table.add({std::string(other.stage->folder), timed ? time_text(other.time_us->median) : "-",
               timed ? "±" + percent_text(other.time_us->spread) : "-",
               timed ? ratio_text(other.time_us->median / result.time_us->median) : "-", status});
  }
  const auto add_cudnn = [&](const char* label, const CudnnTrial* trial, std::string_view family) {
    if (trial) {
      table.add({fmt::format("cuDNN {} {}: {} ({})", result.cudnn->version, label, trial->algorithm, trial->layout),
                 time_text(*trial->time_us), "-", ratio_text(*trial->time_us / result.time_us->median), "ok"});
    } else {
      table.add(
          {fmt::format("cuDNN's {}", label), "-", "-", "-", notes.mark("n/a", cudnn_reason(result.cudnn, family))});
    }
  };
  if (result.cudnn) {
    add_cudnn("Winograd", result.cudnn->best_of(kWinogradFamily), kWinogradFamily);
    add_cudnn("best", result.cudnn->best(), "");
  }
  return table.text(terminal) + notes.text();
}

}  // namespace

std::string beside_text(const RunResult& result, const std::vector<RunResult>& followed, const Terminal& terminal) {
  std::string text = "\n";
  if (result.time_us && (result.cudnn || !followed.empty())) {
    const Speedups& speedup = result.speedup;
    const std::string other = other_configuration(result);
    text += times_beside(result, followed, terminal) +
            fmt::format("{}: {} over the previous stage{}, {} over cuDNN's Winograd, {} over cuDNN's best\n",
                        result.stage->folder, ratio_or_none(speedup.previous),
                        other.empty() ? "" : fmt::format(" ({})", other), ratio_or_none(speedup.cudnn_winograd),
                        ratio_or_none(speedup.cudnn_best));
  } else if (!followed.empty()) {
    const RunResult& previous = followed.front();
    text += fmt::format("beside {}: {}\n", previous.stage->folder, verdict_line(previous));
    if (previous.status == Status::ok) text += figures_text({previous, result});
  }
  if (result.stage->previous == 0) {
    text += fmt::format("{} follows no stage\n", result.stage->folder);
  } else if (followed.empty()) {
    text += fmt::format("stage {:02}, which it follows, is not in this program\n", result.stage->previous);
  }
  if (!result.cudnn)
    text += fmt::format("{}cuDNN runs on GPUs alone\n", result.time_us ? "" : "the simulator takes no times; ");
  return text;
}

std::string comparison_text(const std::vector<RunResult>& results) {
  const ConvProblem& problem = results.front().problem;
  std::string text = fmt::format("problem: {}, padding {}\n", to_string(problem), to_string(problem.padding));
  for (const RunResult& result : results) text += fmt::format("{}: {}\n", result.stage->folder, verdict_line(result));
  return text + figures_text(results);
}

}  // namespace convladder
