/// @file
/// What the rows on CUTLASS share: a convolution of halves by one of several kernels, each an instance of CUTLASS's
/// templates with one tile. Which of them runs is the knob `tile`: where it is `auto`, all that take the problem are
/// timed, and the fastest runs.
#pragma once
#include <cutlass/cutlass.h>

#include <memory>
#include <string>

#include "common/harness/device/device.hpp"
#include "common/kernel/kernel.hpp"
#include "common/kernel/tracks/lowering.hpp"
#include "common/stage/tunable.hpp"
#include "common/stage/workspace.hpp"

namespace convladder {

/// Tensors of halves in device memory.
struct HalfTensors {
  const __half* input = nullptr;   ///< (n, h, w, c)
  const __half* filter = nullptr;  ///< (k, r, s, c)
  __half* output = nullptr;        ///< (n, p, q, k)
};

/// An instance of CUTLASS's templates.
class CutlassKernel {
 public:
  virtual ~CutlassKernel() = default;
  /// Whether CUTLASS says that it takes the problem.
  virtual bool takes(const ConvProblem& problem) const = 0;
  /// For problems that it takes. @throws DeviceError
  virtual void set_up(const ConvProblem& problem, const HalfTensors& tensors, Stream stream) = 0;
  /// Starts it on the tensors that it was set up for. @throws DeviceError
  virtual void run(Stream stream) = 0;
};

/// @throws DeviceError
inline void require(cutlass::Status status, const char* what) {
  if (status != cutlass::Status::kSuccess)
    throw DeviceError(std::string("CUTLASS: ") + what + ": " + cutlassGetStatusString(status));
}

/// The functions of an instance.
/// @tparam Form has the type Convolution, an adapter of CUTLASS's, and its arguments(problem, tensors)
template <class Form>
class CutlassInstance final : public CutlassKernel {
  bool takes(const ConvProblem& problem) const override {
    return Form::Convolution::can_implement(Form::arguments(problem, {})) == cutlass::Status::kSuccess;
  }
  void set_up(const ConvProblem& problem, const HalfTensors& tensors, Stream stream) override {
    require(convolution_.initialize(Form::arguments(problem, tensors), nullptr, stream), "setting a kernel up");
  }
  void run(Stream stream) override { require(convolution_.run(stream), "starting a kernel"); }

  typename Form::Convolution convolution_;
};

/// Makes one.
template <class Form>
std::unique_ptr<CutlassKernel> make_instance() {
  return std::make_unique<CutlassInstance<Form>>();
}

/// A row: its kernels are those of a module.
class CutlassStage : public TunableStage {
 public:
  /// Makes a kernel.
  using MakeKernel = std::unique_ptr<CutlassKernel> (*)();
  /// @param knobs one: `tile`, whose values are 0, for `auto`, and i + 1 for kernels[i]
  CutlassStage(const Knobs& knobs, const MakeKernel* kernels) : knobs_(knobs), kernels_(kernels) {}

 private:
  Knobs knobs() const override { return knobs_; }
  Verdict check(const ConvProblem& problem, const DeviceLimits& limits) const override;
  Verdict check_configuration(const ConvProblem& problem, const DeviceLimits& limits,
                              const Configuration& configuration) const override;
  Configuration decided(const ConvProblem& problem, const DeviceLimits& limits,
                        const Configuration& configuration) const override;
  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override;
  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override;
  const char* library() const override;

  int fastest(const ConvProblem& problem) const;

  const Knobs knobs_;
  const MakeKernel* const kernels_;
  Workspace filter_{*this, "CUTLASS's filter"};
  std::unique_ptr<CutlassKernel> kernel_;
};

}  // namespace convladder
