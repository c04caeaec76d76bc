#include "common/harness/commands/tuner.hpp"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/harness/commands/cost_model.hpp"
#include "common/harness/commands/tune_command.hpp"
#include "common/harness/commands/tune_replay.hpp"
#include "common/harness/files/errors.hpp"
#include "common/harness/files/output_file.hpp"
#include "common/harness/files/problem_io.hpp"
#include "common/harness/ladder/tuning_log.hpp"
#include "common/harness/report/report.hpp"
#include "tests/folder.hpp"

namespace convladder {
namespace {

constexpr int kSizes[] = {1, 2, 4, 8, 16, 32, 64, 128};
constexpr int kPlaces[] = {0, 1, 2};
constexpr const char* kPlaceWords[] = {"cache", "registers", "shared"};
constexpr Knob kKnobs[] = {{"rows", kSizes, 1},
                           {"columns", kSizes, 1},
                           {"threads", kSizes, 1},
                           {"input", kPlaces, kPlaceWords, 0},
                           {"filter", kPlaces, kPlaceWords, 0}};
constexpr Knobs kSpace = kKnobs;
constexpr int kDefault[] = {1, 1, 1, 0, 0};

Configuration point(const int (&values)[5]) {
  Configuration result(kSpace);
  std::copy(std::begin(values), std::end(values), result.values);
  return result;
}

bool same(const Configuration& a, const Configuration& b) {
  return std::equal(a.values, a.values + kMaxKnobs, b.values);
}

/// A rule that leaves holes: no more threads than outputs.
bool is_valid(const Configuration& c) { return c.values[2] <= c.values[0] * c.values[1]; }

/// Smooth, with the smallest value, 10, at rows 16, columns 32, threads 8, registers, shared.
double smooth(const Configuration& c) {
  const auto distance = [](int value, double best) { return std::log2(value) - best; };
  const double rows = distance(c.values[0], 4), columns = distance(c.values[1], 5), threads = distance(c.values[2], 3);
  return 10 + rows * rows + columns * columns + threads * threads + rows * columns / 2 + std::abs(c.values[3] - 1) + 2 -
         c.values[4];
}

const Space& space() {
  static const Space made(kSpace, is_valid);
  return made;
}

/// The points that a search tries, in order.
std::vector<Configuration> tried_by(Search search, std::size_t trials, std::uint64_t seed, const Trial& cost = smooth) {
  std::vector<Configuration> points;
  const Trial trial = [&](const Configuration& c) {
    points.push_back(c);
    return cost(c);
  };
  run_search(search, space(), point(kDefault), trials, seed, trial, [] { return false; });
  return points;
}

double best_of(const std::vector<Configuration>& points) {
  double best = smooth(points.front());
  for (const Configuration& c : points) best = std::min(best, smooth(c));
  return best;
}

std::size_t different(const std::vector<Configuration>& points) {
  std::set<std::vector<int>> all;
  for (const Configuration& c : points) all.insert({c.values, c.values + kMaxKnobs});
  return all.size();
}

TEST_CASE("a space: its valid points in order, each found at its place") {
  CHECK(space().points() == 8 * 8 * 8 * 3 * 3);
  std::size_t expected = 0;
  for (const int rows : kSizes)
    for (const int columns : kSizes)
      for (const int threads : kSizes) expected += threads <= rows * columns ? 9 : 0;
  CHECK(space().valid().size() == expected);
  CHECK(same(space().valid().front(), point(kDefault)));
  for (std::size_t i = 0; i < expected; ++i) CHECK(space().find(space().valid()[i]) == i);
  CHECK_FALSE(space().find(point({1, 1, 2, 0, 0})));  // the rule
  CHECK_FALSE(space().find(point({3, 4, 1, 0, 0})));  // no such value
}

TEST_CASE("a step moves one knob along its values, and not past their end") {
  const std::optional<Configuration> moved = space().moved(point({4, 8, 1, 0, 0}), 1, -1);
  REQUIRE(moved);
  CHECK(same(*moved, point({4, 4, 1, 0, 0})));
  CHECK_FALSE(space().moved(point(kDefault), 0, -1));
  CHECK_FALSE(space().moved(point({128, 1, 1, 0, 0}), 0, 1));
}

TEST_CASE("random search covers the valid points without repeating one") {
  const std::vector<Configuration> points = tried_by(Search::random, 1000000, 5);
  CHECK(points.size() == space().valid().size());
  CHECK(different(points) == points.size());
  CHECK_FALSE(same(points.front(), space().valid().front()));
}

TEST_CASE("exhaustive search tries the valid points in order, and finds the best of all") {
  const std::vector<Configuration> points = tried_by(Search::exhaustive, space().valid().size(), 1);
  REQUIRE(points.size() == space().valid().size());
  for (std::size_t i = 0; i < points.size(); ++i) CHECK(same(points[i], space().valid()[i]));
  CHECK(best_of(points) == 10);
  CHECK(tried_by(Search::exhaustive, 7, 1).size() == 7);
}

TEST_CASE("annealing begins at the default and tries no point twice, up to all of them") {
  for (const std::size_t trials : {std::size_t{60}, space().valid().size()}) {
    const std::vector<Configuration> points = tried_by(Search::annealing, trials, 3);
    CHECK(points.size() == trials);
    CHECK(different(points) == trials);
    CHECK(same(points.front(), point(kDefault)));
    CHECK(std::all_of(points.begin(), points.end(), is_valid));
  }
}

TEST_CASE("annealing with 60 trials finds better points than random search") {
  std::vector<double> random, annealing;
  for (std::uint64_t seed = 0; seed < 25; ++seed) {
    random.push_back(best_of(tried_by(Search::random, 60, seed)));
    annealing.push_back(best_of(tried_by(Search::annealing, 60, seed)));
  }
  std::sort(random.begin(), random.end());
  std::sort(annealing.begin(), annealing.end());
  MESSAGE("medians: random " << random[12] << ", annealing " << annealing[12] << ", of 10");
  CHECK(annealing[12] < random[12]);
  CHECK(annealing[20] < random[12]);  // four of five times
}

TEST_CASE("the model tries no point twice, up to all of them, and begins where it is told to") {
  static constexpr int kFewSizes[] = {1, 2, 4, 8};
  static constexpr Knob kFew[] = {{"rows", kFewSizes, 1}, {"columns", kFewSizes, 1}, {"threads", kFewSizes, 1}};
  const Space few(Knobs(kFew), [](const Configuration& c) { return c.values[2] <= c.values[0] * c.values[1]; });
  std::vector<Configuration> points;
  const Trial trial = [&](const Configuration& c) -> std::optional<double> {
    points.push_back(c);
    if (c.values[1] == 2) return std::nullopt;  // does not work
    return 1.0 + c.values[0] + 8.0 / c.values[1];
  };
  run_search(Search::model, few, few.valid()[5], 1000, 1, trial, [] { return false; });
  CHECK(points.size() == few.valid().size());
  CHECK(different(points) == points.size());
  CHECK(same(points.front(), few.valid()[5]));
}

TEST_CASE("the model with 60 trials finds better points than random search, and what it is told helps") {
  const Describe describe = [](const Configuration& c) { return Features{smooth(c)}; };
  std::vector<double> random, model, told;
  for (std::uint64_t seed = 0; seed < 9; ++seed) {
    random.push_back(best_of(tried_by(Search::random, 60, seed)));
    model.push_back(best_of(tried_by(Search::model, 60, seed)));
    std::vector<Configuration> points;
    const Trial trial = [&](const Configuration& c) {
      points.push_back(c);
      return smooth(c);
    };
    run_search(
        Search::model, space(), point(kDefault), 60, seed, trial, [] { return false; }, describe);
    told.push_back(best_of(points));
  }
  for (std::vector<double>* costs : {&random, &model, &told}) std::sort(costs->begin(), costs->end());
  MESSAGE("medians: random " << random[4] << ", model " << model[4] << ", told the cost " << told[4] << ", of 10");
  CHECK(model[4] < random[4]);
  CHECK(model[7] < random[4]);  // four of five times
  CHECK(told[4] <= 10.5);
}

TEST_CASE("the cost model learns a step, an interaction and a mean, and passes over what says nothing") {
  std::vector<Features> rows;
  std::vector<double> targets;
  for (int a = 0; a < 8; ++a)
    for (int b = 0; b < 8; ++b) {
      rows.push_back({static_cast<double>(a), 7.0, static_cast<double>(b)});
      targets.push_back(a < 4 && b >= 6 ? 3 : 1);
    }
  CostModel model;
  CHECK(model.predict({0, 7, 0}) == 0);
  model.fit(rows, targets);
  for (std::size_t i = 0; i < rows.size(); ++i)
    CHECK(model.predict(rows[i]) == doctest::Approx(targets[i]).epsilon(0.02));
  CHECK(model.predict({1, 99, 7}) == model.predict({1, 7, 7}));
  model.fit({{1.0}, {2.0}}, {4, 6});  // too few to part
  CHECK(model.predict({1.0}) == 5);
}

TEST_CASE("a seed decides what is tried") {
  for (const Search search : {Search::random, Search::annealing, Search::model}) {
    const auto numbers = [&](std::uint64_t seed) {
      std::vector<int> all;
      for (const Configuration& c : tried_by(search, 40, seed)) all.insert(all.end(), c.values, c.values + 5);
      return all;
    };
    CHECK(numbers(1) == numbers(1));
    CHECK(numbers(1) != numbers(2));
  }
}

TEST_CASE("points that do not work are never where annealing goes on from") {
  const Trial picky = [](const Configuration& c) -> std::optional<double> {
    if (c.values[3] == 0) return std::nullopt;  // the default, too
    return smooth(c);
  };
  const std::vector<Configuration> points = tried_by(Search::annealing, 100, 2, picky);
  CHECK(points.size() == 100);
  const auto works = [](const Configuration& c) { return c.values[3] != 0; };
  CHECK(std::count_if(points.begin(), points.end(), works) > 50);
  const Trial never = [](const Configuration&) { return std::optional<double>(); };
  CHECK(different(tried_by(Search::annealing, 100, 2, never)) == 100);
}

TEST_CASE("a search ends where it is told to") {
  for (const Search search : kSearches) {
    int count = 0;
    const Trial trial = [&](const Configuration& c) {
      ++count;
      return smooth(c);
    };
    run_search(search, space(), point(kDefault), 60, 1, trial, [&] { return count == 9; });
    CHECK(count == 9);
    CHECK(parse_search(to_string(search)) == search);
  }
  CHECK_FALSE(parse_search("all"));
}

TEST_CASE("the estimate counts requests, extra passes and half the sectors") {
  Counters counters;
  counters.global_load_requests = 1;
  counters.global_load_sectors = 4;
  counters.global_store_requests = 10;
  counters.global_store_sectors = 80;
  counters.shared_load_requests = 100;
  counters.shared_load_conflicts = 1000;
  counters.shared_store_requests = 10000;
  counters.shared_store_conflicts = 100000;
  counters.constant_load_requests = 1000000;
  CHECK(estimated_cycles(counters) == 1111111 + 42);
}

// ---- The log --------------------------------------------------------------------------------------------------------

/// A stage that can be tuned, and never runs.
class FakeStage final : public TunableStage {
 public:
  Verdict check(const ConvProblem&, const DeviceLimits&) const override { return Verdict::accept(); }
  void launch(const ConvProblem&, const Tensors&, Stream) override {}
  Knobs knobs() const override { return kSpace; }
  Verdict check_configuration(const ConvProblem&, const DeviceLimits&, const Configuration& c) const override {
    return is_valid(c) ? Verdict::accept() : Verdict::refuse("more threads than outputs");
  }
};

constexpr StageInfo kFake{99, "fake", "99-fake", "", "depthwise", "", 0, "fp32", "NCHW", "", "sm_70", nullptr};

ConvProblem a_problem() { return parse_shape("n=2,c=3,h=5,w=7,k=3,r=3,s=3,groups=3"); }

TuningLog a_log(const ConvProblem& problem) {
  TuningLog log = new_tuning_log(kFake, problem);
  log.points = 4608;
  log.valid = 4000;
  log.default_cost = 20.5;
  log.sessions.push_back({"random",
                          18446744073709551615u,
                          60,
                          true,
                          time_now(),
                          {{point({4, 8, 2, 2, 1}), "ok", "", 12.25},
                           {point({8, 8, 2, 2, 1}), "wrong", "output 3 is 1, not 2", std::nullopt},
                           {point({8, 8, 2, 0, 1}), "ok", "", 11.0},
                           {point({8, 8, 4, 0, 1}), "ok", "", 30.0}}});
  log.best = TunedBest{point({8, 8, 2, 0, 1}), 10.5, 21.5, time_now()};
  return log;
}

/// CONVLADDER_TUNED, for as long as it lives.
class TunedFolder {
 public:
  TunedFolder() : old_(getenv("CONVLADDER_TUNED") ? getenv("CONVLADDER_TUNED") : "") {
    setenv("CONVLADDER_TUNED", folder_.path().c_str(), 1);
  }
  ~TunedFolder() { setenv("CONVLADDER_TUNED", old_.c_str(), 1); }
  TunedFolder(const TunedFolder&) = delete;
  TunedFolder& operator=(const TunedFolder&) = delete;

  std::filesystem::path path() const { return folder_.path(); }

 private:
  Folder folder_;
  std::string old_;
};

void keep(const std::string& text, const ConvProblem& problem) {
  const std::filesystem::path path = tuning_log_path(kFake, problem);
  std::filesystem::create_directories(path.parent_path());
  write_file(path, text);
}

TEST_CASE("a log is read as it was written") {
  const std::string text = text_of(to_json(a_log(a_problem())));
  const TuningLog log = parse_tuning_log(text, kSpace);
  CHECK(text_of(to_json(log)) == text);
  CHECK(log.problem == "n=2,c=3,h=5,w=7,k=3,r=3,s=3,groups=3");
  CHECK(log.default_cost == 20.5);
  REQUIRE(log.sessions.size() == 1);
  CHECK(log.sessions[0].seed == 18446744073709551615u);
  CHECK(log.sessions[0].interrupted);
  REQUIRE(log.sessions[0].trials.size() == 4);
  CHECK(same(log.sessions[0].trials[0].configuration, point({4, 8, 2, 2, 1})));
  CHECK(log.sessions[0].best() == &log.sessions[0].trials[2]);
  CHECK(same(log.best->configuration, point({8, 8, 2, 0, 1})));

  const auto json = nlohmann::ordered_json::parse(text);
  CHECK(json["sessions"][0]["trials"][0]["configuration"]["input"] == "shared");
  std::vector<double> so_far;
  for (const auto& trial : json["sessions"][0]["trials"]) so_far.push_back(trial["best_so_far"]);
  CHECK(so_far == std::vector<double>{12.25, 12.25, 11, 11});
}

TEST_CASE("a log as a cache of Kernel Tuner") {
  TuningLog log = a_log(a_problem());
  log.measure = "time_us";
  const auto cache = to_kernel_tuner(log, kSpace);
  CHECK(cache["schema_version"] == "1.0.0");
  CHECK(cache["kernel_name"] == "99-fake");
  CHECK(cache["problem_size"] == std::vector<int>{6, 5, 7});
  CHECK(cache["tune_params_keys"] == std::vector<std::string>{"rows", "columns", "threads", "input", "filter"});
  CHECK(cache["tune_params"]["input"] == std::vector<int>{0, 1, 2});
  CHECK(cache["objective"] == "time");
  REQUIRE(cache["cache"].size() == 4);
  const auto& first = cache["cache"]["4,8,2,2,1"];
  CHECK(first["time"] == 0.01225);  // ms
  CHECK(first["input"] == 2);
  CHECK(first["timestamp"] == log.sessions[0].when);
  for (const char* part : {"compile_time", "verification_time", "benchmark_time", "strategy_time", "framework_time"})
    CHECK(first[part] == 0);
  CHECK(cache["cache"]["8,8,2,2,1"]["time"] == "RuntimeFailedConfig");
  log.measure = "estimated_cycles";
  CHECK(to_kernel_tuner(log, kSpace)["objective"] == "estimated_cycles");
  CHECK(to_kernel_tuner(log, kSpace)["cache"]["8,8,2,0,1"]["time"] == 11);
}

// ---- The replay -----------------------------------------------------------------------------------------------------

TEST_CASE("a replay sees the table's configurations alone, and each search its best of them") {
  TuningLog log = a_log(a_problem());
  log.sessions[0].trials.clear();
  int number = 0;
  for (const Configuration& c : space().valid()) {  // a part of the space, some of it wrong
    if (c.values[3] == 1 || ++number % 3 == 0) continue;
    TuningTrial trial{c, "ok", "", smooth(c)};
    if (number % 7 == 0) trial = {c, "wrong", "output 3 is 1, not 2", std::nullopt};
    log.sessions[0].trials.push_back(trial);
  }
  double least = 1e9;
  for (const TuningTrial& trial : log.sessions[0].trials) least = std::min(least, trial.cost.value_or(least));
  const std::vector<Replayed> searches = replay(log, kSpace, {});
  REQUIRE(searches.size() == 3);
  std::vector<double> medians;
  for (const Replayed& search : searches) {
    REQUIRE(search.best.size() == kReplaySeeds);
    std::vector<double> last;
    for (const std::vector<double>& looks : search.best) {
      REQUIRE(looks.size() == 3);
      CHECK((looks[0] >= looks[1] && looks[1] >= looks[2] && looks[2] >= least));
      last.push_back(looks[2]);
    }
    std::sort(last.begin(), last.end());
    medians.push_back(last[kReplaySeeds / 2]);
  }
  CHECK(searches[2].search == Search::model);
  CHECK(medians[2] < medians[0]);
  CHECK(replay(log, kSpace, {})[2].best == searches[2].best);  // again the same
  log.sessions[0].trials.resize(40);
  CHECK_THROWS_AS(replay(log, kSpace, {}), UsageError);
}

TEST_CASE("a log whose knobs or numbers do not fit is no log") {
  const auto good = to_json(a_log(a_problem()));
  CHECK_NOTHROW(parse_tuning_log(good.dump(), kSpace));
  const std::vector<std::pair<std::string, nlohmann::ordered_json>> changes{
      {"/best/configuration/rows", 3},
      {"/best/configuration/rows", "8"},
      {"/best/configuration/input", 0},
      {"/best/configuration/input", "disk"},
      {"/best/configuration/more", 1},
      {"/best/configuration", {{"rows", 8}}},
      {"/best/estimated_cycles", -1},
      {"/best/estimated_cycles", nullptr},
      {"/best", 7},
      {"/sessions/0/trials/1/configuration/threads", 5},
      {"/sessions", 7},
      {"/device", nullptr}};
  for (const auto& change : changes) {
    CAPTURE(change.first);
    auto bad = good;
    bad[nlohmann::ordered_json::json_pointer(change.first)] = change.second;
    CHECK_THROWS_AS(parse_tuning_log(bad.dump(), kSpace), UsageError);
  }
  for (const char* text : {"", "{", "[]", "7", "{}"}) CHECK_THROWS_AS(parse_tuning_log(text, kSpace), UsageError);
}

TEST_CASE("the best of a log is what a stage runs with, on that problem alone") {
  const TunedFolder tuned;
  const FakeStage stage;
  const ConvProblem problem = a_problem();
  CHECK_FALSE(tuned_configuration(kFake, stage, problem));
  keep(text_of(to_json(a_log(problem))), problem);
  const std::optional<Configuration> found = tuned_configuration(kFake, stage, problem);
  REQUIRE(found);
  CHECK(same(*found, point({8, 8, 2, 0, 1})));
  ConvProblem other = problem;
  other.padding = Padding::reflect;
  CHECK_FALSE(tuned_configuration(kFake, stage, other));
  other = problem;
  other.n = 4;
  CHECK_FALSE(tuned_configuration(kFake, stage, other));
}

TEST_CASE("a log that is damaged, of another problem, or whose best is no longer valid, is passed over") {
  const FakeStage stage;
  const ConvProblem problem = a_problem();
  ConvProblem other = problem;
  other.n = 4;
  TuningLog invalid = a_log(problem), without_best = a_log(problem);
  invalid.best->configuration = point({1, 1, 2, 0, 0});
  without_best.best.reset();
  const std::string good = text_of(to_json(a_log(problem)));
  for (const std::string& text : {good.substr(0, good.size() / 2), std::string(), text_of(to_json(a_log(other))),
                                  text_of(to_json(invalid)), text_of(to_json(without_best))}) {
    const TunedFolder tuned;
    keep(text, problem);
    CHECK_FALSE(tuned_configuration(kFake, stage, problem));
  }
}

TEST_CASE("where logs lie") {
  const TunedFolder tuned;
  ConvProblem problem = a_problem();
  CHECK(tuning_log_path(kFake, problem).parent_path().parent_path() == tuned.path());
  CHECK(tuning_log_path(kFake, problem).filename() == "99-fake-n2-c3-h5-w7-k3-r3-s3-groups3.json");
  problem.padding = Padding::replicate;
  CHECK(tuning_log_path(kFake, problem).filename() == "99-fake-n2-c3-h5-w7-k3-r3-s3-groups3-replicate.json");
  setenv("CONVLADDER_TUNED", "", 1);
  CHECK(tuning_folder().filename() == "tuned");
}

}  // namespace
}  // namespace convladder
