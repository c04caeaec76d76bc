#include "common/harness/baselines/rows_beside.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

namespace convladder {
namespace {

TEST_CASE("the rows beside a track's stages") {
  const auto names = [](std::string_view track, Backend backend) {
    std::vector<std::string_view> result;
    for (const StageInfo* row : rows_beside(track, backend)) {
      CHECK_FALSE(on_ladder(*row));
      CHECK(row->track == track);
      result.push_back(row->name);
    }
    return result;
  };
  using Names = std::vector<std::string_view>;
  CHECK(names("images", Backend::gpu) == Names{"cufft", "npp", "torch"});
  CHECK(names("lowering", Backend::gpu) == Names{"im2col-cublas", "torch"});
  CHECK(names("signals", Backend::gpu) == Names{"torch"});
  CHECK(names("images", Backend::sim).empty());
  CHECK(names("lowering", Backend::sim).empty());
  CHECK(names("signals", Backend::sim).empty());
  CHECK(names("cpu", Backend::gpu) == names("cpu", Backend::sim));
  CHECK(names("cpu", Backend::sim).back() == "torch");
  const auto ends_with = [](const Names& all, const Names& last) {
    return all.size() >= last.size() && std::equal(last.begin(), last.end(), all.end() - static_cast<int>(last.size()));
  };
  CHECK(ends_with(names("winograd", Backend::gpu), {"cutlass-sm80", "cutlass-sm90", "torch", "torch-fp16"}));
  CHECK(ends_with(names("hopper", Backend::gpu), {"cutlass-sm80", "cutlass-sm90", "torch", "torch-fp16", "triton"}));
}

TEST_CASE("rows that stand on the same library have one name, type and layout in every track") {
  std::map<std::string_view, const StageInfo*> rows;
  for (const Track& track : tracks())
    for (const StageInfo* row : rows_beside(track.name, Backend::gpu)) {
      if (!row->settings.empty()) continue;
      const StageInfo* first = rows.try_emplace(row->name, row).first->second;
      CHECK(row->dtype == first->dtype);
      CHECK(row->tensors == first->tensors);
      CHECK(row->program == first->program);
    }
  CHECK(rows.contains("cutlass-sm90"));
}

}  // namespace
}  // namespace convladder
