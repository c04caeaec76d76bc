#include "common/stage/tunable.hpp"

#include <doctest/doctest.h>

#include <stdexcept>

namespace convladder {
namespace {

constexpr int kSides[] = {2, 4, 6}, kWays[] = {0, 1};
constexpr const char* kWayWords[] = {"mask", "copy"};
constexpr Knob kKnobs[] = {{"m", kSides, 4}, {"padding", kWays, kWayWords, 1}};

class TwoKnobs final : public TunableStage {
 public:
  Verdict check(const ConvProblem&, const DeviceLimits&) const override { return Verdict::accept(); }
  void launch(const ConvProblem&, const Tensors&, Stream) override {}
  Knobs knobs() const override { return {kKnobs, /*to_search=*/false}; }

  int m() const { return knob("m"); }
  int missing() const { return knob("n"); }
};

TEST_CASE("knobs know their values, words and default") {
  const Knobs knobs = kKnobs;
  CHECK(knobs.count == 2);
  CHECK(knobs.searched);
  CHECK_FALSE(TwoKnobs().knobs().searched);
  CHECK(kKnobs[0].count == 3);
  CHECK(kKnobs[0].words == nullptr);
  CHECK(kKnobs[1].words[kKnobs[1].usual] == kWayWords[1]);
  CHECK_THROWS(Knob("m", kSides, 3));
}

TEST_CASE("a configuration is read and set by name") {
  Configuration configuration(kKnobs);
  CHECK(configuration["m"] == 4);
  CHECK(configuration["padding"] == 1);
  configuration["padding"] = 0;
  CHECK(configuration.values[0] == 4);
  CHECK(configuration.values[1] == 0);
  CHECK_THROWS_AS(configuration["n"], std::logic_error);
  CHECK_THROWS_AS(Configuration()["m"], std::logic_error);
}

TEST_CASE("a stage runs with each knob at its default, until it is told otherwise") {
  TwoKnobs stage;
  CHECK(stage.m() == 4);
  CHECK(stage.default_configuration({}, {0, 0})["m"] == 4);
  CHECK(stage.check_configuration({}, {0, 0}, stage.configuration()).accepted());
  Configuration configuration = stage.configuration();
  configuration["m"] = 6;
  stage.use(configuration);
  CHECK(stage.m() == 6);
  CHECK(stage.configuration()["padding"] == 1);
  CHECK_THROWS_AS(stage.missing(), std::logic_error);
}

}  // namespace
}  // namespace convladder
