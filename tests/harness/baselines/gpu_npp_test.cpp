// NPP's filter on a GPU, against the same reference as the stages. Where NPP is missing, it says so.
#include <doctest/doctest.h>

#include "common/harness/baselines/library_rows.hpp"
#include "common/harness/files/problem_io.hpp"
#include "common/harness/run/runner.hpp"

using namespace convladder;

TEST_CASE("NPP filters images with zeros or the edge outside, or says that it is not there") {
  for (const char* shape : {"h=1,w=1", "h=17,w=19,r=3,s=5", "n=3,h=40,w=37,r=7,s=7", "n=2,h=33,w=70,r=11,s=4",
                            "h=41,w=71,r=5,s=5,pad_h=0,pad_w=0", "h=41,w=71,r=3,s=3,pad_h=2,pad_w=3"}) {
    for (const Padding padding : {Padding::zero, Padding::replicate, Padding::reflect}) {
      ConvProblem problem = parse_shape(shape);
      problem.padding = padding;
      CAPTURE(to_string(problem));
      CAPTURE(std::string(to_string(padding)));
      const RunResult result =
          run_stage(npp_row(), make_workload("", problem, InputKind::normal, FilterForm::dense, 1), {});
      const bool pads = problem.pad_h > 0 || problem.pad_w > 0;
      const bool wrong_there = problem.r == problem.s && (problem.r == 3 || problem.r == 5);
      const bool refused = wrong_there || (pads && padding == Padding::reflect);
      if (result.status == Status::refused) {
        CHECK(result.reason.find("NPP") != std::string::npos);
        if (refused) continue;
        MESSAGE(result.reason);  // it is not there
        return;
      }
      CHECK_FALSE(refused);
      CHECK_MESSAGE(result.status == Status::ok, result.reason);
      CHECK(result.time_us);
      CHECK(result.library.find("NPP ") == 0);
    }
  }
}
