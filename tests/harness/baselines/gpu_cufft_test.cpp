// FFT convolution by cuFFT on a GPU, against the same reference as the stages. Where cuFFT is missing, it says why.
#include <doctest/doctest.h>

#include "common/harness/baselines/library_rows.hpp"
#include "common/harness/files/problem_io.hpp"
#include "common/harness/run/runner.hpp"

using namespace convladder;

TEST_CASE("cuFFT computes images of any size with every padding, or says that it is not there") {
  for (const char* shape : {"h=1,w=1,r=3,s=3", "h=1,w=40,r=1,s=4", "n=3,h=37,w=43,r=5,s=7", "n=2,h=20,w=90,r=65,s=65",
                            "h=48,w=50,r=7,s=5,pad_h=0,pad_w=0", "h=30,w=37,r=3,s=5,pad_h=4,pad_w=1"}) {
    for (const Padding padding : {Padding::zero, Padding::replicate, Padding::reflect}) {
      ConvProblem problem = parse_shape(shape);
      problem.padding = padding;
      if (padding == Padding::reflect && (problem.pad_h >= problem.h || problem.pad_w >= problem.w)) continue;
      CAPTURE(to_string(problem));
      CAPTURE(std::string(to_string(padding)));
      const RunResult result =
          run_stage(cufft_row(), make_workload("", problem, InputKind::normal, FilterForm::dense, 1), {});
      if (result.status == Status::refused) {
        MESSAGE(result.reason);
        CHECK(result.reason.find("cuFFT") != std::string::npos);
        return;
      }
      CHECK_MESSAGE(result.status == Status::ok, result.reason);
      CHECK(result.time_us);
      CHECK(*result.workspace_bytes > 4 * problem.output_size());
    }
  }
}

TEST_CASE("cuFFT refuses what is no image") {
  const ConvProblem problem = parse_shape("c=2,h=8,w=8,r=3,s=3");
  const RunResult result =
      run_stage(cufft_row(), make_workload("", problem, InputKind::normal, FilterForm::dense, 1), {});
  CHECK(std::string(to_string(result.status)) == "refused");
  const bool missing = result.reason.find("cuFFT") != std::string::npos;
  CHECK_MESSAGE((missing || result.reason.find("one channel") != std::string::npos), result.reason);
}
