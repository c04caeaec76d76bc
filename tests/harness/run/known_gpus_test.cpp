// Every stage as it comes, on GPUs that are not here.

#include <doctest/doctest.h>

#include <memory>
#include <set>
#include <string>

#include "common/harness/commands/fusion_space.hpp"
#include "common/harness/ladder/registry.hpp"
#include "common/harness/ladder/workloads.hpp"
#include "common/stage/tunable.hpp"

using namespace convladder;

namespace {

/// Why the stage, with nothing tuned or chosen, does not run the problem on a device of these limits, or "".
std::string refusal_by_default(const StageInfo& info, const ConvProblem& problem, const DeviceLimits& limits) {
  if (!runs_on(info, limits.compute_capability)) return "needs " + std::string(info.requires_capability);
  const std::unique_ptr<Stage> stage(info.make());
  const Verdict verdict = stage->check(problem, limits);
  const auto* const tunable = dynamic_cast<const TunableStage*>(stage.get());
  if (!verdict.accepted() || !tunable) return verdict.reason();
  const Configuration usual = tunable->decided(problem, limits, tunable->default_configuration(problem, limits));
  return tunable->check_configuration(problem, limits, usual).reason();
}

/// What a stage's page says that it refuses.
struct Known {
  int stage;
  const char* rule;       ///< a part of it
  const char* gpus = "";  ///< where; "" for every GPU: the rule is about the layer
};
constexpr Known kKnown[] = {
    {9, "bytes of shared memory, a block has", "V100, RTX 2080 Ti, T4, RTX 3090, RTX 4090, L4"},
    {33, "the filter must be 3 x 3"},
    {33, "the stride must be 1"},
    {33, "are slower than stage 32"},
    {35, "the filter must be 3 x 3"},
    {35, "the stride must be 1"},
    {37, "the filter must be 3 x 3"},
    {37, "the stride must be 1"},
};

/// Which of them it is, or null.
const Known* known_rule(const StageInfo& stage, const FusionGpu& gpu, const std::string& rule) {
  for (const Known& known : kKnown) {
    if (known.stage == stage.number && rule.find(known.rule) != std::string::npos &&
        (!*known.gpus || std::string(known.gpus).find(gpu.name) != std::string::npos))
      return &known;
  }
  return nullptr;
}

}  // namespace

TEST_CASE("every stage's default is valid on every GPU that is known, or refused by a rule of its page") {
  std::set<const Known*> met;
  for (const StageInfo& stage : stages()) {
    if (runs_on_host(stage)) continue;
    for (const FusionGpu& gpu : known_gpus()) {
      for (const NamedWorkload& workload : workloads_of(stage.track, Backend::gpu)) {
        const std::string rule = refusal_by_default(stage, workload.problem, gpu.limits());
        CAPTURE(std::string(stage.folder));
        CAPTURE(gpu.name);
        CAPTURE(workload.name);
        if (rule.empty() || rule == "needs " + std::string(stage.requires_capability)) continue;
        const Known* const known = known_rule(stage, gpu, rule);
        CHECK_MESSAGE(known, rule);
        met.insert(known);
      }
    }
  }
  for (const Known& known : kKnown) {
    CAPTURE(known.stage);
    CAPTURE(known.rule);
    CHECK_MESSAGE(met.contains(&known), "no stage refuses so any more: take the line out");
  }
}

TEST_CASE("25's default runs where a block has 64 KB of shared memory") {
  const ConvProblem problem = workloads_of("winograd", Backend::gpu).front().problem;
  for (const char* name : {"RTX 2080 Ti", "T4"})
    CHECK(refusal_by_default(find_stage("25"), problem, known_gpu(name).limits()) == "");
}
