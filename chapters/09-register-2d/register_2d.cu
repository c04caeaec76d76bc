// 09 register-2d, its stage. The kernels, and what they do, are in register_2d.cuh; that of rows=rolling is in
// rolling.cuh.
#include "chapters/09-register-2d/register_2d.cuh"
#include "chapters/09-register-2d/rolling.cuh"
#include "common/stage/tunable.hpp"

namespace convladder {
namespace {

enum { kFourRows, kRolling };
constexpr int kRowsOfLane[] = {kFourRows, kRolling};
constexpr const char* kRowsWords[] = {"4", "rolling"};
constexpr Knob kKnobs[] = {{"rows", kRowsOfLane, kRowsWords, kFourRows}};

class Register2d final : public TunableStage, public ByteImageFilter {
  Knobs knobs() const override { return {kKnobs, false}; }
  Verdict check_configuration(const ConvProblem& problem, const DeviceLimits&,
                              const Configuration& configuration) const override {
    if (configuration["rows"] == kRolling && !is_small(image_of(problem)))
      return Verdict::refuse(
          "rows=rolling is for 3x3, 5x5 and 7x7 with pad_w = (s-1)/2 on rows of whole vectors; got r={}, s={}, "
          "pad_w={}, "
          "w={}",
          problem.r, problem.s, problem.pad_w, problem.w);
    return Verdict::accept();
  }
  static void launch_rolled(const ConvProblem& problem, const Tensors& tensors, Stream stream) {
    const Image image = image_of(problem);
    launch_rolling(tensors.input, tensors.output, image, segment(image), stream);
  }
  static int segment(const Image& image) { return rolling_segment(image, device_limits().multiprocessors); }

  Verdict check(const ConvProblem& problem, const DeviceLimits& limits) const override {
    return check_register_2d(problem, limits);
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    upload_constant(c_filter, tensors.filter, static_cast<std::size_t>(problem.filter_size()), stream);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    if (knob("rows") == kRolling) return launch_rolled(problem, tensors, stream);
    launch_register_2d(tensors.input, tensors.output, image_of(problem), 1.0f, stream);
  }

  void launch_bytes(const ConvProblem& problem, const std::uint8_t* input, std::uint8_t* output, float divisor,
                    Stream stream) override {
    launch_register_2d(input, output, image_of(problem), 1.0f / divisor, stream);
  }

  Prediction predict(const ConvProblem& problem) const override {
    Prediction p = predict_register_2d(problem);
    if (knob("rows") != kRolling) return p;
    const Image image = image_of(problem);  // longer strips
    p.global_load_bytes = reads_by_strips(vertical(image), segment(image), 0) *
                          reads_by_strips(horizontal(image), kStripWidth, kFour - image.pad_x) * image.batch * 4;
    return p;
  }
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::Register2d)
