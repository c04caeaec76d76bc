#include "common/harness/check/device_tensors.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cstring>
#include <limits>
#include <string>

#include "common/harness/check/half_bits.hpp"
#include "common/harness/check/quantise.hpp"
#include "common/harness/files/problem_io.hpp"
#include "common/harness/ladder/registry.hpp"
#include "common/harness/run/runner.hpp"

namespace convladder {
namespace {

const std::uint16_t* halves(const __half* tensor) { return reinterpret_cast<const std::uint16_t*>(tensor); }
std::uint16_t* halves(__half* tensor) { return reinterpret_cast<std::uint16_t*>(tensor); }

/// A stage of fp16 that computes on the host, in the simulator's memory, whose addresses are the host's.
class HalfStage final : public Stage {
 public:
  Verdict check(const ConvProblem&, const DeviceLimits&) const override { return Verdict::accept(); }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream) override {
    REQUIRE(tensors.input == nullptr);
    REQUIRE(tensors.output == nullptr);
    const std::uint16_t* input = halves(tensors.half_input);
    std::uint16_t* output = halves(tensors.half_output);
    const std::int64_t c = problem.c, k_count = problem.k;
    for (std::int64_t n = 0; n < problem.n; ++n)
      for (std::int64_t y = 0; y < problem.h; ++y)
        for (std::int64_t x = 0; x < problem.w; ++x)
          for (std::int64_t k = 0; k < k_count; ++k) {
            const std::int64_t pixel = (n * problem.h + y) * problem.w + x;
            float sum = 0;
            for (std::int64_t i = 0; i < c; ++i)
              sum += half_value(input[pixel * c + i]) * half_value(half_bits(tensors.filter[k * c + i]));
            if (leaves_last_out && pixel == problem.n * problem.h * problem.w - 1 && k == k_count - 1) continue;
            output[pixel * k_count + k] = half_bits(sum);
          }
  }

  static inline bool leaves_last_out = false;
};

StageInfo half_stage() {
  StageInfo stage = stages().front();
  stage.folder = "99-half";
  stage.dtype = "fp16";
  stage.layout = "NHWC";
  stage.tensors = Elements::halves;
  stage.make = +[]() -> Stage* { return new HalfStage; };
  return stage;
}

const RunOptions kChecked = [] {
  RunOptions options;
  options.time = false;
  options.keep_output = true;
  return options;
}();

TEST_CASE("tensors of halves are NHWC on the device and NCHW on the host") {
  const ConvProblem problem = parse_shape("n=2,c=3,h=5,w=7,k=5");
  const HostTensors host = make_inputs(problem, InputKind::normal, FilterForm::dense, 1);
  const DeviceTensors tensors(problem, Elements::halves, host.input.data(), host.filter.data());
  const Tensors view = tensors.view();
  CHECK(view.input == nullptr);
  CHECK(view.output == nullptr);
  CHECK(tensors.bytes() == 2 * 210 + 4 * 15 + 2 * 350);
  CHECK(std::memcmp(view.filter, host.filter.data(), 60) == 0);
  for (std::int64_t n = 0; n < 2; ++n)
    for (std::int64_t c = 0; c < 3; ++c)
      for (std::int64_t pixel = 0; pixel < 35; ++pixel)
        CHECK(halves(view.half_input)[(n * 35 + pixel) * 3 + c] ==
              half_bits(host.input[static_cast<std::size_t>((n * 3 + c) * 35 + pixel)]));

  for (std::uint16_t i = 0; i < 350; ++i) halves(view.half_output)[i] = half_bits(i);
  std::vector<float> output(350);
  tensors.download_output(output.data());
  CHECK(output[0] == 0);
  CHECK(output[1] == 5);               // (0,0,0,1)
  CHECK(output[35] == 1);              // (0,1,0,0)
  CHECK(output[175 + 4 * 35] == 179);  // (1,4,0,0)
  CHECK(output[349] == 349);
}

TEST_CASE("a copy on the device has the same input, filter, bias, residual and steps, and an output of its own") {
  const ConvProblem problem = parse_shape("n=2,c=3,h=5,w=7,k=5,epilogue=bias_residual_relu");
  const HostTensors host = make_inputs(problem, InputKind::normal, FilterForm::dense, 1);
  const DeviceTensors first(problem, Elements::bytes, host, 0.25f);
  const DeviceTensors second = first.copy();
  CHECK(second.bytes() == first.bytes());
  const Tensors a = first.view(), b = second.view();
  CHECK(b.byte_input != a.byte_input);
  CHECK(std::memcmp(b.byte_input, a.byte_input, 2 * 3 * 35) == 0);
  CHECK(std::memcmp(b.filter, host.filter.data(), 4 * 5 * 3) == 0);
  CHECK(std::memcmp(b.bias, host.bias.data(), 4 * 5) == 0);
  CHECK(std::memcmp(b.byte_residual, a.byte_residual, 2 * 5 * 35) == 0);
  CHECK(b.byte_output != a.byte_output);
  CHECK(b.input_step == a.input_step);
  CHECK(b.output_step == 0.25f);
  CHECK(b.residual_step == a.residual_step);
}

TEST_CASE("an epilogue's tensors are on the device: a bias of floats, a residual as the output") {
  const ConvProblem problem = parse_shape("n=2,c=3,h=5,w=7,k=5,epilogue=bias_residual_relu");
  const HostTensors host = make_inputs(problem, InputKind::normal, FilterForm::dense, 1);
  const DeviceTensors in_halves(problem, Elements::halves, host);
  CHECK(in_halves.bytes() == 2 * 210 + 4 * 15 + 2 * 2 * 350 + 4 * 5);
  CHECK(std::memcmp(in_halves.view().bias, host.bias.data(), 4 * 5) == 0);
  const DeviceTensors in_bytes(problem, Elements::bytes, host);
  const double step = in_bytes.view().residual_step;
  CHECK(step == int8_step(host.residual));
  for (std::int64_t n = 0; n < 2; ++n)
    for (std::int64_t k = 0; k < 5; ++k)
      for (std::int64_t pixel = 0; pixel < 35; ++pixel) {
        const float value = host.residual[static_cast<std::size_t>((n * 5 + k) * 35 + pixel)];
        const std::int64_t at = (n * 35 + pixel) * 5 + k;
        CHECK(halves(in_halves.view().half_residual)[at] == half_bits(value));
        CHECK(in_bytes.view().byte_residual[at] == int8_of(value, step));
      }
  const ConvProblem plain = parse_shape("n=2,c=3,h=5,w=7,k=5");
  const DeviceTensors none(plain, Elements::halves, host);
  CHECK((none.view().bias == nullptr && none.view().half_residual == nullptr));
}

TEST_CASE("tensors of floats stay as they are") {
  const ConvProblem problem = parse_shape("n=2,c=3,h=5,w=7,k=5");
  const HostTensors host = make_inputs(problem, InputKind::normal, FilterForm::dense, 1);
  DeviceTensors tensors(problem, Elements::floats, host.input.data(), host.filter.data());
  CHECK(tensors.view().half_input == nullptr);
  CHECK(tensors.view().half_output == nullptr);
  CHECK(std::memcmp(tensors.view().input, host.input.data(), 4 * 210) == 0);
  tensors.poison_output();
  tensors.view().output[349] = 2;
  std::vector<float> output(350);
  tensors.download_output(output.data());
  CHECK(std::bit_cast<std::uint32_t>(output[0]) == kPoison);
  CHECK(output[349] == 2);
}

TEST_CASE("floats in NHWC are NHWC on the device and NCHW on the host, poison too") {
  const ConvProblem problem = parse_shape("n=2,c=3,h=5,w=7,k=5");
  const HostTensors host = make_inputs(problem, InputKind::normal, FilterForm::dense, 1);
  DeviceTensors tensors(problem, Elements::floats_nhwc, host.input.data(), host.filter.data());
  const Tensors view = tensors.view();
  CHECK(view.half_input == nullptr);
  CHECK(tensors.bytes() == 4 * (210 + 15 + 350));
  for (std::int64_t n = 0; n < 2; ++n)
    for (std::int64_t c = 0; c < 3; ++c)
      for (std::int64_t pixel = 0; pixel < 35; ++pixel)
        CHECK(view.input[(n * 35 + pixel) * 3 + c] == host.input[static_cast<std::size_t>((n * 3 + c) * 35 + pixel)]);
  tensors.poison_output();
  for (int i = 0; i < 349; ++i) view.output[i] = static_cast<float>(i);
  std::vector<float> output(350);
  tensors.download_output(output.data());
  CHECK(output[1] == 5);               // (0,0,0,1)
  CHECK(output[35] == 1);              // (0,1,0,0)
  CHECK(output[175 + 4 * 35] == 179);  // (1,4,0,0)
  CHECK(std::bit_cast<std::uint32_t>(output[349]) == kPoison);
}

TEST_CASE("poisoned halves come as poisoned floats, in any number") {
  for (const char* text : {"w=1", "w=2", "w=3", "k=7,w=9", "n=3,k=5,h=7,w=11"}) {
    CAPTURE(std::string(text));
    const ConvProblem problem = parse_shape(text);
    const HostTensors host = make_inputs(problem, InputKind::normal, FilterForm::dense, 1);
    DeviceTensors tensors(problem, Elements::halves, host.input.data(), host.filter.data());
    tensors.poison_output();
    std::vector<float> output(static_cast<std::size_t>(problem.output_size()));
    tensors.download_output(output.data());
    for (const float value : output) CHECK(std::bit_cast<std::uint32_t>(value) == kPoison);
  }
}

TEST_CASE("bf16 is rounded to on the way in, and comes back as it is, poison too") {
  const ConvProblem problem = parse_shape("n=2,c=3,h=5,w=7,k=5");
  const HostTensors host = make_inputs(problem, InputKind::large, FilterForm::dense, 1);
  DeviceTensors tensors(problem, Elements::bf16s, host.input.data(), host.filter.data());
  const Tensors view = tensors.view();
  CHECK(view.half_input == nullptr);
  CHECK(tensors.bytes() == 2 * 210 + 4 * 15 + 2 * 350);
  const auto* input = reinterpret_cast<const std::uint16_t*>(view.bf16_input);
  for (std::int64_t n = 0; n < 2; ++n)
    for (std::int64_t c = 0; c < 3; ++c)
      for (std::int64_t pixel = 0; pixel < 35; ++pixel)
        CHECK(input[(n * 35 + pixel) * 3 + c] ==
              bf16_bits(host.input[static_cast<std::size_t>((n * 3 + c) * 35 + pixel)]));
  tensors.poison_output();
  auto* written = reinterpret_cast<std::uint16_t*>(view.bf16_output);
  for (int i = 0; i < 349; ++i) written[i] = bf16_bits(static_cast<float>(i % 200) * 1e30f);
  std::vector<float> output(350);
  tensors.download_output(output.data());
  CHECK(output[1] == bf16_value(bf16_bits(5e30f)));   // (0,0,0,1)
  CHECK(output[35] == bf16_value(bf16_bits(1e30f)));  // (0,1,0,0)
  CHECK(std::bit_cast<std::uint32_t>(output[349]) == kPoison);

  CHECK(first_beyond(Elements::bf16s, {1e30f, 3.389e38f, 3.4e38f}) == 2);
  CHECK(first_beyond(Elements::halves, {1, 1e30f}) == 1);
  CHECK(first_beyond(Elements::floats, {3.4e38f}) == std::nullopt);
}

TEST_CASE("a stage of fp16 runs as others do") {
  const StageInfo stage = half_stage();
  for (const char* text : {"n=2,c=3,h=5,w=7,k=5", "c=1,h=1,w=3,k=1", "c=64,h=9,w=9,k=33"}) {
    CAPTURE(std::string(text));
    const ConvProblem problem = parse_shape(text);
    for (const InputKind kind : {InputKind::normal, InputKind::integers, InputKind::nan, InputKind::infinity}) {
      const RunResult result = run_stage(stage, make_workload("", problem, kind, FilterForm::dense, 1), kChecked);
      CHECK_MESSAGE(result.status == Status::ok, result.reason);
      CHECK(result.verified);
      CHECK(result.output.size() == static_cast<std::size_t>(problem.output_size()));
      REQUIRE(result.check);
      CHECK(result.check->unchecked == 0);
    }
  }
}

TEST_CASE("an output that a stage of fp16 leaves out is missed") {
  HalfStage::leaves_last_out = true;
  const RunResult result = run_stage(
      half_stage(), make_workload("", parse_shape("n=2,c=3,h=5,w=7,k=5"), InputKind::normal, FilterForm::dense, 1),
      kChecked);
  HalfStage::leaves_last_out = false;
  CHECK(result.status == Status::wrong);
  CHECK(result.reason == "1 of 350 outputs was never written, first at (1,4,4,6)");
}

TEST_CASE("a stage of fp16 refuses numbers that fp16 does not hold") {
  Workload workload = make_workload("", parse_shape("n=2,c=3,h=5,w=7,k=5"), InputKind::normal, FilterForm::dense, 1);
  const auto with = [&](float value) {
    workload.tensors.input[((1 * 3 + 2) * 5 + 3) * 7 + 4] = value;
    workload.reference = convolve_reference(workload.problem, workload.tensors.input, workload.tensors.filter);
    return run_stage(half_stage(), workload, kChecked);
  };
  for (const float value : {70000.0f, -70000.0f, 65520.0f, 1e38f})
    CHECK(std::string(to_string(with(value).status)) == "refused");
  CHECK(with(70000).reason == "the input is rounded to fp16 and has 7.0e+04 at (1,2,3,4), beyond 65504");
  CHECK(with(65519).status == Status::ok);
  CHECK(with(std::numeric_limits<float>::infinity()).status == Status::ok);
}

}  // namespace
}  // namespace convladder
