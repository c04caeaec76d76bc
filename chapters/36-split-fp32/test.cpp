#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "common/harness/check/device_tensors.hpp"
#include "common/harness/check/reference.hpp"
#include "common/harness/files/problem_io.hpp"
#include "common/harness/ladder/settings.hpp"
#include "tests/stage_suite.hpp"

using namespace convladder;

namespace {

/// Those of the cases that have zeros around the image and filters of at most 49 taps, not too far apart.
std::vector<SuiteCase> accepted(std::vector<SuiteCase> suite) {
  const std::unique_ptr<Stage> stage(find_stage("36").make());
  std::erase_if(suite, [&](const SuiteCase& one) { return !stage->check(one.problem, device_limits()).accepted(); });
  return suite;
}

RunResult run(const std::string& sizes, const std::string& settings = {}) {
  return run_case(find_stage("36"), {parse_shape(sizes), InputKind::normal}, settings);
}

/// With numbers of its own, changed by `change` after they were drawn.
template <class Change>
RunResult run_changed(const std::string& sizes, const Change& change, std::string_view settings = {}) {
  Workload workload = make_workload("", parse_shape(sizes), InputKind::normal, FilterForm::dense, 7);
  change(workload.tensors);
  workload.reference = convolve_reference(workload.problem, workload.tensors.input, workload.tensors.filter);
  RunOptions options;
  options.time = false;
  options.settings = settings;
  return run_stage(find_stage("36"), workload, options);
}

void check_right(const RunResult& result) {
  CHECK_MESSAGE(result.status == Status::ok, result.reason);
  CHECK(result.verified);
}

constexpr const char* kTransforms[] = {"transform=none", "transform=f23"};
constexpr const char* kShape = "n=2,c=70,k=66,h=9,w=11,r=3,s=3";  // two tiles, the second channel block nearly empty

}  // namespace

TEST_CASE("36 split-fp32: every image is right (sm_90)") {
  const std::vector<SuiteCase> suite = accepted(implicit_gemm_suite());
  REQUIRE(suite.size() >= 60);
  check_suite("36", suite);
}

TEST_CASE("36 split-fp32: every image is right with tiles of any size (sm_90)") {
  std::vector<SuiteCase> suite = accepted(short_implicit_gemm_suite());
  for (const char* sizes :
       {"n=5,c=64,k=64,h=7,w=7,r=3,s=3", "c=65,k=3,h=1,w=257,r=3,s=3", "n=130,c=8,k=4,h=1,w=1,r=1,s=1",
        "c=3,k=64,h=57,w=57,r=7,s=7,stride_h=2,stride_w=2", "n=2,c=9,k=12,h=40,w=3,r=5,s=5",
        "c=4,k=4,h=45000,w=1,r=2,s=1,stride_h=40000,dilation_h=39999,pad_h=0,pad_w=0"})  // a phase far down
    suite.push_back({parse_shape(sizes), InputKind::normal});
  const std::unique_ptr<Stage> made(find_stage("36").make());
  const auto& stage = dynamic_cast<const TunableStage&>(*made);
  for (const char* positions : {"88", "104", "112", "120"}) {
    const std::string settings = std::string("positions=") + positions;
    std::vector<SuiteCase> fitting = suite;
    std::erase_if(fitting, [&](const SuiteCase& one) {
      Configuration chosen = stage.default_configuration(one.problem, device_limits());
      apply_settings(settings, chosen);
      chosen = stage.decided(one.problem, device_limits(), chosen);
      return !stage.check_configuration(one.problem, device_limits(), chosen).accepted();
    });
    REQUIRE(fitting.size() + 2 >= suite.size());
    check_suite("36", fitting, settings);
  }
}

TEST_CASE("36 split-fp32: shared tiles are right (sm_90)") {
  std::vector<SuiteCase> suite;
  for (const char* sizes : {"n=5,c=64,k=128,h=7,w=7,r=3,s=3", "c=65,k=65,h=1,w=257,r=3,s=3",
                            "n=3,c=130,k=200,h=9,w=7,r=1,s=1", "n=2,c=9,k=127,h=20,w=11,r=3,s=3,stride_h=2,stride_w=2",
                            "n=7,c=72,k=126,h=15,w=14,r=1,s=1,stride_h=2,stride_w=2"}) {
    suite.push_back({parse_shape(sizes), InputKind::normal});
    suite.push_back({parse_shape(sizes), InputKind::nan});
  }
  for (const char* positions : {"104", "120"})
    check_suite("36", suite, std::string("tiles=shared,positions=") + positions);
}

TEST_CASE("36 split-fp32: where tiles should be shared and cannot be, they are not (sm_90)") {
  for (const char* setting : {"positions=88", "positions=112", "products=1"}) {
    const RunResult result = run("c=64,k=128,h=6,w=6,r=1,s=1", setting);
    check_right(result);
    REQUIRE(result.configuration);
    CHECK(result.configuration->configuration["tiles"] == 1 /* own */);
  }
}

TEST_CASE("36 split-fp32: F(2,3) is right with tiles of any size (sm_90)") {
  // An odd number of rows, one row, one column; rows and columns of zeros; images in one tile, the last tile without
  // some; channels that are no four; filters of a second block that is nearly empty.
  std::vector<SuiteCase> suite;
  for (const char* sizes : {kShape, "c=1,k=1,h=1,w=1,r=3,s=3", "n=5,c=64,k=64,h=7,w=7,r=3,s=3",
                            "c=65,k=3,h=1,w=257,r=3,s=3", "n=3,c=3,k=129,h=257,w=1,r=3,s=3",
                            "c=9,k=6,h=8,w=9,r=3,s=3,pad_h=0,pad_w=0", "c=9,k=7,h=8,w=9,r=3,s=3,pad_h=2,pad_w=3"})
    suite.push_back({parse_shape(sizes), InputKind::normal});
  suite.push_back({parse_shape(kShape), InputKind::nan});
  for (const char* positions : {"64", "80", "88", "96", "104"})
    check_suite("36", suite, std::string("transform=f23,positions=") + positions);
}

TEST_CASE("36 split-fp32: F(2,3) is taken where it is faster (sm_90)") {
  const std::unique_ptr<Stage> made(find_stage("36").make());
  const auto& stage = dynamic_cast<const TunableStage&>(*made);
  const auto taken = [&](const char* sizes, const char* knob = nullptr, int value = 0) {
    constexpr DeviceLimits kH200{90, 227 * 1024, 132, 60 << 20};
    const ConvProblem problem = parse_shape(sizes);
    Configuration one = stage.default_configuration(problem, kH200);
    if (knob) one[knob] = value;
    one = stage.decided(problem, kH200, one);
    CHECK(stage.check_configuration(problem, kH200, one).accepted());
    return one["transform"] == 2;
  };
  constexpr const char* kConv4 = "n=128,c=256,k=256,h=14,w=14,r=3,s=3";
  // As measured (docs/hopper.md): with 128 images on an H100, with 32 on an H200, and VGG's layers.
  for (const auto& [sizes, faster] : {std::pair{"n=128,c=128,k=128,h=28,w=28,r=3,s=3", true},
                                      {kConv4, true},
                                      {"n=128,c=512,k=512,h=7,w=7,r=3,s=3", true},
                                      {"n=32,c=128,k=128,h=28,w=28,r=3,s=3", false},
                                      {"n=32,c=256,k=256,h=14,w=14,r=3,s=3", false},
                                      {"n=32,c=512,k=512,h=7,w=7,r=3,s=3", false},
                                      {"n=32,c=128,k=128,h=112,w=112,r=3,s=3", true},
                                      {"n=32,c=256,k=256,h=56,w=56,r=3,s=3", true}})
    CHECK_MESSAGE(taken(sizes) == faster, sizes);
  // Too few channels; half of the filters empty; no F(2,3).
  for (const char* sizes : {"n=128,c=64,k=128,h=56,w=56,r=3,s=3", "n=128,c=256,k=64,h=28,w=28,r=3,s=3",
                            "n=128,c=256,k=256,h=14,w=14,r=5,s=3", "n=128,c=256,k=256,h=14,w=14,r=3,s=3,stride_h=2"})
    CHECK_MESSAGE(!taken(sizes), sizes);
  // What the reader has chosen, and F(2,3) has not.
  CHECK(!taken(kConv4, "positions", 120));
  CHECK(!taken(kConv4, "tiles", 1 /* own */));
  CHECK(!taken(kConv4, "split", 2));
  CHECK(!taken(kConv4, "products", 1));
  CHECK(!taken(kConv4, "format", 2 /* tf32 */));
}

TEST_CASE("36 split-fp32: channels in slices are right (sm_90)") {
  // Three blocks of 64 channels among two slices, five among four; a pair without its second tile; phases.
  std::vector<SuiteCase> suite = accepted(short_implicit_gemm_suite());
  for (const char* sizes :
       {"c=130,k=66,h=9,w=11,r=3,s=3", "n=3,c=257,k=65,h=7,w=7,r=1,s=1", "c=257,k=3,h=5,w=130,r=1,s=1",
        "c=320,k=7,h=8,w=7,r=3,s=3", "c=197,k=70,h=11,w=10,r=3,s=3,stride_h=2,stride_w=2"})
    suite.push_back({parse_shape(sizes), InputKind::normal});
  suite.push_back({parse_shape("c=196,k=8,h=5,w=7,r=3,s=3"), InputKind::nan});
  for (const auto& [settings, blocks] :
       {std::pair{"split=1", 1}, {"split=2", 2}, {"split=2,positions=120", 2}, {"split=4", 4}}) {
    std::vector<SuiteCase> enough = suite;
    std::erase_if(enough, [&](const SuiteCase& one) { return (one.problem.c + 63) / 64 < blocks; });
    REQUIRE(enough.size() >= 5);
    check_suite("36", enough, settings);
  }
  check_suite("36",
              {{parse_shape("n=3,c=130,k=200,h=9,w=7,r=1,s=1"), InputKind::normal},
               {parse_shape("c=150,k=127,h=12,w=9,r=3,s=3,stride_h=2,stride_w=2"), InputKind::normal}},
              "tiles=shared,split=2");
}

TEST_CASE("36 split-fp32: channels are in slices where pairs are few (sm_90)") {
  const std::unique_ptr<Stage> made(find_stage("36").make());
  const auto& stage = dynamic_cast<const TunableStage&>(*made);
  const auto slices = [&](const char* sizes) {
    constexpr DeviceLimits kH200{90, 227 * 1024, 132, 60 << 20};
    return stage.decided(parse_shape(sizes), kH200, stage.default_configuration(parse_shape(sizes), kH200))["split"];
  };
  CHECK(slices("n=32,c=512,k=512,h=7,w=7,r=3,s=3") == 2);
  CHECK(slices("n=1,c=512,k=512,h=7,w=7,r=3,s=3") == 8);
  CHECK(slices("n=128,c=512,k=512,h=7,w=7,r=3,s=3") == 1);
  CHECK(slices("n=32,c=64,k=64,h=56,w=56,r=3,s=3") == 1);
  CHECK(slices("c=64,k=64,h=14,w=14,r=3,s=3") == 1);
}

TEST_CASE("36 split-fp32: a slice that does not fit is noticed, whichever it is (sm_90)") {
  constexpr const char* kSizes = "c=200,k=10,h=7,w=8,r=3,s=3";
  const float infinity = std::numeric_limits<float>::infinity();
  for (const char* settings : {"split=2", "split=4"}) {
    SuiteShare share(std::string("36 a slice ") + settings);
    for (const std::size_t channel : {0, 70, 130, 199})
      for (const float value : {1e30f, infinity})
        if (share.takes(parse_shape(kSizes), InputKind::normal))
          check_right(run_changed(
              kSizes, [&](HostTensors& tensors) { tensors.input[channel * 56 + 20] = value; }, settings));
    check_right(run_changed(
        kSizes, [&](HostTensors& tensors) { tensors.filter[tensors.filter.size() - 5] = infinity; }, settings));
  }
}

TEST_CASE("36 split-fp32: each launch has the same bits (sm_90)") {
  // In slices; with F(2,3); and with shared tiles: on a GPU with inputs that leave the filters little room in L2.
  const bool gpu = backend() == Backend::gpu;
  struct Case {
    const char *on_gpu, *simulated;
    int transform, tiles, split;
  };
  for (const Case& one : {Case{"n=32,c=512,k=512,h=7,w=7,r=3,s=3", "n=2,c=260,k=10,h=7,w=7,r=3,s=3", 1, 1, 4},
                          {"n=32,c=256,k=256,h=56,w=56,r=3,s=3", "n=3,c=70,k=10,h=8,w=7,r=3,s=3", 2, 2, 1},
                          {"n=32,c=256,k=256,h=56,w=56,r=1,s=1", "n=3,c=70,k=128,h=8,w=7,r=1,s=1", 1, 2, 1}}) {
    const ConvProblem problem = parse_shape(gpu ? one.on_gpu : one.simulated);
    CAPTURE(one.on_gpu);
    const HostTensors host = make_inputs(problem, InputKind::normal, FilterForm::dense, 7);
    const std::unique_ptr<Stage> made(find_stage("36").make());
    auto& stage = dynamic_cast<TunableStage&>(*made);
    Configuration configuration(stage.knobs());
    configuration["transform"] = one.transform, configuration["positions"] = 104;
    configuration["tiles"] = one.tiles, configuration["split"] = one.split;
    stage.use(configuration);
    DeviceTensors tensors(problem, Elements::floats_nhwc, host.input.data(), host.filter.data());
    run_and_wait([&](Stream stream) { stage.prepare(problem, tensors.view(), stream); });
    std::vector<float> first(static_cast<std::size_t>(problem.output_size())), again(first.size());
    const int launches = gpu ? (one.split > 1 ? 100 : 20) : 3;
    for (int launch = 0; launch < launches; ++launch) {
      CAPTURE(launch);
      tensors.poison_output();
      CHECK(observe([&](Stream stream) { stage.launch(problem, tensors.view(), stream); }, false).faults.empty());
      tensors.download_output(launch == 0 ? first.data() : again.data());
      if (launch > 0) CHECK(std::memcmp(first.data(), again.data(), first.size() * sizeof(float)) == 0);
    }
  }
}

TEST_CASE("36 split-fp32: products left out cost what is predicted (sm_90)") {
  constexpr const char* kSizes = "c=256,k=64,h=12,w=12,r=3,s=3";
  const auto error_with = [&](const char* products) {
    const RunResult result = run(kSizes, std::string("products=") + products);
    check_right(result);
    REQUIRE(result.check);
    return result.check->rel_l2_err;
  };
  // A half has 11 bits: rounding to nearest errs by 2^-12 at most, about 0.4 of that by root mean square. One product
  // rounds both factors, two the filters alone.
  CHECK(error_with("1") == doctest::Approx(2.9e-4).epsilon(0.2));
  CHECK(error_with("2") == doctest::Approx(2.1e-4).epsilon(0.2));
  const double three = error_with("3,split=1,transform=none");
  CHECK(three < 2e-7);
  CHECK(three > 5e-8);
  CHECK(error_with("4") == doctest::Approx(three).epsilon(0.1));
  CHECK(error_with("3-in-one-sum") > 2 * three);
  // F(2,3) multiplies larger numbers, of which more is cut off.
  CHECK(error_with("3,transform=f23") == doctest::Approx(1.1 * three).epsilon(0.1));
}

TEST_CASE("36 split-fp32: bf16 and TF32 are right, and as exact as their bits (sm_90)") {
  const std::vector<SuiteCase> suite = accepted(short_implicit_gemm_suite());
  for (const char* settings : {"format=bf16", "format=tf32", "format=bf16,products=1", "format=tf32,products=1"}) {
    // One product is no fp32, which the suite asks for.
    if (std::string(settings).find("products") == std::string::npos) check_suite("36", suite, settings);
    check_right(run("n=2,c=70,k=66,h=9,w=11,r=5,s=3,stride_h=2", settings));
    check_right(run_changed(
        kShape, [](HostTensors& tensors) { tensors.input[500] = std::numeric_limits<float>::infinity(); }, settings));
  }
  const auto error_with = [&](const char* settings) {
    const RunResult result = run("c=256,k=64,h=12,w=12,r=3,s=3", settings);
    check_right(result);
    REQUIRE(result.check);
    return result.check->rel_l2_err;
  };
  // bf16 has 8 bits: 2^3 times the error of halves where a factor is rounded, and 2^6 times where two low parts are
  // left out. TF32 has as many bits as a half.
  CHECK(error_with("format=bf16,products=1") == doctest::Approx(8 * 2.9e-4).epsilon(0.2));
  CHECK(error_with("format=tf32,products=1") == doctest::Approx(2.9e-4).epsilon(0.2));
  CHECK(error_with("format=bf16") == doctest::Approx(4.4e-6).epsilon(0.2));
  CHECK(error_with("format=tf32") < 2.5e-7);
}

TEST_CASE("36 split-fp32: numbers of any size are right (sm_90)") {
  SuiteShare share("36 numbers");
  const auto scaled = [](float input, float filter, const char* settings) {
    return run_changed(
        kShape,
        [&](HostTensors& tensors) {
          for (float& value : tensors.input) value *= input;
          for (float& value : tensors.filter) value *= filter;
        },
        settings);
  };
  for (const auto& [input, filter] : {std::pair{1e30f, 1e-30f},
                                      {1e-30f, 1e30f},
                                      {1e-20f, 1e-15f},
                                      {1e18f, 1e18f},
                                      {1e-36f, 1.0f},
                                      {1e-41f, 1e30f},
                                      {1e38f, 1e-10f},
                                      {1.0f, 1e-41f},
                                      {0.0f, 1.0f}}) {
    CAPTURE(input);
    CAPTURE(filter);
    for (const char* settings : kTransforms)
      if (share.takes(parse_shape(kShape), InputKind::normal)) check_right(scaled(input, filter, settings));
  }
}

TEST_CASE("36 split-fp32: numbers of all sizes in one image are right (sm_90)") {
  // From 1e-30 to 1e30, a row each; and a pixel far above all others, or far below its neighbours, which are zeros.
  for (const char* settings : kTransforms) {
    CAPTURE(settings);
    check_right(run_changed(
        kShape,
        [](HostTensors& tensors) {
          for (std::size_t i = 0; i < tensors.input.size(); ++i)
            tensors.input[i] *= std::pow(10.0f, static_cast<float>(i / 11 % 9) * 7.5f - 30.0f);
        },
        settings));
    check_right(run_changed(
        kShape, [](HostTensors& tensors) { tensors.input[500] = 1e30f; }, settings));
    check_right(run_changed(
        kShape,
        [](HostTensors& tensors) {
          for (std::size_t i = 0; i < tensors.input.size(); ++i)
            if (i / 11 % 9 < 5) tensors.input[i] = i == 12 ? 1e-30f : 0.0f;
        },
        settings));
  }
}

TEST_CASE("36 split-fp32: a later input that the scale does not fit is right (sm_90)") {
  // The scale is chosen for ones, and what follows is 24, 40 and 100 times as large. F(2,3) adds two of them: from 32
  // on a half cannot hold the sum, and from 64 on not the number. All sums are whole numbers, which fp32 holds exactly.
  const ConvProblem problem = parse_shape("c=64,k=64,h=8,w=9,r=3,s=3");
  HostTensors host = make_inputs(problem, InputKind::normal, FilterForm::dense, 7);
  std::ranges::fill(host.input, 1.0f);
  std::ranges::fill(host.filter, 1.0f);
  for (const int transform : {1 /* none */, 2 /* f23 */}) {
    CAPTURE(transform);
    const std::unique_ptr<Stage> made(find_stage("36").make());
    auto& stage = dynamic_cast<TunableStage&>(*made);
    Configuration configuration(stage.knobs());
    configuration["transform"] = transform;
    stage.use(stage.decided(problem, device_limits(), configuration));
    DeviceTensors ones(problem, Elements::floats_nhwc, host.input.data(), host.filter.data());
    run_and_wait([&](Stream stream) { stage.prepare(problem, ones.view(), stream); });
    for (const float value : {24.0f, 40.0f, 100.0f}) {
      CAPTURE(value);
      const std::vector<float> input(host.input.size(), value);
      DeviceTensors later(problem, Elements::floats_nhwc, input.data(), host.filter.data());
      later.poison_output();
      CHECK(observe([&](Stream stream) { stage.launch(problem, later.view(), stream); }, false).faults.empty());
      std::vector<float> output(static_cast<std::size_t>(problem.output_size()));
      later.download_output(output.data());
      const std::vector<double> exact = convolve_reference(problem, input, host.filter).output;
      CHECK(std::ranges::equal(output, exact));
    }
  }
}

TEST_CASE("36 split-fp32: NaN and infinity arrive where the reference has them (sm_90)") {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const char* settings : kTransforms) {
    CAPTURE(settings);
    check_right(run_changed(
        kShape, [&](HostTensors& tensors) { tensors.filter[tensors.filter.size() - 5] = infinity; }, settings));
    check_right(run_changed(
        kShape, [&](HostTensors& tensors) { tensors.filter[40] = std::nanf(""); }, settings));
    check_right(run_changed(
        kShape,
        [&](HostTensors& tensors) {
          tensors.input[3] = -infinity, tensors.input.back() = infinity, tensors.filter[40] = std::nanf("");
        },
        settings));
  }
}

TEST_CASE("36 split-fp32: counters are what the lesson predicts (simulator)") {
  check_prediction("36",
                   {"n=3,c=70,k=66,h=9,w=11,r=3,s=3", "c=5,k=4,h=30,w=130,r=3,s=3",
                    "n=2,c=64,k=64,h=15,w=13,r=5,s=5,stride_h=2,stride_w=2", "n=9,c=130,k=72,h=7,w=7,r=1,s=1"},
                   FilterForm::dense);
  check_prediction("36", {"n=3,c=70,k=66,h=9,w=11,r=3,s=3"}, FilterForm::dense, "tiles=shared");
  check_prediction("36", {"n=3,c=130,k=66,h=9,w=11,r=3,s=3", "n=3,c=70,k=72,h=7,w=7,r=1,s=1"}, FilterForm::dense,
                   "split=2");
  check_prediction("36", {"n=3,c=300,k=70,h=9,w=8,r=3,s=3,stride_h=2,stride_w=2"}, FilterForm::dense, "split=4");
  check_prediction("36", {"c=520,k=128,h=9,w=9,r=1,s=1"}, FilterForm::dense, "tiles=shared,split=8");
  check_prediction("36", {"n=3,c=70,k=66,h=9,w=11,r=3,s=3"}, FilterForm::dense, "format=tf32");
  check_prediction("36",
                   {"n=3,c=70,k=66,h=9,w=11,r=3,s=3", "n=5,c=64,k=130,h=7,w=7,r=3,s=3", "c=5,k=4,h=30,w=130,r=3,s=3",
                    "c=9,k=6,h=8,w=9,r=3,s=3,pad_h=0,pad_w=0"},
                   FilterForm::dense, "transform=f23");
}

TEST_CASE("36 split-fp32: no bank conflict, and one barrier a block (simulator)") {
  for (const auto& [sizes, settings] : {std::pair{"c=64,k=64,h=16,w=16,r=3,s=3", ""},
                                        {"n=9,c=96,k=68,h=7,w=7,r=3,s=3", ""},
                                        {"n=4,c=96,k=68,h=14,w=14,r=3,s=3", "transform=f23,positions=104"}}) {
    const RunResult result = run(sizes, settings);
    REQUIRE(result.counters);
    CHECK(result.counters->shared_load_conflicts == 0);
    CHECK(result.counters->shared_store_conflicts == 0);
    CHECK(result.counters->barriers == 2);
  }
}

TEST_CASE("36 split-fp32: refuses by rule (sm_90)") {
  check_refusals_of_implicit_gemm("36");
  check_refusal("36", "h=9,w=9,r=7,s=8", "at most 49 taps; got r=7, s=8");
  check_refusal("36", "h=99,w=99,r=3,s=3,dilation_h=40", "the taps lie too far apart");
  check_refusal("36", "w=300,s=2,dilation_w=80,pad_w=0", "the taps lie too far apart");  // but for 64 positions
  ConvProblem problem = parse_shape("h=8,w=8,r=3,s=3");
  problem.padding = Padding::reflect;
  CHECK(refusal(find_stage("36"), problem, nullptr).find("the padding must be zeros; got reflect") !=
        std::string::npos);
  const auto refused = [](const char* settings) { return run("c=8,k=8,h=8,w=8,r=3,s=3", settings).reason; };
  CHECK(refused("products=2,positions=88").find("other than 3 products of halves want 120 positions") !=
        std::string::npos);
  CHECK(refused("tiles=shared,positions=120").find("an even number of blocks of 64; got k=8") != std::string::npos);
  CHECK(refused("tiles=shared,positions=88").find("104 or 120 positions") != std::string::npos);
  CHECK(refused("split=2").find("split=2 wants 3 products of halves and as many blocks of 64 channels; got c=8") !=
        std::string::npos);
  CHECK(refused("format=bf16,products=2").find("products of bf16 and of TF32 are 1 or 3; got products=2") !=
        std::string::npos);
  CHECK(refused("positions=64").find("64, 80 and 96 positions are for transform=f23; got positions=64") !=
        std::string::npos);
  CHECK(refused("transform=f23,positions=112").find("64, 80, 88, 96 or 104 positions; got positions=112") !=
        std::string::npos);
  for (const char* setting : {"tiles=own", "split=2", "products=2", "format=bf16"})
    CHECK(refused((std::string("transform=f23,") + setting).c_str())
              .find("transform=f23 wants 3 products of halves, tiles=shared and split=1") != std::string::npos);
  CHECK(run("c=8,k=8,h=8,w=8,r=3,s=3,stride_h=2", "transform=f23")
            .reason.find("3 x 3 filters, stride 1 and dilation 1; got r=3, s=3, stride_h=2") != std::string::npos);
  CHECK(refused("format=tf32,positions=88").find("3 products of halves want 120 positions") != std::string::npos);
  CHECK(run("c=128,k=8,h=8,w=8,r=3,s=3", "products=4,split=2").reason.find("split=2 wants 3 products") !=
        std::string::npos);
}

TEST_CASE("36 split-fp32: workspace is what the lesson says (sm_90)") {
  // Two halves of each number, channels and filters rounded up to 64; two factors and an exponent a filter; the scale
  // of the input, and its largest magnitude.
  constexpr const char* kSizes = "n=2,c=72,k=5,h=9,w=7,r=3,s=3";
  constexpr std::int64_t kUsual = 4 * 9 * 128 * 64 + 64 * (8 + 4) + 16 + 4;
  CHECK(run(kSizes, "split=1").workspace_bytes == kUsual);
  // In slices, for each tile of the one pair: its sums twice, at 88 positions, and a counter.
  CHECK(run(kSizes, "split=2,positions=88").workspace_bytes == kUsual + 2 * (2 * 88 * 64 * 4 + 4));
  // With F(2,3) 12 numbers for 9, and filters rounded up to 128.
  CHECK(run(kSizes, "transform=f23").workspace_bytes == 4 * 12 * 128 * 128 + 128 * (8 + 4) + 16 + 4);
}
