#include <doctest/doctest.h>

#include "common/harness/files/problem_io.hpp"
#include "tests/stage_suite.hpp"

using namespace convladder;

TEST_CASE("31a ldmatrix-mma: every product is right") { check_suite("31a", pointwise_suite()); }

TEST_CASE("31a ldmatrix-mma: counters are what the lesson predicts, with the swizzle and without (simulator)") {
  for (const char* settings : {"swizzle=yes", "swizzle=no"})
    check_prediction("31a", {"c=8,h=1,w=1,k=8", "n=2,c=136,h=7,w=9,k=72"}, FilterForm::dense, settings);
}

TEST_CASE("31a ldmatrix-mma: refuses by rule") { check_refusals_of_pointwise("31a", 8); }
