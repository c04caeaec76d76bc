// The cuDNN baseline on a GPU. Where cuDNN is missing, it says why and tries nothing.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "common/harness/baselines/cudnn_baseline.hpp"
#include "common/harness/ladder/registry.hpp"

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

CudnnTrial trial(const char* algorithm, const char* status, std::optional<double> time_us,
                 Precision precision = Precision::fp32) {
  return {algorithm, "NCHW", status, time_us, 0, precision};
}

/// 3 x 3 over channels of which every algorithm can take the number, with edges.
ConvProblem square_problem() {
  ConvProblem problem;
  problem.n = 2, problem.c = 64, problem.h = 29, problem.w = 30, problem.k = 32;
  problem.r = problem.s = 3, problem.pad_h = problem.pad_w = 1;
  return problem;
}

/// Every trial, for the message of a check that failed.
std::string log_of(const CudnnBaseline& baseline) {
  std::string text = "cuDNN " + baseline.version;
  for (const CudnnTrial& one : baseline.trials) {
    text += "\n  " + std::string(to_string(one.precision)) + " " + one.layout + " " + one.algorithm + ": " + one.status;
    if (one.rel_l2_err) text += ", error " + std::to_string(*one.rel_l2_err);
    if (one.time_us) text += ", " + std::to_string(*one.time_us) + " us";
  }
  return text;
}

/// Whether some trial of these is ok.
template <class Chosen>
bool any_ok(const CudnnBaseline& baseline, const Chosen& chosen) {
  return std::any_of(baseline.trials.begin(), baseline.trials.end(),
                     [&](const CudnnTrial& one) { return one.ok() && chosen(one); });
}

bool is_plan(const CudnnTrial& one) { return one.algorithm.find("plan") != std::string::npos; }

/// Whether some trial of these is ok, or was found slower than another.
template <class Chosen>
bool any_ran(const CudnnBaseline& baseline, const Chosen& chosen) {
  return std::any_of(baseline.trials.begin(), baseline.trials.end(),
                     [&](const CudnnTrial& one) { return (one.ok() || one.status == kCudnnSlower) && chosen(one); });
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

  const CudnnBaseline right = measure_cudnn(problem, tensors, reference, Precision::fp32);
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
  CHECK_FALSE(right.best()->time_again_us);

  CudnnBaseline twice = right;
  measure_cudnn_again(problem, tensors, twice);
  CHECK(twice.best_candidate == nullptr);
  REQUIRE(twice.best() != nullptr);
  CHECK(twice.best()->algorithm == right.best()->algorithm);
  REQUIRE(twice.best()->time_again_us);
  CHECK_FALSE(twice.best()->time_cold_us);  // 64 copies of so little do not leave L2
  CHECK(*twice.best()->time_again_us > 0.2 * *right.best()->time_us);
  CHECK(*twice.best()->time_again_us < 5 * *right.best()->time_us);
  CHECK(std::count_if(twice.trials.begin(), twice.trials.end(),
                      [](const CudnnTrial& one) { return one.time_again_us.has_value(); }) == 1);

  for (double& value : reference.output) value *= 1.001;
  const CudnnBaseline wrong = measure_cudnn(problem, tensors, reference, Precision::fp32);
  CHECK(wrong.best() == nullptr);
  CHECK(std::any_of(wrong.trials.begin(), wrong.trials.end(),
                    [](const CudnnTrial& one) { return one.status.starts_with("wrong result (rel. L2 error 0.001"); }));
}

TEST_CASE("cuDNN's best is timed with cold buffers, too") {
  ConvProblem problem;
  problem.c = problem.k = 8, problem.h = problem.w = 512;
  problem.r = problem.s = 3, problem.pad_h = problem.pad_w = 1;
  const HostTensors tensors = make_inputs(problem, InputKind::normal, FilterForm::dense, 1);
  const Reference reference = convolve_reference(problem, tensors.input, tensors.filter);
  for (const Precision precision : {Precision::fp32, Precision::fp16, Precision::bf16, Precision::int8}) {
    CudnnBaseline baseline = measure_cudnn(problem, tensors, reference, precision);
    if (!baseline.unavailable.empty()) {
      MESSAGE(baseline.unavailable);
      return;
    }
    measure_cudnn_again(problem, tensors, baseline);
    REQUIRE(baseline.best() != nullptr);
    REQUIRE(baseline.best()->time_cold_us);
    CHECK(*baseline.best()->time_cold_us > 0.5 * *baseline.best()->time_again_us);
  }
}

TEST_CASE("the best are of the baseline's own type, but for Winograd") {
  CudnnBaseline baseline;
  baseline.precision = Precision::int8;
  baseline.trials = {trial("IMPLICIT_PRECOMP_GEMM", "ok", 5.0, Precision::int8),
                     trial("WINOGRAD_NONFUSED", "ok", 2.0, Precision::fp16)};
  CHECK(baseline.best() == &baseline.trials[0]);
  CHECK(baseline.best_of(kWinogradFamily) == &baseline.trials[1]);
}

TEST_CASE("cuDNN in fp16: both layouts, algorithms and plans, sums in both types") {
  const ConvProblem problem = square_problem();
  const HostTensors tensors = make_inputs(problem, InputKind::normal, FilterForm::dense, 1);
  Reference reference = convolve_reference(problem, tensors.input, tensors.filter);
  const CudnnBaseline right = measure_cudnn(problem, tensors, reference, Precision::fp16);
  if (!right.unavailable.empty()) {
    MESSAGE(right.unavailable);
    return;
  }
  const std::string log = log_of(right);
  MESSAGE(log);
  CHECK(right.precision == Precision::fp16);
  for (const CudnnTrial& one : right.trials) CHECK(one.precision == Precision::fp16);
  for (const char* layout : {"NCHW", "NHWC"}) {
    CAPTURE(layout);
    CHECK(any_ok(right, [&](const CudnnTrial& one) { return one.layout == layout && !is_plan(one); }));
  }
  CHECK(any_ok(right, is_plan));
  CHECK(any_ok(right, [](const CudnnTrial& one) { return one.algorithm.ends_with("(half sums)"); }));
  REQUIRE(right.best() != nullptr);
  // Rounded to 11 bits, and no more exactly than that.
  CHECK(*right.best()->rel_l2_err > 1e-4);
  CHECK(*right.best()->rel_l2_err <= kCudnnHalfErrorLimit);
  // Sums in fp16 may be beyond the limit, and do not count then.
  for (const CudnnTrial& one : right.trials)
    if (!one.algorithm.ends_with("(half sums)")) CHECK_MESSAGE(!one.status.starts_with("wrong"), one.algorithm);

  for (double& value : reference.output) value *= 1.02;
  CHECK(measure_cudnn(problem, tensors, reference, Precision::fp16).best() == nullptr);
}

TEST_CASE("cuDNN in bf16: both layouts, plans, and errors of that type") {
  const ConvProblem problem = square_problem();
  const HostTensors tensors = make_inputs(problem, InputKind::normal, FilterForm::dense, 1);
  Reference reference = convolve_reference(problem, tensors.input, tensors.filter);
  const CudnnBaseline right = measure_cudnn(problem, tensors, reference, Precision::bf16);
  if (!right.unavailable.empty()) {
    MESSAGE(right.unavailable);
    return;
  }
  MESSAGE(log_of(right));
  CHECK(right.precision == Precision::bf16);
  for (const CudnnTrial& one : right.trials) CHECK(one.precision == Precision::bf16);
  CHECK(any_ok(right, is_plan));
  REQUIRE(right.best() != nullptr);
  CHECK(*right.best()->rel_l2_err > 1e-3);
  CHECK(*right.best()->rel_l2_err <= kCudnnBf16ErrorLimit);

  for (double& value : reference.output) value *= 1.2;  // more than Winograd's limit
  CHECK(measure_cudnn(problem, tensors, reference, Precision::bf16).best() == nullptr);
}

TEST_CASE("cuDNN's Winograd counts in fp16") {
  const ConvProblem problem = square_problem();
  const HostTensors tensors = make_inputs(problem, InputKind::normal, FilterForm::dense, 1);
  const CudnnBaseline baseline =
      measure_cudnn(problem, tensors, convolve_reference(problem, tensors.input, tensors.filter), Precision::fp16);
  if (!baseline.unavailable.empty()) {
    MESSAGE(baseline.unavailable);
    return;
  }
  const CudnnTrial* const winograd = baseline.best_of(kWinogradFamily);
  REQUIRE_MESSAGE(winograd != nullptr, log_of(baseline));
  CHECK(*winograd->rel_l2_err <= kCudnnHalfWinogradErrorLimit);
}

TEST_CASE("cuDNN computes an epilogue with the convolution, in fp16 and int8") {
  for (const Epilogue epilogue : {Epilogue::bias, Epilogue::bias_relu, Epilogue::bias_residual_relu}) {
    ConvProblem problem = square_problem();
    problem.epilogue = epilogue;
    const HostTensors tensors = make_inputs(problem, InputKind::normal, FilterForm::dense, 1);
    const Reference reference = convolve_reference(problem, tensors);
    for (const Precision precision : {Precision::fp16, Precision::int8}) {
      CudnnBaseline right = measure_cudnn(problem, tensors, reference, precision);
      if (!right.unavailable.empty()) {
        MESSAGE(right.unavailable);
        return;
      }
      const std::string log = log_of(right);
      CAPTURE(log);
      REQUIRE(right.best() != nullptr);
      CHECK(any_ran(right, is_plan));
      CHECK(any_ok(right, [](const CudnnTrial& one) { return !is_plan(one); }));
      for (const CudnnTrial& one : right.trials)
        if (one.precision == precision) CHECK_MESSAGE(!one.status.starts_with("wrong"), one.algorithm);
      measure_cudnn_again(problem, tensors, right);
      CHECK(right.best()->time_again_us);

      HostTensors other = tensors;  // another bias is another result
      for (float& value : other.bias) value += 1;
      CHECK(measure_cudnn(problem, other, reference, precision).best() == nullptr);
    }
  }
}

TEST_CASE("cuDNN in int8: outputs of int8 and of float, and the Winograd algorithms of fp16") {
  const ConvProblem problem = square_problem();
  const HostTensors tensors = make_inputs(problem, InputKind::normal, FilterForm::dense, 1);
  Reference reference = convolve_reference(problem, tensors.input, tensors.filter);
  const CudnnBaseline right = measure_cudnn(problem, tensors, reference, Precision::int8);
  if (!right.unavailable.empty()) {
    MESSAGE(right.unavailable);
    return;
  }
  const std::string log = log_of(right);
  MESSAGE(log);
  const auto bytes = [](const CudnnTrial& one) { return one.precision == Precision::int8; };
  const auto floats = [](const CudnnTrial& one) { return one.algorithm.ends_with("(float output)"); };
  CHECK(any_ok(right, [&](const CudnnTrial& one) { return bytes(one) && !floats(one) && !is_plan(one); }));
  CHECK(any_ok(right, [&](const CudnnTrial& one) { return bytes(one) && floats(one) && !is_plan(one); }));
  // Where a driver's engines take no plan of int8 this only warns: the algorithms above are what counts.
  CHECK(any_ran(right, [&](const CudnnTrial& one) { return bytes(one) && !floats(one) && is_plan(one); }));
  WARN(any_ok(right, [&](const CudnnTrial& one) { return bytes(one) && floats(one) && is_plan(one); }));
  REQUIRE(right.best() != nullptr);
  CHECK(bytes(*right.best()));
  CHECK(*right.best()->rel_l2_err > 3e-3);
  CHECK(*right.best()->rel_l2_err <= kCudnnInt8ErrorLimit);
  REQUIRE(right.best_of(kWinogradFamily) != nullptr);
  CHECK(right.best_of(kWinogradFamily)->precision == Precision::fp16);
  for (const CudnnTrial& one : right.trials) {
    CHECK((bytes(one) || one.family() == kWinogradFamily));
    CHECK_MESSAGE(!one.status.starts_with("wrong"), one.algorithm);
  }

  for (double& value : reference.output) value += 0.2;
  CHECK(measure_cudnn(problem, tensors, reference, Precision::int8).best() == nullptr);
}

TEST_CASE("cuDNN computes depthwise problems in both layouts, by an algorithm and by a plan") {
  for (const int stride : {1, 2}) {
    ConvProblem problem;
    problem.n = 3, problem.c = problem.k = problem.groups = 20, problem.h = 13, problem.w = 18;
    problem.r = 3, problem.s = 5, problem.pad_h = 1, problem.pad_w = 2;
    problem.stride_h = problem.stride_w = stride;
    const HostTensors tensors = make_inputs(problem, InputKind::normal, FilterForm::dense, 1);
    const CudnnBaseline baseline =
        measure_cudnn(problem, tensors, convolve_reference(problem, tensors.input, tensors.filter), Precision::fp32);
    if (!baseline.unavailable.empty()) {
      MESSAGE(baseline.unavailable);
      return;
    }
    CAPTURE(stride);
    for (const char* layout : {"NCHW", "NHWC"}) {
      for (const bool plan : {false, true}) {
        CAPTURE(layout);
        CAPTURE(plan);
        CHECK(any_ran(baseline, [&](const CudnnTrial& one) { return one.layout == layout && is_plan(one) == plan; }));
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
        measure_cudnn(problem, tensors, convolve_reference(problem, tensors.input, tensors.filter), Precision::fp32);
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
  const CudnnBaseline padded = measure_cudnn(problem, tensors, Reference{}, Precision::fp32);
  CHECK(padded.unavailable == "cuDNN pads with zeros only");
  problem.pad_h = problem.pad_w = 0;
  const CudnnBaseline unpadded =
      measure_cudnn(problem, tensors, convolve_reference(problem, tensors.input, tensors.filter), Precision::fp32);
  CHECK(unpadded.unavailable != "cuDNN pads with zeros only");
}
