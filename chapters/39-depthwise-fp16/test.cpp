#include <doctest/doctest.h>

#include <algorithm>
#include <memory>

#include "common/harness/files/problem_io.hpp"
#include "common/stage/tunable.hpp"
#include "tests/stage_suite.hpp"

using namespace convladder;

TEST_CASE("39 depthwise-fp16: every plane is right") { check_suite("39", depthwise_suite()); }

TEST_CASE("39 depthwise-fp16: counters are what the lesson predicts (simulator)") {
  check_prediction(
      "39",
      {"h=1,w=1", depthwise_shape(4, "n=3,h=16,w=32,r=7,s=7"), depthwise_shape(3, "n=2,h=17,w=19,r=3,s=5"),
       depthwise_shape(2, "h=33,w=40,r=5,s=3,stride_h=2,stride_w=2"), depthwise_shape(70, "h=7,w=7,r=7,s=7"),
       depthwise_shape(5, "n=9,h=14,w=14,r=5,s=5"), depthwise_shape(2, "h=12,w=200,r=3,s=101"),
       depthwise_shape(48, "n=2,h=28,w=30,r=7,s=7"), depthwise_shape(72, "h=21,w=40,r=3,s=3,stride_h=2,stride_w=2")});
}

TEST_CASE("39 depthwise-fp16: other strips are right") {
  std::vector<SuiteCase> odd;
  for (const Padding padding : {Padding::zero, Padding::replicate, Padding::reflect})
    for (const char* sizes : {"n=2,h=10,w=17,r=5,s=3", "h=17,w=33,r=3,s=5,stride_h=2,stride_w=3"}) {
      ConvProblem problem = parse_shape(depthwise_shape(5, sizes));
      problem.padding = padding;
      odd.push_back({problem, InputKind::normal});
    }
  odd.push_back(
      {parse_shape(depthwise_shape(6, "h=23,w=30,r=3,s=3,dilation_h=2,dilation_w=3,pad_h=5")), InputKind::normal});
  for (const char* strip :
       {"rows=1,columns=1,threads=64,ahead=0", "rows=2,columns=8,ahead=0", "rows=4,columns=8,threads=256,ahead=0",
        "rows=8,columns=4,ahead=0", "rows=4,columns=7,ahead=0", "rows=4,columns=7,staged=4,ahead=0",
        "rows=1,columns=1,threads=64,staged=4,ahead=0", "rows=2,columns=8,threads=256,staged=4,ahead=0"})
    check_suite("39", odd, strip);
}

TEST_CASE("39 depthwise-fp16: staged pixels are right, by copies of any size") {
  // Channels one by one, by 2, 4 and 8; groups whose last is short; taps far apart; a strip as wide as the plane.
  std::vector<SuiteCase> cases;
  const auto add = [&](int channels, const char* sizes, Padding padding) {
    ConvProblem problem = parse_shape(depthwise_shape(channels, sizes));
    problem.padding = padding;
    cases.push_back({problem, InputKind::normal});
  };
  for (const char* sizes : {"n=2,h=12,w=19,r=5,s=3", "h=15,w=23,r=3,s=3,stride_h=2,stride_w=2",
                            "h=13,w=16,r=3,s=3,dilation_h=2,dilation_w=3", "n=2,h=9,w=7,r=5,s=5"}) {
    for (const int channels : {9, 18, 20, 24}) add(channels, sizes, Padding::zero);
    add(40, sizes, Padding::reflect);
  }
  for (const char* strip : {"rows=4,columns=7,staged=4,ahead=0", "rows=2,columns=4,threads=256,staged=8,ahead=0"})
    check_suite("39", cases, strip);
  check_suite("39", {{parse_shape(depthwise_shape(40, "n=2,h=17,w=30,r=7,s=7")), InputKind::nan}},
              "rows=1,columns=7,threads=64,staged=16,ahead=0");
  check_suite("39", {{parse_shape(depthwise_shape(72, "h=17,w=30,r=5,s=5,pad_h=4")), InputKind::normal}},
              "rows=4,columns=8,staged=32,ahead=0");
}

TEST_CASE("39 depthwise-fp16: the default is valid, whatever the problem") {
  const std::unique_ptr<TunableStage> tunable(dynamic_cast<TunableStage*>(find_stage("39").make()));
  DeviceLimits limits = device_limits();
  limits.multiprocessors = 132;
  const auto default_of = [&](const char* shape, Padding padding = Padding::zero) {
    CAPTURE(shape);
    ConvProblem problem = parse_shape(shape);
    problem.padding = padding;
    const Configuration configuration = tunable->default_configuration(problem, limits);
    const Verdict verdict = tunable->check_configuration(problem, limits, configuration);
    CHECK_MESSAGE(verdict.accepted(), verdict.reason());
    tunable->use(configuration);
    CHECK(tunable->predict(problem).global_store_bytes > 0);
    return configuration;
  };
  const auto is = [&](const char* shape, std::initializer_list<int> values) {  // rows, columns, threads, staged, ahead
    return std::equal(values.begin(), values.end(), default_of(shape).values);
  };
  // Walks, where strips lie side by side and threads are enough; each of these is one that was measured.
  CHECK(is("n=32,c=240,k=240,groups=240,h=28,w=28,r=5,s=5", {16, 4, 128, 0, 1}));
  CHECK(is("n=32,c=144,k=144,groups=144,h=56,w=56,r=3,s=3,stride_h=2,stride_w=2", {8, 4, 128, 0, 1}));
  CHECK(is("n=32,c=144,k=144,groups=144,h=56,w=56,r=3,s=3", {16, 8, 128, 0, 1}));
  CHECK(default_of("n=32,c=144,k=144,groups=144,h=56,w=56,r=3,s=3,dilation_h=2")["ahead"] == 0);
  CHECK(default_of("n=32,c=144,k=144,groups=144,h=56,w=56,r=3,s=3", Padding::reflect)["ahead"] == 0);
  // Too many taps to walk: nothing staged if threads are enough.
  CHECK(is("n=32,c=96,k=96,groups=96,h=56,w=56,r=7,s=7", {4, 7, 128, 0, 0}));
  CHECK(is("n=8,c=96,k=96,groups=96,h=56,w=56,r=7,s=7", {4, 7, 128, 16, 0}));
  // Taps that leave room for no more; a strip across; few threads; too many taps.
  CHECK(default_of("n=8,c=128,k=128,groups=128,h=56,w=56,r=31,s=31")["staged"] == 4);
  CHECK(is("n=32,c=384,k=384,groups=384,h=14,w=14,r=7,s=7", {2, 14, 128, 0, 0}));
  CHECK(is("n=3,c=5,k=5,groups=5,h=61,w=67,r=5,s=5", {1, 1, 128, 4, 0}));
  CHECK(default_of("c=8,k=8,groups=8,h=60,w=60,r=201,s=201,pad_h=100,pad_w=100")["staged"] == 0);
  for (const char* shape :
       {"h=1,w=1", "h=8,w=8,r=3,s=3,stride_h=100000000,stride_w=100000000", "n=2147483647,h=1,w=17,s=9",
        "n=8,h=1,w=1,r=3,s=1,pad_h=500000000,dilation_h=500000000", "h=2,w=29000,s=3", "n=2147483647,h=8,w=64,r=3,s=3"})
    default_of(shape);
}

TEST_CASE("39 depthwise-fp16: threads that walk down an image are right") {
  // Bands that divide the plane and that do not; strips as wide as the plane; fewer rows than the filter has; channels
  // one by one.
  std::vector<SuiteCase> cases;
  const auto add = [&](int channels, const char* sizes, Padding padding = Padding::zero) {
    ConvProblem problem = parse_shape(depthwise_shape(channels, sizes));
    problem.padding = padding;
    cases.push_back({problem, InputKind::normal});
  };
  for (const Padding padding : {Padding::zero, Padding::replicate, Padding::reflect}) {
    add(6, "n=2,h=37,w=28,r=7,s=7", padding);
    add(5, "n=2,h=22,w=17,r=3,s=5,stride_w=2", padding);
    add(10, "n=2,h=41,w=24,r=5,s=3,stride_h=2,stride_w=2", padding);
    add(2, "h=40,w=20,r=3,s=3,stride_h=3", padding);
  }
  add(70, "n=2,h=13,w=11,r=1,s=3");
  add(4, "h=19,w=8,r=3,s=3,dilation_w=2,pad_h=5,pad_w=3");
  cases.push_back({parse_shape(depthwise_shape(12, "n=2,h=23,w=20,r=5,s=5")), InputKind::nan});
  for (const char* strip : {"rows=4,columns=4,staged=0,ahead=1", "rows=8,columns=7,threads=64,staged=0,ahead=2",
                            "rows=16,columns=8,staged=0,ahead=1"})
    check_suite("39", cases, strip);
  const auto check = [](const char* sizes, const char* strip) {
    check_suite("39", {{parse_shape(depthwise_shape(5, sizes)), InputKind::normal}}, strip);
  };
  check("n=2,h=41,w=7,r=7,s=7", "rows=64,columns=7,staged=0,ahead=2");
  check("h=3,w=24,r=7,s=3", "rows=4,columns=4,staged=0,ahead=1");
  check("h=1,w=5,r=7,s=7", "rows=1,columns=7,staged=0,ahead=2");
}

TEST_CASE("39 depthwise-fp16: threads that walk down load what the lesson predicts (simulator)") {
  check_prediction("39",
                   {depthwise_shape(6, "n=2,h=37,w=28,r=7,s=7"), depthwise_shape(5, "h=20,w=30,r=5,s=3"),
                    depthwise_shape(12, "h=42,w=27,r=5,s=5,stride_h=2,stride_w=2")},
                   FilterForm::dense, "rows=8,columns=4,staged=0,ahead=1");
}

TEST_CASE("39 depthwise-fp16: refuses by rule") {
  check_refusal("39", "c=2,k=2,groups=2,h=8,w=8,r=2,s=3", "odd filters");
  check_refusal("39", "c=2,k=2,h=8,w=8,r=3,s=3", "groups = c = k");
  check_refusal("39", "h=8,w=8,r=3,s=3,stride_h=160000000", "14 stride_h");
  const std::unique_ptr<TunableStage> tunable(dynamic_cast<TunableStage*>(find_stage("39").make()));
  const auto refusal_of = [&](std::initializer_list<int> values) {
    return std::string(tunable
                           ->check_configuration(parse_shape("h=20,w=20,r=3,s=3"), device_limits(),
                                                 with_values(tunable->knobs(), values))
                           .reason());
  };
  CHECK(refusal_of({8, 4, 128, 0, 0}) == "");  // rows, columns, threads, staged, ahead
  CHECK(refusal_of({4, 4, 128, 8, 0}).find("a smaller value") != std::string::npos);  // for one channel's pair: none
  CHECK(refusal_of({8, 14, 128, 0, 0}).find("at most 32 outputs") != std::string::npos);
  CHECK(std::string(tunable
                        ->check_configuration(parse_shape("h=3,w=20,r=3,s=3"), device_limits(),
                                              with_values(tunable->knobs(), {8, 4, 128, 0, 0}))
                        .reason())
            .find("a smaller value") != std::string::npos);
  CHECK(refusal_of({8, 4, 128, 0, 2}) == "");
  CHECK(refusal_of({16, 4, 128, 4, 1}).find("stages nothing") != std::string::npos);
  CHECK(refusal_of({16, 14, 128, 0, 1}).find("8 columns of outputs") != std::string::npos);
  const auto staged_refusal = [&](const char* sizes) {
    const Configuration staged = with_values(tunable->knobs(), {4, 4, 128, 16, 0});
    return std::string(
        tunable->check_configuration(parse_shape(depthwise_shape(64, sizes)), device_limits(), staged).reason());
  };
  CHECK(staged_refusal("h=20,w=20,r=3,s=3") == "");
  CHECK(staged_refusal("h=20,w=200,r=3,s=101").find("that registers hold") != std::string::npos);
  CHECK(staged_refusal("h=60,w=60,r=51,s=51").find("pixels and taps must fit in") != std::string::npos);
}
