// CUTLASS's implicit GEMM on a GPU, every tile of it, against the same reference as the stages. Where CUTLASS is
// missing, it says so.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <memory>

#include "common/harness/baselines/library_rows.hpp"
#include "common/harness/files/problem_io.hpp"
#include "common/harness/run/refusal.hpp"
#include "common/harness/run/runner.hpp"
#include "common/stage/tunable.hpp"

using namespace convladder;

namespace {

RunResult result_of(const StageInfo& row, const ConvProblem& problem, const std::string& settings) {
  RunOptions options;
  options.settings = settings;
  options.time = settings.empty();
  return run_stage(row, make_workload("", problem, InputKind::normal, FilterForm::dense, 1), options);
}

/// Whether the row is there; otherwise its reason is checked.
bool is_there(const StageInfo& row) {
  const RunResult result = result_of(row, parse_shape("c=8,h=8,w=8,k=8,r=3,s=3"), "");
  if (result.status != Status::refused) return true;
  MESSAGE(result.reason);
  const bool missing =
      result.reason.find("CUTLASS") != std::string::npos || result.reason.find("sm_") != std::string::npos;
  CHECK(missing);
  return false;
}

}  // namespace

TEST_CASE("each of CUTLASS's tiles computes convolutions of halves, or CUTLASS says that it does not") {
  for (const StageInfo* row : {&cutlass_sm80_row(), &cutlass_sm90_row()}) {
    CAPTURE(row->name);
    if (!is_there(*row)) continue;
    const std::unique_ptr<Stage> stage(row->make());
    const Knob knob = dynamic_cast<TunableStage&>(*stage).knobs().knobs[0];
    for (const char* shape : {"c=8,h=9,w=11,k=8,r=3,s=3", "n=3,c=72,h=13,w=17,k=136,r=3,s=3",
                              "n=2,c=16,h=20,w=23,k=24,r=5,s=3,stride_h=2,stride_w=3", "n=2,c=64,h=14,w=14,k=40",
                              "c=24,h=21,w=23,k=16,r=3,s=3,dilation_h=2,dilation_w=3,pad_h=2,pad_w=3"}) {
      CAPTURE(shape);
      int right = 0;
      for (int i = 1; i < knob.count; ++i) {
        const RunResult result = result_of(*row, parse_shape(shape), fmt::format("tile={}", knob.words[i]));
        CAPTURE(knob.words[i]);
        const bool refused = result.status == Status::refused && result.reason.find("CUTLASS says") == 0;
        CHECK_MESSAGE((result.status == Status::ok || refused), result.reason);
        right += result.status == Status::ok;
      }
      CHECK(right > 0);
      const RunResult chosen = result_of(*row, parse_shape(shape), "");
      CHECK_MESSAGE(chosen.status == Status::ok, chosen.reason);
      CHECK(chosen.time_us);
      CHECK(chosen.library.find("CUTLASS ") == 0);
      REQUIRE(chosen.configuration);
      CHECK(chosen.configuration->configuration["tile"] > 0);
    }
  }
}

TEST_CASE("CUTLASS's rows refuse channels that are no multiple of 8, groups and other borders than zeros") {
  const auto reason = [](const StageInfo& row, const char* shape, Padding padding) {
    ConvProblem problem = parse_shape(shape);
    problem.padding = padding;
    return refusal(row, problem, nullptr);
  };
  for (const StageInfo* row : {&cutlass_sm80_row(), &cutlass_sm90_row()}) {
    if (!is_there(*row)) continue;
    CHECK(reason(*row, "c=12,h=8,w=8,k=8,r=3,s=3", Padding::zero).find("multiples of 8; got c=12, k=8") !=
          std::string::npos);
    CHECK(reason(*row, "c=16,h=8,w=8,k=16,r=3,s=3,groups=2", Padding::zero).find("groups") != std::string::npos);
    CHECK(reason(*row, "c=8,h=8,w=8,k=8,r=3,s=3", Padding::reflect) == "CUTLASS pads with zeros only");
    CHECK(reason(*row, "c=8,h=8,w=8,k=8,r=1,s=1", Padding::reflect).empty());
  }
}
