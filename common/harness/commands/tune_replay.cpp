#include "common/harness/commands/tune_replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <utility>

#include "common/harness/files/errors.hpp"
#include "common/harness/files/input_file.hpp"
#include "common/harness/files/problem_io.hpp"
#include "common/harness/files/spelling.hpp"
#include "common/harness/files/text_table.hpp"
#include "common/harness/report/report.hpp"

namespace convladder {
namespace {

using Values = std::vector<int>;

Values values_of(const Configuration& point) { return {point.values, point.values + point.knobs.count}; }

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

/// What every seed of a search had found at a look.
std::vector<double> at_look(const Replayed& replayed, std::size_t look) {
  std::vector<double> costs;
  for (const std::vector<double>& of_seed : replayed.best) costs.push_back(of_seed[look]);
  return costs;
}

/// The costs of a log, by configuration; none where it was not right. A later trial of the same one replaces an
/// earlier.
std::map<Values, std::optional<double>> table_of(const TuningLog& log) {
  std::map<Values, std::optional<double>> table;
  for (const TuningSession& session : log.sessions)
    for (const TuningTrial& trial : session.trials) table[values_of(trial.configuration)] = trial.cost;
  return table;
}

double least_of(const std::map<Values, std::optional<double>>& table) {
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [values, cost] : table)
    if (cost) least = std::min(least, *cost);
  return least;
}

}  // namespace

Describe predicted_features(TunableStage& stage, const ConvProblem& problem) {
  return [&stage, problem](const Configuration& point) {
    stage.use(point);
    const Prediction prediction = stage.predict(problem);
    Features features;
    for (const CounterField& field : kCounterFields)
      features.push_back(std::log1p(static_cast<double>(std::max<std::int64_t>(0, prediction.*field.member))));
    return features;
  };
}

std::vector<Replayed> replay(const TuningLog& log, const Knobs& knobs, const Describe& describe) {
  const std::map<Values, std::optional<double>> table = table_of(log);
  const int last = *std::max_element(std::begin(kLooks), std::end(kLooks));
  const auto right =
      std::count_if(table.begin(), table.end(), [](const auto& entry) { return entry.second.has_value(); });
  if (right < last)
    throw UsageError(fmt::format("a replay needs a log with {} right trials or more; this one has {}", last, right));
  const Space space(knobs, [&](const Configuration& point) { return table.count(values_of(point)) > 0; });
  std::vector<Replayed> result;
  for (const Search search : {Search::random, Search::annealing, Search::model}) {
    Replayed& replayed = result.emplace_back();
    replayed.search = search;
    for (std::uint64_t seed = 1; seed <= kReplaySeeds; ++seed) {
      const Configuration& start = space.valid()[std::mt19937_64(seed)() % space.valid().size()];
      std::vector<double>& looks = replayed.best.emplace_back();
      double best = std::numeric_limits<double>::infinity();
      int count = 0;
      const Trial trial = [&](const Configuration& point) {
        const std::optional<double>& cost = table.at(values_of(point));
        if (cost) best = std::min(best, *cost);
        if (std::find(std::begin(kLooks), std::end(kLooks), ++count) != std::end(kLooks)) looks.push_back(best);
        return cost;
      };
      run_search(
          search, space, start, static_cast<std::size_t>(last), seed, trial, [] { return false; }, describe);
    }
  }
  return result;
}

int replay_command(const std::string& path, TunableStage& stage, bool json) {
  require_input_file(path, "a log of ./lab tune");
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse_file(path, fmt::format("cannot be opened ({}); make it readable", std::strerror(errno)));
  const TuningLog log = [&] {
    try {
      return parse_tuning_log(std::string(std::istreambuf_iterator<char>(file), {}), stage.knobs());
    } catch (const UsageError& error) {
      refuse_file(path, fmt::format("{}; give the path of a log of ./lab tune", error.what()));
    }
  }();
  ConvProblem problem = parse_shape(log.problem);
  problem.padding = parse_padding(log.padding);
  const std::vector<Replayed> searches = replay(log, stage.knobs(), predicted_features(stage, problem));
  const std::map<Values, std::optional<double>> table = table_of(log);
  const double least = least_of(table);
  if (json) {
    nlohmann::ordered_json of_searches = nlohmann::ordered_json::object();
    for (const Replayed& replayed : searches) of_searches[to_string(replayed.search)] = replayed.best;
    const nlohmann::ordered_json all{{"device", log.device},
                                     {"stage", log.stage},
                                     {"problem", log.problem},
                                     {"padding", log.padding},
                                     {"measure", log.measure},
                                     {"configurations", table.size()},
                                     {"least", least},
                                     {"trials", std::vector<int>(std::begin(kLooks), std::end(kLooks))},
                                     {"best", std::move(of_searches)}};
    fmt::print("{}", text_of(all));
    return 0;
  }
  fmt::print("{} on {}, padding {}: {} configurations of {}, the best {:.6g} ({})\n", log.stage, log.problem,
             log.padding, table.size(), log.device, least, log.measure);
  fmt::print("the best so far over that, median of {} seeds and the worst of them\n\n", kReplaySeeds);
  std::vector<std::string> head{"search"};
  for (const int look : kLooks) head.push_back(fmt::format("{} trials", look));
  TextTable text(head);
  for (const Replayed& replayed : searches) {
    std::vector<std::string> row{to_string(replayed.search)};
    for (std::size_t look = 0; look < std::size(kLooks); ++look) {
      const std::vector<double> costs = at_look(replayed, look);
      row.push_back(fmt::format("{:.3f} ({:.3f})", median_of(costs) / least,
                                *std::max_element(costs.begin(), costs.end()) / least));
    }
    text.add(row);
  }
  fmt::print("{}", text.text());
  return 0;
}

}  // namespace convladder
