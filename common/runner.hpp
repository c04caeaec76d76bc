/// @file
/// Runs one stage on one problem: checked, then counted (simulator) or timed (GPU), then checked again.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "common/checker.hpp"
#include "common/cudnn_baseline.hpp"
#include "common/device.hpp"
#include "common/inputs.hpp"
#include "common/reference.hpp"
#include "common/registry.hpp"
#include "common/timing.hpp"

namespace convladder {

/// A problem with its tensors and their exact result, shared by every stage that runs it.
struct Workload {
  std::string name;  ///< "2^24 r=5"; empty for a user's own
  ConvProblem problem;
  InputKind inputs = InputKind::normal;
  HostTensors tensors;
  Reference reference;
};

/// Makes the tensors and the reference.
Workload make_workload(std::string name, const ConvProblem& problem, InputKind inputs, std::uint64_t seed);

enum class Status { ok, wrong, fault, refused, error };
const char* to_string(Status status);

struct TimeSummary {
  double median = 0, min = 0, spread = 0;
};

/// Everything one run found out; report.hpp writes it. Absent values are null in JSON.
struct RunResult {
  const StageInfo* stage = nullptr;
  std::string workload_name;
  ConvProblem problem;
  std::string device;
  Status status = Status::error;
  std::string reason;      ///< "" if ok: the rule, the first wrong output, the first fault, or what failed
  bool verified = false;   ///< right before and (where timed) after the measurement
  std::optional<CheckResult> check;
  std::optional<TimeSummary> time_us, time_cold_us;
  double prepare_us = 0;
  std::int64_t workspace_bytes = 0;
  std::optional<Counters> counters;
  std::optional<Prediction> prediction;
  std::vector<LineCounters> lines;
  std::vector<Fault> faults;
  std::vector<KernelInfo> kernels;
  std::optional<CudnnBaseline> cudnn;
  std::optional<double> speedup_previous, speedup_first, speedup_cudnn_winograd, speedup_cudnn_best;
  std::optional<double> roofline_bytes, roofline_flops, roofline_floor_us, roofline_share;
  std::string roofline_bound;  ///< "DRAM", "L2", "fp32", or empty
  std::vector<float> output;   ///< (n, k, p, q), if wanted
};

struct RunOptions {
  bool lines = false;        ///< counters per source line (simulator)
  bool time = true;          ///< on a GPU: time it; false: check only
  bool keep_output = false;
};

/// Never throws for what the stage does: a refusal, a fault, a wrong result or a failed launch is the result's status.
RunResult run_stage(const StageInfo& stage, const Workload& workload, const RunOptions& options);

}  // namespace convladder
