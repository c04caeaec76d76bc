// What needs no cuDNN.
#include "common/harness/baselines/cudnn_baseline.hpp"

#include <doctest/doctest.h>

#include "common/harness/baselines/cudnn_bench.hpp"
#include "common/harness/files/problem_io.hpp"

using namespace convladder;

TEST_CASE("FFT_TILING is left out for large filters on large images of one channel, and nothing else is") {
  const auto left_out = [](const char* algorithm, const char* shape) {
    return too_slow_to_try(algorithm, parse_shape(shape)) != nullptr;
  };
  CHECK(left_out("FFT_TILING", "h=2160,w=3840,r=31,s=31"));
  CHECK(left_out("FFT_TILING", "h=2160,w=3840,r=13,s=11"));
  CHECK_FALSE(left_out("FFT_TILING", "h=2160,w=3840,r=11,s=11"));
  CHECK_FALSE(left_out("FFT_TILING", "h=1000,w=1000,r=31,s=31"));
  CHECK_FALSE(left_out("FFT_TILING", "h=2160,w=3840,c=2,k=2,r=31,s=31"));
  CHECK_FALSE(left_out("FFT", "h=2160,w=3840,r=31,s=31"));
  CHECK_FALSE(left_out("plan 3 (eng5{})", "h=2160,w=3840,r=31,s=31"));
}

TEST_CASE("far is more than 1.25 times the fastest of the family so far; the first of a family never is") {
  CHECK_FALSE(is_far(1e9, {}));
  CHECK_FALSE(is_far(12.4, {.best_us = 1, .best_of_family_us = 10}));
  CHECK(is_far(12.6, {.best_us = 1, .best_of_family_us = 10}));
}

TEST_CASE("int8 takes the Winograd trials of fp16, which are no best of its own type") {
  CudnnBaseline halves, bytes;
  halves.precision = Precision::fp16;
  bytes.precision = Precision::int8;
  bytes.trials = {{"plan 1 (eng1{})", "NHWC", "ok", 9.0, 0, Precision::int8}};
  halves.trials = {{"WINOGRAD_NONFUSED", "NCHW", "ok", 5.0, 0, Precision::fp16},
                   {"plan 2 (eng2{})", "NHWC", "ok", 1.0, 0, Precision::fp16},
                   {"WINOGRAD plan 3 (eng4{})", "NHWC", "ok", 4.0, 0, Precision::fp16}};
  add_winograd_trials(halves, bytes);
  REQUIRE(bytes.trials.size() == 3);
  CHECK(bytes.best() == bytes.trials.data());
  CHECK(bytes.best_of(kWinogradFamily) == &bytes.trials[2]);
  CHECK(bytes.best_of(kGemmFamily) == bytes.trials.data());
}

TEST_CASE("a plan that was found slower has a time, and does not count") {
  CudnnBaseline baseline;
  baseline.trials = {{"plan 1 (eng1{})", "NHWC", kCudnnSlower, 1.0, 0}, {"plan 2 (eng2{})", "NHWC", "ok", 2.0, 0}};
  REQUIRE(baseline.best());
  CHECK(baseline.best()->algorithm == "plan 2 (eng2{})");
  CHECK(baseline.best_of(kGemmFamily) == baseline.best());
}
