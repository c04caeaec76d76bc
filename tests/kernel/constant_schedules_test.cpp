#include "tests/kernel/constant_schedules.hpp"

#include <doctest/doctest.h>

#include "common/harness/files/problem_io.hpp"
#include "tests/stage_suite.hpp"

using namespace convladder;

TEST_CASE("15 depthwise-tuned: the kernel is right with its numbers as constants") {
  StageInfo info = find_stage("15");
  for (const ConstantSchedule& schedule : kConstantSchedules) {
    CAPTURE(schedule.shape);
    info.make = schedule.make;
    ConvProblem problem = parse_shape(schedule.shape);
    problem.padding = schedule.padding;
    for (const InputKind kind : {InputKind::normal, InputKind::nan}) {
      const RunResult result = run_case(info, {problem, kind});
      CHECK_MESSAGE(result.status == Status::ok, result.reason);
    }
  }
}
