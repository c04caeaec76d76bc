// 09 register-2d, its stage. The kernels, and what they do, are in register_2d.cuh.
#include "chapters/09-register-2d/register_2d.cuh"
#include "common/stage/tunable.hpp"

namespace convladder {
namespace {

// Of small_filter.
constexpr int kCodes[] = {0, 1};
constexpr const char* kCodeWords[] = {"usual", "lean"};
constexpr int kRowCounts[] = {2, 4, 5, 6};
constexpr int kWarpCounts[] = {1, 2, 4};
constexpr int kRegisterCounts[] = {0, 40, 48, 56, 64, 72};
constexpr const char* kRegisterWords[] = {"auto", "40", "48", "56", "64", "72"};
constexpr int kResidents[] = {0, 3, 4, 5, 6, 7, 8, 9};
constexpr int kAheads[] = {0, 8, 16, 24, 32, 41, 64};
constexpr int kPrefetches[] = {0, 1};
constexpr const char* kPrefetchWords[] = {"lanes", "bulk"};
constexpr Knob kKnobs[] = {{"code", kCodes, kCodeWords, 0},
                           {"rows", kRowCounts, kStripRows},
                           {"warps", kWarpCounts, kStripWarps},
                           {"registers", kRegisterCounts, kRegisterWords, 0},
                           {"resident", kResidents, 0},
                           {"ahead", kAheads, 0},
                           {"prefetch", kPrefetches, kPrefetchWords, 0}};

class Register2d final : public TunableStage, public ByteImageFilter {
  Knobs knobs() const override { return {kKnobs, false}; }

  Verdict check(const ConvProblem& problem, const DeviceLimits& limits) const override {
    return check_register_2d(problem, limits);
  }

  Verdict check_configuration(const ConvProblem& problem, const DeviceLimits&,
                              const Configuration& configuration) const override {
    const bool lean = configuration["code"] == 1;
    bool usual = true;
    for (int k = 0; k < configuration.knobs.count; ++k) usual = usual && configuration.values[k] == kKnobs[k].usual;
    if (!is_small(image_of(problem)) && !usual) return Verdict::refuse("the knobs are those of 3x3, 5x5 and 7x7");
    if (!lean &&
        (configuration["rows"] != kStripRows || configuration["registers"] != 0 || configuration["ahead"] != 0))
      return Verdict::refuse("rows, registers and ahead are choices of code=lean");
    const int rows = configuration["rows"];
    if (!compiled(rows, registers_of(rows, static_cast<int>(problem.r), configuration["registers"])))
      return Verdict::refuse("2 rows take 40 or 48 registers, 4 rows 40 to 64, more 48 to 72");
    return Verdict::accept();
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    upload_constant(c_filter, tensors.filter, static_cast<std::size_t>(problem.filter_size()), stream);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Image image = image_of(problem);
    if (!is_small(image)) return launch_large(tensors.input, tensors.output, image, 1.0f, stream);
    if (image.columns == 3)
      with<3>(tensors, image, stream);
    else if (image.columns == 5)
      with<5>(tensors, image, stream);
    else
      with<7>(tensors, image, stream);
  }

  // As many registers as these rows take, or as many as the knob says.
  static int registers_of(int rows, int filter_rows, int registers) {
    if (registers > 0) return registers;
    const int needed = 4 * (rows + filter_rows - 1) + 16;
    return needed <= 48 ? 48 : needed <= 56 ? 56 : needed <= 64 ? 64 : 72;
  }
  static bool compiled(int rows, int registers) {
    if (rows == 2) return registers <= 48;
    if (rows == 4) return registers <= 64;
    return registers >= 48;
  }

  template <int kRows>
  void with(const Tensors& tensors, const Image& image, Stream stream) {
    const int registers = registers_of(knob("rows"), kRows, knob("registers"));
    if (knob("code") == 0) return start<kRows, UsualForm<kRows>>(tensors, image, stream);
    switch (100 * knob("rows") + registers) {
      case 240:
        return start<kRows, StripForm<2, 12, true>>(tensors, image, stream);
      case 248:
        return start<kRows, StripForm<2, 10, true>>(tensors, image, stream);
      case 440:
        return start<kRows, StripForm<4, 12, true>>(tensors, image, stream);
      case 448:
        return start<kRows, StripForm<4, 10, true>>(tensors, image, stream);
      case 456:
        return start<kRows, StripForm<4, 9, true>>(tensors, image, stream);
      case 464:
        return start<kRows, StripForm<4, 8, true>>(tensors, image, stream);
      case 548:
        return start<kRows, StripForm<5, 10, true>>(tensors, image, stream);
      case 556:
        return start<kRows, StripForm<5, 9, true>>(tensors, image, stream);
      case 564:
        return start<kRows, StripForm<5, 8, true>>(tensors, image, stream);
      case 572:
        return start<kRows, StripForm<5, 7, true>>(tensors, image, stream);
      case 648:
        return start<kRows, StripForm<6, 10, true>>(tensors, image, stream);
      case 656:
        return start<kRows, StripForm<6, 9, true>>(tensors, image, stream);
      case 664:
        return start<kRows, StripForm<6, 8, true>>(tensors, image, stream);
      default:
        return start<kRows, StripForm<6, 7, true>>(tensors, image, stream);
    }
  }
  template <int kRows, class Form>
  void start(const Tensors& tensors, const Image& image, Stream stream) {
    launch_strips<kRows, Form>(static_cast<const float*>(tensors.input), static_cast<float*>(tensors.output), image,
                               1.0f, stream, {knob("warps"), knob("resident"), knob("ahead"), knob("prefetch") == 1});
  }

  void launch_bytes(const ConvProblem& problem, const std::uint8_t* input, std::uint8_t* output, float divisor,
                    Stream stream) override {
    launch_register_2d(input, output, image_of(problem), 1.0f / divisor, stream);
  }

  Prediction predict(const ConvProblem& problem) const override { return predict_register_2d(problem, knob("rows")); }
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::Register2d)
