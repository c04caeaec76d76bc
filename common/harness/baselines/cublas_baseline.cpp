#include "common/harness/baselines/cublas_baseline.hpp"

#include <stdexcept>

#include "common/harness/baselines/cublas_module.hpp"
#include "common/harness/device/module.hpp"

namespace convladder {
namespace {

const Module& module() {
  static const Module loaded = load_module({kCublasModuleFile, kCublasModuleFunction, "cuBLAS", "libcublas.so.13",
                                            "pip install nvidia-cublas, or cuBLAS's package for your CUDA"});
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
  return reinterpret_cast<CublasModuleFunction*>(module().function)();
}

}  // namespace

const StageInfo& cublas_row() {
  static constexpr StageInfo row{0,
                                 "im2col-cublas",
                                 "im2col-cublas",
                                 "im2col, and a matrix product by cuBLAS",
                                 "lowering",
                                 "Unfold the input, then let cuBLAS multiply.",
                                 0,
                                 "fp32",
                                 "NCHW",
                                 "cuBLAS",
                                 "sm_70",
                                 &make};
  return row;
}

}  // namespace convladder
