/// @file
/// Checks and times what the module `convladder_cudnn` offers. No header of CUDA or cuDNN is needed here.
#include "common/cudnn_baseline.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "common/cudnn_module.hpp"
#include "common/device.hpp"
#include "common/timing.hpp"

namespace convladder {
namespace {

constexpr int kGroups = 7;
constexpr double kGroupUs = 2000;   // what a group of launches should last
constexpr double kSlowUs = 50'000;  // a launch longer than this is timed in kSlowGroups groups of one
constexpr int kSlowGroups = 3;
constexpr double kHopelessRatio = 20;     // times the best so far: timed once
constexpr std::int64_t kMemoryShare = 4;  // a workspace may take this fraction of the free memory

/// The module's function, or why there is none.
struct Module {
  CudnnModuleFunction* find_candidates = nullptr;
  std::string unavailable;
};

Module load_module() {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto file = program.parent_path() / kCudnnModuleFile;
  if (error || !std::filesystem::exists(file, error)) {
    return {nullptr,
            "this program was built without cuDNN; pip install nvidia-cudnn-cu13, or cuDNN's package for your CUDA, "
            "and build again"};
  }
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);  // never unloaded: neither may cuDNN be
  if (!library) {
    return {nullptr, fmt::format("cuDNN is not installed: {}; pip install nvidia-cudnn-cu13, or add the folder of "
                                 "libcudnn.so.9 to LD_LIBRARY_PATH",
                                 dlerror())};
  }
  void* const function = dlsym(library, kCudnnModuleFunction);
  if (!function) return {nullptr, fmt::format("{} is not of this build: {}; build again", file.string(), dlerror())};
  return {reinterpret_cast<CudnnModuleFunction*>(function), ""};
}

const Module& module() {
  static const Module loaded = load_module();
  return loaded;
}

/// Transposes each of `count` matrices of `rows` x `columns`: (c, h*w) to (h*w, c), say.
std::vector<float> transposed(const std::vector<float>& source, std::int64_t count, std::int64_t rows,
                              std::int64_t columns) {
  std::vector<float> result(source.size());
  for (std::int64_t i = 0; i < count; ++i) {
    const float* from = source.data() + i * rows * columns;
    float* to = result.data() + i * rows * columns;
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t column = 0; column < columns; ++column) to[column * rows + row] = from[row * columns + column];
    }
  }
  return result;
}

/// ||output - reference|| / ||reference|| over the outputs whose reference is finite; NaN if one of them is NaN.
double relative_l2_error(const std::vector<float>& output, const std::vector<double>& reference) {
  double error = 0, norm = 0;
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
    try {
      run_and_wait(launch);
    } catch (const DeviceError& error) {
      trial.status = error.what();
      run_and_wait([](Stream) {});  // throws if the GPU context is lost with it
      return;
    }
    trial.status = verdict(workspace);
    if (trial.status == "ok") time(launch, best_us, trial);
  }

 private:
  std::string verdict(const DeviceBuffer& workspace) {
    if (!output_.guards_intact() || !workspace.guards_intact()) return "wrote outside its buffers";
    std::vector<float> output(reference_.output.size());
    output_.download(output.data());
    if (nhwc_) output = transposed(output, problem_.n, problem_.p() * problem_.q(), problem_.k);
    const double error = relative_l2_error(output, reference_.output);
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

/// Adds a trial for every candidate in both layouts. @param note follows each algorithm's name @param best_us of all
/// trials so far
void try_all(const ConvProblem& problem, const std::string& note, const HostTensors& tensors,
             const Reference& reference, double& best_us, CudnnBaseline& baseline) {
  CudnnCandidates found;
  module().find_candidates(problem, found);
  baseline.version = found.version;
  if (!found.error.empty()) {
    baseline.unavailable = fmt::format("cuDNN {} does not start: {}", found.version, found.error);
    return;
  }
  for (const bool nhwc : {false, true}) {
    Bench bench(problem, tensors, reference, nhwc);
    for (const CudnnCandidate& candidate : found.candidates) {
      if (candidate.nhwc != nhwc) continue;
      CudnnTrial& trial = baseline.trials.emplace_back();
      trial.algorithm = candidate.algorithm + note;
      trial.layout = nhwc ? "NHWC" : "NCHW";
      trial.status = candidate.status;
      trial.workspace_bytes = candidate.workspace_bytes;
      try {
        if (candidate.run) bench.measure(candidate, best_us, trial);
      } catch (const DeviceError& error) {
        throw DeviceError(fmt::format("cuDNN's {} in {}: {}", trial.algorithm, trial.layout, error.what()));
      }
      if (trial.ok()) best_us = std::min(best_us, *trial.time_us);
    }
  }
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
    double best_us = std::numeric_limits<double>::infinity();
    try_all(problem, "", tensors, reference, best_us, baseline);
    // The same tensors in memory, but other engines may take them.
    if (problem.h == 1 && problem.r == 1 && problem.w > 1)
      try_all(turned(problem), " as h x 1", tensors, reference, best_us, baseline);
  } catch (const MachineError& error) {
    baseline.trials.clear();
    baseline.unavailable = error.what();
  }
  return baseline;
}

}  // namespace convladder
