#include <cuda_fp16.h>
#include <cutlass/version.h>

#include <algorithm>
#include <limits>
#include <string>

#include "common/harness/baselines/gpu/cutlass_stage.hpp"
#include "common/stage/device_buffer.hpp"

namespace convladder {
namespace {

constexpr int kThreads = 256;
constexpr int kUnit = 8;          // halves of 16 bytes, which the kernels move at once
constexpr int kTimed = 4;         // runs of a kernel between two events
constexpr int kMeasurements = 3;  // of a kernel: the shortest counts

void require(cudaError_t status, const char* what) {
  if (status != cudaSuccess) throw DeviceError(std::string("CUTLASS: ") + what + ": " + cudaGetErrorString(status));
}

unsigned blocks_of(std::int64_t count) { return static_cast<unsigned>((count - 1) / kThreads + 1); }

/// @param from (k, c, taps)  @param to (k, taps, c)
__global__ void pack_filter(const float* from, __half* to, std::int64_t count, int channels, int taps) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  const int c = static_cast<int>(i % channels), tap = static_cast<int>(i / channels % taps);
  to[i] = __float2half(from[(i / channels / taps * channels + c) * taps + tap]);
}

/// Numbers of both signs with all bits in use: power, and with it the clock, depends on them.
__global__ void fill(__half* to, std::int64_t count) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < count) to[i] = __float2half(static_cast<float>(static_cast<unsigned>(i) * 2654435761u >> 16) / 65536 - 0.5f);
}

DeviceBuffer filled(std::int64_t count) {
  DeviceBuffer buffer(static_cast<std::size_t>(count) * sizeof(__half), "a tensor that CUTLASS's kernels are timed on");
  fill<<<blocks_of(count), kThreads>>>(static_cast<__half*>(buffer.data()), count);
  require(cudaGetLastError(), "filling a tensor");
  return buffer;
}

/// Milliseconds.
float time_of(CutlassKernel& kernel) {
  cudaEvent_t begin = nullptr, end = nullptr;
  require(cudaEventCreate(&begin), "creating an event");
  require(cudaEventCreate(&end), "creating an event");
  float shortest = std::numeric_limits<float>::infinity();
  kernel.run(nullptr);
  for (int i = 0; i < kMeasurements; ++i) {
    require(cudaEventRecord(begin), "recording an event");
    for (int j = 0; j < kTimed; ++j) kernel.run(nullptr);
    require(cudaEventRecord(end), "recording an event");
    require(cudaEventSynchronize(end), "running a kernel");
    float milliseconds = 0;
    require(cudaEventElapsedTime(&milliseconds, begin, end), "reading a time");
    shortest = std::min(shortest, milliseconds / kTimed);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return shortest;
}

}  // namespace

const char* CutlassStage::library() const {
  static const std::string name = "CUTLASS " + std::to_string(CUTLASS_MAJOR) + "." + std::to_string(CUTLASS_MINOR) +
                                  "." + std::to_string(CUTLASS_PATCH);
  return name.c_str();
}

Verdict CutlassStage::check(const ConvProblem& problem, const DeviceLimits&) const {
  if (problem.c % kUnit != 0 || problem.k % kUnit != 0)
    return Verdict::refuse("CUTLASS's kernels need channels and filters in multiples of {}; got c={}, k={}", kUnit,
                           problem.c, problem.k);
  if (problem.padding != Padding::zero && (problem.pad_h > 0 || problem.pad_w > 0))
    return Verdict::refuse("CUTLASS pads with zeros only");
  return check_implicit_gemm(problem, kUnit, kUnit);
}

Verdict CutlassStage::check_configuration(const ConvProblem& problem, const DeviceLimits&,
                                          const Configuration& configuration) const {
  const int tile = configuration["tile"];
  if (tile == 0)
    return Verdict::refuse("CUTLASS says of each of its {} kernels here that it takes no such problem",
                           knobs_.knobs[0].count - 1);
  if (!kernels_[tile - 1]()->takes(problem))
    return Verdict::refuse("CUTLASS says that its kernel with the tile {} takes no such problem",
                           knobs_.knobs[0].words[tile]);
  return Verdict::accept();
}

Configuration CutlassStage::decided(const ConvProblem& problem, const DeviceLimits&,
                                    const Configuration& configuration) const {
  Configuration result = configuration;
  if (result["tile"] == 0) result["tile"] = fastest(problem);
  return result;
}

/// The knob's value; 0 if no kernel takes the problem.
int CutlassStage::fastest(const ConvProblem& problem) const {
  const DeviceBuffer input = filled(problem.input_size()), filter = filled(problem.filter_size()),
                     output = filled(problem.output_size());
  const HalfTensors tensors{static_cast<const __half*>(input.data()), static_cast<const __half*>(filter.data()),
                            static_cast<__half*>(output.data())};
  int best = 0;
  float shortest = std::numeric_limits<float>::infinity();
  for (int i = 1; i < knobs_.knobs[0].count; ++i) {
    const std::unique_ptr<CutlassKernel> kernel = kernels_[i - 1]();
    if (!kernel->takes(problem)) continue;
    kernel->set_up(problem, tensors, nullptr);
    const float time = time_of(*kernel);
    if (time >= shortest) continue;
    shortest = time;
    best = i;
  }
  return best;
}

void CutlassStage::prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) {
  const std::int64_t count = problem.filter_size();
  filter_.allocate<__half>(count);
  pack_filter<<<blocks_of(count), kThreads, 0, stream>>>(tensors.filter, filter_.as<__half>(), count,
                                                         static_cast<int>(problem.c),
                                                         static_cast<int>(problem.r * problem.s));
  require(cudaGetLastError(), "packing the filter");
  kernel_ = kernels_[knob("tile") - 1]();
  kernel_->set_up(problem, {tensors.half_input, filter_.as<__half>(), tensors.half_output}, stream);
}

void CutlassStage::launch(const ConvProblem&, const Tensors&, Stream stream) { kernel_->run(stream); }

}  // namespace convladder
