#include <doctest/doctest.h>

#include "tests/stage_suite.hpp"

using namespace convladder;

TEST_CASE("07 tiled-2d: every image is right") { check_suite("07", image_suite(FilterForm::dense)); }

TEST_CASE("07 tiled-2d: counters are what the lesson predicts (simulator)") {
  check_prediction("07", {"h=1,w=1", "h=64,w=96,r=5,s=5", "n=2,h=33,w=45,r=4,s=3", "h=30,w=40,r=7,s=9,pad_h=0,pad_w=0",
                          "h=40,w=50,r=3,s=5,pad_h=5,pad_w=1", "h=80,w=70,r=65,s=33"});
}

TEST_CASE("07 tiled-2d: refuses by rule") {
  check_refusal("07", "h=8,w=8,c=3,r=3,s=3", "one channel");
  check_refusal("07", "h=80,w=80,r=3,s=66", "at most 65x65");
}
