// 09 register-2d, its stage. The kernels, and what they do, are in register_2d.cuh.
#include "chapters/09-register-2d/register_2d.cuh"
#include "common/stage/tunable.hpp"

namespace convladder {
namespace {

constexpr int kWarpCounts[] = {4, 8, 16};  // of a block of small_filter
enum { kPlain, kStreaming };
constexpr int kStores[] = {kPlain, kStreaming};
constexpr const char* kStoreWords[] = {"plain", "streaming"};
constexpr Knob kKnobs[] = {{"warps", kWarpCounts, 4}, {"stores", kStores, kStoreWords, kPlain}};

class Register2d final : public TunableStage, public ByteImageFilter {
  Knobs knobs() const override { return {kKnobs, false}; }

  Verdict check(const ConvProblem& problem, const DeviceLimits& limits) const override {
    return check_register_2d(problem, limits);
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    upload_constant(c_filter, tensors.filter, static_cast<std::size_t>(problem.filter_size()), stream);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Image image = image_of(problem);
    const bool streaming = knob("stores") == kStreaming;
    if (is_small(image) && knob("warps") == 8) return launch_with<8>(streaming, tensors, image, stream);
    if (is_small(image) && knob("warps") == 16) return launch_with<16>(streaming, tensors, image, stream);
    if (is_small(image) && streaming) return launch_with<kStripWarps>(streaming, tensors, image, stream);
    launch_register_2d(tensors.input, tensors.output, image_of(problem), 1.0f, stream);
  }

  template <int kWarps>
  static void launch_with(bool streaming, const Tensors& tensors, const Image& image, Stream stream) {
    if (streaming)
      launch_small<SmallForm<kWarps, true>>(tensors.input, tensors.output, image, 1.0f, stream);
    else
      launch_small<SmallForm<kWarps, false>>(tensors.input, tensors.output, image, 1.0f, stream);
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
