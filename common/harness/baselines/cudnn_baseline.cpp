/// @file
/// Checks and times what the module `convladder_cudnn` offers. No header of CUDA or cuDNN is needed here.
#include "common/harness/baselines/cudnn_baseline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

#include "common/harness/baselines/cudnn_module.hpp"
#include "common/harness/check/half_bits.hpp"
#include "common/harness/check/quantise.hpp"
#include "common/harness/device/device.hpp"
#include "common/harness/device/module.hpp"
#include "common/harness/device/timing.hpp"

namespace convladder {
namespace {

constexpr int kGroups = 7;
constexpr double kGroupUs = 2000;   // what a group of launches should last
constexpr double kSlowUs = 50'000;  // a launch longer than this is timed in kSlowGroups groups of one
constexpr int kSlowGroups = 3;
constexpr double kOnceUs = 1e6;        // a launch longer than this is not run again after its check
constexpr double kHopelessRatio = 20;  // times the best so far: timed once
constexpr double kNothingYet = std::numeric_limits<double>::infinity();  // the time of the best so far
constexpr std::int64_t kMemoryShare = 4;  // a workspace may take this fraction of the free memory

const Module& module() {
  static const Module loaded = load_module({kCudnnModuleFile, kCudnnModuleFunction, "cuDNN", "libcudnn.so.9",
                                            "pip install nvidia-cudnn-cu13, or cuDNN's package for your CUDA"});
  return loaded;
}

void find_candidates(const ConvProblem& problem, const CudnnTypes& types, CudnnCandidates& found) {
  reinterpret_cast<CudnnModuleFunction*>(module().function)(problem, types, found);
}

// ---- Element types --------------------------------------------------------------------------------------------------

std::size_t size_of(Precision precision) {
  return precision == Precision::fp32 ? sizeof(float) : precision == Precision::fp16 ? sizeof(std::uint16_t) : 1;
}

/// What an int8 of each tensor stands for one step of.
struct Steps {
  double input = 1, filter = 1, output = 1;
};

/// The bytes of the values in a precision. @param step of int8
std::vector<std::byte> encoded(const std::vector<float>& values, Precision precision, double step) {
  std::vector<std::byte> bytes(values.size() * size_of(precision));
  const auto fill = [&]<class Element>(Element, const auto& encode) {
#ifdef _OPENMP
#pragma omp parallel for
#endif
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Element element = encode(values[i]);
      std::memcpy(bytes.data() + i * sizeof element, &element, sizeof element);
    }
  };
  switch (precision) {
    case Precision::fp32:
      fill(float{}, [](float value) { return value; });
      break;
    case Precision::fp16:
      fill(std::uint16_t{}, [](float value) { return half_bits(value); });
      break;
    case Precision::int8:
      fill(std::int8_t{}, [step](float value) { return int8_of(value, step); });
      break;
  }
  return bytes;
}

/// Calls `work` with a function that gives the value of element i of such bytes.
template <class Work>
auto with_elements(const std::vector<std::byte>& bytes, Precision precision, const Work& work) {
  const auto element = [&bytes]<class Element>(Element, std::size_t i) {
    Element value;
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    return value;
  };
  switch (precision) {
    case Precision::fp32:
      return work([&](std::size_t i) { return static_cast<double>(element(float{}, i)); });
    case Precision::fp16:
      return work([&](std::size_t i) { return static_cast<double>(half_value(element(std::uint16_t{}, i))); });
    case Precision::int8:
      return work([&](std::size_t i) { return static_cast<double>(element(std::int8_t{}, i)); });
  }
  throw std::logic_error("not a precision");
}

double error_limit(Precision precision, std::string_view family) {
  switch (precision) {
    case Precision::fp32:
      return kCudnnErrorLimit;
    case Precision::fp16:
      return family == kWinogradFamily ? kCudnnHalfWinogradErrorLimit : kCudnnHalfErrorLimit;
    case Precision::int8:
      return kCudnnInt8ErrorLimit;
  }
  throw std::logic_error("not a precision");
}

// ---- Checking and timing --------------------------------------------------------------------------------------------

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
/// @param output gives the element at an index  @param nhwc its order; the reference's is NCHW
template <class Output>
double relative_l2_error(const ConvProblem& problem, const Output& output, bool nhwc, const Reference& reference) {
  const std::int64_t filters = problem.k, pixels = problem.p() * problem.q();
  double error = 0, norm = 0;
#ifdef _OPENMP
#pragma omp parallel for reduction(+ : error, norm)
#endif
  for (std::int64_t pixel = 0; pixel < problem.n * pixels; ++pixel) {
    for (std::int64_t filter = 0; filter < filters; ++filter) {
      const auto nchw = static_cast<std::size_t>((pixel / pixels * filters + filter) * pixels + pixel % pixels);
      const double exact = reference.output[nchw];
      if (!std::isfinite(exact)) continue;
      const double difference = output(nhwc ? static_cast<std::size_t>(pixel * filters + filter) : nchw) - exact;
      error += difference * difference;
      norm += exact * exact;
    }
  }
  return error == 0 ? 0 : std::sqrt(error / norm);
}

/// Into `trial`. @param best_us the fastest so far
void time_hot(const std::function<void(Stream)>& launch, double best_us, CudnnTrial& trial) {
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

/// The problem's tensors on the device in one of the layouts and precisions.
class Bench {
 public:
  Bench(const ConvProblem& problem, const HostTensors& tensors, const Reference& reference, Precision precision,
        const Steps& steps, bool nhwc)
      : problem_(problem), reference_(reference), precision_(precision), steps_(steps), nhwc_(nhwc) {
    const auto& [input, filter] = tensors;
    upload(nhwc ? transposed(input, problem.n, problem.c, problem.h * problem.w) : input, steps.input, "cuDNN's input",
           input_);
    upload(nhwc ? transposed(filter, problem.k, problem.c / problem.groups, problem.r * problem.s) : filter,
           steps.filter, "cuDNN's filter", filter_);
  }

  DeviceBuffer output_of(const CudnnCandidate& candidate) const {
    return {static_cast<std::size_t>(problem_.output_size()) * size_of(candidate.output), "cuDNN's output"};
  }

  static DeviceBuffer workspace_of(const CudnnCandidate& candidate) {
    return {static_cast<std::size_t>(candidate.workspace_bytes), "cuDNN's workspace"};
  }

  /// @throws DeviceError with cuDNN's word
  void start(const CudnnCandidate& candidate, const DeviceBuffer& output, const DeviceBuffer& workspace,
             Stream stream) const {
    const std::string refusal = candidate.run(input_.data(), filter_.data(), output.data(), workspace.data(), stream);
    if (!refusal.empty()) throw DeviceError(refusal);
  }

  std::int64_t tensor_bytes(const CudnnCandidate& candidate) const {
    return static_cast<std::int64_t>(input_.bytes() + filter_.bytes()) +
           problem_.output_size() * static_cast<std::int64_t>(size_of(candidate.output));
  }

  /// Checks and times a candidate, into `trial`. @param best_us the fastest so far
  void measure(const CudnnCandidate& candidate, double best_us, CudnnTrial& trial) {
    const std::int64_t allowed = device_info().free_memory_bytes / kMemoryShare;
    if (candidate.workspace_bytes > allowed) {
      trial.status = fmt::format("workspace of {} MiB is more than 1/{} of the free memory",
                                 candidate.workspace_bytes >> 20, kMemoryShare);
      return;
    }
    const DeviceBuffer workspace = workspace_of(candidate);
    DeviceBuffer output = output_of(candidate);
    const auto launch = [&](Stream stream) { start(candidate, output, workspace, stream); };
    output.poison();
    double checked_us = 0;
    try {
      checked_us = run_and_wait(launch);
    } catch (const DeviceError& error) {
      trial.status = error.what();
      run_and_wait([](Stream) {});  // throws if the GPU context is lost with it
      return;
    }
    if (!output.guards_intact() || !workspace.guards_intact()) {
      trial.status = "wrote outside its buffers";
      return;
    }
    trial.rel_l2_err = error_of(output, candidate.output);
    if (!(*trial.rel_l2_err <= error_limit(precision_, trial.family()))) {
      trial.status = fmt::format("wrong result (rel. L2 error {:.2g})", *trial.rel_l2_err);
      return;
    }
    trial.status = "ok";
    if (checked_us > kOnceUs) {
      trial.time_us = checked_us;
    } else {
      time_hot(launch, trial.family() == kWinogradFamily ? kNothingYet : best_us, trial);
    }
  }

 private:
  void upload(const std::vector<float>& values, double step, const char* name, DeviceBuffer& buffer) const {
    const std::vector<std::byte> bytes = encoded(values, precision_, step);
    buffer = DeviceBuffer(bytes.size(), name);
    buffer.upload(bytes.data());
  }

  /// @param stored what the output's elements are
  double error_of(const DeviceBuffer& output, Precision stored) {
    bytes_.resize(output.bytes());
    output.download(bytes_.data());
    const double factor = stored == Precision::int8       ? steps_.output
                          : precision_ == Precision::int8 ? steps_.input * steps_.filter
                                                          : 1;
    return with_elements(bytes_, stored, [&](const auto& element) {
      return relative_l2_error(
          problem_, [&](std::size_t i) { return factor * element(i); }, nhwc_, reference_);
    });
  }

  const ConvProblem& problem_;
  const Reference& reference_;
  Precision precision_;
  Steps steps_;
  bool nhwc_;
  DeviceBuffer input_, filter_;
  std::vector<std::byte> bytes_;  // of the last output
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
  double time_us = kNothingYet;
  CudnnCandidate candidate;  ///< without `run` as long as none was right
};

const char* layout_name(const CudnnCandidate& candidate) { return candidate.nhwc ? "NHWC" : "NCHW"; }

CudnnTrial trial_of(const CudnnCandidate& candidate, std::string algorithm, std::string layout, Precision precision) {
  return {std::move(algorithm),      std::move(layout), candidate.status, std::nullopt,
          candidate.workspace_bytes, precision,         std::nullopt};
}

/// What to try.
struct Attempt {
  std::string_view note = "";  ///< follows each algorithm's name
  Precision precision = Precision::fp32;
  bool winograd_only = false;
};

/// Adds a trial for every candidate in the layouts that it has. @param fastest of all trials so far
void try_all(const ConvProblem& problem, const Attempt& attempt, const HostTensors& tensors, const Reference& reference,
             Fastest& fastest, CudnnBaseline& baseline) {
  Steps steps;
  if (attempt.precision == Precision::int8)
    steps = {int8_step(tensors.input), int8_step(tensors.filter), int8_step(reference.output)};
  const CudnnTypes types{attempt.precision, static_cast<float>(steps.input * steps.filter / steps.output)};
  CudnnCandidates found;
  find_candidates(problem, types, found);
  baseline.version = found.version;
  if (!found.error.empty()) {
    baseline.unavailable = fmt::format("cuDNN {} does not start: {}", found.version, found.error);
    return;
  }
  for (const bool nhwc : {false, true}) {
    std::optional<Bench> bench;
    for (const CudnnCandidate& candidate : found.candidates) {
      if (candidate.nhwc != nhwc) continue;
      CudnnTrial trial = trial_of(candidate, fmt::format("{}{}", candidate.algorithm, attempt.note),
                                  layout_name(candidate), attempt.precision);
      if (attempt.winograd_only && trial.family() != kWinogradFamily) continue;
      try {
        if (candidate.run && !bench) bench.emplace(problem, tensors, reference, attempt.precision, steps, nhwc);
        if (candidate.run) bench->measure(candidate, fastest.time_us, trial);
      } catch (const DeviceError& error) {
        throw DeviceError(fmt::format("cuDNN's {} in {}: {}", trial.algorithm, trial.layout, error.what()));
      }
      if (trial.ok() && *trial.time_us < fastest.time_us) fastest = {*trial.time_us, candidate};
      baseline.trials.push_back(std::move(trial));
    }
  }
}

// ---- Once more ------------------------------------------------------------------------------------------------------

/// Microseconds per launch with buffers that L2 does not hold; nothing where 64 copies of them would be too few.
std::optional<double> time_cold(const std::function<Bench()>& make_bench, const CudnnCandidate& candidate) {
  struct Copy {
    Bench bench;
    DeviceBuffer output, workspace;
  };
  std::vector<Copy> copies;
  std::vector<std::function<void(Stream)>> launches;
  std::int64_t count = 1;
  for (std::int64_t i = 0; i < count; ++i) {
    Bench bench = make_bench();
    if (i == 0) count = cold_copies(bench.tensor_bytes(candidate), device_info().l2_bytes);
    if (count > kMaxColdCopies) return std::nullopt;
    copies.reserve(static_cast<std::size_t>(count));  // the launches below point into it
    DeviceBuffer output = bench.output_of(candidate), workspace = Bench::workspace_of(candidate);
    const Copy& copy = copies.emplace_back(Copy{std::move(bench), std::move(output), std::move(workspace)});
    launches.push_back([&](Stream stream) { copy.bench.start(candidate, copy.output, copy.workspace, stream); });
  }
  GraphTimer timer(launches, std::max(1, repetitions_for(launches.front(), kGroupUs) / static_cast<int>(count)));
  TimeSeries series;
  for (int i = 0; i < kGroups; ++i) series.groups.push_back(timer.sample());
  return series.median();
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
  try_all(problem, {}, tensors, reference, pass.fastest, trials);
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
  both.run = [&](const void* input, const void*, void* output, void* workspace, Stream stream) {
    const std::string refusal = a.run(input, first.filter.data(), between.data(), workspace, stream);
    if (!refusal.empty()) return refusal;
    return b.run(between.data(), second.filter.data(), output, workspace, stream);
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
  CudnnTrial& trial = baseline.trials.emplace_back(trial_of(
      both, fmt::format("{}: {} + {}", kTwoPasses, a.algorithm, b.algorithm),
      a.nhwc == b.nhwc ? layout_name(a) : fmt::format("{} + {}", layout_name(a), layout_name(b)), Precision::fp32));
  trial.workspace_bytes += static_cast<std::int64_t>(between.bytes());
  Bench(problem, tensors, reference, Precision::fp32, {}, false).measure(both, kNothingYet, trial);
}

}  // namespace

CudnnBaseline measure_cudnn(const ConvProblem& problem, const HostTensors& tensors, const Reference& reference,
                            Precision precision) {
  CudnnBaseline baseline;
  baseline.precision = precision;
  if (problem.padding != Padding::zero && (problem.pad_h > 0 || problem.pad_w > 0)) {
    baseline.unavailable = "cuDNN pads with zeros only";
    return baseline;
  }
  baseline.unavailable = module().unavailable;
  if (!baseline.unavailable.empty()) return baseline;
  device_info();  // without a GPU it says so in words of its own, and cuDNN would not

  try {
    Fastest fastest;
    try_all(problem, {.precision = precision}, tensors, reference, fastest, baseline);
    if (precision == Precision::int8) {
      Fastest of_winograd;
      try_all(problem, {.precision = Precision::fp16, .winograd_only = true}, tensors, reference, of_winograd,
              baseline);
    }
    // The same tensors in memory, but other engines may take them.
    if (problem.h == 1 && problem.r == 1 && problem.w > 1)
      try_all(turned(problem), {" as h x 1", precision}, tensors, reference, fastest, baseline);
    if (fastest.candidate.run) baseline.best_candidate = std::make_shared<CudnnCandidate>(std::move(fastest.candidate));
  } catch (const MachineError& error) {
    baseline.trials.clear();
    baseline.unavailable = error.what();
  }
  const bool one_image = problem.c == 1 && problem.k == 1 && problem.r > 1 && problem.s > 1;
  if (!baseline.unavailable.empty() || precision != Precision::fp32 || !one_image) return baseline;
  if (const std::optional<Factors> factors = factors_of(problem, tensors.filter)) {
    try {
      try_two_passes(problem, *factors, tensors, reference, baseline);
    } catch (const MachineError& error) {
      baseline.trials.push_back({kTwoPasses, "NCHW", error.what(), std::nullopt, 0});
    }
  }
  return baseline;
}

void measure_cudnn_again(const ConvProblem& problem, const HostTensors& tensors, CudnnBaseline& baseline) {
  const CudnnTrial* const best = baseline.best();
  const auto candidate_of_best = std::exchange(baseline.best_candidate, nullptr);
  if (!best || !candidate_of_best || *best->time_us > kOnceUs) return;
  const CudnnCandidate& candidate = *candidate_of_best;
  CudnnTrial& trial = baseline.trials[static_cast<std::size_t>(best - baseline.trials.data())];
  Steps steps;  // the candidate holds the output's
  if (baseline.precision == Precision::int8) steps = {int8_step(tensors.input), int8_step(tensors.filter), 1};
  const Reference none;
  const auto make_bench = [&] { return Bench(problem, tensors, none, baseline.precision, steps, candidate.nhwc); };
  try {
    const Bench bench = make_bench();
    const DeviceBuffer output = bench.output_of(candidate), workspace = Bench::workspace_of(candidate);
    CudnnTrial again = trial;
    time_hot([&](Stream stream) { bench.start(candidate, output, workspace, stream); }, kNothingYet, again);
    trial.time_again_us = again.time_us;
    if (trial.status == "ok") trial.time_cold_us = time_cold(make_bench, candidate);
  } catch (const MachineError&) {  // the memory does not hold the copies
  }
}

}  // namespace convladder
