#include "common/harness/baselines/rows_beside.hpp"

#include <algorithm>
#include <span>

#include "common/harness/baselines/cpu_rows.hpp"
#include "common/harness/baselines/library_rows.hpp"
#include "common/harness/baselines/python_rows.hpp"
#include "common/harness/baselines/settings_rows.hpp"

namespace convladder {
namespace {

std::span<const StageInfo> rows_of(RowsBeside kind, Backend backend) {
  switch (kind) {
    case RowsBeside::none:
      return {};
    case RowsBeside::cpu:
      return cpu_rows();
    case RowsBeside::knobs:
      return settings_rows();
    case RowsBeside::tiles:  // they differ in speed and error; what the simulator counts of them the lesson has
      return backend == Backend::gpu ? std::span<const StageInfo>(settings_rows()) : std::span<const StageInfo>();
  }
  return {};
}

/// Of those of the winograd track no row took less than 95% of its stage's time, on any layer, on an H200 and an H100.
constexpr std::string_view kAblated[] = {"im2win-cpu",         "winograd-fused",   "winograd-sync-free",
                                         "winograd-pkf-shmem", "winograd-pkf-llc", "winograd-int8"};

}  // namespace

bool is_ablation(const StageInfo& row) {
  const std::size_t space = row.name.find(' ');  // between the stage's name and what is set
  return space != std::string_view::npos &&
         std::ranges::find(kAblated, row.name.substr(0, space)) != std::end(kAblated);
}

std::vector<const StageInfo*> rows_beside(std::string_view track, Backend backend) {
  std::vector<const StageInfo*> rows;
  const auto add = [&](std::span<const StageInfo> those) {
    for (const StageInfo& row : those)
      if (row.track == track) rows.push_back(&row);
  };
  add(rows_of(track_named(track).rows_beside, backend));
  if (backend == Backend::gpu) add(library_rows());
  if (backend == Backend::gpu || track_named(track).runs_on == RunsOn::host) add(python_rows());
  return rows;
}

}  // namespace convladder
