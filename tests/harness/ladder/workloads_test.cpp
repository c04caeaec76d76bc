#include "common/harness/ladder/workloads.hpp"

#include <doctest/doctest.h>

#include <set>

#include "common/harness/files/problem_io.hpp"
#include "common/kernel/tracks/lowering.hpp"

namespace convladder {
namespace {

TEST_CASE("workloads: the headline first, names unique, every problem valid") {
  for (const Backend backend : {Backend::sim, Backend::gpu}) {
    std::set<std::string> names;
    for (const NamedWorkload& workload : workloads_of("signals", backend)) {
      CAPTURE(workload.name);
      CHECK(names.insert(workload.name).second);
      CHECK_NOTHROW(validate(workload.problem, std::int64_t{1} << 40));
      CHECK(workload.problem.pad_w == (workload.problem.s - 1) / 2);
      CHECK((workload.simulated_accesses > 0) == (backend == Backend::sim));
    }
    CHECK(workloads_of("signals", backend).front().problem.s == 11);
    CHECK(bench_workloads("signals", backend).size() == 3);
    CHECK(bench_workloads("several", backend).size() == (backend == Backend::gpu ? 1 : 3));
  }
  CHECK(workloads_of("signals", Backend::gpu).front().problem.w == 1 << 24);
  CHECK(workloads_of("signals", Backend::sim).front().simulated_accesses == 2 * 11 * 65536);
  CHECK(workloads_of("nowhere", Backend::sim).empty());
}

TEST_CASE("the lowering track's workloads: twelve layers without padding, and a network's with it") {
  const std::vector<NamedWorkload> layers = workloads_of("lowering", Backend::gpu);
  REQUIRE(layers.size() == 20);
  std::set<std::string> names;
  for (const NamedWorkload& workload : layers) {
    CAPTURE(workload.name);
    CHECK(names.insert(workload.name).second);
    CHECK_NOTHROW(validate(workload.problem, std::int64_t{1} << 40));
    CHECK(workload.problem.groups == 1);
  }
  CHECK(names.contains("layer 4 (128,64,224,224)->64 7x7 stride 2"));
  CHECK(names.contains("conv5 (128,512,7,7)->512 3x3"));
  for (std::size_t i = 0; i < 12; ++i) CHECK((layers[i].problem.n == 128 && layers[i].problem.pad_h == 0));
  for (std::size_t i = 12; i < 20; ++i) {
    const ConvProblem& problem = layers[i].problem;
    CHECK((problem.pad_h == 1 && problem.pad_w == 1 && problem.c == problem.k && problem.p() == problem.h));
  }
  CHECK(select_workloads("lowering", Backend::gpu, "layer 1 (128,3,227,227)->96 11x11 stride 4").at(0).problem.q() ==
        55);

  const std::vector<NamedWorkload> small = workloads_of("lowering", Backend::sim);
  CHECK(small.size() == 14);
  bool has_padding = false, has_dilation = false;
  for (const NamedWorkload& workload : small) {
    CAPTURE(workload.name);
    CHECK(workload.simulated_accesses == workload.problem.flops());
    CHECK(workload.simulated_accesses < 3'000'000);
    CHECK(workload.problem.n <= 2);
    has_padding |= workload.problem.pad_h == 1;
    has_dilation |= workload.problem.dilation_h == 2;
  }
  CHECK((has_padding && has_dilation));
}

TEST_CASE("the winograd track's workloads: 3x3 with padding 1, every one once") {
  const std::vector<NamedWorkload> layers = workloads_of("winograd", Backend::gpu);
  CHECK(layers.size() == 6 + 16 + 2 + 12);
  std::set<std::string> names, problems;
  for (const NamedWorkload& workload : layers) {
    CAPTURE(workload.name);
    CHECK(names.insert(workload.name).second);
    CHECK(problems.insert(to_string(workload.problem)).second);
    CHECK_NOTHROW(validate(workload.problem, std::int64_t{1} << 40));
    const ConvProblem& problem = workload.problem;
    CHECK((problem.r == 3 && problem.s == 3 && problem.pad_h == 1 && problem.c == problem.k));
  }
  CHECK(layers[0].name == "image (1,64,224,224)->64 3x3");
  CHECK(layers[1].name == "image (1,64,960,960)->64 3x3");
  CHECK(layers[2].name == "conv3 (32,128,28,28)->128 3x3");
  for (const char* name : {"image (1,64,448,448)->64 3x3", "conv5 (96,512,7,7)->512 3x3", "wide (8,256,56,56)->256 3x3",
                           "conv2 (32,512,56,56)->512 3x3", "conv5 (32,64,7,7)->64 3x3"})
    CHECK_MESSAGE(names.contains(name), name);

  const std::vector<NamedWorkload> small = workloads_of("winograd", Backend::sim);
  CHECK(small.size() == 8);
  bool odd_size = false, odd_channels = false, batch = false;
  for (const NamedWorkload& workload : small) {
    const ConvProblem& problem = workload.problem;
    CAPTURE(workload.name);
    CHECK(problem.flops() / 2 < 10'000'000);
    CHECK(workload.simulated_accesses > 0);
    odd_size |= problem.h % 2 == 1;
    odd_channels |= problem.c % 2 == 1 && problem.k % 2 == 1;
    batch |= problem.n > 1;
  }
  CHECK((odd_size && odd_channels && batch));
}

TEST_CASE("the hopper track's workloads: every one once, and of every kind") {
  const std::vector<NamedWorkload> layers = workloads_of("hopper", Backend::gpu);
  CHECK(layers.size() == 6 + 12 + 4 + 2 + 3 + 3 + 3 + 2 + (3 * 23 - 6));
  std::set<std::string> names, problems;
  for (const NamedWorkload& workload : layers) {
    CAPTURE(workload.name);
    CHECK(names.insert(workload.name).second);
    CHECK(problems.insert(to_string(workload.problem)).second);
    CHECK_NOTHROW(validate(workload.problem, std::int64_t{1} << 40));
  }
  CHECK(layers[0].name == "image (1,64,224,224)->64 3x3");
  CHECK(layers[1].name == "image (1,64,960,960)->64 3x3");
  CHECK(layers[2].name == "conv3 (32,128,28,28)->128 3x3");
  for (const char* name :
       {"image (1,64,640,640)->64 3x3", "conv5 (32,512,7,7)->512 3x3", "conv2 (128,64,56,56)->64 3x3",
        "conv4 (64,256,14,14)->256 3x3", "conv2 (32,512,56,56)->512 3x3", "VGG (32,512,28,28)->512 3x3",
        "conv3 (32,128,56,56)->128 3x3 stride 2", "conv4 (32,1024,14,14)->256 1x1", "Inception (32,48,35,35)->64 5x5",
        "VAE (1,128,1024,1024)->128 3x3", "UNet (2,1280,16,16)->1280 3x3", "super-resolution (1,32,1080,1920)->32 3x3",
        "ResNet-50 (1,3,224,224)->64 7x7 stride 2", "ResNet-50 (256,1024,14,14)->2048 1x1 stride 2"})
    CHECK_MESSAGE(names.contains(name), name);

  const std::vector<NamedWorkload> small = workloads_of("hopper", Backend::sim);
  CHECK(small.size() == 7);
  bool odd_channels = false, batch = false, stride = false;
  std::set<std::int64_t> filters;
  for (const NamedWorkload& workload : small) {
    const ConvProblem& problem = workload.problem;
    CAPTURE(workload.name);
    CHECK(problem.flops() / 2 < 12'000'000);
    CHECK(workload.simulated_accesses > 0);
    odd_channels |= problem.c % 2 == 1 && problem.k % 2 == 1;
    batch |= problem.n > 1;
    stride |= problem.stride_h == 2;
    filters.insert(problem.r);
  }
  CHECK((odd_channels && batch && stride));
  CHECK(filters == std::set<std::int64_t>{1, 3, 5});
}

TEST_CASE("the cpu track's workloads: the same layers on every device, im2col's matrix below 1 GB") {
  const std::vector<NamedWorkload> layers = workloads_of("cpu", Backend::gpu),
                                   others = workloads_of("cpu", Backend::sim);
  REQUIRE(layers.size() == 15);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    CAPTURE(layers[i].name);
    CHECK(layers[i].name == others[i].name);
    CHECK(4 * im2col_size(layers[i].problem) < 1'000'000'000);
    CHECK(layers[i].problem.n == (i < 3 ? 2 : layers[i].name.starts_with("layer 4 ") ? 6 : 16));
  }
}

TEST_CASE("workloads are chosen by name, with or without spaces, or all") {
  CHECK(select_workloads("signals", Backend::gpu, "w=2^24 r=31").at(0).problem.s == 63);
  CHECK(select_workloads("signals", Backend::gpu, "w=2^24r=31").size() == 1);
  CHECK(select_workloads("signals", Backend::gpu, "all").size() == 10);
  CHECK(select_workloads("hopper", Backend::gpu, "VGG").size() == 4);
  CHECK(select_workloads("hopper", Backend::gpu, "VG").empty());
  CHECK(select_workloads("signals", Backend::gpu, "w=65536 r=5").empty());
}

}  // namespace
}  // namespace convladder
