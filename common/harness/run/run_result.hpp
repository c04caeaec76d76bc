/// @file
/// What a run is given, and everything that it finds out.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/harness/baselines/cudnn_baseline.hpp"
#include "common/harness/check/checker.hpp"
#include "common/harness/check/inputs.hpp"
#include "common/harness/check/reference.hpp"
#include "common/harness/device/device.hpp"
#include "common/harness/device/throttle_watch.hpp"
#include "common/harness/ladder/registry.hpp"
#include "common/harness/run/known_bounds.hpp"
#include "common/stage/tunable.hpp"

namespace convladder {

/// A problem with its tensors and their exact result, shared by every stage that runs it.
struct Workload {
  std::string name;  ///< "w=2^24 r=5"; empty for a user's own
  ConvProblem problem;
  InputKind inputs = InputKind::normal;
  HostTensors tensors;
  Reference reference;
  std::shared_ptr<KnownBounds> bounds = std::make_shared<KnownBounds>();  ///< of what has run on it so far
};

/// Makes the tensors and the reference.
Workload make_workload(std::string name, const ConvProblem& problem, InputKind inputs, FilterForm filter,
                       std::uint64_t seed);

/// How a run ended.
enum class Status {
  ok,       ///< the result is right
  wrong,    ///< it is not
  fault,    ///< the simulator found a fault
  refused,  ///< a rule of the stage or the device forbids the problem
  error,    ///< a launch or a CUDA call failed
};
/// Its name in JSON.
const char* to_string(Status status);

/// Times of one launch.
struct TimeSummary {
  double median = 0, min = 0, spread = 0;  ///< microseconds a launch, and the interquartile range over the median
  std::vector<double> samples = {};        ///< what these summarise, in the order in which they were taken
};

/// What a problem needs at least, and how near the device's measured ceilings a stage came to it.
struct Roofline {
  std::int64_t bytes = 0;  ///< each tensor once
  std::int64_t flops = 0;  ///< of the direct form; of a Winograd stage its own, if fewer
  std::optional<double> floor_us, share;
  std::string bound;  ///< "DRAM", "L2", or "fp32", "fp16" or "int8": what the floor comes from; empty without one
};

/// What a tunable stage ran with.
struct UsedConfiguration {
  Configuration configuration;
  std::string origin;  ///< "tuned", "default", or "given" by RunOptions or the row
};

/// The result that another is compared with.
struct ComparedWith {
  const StageInfo* stage = nullptr;  ///< a stage, or a row of one with other settings
  std::optional<UsedConfiguration> configuration;
  std::string tile;               ///< as in its RunResult
  std::optional<double> time_us;  ///< its hot median
};

/// Absent where the comparison is not possible.
struct Speedups {
  std::optional<double> previous, first, cudnn_winograd, cudnn_best, cudnn_gemm, cudnn_fft;
  std::optional<ComparedWith> over = {};  ///< where there is `previous`: the fastest configuration of that stage
};

/// Everything one run found out; report.hpp writes it. Absent values are null in JSON.
struct RunResult {
  const StageInfo* stage = nullptr;
  std::string workload_name;
  ConvProblem problem;
  std::string backend;  ///< "gpu", "sim", or "cpu" for a stage that runs on the host
  std::string device;
  Status status = Status::error;
  std::string reason;     ///< "" if ok: the rule, the first wrong output, the first fault, or what failed
  bool verified = false;  ///< right before and (where timed) after the measurement
  std::optional<CheckResult> check;
  std::optional<TimeSummary> time_us;       ///< hot: the same buffers in every launch. The headline.
  std::optional<TimeSummary> time_cold_us;  ///< buffers rotated past L2
  std::string cold_unavailable;             ///< why there is no cold time, where there is a hot one
  /// Of the GPU while the hot time was taken. What was repeated and slowed, and why, is of all times.
  std::optional<GpuConditions> gpu;
  /// Of launch_without_transform(), hot: the product on an input that has been rearranged before.
  std::optional<TimeSummary> time_without_transform_us;
  std::optional<double> prepare_us;  ///< where times are taken
  std::optional<std::int64_t> workspace_bytes;
  std::optional<Counters> counters;  ///< simulator only
  std::optional<Prediction> prediction;
  std::vector<LineCounters> lines;
  std::vector<Fault> faults;
  std::vector<KernelInfo> kernels;
  std::optional<UsedConfiguration> configuration;  ///< of a tunable stage
  std::string library;                             ///< that a row stands on, with its version; "" of stages
  std::string tile;  ///< of Winograd's algorithm, the outputs down and across: "4x4"; else ""
  std::optional<CudnnBaseline> cudnn;
  Speedups speedup;
  std::optional<Roofline> roofline;
  std::vector<float> output;  ///< (n, k, p, q), if wanted
};

/// The prediction's claims that the counters do not meet.
std::vector<const CounterField*> broken_claims(const Counters& counters, const Prediction& prediction);

/// Takes samples of a launch's time in microseconds, as many as it wants: each call of `sample` replays a CUDA graph.
using Sampling = std::function<std::vector<double>(const std::function<double()>& sample)>;

/// The samples that a run takes unless something else (Google Benchmark) drives it.
inline constexpr int kSamples = 15;
/// Whether no more samples are needed: `kSamples`, or 5 that took a second, or 3 that took two. The times of launches
/// that last so long hardly vary.
bool enough_samples(std::size_t samples, std::chrono::steady_clock::duration time);
/// So many, one after the other.
std::vector<double> take_samples(const std::function<double()>& sample);

/// What a run finds out, and keeps.
struct RunOptions {
  bool lines = false;  ///< counters per source line (simulator)
  bool time = true;    ///< on a GPU or CPU: time it; false: check only
  bool cold = true;    ///< on a GPU: with buffers rotated past L2, too
  bool keep_output = false;
  Sampling sampling = take_samples;            ///< of the hot time on a GPU
  std::optional<Configuration> configuration;  ///< of a tunable stage, instead of the tuned or default one
  std::string settings;  ///< the same by name, the other knobs as by default; "" for none. See settings.hpp
};

}  // namespace convladder
