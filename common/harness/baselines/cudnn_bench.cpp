#include "common/harness/baselines/cudnn_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "common/harness/check/half_bits.hpp"
#include "common/harness/check/quantise.hpp"
#include "common/harness/device/timing.hpp"

namespace convladder {
namespace {

constexpr double kSlowUs = 50'000;  // a launch longer than this is timed in kSlowGroups groups of one
constexpr int kSlowGroups = 3;
constexpr double kHopelessRatio = 20;     // times the best so far: timed once
constexpr double kLaunchUs = 50;          // more than a launch may take longer between events than in a graph
constexpr int kLaunchesAtOnce = 10;       // between events
constexpr std::int64_t kMemoryShare = 4;  // a workspace may take this fraction of the free memory

constexpr double kGlanceUs = 300;    // what a group of launches lasts at a glance
constexpr int kGlanceGroups = 3;     // of which the fastest counts
constexpr double kGlanceRatio = 5;   // times the best so far, by events around one launch: no more is looked at
constexpr double kNearRatio = 1.15;  // times the best so far: checked

// ---- Element types --------------------------------------------------------------------------------------------------

std::size_t size_of(Precision precision) {
  return precision == Precision::fp32 ? sizeof(float) : precision == Precision::int8 ? 1 : sizeof(std::uint16_t);
}

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
    case Precision::bf16:
      fill(std::uint16_t{}, [](float value) { return bf16_bits(value); });
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
    case Precision::bf16:
      return work([&](std::size_t i) { return static_cast<double>(bf16_value(element(std::uint16_t{}, i))); });
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
    case Precision::bf16:
      return family == kWinogradFamily ? kCudnnBf16WinogradErrorLimit : kCudnnBf16ErrorLimit;
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
  constexpr std::int64_t kColumns = 64;  // at once: what they touch in either order stays in the first-level cache
  const std::int64_t pieces = (columns - 1) / kColumns + 1;
#ifdef _OPENMP
#pragma omp parallel for
#endif
  for (std::int64_t piece = 0; piece < count * pieces; ++piece) {
    const std::int64_t begin = piece % pieces * kColumns, end = std::min(begin + kColumns, columns);
    const float* from = source.data() + piece / pieces * rows * columns;
    float* to = result.data() + piece / pieces * rows * columns;
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t column = begin; column < end; ++column) to[column * rows + row] = from[row * columns + column];
  }
  return result;
}

/// ||output - reference|| / ||reference|| over the outputs whose reference is finite; NaN if one of them is NaN.
/// @param output gives the element at an index  @param nhwc its order; the reference's is NCHW
template <class Output>
double relative_l2_error(const ConvProblem& problem, const Output& output, bool nhwc, const Reference& reference) {
  const std::int64_t filters = problem.k, pixels = problem.p() * problem.q();
  double error = 0, norm = 0;
  constexpr std::int64_t kPixels = 64;  // at once: what they touch in either order stays in the first-level cache
  const std::int64_t pieces = (pixels - 1) / kPixels + 1;
#ifdef _OPENMP
#pragma omp parallel for reduction(+ : error, norm)
#endif
  for (std::int64_t piece = 0; piece < problem.n * pieces; ++piece) {
    const std::int64_t image = piece / pieces, begin = piece % pieces * kPixels;
    for (std::int64_t filter = 0; filter < filters; ++filter) {
      for (std::int64_t pixel = begin; pixel < std::min(begin + kPixels, pixels); ++pixel) {
        const auto nchw = static_cast<std::size_t>((image * filters + filter) * pixels + pixel);
        const double exact = reference.output[nchw];
        if (!std::isfinite(exact)) continue;
        const auto index = nhwc ? static_cast<std::size_t>((image * pixels + pixel) * filters + filter) : nchw;
        const double difference = output(index) - exact;
        error += difference * difference;
        norm += exact * exact;
      }
    }
  }
  return error == 0 ? 0 : std::sqrt(error / norm);
}

}  // namespace

void time_hot(const std::function<void(Stream)>& launch, const CudnnPace& pace, CudnnTrial& trial) {
  const double once_us = time_by_events(launch, 1);
  if (once_us > kHopelessRatio * pace.best_us) {
    trial.time_us = once_us;
    return;
  }
  const bool slow = once_us > kSlowUs;
  const int repetitions = slow ? 1 : repetitions_for(launch, kGroupUs), most_groups = slow ? kSlowGroups : kGroups;
  TimeSeries series;
  const auto take_groups = [&](const auto& sample) {
    series.groups = {sample()};
    if (is_far(series.groups.front(), pace)) return;
    while (static_cast<int>(series.groups.size()) < most_groups) series.groups.push_back(sample());
  };
  try {
    GraphTimer timer({launch}, repetitions);
    take_groups([&] { return timer.sample(); });
  } catch (const DeviceError&) {  // not every algorithm can be captured
    trial.status = "ok, timed without a CUDA graph";
    take_groups([&] { return time_by_events(launch, repetitions); });
  }
  trial.time_us = series.median();
}

CudnnBench::CudnnBench(const ConvProblem& problem, const HostTensors& tensors, const Reference& reference,
                       Precision precision, const CudnnSteps& steps, bool nhwc)
    : CudnnBench(problem, reference, precision, steps, nhwc) {
  const std::vector<float>&input = tensors.input, &filter = tensors.filter;
  upload(nhwc ? transposed(input, problem.n, problem.c, problem.h * problem.w) : input, steps.input, "cuDNN's input",
         input_);
  upload(nhwc ? transposed(filter, problem.k, problem.c / problem.groups, problem.r * problem.s) : filter, steps.filter,
         "cuDNN's filter", filter_);
  if (problem.has_bias()) upload_epilogue(tensors);
  workspace_limit_ = device_info().free_memory_bytes / kMemoryShare;
}

CudnnBench CudnnBench::copy() const {
  CudnnBench result(problem_, reference_, precision_, steps_, nhwc_);
  result.input_ = input_.copy();
  result.filter_ = filter_.copy();
  if (bias_) result.bias_ = bias_->copy();
  if (forward_bias_) result.forward_bias_ = forward_bias_->copy();
  if (residual_) result.residual_ = residual_->copy();
  if (scales_) result.scales_ = scales_->copy();
  result.workspace_limit_ = workspace_limit_;
  return result;
}

void CudnnBench::upload_epilogue(const HostTensors& tensors) {
  const auto filters = static_cast<std::size_t>(problem_.k);
  const auto make = [](const std::vector<float>& values, Precision precision, double step, const char* name,
                       std::optional<DeviceBuffer>& buffer) {
    const std::vector<std::byte> bytes = encoded(values, precision, step);
    buffer.emplace(bytes.size(), name);
    buffer->upload(bytes.data());
  };
  std::vector<float> bias = tensors.bias;
  for (float& value : bias) value = static_cast<float>(value / steps_.output);
  make(bias, Precision::fp32, 1, "cuDNN's bias", bias_);
  make(bias, precision_ == Precision::fp16 ? Precision::fp16 : Precision::fp32, 1, "cuDNN's bias", forward_bias_);
  if (precision_ == Precision::int8) {
    const auto scale = static_cast<float>(steps_.input * steps_.filter / steps_.output);
    make(std::vector<float>(filters, scale), Precision::fp32, 1, "cuDNN's scales", scales_);
  }
  if (!problem_.has_residual()) return;
  const std::int64_t pixels = problem_.p() * problem_.q();
  make(nhwc_ ? transposed(tensors.residual, problem_.n, problem_.k, pixels) : tensors.residual, precision_,
       int8_step(tensors.residual), "cuDNN's residual", residual_);
}

DeviceBuffer CudnnBench::output_of(const CudnnCandidate& candidate) const {
  return {static_cast<std::size_t>(problem_.output_size()) * size_of(candidate.output), "cuDNN's output"};
}

DeviceBuffer CudnnBench::workspace_of(const CudnnCandidate& candidate) {
  return {static_cast<std::size_t>(candidate.workspace_bytes), "cuDNN's workspace"};
}

void CudnnBench::start(const CudnnCandidate& candidate, const DeviceBuffer& output, const DeviceBuffer& workspace,
                       Stream stream) const {
  const auto data = [](const std::optional<DeviceBuffer>& buffer) { return buffer ? buffer->data() : nullptr; };
  const CudnnOperands operands{input_.data(),       filter_.data(),  data(bias_),
                               data(forward_bias_), data(residual_), data(scales_)};
  const std::string refusal = candidate.run(operands, output.data(), workspace.data(), stream);
  if (!refusal.empty()) throw DeviceError(refusal);
}

std::int64_t CudnnBench::tensor_bytes(const CudnnCandidate& candidate) const {
  return static_cast<std::int64_t>(input_.bytes() + filter_.bytes() + (residual_ ? residual_->bytes() : 0)) +
         problem_.output_size() * static_cast<std::int64_t>(size_of(candidate.output));
}

void CudnnBench::measure(const CudnnCandidate& candidate, CudnnPace pace, CudnnTrial& trial) {
  if (candidate.workspace_bytes > workspace_limit_) {
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
  if (candidate.configuration && checked_us <= kOnceUs) {
    const double time_us = time_by_events(launch, checked_us > kGroupUs ? 1 : kLaunchesAtOnce);
    if (is_far(time_us - kLaunchUs, pace)) {
      trial.time_us = time_us;
      trial.status = kCudnnSlower;
      return;
    }
  }
  trial.status = "ok";
  if (checked_us > kOnceUs) {
    trial.time_us = checked_us;
  } else {
    if (trial.family() == kWinogradFamily) pace.best_us = kNothingYet;
    time_hot(launch, pace, trial);
  }
  if (candidate.configuration && is_far(*trial.time_us, pace)) {
    trial.status = kCudnnSlower;
    return;
  }
  trial.rel_l2_err = error_of(output, candidate.output);
  if (*trial.rel_l2_err <= error_limit(precision_, trial.family())) return;
  trial.time_us.reset();
  trial.status = fmt::format("wrong result (rel. L2 error {:.2g})", *trial.rel_l2_err);
}

CudnnGlance CudnnBench::glance(const CudnnCandidate& candidate, double best_us) {
  if (candidate.workspace_bytes > workspace_limit_) return {CudnnOutcome::memory, 0};
  DeviceBuffer workspace, output;
  try {
    workspace = workspace_of(candidate);
    output = output_of(candidate);
  } catch (const MachineError&) {
    return {CudnnOutcome::memory, 0};
  }
  const auto launch = [&](Stream stream) { start(candidate, output, workspace, stream); };
  output.poison();
  double time_us = 0;
  try {
    if (const double first_us = run_and_wait(launch); first_us > kOnceUs) return {CudnnOutcome::slower, first_us};
    time_us = time_by_events(launch, 1);
    if (time_us > kGlanceRatio * best_us) return {CudnnOutcome::slower, time_us};
    GraphTimer timer({launch}, std::clamp(static_cast<int>(kGlanceUs / time_us), 1, 50));
    time_us = timer.sample();
    for (int i = 1; i < kGlanceGroups; ++i) time_us = std::min(time_us, timer.sample());
  } catch (const DeviceError&) {
    run_and_wait([](Stream) {});  // throws if the GPU context is lost with it
    if (time_us == 0) return {CudnnOutcome::failed, 0};
    // Not every plan can be captured: the time by events stands.
  }
  if (time_us > kNearRatio * best_us) return {CudnnOutcome::slower, time_us};
  if (!output.guards_intact() || !workspace.guards_intact()) return {CudnnOutcome::wrong, 0};
  const double limit = error_limit(precision_, family_of(candidate.algorithm));
  if (!(error_of(output, candidate.output) <= limit)) return {CudnnOutcome::wrong, 0};
  return {CudnnOutcome::right, time_us};
}

void CudnnBench::upload(const std::vector<float>& values, double step, const char* name, DeviceBuffer& buffer) const {
  const std::vector<std::byte> bytes = encoded(values, precision_, step);
  buffer = DeviceBuffer(bytes.size(), name);
  buffer.upload(bytes.data());
}

/// @param stored what the output's elements are
double CudnnBench::error_of(const DeviceBuffer& output, Precision stored) {
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

}  // namespace convladder
