#include "common/rows_beside.hpp"

#include "common/cpu_rows.hpp"
#include "common/cublas_baseline.hpp"
#include "common/cufft_baseline.hpp"
#include "common/winograd_rows.hpp"

namespace convladder {

std::vector<const StageInfo*> rows_beside(std::string_view track, Backend backend) {
  std::vector<const StageInfo*> rows;
  for (const StageInfo& row : cpu_rows())
    if (row.track == track) rows.push_back(&row);
  for (const StageInfo& row : winograd_rows())
    if (row.track == track) rows.push_back(&row);
  if (backend != Backend::gpu) return rows;
  for (const StageInfo* row : {&cufft_row(), &cublas_row()})
    if (row->track == track) rows.push_back(row);
  return rows;
}

}  // namespace convladder
