#include "common/harness/commands/commands.hpp"

#include <doctest/doctest.h>

namespace convladder {
namespace {

TEST_CASE("the exit status: failures before refusals") {
  const auto status = [](std::vector<Status> statuses) {
    std::vector<RunResult> results;
    for (const Status each : statuses) results.emplace_back().status = each;
    return exit_status(results);
  };
  CHECK(status({Status::ok, Status::ok}) == 0);
  CHECK(status({Status::ok, Status::refused}) == 3);
  CHECK(status({Status::refused, Status::wrong}) == 1);
  CHECK(status({Status::fault}) == 1);
  CHECK(status({Status::error}) == 1);
}

}  // namespace
}  // namespace convladder
