/// @file
/// A stage prepared once for a problem and a filter, and launched on one input after the other, as an inference engine
/// runs it. Nothing is compared with the reference here: run_stage() does that.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/harness/check/device_tensors.hpp"
#include "common/harness/run/run_result.hpp"

namespace convladder {

/// The simulator found a fault. Exit status 1.
struct FaultError : std::runtime_error {
  /// @param its_faults at least one: the first is the message
  explicit FaultError(std::vector<Fault> its_faults);
  std::vector<Fault> faults;  ///< all of them
};

/// One stage with its state. One thread at a time may use the prepared stages of a process.
class PreparedStage {
 public:
  /// Checks the problem and the filter, and prepares nothing yet.
  /// @param filter (k, c/groups, r, s), finite numbers
  /// @param settings of its knobs, as in "m=4"; "" for the tuned or default ones
  /// @param bias (k), where the problem's epilogue has one
  /// @throws UsageError, RefusedError, MachineError
  PreparedStage(const StageInfo& info, const ConvProblem& problem, std::vector<float> filter,
                const std::string& settings, std::vector<float> bias = {});
  ~PreparedStage();
  PreparedStage(const PreparedStage&) = delete;
  PreparedStage& operator=(const PreparedStage&) = delete;

  /// On the host's arrays, in the simulator or on the host itself. The first run prepares.
  /// @param input (n, c, h, w)  @param residual (n, k, p, q), where the problem has one  @return (n, k, p, q)
  /// @throws RefusedError for numbers that fp16 or bf16 does not hold; FaultError, MachineError, DeviceError
  std::vector<float> run(const std::vector<float>& input, const std::vector<float>& residual = {});

  /// On the GPU's memory, in the stage's element type and layout; returns once everything is on the stream. The first
  /// launch prepares. A launch on another stream waits there for the one before, with which it shares memory. Not for
  /// stages of bytes.
  /// @param residual as the output, where the problem has one
  /// @throws MachineError, DeviceError
  void launch(const void* input, void* output, Stream stream, const void* residual = nullptr);

  const ConvProblem& problem() const { return problem_; }  ///< what it is prepared for
  const StageInfo& info() const { return info_; }          ///< of the stage

 private:
  bool must_prepare() const;
  void prepare(const Tensors& tensors, Stream stream);
  void prepare_or_calibrate(const Tensors& tensors, Stream stream);
  StreamOrder& order();
  Tensors place(const std::vector<float>& input, const std::vector<float>& residual);
  Tensors parameters_on_device();
  std::vector<float> run_on_host(const std::vector<float>& input);

  const StageInfo& info_;
  ConvProblem problem_;
  std::vector<float> filter_, bias_;
  RunOptions options_;
  std::unique_ptr<Stage> stage_;
  std::optional<DeviceTensors> tensors_;                           ///< of run()
  std::optional<DeviceBuffer> filter_on_device_, bias_on_device_;  ///< of launch()
  StreamOrder own_order_;  ///< of launches, where they share no more than this instance's memory
};

}  // namespace convladder
