#include <doctest/doctest.h>

#include <memory>
#include <vector>

#include "common/harness/files/problem_io.hpp"
#include "common/stage/tunable.hpp"
#include "tests/stage_suite.hpp"

using namespace convladder;

namespace {

constexpr const char* kStrips[] = {"strip=112", "strip=120"};

std::vector<SuiteCase> with_up_to_64_channels(std::vector<SuiteCase> suite) {
  std::erase_if(suite, [](const SuiteCase& suite_case) { return suite_case.problem.c > 64; });
  return suite;
}

std::vector<SuiteCase> cases(const std::vector<std::string>& shapes, Padding padding = Padding::zero) {
  std::vector<SuiteCase> suite;
  for (const std::string& sizes : shapes) {
    ConvProblem problem = parse_shape(winograd_shape(sizes));
    problem.padding = padding;
    suite.push_back({problem, InputKind::normal});
  }
  return suite;
}

}  // namespace

TEST_CASE("33 winograd-hopper: every image is right") {
  check_suite("33", with_up_to_64_channels(winograd_suite()), kStrips[0]);
}

TEST_CASE("33 winograd-hopper: every image is right with wider strips") {
  check_suite("33", with_up_to_64_channels(short_winograd_suite()), kStrips[1]);
}

TEST_CASE("33 winograd-hopper: strips, chunks and blocks of filters that are full, and that are not") {
  for (const char* strip : kStrips) {
    check_suite("33",
                cases({
                    "c=64,k=64,h=2,w=112",                     // one strip
                    "c=8,k=8,h=3,w=113",                       // and a position
                    "c=8,k=8,h=1,w=119",                       // 120, 121
                    "c=8,k=16,h=2,w=120",                      //
                    "c=8,k=8,h=2,w=121",                       //
                    "n=2,c=8,k=8,h=2,w=111",                   // what lies between two images ends a strip
                    "n=2,c=8,k=8,h=2,w=112",                   // begins one
                    "n=2,c=8,k=8,h=2,w=119",                   //
                    "n=2,c=8,k=8,h=2,w=120",                   //
                    "n=4,c=8,k=8,h=3,w=39,pad_w=0",            // two columns between images
                    "n=4,c=8,k=8,h=3,w=39,pad_w=2",            // none
                    "n=4,c=8,k=8,h=3,w=39,pad_w=3",            //
                    "n=3,c=8,k=8,h=5,w=56",                    // several images in a strip, and strips in an image
                    "n=9,c=24,k=8,h=4,w=7",                    //
                    "n=230,c=8,k=8,h=1,w=1",                   // more images than a strip has positions
                    "c=56,k=128,h=6,w=5",                      // two blocks of filters
                    "c=64,k=200,h=4,w=3",                      // four, the last with one chunk
                    "c=63,k=65,h=4,w=3",                       // filters and channels one by one
                    "c=64,k=9,h=4,w=130",                      // of several strips
                    "c=8,k=8,h=257,w=3",                       // a block goes down many pairs, an odd height
                    "c=12,k=4,h=61,w=6",                       //
                    "n=2,c=16,k=24,h=13,w=37,pad_h=0,pad_w=2"  //
                }),
                strip);
    for (const Padding padding : {Padding::replicate, Padding::reflect})
      check_suite("33", cases({"n=2,c=8,k=8,h=9,w=63,pad_h=3,pad_w=5", "n=3,c=8,k=8,h=3,w=55"}, padding), strip);
  }
}

TEST_CASE("33 winograd-hopper: more channels, and tiles that end anywhere") {
  for (const char* tile : {"strip=64", "strip=96", "strip=128", "strip=160", "strip=192", "strip=208"})
    check_suite("33",
                cases({
                    "c=72,k=8,h=2,w=1",                        // one position
                    "n=3,c=128,k=128,h=14,w=14",               // full blocks of filters, several tiles
                    "n=2,c=96,k=65,h=5,w=7",                   // three parts, an odd height, filters one by one
                    "n=5,c=72,k=136,h=7,w=9",                  // channels and filters that end within a block
                    "c=160,k=72,h=1,w=130",                    // one row
                    "c=128,k=64,h=41,w=6,pad_h=0,pad_w=0",     // two columns between images
                    "n=3,c=72,k=129,h=6,w=5,pad_h=2,pad_w=2",  //
                    "n=2,c=104,k=16,h=3,w=4,pad_h=3,pad_w=4",  //
                    "n=260,c=72,k=8,h=2,w=1"                   // many images in a tile
                }),
                tile);
}

TEST_CASE("33 winograd-hopper: every image is right in bf16, and numbers that fp16 does not hold") {
  for (const char* strip : kStrips) check_suite("33:bf16", with_up_to_64_channels(short_winograd_suite()), strip);
  for (const char* shape : {"n=2,c=40,k=72,h=9,w=8,r=3,s=3", "c=5,k=7,h=9,w=11,r=3,s=3"}) {
    CHECK(run_stage_of("33:bf16", shape, InputKind::large).verified);
    CHECK(run_stage_of("33", shape, InputKind::large).status == Status::refused);
  }
}

TEST_CASE("33 winograd-hopper: more channels are right in bf16, and numbers that fp16 does not hold") {
  for (const char* tile : {"strip=64", "strip=128", "strip=208"}) {
    std::vector<SuiteCase> suite = cases({
        "c=72,k=8,h=2,w=1",                        // one position
        "n=2,c=96,k=65,h=5,w=7",                   // three parts, an odd height, filters one by one
        "n=5,c=72,k=136,h=7,w=9",                  // channels and filters that end within a block
        "c=512,k=64,h=7,w=9",                      // many sums
        "n=2,c=104,k=16,h=3,w=4,pad_h=3,pad_w=4",  //
    });
    for (const InputKind inputs : {InputKind::integers, InputKind::large, InputKind::infinity, InputKind::nan})
      suite.push_back({parse_shape("n=2,c=72,k=24,h=9,w=8,r=3,s=3"), inputs});
    check_suite("33:bf16", suite, tile);
  }
}

TEST_CASE("33 winograd-hopper: bf16 has the counters of fp16 (simulator)") {
  for (const char* strip : kStrips)
    check_prediction("33:bf16", {winograd_shape("n=3,c=2,k=3,h=2,w=1"), winograd_shape("n=3,c=24,k=72,h=7,w=39")},
                     FilterForm::dense, strip);
  check_prediction("33:bf16", {winograd_shape("n=3,c=72,k=129,h=7,w=9"), winograd_shape("n=2,c=96,k=8,h=5,w=31")},
                   FilterForm::dense, "strip=128");
}

TEST_CASE("33 winograd-hopper: counters are what the lesson predicts (simulator)") {
  std::vector<std::string> shapes;
  for (const char* sizes : {"n=3,c=2,k=3,h=2,w=1", "c=64,k=64,h=8,w=16", "n=3,c=24,k=72,h=7,w=39",
                            "n=2,c=16,k=8,h=31,w=57,pad_h=3,pad_w=0", "n=2,c=8,k=8,h=5,w=111",
                            "n=2,c=8,k=8,h=5,w=112,pad_w=2", "n=2,c=8,k=16,h=4,w=118,pad_w=3", "c=7,k=8,h=3,w=230"})
    shapes.push_back(winograd_shape(sizes));
  for (const char* strip : kStrips) check_prediction("33", shapes, FilterForm::dense, strip);
  shapes.clear();
  for (const char* sizes : {"n=3,c=72,k=129,h=7,w=9", "c=128,k=64,h=24,w=16", "n=2,c=96,k=8,h=5,w=31,pad_h=3,pad_w=0",
                            "n=40,c=72,k=8,h=3,w=4,pad_w=3"})
    shapes.push_back(winograd_shape(sizes));
  for (const char* tile : {"strip=64", "strip=160", "strip=208"})
    check_prediction("33", shapes, FilterForm::dense, tile);
}

TEST_CASE("33 winograd-hopper: refuses by rule") {
  check_refusal("33", "c=65,h=8,w=8,r=3,s=3", "more than 64 channels must be a multiple of 8; got c=65");
  struct Refusal {
    const char* shape;
    const char* rule;
  };
  for (const auto& [text, rule] : {
           Refusal{"c=4,k=4,groups=2,h=8,w=8,r=3,s=3", "groups must be 1; got groups=2"},
           Refusal{"h=8,w=8,r=3", "must be 3 x 3; got r=3, s=1"},
           Refusal{"h=8,w=8,r=5,s=5", "must be 3 x 3; got r=5, s=5"},
           Refusal{"h=8,w=8,r=3,s=3,stride_h=2", "the stride must be 1; got stride_h=2, stride_w=1"},
           Refusal{"h=8,w=8,r=3,s=3,dilation_w=2,pad_w=2", "the dilation must be 1; got dilation_h=1, dilation_w=2"},
           Refusal{"h=2147483647,r=3,s=3", "a padded side must be below 2^31 - 8; got 2147483649 x 3"},
           Refusal{"n=1024,c=64,h=224,w=224,r=3,s=3", "must have fewer than 2^31 - 1024 elements; got 3288334336"},
           Refusal{"n=65536,k=32,h=32,w=32,r=3,s=3", "must have fewer than 2^31 - 1024 elements; got 2147483648"},
           Refusal{"n=715827883,r=3,s=3", "must have fewer than 2^31 - 1024 elements; got 2147483649"},
           Refusal{"c=72,h=8,w=8,r=3,s=3,pad_h=128", "the padding is at most 127; got pad_h=128, pad_w=1"},
           Refusal{"c=16384,k=16384,h=8,w=8,r=3,s=3", "at most 2^31 elements, with padding; got 3252731904"},
           Refusal{"k=2796203,r=3,s=3", "at most 2796160 filters; got k=2796203"},
       }) {
    CAPTURE(text);
    const std::string reason = refusal(find_stage("33"), parse_shape(text), nullptr);
    CHECK_MESSAGE(reason.find(rule) != std::string::npos, reason);
  }
}

TEST_CASE("33 winograd-hopper: workspace is what the lesson says") {
  // Halves: four rows of three columns, 64 x 64 of each.
  for (const auto& [shape, blocks] : {std::pair{"c=3,k=5,h=4,w=4,r=3,s=3", 1}, {"c=64,k=129,h=4,w=4,r=3,s=3", 3}})
    CHECK(run_case(find_stage("33"), {parse_shape(shape), InputKind::normal}).workspace_bytes ==
          2 * 4 * 3 * 64 * 64 * blocks);
}

TEST_CASE("33 winograd-hopper: the strip that takes the least time in rounds") {
  DeviceLimits limits = device_limits();
  limits.multiprocessors = 132;
  const std::unique_ptr<Stage> stage(find_stage("33").make());
  const auto* tunable = dynamic_cast<const TunableStage*>(stage.get());
  REQUIRE(tunable);
  const auto strip = [&](const char* shape) {
    return tunable->default_configuration(parse_shape(shape), limits)["strip"];
  };
  CHECK(strip("c=64,k=64,h=224,w=224,r=3,s=3") == 112);
  CHECK(strip("c=64,k=64,h=448,w=448,r=3,s=3") == 112);
  CHECK(strip("c=64,k=64,h=960,w=960,r=3,s=3") == 120);
  CHECK(strip("n=128,c=64,k=64,h=56,w=56,r=3,s=3") == 112);  // 66 strips, two blocks each
  // More channels: the tile that was the faster of two in each layer that was measured.
  CHECK(strip("n=128,c=128,k=128,h=28,w=28,r=3,s=3") == 208);
  CHECK(strip("n=128,c=256,k=256,h=14,w=14,r=3,s=3") == 208);
  CHECK(strip("n=128,c=512,k=512,h=7,w=7,r=3,s=3") == 128);
  CHECK(strip("n=32,c=128,k=128,h=112,w=112,r=3,s=3") == 128);
  CHECK(strip("n=32,c=256,k=256,h=56,w=56,r=3,s=3") == 208);
  CHECK(strip("n=32,c=512,k=512,h=28,w=28,r=3,s=3") == 208);
}

TEST_CASE("33 winograd-hopper: refuses tiles that are few, unless they are asked for") {
  DeviceLimits limits = device_limits();
  limits.multiprocessors = 132;
  const std::unique_ptr<Stage> stage(find_stage("33").make());
  const auto* tunable = dynamic_cast<const TunableStage*>(stage.get());
  REQUIRE(tunable);
  const auto reason = [&](const char* shape, int strip = 0) -> std::string {
    const ConvProblem problem = parse_shape(shape);
    REQUIRE(tunable->check(problem, limits).accepted());
    Configuration configuration = tunable->default_configuration(problem, limits);
    if (strip > 0) configuration["strip"] = strip;
    return tunable->check_configuration(problem, limits, configuration).reason();
  };
  constexpr const char* kConv4 = "n=32,c=256,k=256,h=14,w=14,r=3,s=3";
  CHECK(
      reason(kConv4) ==
      "tiles of 128 positions make 54 work items, and fewer than 88 for 132 multiprocessors are slower than stage 32: "
      "take that, or strip=128");
  CHECK(reason(kConv4, 128) == "");
  CHECK(reason(kConv4, 64) == "");
  CHECK(reason("n=32,c=128,k=128,h=28,w=28,r=3,s=3") == "");  // 102
  // Lines of 128 times 88 positions, and one less.
  CHECK(reason("n=704,c=72,k=8,h=2,w=15,r=3,s=3") == "");
  CHECK(reason("n=696,c=72,k=8,h=2,w=15,r=3,s=3").find("make 87 work items") != std::string::npos);
  limits.multiprocessors = 80;
  CHECK(reason(kConv4) == "");
  CHECK(reason(kConv4, 112).find("more have tiles of 64") != std::string::npos);
}

TEST_CASE("33 winograd-hopper: no bank conflict on the way to and from the ring (simulator)") {
  for (const char* strip : kStrips) {
    const auto counters_of = [&](const char* shape) {
      const RunResult result = run_case(find_stage("33"), {parse_shape(shape), InputKind::normal}, strip);
      REQUIRE(result.counters);
      return *result.counters;
    };
    const Counters one = counters_of("c=64,k=64,h=8,w=120,r=3,s=3"),
                   two = counters_of("n=2,c=64,k=64,h=8,w=60,r=3,s=3");
    CHECK(one.shared_store_requests > 0);
    CHECK(one.shared_store_conflicts == 0);
    CHECK(one.shared_load_requests == 0);  // wgmma and TMA do the rest
    CHECK(two.shared_store_conflicts == 0);
    CHECK(two.shared_load_requests > 0);  // threads store what belongs to two images
    CHECK(two.shared_load_conflicts == 0);
  }
}
