// Grids too large for the simulator's patience.
#include <doctest/doctest.h>

#include "common/harness/files/problem_io.hpp"
#include "common/harness/run/runner.hpp"

using namespace convladder;

TEST_CASE("17 im2col: more images than a grid has blocks in y") {
  const Workload workload =
      make_workload("", parse_shape("n=65538,c=2,h=1,w=1"), InputKind::integers, FilterForm::dense, 1);
  RunOptions options;
  options.time = false;
  const RunResult result = run_stage(find_stage("17"), workload, options);
  CHECK_MESSAGE(result.status == Status::ok, result.reason);
}
