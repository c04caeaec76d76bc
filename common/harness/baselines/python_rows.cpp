#include "common/harness/baselines/python_rows.hpp"

#include <stdexcept>

#include "common/kernel/tracks/lowering.hpp"

namespace convladder {
namespace {

/// The rules of a row, and what its errors come from; it runs elsewhere.
class InPython : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    if (problem.padding != Padding::zero && (problem.pad_h > 0 || problem.pad_w > 0))
      return Verdict::refuse("this row pads with zeros only");
    return rules(problem);
  }
  virtual Verdict rules(const ConvProblem&) const { return Verdict::accept(); }
  void launch(const ConvProblem&, const Tensors&, Stream) final {
    throw std::logic_error("a program in Python runs it");
  }
};

/// PyTorch calls cuDNN or oneDNN, which may transform tiles or use an FFT. What counts is what counts of cuDNN's
/// trials: errors of 1e-4 of the outputs' root mean square.
class TorchConvolution final : public InPython {
  ErrorModel error_model(const ConvProblem&, const float*) const override {
    ErrorModel errors = 44'000;  // of 8 sqrt(n) 2^-24
    errors.spread = true;
    return errors;
  }
};

class TritonConvolution final : public InPython {
  Verdict rules(const ConvProblem& problem) const override { return check_implicit_gemm(problem, 1, 1); }
};

template <class Row>
Stage* make() {
  return new Row;
}

constexpr StageInfo torch(std::string_view track) {
  StageInfo row{0, "torch", "torch", "PyTorch's conv2d", track,   "What PyTorch chooses, in fp32 without TF32.",
                0, "fp32",  "NCHW",  "PyTorch",          "sm_70", &make<TorchConvolution>};
  row.program = "torch";
  return row;
}

constexpr StageInfo in_halves(std::string_view track, std::string_view name, std::string_view title,
                              std::string_view idea, std::string_view program, Stage* (*make)()) {
  StageInfo row{0, name, name, title, track, idea, 0, "fp16", "NHWC", program, "sm_80", make, {}, Elements::halves};
  row.program = program;
  return row;
}

constexpr StageInfo torch_halves(std::string_view track) {
  return in_halves(track, "torch-fp16", "PyTorch's conv2d in fp16", "What PyTorch chooses for halves in NHWC.", "torch",
                   &make<TorchConvolution>);
}

constexpr StageInfo kRows[] = {
    torch("signals"),
    torch("images"),
    torch("depthwise"),
    torch("lowering"),
    torch("cpu"),
    torch("winograd"),
    torch_halves("winograd"),
    torch("hopper"),
    torch_halves("hopper"),
    in_halves("hopper", "triton", "An implicit GEMM in Triton", "The fastest of nine tiles that Triton compiles.",
              "triton", &make<TritonConvolution>)};

}  // namespace

std::span<const StageInfo> python_rows() { return kRows; }

}  // namespace convladder
