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

TEST_CASE("a stage that computes in another type, too, is found by it") {
  CHECK(variants().size() >= 3);
  for (const StageInfo& variant : variants()) {
    CAPTURE(std::string(variant.folder));
    const StageInfo& stage = find_stage(std::to_string(variant.number));
    CHECK(&stage != &variant);
    CHECK(variant.dtype == "bf16");
    CHECK(to_string(variant.tensors) == "bf16 NHWC");
    CHECK(variant.previous == stage.previous);
    CHECK(precision_of(variant) == Precision::bf16);
    CHECK(designation_of(variant) == std::string(label_of(stage)) + ":bf16");
    CHECK(&find_stage(designation_of(variant)) == &variant);
    CHECK(&find_stage(variant.name) == &variant);
    CHECK(&find_stage(variant.folder) == &variant);
    CHECK(in_type(stage, "bf16") == &variant);
    CHECK(in_type(variant, "fp16") == &stage);
    CHECK(&find_stage(std::string(stage.name) + ":fp16") == &stage);
  }
  CHECK(in_type(find_stage("32"), "int8") == nullptr);
  CHECK(&require_type(find_stage("32"), std::nullopt) == &find_stage("32"));
  CHECK(usage_error([] { find_stage("32:int8"); }) == "32-implicit-gemm-hopper computes in fp16 and bf16; got 'int8'");
  CHECK(usage_error([] { find_stage("16:bf16"); }) == "16-direct computes in fp32; got 'bf16'");
  CHECK(has(usage_error([] { find_stage("zzz:bf16"); }), "unknown stage 'zzz'"));
}

TEST_CASE("an unknown stage is told with the nearest name") {
  CHECK(has(usage_error([] { find_stage("tild-1d"); }), "did you mean tiled-1d?"));
  CHECK_FALSE(has(usage_error([] { find_stage("zzzzzz"); }), "did you mean"));
  for (const char* text : {"", "0", "99", "-1", "1 ", "99999999999999999999", "naive-1d/", "chapters/"}) {
    CAPTURE(text);
    CHECK(has(usage_error([&] { find_stage(text); }), "unknown stage"));
  }
}

TEST_CASE("a folder may be given with its path, as a shell completes it") {
  CHECK(&find_stage("chapters/03-tiled-1d") == &find_stage("3"));
  CHECK(&find_stage("chapters/03-tiled-1d/") == &find_stage("3"));
  CHECK(&find_stage("chapters/32-implicit-gemm-hopper/32a-tma-row/") == &find_stage("32a"));
  CHECK(has(usage_error([] { find_stage(std::string("chapters/") + "nowhere"); }), "unknown stage"));
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
