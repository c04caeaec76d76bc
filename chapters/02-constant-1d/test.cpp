#include <doctest/doctest.h>

#include "tests/stage_suite.hpp"

using namespace convladder;

TEST_CASE("02 constant-1d: every shape is right") { check_suite("02", signal_suite()); }

TEST_CASE("02 constant-1d: counters are what the lesson predicts (simulator)") {
  check_prediction("02", {"w=1", "w=4096,s=11", "n=3,w=257,s=5", "w=100,s=1025", "w=600,s=11,pad_w=0"});
}

TEST_CASE("02 constant-1d: refuses a filter that constant memory does not hold") {
  check_refusal("02", "w=64,s=16385", "constant memory");
  check_refusal("02", "w=64,s=4", "odd filter");
}

TEST_CASE("02 constant-1d: filter traffic from global memory is gone (simulator)") {
  const SuiteCase suite_case{[] {
                               ConvProblem problem;
                               problem.w = 4096;
                               problem.s = 11;
                               problem.pad_w = 5;
                               return problem;
                             }(),
                             InputKind::normal};
  const RunResult naive = run_case(find_stage("01"), suite_case), constant = run_case(find_stage("02"), suite_case);
  CHECK(constant.counters->global_load_bytes * 2 == naive.counters->global_load_bytes);
  CHECK(constant.counters->constant_load_requests == 4096 / 32 * 11);
}
