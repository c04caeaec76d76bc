#include "common/harness/check/quantise.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cstring>
#include <limits>

#include "common/harness/check/device_tensors.hpp"
#include "common/harness/files/problem_io.hpp"
#include "common/harness/ladder/registry.hpp"
#include "common/harness/run/runner.hpp"

namespace convladder {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST_CASE("a step makes the largest finite magnitude 127") {
  CHECK(int8_step(std::vector<float>{1, -254, 3}) == 2);
  CHECK(int8_step(std::vector<float>{kNan, 127, -kInfinity}) == 1);
  CHECK(int8_step(std::vector<double>{-12.7, 0}) == 0.1f);
  CHECK(int8_steps({1, -127, 0, 254, 0, 0}, 3) ==
        std::vector<float>{1, 2, std::numeric_limits<float>::min()});  // of no taps but zeros: any step will do
  CHECK(int8_step(std::vector<double>{1e300}) == std::numeric_limits<float>::max() / 127);
}

TEST_CASE("the nearest number of steps, ties to even, and no -128") {
  CHECK(int8_of(2.9, 2) == 1);
  CHECK(int8_of(1, 2) == 0);
  CHECK(int8_of(-3, 2) == -2);
  CHECK(int8_of(1000, 2) == 127);
  CHECK(int8_of(-1000, 2) == -127);
  CHECK(int8_of(kInfinity, 2) == 127);
  CHECK(int8_of(kNan, 2) == 0);
}

TEST_CASE("tensors of bytes are NHWC on the device and NCHW on the host, poison too") {
  const ConvProblem problem = parse_shape("n=2,c=3,h=5,w=7,k=5");
  const HostTensors host = make_inputs(problem, InputKind::normal, FilterForm::dense, 1);
  DeviceTensors tensors(problem, Elements::bytes, host.input.data(), host.filter.data(), 0.5f);
  const Tensors view = tensors.view();
  CHECK(view.input == nullptr);
  CHECK(view.output == nullptr);
  CHECK(view.half_input == nullptr);
  CHECK(view.half_output == nullptr);
  CHECK(view.input_step == int8_step(host.input));
  CHECK(view.output_step == 0.5f);
  CHECK(tensors.bytes() == 210 + 4 * 15 + 350);
  CHECK(std::memcmp(view.filter, host.filter.data(), 60) == 0);
  for (std::size_t n = 0; n < 2; ++n)
    for (std::size_t c = 0; c < 3; ++c)
      for (std::size_t pixel = 0; pixel < 35; ++pixel)
        CHECK(view.byte_input[(n * 35 + pixel) * 3 + c] ==
              int8_of(host.input[(n * 3 + c) * 35 + pixel], view.input_step));

  tensors.poison_output();
  for (int i = 0; i < 349; ++i) view.byte_output[i] = static_cast<std::int8_t>(i % 255 - 127);
  std::vector<float> output(350);
  tensors.download_output(output.data());
  CHECK(output[0] == -63.5f);
  CHECK(output[1] == -61);                            // (0,0,0,1)
  CHECK(output[35] == -63);                           // (0,1,0,0)
  CHECK(output[175 + 4 * 35] == (179 - 127) * 0.5f);  // (1,4,0,0)
  CHECK(std::bit_cast<std::uint32_t>(output[349]) == kPoison);
}

/// A stage of int8 that computes on the host, in the simulator's memory, whose addresses are the host's: 1 x 1 filters.
class ByteStage final : public Stage {
 public:
  Verdict check(const ConvProblem&, const DeviceLimits&) const override { return Verdict::accept(); }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream) override {
    const std::vector<float> filter(tensors.filter, tensors.filter + problem.filter_size());
    const std::vector<float> steps = int8_steps(filter, problem.k);
    for (std::int64_t i = 0; i < problem.output_size() - (leaves_last_out ? 1 : 0); ++i) {
      const std::int64_t pixel = i / problem.k, k = i % problem.k;
      const float step = steps[static_cast<std::size_t>(k)];
      int sum = 0;
      for (std::int64_t c = 0; c < problem.c; ++c)
        sum += tensors.byte_input[pixel * problem.c + c] * int8_of(tensors.filter[k * problem.c + c], step);
      tensors.byte_output[i] = int8_of(static_cast<double>(sum) * tensors.input_step * step, tensors.output_step);
    }
  }

  static inline bool leaves_last_out = false;
};

StageInfo byte_stage() {
  StageInfo stage = stages().front();
  stage.folder = "99-bytes";
  stage.dtype = "int8";
  stage.layout = "NHWC";
  stage.tensors = Elements::bytes;
  stage.make = +[]() -> Stage* { return new ByteStage; };
  return stage;
}

RunResult run(const char* shape, InputKind kind) {
  RunOptions options;
  options.time = false;
  return run_stage(byte_stage(), make_workload("", parse_shape(shape), kind, FilterForm::dense, 1), options);
}

TEST_CASE("a stage of int8 runs as others do, on bytes") {
  CHECK(takes_bytes(byte_stage()));
  CHECK(!takes_halves(byte_stage()));
  CHECK(!takes_bytes(find_stage("30")));
  CHECK(takes_halves(find_stage("30")));
  for (const char* shape : {"n=2,c=3,h=5,w=7,k=5", "c=1,h=1,w=3,k=1", "c=64,h=9,w=9,k=33"}) {
    CAPTURE(std::string(shape));
    for (const InputKind kind :
         {InputKind::normal, InputKind::integers, InputKind::large, InputKind::nan, InputKind::infinity}) {
      const RunResult result = run(shape, kind);
      CHECK_MESSAGE(result.status == Status::ok, result.reason);
      REQUIRE(result.check);
      const bool finite = kind != InputKind::nan && kind != InputKind::infinity;
      CHECK((result.check->unchecked == 0) == finite);
    }
  }
}

TEST_CASE("an output that a stage of int8 leaves out is missed") {
  ByteStage::leaves_last_out = true;
  const RunResult result = run("n=2,c=3,h=5,w=7,k=5", InputKind::normal);
  ByteStage::leaves_last_out = false;
  CHECK(result.status == Status::wrong);
  CHECK(result.reason == "1 of 350 outputs was never written, first at (1,4,4,6)");
}

}  // namespace
}  // namespace convladder
