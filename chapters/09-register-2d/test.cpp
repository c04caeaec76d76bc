#include <doctest/doctest.h>

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
