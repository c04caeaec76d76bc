#include "common/harness/baselines/library_rows.hpp"

#include <stdexcept>
#include <string>

#include "common/harness/device/module.hpp"

namespace convladder {
namespace {

constexpr ModuleSource kCufft{"libconvladder_cufft.so", "convladder_cufft_stage", "cuFFT", "libcufft.so.12",
                              "pip install nvidia-cufft, or cuFFT's package for your CUDA"};
constexpr ModuleSource kCublas{"libconvladder_cublas.so", "convladder_cublas_stage", "cuBLAS", "libcublas.so.13",
                               "pip install nvidia-cublas, or cuBLAS's package for your CUDA"};
constexpr ModuleSource kCutlassSm80{"libconvladder_cutlass_sm80.so", "convladder_cutlass_sm80_stage", "CUTLASS",
                                    "libcudart.so", "./lab doctor --install-baselines"};
constexpr ModuleSource kCutlassSm90{"libconvladder_cutlass_sm90.so", "convladder_cutlass_sm90_stage", "CUTLASS",
                                    "libcudart.so", "./lab doctor --install-baselines"};
constexpr ModuleSource kNpp{"libconvladder_npp.so", "convladder_npp_stage", "NPP", "libnppif.so.13",
                            "./lab doctor --install-baselines"};

/// Stands in for a module that is missing.
class Missing final : public Stage {
 public:
  explicit Missing(const std::string& reason) : reason_(reason) {}

 private:
  Verdict check(const ConvProblem&, const DeviceLimits&) const override {
    return Verdict::refuse("{}", reason_.c_str());
  }
  void launch(const ConvProblem&, const Tensors&, Stream) override { throw std::logic_error("refused before"); }

  std::string reason_;
};

template <const ModuleSource& source>
Stage* make() {
  static const Module module = load_module(source);
  if (!module.function) return new Missing(module.unavailable);
  return reinterpret_cast<Stage* (*)()>(module.function)();
}

constexpr StageInfo row(std::string_view track, std::string_view name, std::string_view title, std::string_view idea,
                        std::string_view library, Stage* (*make)()) {
  return {0, name, name, title, track, idea, 0, "fp32", "NCHW", library, "sm_70", make};
}

constexpr StageInfo half_row(std::string_view track, std::string_view name, std::string_view title,
                             std::string_view idea, std::string_view needs, Stage* (*make)()) {
  return {0, name, name, title, track, idea, 0, "fp16", "NHWC", "CUTLASS", needs, make, {}, Elements::halves};
}

constexpr StageInfo cutlass_sm80(std::string_view track) {
  return half_row(track, "cutlass-sm80", "CUTLASS's implicit GEMM by mma.sync",
                  "The fastest of eight tiles; cp.async brings them.", "sm_80", &make<kCutlassSm80>);
}

constexpr StageInfo cutlass_sm90(std::string_view track) {
  return half_row(track, "cutlass-sm90", "CUTLASS's implicit GEMM by wgmma and TMA",
                  "The fastest of seven tiles; TMA unfolds the input.", "sm_90a", &make<kCutlassSm90>);
}

constexpr StageInfo kRows[] = {
    row("images", "cufft", "FFT convolution by cuFFT", "Transform, multiply, transform back.", "cuFFT", &make<kCufft>),
    row("images", "npp", "NPP's filter of an image", "NPP pads a copy, and filters it.", "NPP", &make<kNpp>),
    row("lowering", "im2col-cublas", "im2col, and a matrix product by cuBLAS",
        "Unfold the input, then let cuBLAS multiply.", "cuBLAS", &make<kCublas>),
    cutlass_sm80("winograd"),
    cutlass_sm90("winograd"),
    cutlass_sm80("hopper"),
    cutlass_sm90("hopper")};

}  // namespace

const StageInfo& cufft_row() { return kRows[0]; }
const StageInfo& npp_row() { return kRows[1]; }
const StageInfo& cublas_row() { return kRows[2]; }
const StageInfo& cutlass_sm80_row() { return kRows[5]; }
const StageInfo& cutlass_sm90_row() { return kRows[6]; }
std::span<const StageInfo> library_rows() { return kRows; }

}  // namespace convladder
