#include "common/harness/run/prepared_stage.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "common/harness/files/problem_io.hpp"

namespace convladder {
namespace {

std::string calls;  // 'p' prepare, 'c' calibrate, 'l' launch

/// A filter of one tap, times a scale by the input's first number, which it does not need.
class Scaled final : public Stage {
 public:
  Verdict check(const ConvProblem&, const DeviceLimits&) const override { return Verdict::accept(); }
  void prepare(const ConvProblem&, const Tensors& tensors, Stream) override {
    calls += 'p';
    scale_ = tensors.input[0];
  }
  void calibrate(const ConvProblem&, const Tensors& tensors, Stream) override {
    calls += 'c';
    scale_ = tensors.input[0];
  }
  void launch(const ConvProblem& problem, const Tensors& tensors, Stream) override {
    calls += 'l';
    for (std::int64_t i = 0; i < problem.output_size(); ++i)
      tensors.output[i] = tensors.filter[0] * (tensors.input[i] / scale_);
  }

 private:
  float scale_ = 0;
};

StageInfo scaled() {
  return {0, "scaled", "scaled", "", "cpu",    "",
          0, "fp32",   "NCHW",   "", "sm_999", [] { return static_cast<Stage*>(new Scaled); }};
}

TEST_CASE("what is prepared stays for another input, by which scales are chosen anew") {
  const StageInfo info = scaled();
  PreparedStage stage(info, parse_shape("w=3,s=1"), {6}, "");
  calls = "";
  CHECK(stage.run({1, 2, 3}) == std::vector<float>{6, 12, 18});
  CHECK(stage.run({2, 4, 6}) == std::vector<float>{6, 12, 18});
  CHECK(calls == "plcl");
}

}  // namespace
}  // namespace convladder
