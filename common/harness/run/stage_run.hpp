/// @file
/// The course of one run, wherever the stage runs: what the runs on a device (runner.cpp) and on the host
/// (host_run.cpp) share.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/harness/run/run_result.hpp"

namespace convladder {

/// A fault in a sentence: "race at tiled_1d.cu:40 in tiled with ...".
std::string describe(const Fault& fault);

/// Chooses what a tunable stage runs with, and has it use that; other stages have nothing to choose.
/// @param used what was chosen, if a stage is tunable  @return the rule that forbids it, or ""
std::string configure_stage(const StageInfo& info, Stage& instance, const ConvProblem& problem,
                            const RunOptions& options, std::optional<UsedConfiguration>& used);

/// The rule by which a stage of fp16 or bf16 refuses numbers that its type does not hold, or "".
/// @param input (n, c, h, w)  @param residual (n, k, p, q); empty where the problem has none
std::string half_refusal(const StageInfo& stage, const ConvProblem& problem, const std::vector<float>& input,
                         const std::vector<float>& residual);

/// One stage on one workload, from its preparation to its last check, noted down in a RunResult.
class StageRun {
 public:
  /// Runs nothing yet. The arguments must outlive the run.
  StageRun(const Workload& workload, const RunOptions& options, RunResult& result)
      : workload_(workload), options_(options), result_(result) {}
  virtual ~StageRun() = default;
  StageRun(const StageRun&) = delete;
  StageRun& operator=(const StageRun&) = delete;

  /// Checks, measures, and checks again.
  void execute();

 protected:
  /// Where the tensors lie.
  virtual Tensors tensors() const = 0;
  /// Makes the tensors, the input and filter filled in.
  virtual void place_tensors() = 0;
  /// Prepares the stage. @return whether without fault
  virtual bool prepare() = 0;
  /// Fills the output with kPoison and the guard bands with their pattern.
  virtual void poison_output() = 0;
  /// Runs `work` once, to its end.
  virtual Observation observe_work(const std::function<void(Stream)>& work) = 0;
  /// Copies the output to the host.
  virtual void download_output(float* output) const = 0;
  /// Names of the tensors with a damaged guard band.
  virtual std::vector<const char*> damaged() const = 0;
  /// Whether times are taken here.
  virtual bool has_time() const = 0;
  /// Takes the times of launch().
  virtual void time_launch() = 0;
  /// Takes the time of launch_without_transform(), which has just run.
  virtual void time_product() = 0;

  /// Another instance of the stage, with the run's configuration: one is made for each set of tensors.
  std::unique_ptr<Stage> make_another() const;
  /// What is timed.
  void launch(Stream stream) { stage_->launch(workload_.problem, tensors(), stream); }
  /// The product alone, where the stage has one.
  bool launch_product(Stream stream) { return stage_->launch_without_transform(workload_.problem, tensors(), stream); }
  /// Notes the faults as the result. @return false
  bool note_faults(const std::vector<Fault>& faults);

  const Workload& workload_;
  const RunOptions& options_;
  RunResult& result_;
  std::unique_ptr<Stage> stage_;  ///< that is checked, configured and run

 private:
  bool accepted();
  bool configure();
  bool launch_and_check();
  bool measure_product();
  bool check(const Observation& seen);
  CheckResult compare_with_reference();
  double error_of_taps(double tap) const;
  void note_observation(const Observation& seen);
  void add_guard_faults(std::vector<Fault>& faults) const;

  std::vector<float> output_;                   ///< of the last launch
  std::optional<ErrorModel> errors_;            ///< once it is prepared
  std::shared_ptr<const OutputBounds> bounds_;  ///< once they were needed
};

}  // namespace convladder
