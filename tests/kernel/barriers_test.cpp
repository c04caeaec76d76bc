#include "tests/kernel/barriers.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "common/harness/commands/prune.hpp"
#include "common/harness/files/errors.hpp"
#include "common/harness/files/problem_io.hpp"
#include "common/harness/run/refusal.hpp"

using namespace convladder;

namespace {

constexpr const char* kFile = "tests/kernel/barriers.cu";

int line_of(const std::string& marker) {
  std::ifstream file(CONVLADDER_SOURCE_DIR "/" + std::string(kFile));
  std::string text;
  for (int line = 1; std::getline(file, text); ++line)
    if (text.find("// <- " + marker + ":") != std::string::npos) return line;
  FAIL("no marker " << marker);
  return 0;
}

StageInfo stage_with_barriers() {
  StageInfo info{};
  info.name = info.folder = info.title = "barriers";
  info.track = "signals";
  info.dtype = "fp32";
  info.layout = "NCHW";
  info.requires_capability = "sm_70";
  info.make = make_stage_with_barriers;
  return info;
}

RunOptions untimed() {
  RunOptions options;
  options.time = false;
  return options;
}

const std::vector<ConvProblem> kShapes = {parse_shape("w=41,s=2"), parse_shape("w=131,s=2"), parse_shape("w=20,s=3")};

}  // namespace

TEST_CASE("prune: which barriers are needed, and which of them outputs do not show (simulator)") {
  const PruneReport report = prune(stage_with_barriers(), kShapes, untimed());
  CHECK(report.shapes.size() == 2);  // the stage refuses the third
  REQUIRE(report.findings.size() == 3);
  for (const BarrierFinding& finding : report.findings) {
    CHECK(finding.barrier.file == kFile);
    CHECK(finding.barrier.kernels == std::vector<std::string>{"pairs<32>", "pairs<64>"});
    CHECK(finding.barrier.passed == 2 + 3);
    CHECK(finding.trials.size() == 2);
  }
  const BarrierFinding &unseen = report.findings[0], &seen = report.findings[1], &unneeded = report.findings[2];
  CHECK(unseen.barrier.line == line_of("unseen"));
  CHECK(seen.barrier.line == line_of("seen"));
  CHECK(unneeded.barrier.line == line_of("unneeded"));

  CHECK(unseen.needed());
  CHECK(unseen.faults_unseen() == 2);
  for (const BarrierTrial& trial : unseen.trials) {
    CHECK(trial.right);
    REQUIRE(!trial.faults.empty());
    CHECK(trial.faults.front().kind == "race");
    CHECK(trial.faults.front().line == unseen.barrier.line + 1);
    CHECK(trial.faults.front().other.starts_with(kFile));
  }
  CHECK(seen.needed());
  CHECK(seen.faults_unseen() == 0);
  CHECK(std::none_of(seen.trials.begin(), seen.trials.end(), [](const BarrierTrial& trial) { return trial.right; }));
  CHECK(!unneeded.needed());

  CHECK(unseen.first_fault().first == &unseen.trials.front().faults.front());
  CHECK(unseen.first_fault().second == &unseen.trials.front());
  CHECK(unneeded.first_fault().first == nullptr);
}

TEST_CASE("prune: greedily, what is not needed stays away and what is needed comes back (simulator)") {
  const PruneReport report = prune(stage_with_barriers(), kShapes, untimed(), Removal::greedy);
  REQUIRE(report.findings.size() == 3);
  CHECK(report.findings[0].needed());
  CHECK(report.findings[1].needed());  // alone: the first is back
  CHECK(report.findings[1].faults_unseen() == 0);
  CHECK_FALSE(report.findings[2].needed());
}

TEST_CASE("prune: leaves the barriers where they were (simulator)") {
  prune(stage_with_barriers(), kShapes, untimed());
  CHECK(prune(stage_with_barriers(), kShapes, untimed()).findings.size() == 3);
}

TEST_CASE("prune: a stage that accepts none of the shapes") {
  CHECK_THROWS_WITH_AS(prune(stage_with_barriers(), {kShapes.back()}, untimed()),
                       "barriers refuses every shape that prune knows", UsageError);
}

TEST_CASE("prune: every stage with kernels accepts shapes of its track (simulator)") {
  for (const StageInfo& stage : stages()) {
    if (runs_on_host(stage)) continue;
    CAPTURE(std::string(stage.folder));
    const std::vector<ConvProblem> shapes = prune_shapes(stage.track);
    const auto accepted = std::count_if(
        shapes.begin(), shapes.end(), [&](const ConvProblem& shape) { return refusal(stage, shape, nullptr).empty(); });
    CHECK(accepted >= 2);
  }
}
