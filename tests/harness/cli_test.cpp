#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "common/harness/baselines/rows_beside.hpp"
#include "common/harness/commands/commands.hpp"
#include "common/harness/files/errors.hpp"
#include "common/harness/files/output_file.hpp"
#include "common/harness/files/problem_io.hpp"
#include "common/harness/files/spelling.hpp"
#include "common/harness/ladder/registry.hpp"
#include "common/harness/ladder/workloads.hpp"
#include "common/harness/report/comparison.hpp"
#include "common/harness/run/standing.hpp"
#include "common/harness/run/user_problem.hpp"
#include "common/kernel/tracks/lowering.hpp"
#include "tests/folder.hpp"

namespace convladder {
namespace {

namespace fs = std::filesystem;

/// The message of the UsageError that `action` throws; "" if it throws none.
template <class Action>
std::string usage_error(const Action& action) {
  try {
    action();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST_CASE("a stage is found by number, name and folder") {
  for (const StageInfo& stage : stages()) {
    CHECK(&find_stage(stage.name) == &stage);
    CHECK(&find_stage(stage.folder) == &stage);
    CHECK(&find_stage(std::to_string(stage.number)) == &stage);
    CHECK(&find_stage(stage.folder.substr(0, 2)) == &stage);
  }
}

TEST_CASE("an unknown stage is told with the nearest name") {
  CHECK(has(usage_error([] { find_stage("tild-1d"); }), "did you mean tiled-1d?"));
  CHECK_FALSE(has(usage_error([] { find_stage("zzzzzz"); }), "did you mean"));
  for (const char* text : {"", "0", "99", "-1", "1 ", "1x", "99999999999999999999", "naive-1d/"}) {
    CAPTURE(text);
    CHECK(has(usage_error([&] { find_stage(text); }), "unknown stage"));
  }
}

TEST_CASE("the nearest name, if it is near") {
  CHECK(nearest_name("replicat", {"zero", "replicate"}) == "replicate");
  CHECK(nearest_name("ZERO", {"zero", "replicate"}) == "zero");
  CHECK(nearest_name("x", {"zero", "replicate"}).empty());
  CHECK(nearest_name("x", {}).empty());
  CHECK(in_quotes("a\nb") == "'a?b'");
}

TEST_CASE("a stage runs on the GPU that it requires and on later ones; if that ends in a, on this one alone") {
  StageInfo stage{};
  stage.requires_capability = "sm_90a";
  CHECK(!runs_on(stage, 89));
  CHECK(runs_on(stage, 90));
  CHECK(!runs_on(stage, 100));
  stage.requires_capability = "sm_70";
  CHECK(!runs_on(stage, 61));
  CHECK(runs_on(stage, 70));
  CHECK(runs_on(stage, 100));
}

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
  CHECK(layers.size() == 6 + 12 + 4 + 2 + 3);
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
        "conv3 (32,128,56,56)->128 3x3 stride 2", "conv4 (32,1024,14,14)->256 1x1", "Inception (32,48,35,35)->64 5x5"})
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

TEST_CASE("the rows beside a track's stages") {
  const auto names = [](std::string_view track, Backend backend) {
    std::vector<std::string_view> result;
    for (const StageInfo* row : rows_beside(track, backend)) {
      CHECK_FALSE(on_ladder(*row));
      CHECK(row->track == track);
      result.push_back(row->name);
    }
    return result;
  };
  using Names = std::vector<std::string_view>;
  CHECK(names("images", Backend::gpu) == Names{"cufft"});
  CHECK(names("lowering", Backend::gpu) == Names{"im2col-cublas"});
  CHECK(names("images", Backend::sim).empty());
  CHECK(names("lowering", Backend::sim).empty());
  CHECK(names("signals", Backend::gpu).empty());
  CHECK(names("cpu", Backend::gpu) == names("cpu", Backend::sim));
}

TEST_CASE("workloads are chosen by name, with or without spaces, or all") {
  CHECK(select_workloads("signals", Backend::gpu, "w=2^24 r=31").at(0).problem.s == 63);
  CHECK(select_workloads("signals", Backend::gpu, "w=2^24r=31").size() == 1);
  CHECK(select_workloads("signals", Backend::gpu, "all").size() == 10);
  CHECK(select_workloads("signals", Backend::gpu, "w=65536 r=5").empty());
}

TEST_CASE("arrays are read as signals, images or batches") {
  ConvProblem problem = problem_of_arrays({1000}, {11}, std::nullopt);
  CHECK(to_string(problem) == "n=1,c=1,h=1,w=1000,k=1,r=1,s=11");
  CHECK(problem.pad_w == 5);
  CHECK(to_string(problem_of_arrays({20, 30}, {3, 5}, std::nullopt)) == "n=1,c=1,h=20,w=30,k=1,r=3,s=5");
  problem = problem_of_arrays({2, 4, 20, 30}, {8, 4, 3, 3}, "stride_h=2,pad_w=0");
  CHECK(to_string(problem) == "n=2,c=4,h=20,w=30,k=8,r=3,s=3,pad_w=0,stride_h=2");
  CHECK(problem_of_arrays({2, 4, 20, 30}, {8, 1, 3, 3}, "groups=4").groups == 4);
  CHECK(to_string(problem_of_arrays({2, 1, 1, 30}, {5}, std::nullopt)) == "n=2,c=1,h=1,w=30,k=1,r=1,s=5");
}

TEST_CASE("arrays that do not fit are told") {
  const auto error = [](std::vector<std::int64_t> input, std::vector<std::int64_t> filter,
                        std::optional<std::string> shape = std::nullopt) {
    return usage_error([&] { problem_of_arrays(input, filter, shape); });
  };
  CHECK(has(error({2, 3, 4}, {3}), "--input has 3 dimensions"));
  CHECK(has(error({4}, {1, 1, 1, 1, 1}), "--filter has 5 dimensions"));
  CHECK(has(error({}, {1}), "--input has 0 dimensions"));
  CHECK(has(error({1, 4, 5, 5}, {1, 3, 3, 3}), "groups"));
  CHECK(has(error({1, 4, 5, 5}, {3, 1, 3, 3}, "groups=3"), "groups"));
  for (const char* key : {"n", "c", "h", "w", "k", "r", "s"}) {
    CHECK(has(error({100}, {3}, std::string(key) + "=100"), "leave it out"));
    CHECK(has(error({100}, {3}, "pad_w=1," + std::string(key) + "=1"), "leave it out"));
  }
  CHECK(error({100}, {3}, "stride_w=2,pad_h=0") == "");
  CHECK(has(error({100}, {3}, "stride_w"), "stride_w"));
}

TEST_CASE("the exit status: failures before refusals") {
  const auto status = [](std::vector<Status> statuses) {
    std::vector<RunResult> results;
    for (const Status each : statuses) results.emplace_back().status = each;
    return exit_status(results);
  };
  CHECK(status({Status::ok, Status::ok}) == 0);
  CHECK(status({Status::ok, Status::refused}) == 3);
  CHECK(status({Status::refused, Status::wrong}) == 1);
  CHECK(status({Status::fault}) == 1);
  CHECK(status({Status::error}) == 1);
}

/// A result of the stage that took so long.
RunResult timed(const StageInfo& stage, double median) {
  RunResult result;
  result.stage = &stage;
  result.status = Status::ok;
  result.problem = parse_shape("w=1000,s=3");
  result.time_us = TimeSummary{median, median, 0};
  return result;
}

TEST_CASE("speedups: over the previous stage, the first of the track, and cuDNN") {
  std::vector<RunResult> results{timed(find_stage("1"), 12), timed(find_stage("2"), 6), timed(find_stage("3"), 2)};
  results[2].cudnn.emplace();
  results[2].cudnn->trials = {{"WINOGRAD_NONFUSED", "NCHW", "ok", 8.0, 0}, {"FFT", "NCHW", "ok", 1.0, 0}};
  add_speedups(results);
  CHECK_FALSE(results[0].speedup.previous);
  CHECK(results[0].speedup.first == 1.0);
  CHECK(results[1].speedup.previous == 2.0);
  CHECK(results[2].speedup.previous == 3.0);
  CHECK(results[2].speedup.first == 6.0);
  CHECK(results[2].speedup.cudnn_winograd == 4.0);
  CHECK(results[2].speedup.cudnn_best == 0.5);
}

TEST_CASE("no speedup over a stage that was not right") {
  std::vector<RunResult> results{timed(find_stage("1"), 12), timed(find_stage("2"), 6)};
  results[0].status = Status::wrong;
  add_speedups(results);
  CHECK_FALSE(results[1].speedup.previous);
}

TEST_CASE("the roofline: L2 for small tensors, DRAM for large ones, fp32 for long filters") {
  Limits limits{{1e12, 2e12, 1e12, 1}, 1 << 20};
  RunResult result = timed(find_stage("1"), 10);
  add_roofline(result, nullptr);
  CHECK(result.roofline->bytes == 4 * (1000 + 3 + 1000));
  CHECK(result.roofline->flops == 2 * 1000 * 3);
  CHECK_FALSE(result.roofline->floor_us);

  limits.ceilings.fp32_flops_per_s = 1e15;
  add_roofline(result, &limits);
  CHECK(result.roofline->bound == "L2");
  CHECK(*result.roofline->floor_us == doctest::Approx(8012 / 2e12 * 1e6));
  CHECK(*result.roofline->share == doctest::Approx(8012 / 2e12 * 1e6 / 10));
  result.problem = parse_shape("w=1000000,s=3");
  add_roofline(result, &limits);
  CHECK(result.roofline->bound == "DRAM");
  limits.ceilings.fp32_flops_per_s = 1e9;
  add_roofline(result, &limits);
  CHECK(result.roofline->bound == "fp32");
}

TEST_CASE("the roofline of other element types: their bytes, and their rate where there is one") {
  StageInfo stage = find_stage("1");
  RunResult result = timed(stage, 10);
  Limits limits{{1e12, 2e12, 1e12, 1}, 1 << 20};
  stage.dtype = "fp16";
  add_roofline(result, &limits);
  CHECK(result.roofline->bytes == 2 * (1000 + 3 + 1000));
  CHECK_FALSE(result.roofline->floor_us);
  limits.ceilings.fp16_flops_per_s = 1e9;
  add_roofline(result, &limits);
  CHECK(result.roofline->bound == "fp16");
  CHECK(*result.roofline->floor_us == doctest::Approx(6000 / 1e9 * 1e6));
  stage.dtype = "int8";
  add_roofline(result, nullptr);
  CHECK(result.roofline->bytes == 1000 + 1000 + 3);
  stage.track = "winograd";  // reads and writes halves
  limits.ceilings.int8_ops_per_s = 2e9;
  add_roofline(result, &limits);
  CHECK(result.roofline->bytes == 2 * (1000 + 1000) + 3);
  CHECK(result.roofline->bound == "int8");
  CHECK(*result.roofline->floor_us == doctest::Approx(6000 / 2e9 * 1e6));
}

TEST_CASE("the roofline of a Winograd stage: its own operations, if they are fewer") {
  StageInfo stage = find_stage("1");
  RunResult result = timed(stage, 10);
  result.prediction.emplace();
  result.prediction->flops = 4000;
  add_roofline(result, nullptr);
  CHECK(result.roofline->flops == 6000);
  stage.track = "winograd";
  add_roofline(result, nullptr);
  CHECK(result.roofline->flops == 4000);
  result.prediction->flops = 7000;
  add_roofline(result, nullptr);
  CHECK(result.roofline->flops == 6000);
  result.prediction->flops = -1;
  add_roofline(result, nullptr);
  CHECK(result.roofline->flops == 6000);
}

TEST_CASE("a comparison names what changed most, what is new and what is gone") {
  std::vector<RunResult> results{timed(find_stage("1"), 1), timed(find_stage("3"), 1)};
  for (RunResult& result : results) {
    result.time_us.reset();
    result.counters.emplace();
  }
  results[0].counters->global_load_bytes = 100;
  results[1].counters->global_load_bytes = 10;
  results[0].counters->atomic_requests = 1;
  results[1].counters->barriers = 4;
  const std::string text = comparison_text(results);
  CHECK(has(text,
            "03-tiled-1d against 01-naive-1d: global_load_bytes falls 10.0x; new: barriers; gone: atomic_requests"));
  CHECK(has(text, "0.100x"));
}

TEST_CASE("files appear whole, replace what was there, and leave nothing beside them") {
  const Folder folder;
  const fs::path file = folder / "out.json";
  require_writable(file);
  CHECK(fs::is_empty(folder.path()));
  write_file(file, "one");
  write_file(file, "two");
  std::ifstream stream(file);
  CHECK(std::string(std::istreambuf_iterator<char>(stream), {}) == "two");
  CHECK(folder.entries() == 1);
}

TEST_CASE("paths that cannot be written are told before the work") {
  const Folder folder;
  for (const fs::path& path : {folder.path(), folder / "missing" / "out.json", fs::path("/dev/null"), fs::path("")}) {
    CAPTURE(path.string());
    CHECK(has(usage_error([&] { require_writable(path); }), "cannot write"));
  }
  CHECK(fs::is_empty(folder.path()));
}

TEST_CASE("without a shape the track's first workload is run") {
  const UserProblem user = read_problem({}, "signals");
  CHECK(user.name == workloads_of("signals", backend()).front().name);
  ProblemOptions options;
  options.shape = "w=9,s=3";
  options.padding = "reflect";
  CHECK(read_problem(options, "signals").problem.padding == Padding::reflect);
  CHECK(read_problem(options, "signals").name == "");
  options.padding = "circular";
  CHECK(has(usage_error([&] { read_problem(options, "signals"); }), "circular"));
}

}  // namespace
}  // namespace convladder
