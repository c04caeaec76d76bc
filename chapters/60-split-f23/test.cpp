#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "common/harness/check/reference.hpp"
#include "common/harness/files/problem_io.hpp"
#include "tests/stage_suite.hpp"

using namespace convladder;

namespace {

RunResult run(const std::string& sizes, const std::string& settings = {}) {
  return run_case(find_stage("60"), {parse_shape(sizes), InputKind::normal}, settings);
}

/// With numbers of its own, changed by `change` after they were drawn.
template <class Change>
RunResult run_changed(const std::string& sizes, const Change& change) {
  Workload workload = make_workload("", parse_shape(sizes), InputKind::normal, FilterForm::dense, 7);
  change(workload.tensors);
  workload.reference = convolve_reference(workload.problem, workload.tensors.input, workload.tensors.filter);
  RunOptions options;
  options.time = false;
  return run_stage(find_stage("60"), workload, options);
}

void check_right(const RunResult& result) {
  CHECK_MESSAGE(result.status == Status::ok, result.reason);
  CHECK(result.verified);
}

constexpr const char* kShape = "n=2,c=70,k=66,h=9,w=11,r=3,s=3";

}  // namespace

TEST_CASE("60 split-f23: every image is right with tiles of any size (sm_90)") {
  std::vector<SuiteCase> suite;
  for (const char* sizes :
       {kShape, "c=1,k=1,h=1,w=1,r=3,s=3", "n=5,c=64,k=64,h=7,w=7,r=3,s=3", "c=65,k=3,h=1,w=257,r=3,s=3",
        "n=3,c=3,k=129,h=7,w=1,r=3,s=3", "n=2,c=5,k=4,h=30,w=130,r=3,s=3", "c=9,k=6,h=8,w=9,r=3,s=3,pad_h=0,pad_w=0",
        "c=9,k=7,h=8,w=9,r=3,s=3,pad_h=2,pad_w=3"})
    for (const InputKind kind : {InputKind::normal, InputKind::nan}) suite.push_back({parse_shape(sizes), kind});
  for (const char* positions : {"64", "80", "88", "96", "104"})
    check_suite("60", suite, std::string("positions=") + positions);
  check_suite("60", suite, "sums=phase");
}

TEST_CASE("60 split-f23: the error hardly grows with the channels (sm_90)") {
  for (const char* channels : {"64", "128", "256"}) {
    const RunResult result = run(std::string("k=64,h=8,w=8,r=3,s=3,c=") + channels);
    check_right(result);
    REQUIRE(result.check);
    CHECK(result.check->rel_l2_err < 3e-7);
  }
}

TEST_CASE("60 split-f23: numbers of any size are right (sm_90)") {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const auto& [input, filter] :
       {std::pair{1e30f, 1e-30f}, {1e-30f, 1e30f}, {1e-36f, 1.0f}, {1e38f, 1e-10f}, {1.0f, 1e-35f}, {0.0f, 1.0f}}) {
    CAPTURE(input);
    check_right(run_changed(kShape, [&, in = input, by = filter](HostTensors& tensors) {
      for (float& value : tensors.input) value *= in;
      for (float& value : tensors.filter) value *= by;
    }));
  }
  // From 1e-30 to 1e30, a row each; a pixel far above all others; and what is not finite.
  check_right(run_changed(kShape, [](HostTensors& tensors) {
    for (std::size_t i = 0; i < tensors.input.size(); ++i)
      tensors.input[i] *= std::pow(10.0f, static_cast<float>(i / 11 % 9) * 7.5f - 30.0f);
  }));
  check_right(run_changed(kShape, [](HostTensors& tensors) { tensors.input[500] = 1e30f; }));
  check_right(run_changed(kShape, [&](HostTensors& tensors) {
    tensors.input[3] = -infinity, tensors.input.back() = infinity, tensors.filter[40] = std::nanf("");
  }));
}

TEST_CASE("60 split-f23: no bank conflict, and one barrier a block (simulator)") {
  const RunResult result = run("n=3,c=96,k=68,h=7,w=7,r=3,s=3");
  REQUIRE(result.counters);
  CHECK(result.counters->shared_load_conflicts == 0);
  CHECK(result.counters->shared_store_conflicts == 0);
  check_prediction("60", {kShape}, FilterForm::dense);
}

TEST_CASE("60 split-f23: refuses by rule (sm_90)") {
  check_refusal("60", "h=9,w=9,r=5,s=5", "3");
  CHECK(run("c=8,k=8,h=8,w=8,r=3,s=3,stride_h=2").status == Status::refused);
}
