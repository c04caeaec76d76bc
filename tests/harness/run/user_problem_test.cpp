#include "common/harness/run/user_problem.hpp"

#include <doctest/doctest.h>

#include "common/harness/files/problem_io.hpp"
#include "common/harness/ladder/workloads.hpp"
#include "tests/usage_error.hpp"

namespace convladder {
namespace {

TEST_CASE("arrays are read as signals, images or batches") {
  ConvProblem problem = problem_of_arrays({1000}, {11}, std::nullopt);
  CHECK(to_string(problem) == "n=1,c=1,h=1,w=1000,k=1,r=1,s=11");
  CHECK(problem.pad_w == 5);
  CHECK(to_string(problem_of_arrays({20, 30}, {3, 5}, std::nullopt)) == "n=1,c=1,h=20,w=30,k=1,r=3,s=5");
  problem = problem_of_arrays({2, 4, 20, 30}, {8, 4, 3, 3}, "stride_h=2,pad_w=0");
  CHECK(to_string(problem) == "n=2,c=4,h=20,w=30,k=8,r=3,s=3,pad_w=0,stride_h=2");
  CHECK(problem_of_arrays({2, 4, 20, 30}, {8, 1, 3, 3}, "groups=4").groups == 4);
  CHECK(to_string(problem_of_arrays({2, 1, 1, 30}, {5}, std::nullopt)) == "n=2,c=1,h=1,w=30,k=1,r=1,s=5");
}

TEST_CASE("arrays that do not fit are told") {
  const auto error = [](std::vector<std::int64_t> input, std::vector<std::int64_t> filter,
                        std::optional<std::string> shape = std::nullopt) {
    return usage_error([&] { problem_of_arrays(input, filter, shape); });
  };
  CHECK(has(error({2, 3, 4}, {3}), "--input has 3 dimensions"));
  CHECK(has(error({4}, {1, 1, 1, 1, 1}), "--filter has 5 dimensions"));
  CHECK(has(error({}, {1}), "--input has 0 dimensions"));
  CHECK(has(error({1, 4, 5, 5}, {1, 3, 3, 3}), "groups"));
  CHECK(has(error({1, 4, 5, 5}, {3, 1, 3, 3}, "groups=3"), "groups"));
  for (const char* key : {"n", "c", "h", "w", "k", "r", "s"}) {
    CHECK(has(error({100}, {3}, std::string(key) + "=100"), "leave it out"));
    CHECK(has(error({100}, {3}, "pad_w=1," + std::string(key) + "=1"), "leave it out"));
  }
  CHECK(error({100}, {3}, "stride_w=2,pad_h=0") == "");
  CHECK(has(error({100}, {3}, "stride_w"), "stride_w"));
}

TEST_CASE("without a shape the track's first workload is run") {
  const UserProblem user = read_problem({}, "signals");
  CHECK(user.name == workloads_of("signals", backend()).front().name);
  ProblemOptions options;
  options.shape = "w=9,s=3";
  options.padding = "reflect";
  CHECK(read_problem(options, "signals").problem.padding == Padding::reflect);
  CHECK(read_problem(options, "signals").name == "");
  options.padding = "circular";
  CHECK(has(usage_error([&] { read_problem(options, "signals"); }), "circular"));
}

TEST_CASE("without a shape a step runs on its own, and so do the stages beside it") {
  const StageInfo &step = find_stage("31a"), &stage = find_stage("31");
  const ConvProblem own = parse_shape(step.shape);
  CHECK(to_string(read_problem({}, {&step}).problem) == to_string(own));
  CHECK(to_string(read_problem({}, {&stage, &step}).problem) == to_string(own));
  CHECK(read_problem({}, {&stage}).name == workloads_of("hopper", backend()).front().name);
  ProblemOptions options;
  options.shape = "c=8,k=8,h=2";
  CHECK(read_problem(options, {&step}).problem.h == 2);
}

}  // namespace
}  // namespace convladder
