#include "common/harness/run/prepared_stage.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/harness/check/half_bits.hpp"
#include "common/harness/files/errors.hpp"
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

/// A filter of one tap in fp16, plus bias and residual, on the host, in the simulator's memory.
class Fused final : public Stage {
 public:
  Verdict check(const ConvProblem&, const DeviceLimits&) const override { return Verdict::accept(); }
  bool has_epilogue() const override { return true; }
  void launch(const ConvProblem& problem, const Tensors& tensors, Stream) override {
    REQUIRE((tensors.half_residual != nullptr) == problem.has_residual());
    const auto value = [](const __half* of, std::int64_t i) {
      return half_value(reinterpret_cast<const std::uint16_t*>(of)[i]);
    };
    for (std::int64_t i = 0; i < problem.output_size(); ++i)
      reinterpret_cast<std::uint16_t*>(tensors.half_output)[i] =
          half_bits(tensors.filter[0] * value(tensors.half_input, i) + tensors.bias[0] +
                    (problem.has_residual() ? value(tensors.half_residual, i) : 0));
  }
};

StageInfo fused() {
  StageInfo info = scaled();
  info.track = "hopper";
  info.requires_capability = "sm_70";
  info.tensors = Elements::halves;
  info.make = [] { return static_cast<Stage*>(new Fused); };
  return info;
}

TEST_CASE("the bias of a prepared stage stays, and each call has a residual of its own") {
  const StageInfo info = fused();
  PreparedStage with_bias(info, parse_shape("w=3,s=1,epilogue=bias"), {2}, "", {10});
  CHECK(with_bias.run({1, 2, 3}) == std::vector<float>{12, 14, 16});
  PreparedStage stage(info, parse_shape("w=3,s=1,epilogue=bias_residual_relu"), {2}, "", {10});
  CHECK(stage.run({1, 2, 3}, {100, 200, 300}) == std::vector<float>{112, 214, 316});
  CHECK(stage.run({2, 2, 2}, {0, 1, 2}) == std::vector<float>{14, 15, 16});

  const std::uint16_t input[] = {half_bits(1.0f), half_bits(2.0f), half_bits(3.0f)};
  std::uint16_t output[3] = {};
  stage.launch(input, output, nullptr, input);
  CHECK(half_value(output[2]) == 19);
  with_bias.launch(input, output, nullptr);
  CHECK(half_value(output[2]) == 16);
}

TEST_CASE("a residual that fp16 does not hold is refused") {
  const StageInfo info = fused();
  PreparedStage stage(info, parse_shape("w=3,s=1,epilogue=bias_residual_relu"), {2}, "", {10});
  try {
    stage.run({1, 2, 3}, {1, 2, 7e4f});
    FAIL("it was taken");
  } catch (const RefusedError& error) {
    CHECK(std::string(error.what()) == "the residual is rounded to fp16 and has 7.0e+04 at (0,0,0,2), beyond 65504");
  }
}

}  // namespace
}  // namespace convladder
