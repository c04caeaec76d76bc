#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "common/harness/files/problem_io.hpp"
#include "common/harness/ladder/settings.hpp"
#include "common/stage/tunable.hpp"
#include "tests/stage_suite.hpp"

using namespace convladder;

namespace {

/// A part of the suite with every padding.
std::vector<SuiteCase> every_fourth_signal() {
  const std::vector<SuiteCase> suite = signal_suite();
  std::vector<SuiteCase> part;
  for (std::size_t i = 0; i < suite.size(); i += 4) part.push_back(suite[i]);
  return part;
}

/// Every configuration that is valid.
std::vector<std::string> configurations() {
  std::vector<std::string> all;
  for (const char* load : {"load=split,tiles=1", "load=split,tiles=2", "load=split,tiles=4", "load=whole,tiles=1"})
    for (const char* sum : {"outputs=1,window=4", "outputs=4,window=4", "outputs=4,window=16"})
      for (const char* taps : {"taps=known", "taps=run-time"})
        all.push_back(std::string(load) + "," + sum + "," + taps);
  all.emplace_back("outputs=16");
  return all;
}

/// The counters of a run inside and at the ends of a signal.
Counters counters_with(std::string_view settings, const char* stage = "04") {
  const RunResult result =
      run_case(find_stage(stage), {parse_shape("w=65536,s=11,pad_w=5"), InputKind::normal}, settings);
  CHECK_MESSAGE(result.status == Status::ok, result.reason);
  REQUIRE(result.counters);
  return *result.counters;
}

std::string refusal_of(const char* shape, std::initializer_list<int> values, std::int64_t shared_bytes) {
  DeviceLimits limits = device_limits();
  limits.shared_bytes_per_block = shared_bytes;
  const std::unique_ptr<Stage> stage(find_stage("04").make());
  const auto& tunable = dynamic_cast<const TunableStage&>(*stage);
  return tunable.check_configuration(parse_shape(shape), limits, with_values(tunable.knobs(), values)).reason();
}

}  // namespace

TEST_CASE("04 halo-1d: every shape is right") { check_suite("04", signal_suite()); }

TEST_CASE("04 halo-1d: every shape is right with each idea switched off, and with all") {
  for (const char* settings : {"load=whole,tiles=1", "tiles=1", "tiles=4", "outputs=1,window=4", "window=4",
                               "taps=run-time", "load=whole,tiles=1,outputs=1,window=4,taps=run-time"})
    check_suite("04", every_fourth_signal(), settings);
}

TEST_CASE("04 halo-1d: every shape is right with 16 outputs a thread") {
  check_suite("04", signal_suite(), "outputs=16");
  check_suite("04",
              {{parse_shape("n=2,w=6200,s=201,pad_w=100"), InputKind::normal},
               {parse_shape("w=8192,s=31,pad_w=20"), InputKind::normal}},
              "outputs=16");
  CHECK(refusal_of("w=9,s=3", {0, 1, 16, 16, 0}, 1 << 16).find("leave tiles out") != std::string::npos);
}

TEST_CASE("04 halo-1d: counters are what the lesson predicts (simulator)") {
  check_prediction("04", {"w=1", "w=4096,s=11", "n=3,w=257,s=5", "w=100,s=1025", "w=600,s=11,pad_w=0"});
}

TEST_CASE("04 halo-1d: and with every configuration (simulator)") {
  for (const std::string& settings : configurations())
    check_prediction("04", {"w=2900,s=7", "n=3,w=257,s=5", "w=100,s=1025", "w=600,s=9,pad_w=0"}, FilterForm::dense,
                     settings);
  check_prediction("04", {"w=6200,s=201,pad_w=100", "n=2,w=4096,s=15", "w=2048,s=33,pad_w=0"}, FilterForm::dense,
                   "outputs=16");
}

TEST_CASE("04 halo-1d: each switch changes what its idea is about (simulator)") {
  const Counters usual = counters_with("");
  CHECK(counters_with("load=whole,tiles=1").global_load_sectors == counters_with("", "03").global_load_sectors);
  CHECK(usual.barriers == 128);
  CHECK(counters_with("tiles=1").barriers == 256);
  CHECK(counters_with("tiles=4").barriers == 64);
  CHECK(counters_with("outputs=1,window=4").constant_load_requests == 4 * usual.constant_load_requests);
  CHECK(usual.shared_load_conflicts == 0);
  CHECK(counters_with("window=4").shared_load_conflicts == 512 * 14 * 3);
}

TEST_CASE("04 halo-1d: settings are refused by rule") {
  enum { kSplit, kWhole };
  const std::int64_t tile = (256 + 11 + 3) / 4 * 4 * 4;
  CHECK(refusal_of("w=64,s=11", {kSplit, 2, 4, 16, 0}, 2 * tile) == "");
  CHECK(refusal_of("w=64,s=11", {kSplit, 4, 4, 16, 0}, 4 * tile) == "");
  CHECK(refusal_of("w=64,s=11", {kSplit, 4, 4, 16, 0}, 4 * tile - 1) != "");
  CHECK(refusal_of("w=64,s=11", {kWhole, 1, 4, 16, 0}, tile) == "");
  CHECK(refusal_of("w=64,s=11", {kWhole, 2, 4, 16, 0}, 2 * tile) ==
        "with load=whole a thread waits for each element, and no tile is on its way: set tiles=1");
  CHECK(refusal_of("w=64,s=11", {kSplit, 2, 1, 4, 0}, 2 * tile) == "");
  CHECK(refusal_of("w=64,s=11", {kSplit, 2, 1, 16, 0}, 2 * tile) ==
        "with outputs=1 a window may begin at any word, not only at 16 bytes: set window=4");
}

TEST_CASE("04 halo-1d: 16 outputs a thread for long filters of long signals") {
  const std::unique_ptr<Stage> stage(find_stage("04").make());
  const auto& tunable = dynamic_cast<const TunableStage&>(*stage);
  const auto outputs = [&](const char* shape, const char* settings) {
    Configuration configuration(tunable.knobs());
    if (*settings) apply_settings(settings, configuration);
    return tunable.decided(parse_shape(shape), device_limits(), configuration)["outputs"];
  };
  CHECK(outputs("w=30000000,s=201", "") == 16);
  CHECK(outputs("w=16777216,s=31", "") == 16);
  CHECK(outputs("w=16777216,s=11", "") == 4);
  CHECK(outputs("w=65536,s=63", "") == 4);
  CHECK(outputs("w=16777216,s=63", "tiles=1") == 4);  // a choice that the kernel for long filters does not have
  CHECK(outputs("w=16777216,s=63", "outputs=4") == 4);
}

TEST_CASE("04 halo-1d: padding far beyond the filter takes no more shared memory") {
  ConvProblem problem;
  problem.w = 1000;
  problem.s = 3;
  problem.pad_w = 40000;
  check_suite("04", {{problem, InputKind::normal}});
}

TEST_CASE("04 halo-1d: refuses by rule") {
  check_refusal("04", "w=64,s=16385", "constant memory");
  check_refusal("04", "w=64,s=4", "odd filter");
}

TEST_CASE("04 halo-1d: the body's loads are aligned (simulator)") {
  const std::int64_t blocks_inside = 65536 / 512 - 2;
  int bodies = 0;
  for (const LineCounters& line : lines_of("04", "w=65536,s=11")) {
    if (line.counters.global_load_requests != blocks_inside * 512 / 32) continue;
    CHECK(line.counters.global_load_sectors == 4 * line.counters.global_load_requests);
    ++bodies;
  }
  CHECK(bodies == 1);
}

TEST_CASE("04 halo-1d: fewer sectors than 03 for the same bytes (simulator)") {
  ConvProblem problem;
  problem.w = 65536;
  problem.s = 11;
  problem.pad_w = 5;
  const RunResult tiled = run_case(find_stage("03"), {problem, InputKind::normal});
  const RunResult halo = run_case(find_stage("04"), {problem, InputKind::normal});
  CHECK(halo.counters->global_load_bytes == tiled.counters->global_load_bytes);
  CHECK(halo.counters->global_load_sectors * 10 < tiled.counters->global_load_sectors * 9);
}
