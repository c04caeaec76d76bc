// im2col and cuBLAS on a GPU, against the same reference as the stages. Where cuBLAS is missing, it says why.
#include <doctest/doctest.h>

#include "common/harness/baselines/library_rows.hpp"
#include "common/harness/files/problem_io.hpp"
#include "common/harness/run/runner.hpp"
#include "common/kernel/tracks/lowering.hpp"

using namespace convladder;

TEST_CASE("im2col and cuBLAS compute any convolution without groups, or say that cuBLAS is not there") {
  for (const char* shape : {"h=1,w=1", "n=1,c=5,h=17,w=19,k=7,r=3,s=5", "n=3,c=4,h=13,w=11,k=33,r=3,s=3",
                            "n=2,c=3,h=40,w=37,k=8,r=7,s=7,stride_h=2,stride_w=3",
                            "n=2,c=6,h=21,w=23,k=5,r=3,s=3,dilation_h=2,dilation_w=3,pad_h=2,pad_w=3",
                            "n=130,c=2,h=5,w=4,k=3,r=3,s=3,pad_h=0,pad_w=0"}) {
    for (const Padding padding : {Padding::zero, Padding::replicate, Padding::reflect}) {
      ConvProblem problem = parse_shape(shape);
      problem.padding = padding;
      CAPTURE(to_string(problem));
      CAPTURE(std::string(to_string(padding)));
      const RunResult result =
          run_stage(cublas_row(), make_workload("", problem, InputKind::normal, FilterForm::dense, 1), {});
      if (result.status == Status::refused) {
        MESSAGE(result.reason);
        CHECK(result.reason.find("cuBLAS") != std::string::npos);
        return;
      }
      CHECK_MESSAGE(result.status == Status::ok, result.reason);
      CHECK(result.time_us);
      CHECK(result.time_without_transform_us);
      const std::int64_t matrix = 4 * im2col_size(problem), product = 4 * problem.output_size();
      const bool expected = result.workspace_bytes == matrix || result.workspace_bytes == matrix + product;
      CHECK(expected);
    }
  }
}

TEST_CASE("im2col and cuBLAS refuse groups") {
  const ConvProblem problem = parse_shape("c=2,h=8,w=8,k=2,r=3,s=3,groups=2");
  const RunResult result =
      run_stage(cublas_row(), make_workload("", problem, InputKind::normal, FilterForm::dense, 1), {});
  CHECK(std::string(to_string(result.status)) == "refused");
  const bool missing = result.reason.find("cuBLAS") != std::string::npos;
  CHECK_MESSAGE((missing || result.reason.find("groups = 1") != std::string::npos), result.reason);
}
