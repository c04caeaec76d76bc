#include "common/harness/commands/best_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "common/harness/baselines/settings_rows.hpp"
#include "common/harness/commands/tune_command.hpp"
#include "common/harness/device/print_stderr.hpp"
#include "common/harness/files/errors.hpp"
#include "common/harness/files/problem_io.hpp"
#include "common/harness/files/spelling.hpp"
#include "common/harness/files/terminal.hpp"
#include "common/harness/files/text_table.hpp"
#include "common/harness/ladder/tuning_log.hpp"
#include "common/harness/report/report.hpp"
#include "common/harness/report/text_report.hpp"
#include "common/harness/run/refusal.hpp"
#include "common/harness/run/runner.hpp"

namespace convladder {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kFirstSamples = 5;       // of every candidate's time
constexpr double kRivals = 1.15;       // so near to the fastest of its error, a candidate is timed again, with kSamples
constexpr double kErrorOfFp32 = 1e-5;  // unless the caller says more: no single products of halves, no large tiles
constexpr std::int64_t kFewPoints = 12;  // of a space that is searched: so many are all tried
constexpr std::size_t kShown = 8;        // stages in the table
constexpr std::string_view kTypes[] = {"fp32", "fp16", "bf16", "int8"};

/// A stage with some of its knobs set, and what its run found.
struct Candidate {
  const StageInfo* stage = nullptr;
  std::string settings;        ///< "bound=1e-4,tile=7x4"; "" for the default, or what `tune` found
  std::string status, reason;  ///< as in a result's JSON
  double cost = 0;             ///< if ok: microseconds, or in the simulator estimated cycles
  double error = 0;            ///< if ok: the relative error (L2) against the reference

  bool ok() const { return status == "ok"; }
};

std::int64_t points_of(const Knobs& knobs) {
  std::int64_t points = 1;
  for (int k = 0; k < knobs.count; ++k) points *= knobs.knobs[k].count;
  return points;
}

/// Every stage of this type that a device runs, as it comes and with each of its knobs at other values. A space that
/// `tune` searches has too many of them, unless it is small: there it is the best that tune found, if it ran.
std::vector<Candidate> candidates_of(std::string_view dtype) {
  std::vector<Candidate> all;
  std::set<std::pair<const StageInfo*, std::string>> known;
  for (const StageInfo& listed : stages()) {
    const StageInfo* const in = in_type(listed, dtype);
    if (!in || runs_on_host(*in)) continue;
    const StageInfo& stage = *in;
    const auto add = [&](std::string settings) {
      if (known.emplace(&stage, settings).second) all.push_back({&stage, std::move(settings), "", "", 0, 0});
    };
    add("");
    for (const StageInfo* row : configurations_of(stage.number)) add(std::string(row->settings));
    const std::unique_ptr<Stage> instance(stage.make());
    const auto* const tunable = dynamic_cast<const TunableStage*>(instance.get());
    if (!tunable) continue;
    const Knobs knobs = tunable->knobs();
    if (knobs.searched && points_of(knobs) > kFewPoints) continue;
    for (int k = 0; k < knobs.count; ++k)
      for (int i = 0; i < knobs.knobs[k].count; ++i)
        if (const Knob& knob = knobs.knobs[k]; knob.values[i] != knob.usual)
          add(fmt::format("{}={}", knob.name, value_text(knob, knob.values[i])));
  }
  return all;
}

const char* measure_name() { return backend() == Backend::gpu ? "time_us" : "estimated_cycles"; }

std::string cost_text(double cost) {
  return backend() == Backend::gpu ? time_text(cost) : grouped(static_cast<std::int64_t>(cost));
}

/// The fastest stages for a layer: measured, or as they were kept.
class Ranking {
 public:
  Ranking(const BestCommand& command, const ConvProblem& problem)
      : command_(command),
        problem_(problem),
        path_(tuning_folder() / slug(device_info().name) /
              fmt::format("best-{}-{}.json", command.dtype, problem_slug(problem))),
        candidates_(candidates_of(command.dtype)) {}

  /// What an earlier call kept, if it is of this device, driver, toolkit and program's stages. @return whether it was
  bool read() {
    std::error_code error;
    if (!fs::is_regular_file(path_, error)) return false;
    try {
      std::ifstream file(path_, std::ios::binary);
      const Json kept = Json::parse(std::string(std::istreambuf_iterator<char>(file), {}));
      Json mine = head();
      for (const auto& [key, value] : mine.items())
        if (kept.at(key) != value) return false;
      const Json& rows = kept.at("candidates");
      if (rows.size() != candidates_.size()) return false;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        Candidate& candidate = candidates_[i];
        const Json& row = rows[i];
        if (row.at("stage") != candidate.stage->folder || row.at("settings") != candidate.settings) return false;
        row.at("status").get_to(candidate.status);
        row.at("reason").get_to(candidate.reason);
        if (!candidate.ok()) continue;
        row.at(measure_name()).get_to(candidate.cost);
        row.at("rel_l2_err").get_to(candidate.error);
      }
      kept.at("when").get_to(when_);
      return true;
    } catch (const Json::exception&) {
      print_stderr("{} is damaged; measuring again\n", path_.string());
      return false;
    }
  }

  /// Runs every candidate, those near the fastest of their error twice, and keeps what was found.
  void measure(UserProblem user) {
    require_log(path_);
    const DeviceLock lock(path_.parent_path());
    const Workload workload = make_workload(std::move(user), command_.problem.seed);
    const Terminal terminal = terminal_of(stderr);
    std::size_t done = 0;
    for (Candidate& candidate : candidates_) {
      if (terminal.columns > 0)
        print_stderr("\r{}/{} {} {}\033[K", ++done, candidates_.size(), candidate.stage->name, candidate.settings);
      run(candidate, workload, kFirstSamples);
    }
    if (terminal.columns > 0) print_stderr("\r\033[K");
    if (backend() == Backend::gpu)
      for (Candidate& candidate : candidates_)
        if (is_rival(candidate)) run(candidate, workload, kSamples);
    when_ = time_now();
    const auto is_refused = [](const Candidate& candidate) { return candidate.status == "refused"; };
    if (std::all_of(candidates_.begin(), candidates_.end(), is_refused)) return;
    Json file = head();
    file["when"] = when_;
    file["candidates"] = Json::array();
    for (const Candidate& candidate : candidates_) file["candidates"].push_back(to_json(candidate));
    write_log(path_, text_of(file));
  }

  /// Those within the error, the fastest first.
  std::vector<const Candidate*> ranked() const {
    std::vector<const Candidate*> ranked;
    for (const Candidate& candidate : candidates_)
      if (candidate.ok() && candidate.error <= most_error()) ranked.push_back(&candidate);
    std::stable_sort(ranked.begin(), ranked.end(),
                     [](const Candidate* a, const Candidate* b) { return a->cost < b->cost; });
    return ranked;
  }

  int report(bool kept) const {
    const std::vector<const Candidate*> best = ranked();
    if (command_.json) {
      Json json = head();
      json["error"] = std::isfinite(most_error()) ? Json(most_error()) : Json();
      json["when"] = when_;
      json["kept"] = kept;
      json["best"] = best.empty() ? Json() : to_json(*best.front());
      json["candidates"] = Json::array();
      for (const Candidate& candidate : candidates_) json["candidates"].push_back(to_json(candidate));
      fmt::print("{}", text_of(json));
    } else if (!best.empty()) {
      print(best, kept);
    }
    if (!best.empty()) return 0;
    throw RefusedError(nothing());
  }

 private:
  double most_error() const {
    constexpr double kInfinite = std::numeric_limits<double>::infinity();
    return command_.error.value_or(command_.dtype == "fp32" ? kErrorOfFp32 : kInfinite);
  }

  /// What a kept file must agree in.
  Json head() const {
    const DeviceInfo device = device_info();
    return {{"device", device.name},
            {"toolchain", {{"cuda_toolkit", device.toolkit}, {"cuda_driver", device.driver}}},
            {"problem", to_string(problem_)},
            {"padding", to_string(problem_.padding)},
            {"dtype", command_.dtype},
            {"measure", measure_name()}};
  }

  static Json to_json(const Candidate& candidate) {
    Json json = {{"stage", candidate.stage->folder},
                 {"settings", candidate.settings},
                 {"status", candidate.status},
                 {"reason", candidate.reason}};
    json[measure_name()] = candidate.ok() ? Json(candidate.cost) : Json();
    json["rel_l2_err"] = candidate.ok() ? Json(candidate.error) : Json();
    return json;
  }

  static void run(Candidate& candidate, const Workload& workload, int samples) {
    RunOptions options = trial_options(samples);
    options.settings = candidate.settings;
    const RunResult result = run_stage(*candidate.stage, workload, options);
    candidate.status = to_string(result.status);
    candidate.reason = result.reason;
    if (result.status != Status::ok) return;
    candidate.cost = result.time_us ? result.time_us->median : estimated_cycles(*result.counters);
    candidate.error = result.check->rel_l2_err;
  }

  bool is_rival(const Candidate& candidate) const {
    const auto beats = [&](const Candidate& other) {
      return other.ok() && other.error <= candidate.error && kRivals * other.cost < candidate.cost;
    };
    return candidate.ok() && std::none_of(candidates_.begin(), candidates_.end(), beats);
  }

  std::string shape_option() const {
    return fmt::format(
        "--shape {}{}", to_string(problem_),
        problem_.padding == Padding::zero ? "" : fmt::format(" --padding {}", to_string(problem_.padding)));
  }

  void print(const std::vector<const Candidate*>& best, bool kept) const {
    fmt::print("{}\n{}, padding {}, {}{}\n\n", device_line(device_info()), to_string(problem_),
               to_string(problem_.padding), command_.dtype,
               std::isfinite(most_error()) ? fmt::format(", relative error at most {}", most_error()) : "");
    TextTable table(
        {"stage", "configuration", backend() == Backend::gpu ? "time" : "estimated cycles", "of the best", "error"}, 2);
    std::set<const StageInfo*> shown;  // each in its fastest configuration
    for (const Candidate* row : best) {
      if (shown.size() == kShown || !shown.insert(row->stage).second) continue;
      table.add({std::string(row->stage->folder), row->settings.empty() ? "-" : row->settings, cost_text(row->cost),
                 ratio_text(row->cost / best.front()->cost), fmt::format("{:.2g}", row->error)});
    }
    fmt::print("{}", table.text(terminal_of(stdout)));
    fmt::print("{}\n", others(best));
    const Candidate& first = *best.front();
    fmt::print("./lab run {} {}{}\n", designation_of(*first.stage), shape_option(),
               first.settings.empty() ? "" : " --configuration " + first.settings);
    fmt::print("{} {} in {}\n", kept ? "kept from" : "measured", when_, path_.string());
    if (kept) fmt::print("--again measures again\n");
  }

  /// What is not in the table.
  std::string others(const std::vector<const Candidate*>& best) const {
    std::ptrdiff_t refused = 0, less_exact = 0, failed = 0;
    for (const Candidate& candidate : candidates_) {
      refused += candidate.status == "refused";
      less_exact += candidate.ok() && !(candidate.error <= most_error());
      failed += !candidate.ok() && candidate.status != "refused";
    }
    std::string text = fmt::format("{} of {} configurations serve", best.size(), candidates_.size());
    if (refused > 0) text += fmt::format("; {} do not take the layer", refused);
    if (less_exact > 0) text += fmt::format("; {} are beyond the error", less_exact);
    if (failed > 0) text += fmt::format("; {} FAILED: --json has the reasons", failed);
    return text;
  }

  std::string nothing() const {
    const Candidate* nearest = nullptr;
    for (const Candidate& candidate : candidates_)
      if (candidate.ok() && (!nearest || candidate.error < nearest->error)) nearest = &candidate;
    if (nearest)
      return fmt::format("no stage has a relative error of at most {}; the most exact is {} with {:.2g}", most_error(),
                         nearest->stage->folder, nearest->error);
    const auto refusing = std::find_if(candidates_.begin(), candidates_.end(),
                                       [](const Candidate& candidate) { return !candidate.reason.empty(); });
    return fmt::format("no stage in {} takes {}{}", command_.dtype, to_string(problem_),
                       refusing == candidates_.end()
                           ? std::string()
                           : fmt::format("; {}: {}", refusing->stage->folder, refusing->reason));
  }

  const BestCommand& command_;
  ConvProblem problem_;
  fs::path path_;
  std::vector<Candidate> candidates_;
  std::string when_;
};

}  // namespace

void require_usable(const BestCommand& command) {
  if (std::find(std::begin(kTypes), std::end(kTypes), command.dtype) == std::end(kTypes))
    throw UsageError(fmt::format("--dtype must be fp32, fp16, bf16 or int8; got {}", in_quotes(command.dtype)));
  if (command.error && !(*command.error > 0))
    throw UsageError(fmt::format("--error must be above 0, as in 3e-7; got {}", *command.error));
  if (!command.problem.shape) throw UsageError("best needs a layer, as in --shape c=64,h=56,w=56,k=64,r=3,s=3");
}

int best_command(const BestCommand& command) {
  UserProblem user = read_problem(command.problem, stages().front().track);
  require_valid(user.problem);
  Ranking ranking(command, user.problem);
  const bool kept = !command.again && ranking.read();
  if (!kept) ranking.measure(std::move(user));
  return ranking.report(kept);
}

}  // namespace convladder
