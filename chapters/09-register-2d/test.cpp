#include <doctest/doctest.h>

#include <memory>

#include "common/harness/files/problem_io.hpp"
#include "common/harness/ladder/settings.hpp"
#include "common/stage/tunable.hpp"
#include "tests/stage_suite.hpp"

using namespace convladder;

TEST_CASE("09 register-2d: every image is right") { check_suite("09", image_suite(FilterForm::dense)); }

TEST_CASE("09 register-2d: counters are what the lesson predicts (simulator)") {
  check_prediction(
      "09", {"h=1,w=1", "h=64,w=256,r=5,s=5", "n=2,h=61,w=500,r=3,s=3", "h=64,w=257,r=5,s=5", "n=2,h=33,w=45,r=4,s=3",
             "h=30,w=40,r=7,s=9,pad_h=0,pad_w=0", "h=80,w=70,r=65,s=33", "h=70,w=600,r=3,s=6"});
}

TEST_CASE("09 register-2d: refuses by rule") {
  check_refusal("09", "h=8,w=8,c=3,r=3,s=3", "one channel");
  check_refusal("09", "h=80,w=80,r=3,s=66", "at most 65x65");
}

TEST_CASE("09 register-2d: blocks that look ahead, counted alike (simulator)") {
  check_prediction("09", {"h=160,w=256,r=5,s=5", "n=2,h=301,w=132,r=7,s=7", "h=150,w=8,r=5,s=5,pad_h=0"},
                   FilterForm::dense, "ahead=8");
}

TEST_CASE("09 register-2d: 5x5 and 7x7 look ahead where not all blocks are resident") {
  const std::unique_ptr<Stage> stage(find_stage("09").make());
  const auto& tunable = dynamic_cast<const TunableStage&>(*stage);
  DeviceLimits limits = device_limits();
  limits.multiprocessors = 132;
  const auto ahead = [&](const char* shape) {
    return tunable.decided(parse_shape(shape), limits, Configuration(tunable.knobs()))["ahead"];
  };
  CHECK(ahead("h=2160,w=3840,r=5,s=5") == 16);
  CHECK(ahead("h=2160,w=3840,r=7,s=7") == 24);
  CHECK(ahead("h=1080,w=1920,r=5,s=5") == 0);
  CHECK(ahead("h=1080,w=1920,r=7,s=7") == 0);
  CHECK(ahead("n=2,h=1080,w=1920,r=7,s=7") == 24);
  CHECK(ahead("h=2160,w=3840,r=3,s=3") == 0);
  CHECK(ahead("h=2161,w=3847,r=5,s=5") == 0);
  Configuration configuration(tunable.knobs());
  apply_settings("ahead=16", configuration);
  CHECK(tunable.check_configuration(parse_shape("h=64,w=64,r=5,s=5"), limits, configuration).accepted());
  CHECK(!tunable.check_configuration(parse_shape("h=64,w=64,r=3,s=3"), limits, configuration).accepted());
}
