#include <doctest/doctest.h>

#include "tests/stage_suite.hpp"

using namespace convladder;

TEST_CASE("43 halo-direct: every image is right") { check_suite("43", image_suite(FilterForm::dense)); }

TEST_CASE("43 halo-direct: has the bits of one device, for any number of them (simulator)") {
  // Bands that differ by a row; bands thinner than the halo, so that rows come from further off; fewer rows than ranks;
  // even filters, much padding and none; a batch.
  check_bits_of_one_device("43", {"h=66,w=128,r=3,s=3", "h=67,w=37,r=5,s=5", "h=13,w=40,r=11,s=3", "h=3,w=9,r=3,s=3",
                                  "h=40,w=33,r=31,s=5", "n=3,h=17,w=20,r=4,s=6", "h=12,w=11,r=3,s=3,pad_h=9,pad_w=2",
                                  "h=21,w=24,r=7,s=7,pad_h=0,pad_w=0", "h=1,w=8,r=5,s=3", "h=5,w=8,r=1,s=1,pad_h=4"});
  // Bands with an interior, of both kernels; tiles that end with it, and do not.
  check_bits_of_one_device("43", {"n=2,h=290,w=24,r=3,s=3", "n=2,h=420,w=12,r=11,s=5", "h=300,w=9,r=4,s=2",
                                  "h=192,w=8,r=1,s=1", "h=400,w=16,r=5,s=5,pad_h=0"});
}

TEST_CASE("43 halo-direct: has the bits of one device at every width of filter (simulator)") {
  // Those that have a kernel of their own; and of the others each way to part a row of taps. Tiles of 128 outputs
  // beside each other, rows that are no whole vectors, rows of zeros alone above.
  check_bits_of_one_device("43", {"h=9,w=132,r=2,s=7", "h=9,w=131,r=3,s=9", "h=9,w=129,r=2,s=11", "h=9,w=140,r=3,s=15",
                                  "h=9,w=150,r=2,s=31", "h=9,w=300,r=2,s=65", "h=9,w=40,r=2,s=13", "h=9,w=40,r=2,s=14",
                                  "h=9,w=40,r=2,s=27", "h=5,w=30,r=65,s=2", "h=4,w=40,r=3,s=5,pad_h=20"});
}

TEST_CASE("43 halo-direct: counters are what the lesson predicts (simulator)") {
  check_prediction("43", {"h=61,w=500,r=3,s=3", "h=64,w=257,r=5,s=5", "n=2,h=33,w=45,r=4,s=3",
                          "h=30,w=40,r=7,s=9,pad_h=0,pad_w=0", "n=2,h=290,w=24,r=3,s=3", "h=300,w=20,r=5,s=6"});
  check_prediction("43", {"h=70,w=45,r=11,s=11", "h=7,w=45,r=3,s=3"}, FilterForm::dense, "devices=8");
}

TEST_CASE("43 halo-direct: refuses by rule") {
  check_refusal("43", "h=8,w=8,c=3,r=3,s=3", "one channel");
  check_refusal("43", "h=80,w=80,r=3,s=66", "at most 65x65");
  check_refusal("43", "h=8,w=1,r=3,s=1,pad_h=250001", "at most 250000 rows of padding");
}
