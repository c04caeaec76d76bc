#include "common/harness/ladder/registry.hpp"

#include <doctest/doctest.h>

#include "tests/usage_error.hpp"

namespace convladder {
namespace {

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
  for (const char* text : {"", "0", "99", "-1", "1 ", "1X", "99999999999999999999", "naive-1d/"}) {
    CAPTURE(text);
    CHECK(has(usage_error([&] { find_stage(text); }), "unknown stage"));
  }
}

TEST_CASE("a step is found by label, name and folder, and is of one chapter and on no ladder") {
  CHECK(steps().size() >= 6);
  std::size_t of_chapters = 0;
  for (const StageInfo& stage : stages()) {
    of_chapters += steps_of(stage).size();
    for (const StageInfo* step : steps_of(stage)) CHECK(label_of(*step).substr(0, 2) == label_of(stage));
  }
  CHECK(of_chapters == steps().size());
  for (const StageInfo& step : steps()) {
    CAPTURE(step.folder);
    CHECK(&find_stage(label_of(step)) == &step);
    CHECK(&find_stage(step.name) == &step);
    CHECK(&find_stage(step.folder) == &step);
    CHECK(is_step(step));
    CHECK_FALSE(on_ladder(step));
  }
  for (const StageInfo& stage : stages()) CHECK_FALSE(is_step(stage));
  CHECK(label_of(find_stage("3")) == "03");
}

TEST_CASE("an unknown step is told with those that the chapter has") {
  CHECK(has(usage_error([] { find_stage("32z"); }), "unknown step '32z'; chapter 32 has the steps 32a, 32b, 32c"));
  CHECK(has(usage_error([] { find_stage("31b"); }), "chapter 31 has the step 31a"));
  CHECK(has(usage_error([] { find_stage("3a"); }), "chapter 03 has no steps"));
  CHECK(has(usage_error([] { find_stage("99a"); }), "unknown stage '99a'"));
  CHECK(has(usage_error([] { find_stage("one-wgma"); }), "did you mean one-wgmma?"));
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

}  // namespace
}  // namespace convladder
