// 09 register-2d, its stage. The kernels, and what they do, are in register_2d.cuh, and ahead.cuh for 5x5 and 7x7.
#include "chapters/09-register-2d/ahead.cuh"
#include "common/stage/tunable.hpp"

namespace convladder {
namespace {

constexpr int kAuto = -1;
constexpr int kAhead[] = {kAuto, 0, 8, 16, 24, 32, 64};
constexpr const char* kAheadWords[] = {"auto", "0", "8", "16", "24", "32", "64"};
constexpr Knob kKnobs[] = {{"ahead", kAhead, kAheadWords, kAuto}};

class Register2d final : public TunableStage, public ByteImageFilter {
  Knobs knobs() const override { return {kKnobs, false}; }

  Verdict check(const ConvProblem& problem, const DeviceLimits& limits) const override {
    return check_register_2d(problem, limits);
  }

  Configuration decided(const ConvProblem& problem, const DeviceLimits& limits,
                        const Configuration& configuration) const override {
    Configuration c = configuration;
    if (c["ahead"] == kAuto) c["ahead"] = usual_ahead(image_of(problem), limits.multiprocessors);
    return c;
  }

  Verdict check_configuration(const ConvProblem& problem, const DeviceLimits&,
                              const Configuration& configuration) const override {
    if (configuration["ahead"] > 0 && !takes_ahead(image_of(problem)))
      return Verdict::refuse("only 5x5 and 7x7, with the padding that keeps the width, look ahead: set ahead=0");
    return Verdict::accept();
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    upload_constant(c_filter, tensors.filter, static_cast<std::size_t>(problem.filter_size()), stream);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    if (takes_ahead(image_of(problem)))
      launch_ahead(tensors.input, tensors.output, image_of(problem), knob("ahead"), stream);
    else
      launch_register_2d(tensors.input, tensors.output, image_of(problem), 1.0f, stream);
  }

  void launch_bytes(const ConvProblem& problem, const std::uint8_t* input, std::uint8_t* output, float divisor,
                    Stream stream) override {
    launch_register_2d(input, output, image_of(problem), 1.0f / divisor, stream);
  }

  Prediction predict(const ConvProblem& problem) const override { return predict_register_2d(problem); }
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::Register2d)
