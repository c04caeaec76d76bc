#include "common/harness/commands/bench.hpp"

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "common/harness/baselines/rows_beside.hpp"
#include "common/harness/device/host.hpp"
#include "common/harness/files/errors.hpp"
#include "common/harness/files/output_file.hpp"
#include "common/harness/files/spelling.hpp"
#include "common/harness/files/text_table.hpp"
#include "common/harness/ladder/workloads.hpp"
#include "common/harness/report/bench_table.hpp"
#include "common/harness/report/report.hpp"
#include "common/harness/run/host_run.hpp"
#include "common/harness/run/runner.hpp"
#include "common/harness/run/standing.hpp"
#include "common/harness/run/user_problem.hpp"

namespace convladder {
namespace {

constexpr std::uint64_t kSeed = 1;

/// The stages of one track that run on one workload, and after them the rows that are no stages.
struct Rung {
  NamedWorkload workload;
  std::vector<const StageInfo*> stages;
};

bool is_on_host(const Rung& rung) { return all_on_host(rung.stages); }

bool contains(const std::vector<std::string>& list, std::string_view item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

// ---- What to run ----------------------------------------------------------------------------------------------------

std::vector<std::string> all_tracks() {
  std::vector<std::string> tracks;
  for (const StageInfo& stage : stages())
    if (!contains(tracks, stage.track)) tracks.emplace_back(stage.track);
  return tracks;
}

[[noreturn]] void throw_unknown_workload(const std::string& name, const std::vector<std::string>& tracks) {
  std::vector<std::string> known;
  for (const std::string& track : tracks)
    for (const NamedWorkload& workload : workloads_of(track, backend())) known.push_back(in_quotes(workload.name));
  throw UsageError(
      fmt::format("unknown workload {}; the workloads are {}, or 'all'", in_quotes(name), fmt::join(known, ", ")));
}

std::vector<Rung> plan(const BenchCommand& command) {
  const std::vector<const StageInfo*> chosen = chosen_stages(command);
  std::vector<std::string> tracks;
  for (const StageInfo* stage : chosen)
    if (!contains(tracks, stage->track)) tracks.emplace_back(stage->track);

  std::vector<Rung> rungs;
  std::set<std::string> found;
  for (const std::string& track : tracks) {
    std::vector<NamedWorkload> workloads;
    if (command.workloads.empty()) workloads = bench_workloads(track, backend());
    for (const std::string& name : command.workloads) {
      for (NamedWorkload& workload : select_workloads(track, backend(), name)) {
        found.insert(name);
        const auto same = [&](const NamedWorkload& other) { return other.name == workload.name; };
        if (std::none_of(workloads.begin(), workloads.end(), same)) workloads.push_back(std::move(workload));
      }
    }
    if (workloads_of(track, backend()).empty())
      fmt::print(stderr, "the track {} has no workloads yet; left out\n", track);
    for (NamedWorkload& workload : workloads) {
      Rung& rung = rungs.emplace_back(Rung{std::move(workload), {}});
      for (const StageInfo* stage : chosen)
        if (stage->track == track) rung.stages.push_back(stage);
      if (!command.stages.empty()) continue;
      for (const StageInfo* row : rows_beside(track, backend())) rung.stages.push_back(row);
    }
  }
  for (const std::string& name : command.workloads)
    if (!found.contains(name)) throw_unknown_workload(name, tracks);
  if (rungs.empty()) throw UsageError("there is no workload to run; try ./lab run with --shape");
  return rungs;
}

// ---- Google Benchmark's flags ---------------------------------------------------------------------------------------

/// The value of "--benchmark_name=value" ("" for the bare flag), if it is among the flags.
std::optional<std::string> flag_value(const std::vector<std::string>& flags, const std::string& name) {
  for (const std::string& flag : flags) {
    if (flag == "--" + name) return "";
    if (flag.starts_with("--" + name + "=")) return flag.substr(name.size() + 3);
  }
  return std::nullopt;
}

[[noreturn]] void refuse_flags() {
  throw UsageError("Google Benchmark does not accept the flags after --; './lab bench -- --help' lists its own");
}

/// Google Benchmark before 1.7 has no say in what a wrong flag does: it prints its help and ends the program.
template <class Count>
void take_known_flags(Count* count, char** arguments) {
  if constexpr (requires { benchmark::Initialize(count, arguments, refuse_flags); }) {
    benchmark::Initialize(count, arguments, refuse_flags);
  } else {
    benchmark::Initialize(count, arguments);
  }
}

/// Prints Google Benchmark's help and ends the program.
void print_benchmark_help() {
  char program[] = "lab bench", help[] = "--help";
  char* arguments[] = {program, help, nullptr};
  int count = 2;
  benchmark::Initialize(&count, arguments);
}

void initialize_benchmark(const std::vector<std::string>& flags) {
  if (const auto file = flag_value(flags, "benchmark_out")) require_writable(*file);
  static std::vector<std::string> words;  // Google Benchmark keeps a pointer to the first, for its report
  words = {"lab bench"};
  words.insert(words.end(), flags.begin(), flags.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  int count = static_cast<int>(arguments.size());
  arguments.push_back(nullptr);
  take_known_flags(&count, arguments.data());
  if (count > 1) {
    throw UsageError(fmt::format("Google Benchmark does not know {}; './lab bench -- --help' lists its flags",
                                 in_quotes(arguments[1])));
  }
}

/// Google Benchmark reports here what it has run; the bench prints that itself, so this stays silent.
class SilentReporter final : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>&) override {}
};

// ---- Running --------------------------------------------------------------------------------------------------------

class Bench {
 public:
  Bench(std::vector<Rung> rungs, const std::vector<std::string>& flags) : rungs_(std::move(rungs)), flags_(flags) {}

  BenchReport run() {
    BenchReport report;
    const bool on_host = std::all_of(rungs_.begin(), rungs_.end(), is_on_host);
    const auto device = [&] { return on_host ? host_info() : device_info(); };
    report.device = device();
    if (backend() == Backend::gpu && !on_host && !listing()) {
      fmt::print(stderr, "measuring the device's ceilings\n");
      limits_ = measure_limits();
      report.ceilings = limits_->ceilings;
    }
    register_all();
    run_benchmarks();
    if (!failure_ && !listing()) measure_baselines_again();
    if (failure_) std::rethrow_exception(failure_);
    report.device_after = device();
    report.rows = rows();
    return report;
  }

  /// Whether a workload did not fit the memory.
  bool beyond_memory() const { return beyond_memory_; }

  /// Whether Google Benchmark was only asked for the benchmarks' names.
  bool listing() const {
    const auto value = flag_value(flags_, "benchmark_list_tests");
    return value && *value != "false" && *value != "0";
  }

 private:
  void register_all() {
    for (std::size_t r = 0; r < rungs_.size(); ++r) {
      for (std::size_t place = 0; place < rungs_[r].stages.size(); ++place) {
        std::string name = fmt::format("{}/{}", rungs_[r].workload.name, rungs_[r].stages[place]->folder);
        name.erase(std::remove(name.begin(), name.end(), ' '), name.end());
        auto* const registered = benchmark::RegisterBenchmark(
            name.c_str(), [this, r, place](benchmark::State& state) { measure(state, r, place); });
        registered->UseManualTime()->Unit(benchmark::kMicrosecond);
        if (backend() == Backend::sim || is_on_host(rungs_[r])) {
          registered->Iterations(1);
        } else if (!flag_value(flags_, "benchmark_min_time")) {
          registered->Iterations(kSamples);
        }
      }
    }
  }

  void run_benchmarks() {
    SilentReporter silent;
    const bool own_report = listing() || flag_value(flags_, "benchmark_format");
    benchmark::RunSpecifiedBenchmarks(own_report ? nullptr : &silent);
    benchmark::Shutdown();
    benchmark::ClearRegisteredBenchmarks();
  }

  /// What Google Benchmark calls. No exception may pass through it: the first ends the bench when it returns.
  void measure(benchmark::State& state, std::size_t rung, std::size_t place) {
    const StageInfo& stage = *rungs_[rung].stages[place];
    if (failure_) {
      state.SkipWithError("an earlier benchmark ended the run");
      return;
    }
    try {
      RunResult result = result_of(state, rung, stage);
      add_roofline(result, limits_ && !runs_on_host(stage) ? &*limits_ : nullptr);
      fmt::print(stderr, "{}\n", progress_text(result));
      if (result.status != Status::ok) state.SkipWithError(result.reason.c_str());
      results_[{rung, place}] = std::move(result);
    } catch (...) {
      failure_ = std::current_exception();
      fmt::print(stderr, "failed\n");
      state.SkipWithError("failed");
    }
  }

  /// What the memory does not hold becomes a refusal: the others of the bench still run.
  RunResult result_of(benchmark::State& state, std::size_t rung, const StageInfo& stage) {
    const NamedWorkload& named = rungs_[rung].workload;
    const auto beyond_memory = [&](const char* reason) {
      beyond_memory_ = true;
      RunResult result = refused(stage, named.problem, reason);
      result.workload_name = named.name;
      return result;
    };
    try {
      load(rung);
      if (backend() == Backend::gpu && !runs_on_host(stage)) measure_baseline(rung, precision_of(stage));
      fmt::print(stderr, "{}  {} ... ", named.name, stage.folder);
      if (runs_on_host(stage)) return time_on_host(state, stage);
      return backend() == Backend::gpu ? time_on_gpu(state, stage) : count_in_simulator(state, stage);
    } catch (const MachineError& error) {
      return beyond_memory(error.what());
    } catch (const UsageError& error) {  // of the workload's sizes
      return beyond_memory(error.what());
    } catch (const std::bad_alloc&) {
      return beyond_memory("this machine's memory does not hold it");
    }
  }

  /// Makes the workload's tensors; keeps those of one workload at a time.
  void load(std::size_t rung) {
    if (workload_ && loaded_ == rung) return;
    measure_baselines_again();
    const NamedWorkload& named = rungs_[rung].workload;
    workload_.reset();
    if (is_on_host(rungs_[rung])) {
      require_valid_on_host(named.problem);
    } else {
      require_valid(named.problem);
    }
    if (named.simulated_accesses > 0) {
      fmt::print(stderr, "{}: about {} simulated accesses in the track's first stage\n", named.name,
                 short_number(static_cast<double>(named.simulated_accesses)));
    }
    workload_ = make_workload(named.name, named.problem, InputKind::normal, named.filter, kSeed);
    loaded_ = rung;
  }

  /// cuDNN on the workload that is loaded, once for each element type in use.
  void measure_baseline(std::size_t rung, Precision precision) {
    if (baselines_.contains({rung, precision})) return;
    fmt::print(stderr, "{}  cuDNN in {} ... ", workload_->name, to_string(precision));
    CudnnBaseline& baseline = baselines_[{rung, precision}];
    try {
      baseline = measure_cudnn(workload_->problem, workload_->tensors, workload_->reference, precision);
    } catch (const DeviceError& error) {  // the rows that follow say so themselves
      baseline.unavailable = error.what();
    } catch (const MachineError& error) {  // of cuDNN's own buffers
      baseline.unavailable = error.what();
    }
    const CudnnTrial* const best = baseline.best();
    fmt::print(stderr, "{}\n", best ? time_text(*best->time_us) : "n/a");
  }

  /// cuDNN's best of each type once more, after the stages of the workload that is loaded, if one is.
  void measure_baselines_again() {
    if (!workload_) return;
    for (auto& [key, baseline] : baselines_) {
      if (key.first != loaded_) continue;
      try {
        measure_cudnn_again(workload_->problem, workload_->tensors, baseline);
      } catch (const std::exception& error) {  // the rows stay, without these times
        fmt::print(stderr, "{}  cuDNN in {} again: {}\n", workload_->name, to_string(key.second), error.what());
      }
      const CudnnTrial* const best = baseline.best();
      if (best && best->time_again_us) {
        fmt::print(stderr, "{}  cuDNN in {} again ... {}\n", workload_->name, to_string(key.second),
                   time_text(*best->time_again_us));
      }
    }
  }

  RunResult time_on_gpu(benchmark::State& state, const StageInfo& stage) const {
    RunOptions options;
    options.sampling = [&](const std::function<double()>& sample) {
      std::vector<double> samples;
      for (auto _ : state) {
        samples.push_back(sample());
        state.SetIterationTime(samples.back() * 1e-6);
      }
      return samples;
    };
    return run_stage(stage, *workload_, options);
  }

  RunResult time_on_host(benchmark::State& state, const StageInfo& stage) const {
    RunResult result;
    for (auto _ : state) {
      result = run_stage(stage, *workload_, {});
      state.SetIterationTime(result.time_us ? result.time_us->median * 1e-6 : 0);
    }
    return result;
  }

  RunResult count_in_simulator(benchmark::State& state, const StageInfo& stage) const {
    RunResult result;
    for (auto _ : state) {
      const auto start = std::chrono::steady_clock::now();
      result = run_stage(stage, *workload_, {});
      state.SetIterationTime(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    return result;
  }

  static std::string progress_text(const RunResult& result) {
    if (result.status != Status::ok) return fmt::format("{}: {}", to_string(result.status), result.reason);
    return result.time_us ? time_text(result.time_us->median) : "ok";
  }

  std::vector<RunResult> rows() {
    std::vector<RunResult> all;
    for (std::size_t r = 0; r < rungs_.size(); ++r) {
      std::vector<RunResult> of_rung;
      for (auto& [key, result] : results_) {
        if (key.first != r) continue;
        const StageInfo& stage = *rungs_[r].stages[key.second];
        const auto baseline = baselines_.find({r, precision_of(stage)});
        if (baseline != baselines_.end() && !runs_on_host(stage)) result.cudnn = baseline->second;
        of_rung.push_back(std::move(result));
      }
      add_speedups(of_rung);
      std::move(of_rung.begin(), of_rung.end(), std::back_inserter(all));
    }
    return all;
  }

  std::vector<Rung> rungs_;
  const std::vector<std::string>& flags_;
  std::optional<Limits> limits_;
  std::optional<Workload> workload_;
  std::size_t loaded_ = 0;
  std::map<std::pair<std::size_t, Precision>, CudnnBaseline> baselines_;  ///< by rung and element type
  std::map<std::pair<std::size_t, std::size_t>, RunResult> results_;      ///< by rung and place in it
  std::exception_ptr failure_;
  bool beyond_memory_ = false;
};

/// @param beyond_memory a workload did not fit the memory: 2, unless another was right
int exit_status_of(const std::vector<RunResult>& rows, bool beyond_memory) {
  const auto failed = [](const RunResult& row) { return row.status != Status::ok && row.status != Status::refused; };
  const auto right = [](const RunResult& row) { return row.status == Status::ok; };
  if (std::any_of(rows.begin(), rows.end(), failed)) return 1;
  return beyond_memory && std::none_of(rows.begin(), rows.end(), right) ? 2 : 0;
}

}  // namespace

std::vector<const StageInfo*> chosen_stages(const BenchCommand& command) {
  for (const std::string& track : command.tracks) {
    if (contains(all_tracks(), track)) continue;
    throw UsageError(
        fmt::format("unknown track {}; the tracks are {}", in_quotes(track), fmt::join(all_tracks(), ", ")));
  }
  std::set<int> numbers;
  for (const std::string& designation : command.stages) numbers.insert(find_stage(designation).number);
  std::vector<const StageInfo*> chosen;
  for (const StageInfo& stage : stages()) {
    if (!numbers.empty() && !numbers.contains(stage.number)) continue;
    if (!command.tracks.empty() && !contains(command.tracks, stage.track)) continue;
    chosen.push_back(&stage);
  }
  if (chosen.empty()) throw UsageError("no stage is both in --stage and in --track; leave one of them out");
  return chosen;
}

int bench_command(const BenchCommand& command) {
  if (contains(command.benchmark_flags, "--help")) {
    print_benchmark_help();
    return 0;
  }
  std::vector<Rung> rungs = plan(command);
  if (command.json) require_writable(*command.json);
  if (command.csv) require_writable(*command.csv);
  if (command.json && command.csv) require_different("--json", *command.json, "--csv", *command.csv);
  initialize_benchmark(command.benchmark_flags);

  Bench bench(std::move(rungs), command.benchmark_flags);
  const BenchReport report = bench.run();
  if (bench.listing()) return 0;
  if (report.rows.empty()) throw UsageError("no benchmark's name matches --benchmark_filter");
  std::FILE* const table = flag_value(command.benchmark_flags, "benchmark_format") ? stderr : stdout;
  fmt::print(table, "{}", bench_text(report));
  if (command.json) write_file(*command.json, text_of(to_json(report)));
  if (command.csv) write_file(*command.csv, to_csv(report.rows));
  return exit_status_of(report.rows, bench.beyond_memory());
}

}  // namespace convladder
