#include "common/harness/ladder/tracks.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>

#include "common/harness/device/device.hpp"
#include "common/harness/ladder/registry.hpp"
#include "common/harness/ladder/workloads.hpp"

namespace convladder {
namespace {

TEST_CASE("every track is found by its name, and is named once") {
  std::set<std::string_view> names;
  for (const Track& track : tracks()) {
    CHECK(&track_named(track.name) == &track);
    CHECK(names.insert(track.name).second);
  }
  CHECK_THROWS_WITH_AS(track_named("nowhere"), "there is no track nowhere", std::logic_error);
}

TEST_CASE("the table is as tracks.json says") {
  const Track &images = track_named("images"), &cpu = track_named("cpu"), &winograd = track_named("winograd");
  CHECK(images.runs_on == RunsOn::device);
  CHECK(images.filter == FilterForm::rank_one);
  CHECK(images.rows_beside == RowsBeside::none);
  CHECK(images.pictures);
  CHECK_FALSE(images.sounds);
  CHECK(track_named("signals").sounds);
  CHECK_FALSE(images.lowers);
  CHECK(images.prune_shapes.size() == 4);
  CHECK(images.prune_shapes.front() == "h=5,w=7,r=3,s=3");
  CHECK(cpu.runs_on == RunsOn::host);
  CHECK(cpu.suite == "lowering");
  CHECK(cpu.lowers);
  CHECK(cpu.prune_shapes.empty());
  CHECK(winograd.uses_winograd);
  CHECK(winograd.fp32_error == 5e-6);
  CHECK(winograd.filter == FilterForm::dense);
}

TEST_CASE("every track has workloads for both devices, with filters of its form") {
  for (const Track& track : tracks()) {
    CAPTURE(std::string(track.name));
    for (const Backend backend : {Backend::gpu, Backend::sim}) {
      const std::vector<NamedWorkload> workloads = workloads_of(track.name, backend);
      CHECK_FALSE(workloads.empty());
      for (const NamedWorkload& workload : workloads) CHECK(workload.filter == track.filter);
    }
  }
}

TEST_CASE("the first stages of the tracks stand in the order of the tracks") {
  auto track = tracks().begin();  // the next one that no stage was of
  for (const StageInfo& stage : stages()) {
    CAPTURE(std::string(stage.folder));
    CHECK(&track_of(stage) == &track_named(stage.track));
    if (track != tracks().end() && track->name == stage.track) ++track;  // later stages may go on with an earlier track
    CHECK(std::any_of(tracks().begin(), track, [&](const Track& begun) { return begun.name == stage.track; }));
  }
  CHECK(track == tracks().end());
}

}  // namespace
}  // namespace convladder
