#include "common/harness/ladder/settings.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "common/harness/baselines/rows_beside.hpp"
#include "common/harness/baselines/settings_rows.hpp"
#include "common/harness/files/errors.hpp"
#include "common/harness/files/problem_io.hpp"
#include "common/harness/run/runner.hpp"

namespace convladder {
namespace {

constexpr int kSides[] = {2, 4, 6};
constexpr int kWays[] = {0, 1};
constexpr const char* kWayWords[] = {"mask", "copy"};
constexpr Knob kKnobs[] = {{"m", kSides, 4}, {"padding", kWays, kWayWords, 0}};

/// Refuses m = 6 with a copy.
class TwoKnobs final : public TunableStage {
  Verdict check(const ConvProblem&, const DeviceLimits&) const override { return Verdict::accept(); }
  void launch(const ConvProblem&, const Tensors&, Stream) override {}
  Knobs knobs() const override { return kKnobs; }
  Verdict check_configuration(const ConvProblem&, const DeviceLimits&, const Configuration& chosen) const override {
    if (chosen["m"] == 6 && chosen["padding"] == 1) return Verdict::refuse("no copy with tiles of 6");
    return Verdict::accept();
  }
};

class NoKnobs final : public Stage {
  Verdict check(const ConvProblem&, const DeviceLimits&) const override { return Verdict::accept(); }
  void launch(const ConvProblem&, const Tensors&, Stream) override {}
};

constexpr StageInfo info(int number, std::string_view name, Stage* (*make)()) {
  return {number, name, name, name, "winograd", name, 0, "fp32", "NCHW", "000", "sm_70", make};
}
constexpr StageInfo kTwo = info(90, "90-two", [] { return static_cast<Stage*>(new TwoKnobs); });
constexpr StageInfo kNone = info(91, "91-none", [] { return static_cast<Stage*>(new NoKnobs); });

std::string complaint(std::string_view settings, const std::vector<const StageInfo*>& stages) {
  try {
    require_settings(settings, stages);
    return "";
  } catch (const UsageError& error) {
    return error.what();
  }
}

TEST_CASE("settings: knob=value, each once, and what a stage has") {
  CHECK(complaint("m=4", {&kTwo}) == "");
  CHECK(complaint("padding=copy,m=6", {&kTwo}) == "");
  for (const char* text : {"", "m", "m=", "=4", "m=4,", ",m=4", "m=4,,padding=copy"}) {
    CAPTURE(text);
    CHECK(complaint(text, {&kTwo}).starts_with("--configuration takes knob=value, as in m=4,tbm=32; got "));
  }
  CHECK(complaint("m=4,m=2", {&kTwo}) == "--configuration sets 'm' twice; choose one value");
  CHECK(complaint("m=5", {&kTwo}) == "m of 90-two must be 2, 4 or 6; got '5'");
  CHECK(complaint("m= 4", {&kTwo}) == "m of 90-two must be 2, 4 or 6; got ' 4'");
  CHECK(complaint("padding=1", {&kTwo}) == "padding of 90-two must be mask or copy; got '1'");
  CHECK(complaint("n=4", {&kTwo}) == "90-two has no knob 'n'; its knobs are m (2, 4 or 6), padding (mask or copy)");
  CHECK(complaint("m=4", {&kNone}) == "91-none has no configurations to choose from; leave out --configuration");
}

TEST_CASE("settings for several stages: each takes what it has") {
  CHECK(complaint("m=4", {&kNone, &kTwo}) == "");
  CHECK(complaint("n=4", {&kTwo, &kTwo}) ==
        "none of the stages has a knob 'n'; their knobs are m (2, 4 or 6), padding (mask or copy)");
}

TEST_CASE("settings leave the other knobs alone") {
  Configuration configuration(kKnobs);
  configuration["padding"] = 1;
  CHECK(apply_settings("m=2", configuration));
  CHECK((configuration["m"] == 2 && configuration["padding"] == 1));
  CHECK_FALSE(apply_settings("n=2", configuration));
  CHECK((configuration["m"] == 2 && configuration["padding"] == 1));
}

/// A run that writes nothing, so that it is wrong unless refused before.
RunResult run_with(const StageInfo& stage, std::string settings) {
  const Workload workload = make_workload("", parse_shape("h=4,w=4,r=3,s=3"), InputKind::normal, FilterForm::dense, 1);
  RunOptions options;
  options.settings = std::move(settings);
  return run_stage(stage, workload, options);
}

TEST_CASE("a run has the settings' configuration, or the default one") {
  RunResult result = run_with(kTwo, "padding=copy");
  REQUIRE(result.configuration);
  CHECK(result.configuration->origin == "given");
  CHECK((result.configuration->configuration.values[0] == 4 && result.configuration->configuration.values[1] == 1));
  result = run_with(kTwo, "");
  REQUIRE(result.configuration);
  CHECK(result.configuration->origin == "default");
  result = run_with(kTwo, "tbm=32");  // another stage's
  REQUIRE(result.configuration);
  CHECK(result.configuration->origin == "default");
}

TEST_CASE("a configuration that the stage rules out is refused, with the rule") {
  const RunResult result = run_with(kTwo, "m=6,padding=copy");
  CHECK(result.status == Status::refused);
  CHECK(result.reason == "no copy with tiles of 6");
  CHECK_FALSE(result.configuration);
}

TEST_CASE("a row with settings of its own runs with them") {
  StageInfo row = kTwo;
  row.number = 0;
  row.settings = "m=2";
  const RunResult result = run_with(row, "");
  REQUIRE(result.configuration);
  CHECK(result.configuration->origin == "given");
  CHECK(result.configuration->configuration.values[0] == 2);
}

/// Checks the rows with settings below a track. @return their names
std::vector<std::string_view> names_of_settings_rows(std::string_view track) {
  std::vector<std::string_view> names;
  for (const StageInfo& row : settings_rows()) {
    if (row.track != track) continue;
    CAPTURE(row.name);
    CHECK_FALSE(on_ladder(row));
    CHECK(row.previous == 0);
    CHECK(row.name.ends_with(row.settings));
    CHECK(std::find(names.begin(), names.end(), row.name) == names.end());
    names.push_back(row.name);
    const StageInfo& stage = find_stage(row.name.substr(0, row.name.find(' ')));
    CHECK(stage.dtype == row.dtype);
    CHECK(stage.number == row.settings_of);
    CHECK_NOTHROW(require_settings(row.settings, {&stage}));
  }
  return names;
}

TEST_CASE("the configurations of a stage: as it comes, then its rows") {
  const auto names = [](int number) {
    std::vector<std::string_view> result;
    for (const StageInfo* each : configurations_of(number)) result.push_back(each->name);
    return result;
  };
  using Names = std::vector<std::string_view>;
  CHECK(names(23) == Names{"winograd", "winograd m=4", "winograd m=6"});
  CHECK(names(2) == Names{"constant-1d"});
  CHECK(names(0).empty());
  CHECK(names(99).empty());
}

TEST_CASE("beside the winograd track's stages stand the other values of their knobs") {
  const std::vector<std::string_view> names = names_of_settings_rows("winograd");
  for (const char* name : {"winograd m=4", "winograd m=6"}) {
    CAPTURE(name);
    CHECK(std::find(names.begin(), names.end(), name) != names.end());
  }
  CHECK(std::find(names.begin(), names.end(), "winograd m=2") == names.end());  // the stage itself
  CHECK(rows_beside("winograd", Backend::sim).size() == names.size());
  CHECK(rows_beside("winograd", Backend::gpu).size() > names.size());  // what stands on libraries follows them
}

TEST_CASE("beside the hopper track's stages stand the tiles of 35, on a GPU, for every number of channels") {
  const std::vector<std::string_view> names = names_of_settings_rows("hopper");
  CHECK(names == std::vector<std::string_view>{"winograd-fp32 bound=1e-4,tile=4x4", "winograd-fp32 bound=1e-4,tile=6x6",
                                               "winograd-fp32 bound=1e-4,tile=7x4",
                                               "winograd-fp32 bound=1e-4,tile=7x7"});
  REQUIRE(rows_beside("hopper", Backend::gpu).size() > names.size());  // what stands on libraries follows them
  CHECK(rows_beside("hopper", Backend::sim).empty());

  const std::unique_ptr<Stage> stage(find_stage("winograd-fp32").make());
  const auto& tunable = dynamic_cast<const TunableStage&>(*stage);
  for (const int channels : {64, 1024}) {
    const ConvProblem problem = parse_shape(fmt::format("n=128,c={},h=7,w=7,k=512,r=3,s=3", channels));
    for (const StageInfo* row : rows_beside("hopper", Backend::gpu)) {
      CAPTURE(row->name);
      if (row->settings.empty()) continue;
      Configuration configuration = tunable.default_configuration(problem, {});
      apply_settings(row->settings, configuration);
      CHECK(tunable.check_configuration(problem, {}, configuration).accepted());
    }
  }
}

}  // namespace
}  // namespace convladder
