#include "common/stage/stage.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <stdexcept>
#include <string>

#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

/// Takes two workspaces, and states some memory of its own.
class Takes final : public Stage {
 public:
  Verdict check(const ConvProblem&, const DeviceLimits&) const override { return Verdict::accept(); }
  void prepare(const ConvProblem&, const Tensors&, Stream) override {
    floats_.allocate(5);
    bytes_.allocate<char>(3);
    state_memory(100);
  }
  void launch(const ConvProblem&, const Tensors&, Stream) override {}

 private:
  Workspace floats_{*this, "floats"};
  Workspace bytes_{*this, "bytes"};
  Workspace empty_{*this, "nothing"};
};

TEST_CASE("a verdict keeps its reason") {
  CHECK(Verdict::accept().accepted());
  const Verdict refused = Verdict::refuse("the filter must be odd; got s={}", 4);
  CHECK_FALSE(refused.accepted());
  CHECK(std::string(refused.reason()) == "the filter must be odd; got s=4");
  CHECK(std::string(Verdict::refuse("{} of {} take {:.1e}", "tiles", std::size_t{7}, 0.00012).reason()) ==
        "tiles of 7 take 1.2e-04");
  CHECK_THROWS_AS(Verdict::refuse("got s={}"), std::logic_error);
  CHECK_THROWS_AS(Verdict::refuse("got s={}", 4, 5), std::logic_error);
  CHECK(std::string(Verdict::refuse("{}", std::string(1000, 'x').c_str()).reason()) == std::string(239, 'x'));
}

TEST_CASE("a stage's memory is that of its workspaces, and what it states") {
  Takes stage;
  CHECK(stage.workspace_bytes() == 0);
  CHECK(stage.workspace_intact());
  for (int i = 0; i < 2; ++i) {
    stage.prepare({}, {nullptr, nullptr, nullptr}, nullptr);
    CHECK(stage.workspace_bytes() == 5 * 4 + 3 + 100);
    CHECK(stage.workspace_intact());
  }
}

TEST_CASE("a stage is a direct sum unless it says otherwise") {
  ConvProblem problem;
  problem.c = 4;
  problem.groups = 2;
  problem.r = 3;
  problem.s = 5;
  const ErrorModel errors = Takes().error_model(problem, nullptr);
  CHECK(errors.roundings == 2 * 3 * 5 + 1);
  CHECK(errors.filter_error == 0);
  CHECK_FALSE(errors.spread);
  CHECK(errors.winograd.m == 0);
}

}  // namespace
}  // namespace convladder
