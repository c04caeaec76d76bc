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
  for (const char* text : {"", "0", "99", "-1", "1 ", "1x", "99999999999999999999", "naive-1d/"}) {
    CAPTURE(text);
    CHECK(has(usage_error([&] { find_stage(text); }), "unknown stage"));
  }
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
