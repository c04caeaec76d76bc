// PyTorch and Triton on a GPU, against the same reference as the stages. Where they are missing, they say so.
#include <doctest/doctest.h>

#include "common/harness/baselines/python_rows.hpp"
#include "common/harness/files/problem_io.hpp"
#include "common/harness/run/runner.hpp"

using namespace convladder;

TEST_CASE("the rows in Python compute convolutions, or say what is missing") {
  for (const StageInfo& row : python_rows()) {
    if (runs_on_host(row)) continue;
    CAPTURE(row.name);
    CAPTURE(row.track);
    for (const char* shape : {"h=9,w=11,r=3,s=3", "n=2,c=5,h=13,w=17,k=7,r=3,s=3", "n=3,c=72,h=14,w=14,k=136,r=3,s=3",
                              "n=2,c=16,h=20,w=23,k=24,r=5,s=3,stride_h=2,stride_w=3"}) {
      CAPTURE(shape);
      const RunResult result =
          run_stage(row, make_workload("", parse_shape(shape), InputKind::normal, FilterForm::dense, 1), {});
      if (result.status == Status::refused) {
        const bool missing = result.reason.find("missing") != std::string::npos ||
                             result.reason.find("sees no GPU") != std::string::npos;
        CHECK(missing);
        MESSAGE(result.reason);
        return;
      }
      CHECK_MESSAGE(result.status == Status::ok, result.reason);
      CHECK(result.time_us);
      const bool cold = result.time_cold_us || !result.cold_unavailable.empty();
      CHECK(cold);
      CHECK_FALSE(result.library.empty());
    }
  }
}
