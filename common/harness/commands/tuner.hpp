/// @file
/// Searches over a configuration space. They know points and costs; what a cost is, is the caller's affair.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "common/harness/commands/cost_model.hpp"
#include "common/harness/commands/shard.hpp"
#include "common/stage/tunable.hpp"

namespace convladder {

/// How to choose the next point.
enum class Search {
  random,      ///< each valid point with the same chance
  annealing,   ///< from the default on, a step at a time, with a falling temperature
  model,       ///< what a regression of the costs so far expects to be cheapest
  exhaustive,  ///< each valid point, in order
};
/// Every search, in the order in which `lab tune --search all` runs them.
inline constexpr Search kSearches[] = {Search::random, Search::annealing, Search::model, Search::exhaustive};
/// Its name on the command line and in JSON.
const char* to_string(Search search);
/// The search of this name, or none.
std::optional<Search> parse_search(std::string_view name);

/// The valid points of a configuration space, or those that are dealt to a part.
class Space {
 public:
  /// Asks `valid` about every point. @param shard which of the valid points it has, in their order
  Space(const Knobs& knobs, const std::function<bool(const Configuration&)>& valid, const Shard& shard = {});

  const Knobs& knobs() const { return knobs_; }                       ///< its dimensions
  std::size_t points() const { return places_.size(); }               ///< all, valid or not
  const std::vector<Configuration>& valid() const { return valid_; }  ///< the last knob's value changes fastest
  std::size_t valid_in_all() const { return valid_in_all_; }          ///< those of the other parts, too
  std::optional<std::size_t> find(const Configuration& point) const;  ///< its place in valid(), if it is valid
  /// The point whose value of `knob` is `steps` further along that knob's values, if there is such a value. It need not
  /// be valid.
  std::optional<Configuration> moved(Configuration point, int knob, int steps) const;

 private:
  Knobs knobs_;
  std::vector<Configuration> valid_;
  std::size_t valid_in_all_ = 0;
  std::vector<std::int64_t> places_;  // of every point: its place in valid_, or -1
};

/// Tries a point: its cost, a positive number, or none where the point turned out not to work.
using Trial = std::function<std::optional<double>(const Configuration&)>;

/// What the search `model` knows of a point besides the places of its values among their knobs'.
using Describe = std::function<Features(const Configuration&)>;

/// Tries points until `trials` were tried, none is left, or `stopped` says so. Tries no point twice. The same seed and
/// the same costs give the same points.
/// @param start where annealing and model begin; the other searches ignore it
/// @param describe may be empty
void run_search(Search search, const Space& space, const Configuration& start, std::size_t trials, std::uint64_t seed,
                const Trial& trial, const std::function<bool()>& stopped, const Describe& describe = {});

}  // namespace convladder
