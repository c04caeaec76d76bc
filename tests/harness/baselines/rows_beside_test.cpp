#include "common/harness/baselines/rows_beside.hpp"

#include <doctest/doctest.h>

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
  CHECK(names("images", Backend::gpu) == Names{"cufft"});
  CHECK(names("lowering", Backend::gpu) == Names{"im2col-cublas"});
  CHECK(names("images", Backend::sim).empty());
  CHECK(names("lowering", Backend::sim).empty());
  CHECK(names("signals", Backend::gpu).empty());
  CHECK(names("cpu", Backend::gpu) == names("cpu", Backend::sim));
}

}  // namespace
}  // namespace convladder
