// 09 register-2d, its stage. The kernels, and what they do, are in register_2d.cuh.
#include "chapters/09-register-2d/register_2d.cuh"
#include "common/stage/stage.hpp"

namespace convladder {
namespace {

class Register2d final : public Stage, public ByteImageFilter {
  Verdict check(const ConvProblem& problem, const DeviceLimits& limits) const override {
    return check_register_2d(problem, limits);
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    upload_constant(c_filter, tensors.filter, static_cast<std::size_t>(problem.filter_size()), stream);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
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
