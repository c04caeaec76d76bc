/// @file
/// A stage with a configuration space: knobs, the rule that says which of their combinations are valid, and a way to
/// run with a given one. `lab tune` searches it.
#pragma once
#include "common/stage/stage.hpp"

namespace convladder {

/// One dimension of a configuration space.
struct Knob {
  const char* name;          ///< "thread_rows"
  const int* values;         ///< in the order in which a search moves along them
  const char* const* words;  ///< a word for each value ("shared"), or null where the numbers speak for themselves
  int count;
};

/// The most knobs of a space.
inline constexpr int kMaxKnobs = 12;

/// Every knob of a stage.
struct Knobs {
  const Knob* knobs;
  int count;  ///< at most kMaxKnobs
};

/// A point of a configuration space.
struct Configuration {
  int values[kMaxKnobs] = {};  ///< of each knob: one of its values, not its place among them; 0 beyond the last knob
};

/// A stage with a configuration space. The space, without the problem's rule, is the same for every problem.
class TunableStage : public Stage {
 public:
  /// The space.
  virtual Knobs knobs() const = 0;
  /// Whether a configuration can run a problem that check() accepts, and no smaller value of a knob does the same; or
  /// the rule that rules it out ("a block has 2048 threads; at most 1024").
  virtual Verdict check_configuration(const ConvProblem& problem, const DeviceLimits& limits,
                                      const Configuration& configuration) const = 0;
  /// What runs where nothing was tuned. Valid, once it is decided().
  virtual Configuration default_configuration(const ConvProblem& problem, const DeviceLimits& limits) const = 0;
  /// The default or a given configuration as it really runs: with a value for each knob that leaves the choice to the
  /// stage ("auto"). Unless overridden, the same.
  virtual Configuration decided(const ConvProblem& problem, const DeviceLimits& limits,
                                const Configuration& configuration) const;
  /// Whether `lab tune` may search the space and keep what is fastest. False where the knobs are the reader's choices:
  /// a tile with other errors, an idea switched off.
  virtual bool searched() const;
  /// Called before prepare(): the configuration to run with, one that check_configuration() accepts.
  virtual void use(const Configuration& configuration) = 0;
};

}  // namespace convladder
