#include <doctest/doctest.h>

#include "common/harness/files/problem_io.hpp"
#include "tests/stage_suite.hpp"

using namespace convladder;

TEST_CASE("32c tma-wgmma: every product is right (sm_90)") { check_suite("32c", pointwise_suite()); }

TEST_CASE("32c tma-wgmma: counters are what the lesson predicts (simulator)") {
  check_prediction("32c", {"c=8,h=1,w=1,k=8", "n=2,c=136,h=7,w=9,k=72"});
}

TEST_CASE("32c tma-wgmma: refuses by rule") { check_refusals_of_pointwise("32c", 8); }
