#include <doctest/doctest.h>

#include "common/harness/files/problem_io.hpp"
#include "tests/stage_suite.hpp"

using namespace convladder;

TEST_CASE("32b one-wgmma: every product is right (sm_90)") { check_suite("32b", pointwise_suite()); }

TEST_CASE("32b one-wgmma: counters are what the lesson predicts (simulator)") {
  check_prediction("32b", {"c=8,h=1,w=1,k=8", "n=2,c=136,h=7,w=9,k=72"});
}

TEST_CASE("32b one-wgmma: refuses by rule") { check_refusals_of_pointwise("32b", 8); }
