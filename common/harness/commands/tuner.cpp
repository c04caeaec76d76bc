#include "common/harness/commands/tuner.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>

namespace convladder {
namespace {

// Of annealing. A point that costs a share `worse` more than the current one is accepted with the chance
// exp(-worse / temperature).
constexpr double kHot = 0.2, kCold = 0.01;  // the temperature of the first trial, and of the last
constexpr int kTwoKnobs = 4;                // one step in so many moves a second knob as well
constexpr int kPatience = 12;               // trials without a new best before a restart
constexpr int kProposals = 64;              // neighbours to draw before all of them count as tried

// Of the model.
constexpr std::size_t kFirst = 8;  // trials at random before it is asked
constexpr int kCurious = 6;        // one trial in so many is at random afterwards, too

/// Where a value stands among a knob's values, or -1.
int place_of(const Knob& knob, int value) {
  const int* const found = std::find(knob.values, knob.values + knob.count, value);
  return found == knob.values + knob.count ? -1 : static_cast<int>(found - knob.values);
}

/// What every search shares: the budget, and which points were tried.
class Searcher {
 public:
  Searcher(const Space& space, std::size_t trials, std::uint64_t seed, const Trial& trial,
           const std::function<bool()>& stopped)
      : space_(space),
        budget_(std::min(trials, space.valid().size())),
        random_(seed),
        trial_(trial),
        stopped_(stopped),
        tried_(space.valid().size()) {}

  void exhaustive() {
    for (std::size_t place = 0; !done(); ++place) measure(place);
  }

  void random() {
    while (!done()) measure(untried());
  }

  void annealing(const Configuration& start) {
    if (done()) return;
    current_ = best_ = space_.find(start).value_or(0);
    current_cost_ = best_cost_ = measure(current_);
    int stale = 0;
    bool wandered = false;  // whether the last restart began somewhere new
    while (!done()) {
      if (stale == kPatience) {  // in turn: somewhere new, and back to the best
        wandered = !wandered;
        stale = 0;
        current_ = best_;
        current_cost_ = best_cost_;
        if (wandered) current_cost_ = measure(current_ = untried());
      } else {
        step();
      }
      ++stale;
      if (current_cost_ < best_cost_) {
        best_ = current_;
        best_cost_ = current_cost_;
        stale = 0;
      }
    }
  }

  void model(const Configuration& start, const Describe& describe) {
    std::vector<Features> all;  // of each valid point
    for (const Configuration& point : space_.valid()) {
      Features& features = all.emplace_back();
      for (int k = 0; k < space_.knobs().count; ++k)
        features.push_back(place_of(space_.knobs().knobs[k], point.values[k]));
      if (!describe) continue;
      const Features more = describe(point);
      features.insert(features.end(), more.begin(), more.end());
    }
    std::vector<Features> rows;
    std::vector<double> costs;  // logarithms; infinite where a point does not work
    while (!done()) {
      std::size_t next = count_ == 0 ? space_.find(start).value_or(untried()) : untried();
      if (rows.size() >= kFirst && below(kCurious) != 0) next = cheapest(all, rows, costs);
      costs.push_back(std::log(measure(next)));
      rows.push_back(all[next]);
    }
  }

 private:
  bool done() const { return count_ == budget_ || stopped_(); }

  /// The cost of a point that was not tried before: infinite where it does not work.
  double measure(std::size_t place) {
    tried_[place] = true;
    ++count_;
    return trial_(space_.valid()[place]).value_or(std::numeric_limits<double>::infinity());
  }

  std::size_t below(std::size_t limit) { return static_cast<std::size_t>(random_() % limit); }
  double chance() { return std::ldexp(static_cast<double>(random_() >> 11), -53); }

  /// A point not tried yet, each with the same chance.
  std::size_t untried() {
    std::size_t skip = below(tried_.size() - count_), place = 0;
    while (tried_[place] || skip-- > 0) ++place;
    return place;
  }

  /// The point not tried yet that the model expects to cost least; one of them where there are several.
  std::size_t cheapest(const std::vector<Features>& all, const std::vector<Features>& rows, std::vector<double> costs) {
    double worst = 0;
    bool works = false;
    for (const double cost : costs) {
      if (std::isinf(cost)) continue;
      worst = works ? std::max(worst, cost) : cost;
      works = true;
    }
    for (double& cost : costs)
      if (std::isinf(cost)) cost = worst + 1;
    CostModel model;
    model.fit(rows, costs);
    std::size_t best = untried(), equals = 0;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t place = 0; place < all.size(); ++place) {
      if (tried_[place]) continue;
      const double expected = model.predict(all[place]);
      if (expected > least) continue;
      equals = expected < least ? 1 : equals + 1;
      least = expected;
      if (below(equals) == 0) best = place;
    }
    return best;
  }

  /// Tries a neighbour of the current point, and moves there if it is accepted.
  void step() {
    const std::size_t next = neighbour();
    const double cost = measure(next);
    const double progress = static_cast<double>(count_) / static_cast<double>(budget_);
    const double temperature = kHot * std::pow(kCold / kHot, progress);
    const double worse = (cost - current_cost_) / current_cost_;
    // Where the current point does not work, any that does is better; the comparison with NaN is false.
    if (cost > current_cost_ && !(chance() < std::exp(-worse / temperature))) return;
    if (std::isinf(cost)) return;
    current_ = next;
    current_cost_ = cost;
  }

  /// A point not tried yet, one step away in one or two knobs where there is one.
  std::size_t neighbour() {
    for (int i = 0; i < kProposals; ++i) {
      std::optional<Configuration> point = space_.valid()[current_];
      const int moves = below(kTwoKnobs) == 0 ? 2 : 1;
      for (int move = 0; move < moves && point; ++move) {
        const int knob = static_cast<int>(below(static_cast<std::size_t>(space_.knobs().count)));
        point = space_.moved(*point, knob, below(2) == 0 ? -1 : 1);
      }
      const std::optional<std::size_t> place = point ? space_.find(*point) : std::nullopt;
      if (place && !tried_[*place]) return *place;
    }
    return untried();
  }

  const Space& space_;
  std::size_t budget_, count_ = 0;
  std::mt19937_64 random_;
  const Trial& trial_;
  const std::function<bool()>& stopped_;
  std::vector<bool> tried_;
  std::size_t current_ = 0, best_ = 0;
  double current_cost_ = 0, best_cost_ = 0;
};

}  // namespace

const char* to_string(Search search) {
  switch (search) {
    case Search::random:
      return "random";
    case Search::annealing:
      return "annealing";
    case Search::model:
      return "model";
    case Search::exhaustive:
      return "exhaustive";
  }
  throw std::logic_error("not a search");
}

std::optional<Search> parse_search(std::string_view name) {
  for (const Search search : kSearches)
    if (name == to_string(search)) return search;
  return std::nullopt;
}

Space::Space(const Knobs& knobs, const std::function<bool(const Configuration&)>& valid, const Shard& shard)
    : knobs_(knobs) {
  std::size_t points = 1;
  for (int k = 0; k < knobs.count; ++k) points *= static_cast<std::size_t>(knobs.knobs[k].count);
  places_.assign(points, -1);
  for (std::size_t number = 0; number < points; ++number) {
    Configuration point(knobs);
    std::size_t rest = number;
    for (int k = knobs.count - 1; k >= 0; --k) {
      const auto count = static_cast<std::size_t>(knobs.knobs[k].count);
      point.values[k] = knobs.knobs[k].values[rest % count];
      rest /= count;
    }
    if (!valid(point) || !shard.has(valid_in_all_++)) continue;
    places_[number] = static_cast<std::int64_t>(valid_.size());
    valid_.push_back(point);
  }
}

std::optional<std::size_t> Space::find(const Configuration& point) const {
  std::size_t number = 0;
  for (int k = 0; k < knobs_.count; ++k) {
    const int place = place_of(knobs_.knobs[k], point.values[k]);
    if (place < 0) return std::nullopt;
    number = number * static_cast<std::size_t>(knobs_.knobs[k].count) + static_cast<std::size_t>(place);
  }
  if (places_[number] < 0) return std::nullopt;
  return static_cast<std::size_t>(places_[number]);
}

std::optional<Configuration> Space::moved(Configuration point, int knob, int steps) const {
  const Knob& moving = knobs_.knobs[knob];
  const int place = place_of(moving, point.values[knob]) + steps;
  if (place < 0 || place >= moving.count) return std::nullopt;
  point.values[knob] = moving.values[place];
  return point;
}

void run_search(Search search, const Space& space, const Configuration& start, std::size_t trials, std::uint64_t seed,
                const Trial& trial, const std::function<bool()>& stopped, const Describe& describe) {
  Searcher searcher(space, trials, seed, trial, stopped);
  switch (search) {
    case Search::random:
      return searcher.random();
    case Search::annealing:
      return searcher.annealing(start);
    case Search::model:
      return searcher.model(start, describe);
    case Search::exhaustive:
      return searcher.exhaustive();
  }
}

}  // namespace convladder
