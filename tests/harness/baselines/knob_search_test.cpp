// The search over engines and knobs, on engines whose costs are known.
#include "common/harness/baselines/knob_search.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>

using namespace convladder;

namespace {

using Cost = std::function<std::optional<double>(const KnobPoint&)>;

/// Every point that the search gives, at most so many, in batches.
std::vector<KnobPoint> all_of(KnobSearch& search, std::size_t count, const Cost& cost, std::size_t batch = 7) {
  std::vector<KnobPoint> points;
  while (points.size() < count) {
    const std::vector<KnobPoint> next = search.next(std::min(batch, count - points.size()));
    if (next.empty()) break;
    for (const KnobPoint& point : next) search.tell(point, cost(point));
    points.insert(points.end(), next.begin(), next.end());
  }
  return points;
}

double value(const KnobPoint& point, std::int64_t type, double otherwise) {
  const auto found = point.knobs.find(type);
  return found == point.knobs.end() ? otherwise : static_cast<double>(found->second);
}

/// Six knobs of ten values: a million combinations, of which a third are refused. The cost is 1 where each knob has the
/// value 7, and grows with the distance from it.
const std::vector<KnobRange> kMany = {{2, 0, 9, 1},  {13, 0, 9, 1}, {18, 0, 9, 1},
                                      {25, 0, 9, 1}, {27, 0, 9, 1}, {28, 0, 9, 1}};
std::optional<double> bowl(const KnobPoint& point) {
  double cost = 1;
  std::int64_t sum = 0;
  for (const auto& [type, chosen] : point.knobs) sum += chosen;
  for (const KnobRange& knob : kMany) cost += std::abs(value(point, knob.type, 2) - 7);
  return sum % 3 == 1 ? std::nullopt : std::optional(cost);
}

}  // namespace

TEST_CASE("the knob search gives every combination of few knobs, each once, and then ends") {
  KnobSearch search({{{24, 0, 28, 1}}, {{2, 10, 30, 10}, {5, -1, 1, 2}}, {}}, 1);
  CHECK(search.combinations() == 29 + 6 + 1);
  std::vector<KnobPoint> points = all_of(search, 1000, [](const KnobPoint& point) {
    return point.engine == 1 ? std::nullopt : std::optional(1.0 + value(point, 24, 0));
  });
  CHECK(search.complete());
  std::sort(points.begin(), points.end());
  CHECK(std::adjacent_find(points.begin(), points.end()) == points.end());
  for (std::int64_t i = 0; i <= 28; ++i) CHECK(std::count(points.begin(), points.end(), KnobPoint{0, {{24, i}}}) == 1);
  for (const std::int64_t a : {10, 20, 30})
    for (const std::int64_t b : {-1, 1})
      CHECK(std::count(points.begin(), points.end(), KnobPoint{1, {{2, a}, {5, b}}}) == 1);
  CHECK(points.size() == 29 + 6 + 3);  // and each engine with its own values
}

TEST_CASE("the knob search begins with the engines' own values, behind what was suggested") {
  KnobSearch search({{{24, 0, 28, 1}}, {{24, 0, 3, 1}}}, 1);
  search.suggest({0, {{24, 28}}});
  search.suggest({7, {}});             // no such engine
  search.suggest({1, {{25, 0}}});      // no such knob
  search.tell({1, {}}, std::nullopt);  // known already
  CHECK(search.next(2) == std::vector<KnobPoint>{{0, {{24, 28}}}, {0, {}}});
}

TEST_CASE("the knob search finds the best of a million combinations by its neighbours") {
  for (const std::uint64_t seed : {1, 2, 3}) {
    CAPTURE(seed);
    KnobSearch search({kMany, {}}, seed);
    double best = 1e9;
    for (const KnobPoint& point : all_of(search, 1200, bowl))
      if (const auto cost = bowl(point)) best = std::min(best, *cost);
    CHECK(best <= 2);
    CHECK_FALSE(search.complete());
    // A walk alone would be expected not to come that near.
    KnobSearch blind({kMany, {}}, seed);
    double by_walk = 1e9;
    for (const KnobPoint& point : all_of(blind, 1200, [](const KnobPoint&) { return std::nullopt; }))
      if (const auto cost = bowl(point)) by_walk = std::min(by_walk, *cost);
    CHECK(by_walk > best);
  }
}

TEST_CASE("the knob search is the same for the same seed, and another for another") {
  const auto points = [](std::uint64_t seed) {
    KnobSearch search({kMany, {{24, 0, 200, 1}}}, seed);
    return all_of(search, 300, bowl);
  };
  CHECK(points(1) == points(1));
  CHECK(points(1) != points(2));
}

TEST_CASE("the knob search leaves an engine alone that refuses all") {
  KnobSearch search({kMany, kMany}, 1);
  std::size_t of_refusing = 0;
  for (const KnobPoint& point :
       all_of(search, 2000, [](const KnobPoint& point) { return point.engine == 0 ? std::nullopt : bowl(point); }))
    of_refusing += point.engine == 0;
  CHECK(of_refusing >= 48);
  CHECK(of_refusing < 300);
}

TEST_CASE("the knob search thins a knob of very many values, and says that it is not all") {
  KnobSearch search({{{12, 1, 1'000'000'000, 1}}}, 1);
  CHECK(search.combinations() == 64);
  std::vector<std::int64_t> values;
  for (const KnobPoint& point : all_of(search, 1000, [](const KnobPoint&) { return 1.0; }))
    if (!point.knobs.empty()) values.push_back(point.knobs.at(12));
  CHECK(values.size() == 64);
  CHECK(*std::min_element(values.begin(), values.end()) == 1);
  CHECK(*std::max_element(values.begin(), values.end()) <= 1'000'000'000);
  CHECK(*std::max_element(values.begin(), values.end()) > 900'000'000);
  CHECK_FALSE(search.complete());
}

TEST_CASE("the knob search ends without engines, and with more combinations than can be counted") {
  KnobSearch none({}, 1);
  CHECK(none.next(5).empty());
  CHECK(none.complete());
  std::vector<KnobRange> knobs;
  for (std::int64_t type = 0; type < 30; ++type) knobs.push_back({type, 0, 63, 1});
  KnobSearch huge({knobs}, 1);
  CHECK(huge.next(100).size() == 100);
  CHECK_FALSE(huge.complete());
}
