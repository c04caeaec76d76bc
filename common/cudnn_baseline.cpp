/// @file
/// Checks and times what the module `convladder_cudnn` offers. No header of CUDA or cuDNN is needed here.
#include "common/cudnn_baseline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "common/cudnn_module.hpp"
#include "common/device.hpp"
#include "common/module.hpp"
#include "common/timing.hpp"

namespace convladder {
namespace {

constexpr int kGroups = 7;
constexpr double kGroupUs = 2000;   // what a group of launches should last
constexpr double kSlowUs = 50'000;  // a launch longer than this is timed in kSlowGroups groups of one
constexpr int kSlowGroups = 3;
constexpr double kOnceUs = 1e6;           // a launch longer than this is not run again after its check
constexpr double kHopelessRatio = 20;     // times the best so far: timed once
constexpr std::int64_t kMemoryShare = 4;  // a workspace may take this fraction of the free memory

const Module& module() {
  static const Module loaded = load_module({kCudnnModuleFile, kCudnnModuleFunction, "cuDNN", "libcudnn.so.9",
                                            "pip install nvidia-cudnn-cu13, or cuDNN's package for your CUDA"});
  return loaded;
}

void find_candidates(const ConvProblem& problem, CudnnCandidates& found) {
  reinterpret_cast<CudnnModuleFunction*>(module().function)(problem, found);
}

/// Transposes each of `count` matrices of `rows` x `columns`: (c, h*w) to (h*w, c), say.
std::vector<float> transposed(const std::vector<float>& source, std::int64_t count, std::int64_t rows,
                              std::int64_t columns) {
  std::vector<float> result(source.size());
#ifdef _OPENMP
#pragma omp parallel for collapse(2)
#endif
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t row = 0; row < rows; ++row) {
      const float* from = source.data() + (i * rows + row) * columns;
      float* to = result.data() + i * rows * columns + row;
      for (std::int64_t column = 0; column < columns; ++column) to[column * rows] = from[column];
    }
  }
  return result;
}

/// ||output - reference|| / ||reference|| over the outputs whose reference is finite; NaN if one of them is NaN.
double relative_l2_error(const std::vector<float>& output, const std::vector<double>& reference) {
  double error = 0, norm = 0;
#ifdef _OPENMP
#pragma omp parallel for reduction(+ : error, norm)
#endif
  for (std::size_t i = 0; i < reference.size(); ++i) {
    if (!std::isfinite(reference[i])) continue;
    const double difference = output[i] - reference[i];
    error += difference * difference;
    norm += reference[i] * reference[i];
  }
  return error == 0 ? 0 : std::sqrt(error / norm);
}

/// The problem's tensors on the device in one of the layouts.
class Bench {
 public:
  Bench(const ConvProblem& problem, const HostTensors& tensors, const Reference& reference, bool nhwc)
      : problem_(problem),
        reference_(reference),
        nhwc_(nhwc),
        input_(tensors.input.size() * sizeof(float), "cuDNN's input"),
        filter_(tensors.filter.size() * sizeof(float), "cuDNN's filter"),
        output_(reference.output.size() * sizeof(float), "cuDNN's output") {
    const auto& [input, filter] = tensors;
    input_.upload((nhwc ? transposed(input, problem.n, problem.c, problem.h * problem.w) : input).data());
    filter_.upload(
        (nhwc ? transposed(filter, problem.k, problem.c / problem.groups, problem.r * problem.s) : filter).data());
  }

  /// Checks and times a candidate, into `trial`. @param best_us the fastest so far
  void measure(const CudnnCandidate& candidate, double best_us, CudnnTrial& trial) {
    const std::int64_t allowed = device_info().free_memory_bytes / kMemoryShare;
    if (candidate.workspace_bytes > allowed) {
      trial.status = fmt::format("workspace of {} MiB is more than 1/{} of the free memory",
                                 candidate.workspace_bytes >> 20, kMemoryShare);
      return;
    }
    const DeviceBuffer workspace(static_cast<std::size_t>(candidate.workspace_bytes), "cuDNN's workspace");
    const auto launch = [&](Stream stream) {
      const std::string refusal =
          candidate.run(input_.floats(), filter_.floats(), output_.floats(), workspace.data(), stream);
      if (!refusal.empty()) throw DeviceError(refusal);
    };
    output_.poison();
    double checked_us = 0;
    try {
      checked_us = run_and_wait(launch);
    } catch (const DeviceError& error) {
      trial.status = error.what();
      run_and_wait([](Stream) {});  // throws if the GPU context is lost with it
      return;
    }
    trial.status = verdict(workspace);
    if (trial.status != "ok") return;
    if (checked_us > kOnceUs) {
      trial.time_us = checked_us;
    } else {
      time(launch, best_us, trial);
    }
  }

 private:
  std::string verdict(const DeviceBuffer& workspace) {
    if (!output_.guards_intact() || !workspace.guards_intact()) return "wrote outside its buffers";
    result_.resize(reference_.output.size());
    output_.download(result_.data());
    const bool shuffled = nhwc_ && problem_.k > 1;
    const double error =
        relative_l2_error(shuffled ? transposed(result_, problem_.n, problem_.p() * problem_.q(), problem_.k) : result_,
                          reference_.output);
    return error <= kCudnnErrorLimit ? "ok" : fmt::format("wrong result (rel. L2 error {:.2g})", error);
  }

  static void time(const std::function<void(Stream)>& launch, double best_us, CudnnTrial& trial) {
    const double once_us = time_by_events(launch, 1);
    if (once_us > kHopelessRatio * best_us) {
      trial.time_us = once_us;
      return;
    }
    const bool slow = once_us > kSlowUs;
    const int repetitions = slow ? 1 : repetitions_for(launch, kGroupUs);
    TimeSeries series;
    try {
      GraphTimer timer({launch}, repetitions);
      for (int i = 0; i < (slow ? kSlowGroups : kGroups); ++i) series.groups.push_back(timer.sample());
    } catch (const DeviceError&) {  // not every algorithm can be captured
      trial.status = "ok, timed without a CUDA graph";
      series.groups.clear();
      for (int i = 0; i < (slow ? kSlowGroups : kGroups); ++i) {
        series.groups.push_back(time_by_events(launch, repetitions));
      }
    }
    trial.time_us = series.median();
  }

  const ConvProblem& problem_;
  const Reference& reference_;
  bool nhwc_;
  DeviceBuffer input_, filter_, output_;
  std::vector<float> result_;  ///< on the host
};

/// A signal along h in place of w.
ConvProblem turned(ConvProblem problem) {
  std::swap(problem.h, problem.w);
  std::swap(problem.r, problem.s);
  std::swap(problem.pad_h, problem.pad_w);
  std::swap(problem.stride_h, problem.stride_w);
  std::swap(problem.dilation_h, problem.dilation_w);
  return problem;
}

/// The fastest of the candidates that were tried.
struct Fastest {
  double time_us = std::numeric_limits<double>::infinity();
  CudnnCandidate candidate;  ///< without `run` as long as none was right
};

const char* layout_name(const CudnnCandidate& candidate) { return candidate.nhwc ? "NHWC" : "NCHW"; }

CudnnTrial trial_of(const CudnnCandidate& candidate, std::string algorithm, std::string layout) {
  return {std::move(algorithm), std::move(layout), candidate.status, std::nullopt, candidate.workspace_bytes};
}

/// Adds a trial for every candidate in both layouts. @param note follows each algorithm's name @param fastest of all
/// trials so far
void try_all(const ConvProblem& problem, const std::string& note, const HostTensors& tensors,
             const Reference& reference, Fastest& fastest, CudnnBaseline& baseline) {
  CudnnCandidates found;
  find_candidates(problem, found);
  baseline.version = found.version;
  if (!found.error.empty()) {
    baseline.unavailable = fmt::format("cuDNN {} does not start: {}", found.version, found.error);
    return;
  }
  for (const bool nhwc : {false, true}) {
    Bench bench(problem, tensors, reference, nhwc);
    for (const CudnnCandidate& candidate : found.candidates) {
      if (candidate.nhwc != nhwc) continue;
      CudnnTrial& trial =
          baseline.trials.emplace_back(trial_of(candidate, candidate.algorithm + note, layout_name(candidate)));
      try {
        if (candidate.run) bench.measure(candidate, fastest.time_us, trial);
      } catch (const DeviceError& error) {
        throw DeviceError(fmt::format("cuDNN's {} in {}: {}", trial.algorithm, trial.layout, error.what()));
      }
      if (trial.ok() && *trial.time_us < fastest.time_us) fastest = {*trial.time_us, candidate};
    }
  }
}

// ---- Two passes -----------------------------------------------------------------------------------------------------

/// A filter of rank one: its tap (i, j) is column[i] * row[j].
struct Factors {
  std::vector<float> column, row;
};

/// Splits the filter at its largest tap; none where it is no such product.
std::optional<Factors> factors_of(const ConvProblem& problem, const std::vector<float>& filter) {
  constexpr double kTolerance = 1e-6;  // of the largest tap
  const auto rows = static_cast<std::size_t>(problem.r), columns = static_cast<std::size_t>(problem.s);
  const auto largest = static_cast<std::size_t>(
      std::max_element(filter.begin(), filter.end(), [](float a, float b) { return std::abs(a) < std::abs(b); }) -
      filter.begin());
  const double peak = filter[largest];
  if (!(std::abs(peak) > 0)) return std::nullopt;
  Factors factors;
  for (std::size_t i = 0; i < rows; ++i)
    factors.column.push_back(static_cast<float>(filter[i * columns + largest % columns] / peak));
  for (std::size_t j = 0; j < columns; ++j) factors.row.push_back(filter[largest / columns * columns + j]);
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) {
      const double product = static_cast<double>(factors.column[i]) * factors.row[j];
      if (!(std::abs(filter[i * columns + j] - product) <= kTolerance * std::abs(peak))) return std::nullopt;
    }
  }
  return factors;
}

/// Only the part of the problem that runs along w: a filter of one row.
ConvProblem along_rows(ConvProblem problem) {
  problem.r = problem.stride_h = problem.dilation_h = 1;
  problem.pad_h = 0;
  return problem;
}
/// The part that runs along h, on what the other part leaves.
ConvProblem along_columns(ConvProblem problem) {
  problem.w = problem.q();
  problem.s = problem.stride_w = problem.dilation_w = 1;
  problem.pad_w = 0;
  return problem;
}

/// One pass: the fastest candidate, and its filter on the device.
struct Pass {
  Fastest fastest;
  DeviceBuffer filter;
};

Pass best_pass(const ConvProblem& problem, const HostTensors& tensors, const Reference& reference) {
  Pass pass;
  CudnnBaseline trials;
  try_all(problem, "", tensors, reference, pass.fastest, trials);
  pass.filter = DeviceBuffer(tensors.filter.size() * sizeof(float), "cuDNN's filter of one pass");
  pass.filter.upload(tensors.filter.data());
  return pass;
}

/// The two passes as one candidate. One channel lies in memory alike in both layouts.
CudnnCandidate join(const Pass& first, const Pass& second, const DeviceBuffer& between) {
  const CudnnCandidate &a = first.fastest.candidate, &b = second.fastest.candidate;
  CudnnCandidate both;
  both.status = "ok";
  both.workspace_bytes = std::max(a.workspace_bytes, b.workspace_bytes);
  both.run = [&](const float* input, const float*, float* output, void* workspace, Stream stream) {
    const std::string refusal = a.run(input, first.filter.floats(), between.floats(), workspace, stream);
    if (!refusal.empty()) return refusal;
    return b.run(between.floats(), second.filter.floats(), output, workspace, stream);
  };
  return both;
}

/// Adds a trial of the fastest 1 x s convolution and after it the fastest r x 1 convolution.
/// @throws MachineError if the memory is not there
void try_two_passes(const ConvProblem& problem, const Factors& factors, const HostTensors& tensors,
                    const Reference& reference, CudnnBaseline& baseline) {
  const ConvProblem rows = along_rows(problem), columns = along_columns(problem);
  const HostTensors row_tensors{tensors.input, factors.row};
  const Reference row_reference = convolve_reference(rows, row_tensors.input, row_tensors.filter);
  const HostTensors column_tensors{{row_reference.output.begin(), row_reference.output.end()}, factors.column};

  const Pass first = best_pass(rows, row_tensors, row_reference);
  const Pass second = best_pass(columns, column_tensors, reference);
  if (!first.fastest.candidate.run || !second.fastest.candidate.run) {
    baseline.trials.push_back({kTwoPasses, "NCHW", "no algorithm computes both passes", std::nullopt, 0});
    return;
  }
  const DeviceBuffer between(static_cast<std::size_t>(rows.output_size()) * sizeof(float), "between the passes");
  const CudnnCandidate both = join(first, second, between);
  const CudnnCandidate &a = first.fastest.candidate, &b = second.fastest.candidate;
  CudnnTrial& trial = baseline.trials.emplace_back(
      trial_of(both, fmt::format("{}: {} + {}", kTwoPasses, a.algorithm, b.algorithm),
               a.nhwc == b.nhwc ? layout_name(a) : fmt::format("{} + {}", layout_name(a), layout_name(b))));
  trial.workspace_bytes += static_cast<std::int64_t>(between.bytes());
  Bench(problem, tensors, reference, false).measure(both, std::numeric_limits<double>::infinity(), trial);
}

}  // namespace

CudnnBaseline measure_cudnn(const ConvProblem& problem, const HostTensors& tensors, const Reference& reference) {
  CudnnBaseline baseline;
  if (problem.padding != Padding::zero && (problem.pad_h > 0 || problem.pad_w > 0)) {
    baseline.unavailable = "cuDNN pads with zeros only";
    return baseline;
  }
  baseline.unavailable = module().unavailable;
  if (!baseline.unavailable.empty()) return baseline;
  device_info();  // without a GPU it says so in words of its own, and cuDNN would not

  try {
    Fastest fastest;
    try_all(problem, "", tensors, reference, fastest, baseline);
    // The same tensors in memory, but other engines may take them.
    if (problem.h == 1 && problem.r == 1 && problem.w > 1)
      try_all(turned(problem), " as h x 1", tensors, reference, fastest, baseline);
  } catch (const MachineError& error) {
    baseline.trials.clear();
    baseline.unavailable = error.what();
  }
  if (!baseline.unavailable.empty() || problem.c > 1 || problem.k > 1 || problem.r == 1 || problem.s == 1)
    return baseline;
  if (const std::optional<Factors> factors = factors_of(problem, tensors.filter)) {
    try {
      try_two_passes(problem, *factors, tensors, reference, baseline);
    } catch (const MachineError& error) {
      baseline.trials.push_back({kTwoPasses, "NCHW", error.what(), std::nullopt, 0});
    }
  }
  return baseline;
}

}  // namespace convladder
