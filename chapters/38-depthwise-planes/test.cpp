#include <doctest/doctest.h>

#include <memory>

#include "common/harness/files/problem_io.hpp"
#include "common/stage/tunable.hpp"
#include "tests/stage_suite.hpp"

using namespace convladder;

namespace {

std::unique_ptr<TunableStage> make_tunable() {
  return std::unique_ptr<TunableStage>(dynamic_cast<TunableStage*>(find_stage("38").make()));
}

}  // namespace

TEST_CASE("38 depthwise-planes: every plane is right (sm_90)") { check_suite("38", depthwise_suite()); }

TEST_CASE("38 depthwise-planes: counters are what the lesson predicts (simulator)") {
  check_prediction(
      "38",
      {"h=1,w=1", depthwise_shape(4, "n=3,h=16,w=32,r=7,s=7"), depthwise_shape(3, "n=2,h=17,w=19,r=3,s=5"),
       depthwise_shape(2, "h=33,w=40,r=5,s=3,stride_h=2,stride_w=2"), depthwise_shape(40, "h=7,w=7,r=7,s=7"),
       depthwise_shape(5, "n=9,h=14,w=14,r=5,s=5"), depthwise_shape(1, "h=24,w=30,r=3,s=3,dilation_h=2,dilation_w=3")});
}

TEST_CASE("38 depthwise-planes: other plans are right (sm_90)") {
  // Groups that begin anywhere in 16 bytes, the last of them short; filters whose channels start again within a group.
  std::vector<SuiteCase> odd;
  for (const Padding padding : {Padding::zero, Padding::replicate, Padding::reflect}) {
    ConvProblem problem = parse_shape(depthwise_shape(3, "n=5,h=7,w=9,r=3,s=5"));
    problem.padding = padding;
    odd.push_back({problem, InputKind::normal});
  }
  odd.push_back({parse_shape(depthwise_shape(3, "n=5,h=7,w=9,r=3,s=5,pad_h=3,pad_w=4")), InputKind::normal});
  odd.push_back({parse_shape(depthwise_shape(7, "n=2,h=9,w=9,r=3,s=3,stride_h=2,stride_w=2")), InputKind::normal});
  for (const char* plan :
       {"planes=1,rows=1,columns=4,groups=1,buffers=1", "planes=1,rows=2,columns=8,groups=8,buffers=2",
        "planes=2,rows=4,columns=4,groups=4,buffers=1", "planes=4,rows=4,columns=8,groups=2,buffers=2",
        "planes=8,rows=1,columns=8,groups=1,buffers=1"})
    check_suite("38", odd, plan);
}

TEST_CASE("38 depthwise-planes: rules of the space") {
  const auto tunable = make_tunable();
  const auto refusal_of = [&](const char* shape, std::initializer_list<int> values) {
    const Configuration configuration = with_values(tunable->knobs(), values);
    return std::string(tunable->check_configuration(parse_shape(shape), device_limits(), configuration).reason());
  };
  const char* const small = "n=8,c=4,k=4,groups=4,h=16,w=30,r=7,s=7";
  // planes, rows, columns, groups, buffers
  CHECK(refusal_of(small, {4, 4, 8, 2, 2}) == "");
  CHECK(refusal_of(small, {64, 4, 8, 1, 1}).find("a smaller value") != std::string::npos);
  CHECK(refusal_of(small, {4, 4, 8, 1, 2}).find("nothing to fetch ahead") != std::string::npos);
  CHECK(refusal_of(small, {4, 16, 28, 1, 1}).find("at most 128 outputs") != std::string::npos);
  CHECK(refusal_of(small, {32, 1, 4, 1, 1}).find("at most 1024 threads") != std::string::npos);
  CHECK(refusal_of("n=8,h=100,w=100,r=3,s=3", {8, 4, 8, 1, 1}).find("must fit in") != std::string::npos);
}

TEST_CASE("38 depthwise-planes: the default is valid, whatever the problem that fits (sm_90)") {
  const auto tunable = make_tunable();
  for (const char* shape :
       {"h=1,w=1", "h=1,w=1,r=3,s=3", "n=32,c=96,k=96,groups=96,h=56,w=56,r=7,s=7", "h=200,w=200,r=3,s=3",
        "n=8,c=128,k=128,groups=128,h=56,w=56,r=31,s=31", "h=1,w=29000,s=3", "h=29000,w=1,r=3",
        "n=2147483647,h=1,w=17,s=9", "h=90,w=500,r=3,s=65,stride_w=40", "n=700,c=9,k=9,groups=9,h=1,w=3",
        "h=60,w=60,r=101,s=101,pad_h=50,pad_w=50", "n=8,h=1,w=1,r=3,s=1,pad_h=500000000,dilation_h=500000000"}) {
    CAPTURE(shape);
    const ConvProblem problem = parse_shape(shape);
    const Verdict verdict = tunable->check(problem, device_limits());
    REQUIRE_MESSAGE(verdict.accepted(), verdict.reason());
    const Configuration configuration = tunable->default_configuration(problem, device_limits());
    CHECK(tunable->check_configuration(problem, device_limits(), configuration).accepted());
    tunable->use(configuration);
    CHECK(tunable->predict(problem).barriers > 0);
  }
}

TEST_CASE("38 depthwise-planes: taps far apart cost no more than taps side by side (sm_90)") {
  check_suite("38", {{parse_shape("n=8,h=1,w=1,r=3,s=1,pad_h=500000000,dilation_h=500000000"), InputKind::normal},
                     {parse_shape("h=700,w=32,r=3,s=3,dilation_h=300,pad_h=300"), InputKind::normal}});
}

TEST_CASE("38 depthwise-planes: refuses by rule (sm_90)") {
  check_refusal("38", "c=2,k=2,groups=2,h=8,w=8,r=2,s=3", "odd filters");
  check_refusal("38", "c=2,k=2,h=8,w=8,r=3,s=3", "groups = c = k");
  check_refusal("38", "h=8,w=8,r=3,s=3,stride_h=70000000", "32 stride_h");
  check_refusal("38", "h=300,w=300,r=3,s=3", "whole planes and their filters must fit in");
  check_refusal("38", "h=8,w=8,r=301,s=301", "whole planes and their filters must fit in");
}
