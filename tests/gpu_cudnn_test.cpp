// The cuDNN baseline on a GPU. Where cuDNN is missing, it says why and tries nothing.
#include <doctest/doctest.h>

#include <algorithm>

#include "common/cudnn_baseline.hpp"

using namespace convladder;

namespace {

/// Strided, dilated, grouped, with sizes that no tile divides.
ConvProblem grouped_problem() {
  ConvProblem problem;
  problem.n = 2, problem.c = 6, problem.h = 13, problem.w = 19;
  problem.k = 4, problem.r = 3, problem.s = 5, problem.groups = 2;
  problem.pad_h = 1, problem.pad_w = 3, problem.stride_w = 2, problem.dilation_h = 2;
  return problem;
}

CudnnTrial trial(const char* algorithm, const char* status, std::optional<double> time_us) {
  return {algorithm, "NCHW", status, time_us, 0};
}

}  // namespace

TEST_CASE("the best are the fastest among the trials that are ok") {
  CudnnBaseline baseline;
  CHECK(baseline.best() == nullptr);
  baseline.trials = {trial("GEMM", "wrong result (rel. L2 error 0.3)", 1.0), trial("FFT", "ok", 7.0),
                     trial("IMPLICIT_GEMM", "ok, timed without a CUDA graph", 5.0),
                     trial("DIRECT", "ok", std::nullopt)};
  CHECK(baseline.best() == &baseline.trials[2]);
  CHECK(baseline.best_of(kWinogradFamily) == nullptr);
  baseline.trials.push_back(trial("WINOGRAD_NONFUSED", "ok", 9.0));
  baseline.trials.push_back(trial("WINOGRAD plan 2 (eng4{})", "ok", 8.0));
  CHECK(baseline.best() == &baseline.trials[2]);
  CHECK(baseline.best_of(kWinogradFamily) == &baseline.trials[5]);
}

TEST_CASE("cuDNN is tried in both layouts, and only right results count") {
  ConvProblem problem = grouped_problem();
  const HostTensors tensors = make_inputs(problem, InputKind::normal, FilterForm::dense, 1);
  Reference reference = convolve_reference(problem, tensors.input, tensors.filter);

  const CudnnBaseline right = measure_cudnn(problem, tensors, reference);
  if (!right.unavailable.empty()) {
    MESSAGE(right.unavailable);
    CHECK(right.trials.empty());
    return;
  }
  CHECK_FALSE(right.version.empty());
  for (const char* layout : {"NCHW", "NHWC"}) {
    CAPTURE(layout);
    CHECK(std::any_of(right.trials.begin(), right.trials.end(),
                      [&](const CudnnTrial& one) { return one.layout == layout && one.ok(); }));
  }
  REQUIRE(right.best() != nullptr);
  CHECK(*right.best()->time_us > 0);

  for (double& value : reference.output) value *= 1.001;
  const CudnnBaseline wrong = measure_cudnn(problem, tensors, reference);
  CHECK(wrong.best() == nullptr);
  CHECK(std::any_of(wrong.trials.begin(), wrong.trials.end(),
                    [](const CudnnTrial& one) { return one.status.starts_with("wrong result (rel. L2 error 0.001"); }));
}

TEST_CASE("cuDNN computes depthwise problems in both layouts, by an algorithm and by a plan") {
  for (const int stride : {1, 2}) {
    ConvProblem problem;
    problem.n = 3, problem.c = problem.k = problem.groups = 20, problem.h = 13, problem.w = 18;
    problem.r = 3, problem.s = 5, problem.pad_h = 1, problem.pad_w = 2;
    problem.stride_h = problem.stride_w = stride;
    const HostTensors tensors = make_inputs(problem, InputKind::normal, FilterForm::dense, 1);
    const CudnnBaseline baseline =
        measure_cudnn(problem, tensors, convolve_reference(problem, tensors.input, tensors.filter));
    if (!baseline.unavailable.empty()) {
      MESSAGE(baseline.unavailable);
      return;
    }
    CAPTURE(stride);
    for (const char* layout : {"NCHW", "NHWC"}) {
      for (const bool plan : {false, true}) {
        CAPTURE(layout);
        CAPTURE(plan);
        CHECK(std::any_of(baseline.trials.begin(), baseline.trials.end(), [&](const CudnnTrial& one) {
          return one.layout == layout && (one.algorithm.find("plan") != std::string::npos) == plan && one.ok();
        }));
      }
    }
    for (const CudnnTrial& one : baseline.trials) {
      CAPTURE(one.algorithm);
      CAPTURE(one.layout);
      CHECK_MESSAGE(!one.status.starts_with("wrong"), one.status);
    }
  }
}

TEST_CASE("two passes are never the best, and are found as such") {
  CudnnBaseline baseline;
  CHECK(baseline.best_two_pass() == nullptr);
  baseline.trials = {trial("GEMM", "ok", 7.0), trial("two passes: GEMM + DIRECT", "ok", 5.0)};
  CHECK(baseline.best() == &baseline.trials[0]);
  CHECK(baseline.best_two_pass() == &baseline.trials[1]);
}

TEST_CASE("a filter of rank one is tried in two passes, others are not") {
  ConvProblem problem;
  problem.n = 2, problem.h = 21, problem.w = 34, problem.r = 5, problem.s = 3;
  problem.pad_h = 2, problem.pad_w = 0, problem.stride_h = 2;
  for (const FilterForm form : {FilterForm::rank_one, FilterForm::dense}) {
    const HostTensors tensors = make_inputs(problem, InputKind::normal, form, 1);
    const CudnnBaseline baseline =
        measure_cudnn(problem, tensors, convolve_reference(problem, tensors.input, tensors.filter));
    if (!baseline.unavailable.empty()) {
      MESSAGE(baseline.unavailable);
      return;
    }
    CHECK((baseline.best_two_pass() != nullptr) == (form == FilterForm::rank_one));
  }
}

TEST_CASE("padding that cuDNN does not know is unavailable, unless nothing is padded") {
  ConvProblem problem = grouped_problem();
  problem.padding = Padding::replicate;
  const HostTensors tensors = make_inputs(problem, InputKind::normal, FilterForm::dense, 1);
  const CudnnBaseline padded = measure_cudnn(problem, tensors, Reference{});
  CHECK(padded.unavailable == "cuDNN pads with zeros only");
  problem.pad_h = problem.pad_w = 0;
  const CudnnBaseline unpadded =
      measure_cudnn(problem, tensors, convolve_reference(problem, tensors.input, tensors.filter));
  CHECK(unpadded.unavailable != "cuDNN pads with zeros only");
}
