#include <doctest/doctest.h>

#include "tests/stage_suite.hpp"

using namespace convladder;

TEST_CASE("40 split-batch: every image is right") { check_suite("40", image_suite(FilterForm::dense)); }

TEST_CASE("40 split-batch: has the bits of one device, for any number of them (simulator)") {
  check_bits_of_one_device("40", {"n=7,h=9,w=20,r=3,s=3", "n=2,h=31,w=37,r=5,s=5", "n=8,h=5,w=6,r=4,s=3"});
}

TEST_CASE("40 split-batch: counters are what the lesson predicts (simulator)") {
  check_prediction("40", {"n=2,h=61,w=500,r=3,s=3", "n=7,h=64,w=257,r=5,s=5", "h=30,w=40,r=7,s=9,pad_h=0,pad_w=0"});
  check_prediction("40", {"n=7,h=33,w=45,r=4,s=3"}, FilterForm::dense, "devices=8");
}

TEST_CASE("40 split-batch: refuses by rule") {
  check_refusal("40", "h=8,w=8,c=3,r=3,s=3", "one channel");
  check_refusal("40", "h=80,w=80,r=3,s=66", "at most 65x65");
}
