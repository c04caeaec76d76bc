#include "common/harness/commands/bench_plan.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "common/harness/files/errors.hpp"
#include "common/harness/files/problem_io.hpp"
#include "tests/usage_error.hpp"

namespace convladder {
namespace {

using Names = std::vector<std::string>;

Names names_of(const std::vector<const StageInfo*>& stages) {
  Names names;
  for (const StageInfo* stage : stages) names.emplace_back(stage->name);
  return names;
}

BenchCommand of_stages(Names stages) {
  BenchCommand command;
  command.stages = std::move(stages);
  return command;
}

BenchCommand of_shapes(Names shapes) {
  BenchCommand command;
  command.shapes = std::move(shapes);
  return command;
}

bool has_name(const std::vector<const StageInfo*>& stages, std::string_view name) {
  return std::any_of(stages.begin(), stages.end(), [&](const StageInfo* stage) { return stage->name == name; });
}

TEST_CASE("a GPU also measures what the ratios over previous stages need, and no more") {
  PlannedWorkload planned = planned_workloads(of_stages({"3"}), Backend::gpu).front();
  CHECK(names_of(planned.stages) == Names{"tiled-1d"});
  CHECK(names_of(planned.followed) == Names{"constant-1d"});
  planned = planned_workloads(of_stages({"25"}), Backend::gpu).front();
  CHECK(names_of(planned.followed) == Names{"winograd-bgemm", "winograd-bgemm m=4", "winograd-bgemm m=6"});
  planned = planned_workloads(of_stages({"2", "3"}), Backend::gpu).front();
  CHECK(names_of(planned.followed) == Names{"naive-1d"});
  CHECK(planned_workloads(of_stages({"1"}), Backend::gpu).front().followed.empty());
}

TEST_CASE("stages in one type: those that compute in it, each over the previous one in it") {
  const auto in_type = [](const char* dtype) {
    BenchCommand command;
    command.dtype = std::make_optional<std::string>(dtype);
    return command;
  };
  BenchCommand command = in_type("bf16");
  CHECK(names_of(chosen_stages(command)) ==
        Names{"implicit-gemm:bf16", "implicit-gemm-hopper:bf16", "winograd-hopper:bf16"});
  command.stages = {"33", "32"};
  PlannedWorkload planned = planned_workloads(command, Backend::gpu).front();
  CHECK(names_of(planned.stages) == Names{"implicit-gemm-hopper:bf16", "winograd-hopper:bf16"});
  CHECK(names_of(planned.followed) == Names{"implicit-gemm:bf16"});
  command.stages = {"34"};
  CHECK(has(usage_error([&] { chosen_stages(command); }), "34-int8-hopper computes in int8; got 'bf16'"));
  planned = planned_workloads(of_stages({"32", "32:bf16"}), Backend::sim).front();
  CHECK(names_of(planned.stages) == Names{"implicit-gemm-hopper", "implicit-gemm-hopper:bf16"});

  command = in_type("bf16");
  command.tracks = {"hopper"};
  planned = planned_workloads(command, Backend::gpu).front();
  CHECK(planned.stages.size() == 3);
  for (const StageInfo* stage : planned.stages) CHECK(stage->dtype == "bf16");
  CHECK(has(usage_error([&] { chosen_stages(in_type("fp64")); }), "computes in 'fp64'"));
}

TEST_CASE("the whole winograd track has every row that its ratios need; the hopper track lacks those of 25") {
  BenchCommand command;
  command.tracks = {"winograd"};
  for (const PlannedWorkload& planned : planned_workloads(command, Backend::gpu)) CHECK(planned.followed.empty());
  command.tracks = {"hopper"};
  for (const PlannedWorkload& planned : planned_workloads(command, Backend::gpu)) {
    CHECK(has_name(planned.stages, "winograd-fp32"));
    CHECK_FALSE(has_name(planned.stages, "winograd-fused"));
    CHECK(planned.followed.size() == (planned.without_ablations ? 1 : 10));
    CHECK(has_name(planned.followed, "winograd-fused"));
    CHECK(has_name(planned.followed, "winograd-fused buffers=1") != planned.without_ablations);
  }
}

TEST_CASE("ablations are on a track's first workload alone, unless workloads or stages are named") {
  const auto with = [](const char* track, const Names& names) {
    BenchCommand command;
    command.tracks = {track};
    command.workloads = names;
    return planned_workloads(command, Backend::gpu);
  };
  for (const char* name : {"winograd-fused buffers=1", "winograd-sync-free sync=block", "winograd-pkf-shmem tbm=32",
                           "winograd-pkf-llc tbm=32", "winograd-int8 sums=int32"}) {
    CAPTURE(name);
    const std::vector<PlannedWorkload> first_three = with("winograd", {});
    REQUIRE(first_three.size() == 3);
    for (const PlannedWorkload& planned : first_three) {
      CHECK(has_name(planned.stages, name) == (&planned == first_three.data()));
      CHECK_FALSE(has_name(planned.followed, name));  // not measured for a ratio either
      for (const char* faster : {"winograd m=4", "winograd-bgemm m=6", "winograd-tensor-core row_offset=0"})
        CHECK(has_name(planned.stages, faster));
    }
    for (const PlannedWorkload& planned : with("winograd", {"all"})) CHECK(has_name(planned.stages, name));
  }
  for (const PlannedWorkload& planned : with("cpu", {})) {
    CHECK(has_name(planned.stages, "direct-cpu"));
    CHECK(has_name(planned.stages, "im2win-cpu"));
    CHECK(has_name(planned.stages, "im2win-cpu + SIMD") != planned.without_ablations);
  }
  for (const PlannedWorkload& planned : with("hopper", {}))
    CHECK(has_name(planned.stages, "winograd-fp32 bound=1e-4,tile=7x7"));
  for (const PlannedWorkload& planned : planned_workloads(of_stages({"35"}), Backend::gpu))
    CHECK(has_name(planned.followed, "winograd-fused buffers=1"));
}

TEST_CASE("the simulator, which has no times, measures nothing for a ratio") {
  for (const PlannedWorkload& planned : planned_workloads(of_stages({"3", "25", "35"}), Backend::sim))
    CHECK(planned.followed.empty());
}

TEST_CASE("a user's layer: every stage that takes it, of every track, and the rows beside them") {
  const std::vector<PlannedWorkload> all = planned_workloads(
      of_shapes({"s=3,r=3,w=12,h=12,c=8,k=8", "c=8,h=12,w=12,k=8,r=3,s=3", "w=100,s=5"}), Backend::sim);
  REQUIRE(all.size() == 2);  // the first two are one
  const PlannedWorkload& layer = all.front();
  CHECK(layer.named.name == "n=1,c=8,h=12,w=12,k=8,r=3,s=3");
  CHECK(layer.named.filter == FilterForm::dense);
  for (const char* name : {"direct", "im2win-cpu", "winograd", "winograd-fp32", "winograd m=4", "onednn"}) {
    CAPTURE(name);
    CHECK(has_name(layer.stages, name));
  }
  for (const char* name : {"naive-1d", "naive-2d", "depthwise-naive"}) {
    CAPTURE(name);
    CHECK_FALSE(has_name(layer.stages, name));
  }
  CHECK(std::is_partitioned(layer.stages.begin(), layer.stages.end(),
                            [](const StageInfo* stage) { return !runs_on_host(*stage); }));
  CHECK(has_name(all[1].stages, "naive-1d"));
  CHECK_FALSE(has_name(all[1].stages, "winograd m=4"));
}

TEST_CASE("a user's image has a filter that every stage of the images track takes") {
  const PlannedWorkload image = planned_workloads(of_shapes({"h=20,w=30,r=3,s=3"}), Backend::sim).front();
  CHECK(image.named.filter == FilterForm::rank_one);
  CHECK(has_name(image.stages, "separable"));
  CHECK(has_name(image.stages, "winograd"));
}

TEST_CASE("a user's layer, by stages and by tracks") {
  BenchCommand command = of_shapes({"c=8,h=12,w=12,k=8,r=3,s=3"});
  command.padding = "reflect";
  command.stages = {"1", "25"};
  const PlannedWorkload layer = planned_workloads(command, Backend::gpu).front();
  CHECK(layer.named.problem.padding == Padding::reflect);
  CHECK(names_of(layer.stages) == Names{"naive-1d", "winograd-fused"});  // 01 refuses it, and says so in its row
  CHECK(layer.followed.size() == 3);
  command.stages.clear();
  command.tracks = {"cpu"};
  CHECK(planned_workloads(command, Backend::sim).front().stages.front()->name == "im2win-cpu");
  command.tracks = {"images"};
  CHECK_THROWS_WITH_AS(planned_workloads(command, Backend::sim),
                       "no stage takes n=1,c=8,h=12,w=12,k=8,r=3,s=3; 05-naive-2d: the 2-D stages want one channel: "
                       "c=1, k=1; got c=8, k=8 (put the channels in n)",
                       RefusedError);
}

TEST_CASE("a shape that is none") {
  for (const char* shape : {"", "w=0", "ww=3", "w=1000000000000000"}) {
    CAPTURE(shape);
    CHECK(usage_error([&] { planned_workloads(of_shapes({"w=9", shape}), Backend::sim); }) != "");
  }
}

}  // namespace
}  // namespace convladder
