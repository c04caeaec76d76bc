#include "common/harness/commands/tune_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>
#include <vector>

#include "common/harness/commands/tune_replay.hpp"
#include "common/harness/commands/tuner.hpp"
#include "common/harness/device/print_stderr.hpp"
#include "common/harness/files/errors.hpp"
#include "common/harness/files/output_file.hpp"
#include "common/harness/files/problem_io.hpp"
#include "common/harness/files/spelling.hpp"
#include "common/harness/files/text_table.hpp"
#include "common/harness/ladder/settings.hpp"
#include "common/harness/ladder/tuning_log.hpp"
#include "common/harness/ladder/workloads.hpp"
#include "common/harness/report/report.hpp"
#include "common/harness/report/text_report.hpp"
#include "common/harness/run/refusal.hpp"
#include "common/harness/run/runner.hpp"
#include "common/kernel/compiled_kernel.hpp"

namespace convladder {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int kTrialSamples = 5;                       // of a trial's time; what is kept is timed with kSamples
constexpr auto kWriteEvery = std::chrono::seconds(2);  // the log, during a search
constexpr double kWorthKeeping = 0.99;                 // of the default's cost: less of a gain may be noise
constexpr int kInterrupted = 130;                      // the exit status of a program that ctrl-C ended
constexpr std::int64_t kLines = 6;                     // of progress for each search, where no terminal shows it
constexpr int kBar = 20;                               // characters

// ---- Ctrl-C ---------------------------------------------------------------------------------------------------------

volatile std::sig_atomic_t interrupted = 0;

/// While it lives, the first SIGINT or SIGTERM sets `interrupted`; another one ends the program.
class Interruption {
 public:
  Interruption() {
    interrupted = 0;
    struct sigaction note {};
    note.sa_handler = [](int) { interrupted = 1; };
    note.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
    sigaction(SIGINT, &note, &old_interrupt_);
    sigaction(SIGTERM, &note, &old_terminate_);
  }
  ~Interruption() {
    sigaction(SIGINT, &old_interrupt_, nullptr);
    sigaction(SIGTERM, &old_terminate_, nullptr);
  }
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

 private:
  struct sigaction old_interrupt_ {
  }, old_terminate_{};
};

// ---- What to tune ---------------------------------------------------------------------------------------------------

/// A stage of this kind, or null where it cannot be tuned.
std::unique_ptr<TunableStage> make_tunable(const StageInfo& stage) {
  std::unique_ptr<Stage> made(stage.make());
  auto* const tunable = dynamic_cast<TunableStage*>(made.get());
  if (!tunable || !tunable->knobs().searched) return nullptr;
  static_cast<void>(made.release());  // the same object
  return std::unique_ptr<TunableStage>(tunable);
}

std::vector<const StageInfo*> tunable_stages() {
  std::vector<const StageInfo*> found;
  for (const StageInfo& stage : stages())
    if (!runs_on_host(stage) && make_tunable(stage)) found.push_back(&stage);
  return found;
}

const StageInfo& chosen_stage(const TuneCommand& command) {
  const std::vector<const StageInfo*> tunable = tunable_stages();
  if (tunable.empty()) throw UsageError("this program has no stage to tune; build all of it");
  if (!command.stage) return *tunable.front();
  const StageInfo& stage = find_stage(*command.stage);
  if (std::find(tunable.begin(), tunable.end(), &stage) != tunable.end()) return stage;
  std::vector<std::string_view> folders;
  for (const StageInfo* other : tunable) folders.push_back(other->folder);
  throw UsageError(fmt::format(
      "{} {}; tune takes {}", stage.folder,
      runs_on_host(stage) ? "runs on the CPU, and tune searches what runs on a GPU" : "has no configurations to search",
      fmt::join(folders, ", ")));
}

std::vector<Search> chosen_searches(const std::string& name) {
  if (name == "all") return {std::begin(kSearches), std::end(kSearches)};
  if (const std::optional<Search> search = parse_search(name)) return {*search};
  throw UsageError(
      fmt::format("--search must be random, annealing, model, exhaustive or all; got {}", in_quotes(name)));
}

UserProblem chosen_problem(const TuneCommand& command, const StageInfo& stage) {
  if (!command.workload) return read_problem(command.problem, stage.track);
  const std::vector<NamedWorkload> named = select_workloads(stage.track, backend(), *command.workload);
  if (named.size() != 1) {
    std::vector<std::string> names;
    for (const NamedWorkload& workload : workloads_of(stage.track, backend()))
      names.push_back(in_quotes(workload.name));
    throw UsageError(
        fmt::format("--workload must be one of {}; got {}", fmt::join(names, ", "), in_quotes(*command.workload)));
  }
  UserProblem user;
  user.name = named.front().name;
  user.problem = named.front().problem;
  user.filter = named.front().filter;
  if (command.problem.padding) user.problem.padding = parse_padding(*command.problem.padding);
  return user;
}

/// The default, with the knobs that are to stay as they are set.
Configuration set_configuration(const TuneCommand& command, Configuration configuration) {
  if (!command.configuration.empty()) apply_settings(command.configuration, configuration);
  return configuration;
}

/// Whether a point leaves alone what is to stay.
bool keeps(const TuneCommand& command, const Configuration& point) {
  const Configuration set = set_configuration(command, point);
  return std::equal(set.values, set.values + kMaxKnobs, point.values);
}

// ---- Text -----------------------------------------------------------------------------------------------------------

std::string cost_text(double cost) {
  if (backend() == Backend::gpu) return time_text(cost);
  return fmt::format("{} estimated cycles", grouped(std::llround(cost)));
}

std::string configuration_text(const Configuration& configuration) {
  const Knobs& knobs = configuration.knobs;
  std::vector<std::string> items;
  for (int k = 0; k < knobs.count; ++k)
    items.push_back(fmt::format("{}={}", knobs.knobs[k].name, value_text(knobs.knobs[k], configuration.values[k])));
  return fmt::format("{}", fmt::join(items, " "));
}

/// What one search has done so far, on stderr: a line that is rewritten on a terminal, else a line now and then.
class Progress {
 public:
  Progress(std::string search, std::int64_t trials) : search_(std::move(search)), trials_(trials) {}
  ~Progress() {
    if (terminal_ && shown_) print_stderr("\n");
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// @param best of the search so far, or null
  void show(const TuningSession& session, const TuningTrial* best) {
    const auto done = static_cast<std::int64_t>(session.trials.size());
    if (!terminal_ && done != trials_ && done % std::max<std::int64_t>(1, trials_ / kLines) != 0) return;
    const int filled = static_cast<int>(kBar * done / trials_);
    std::string line = fmt::format("{} [{:-<{}}] {}/{}  ", search_, std::string(filled, '#'), kBar, done, trials_);
    line += best ? fmt::format("best {}: {}", cost_text(*best->cost), configuration_text(best->configuration))
                 : "nothing right yet";
    if (terminal_) {
      print_stderr("\r{}\033[K", line.substr(0, width()));
    } else {
      print_stderr("{}\n", line);
    }
    std::fflush(stderr);
    shown_ = true;
  }

 private:
  /// Characters of the terminal's line, less one: a full line would wrap.
  static std::size_t width() {
    winsize size{};
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1u : 79;
  }

  std::string search_;
  std::int64_t trials_;
  bool terminal_ = isatty(STDERR_FILENO) == 1, shown_ = false;
};

// ---- The tuning itself ----------------------------------------------------------------------------------------------

class Tuning {
 public:
  Tuning(const TuneCommand& command, const StageInfo& stage, TunableStage& tunable, UserProblem user)
      : command_(command),
        stage_(stage),
        tunable_(tunable),
        problem_(user.problem),
        path_(tuning_log_path(stage, problem_)),
        space_(
            tunable.knobs(),
            [&, limits = device_limits()](const Configuration& point) {
              return keeps(command, point) && tunable.check_configuration(problem_, limits, point).accepted();
            },
            command.shard),
        default_(set_configuration(command, tunable.default_configuration(problem_, device_limits()))) {
    if (!command.configuration.empty() && space_.valid_in_all() == 0)
      throw RefusedError(
          fmt::format("{} refuses: no configuration with {} is valid", stage.name, command.configuration));
    if (space_.valid().empty() && command.shard.is_part())
      throw UsageError(fmt::format("--shards {}: there are only {} valid configurations to deal",
                                   to_string(command.shard), space_.valid_in_all()));
    // The default of the stage may be invalid: with the knobs that are set, or because the stage does not take such a
    // layer unless it is told how. It need not be dealt to this part.
    if (!space_.valid().empty() && !tunable.check_configuration(problem_, device_limits(), default_).accepted())
      default_ = space_.valid().front();
    require_log(path_);
    lock_.emplace(path_.parent_path());
    const std::optional<TuningLog> old = find_tuning_log(stage, tunable, problem_);
    log_ = new_tuning_log(stage, problem_);
    log_.points = space_.points();
    log_.valid = space_.valid_in_all();
    log_.shard = to_string(command.shard);
    if (old) {
      log_.sessions = old->sessions;
      if (old->best && tunable.check_configuration(problem_, device_limits(), old->best->configuration).accepted())
        log_.best = old->best;
    }
    workload_ = make_workload(std::move(user), command.problem.seed);
  }

  int run() {
    const Interruption interruption;
    const TuningTrial of_default = try_point(default_, kTrialSamples);
    log_.default_cost = of_default.cost;
    print_stderr("the default: {}\n", of_default.cost ? cost_text(*of_default.cost) : failure_text(of_default));
    for (const Search search : chosen_searches(command_.search)) {
      if (!interrupted) run_one(search);
    }
    stopped_ = interrupted != 0;
    if (found_) decide();
    write();
    if (command_.json) {
      fmt::print("{}", text_of(to_json(log_)));
    } else {
      report();
    }
    if (stopped_) return kInterrupted;
    return decision_ ? 0 : 1;
  }

 private:
  /// Checks a configuration, and if it is right, measures it.
  TuningTrial try_point(const Configuration& point, int samples) const {
    RunOptions options = trial_options(samples);
    options.configuration = point;
    const RunResult result = run_stage(stage_, workload_, options);
    TuningTrial trial{point, to_string(result.status), result.reason, std::nullopt};
    if (result.status != Status::ok) return trial;
    trial.cost = result.time_us ? result.time_us->median : estimated_cycles(*result.counters);
    return trial;
  }

  static std::string failure_text(const TuningTrial& trial) {
    return fmt::format("{}: {}", trial.status, trial.reason);
  }

  void run_one(Search search) {
    const std::size_t all = space_.valid().size();
    const std::size_t trials = command_.trials == 0 ? all : std::min(all, static_cast<std::size_t>(command_.trials));
    const std::string name = to_string(search);
    std::optional<TuningSession> earlier;  // of this search
    for (const TuningSession& old : log_.sessions)
      if (old.search == name) earlier = old;
    std::erase_if(log_.sessions, [&](const TuningSession& old) { return old.search == name; });
    TuningSession& session = log_.sessions.emplace_back();
    session.search = name;
    session.seed = command_.problem.seed;
    session.budget = static_cast<std::int64_t>(trials);
    session.when = time_now();

    Progress progress(name, session.budget);
    std::optional<TuningTrial> best;
    Clock::time_point written = Clock::now();
    const auto trial = [&](const Configuration& point) {
      session.trials.push_back(try_point(point, kTrialSamples));
      const TuningTrial& last = session.trials.back();
      if (last.cost && (!best || *last.cost < *best->cost)) best = last;
      progress.show(session, best ? &*best : nullptr);
      if (Clock::now() - written > kWriteEvery) {
        write();
        written = Clock::now();
      }
      return last.cost;
    };
    run_search(
        search, space_, default_, trials, session.seed, trial, [] { return interrupted != 0; },
        predicted_features(tunable_, problem_));
    session.interrupted = interrupted != 0;
    if (best && (!found_ || *best->cost < *found_->cost)) found_ = best;
    ran_.push_back(name);
    if (session.interrupted && earlier && earlier->trials.size() > session.trials.size()) {
      kept_ += fmt::format("{}: {} of {} trials; the log keeps the {} of an earlier run\n", name, session.trials.size(),
                           session.budget, earlier->trials.size());
      session = *earlier;
      ran_.pop_back();
    }
    write();
  }

  /// Measures what was found, what was kept before and the default once more, one after the other. The fastest is kept
  /// if it is faster than the default by more than noise. Where the default or all the others fail now, nothing is
  /// changed.
  void decide() {
    const TuningTrial of_default = try_point(default_, kSamples);
    std::vector<TuningTrial> rivals{try_point(found_->configuration, kSamples)};
    if (log_.best) rivals.push_back(try_point(log_.best->configuration, kSamples));
    const TuningTrial* winner = nullptr;
    for (const TuningTrial& rival : rivals)
      if (rival.cost && (!winner || *rival.cost < *winner->cost)) winner = &rival;
    if (!winner || !of_default.cost) {
      failure_ = fmt::format(
          "measured again, the {}; nothing was changed",
          winner ? "default failed: " + failure_text(of_default) : "best failed: " + failure_text(rivals.front()));
      return;
    }
    decision_ = Decision{*winner, *of_default.cost, winner != &rivals.front()};
    log_.best.reset();
    if (*winner->cost < kWorthKeeping * *of_default.cost)
      log_.best = TunedBest{winner->configuration, *winner->cost, *of_default.cost, time_now()};
  }

  void write() const {
    write_log(path_, text_of(to_json(log_)));
    if (command_.kernel_tuner) write_file(*command_.kernel_tuner, text_of(to_kernel_tuner(log_, space_.knobs())));
  }

  // ---- The report ---------------------------------------------------------------------------------------------------

  void report() const {
    fmt::print("{}\n{} on {}{}, padding {}\n", device_line(device_info()), stage_.folder,
               workload_.name.empty() ? "" : workload_.name + ": ", to_string(problem_), to_string(problem_.padding));
    fmt::print("{} of {} configurations are valid{}", grouped(static_cast<std::int64_t>(log_.valid)),
               grouped(static_cast<std::int64_t>(log_.points)), part_text() + searches_table());
    fmt::print("{}", kept_);
    if (stopped_) fmt::print("interrupted: the searches are not complete\n");
    if (!found_) {
      fmt::print("\n{}\n", stopped_ ? "interrupted before a configuration was right: nothing was changed"
                                    : "no configuration was right: " + first_failure());
    } else {
      fmt::print("\n{}", outcome_text());
    }
    fmt::print("log: {}\n", path_.string());
  }

  std::string part_text() const {
    if (log_.shard.empty()) return "\n\n";
    return fmt::format(", {} of them in part {}\n\n", grouped(static_cast<std::int64_t>(space_.valid().size())),
                       log_.shard);
  }

  bool ran(const TuningSession& session) const {
    return std::find(ran_.begin(), ran_.end(), session.search) != ran_.end();
  }

  std::string searches_table() const {
    TextTable table({"search", "trials", "right", "at trial", "best"});
    for (const TuningSession& session : log_.sessions) {
      if (!ran(session)) continue;
      const TuningTrial* const best = session.best();
      const auto right = std::count_if(session.trials.begin(), session.trials.end(),
                                       [](const TuningTrial& t) { return t.cost.has_value(); });
      table.add({session.search, fmt::format("{}/{}", session.trials.size(), session.budget), fmt::to_string(right),
                 best ? fmt::to_string(best - session.trials.data() + 1) : "-", best ? cost_text(*best->cost) : "-"});
    }
    return table.text();
  }

  std::string first_failure() const {
    for (const TuningSession& session : log_.sessions)
      if (ran(session) && !session.trials.empty()) return failure_text(session.trials.front());
    return "no trial was made";
  }

  std::string outcome_text() const {
    const Configuration& best = decision_ ? decision_->best.configuration : found_->configuration;
    TextTable table({"knob", "default", "best"}, 2);
    for (int k = 0; k < best.knobs.count; ++k) {
      const Knob& knob = best.knobs.knobs[k];
      table.add({knob.name, value_text(knob, default_.values[k]), value_text(knob, best.values[k])});
    }
    if (!decision_) return fmt::format("{}\n{}\n", table.text(), failure_);
    const double cost = *decision_->best.cost, of_default = decision_->default_cost;
    std::string text =
        fmt::format("{}\ndefault {}, best {}: {}{}\n", table.text(), cost_text(of_default), cost_text(cost),
                    ratio_text(of_default / cost), decision_->earlier ? ", found by an earlier run" : "");
    if (!log_.best) return text + "nothing is kept: the default is as fast\n";
    return text +
           fmt::format("kept: stage {} runs with it from now on, for this problem on this device\n", stage_.number);
  }

  /// What the last measurement says.
  struct Decision {
    TuningTrial best;  // of all but the default
    double default_cost;
    bool earlier;  // whether an earlier run found it
  };

  const TuneCommand& command_;
  const StageInfo& stage_;
  TunableStage& tunable_;
  ConvProblem problem_;
  fs::path path_;
  std::optional<DeviceLock> lock_;
  Space space_;
  Configuration default_;
  Workload workload_;
  TuningLog log_;
  std::vector<std::string> ran_;      // the searches of this run that the log has
  std::string kept_;                  // a line for each of the others
  std::optional<TuningTrial> found_;  // the best of them
  std::optional<Decision> decision_;  // none where that measurement failed
  std::string failure_;
  bool stopped_ = false;  // before the searches were complete
};

}  // namespace

void require_usable(const TuneCommand& command) {
  chosen_stage(command);
  chosen_searches(command.search);
  if (!command.configuration.empty()) require_settings(command.configuration, {&chosen_stage(command)});
  const bool searches = command.workload || command.problem.shape || !command.configuration.empty() ||
                        command.kernel_tuner || command.shard.is_part();
  if (command.replay && searches)
    throw UsageError(
        "--replay tries nothing: leave out --workload, --shape, --configuration, --kernel-tuner and --shards");
  if (command.kernel_tuner) require_writable(*command.kernel_tuner);
  if (command.workload && command.problem.shape)
    throw UsageError("--workload and --shape both name the problem; leave one of them out");
}

int tune_command(const TuneCommand& command) {
  const StageInfo& stage = chosen_stage(command);
  if (command.replay) return replay_command(*command.replay, *make_tunable(stage), command.json);
  if (const std::string rule = device_refusal(stage); !rule.empty()) throw MachineError(rule);
  if (backend() == Backend::gpu && *compiling_unavailable())
    throw MachineError(
        fmt::format("tune compiles each configuration: {}; or use --backend sim", compiling_unavailable()));
  UserProblem user = chosen_problem(command, stage);
  require_valid(user.problem);
  if (const std::string rule = refusal(stage, user.problem, nullptr); !rule.empty())
    throw RefusedError(fmt::format("{} refuses: {}", stage.name, rule));
  const std::unique_ptr<TunableStage> tunable = make_tunable(stage);
  return Tuning(command, stage, *tunable, std::move(user)).run();
}

RunOptions trial_options(int samples) {
  RunOptions options;
  options.cold = false;
  options.sampling = [samples](const std::function<double()>& sample) {
    std::vector<double> times;
    for (int i = 0; i < samples; ++i) times.push_back(sample());
    return times;
  };
  return options;
}

double estimated_cycles(const Counters& counters) {
  const std::int64_t requests = counters.global_load_requests + counters.global_store_requests +
                                counters.shared_load_requests + counters.shared_store_requests +
                                counters.constant_load_requests;
  const std::int64_t sectors = counters.global_load_sectors + counters.global_store_sectors;
  const std::int64_t conflicts = counters.shared_load_conflicts + counters.shared_store_conflicts;
  return static_cast<double>(requests + conflicts) + static_cast<double>(sectors) / 2;
}

}  // namespace convladder
