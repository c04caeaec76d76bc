#include "common/harness/ladder/tuning_log.hpp"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "common/harness/device/print_stderr.hpp"
#include "common/harness/files/errors.hpp"
#include "common/harness/files/output_file.hpp"
#include "common/harness/files/problem_io.hpp"
#include "common/harness/files/spelling.hpp"

namespace convladder {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

// ---- Writing --------------------------------------------------------------------------------------------------------

Json trials_json(const TuningSession& session, const std::string& measure) {
  Json list = Json::array();
  std::optional<double> best;
  for (const TuningTrial& trial : session.trials) {
    if (trial.cost && (!best || *trial.cost < *best)) best = trial.cost;
    list.push_back({{"configuration", to_json(trial.configuration)},
                    {"status", trial.status},
                    {"reason", trial.reason.empty() ? Json() : Json(trial.reason)},
                    {measure, or_null(trial.cost)},
                    {"best_so_far", or_null(best)}});
  }
  return list;
}

// ---- Reading --------------------------------------------------------------------------------------------------------

constexpr int kMaxDepth = 8;  // of objects and lists in a log; it has five

[[noreturn]] void misfit(const std::string& what) { throw UsageError(what); }

/// The value that value_text() or a number names.
int read_value(const Json& json, const Knob& knob) {
  for (int i = 0; i < knob.count; ++i) {
    if (knob.words ? json == knob.words[i] : json == knob.values[i]) return knob.values[i];
  }
  misfit(fmt::format("{} has no value of that kind", knob.name));
}

Configuration read_configuration(const Json& json, const Knobs& knobs) {
  if (json.size() != static_cast<std::size_t>(knobs.count)) misfit("a configuration has other knobs");
  Configuration result(knobs);
  for (int k = 0; k < knobs.count; ++k) result.values[k] = read_value(json.at(knobs.knobs[k].name), knobs.knobs[k]);
  return result;
}

std::optional<double> read_cost(const Json& json) {
  if (json.is_null()) return std::nullopt;
  const double cost = json.get<double>();
  if (!(cost > 0) || std::isinf(cost)) misfit("a time is none");
  return cost;
}

double read_known_cost(const Json& json) {
  const std::optional<double> cost = read_cost(json);
  if (!cost) misfit("a time is missing");
  return *cost;
}

std::string read_text(const Json& json) { return json.is_null() ? "" : json.get<std::string>(); }

TuningSession read_session(const Json& json, const std::string& measure, const Knobs& knobs) {
  TuningSession session{json.at("search").get<std::string>(),  json.at("seed").get<std::uint64_t>(),
                        json.at("budget").get<std::int64_t>(), json.at("interrupted").get<bool>(),
                        json.at("when").get<std::string>(),    {}};
  for (const Json& trial : json.at("trials")) {
    session.trials.push_back({read_configuration(trial.at("configuration"), knobs),
                              trial.at("status").get<std::string>(), read_text(trial.at("reason")),
                              read_cost(trial.at(measure))});
  }
  return session;
}

TuningLog read_log(const Json& json, const Knobs& knobs) {
  TuningLog log;
  log.device = json.at("device").get<std::string>();
  log.stage = json.at("stage").get<std::string>();
  log.problem = json.at("problem").get<std::string>();
  log.padding = json.at("padding").get<std::string>();
  log.measure = json.at("measure").get<std::string>();
  log.toolkit = read_text(json.at("toolchain").at("cuda_toolkit"));
  log.driver = read_text(json.at("toolchain").at("cuda_driver"));
  log.points = json.at("space").at("points").get<std::size_t>();
  log.valid = json.at("space").at("valid").get<std::size_t>();
  log.default_cost = read_cost(json.at("default").at(log.measure));
  if (const Json& best = json.at("best"); !best.is_null()) {
    log.best = TunedBest{read_configuration(best.at("configuration"), knobs), read_known_cost(best.at(log.measure)),
                         read_known_cost(best.at("default_" + log.measure)), best.at("when").get<std::string>()};
  }
  for (const Json& session : json.at("sessions")) log.sessions.push_back(read_session(session, log.measure, knobs));
  return log;
}

/// Tells about a file once, however many results come of it.
void tell_once(const fs::path& path, const std::string& why) {
  static std::set<fs::path> told;
  if (!told.insert(path).second) return;
  print_stderr("note: {} is not used: {}; ./lab tune makes a new one\n", in_quotes(path.string()), why);
}

/// Nobody has chosen the path of a log, but the folder.
[[noreturn]] void refuse_folder(const UsageError& problem) {
  const std::string why = problem.what();
  throw UsageError(why.substr(0, why.find("; choose")) + "; set CONVLADDER_TUNED to a folder of your own");
}

}  // namespace

const TuningTrial* TuningSession::best() const {
  const TuningTrial* found = nullptr;
  for (const TuningTrial& trial : trials)
    if (trial.cost && (!found || *trial.cost < *found->cost)) found = &trial;
  return found;
}

TuningLog new_tuning_log(const StageInfo& stage, const ConvProblem& problem) {
  const DeviceInfo device = device_info();
  TuningLog log;
  log.device = device.name;
  log.stage = stage.folder;
  log.problem = to_string(problem);
  log.padding = to_string(problem.padding);
  log.measure = backend() == Backend::gpu ? "time_us" : "estimated_cycles";
  log.toolkit = device.toolkit;
  log.driver = device.driver;
  return log;
}

std::string value_text(const Knob& knob, int value) {
  for (int i = 0; knob.words && i < knob.count; ++i)
    if (knob.values[i] == value) return knob.words[i];
  return fmt::to_string(value);
}

Json to_json(const Configuration& configuration) {
  const Knobs& knobs = configuration.knobs;
  Json json = Json::object();
  for (int k = 0; k < knobs.count; ++k) {
    const Knob& knob = knobs.knobs[k];
    const int value = configuration.values[k];
    json[knob.name] = knob.words ? Json(value_text(knob, value)) : Json(value);
  }
  return json;
}

Json to_json(const TuningLog& log) {
  const auto text = [](const std::string& value) { return value.empty() ? Json() : Json(value); };
  Json sessions = Json::array();
  for (const TuningSession& session : log.sessions) {
    sessions.push_back({{"search", session.search},
                        {"seed", session.seed},
                        {"budget", session.budget},
                        {"interrupted", session.interrupted},
                        {"when", session.when},
                        {"trials", trials_json(session, log.measure)}});
  }
  Json best;
  if (log.best) {
    best = {{"configuration", to_json(log.best->configuration)},
            {log.measure, log.best->cost},
            {"default_" + log.measure, log.best->default_cost},
            {"when", log.best->when}};
  }
  Json json = {{"device", log.device},
               {"stage", log.stage},
               {"problem", log.problem},
               {"padding", log.padding},
               {"measure", log.measure},
               {"toolchain", {{"cuda_toolkit", text(log.toolkit)}, {"cuda_driver", text(log.driver)}}},
               {"space", {{"points", log.points}, {"valid", log.valid}}},
               {"default", {{log.measure, or_null(log.default_cost)}}},
               {"best", std::move(best)},
               {"sessions", std::move(sessions)}};
  if (!log.shard.empty()) json["shard"] = log.shard;
  return json;
}

Json to_kernel_tuner(const TuningLog& log, const Knobs& knobs) {
  constexpr double kMicroseconds = 1e-3;  // Kernel Tuner counts in ms
  const bool timed = log.measure == "time_us";
  Json keys = Json::array(), values = Json::object(), cache = Json::object();
  for (int k = 0; k < knobs.count; ++k) {
    const Knob& knob = knobs.knobs[k];
    keys.push_back(knob.name);
    values[knob.name] = std::vector<int>(knob.values, knob.values + knob.count);
  }
  for (const TuningSession& session : log.sessions) {
    for (const TuningTrial& trial : session.trials) {
      Json entry = Json::object();
      std::string key;
      for (int k = 0; k < knobs.count; ++k) {
        entry[knobs.knobs[k].name] = trial.configuration.values[k];
        key += fmt::format("{}{}", k > 0 ? "," : "", trial.configuration.values[k]);
      }
      entry["time"] = trial.cost ? Json(*trial.cost * (timed ? kMicroseconds : 1)) : Json("RuntimeFailedConfig");
      for (const char* part :
           {"compile_time", "verification_time", "benchmark_time", "strategy_time", "framework_time"})
        entry[part] = 0;
      entry["timestamp"] = session.when;
      cache[key] = std::move(entry);
    }
  }
  const ConvProblem problem = parse_shape(log.problem);
  return {{"schema_version", "1.0.0"},
          {"device_name", log.device},
          {"kernel_name", log.stage},
          {"problem_size", {problem.n * problem.k, problem.p(), problem.q()}},
          {"tune_params_keys", std::move(keys)},
          {"tune_params", std::move(values)},
          {"objective", timed ? "time" : log.measure},
          {"cache", std::move(cache)}};
}

TuningLog parse_tuning_log(const std::string& text, const Knobs& knobs) {
  try {
    const auto shallow = [](int depth, Json::parse_event_t, const Json&) {
      if (depth > kMaxDepth) misfit("it is no log of ./lab tune");  // copies of what is nested deeply end the stack
      return true;
    };
    return read_log(Json::parse(text, shallow), knobs);
  } catch (const Json::parse_error& error) {
    throw UsageError(fmt::format("it is no JSON from byte {} on", error.byte));
  } catch (const Json::exception&) {
    throw UsageError("it is no log of ./lab tune");
  }
}

std::string slug(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const bool upper = c >= 'A' && c <= 'Z', plain = upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (plain) {
      result += upper ? static_cast<char>(c - 'A' + 'a') : c;
    } else if (!result.empty() && result.back() != '-') {
      result += '-';
    }
  }
  return result;
}

std::string problem_slug(const ConvProblem& problem) {
  std::string text = to_string(problem);
  std::erase(text, '=');
  if (problem.padding != Padding::zero) text += fmt::format(",{}", to_string(problem.padding));
  return slug(text);
}

fs::path tuning_folder() {
  if (const char* const chosen = std::getenv("CONVLADDER_TUNED"); chosen && *chosen) return chosen;
  return fs::read_symlink("/proc/self/exe").parent_path().parent_path() / "tuned";
}

fs::path tuning_log_path(const StageInfo& stage, const ConvProblem& problem) {
  return tuning_folder() / slug(device_info().name) / fmt::format("{}-{}.json", stage.folder, problem_slug(problem));
}

std::optional<TuningLog> find_tuning_log(const StageInfo& stage, const TunableStage& tunable,
                                         const ConvProblem& problem) {
  const fs::path path = tuning_log_path(stage, problem);
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;
  try {
    if (!fs::is_regular_file(path, error)) misfit("it is no file");
    std::ifstream file(path, std::ios::binary);
    if (!file) misfit("it cannot be read");
    TuningLog log = parse_tuning_log(std::string(std::istreambuf_iterator<char>(file), {}), tunable.knobs());
    const TuningLog wanted = new_tuning_log(stage, problem);
    if (std::tie(log.device, log.stage, log.problem, log.padding, log.measure) !=
        std::tie(wanted.device, wanted.stage, wanted.problem, wanted.padding, wanted.measure)) {
      misfit("it is of another problem or device");
    }
    return log;
  } catch (const UsageError& error) {
    tell_once(path, error.what());
    return std::nullopt;
  }
}

std::optional<Configuration> tuned_configuration(const StageInfo& stage, const TunableStage& tunable,
                                                 const ConvProblem& problem) {
  const std::optional<TuningLog> log = find_tuning_log(stage, tunable, problem);
  if (!log || !log->best) return std::nullopt;
  const Verdict verdict = tunable.check_configuration(problem, device_limits(), log->best->configuration);
  if (verdict.accepted()) return log->best->configuration;
  tell_once(tuning_log_path(stage, problem), verdict.reason());
  return std::nullopt;
}

void require_log(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  try {
    if (error)
      throw UsageError(fmt::format("cannot make {}: {}", in_quotes(path.parent_path().string()), error.message()));
    require_writable(path);
  } catch (const UsageError& problem) {
    refuse_folder(problem);
  }
}

void write_log(const fs::path& path, std::string_view text) {
  try {
    write_file(path, text);
  } catch (const UsageError& problem) {
    refuse_folder(problem);
  }
}

DeviceLock::DeviceLock(const fs::path& folder) : file_(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (file_ >= 0 && flock(file_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    close(file_);
    throw MachineError(
        fmt::format("another ./lab tune or ./lab best is running on this device, with its logs in {}; "
                    "wait for it",
                    in_quotes(folder.string())));
  }
}

DeviceLock::~DeviceLock() {
  if (file_ >= 0) close(file_);
}

std::string time_now() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

}  // namespace convladder
