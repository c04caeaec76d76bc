#include "tests/kernel/constant_schedules.hpp"

#include <doctest/doctest.h>

#include "common/harness/files/problem_io.hpp"
#include "tests/stage_suite.hpp"

using namespace convladder;

namespace {

template <std::size_t kCount>
void check_constants(const char* stage, const ConstantSchedule (&schedules)[kCount]) {
  StageInfo info = find_stage(stage);
  for (const ConstantSchedule& schedule : schedules) {
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

}  // namespace

TEST_CASE("15 depthwise-tuned: the kernel is right with its numbers as constants") {
  check_constants("15", kConstantSchedules);
}

TEST_CASE("38 depthwise-planes: the kernel is right with its numbers as constants (sm_90)") {
  check_constants("38", kConstantPlans);
}

TEST_CASE("39 depthwise-fp16: the kernel is right with its numbers as constants") {
  check_constants("39", kConstantStrips);
}
