/// @file
/// A stage with a configuration space: knobs, the rule that says which of their combinations are valid, and the
/// configuration that it runs with. `lab tune` searches it.
#pragma once
#include "common/stage/stage.hpp"

namespace convladder {

/// One dimension of a configuration space.
struct Knob {
  const char* name;          ///< "thread_rows"
  const int* values;         ///< in the order in which a search moves along them
  const char* const* words;  ///< a word for each value ("shared"), or null where the numbers speak for themselves
  int count;
  int usual;  ///< the default, one of the values

  /// A constexpr one does not compile if its default is none of the values.
  template <int kCount>
  constexpr Knob(const char* its_name, const int (&all)[kCount], int its_default)
      : name(its_name), values(all), words(nullptr), count(kCount), usual(its_default) {
    bool found = false;
    for (const int value : all) found = found || value == usual;
    if (!found) throw "the default is none of the values";
  }
  /// The same, with words.
  template <int kCount>
  constexpr Knob(const char* its_name, const int (&all)[kCount], const char* const (&their_words)[kCount],
                 int its_default)
      : Knob(its_name, all, its_default) {
    words = their_words;
  }
};

/// The most knobs of a space.
inline constexpr int kMaxKnobs = 12;

/// Every knob of a stage.
struct Knobs {
  const Knob* knobs = nullptr;
  int count = 0;  ///< at most kMaxKnobs
  /// Whether `lab tune` may search the space and keep what is fastest. False where the knobs are the reader's choices:
  /// a tile with other errors, an idea switched off.
  bool searched = true;

  /// None.
  [[gnu::always_inline]] constexpr Knobs() {}
  /// Those of an array.
  template <int kCount>
  [[gnu::always_inline]] constexpr Knobs(const Knob (&all)[kCount], bool to_search = true)
      : knobs(all), count(kCount), searched(to_search) {
    static_assert(kCount <= kMaxKnobs);
  }
};

/// A point of a configuration space.
struct Configuration {
  Knobs knobs;
  int values[kMaxKnobs];  ///< of each knob: one of its values, not its place among them; 0 beyond the last knob

  /// Of no space.
  Configuration();
  /// Each knob at its default.
  Configuration(const Knobs& knobs);

  /// The value of a knob. @throws std::logic_error if there is none of that name
  int operator[](const char* name) const;
  /// The same, to set it.
  int& operator[](const char* name);
};

/// A stage with a configuration space. The space, without the problem's rule, is the same for every problem.
class TunableStage : public Stage {
 public:
  TunableStage();
  ~TunableStage() override;

  /// The space.
  virtual Knobs knobs() const = 0;
  /// Whether a configuration can run a problem that check() accepts, and no smaller value of a knob does the same; or
  /// the rule that rules it out ("a block has 2048 threads; at most 1024"). Unless overridden, every one can.
  virtual Verdict check_configuration(const ConvProblem& problem, const DeviceLimits& limits,
                                      const Configuration& configuration) const;
  /// What runs where nothing was tuned. Valid, once it is decided(). Unless overridden, each knob at its default.
  virtual Configuration default_configuration(const ConvProblem& problem, const DeviceLimits& limits) const;
  /// The default or a given configuration as it really runs: with a value for each knob that leaves the choice to the
  /// stage ("auto"). Unless overridden, the same.
  virtual Configuration decided(const ConvProblem& problem, const DeviceLimits& limits,
                                const Configuration& configuration) const;

  /// Called before prepare(): the configuration to run with, one that check_configuration() accepts.
  void use(const Configuration& configuration);
  /// What it runs with: each knob at its default until use() is called.
  Configuration configuration() const;

 protected:
  /// The value of a knob that it runs with.
  int knob(const char* name) const;

 private:
  Configuration used_;
};

}  // namespace convladder
