#include "common/harness/baselines/cufft_baseline.hpp"

#include <stdexcept>

#include "common/harness/baselines/cufft_module.hpp"
#include "common/harness/device/module.hpp"

namespace convladder {
namespace {

const Module& module() {
  static const Module loaded = load_module({kCufftModuleFile, kCufftModuleFunction, "cuFFT", "libcufft.so.12",
                                            "pip install nvidia-cufft, or cuFFT's package for your CUDA"});
  return loaded;
}

/// Stands in for the module where it is missing.
class Missing final : public Stage {
  Verdict check(const ConvProblem&, const DeviceLimits&) const override {
    return Verdict::refuse("%s", module().unavailable.c_str());
  }
  void launch(const ConvProblem&, const Tensors&, Stream) override { throw std::logic_error("refused before"); }
};

Stage* make() {
  if (!module().function) return new Missing;
  return reinterpret_cast<CufftModuleFunction*>(module().function)();
}

}  // namespace

const StageInfo& cufft_row() {
  static constexpr StageInfo row{0,        "cufft",
                                 "cufft",  "FFT convolution by cuFFT",
                                 "images", "Transform, multiply, transform back.",
                                 0,        "fp32",
                                 "NCHW",   "cuFFT",
                                 "sm_70",  &make};
  return row;
}

}  // namespace convladder
