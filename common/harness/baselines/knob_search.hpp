/// @file
/// A search over engines that have knobs, for the cheapest. It knows points and costs; what an engine or a cost is, is
/// the caller's affair.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace convladder {

/// A knob's values: least, least + stride, ..., up to most.
struct KnobRange {
  std::int64_t type = 0, least = 0, most = 0, stride = 1;
};

/// An engine, and values of some of its knobs by their types; the others keep the engine's own.
struct KnobPoint {
  std::size_t engine = 0;
  std::map<std::int64_t, std::int64_t> knobs = {};
  /// Whether they are the same.
  bool operator==(const KnobPoint&) const = default;
  /// An order, for maps.
  bool operator<(const KnobPoint& other) const { return std::tie(engine, knobs) < std::tie(other.engine, other.knobs); }
};

/// Gives points to try, each once: first each engine with the values of its own and what was suggested; then, in turns,
/// points that differ from the cheapest so far in one knob (later in two), and points from a walk through each engine,
/// which meets every combination of its knobs once, in an order that the seed decides. So where combinations are few
/// all are given. An engine of which nothing works, or which is far behind, is walked through more slowly. The same
/// seed, suggestions and costs give the same points.
class KnobSearch {
 public:
  /// @param engines the knobs of each
  KnobSearch(const std::vector<std::vector<KnobRange>>& engines, std::uint64_t seed);
  ~KnobSearch();

  /// Of a point that is to be tried early. What is no point of these engines is ignored.
  void suggest(const KnobPoint& point);
  /// The next points, at most so many; none where none is left.
  std::vector<KnobPoint> next(std::size_t count);
  /// What a point costs, or that it does not work; also of a point that next() has not given, which it then never does.
  void tell(const KnobPoint& point, std::optional<double> cost);

  /// Combinations of all engines, of 64 values at most for each knob; a round figure where there are very many.
  double combinations() const;
  /// Whether every combination was given or told, with all values of every knob.
  bool complete() const;

 private:
  struct Engine;

  bool take(const KnobPoint& point, std::vector<KnobPoint>& points);
  bool take_near_the_best(std::vector<KnobPoint>& points);
  bool take_from_a_walk(std::vector<KnobPoint>& points);
  bool lags(const Engine& engine) const;
  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }

  std::vector<Engine> engines_;
  std::mt19937_64 random_;
  std::vector<KnobPoint> first_;                      // to try before all others, the last first
  std::set<KnobPoint> seen_;                          // given or told
  std::set<std::pair<double, KnobPoint>> by_cost_;    // what worked
  std::map<KnobPoint, std::vector<KnobPoint>> near_;  // points that differ from this one in one knob, not yet given
  std::size_t turn_ = 0, walking_ = 0;                // whose turn it is
};

}  // namespace convladder
