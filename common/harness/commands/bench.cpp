#include "common/harness/commands/bench.hpp"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <iterator>
#include <map>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <tuple>
#include <utility>

#include "common/harness/commands/benchmark_flags.hpp"
#include "common/harness/device/host.hpp"
#include "common/harness/device/print_stderr.hpp"
#include "common/harness/files/errors.hpp"
#include "common/harness/files/output_file.hpp"
#include "common/harness/files/problem_io.hpp"
#include "common/harness/files/text_table.hpp"
#include "common/harness/report/bench_table.hpp"
#include "common/harness/report/report.hpp"
#include "common/harness/report/text_report.hpp"
#include "common/harness/run/host_run.hpp"
#include "common/harness/run/python_program.hpp"
#include "common/harness/run/runner.hpp"
#include "common/harness/run/standing.hpp"
#include "common/harness/run/user_problem.hpp"

namespace convladder {
namespace {

constexpr std::uint64_t kSeed = 1;

bool is_on_host(const PlannedWorkload& planned) { return all_on_host(planned.stages); }

/// A stage on a workload, which is one benchmark to Google Benchmark.
struct Entry {
  const PlannedWorkload* planned;
  const StageInfo* stage;
  std::string name;
  bool followed = false;             ///< measured for a ratio alone
  std::vector<RunResult> runs = {};  ///< of each time that Google Benchmark ran it, in order
  bool announced = false;            ///< whether its line of the progress has begun
};

/// Begins the entry's line of the progress, which the report of its run ends.
/// @param remains what stands before it
void announce(Entry& entry, const std::string& remains = "") {
  if (!entry.announced) print_stderr("{}{}  {} ... ", remains, entry.planned->named.name, entry.stage->folder);
  entry.announced = true;
}

/// What tells the tensors of workloads apart. Tracks may share some, and what was measured on them.
using TensorsKey = std::tuple<std::string, std::string, Padding, FilterForm, bool>;

TensorsKey tensors_of(const PlannedWorkload& planned) {
  const NamedWorkload& named = planned.named;
  return {named.name, to_string(named.problem), named.problem.padding, named.filter, is_on_host(planned)};
}

bool contains(const std::vector<const StageInfo*>& list, const StageInfo* stage) {
  return std::find(list.begin(), list.end(), stage) != list.end();
}

/// Leaves the workloads that are dealt to the shard. Those on the same tensors stay together, since what is measured on
/// them is shared, and every ratio is of times that one process has taken.
void keep_part(std::vector<PlannedWorkload>& planned, const Shard& shard) {
  std::map<TensorsKey, std::size_t> places;
  for (const PlannedWorkload& workload : planned) places.emplace(tensors_of(workload), places.size());
  std::erase_if(planned, [&](const PlannedWorkload& workload) { return !shard.has(places.at(tensors_of(workload))); });
  if (planned.empty())
    throw UsageError(fmt::format("--shards {}: there are only {} workloads to deal", to_string(shard), places.size()));
}

/// Those on the same tensors one after the other. What one track has as a row is not measured again for a ratio of
/// another.
std::vector<Entry> entries_of(const std::vector<PlannedWorkload>& planned) {
  std::vector<Entry> entries;
  const auto add_all = [&](const PlannedWorkload& workload) {
    const auto add = [&](const StageInfo* stage, bool followed) {
      std::string name = fmt::format("{}/{}", workload.named.name, stage->folder);
      std::erase(name, ' ');
      entries.push_back({&workload, stage, std::move(name), followed});
    };
    const auto is_measured = [&](const StageInfo* stage) {
      return std::any_of(planned.begin(), planned.end(), [&](const PlannedWorkload& other) {
        const bool before = &other < &workload && contains(other.followed, stage);
        return (before || contains(other.stages, stage)) && tensors_of(other) == tensors_of(workload);
      });
    };
    for (const StageInfo* const stage : workload.followed)
      if (!is_measured(stage)) add(stage, true);
    for (const StageInfo* const stage : workload.stages) add(stage, false);
  };
  std::set<TensorsKey> added;
  for (const PlannedWorkload& first : planned) {
    if (!added.insert(tensors_of(first)).second) continue;
    for (const PlannedWorkload& workload : planned)
      if (tensors_of(workload) == tensors_of(first)) add_all(workload);
  }
  return entries;
}

// ---- What remains ---------------------------------------------------------------------------------------------------

/// Tells on a terminal how much is done and how long the rest will take.
class Remaining {
 public:
  /// @param steps in all
  explicit Remaining(std::size_t steps) : steps_(steps), shown_(terminal_of(stderr).columns > 0) {}

  /// One more is done.
  void step() { ++done_; }

  /// "[17/312, 2 min left] "; without the time as long as it cannot be told; nothing where there is no terminal.
  std::string text() const {
    if (!shown_) return "";
    return remaining_text(done_, steps_,
                          std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count());
  }

 private:
  std::size_t steps_, done_ = 0;
  bool shown_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// ---- What Google Benchmark reports ----------------------------------------------------------------------------------

/// What stands beside the time in Google Benchmark's own reports: figures as its counters, the verdict as its label.
void tell_benchmark(benchmark::State& state, const RunResult& result) {
  state.SetLabel(verdict_line(result));
  if (result.time_us) {
    state.counters["min_us"] = result.time_us->min;
    state.counters["spread"] = result.time_us->spread;
  }
  if (result.time_cold_us) state.counters["cold_us"] = result.time_cold_us->median;
  if (result.roofline && result.roofline->share) state.counters["share_of_floor"] = *result.roofline->share;
  if (!result.counters) return;
  for (const CounterField& field : kCounterFields)
    state.counters[field.name] = static_cast<double>((*result.counters).*field.member);
}

/// Of the repetitions of a benchmark the one that its row shows: one that failed, or else that of the median time.
RunResult& shown_of(std::span<RunResult> repetitions) {
  const auto failed = [](const RunResult& result) { return result.status != Status::ok; };
  if (const auto found = std::find_if(repetitions.begin(), repetitions.end(), failed); found != repetitions.end())
    return *found;
  const auto time = [](const RunResult& result) { return result.time_us ? result.time_us->median : 0; };
  const auto middle = repetitions.begin() + static_cast<std::ptrdiff_t>(repetitions.size() / 2);
  std::nth_element(repetitions.begin(), middle, repetitions.end(),
                   [&](const RunResult& a, const RunResult& b) { return time(a) < time(b); });
  return *middle;
}

/// Takes what Google Benchmark reports: a row for each benchmark, and its line of the progress.
class LadderReporter final : public benchmark::BenchmarkReporter {
 public:
  /// @param display Google Benchmark's own reporter, which is shown the same; null for none
  /// @param remaining gets a step for each row
  LadderReporter(std::vector<Entry>& entries, std::unique_ptr<BenchmarkReporter> display, Remaining& remaining)
      : entries_(entries), display_(std::move(display)), remaining_(remaining) {}

  bool ReportContext(const Context& context) override { return !display_ || display_->ReportContext(context); }

  void ReportRuns(const std::vector<Run>& runs) override {
    const auto is_reported = [&](const Entry& entry) { return entry.name == runs.front().run_name.function_name; };
    take(*std::find_if(entries_.begin(), entries_.end(), is_reported), runs.front().repetitions);
    if (display_) display_->ReportRuns(runs);
  }

  void Finalize() override {
    if (display_) display_->Finalize();
  }

  /// The row of each benchmark that was reported.
  std::map<const Entry*, RunResult>& rows() { return rows_; }

 private:
  /// Warm-ups and the search for a number of iterations ran before the repetitions. After these Google Benchmark may
  /// report their statistics, as runs of the same name.
  void take(Entry& entry, std::int64_t repetitions) {
    if (rows_.contains(&entry)) return;
    std::span<RunResult> runs = entry.runs;
    runs = runs.last(std::min(runs.size(), static_cast<std::size_t>(std::max<std::int64_t>(repetitions, 1))));
    const RunResult& row = rows_[&entry] = std::move(shown_of(runs));
    announce(entry);
    print_stderr("{}\n", progress_text(row));
    remaining_.step();
  }

  static std::string progress_text(const RunResult& result) {
    if (result.status != Status::ok) return fmt::format("{}: {}", to_string(result.status), result.reason);
    return result.time_us ? time_text(result.time_us->median) : "ok";
  }

  std::vector<Entry>& entries_;
  std::unique_ptr<BenchmarkReporter> display_;
  Remaining& remaining_;
  std::map<const Entry*, RunResult> rows_;
};

// ---- Running --------------------------------------------------------------------------------------------------------

class Bench {
 public:
  /// @param search_seconds of cuDNN's plans
  Bench(std::vector<PlannedWorkload> planned, const std::vector<std::string>& flags,
        std::optional<double> search_seconds)
      : planned_(std::move(planned)),
        entries_(entries_of(planned_)),
        flags_(flags),
        search_seconds_(search_seconds),
        remaining_(entries_.size() + baselines_to_measure()) {}

  /// Without rows where Google Benchmark was only asked for the benchmarks' names.
  /// @throws UsageError if no benchmark's name matches Google Benchmark's filter
  BenchReport run() {
    BenchReport report;
    report.device = device();
    for (Entry& entry : entries_) add(entry);
    LadderReporter reporter(entries_, benchmark_display(flags_), remaining_);
    std::ostringstream complaint;  // of the filter
    reporter.SetErrorStream(&complaint);
    const std::size_t found = benchmark::RunSpecifiedBenchmarks(&reporter);
    benchmark::Shutdown();
    benchmark::ClearRegisteredBenchmarks();
    if (found == 0) {
      std::string reason = complaint.str();
      reason.erase(reason.find_last_not_of('\n') + 1);
      throw UsageError("--benchmark_filter leaves nothing to run: " + reason);
    }
    measure_baselines_again();
    try {
      report.device_after = device();
    } catch (const DeviceError&) {  // the rows say what became of it
    }
    if (limits_) report.ceilings = limits_->ceilings;
    report.rows = rows(reporter.rows());
    if (report.rows.empty() && !reporter.rows().empty())
      throw UsageError("--benchmark_filter leaves only what is measured for a ratio, and has no row of its own");
    return report;
  }

  /// Whether a workload did not fit the memory.
  bool beyond_memory() const { return beyond_memory_; }

 private:
  DeviceInfo device() const {
    return std::all_of(planned_.begin(), planned_.end(), is_on_host) ? host_info() : device_info();
  }

  /// A run in the simulator or on the host is one iteration; on a GPU each sample is one, of which Google Benchmark
  /// takes as many as its flags say.
  void add(Entry& entry) {
    auto* const added = benchmark::RegisterBenchmark(
        entry.name.c_str(), [this, &entry](benchmark::State& state) { measure(state, entry); });
    added->UseManualTime()->Unit(benchmark::kMicrosecond);
    if (backend() == Backend::sim || runs_on_host(*entry.stage)) {
      added->Iterations(1);
    } else if (!flag_value(flags_, "benchmark_min_time")) {
      added->Iterations(kSamples);
    }
  }

  /// What Google Benchmark calls. An exception must not pass through it: it becomes the row's error.
  void measure(benchmark::State& state, Entry& entry) {
    RunResult& result = entry.runs.emplace_back(result_of(state, entry));
    add_roofline(result, limits_ && !runs_on_host(*entry.stage) ? &*limits_ : nullptr);
    tell_benchmark(state, result);
    if (result.status != Status::ok) state.SkipWithError(result.reason.c_str());
  }

  /// What the memory does not hold is a refusal; the others of the bench still run.
  RunResult result_of(benchmark::State& state, Entry& entry) {
    const NamedWorkload& named = entry.planned->named;
    const auto ended = [&](Status status, const char* reason) {
      beyond_memory_ = beyond_memory_ || status == Status::refused;
      RunResult result = refused(*entry.stage, named.problem, reason);
      result.workload_name = named.name;
      result.status = status;
      return result;
    };
    try {
      const bool on_gpu = backend() == Backend::gpu && !runs_on_host(*entry.stage);
      if (on_gpu && !limits_) {
        const auto in_python = [](const Entry& each) { return !each.stage->program.empty(); };
        if (std::any_of(entries_.begin(), entries_.end(), in_python)) python_rows_program().begin();
        print_stderr("measuring the device's ceilings\n");
        limits_ = measure_limits();
      }
      load(*entry.planned);
      if (on_gpu && !entry.followed) measure_baseline(precision_of(*entry.stage));
      announce(entry, remaining_.text());
      return on_gpu ? time_on_gpu(state, *entry.stage) : run_once(state, *entry.stage);
    } catch (const MachineError& error) {
      return ended(Status::refused, error.what());
    } catch (const UsageError& error) {  // of the workload's sizes
      return ended(Status::refused, error.what());
    } catch (const std::bad_alloc&) {
      return ended(Status::refused, "this machine's memory does not hold it");
    } catch (const std::exception& error) {
      return ended(Status::error, error.what());
    }
  }

  /// Makes the workload's tensors; keeps those of one workload at a time.
  void load(const PlannedWorkload& planned) {
    if (workload_ && loaded_ == tensors_of(planned)) return;
    measure_baselines_again();
    const NamedWorkload& named = planned.named;
    workload_.reset();
    if (is_on_host(planned)) {
      require_valid_on_host(named.problem);
    } else {
      require_valid(named.problem);
    }
    if (named.simulated_accesses > 0) {
      print_stderr("{}: about {} simulated accesses in the track's first stage\n", named.name,
                   short_number(static_cast<double>(named.simulated_accesses)));
    }
    workload_ = make_workload(named.name, named.problem, InputKind::normal, named.filter, kSeed);
    loaded_ = tensors_of(planned);
  }

  /// cuDNN on the workload that is loaded, once for each element type in use.
  void measure_baseline(Precision precision) {
    if (baselines_.contains({loaded_, precision})) return;
    print_stderr("{}{}  cuDNN in {} ... ", remaining_.text(), workload_->name, to_string(precision));
    const auto in_halves = baselines_.find({loaded_, Precision::fp16});
    const CudnnBaseline& baseline = baselines_[{loaded_, precision}] = cudnn_beside(
        *workload_, precision, search_seconds_, in_halves == baselines_.end() ? nullptr : &in_halves->second);
    const CudnnTrial* const best = baseline.best();
    print_stderr("{}\n", best ? time_text(*best->time_us) : "n/a");
    if (baseline.search) print_stderr("  {}\n", to_string(*baseline.search));
    remaining_.step();
  }

  /// cuDNN's best of each type once more, after the stages of the workload that is loaded, if one is.
  void measure_baselines_again() {
    if (!workload_) return;
    for (auto& [key, baseline] : baselines_) {
      if (key.first != loaded_) continue;
      try {
        measure_cudnn_again(workload_->problem, workload_->tensors, baseline);
      } catch (const std::exception& error) {  // the rows stay, without these times
        print_stderr("{}  cuDNN in {} again: {}\n", workload_->name, to_string(key.second), error.what());
      }
      const CudnnTrial* const best = baseline.best();
      if (best && best->time_again_us) {
        print_stderr("{}  cuDNN in {} again ... {}\n", workload_->name, to_string(key.second),
                     time_text(*best->time_again_us));
      }
    }
  }

  /// How often cuDNN will be measured.
  std::size_t baselines_to_measure() const {
    std::set<std::pair<TensorsKey, Precision>> found;
    if (backend() != Backend::gpu) return 0;
    for (const Entry& entry : entries_)
      if (!entry.followed && !runs_on_host(*entry.stage))
        found.insert({tensors_of(*entry.planned), precision_of(*entry.stage)});
    return found.size();
  }

  /// Iterations that Google Benchmark still wants when there are enough samples are told the median, and not run; its
  /// flag for a least time takes them all.
  RunResult time_on_gpu(benchmark::State& state, const StageInfo& stage) const {
    using Clock = std::chrono::steady_clock;
    RunOptions options;
    options.sampling = [&](const std::function<double()>& sample) {
      const bool takes_all = flag_value(flags_, "benchmark_min_time").has_value();
      const Clock::time_point start = Clock::now();
      TimeSeries series;
      for (auto _ : state) {
        const bool enough = !takes_all && enough_samples(series.groups.size(), Clock::now() - start);
        if (!enough) series.groups.push_back(sample());
        state.SetIterationTime((enough ? series.median() : series.groups.back()) * 1e-6);
      }
      return series.groups;
    };
    return run_stage(stage, *workload_, options);
  }

  /// Of the simulator Google Benchmark is told how long the run took, of the host the time of a launch.
  RunResult run_once(benchmark::State& state, const StageInfo& stage) const {
    RunResult result;
    for (auto _ : state) {
      const auto start = std::chrono::steady_clock::now();
      result = run_stage(stage, *workload_, {});
      const std::chrono::duration<double> whole = std::chrono::steady_clock::now() - start;
      state.SetIterationTime(result.time_us ? result.time_us->median * 1e-6 : whole.count());
    }
    return result;
  }

  /// In the order of the plan, with the trials of cuDNN and the speedups. What ran for a ratio alone has no row unless
  /// it failed.
  std::vector<RunResult> rows(std::map<const Entry*, RunResult>& reported) const {
    std::vector<RunResult> all;
    for (const PlannedWorkload& workload : planned_) {
      std::vector<RunResult> of_workload;
      std::vector<bool> shown;
      for (const Entry& entry : entries_) {
        const auto row = reported.find(&entry);
        const bool own = entry.planned == &workload;
        const bool is_followed =
            contains(workload.followed, entry.stage) && tensors_of(*entry.planned) == tensors_of(workload);
        if (row == reported.end() || !(own || is_followed)) continue;
        const auto baseline = baselines_.find({tensors_of(workload), precision_of(*entry.stage)});
        if (baseline != baselines_.end() && !runs_on_host(*entry.stage)) row->second.cudnn = baseline->second;
        const Status status = row->second.status;
        shown.push_back(own && (!entry.followed || (status != Status::ok && status != Status::refused)));
        of_workload.push_back(row->second);
      }
      add_speedups(of_workload);
      for (std::size_t i = 0; i < of_workload.size(); ++i)
        if (shown[i]) all.push_back(std::move(of_workload[i]));
    }
    return all;
  }

  std::vector<PlannedWorkload> planned_;
  std::vector<Entry> entries_;
  const std::vector<std::string>& flags_;
  std::optional<double> search_seconds_;
  std::optional<Limits> limits_;
  std::optional<Workload> workload_;
  TensorsKey loaded_;                                                    ///< which tensors those are
  std::map<std::pair<TensorsKey, Precision>, CudnnBaseline> baselines_;  ///< by tensors and element type
  bool beyond_memory_ = false;
  Remaining remaining_;
};

/// Has the C library keep what is freed. Tensors of the same sizes come and go with each row, and the operating system
/// would clear their pages each time, which takes longer than to compare them.
void keep_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
#endif
}

/// @param beyond_memory a workload did not fit the memory: 2, unless another was right
int exit_status_of(const std::vector<RunResult>& rows, bool beyond_memory) {
  const auto failed = [](const RunResult& row) { return row.status != Status::ok && row.status != Status::refused; };
  const auto right = [](const RunResult& row) { return row.status == Status::ok; };
  if (std::any_of(rows.begin(), rows.end(), failed)) return 1;
  return beyond_memory && std::none_of(rows.begin(), rows.end(), right) ? 2 : 0;
}

}  // namespace

int bench_command(const BenchCommand& command) {
  if (flag_value(command.benchmark_flags, "help")) {
    print_benchmark_help();
    return 0;
  }
  const std::optional<double> search_seconds = cudnn_search_seconds(command);
  std::vector<PlannedWorkload> planned = planned_workloads(command, backend());
  keep_part(planned, command.shard);
  if (command.json) require_writable(*command.json);
  if (command.csv) require_writable(*command.csv);
  if (command.json && command.csv) require_different("--json", *command.json, "--csv", *command.csv);
  initialize_benchmark(command.benchmark_flags);
  keep_freed_memory();

  Bench bench(std::move(planned), command.benchmark_flags, search_seconds);
  BenchReport report = bench.run();
  report.shard = to_string(command.shard);
  if (report.rows.empty()) return 0;
  std::FILE* const table = flag_value(command.benchmark_flags, "benchmark_format") ? stderr : stdout;
  // The files are written also where nobody reads the table: `head` may have left, and fmt::print would throw where the
  // stream is full.
  std::signal(SIGPIPE, SIG_IGN);
  std::fputs(bench_text(report, terminal_of(table)).c_str(), table);
  if (command.json) write_file(*command.json, text_of(to_json(report)));
  if (command.csv) write_file(*command.csv, to_csv(report.rows));
  return exit_status_of(report.rows, bench.beyond_memory());
}

}  // namespace convladder
