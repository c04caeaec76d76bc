#include "common/harness/baselines/knob_search.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace convladder {
namespace {

constexpr std::int64_t kValues = 64;                     // of a knob that are tried
constexpr std::uint64_t kMostCombinations = 1ull << 62;  // of an engine that its walk meets
constexpr std::size_t kElite = 6;                        // the cheapest points, whose neighbours are tried
constexpr int kPairs = 32;                               // attempts to find two knobs to change
constexpr std::size_t kTrials = 48;                      // after which an engine may lag
constexpr double kFarBehind = 8;                         // times the best cost
constexpr std::size_t kSlowWalk = 8;                     // a lagging engine is passed over so often

/// All values of a knob, or its first, last and others in between. @param whole becomes false for these
std::vector<std::int64_t> values_of(const KnobRange& knob, bool& whole) {
  std::vector<std::int64_t> values;
  const std::int64_t stride = std::max<std::int64_t>(knob.stride, 1);
  const std::int64_t count = knob.most < knob.least ? 1 : (knob.most - knob.least) / stride + 1;
  for (std::int64_t i = 0; i < std::min(count, kValues); ++i) {
    // Of many the first half as they are: small values matter most, as of a split.
    const bool thinned = count > kValues && i >= kValues / 2;
    const std::int64_t rest = kValues / 2, place = i - rest + 1;
    values.push_back(knob.least + stride * (thinned ? rest - 1 + (count - rest) / rest * place : i));
  }
  whole = whole && count <= kValues;
  return values;
}

}  // namespace

struct KnobSearch::Engine {
  std::vector<std::pair<std::int64_t, std::vector<std::int64_t>>> knobs;  // type and values
  bool whole = true;                                                      // whether these are all combinations
  std::uint64_t combinations = 1, met = 0, place = 0, step = 1;           // of the walk
  std::size_t told = 0;
  std::optional<double> best;
};

KnobSearch::~KnobSearch() = default;

KnobSearch::KnobSearch(const std::vector<std::vector<KnobRange>>& engines, std::uint64_t seed) : random_(seed) {
  for (const std::vector<KnobRange>& knobs : engines) {
    Engine& engine = engines_.emplace_back();
    for (const KnobRange& knob : knobs) {
      engine.knobs.emplace_back(knob.type, values_of(knob, engine.whole));
      const std::uint64_t values = engine.knobs.back().second.size();
      if (engine.combinations > kMostCombinations / values) {
        engine.whole = false;
        engine.combinations = kMostCombinations;
      } else {
        engine.combinations *= values;
      }
    }
    engine.place = below(engine.combinations);
    do {
      engine.step = 1 + below(engine.combinations);
    } while (std::gcd(engine.step, engine.combinations) != 1);
  }
  for (std::size_t i = engines_.size(); i-- > 0;) first_.push_back({i, {}});
}

void KnobSearch::suggest(const KnobPoint& point) {
  if (point.engine >= engines_.size()) return;
  const auto& knobs = engines_[point.engine].knobs;
  const bool known = std::all_of(point.knobs.begin(), point.knobs.end(), [&](const auto& chosen) {
    return std::any_of(knobs.begin(), knobs.end(), [&](const auto& knob) { return knob.first == chosen.first; });
  });
  if (known) first_.push_back(point);
}

bool KnobSearch::take(const KnobPoint& point, std::vector<KnobPoint>& points) {
  if (!seen_.insert(point).second) return false;
  points.push_back(point);
  return true;
}

bool KnobSearch::take_near_the_best(std::vector<KnobPoint>& points) {
  const auto end = std::next(by_cost_.begin(), static_cast<std::ptrdiff_t>(std::min(kElite, by_cost_.size())));
  for (auto best = by_cost_.begin(); best != end; ++best) {
    const KnobPoint& center = best->second;
    auto [found, is_new] = near_.try_emplace(center);
    std::vector<KnobPoint>& near = found->second;
    if (is_new) {
      for (const auto& [type, values] : engines_[center.engine].knobs) {
        for (const std::int64_t value : values) {
          near.push_back(center);
          near.back().knobs[type] = value;
        }
      }
      for (std::size_t i = near.size(); i > 1; --i) std::swap(near[i - 1], near[below(i)]);
    }
    while (!near.empty()) {
      const KnobPoint point = std::move(near.back());
      near.pop_back();
      if (take(point, points)) return true;
    }
  }
  for (int attempt = 0; attempt < kPairs && !by_cost_.empty(); ++attempt) {
    const std::size_t rank = below(std::min(kElite, by_cost_.size()));
    KnobPoint point = std::next(by_cost_.begin(), static_cast<std::ptrdiff_t>(rank))->second;
    const auto& knobs = engines_[point.engine].knobs;
    for (int change = 0; change < 2 && !knobs.empty(); ++change) {
      const auto& [type, values] = knobs[below(knobs.size())];
      point.knobs[type] = values[below(values.size())];
    }
    if (take(point, points)) return true;
  }
  return false;
}

bool KnobSearch::lags(const Engine& engine) const {
  if (engine.told < kTrials) return false;
  return !engine.best || *engine.best > kFarBehind * by_cost_.begin()->first;
}

bool KnobSearch::take_from_a_walk(std::vector<KnobPoint>& points) {
  // Twice round: where all that are left lag, the second round takes one of them.
  for (std::size_t i = 0; i < 2 * engines_.size(); ++i) {
    const std::size_t chosen = walking_++ % engines_.size();
    Engine& engine = engines_[chosen];
    const bool pass_over = i < engines_.size() && lags(engine) && walking_ / engines_.size() % kSlowWalk != 0;
    while (!pass_over && engine.met < engine.combinations) {
      KnobPoint point{chosen, {}};
      std::uint64_t place = engine.place;
      for (const auto& [type, values] : engine.knobs) {
        point.knobs[type] = values[place % values.size()];
        place /= values.size();
      }
      engine.place = (engine.place + engine.step) % engine.combinations;
      ++engine.met;
      if (take(point, points)) return true;
    }
  }
  return false;
}

std::vector<KnobPoint> KnobSearch::next(std::size_t count) {
  std::vector<KnobPoint> points;
  while (points.size() < count && !first_.empty()) {
    const KnobPoint point = std::move(first_.back());
    first_.pop_back();
    take(point, points);
  }
  while (points.size() < count) {
    const bool near = turn_++ % 2 == 0;
    if (near ? take_near_the_best(points) : take_from_a_walk(points)) continue;
    if (near ? take_from_a_walk(points) : take_near_the_best(points)) continue;
    break;
  }
  return points;
}

void KnobSearch::tell(const KnobPoint& point, std::optional<double> cost) {
  if (point.engine >= engines_.size()) return;
  seen_.insert(point);
  Engine& engine = engines_[point.engine];
  ++engine.told;
  if (!cost) return;
  by_cost_.emplace(*cost, point);
  if (!engine.best || *cost < *engine.best) engine.best = cost;
}

double KnobSearch::combinations() const {
  double sum = 0;
  for (const Engine& engine : engines_) sum += static_cast<double>(engine.combinations);
  return sum;
}

bool KnobSearch::complete() const {
  return std::all_of(engines_.begin(), engines_.end(),
                     [](const Engine& engine) { return engine.whole && engine.met == engine.combinations; });
}

}  // namespace convladder
