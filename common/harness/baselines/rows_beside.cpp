#include "common/harness/baselines/rows_beside.hpp"

#include "common/harness/baselines/cpu_rows.hpp"
#include "common/harness/baselines/library_rows.hpp"
#include "common/harness/baselines/settings_rows.hpp"

namespace convladder {

std::vector<const StageInfo*> rows_beside(std::string_view track, Backend backend) {
  std::vector<const StageInfo*> rows;
  for (const StageInfo& row : cpu_rows())
    if (row.track == track) rows.push_back(&row);
  // Tiles differ in speed and error; what the simulator counts of them the lesson has.
  for (const StageInfo& row : settings_rows())
    if (row.track == track && (backend == Backend::gpu || track != "hopper")) rows.push_back(&row);
  if (backend != Backend::gpu) return rows;
  for (const StageInfo* row : {&cufft_row(), &cublas_row()})
    if (row->track == track) rows.push_back(row);
  return rows;
}

}  // namespace convladder
