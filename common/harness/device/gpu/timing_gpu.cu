/// @file
/// timing.hpp over CUDA graphs and events.
#include <mma.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <thread>
#include <utility>

#include "common/harness/device/device.hpp"
#include "common/harness/device/gpu/device_gpu.hpp"
#include "common/harness/device/timing.hpp"
#include "common/kernel/kernel.hpp"

namespace convladder {
namespace {

/// A pair of events around work on a stream.
class EventPair {
 public:
  EventPair() {
    check_cuda(cudaEventCreate(&begin_), "creating an event");
    const cudaError_t status = cudaEventCreate(&end_);
    if (status != cudaSuccess) cudaEventDestroy(begin_);
    check_cuda(status, "creating an event");
  }
  ~EventPair() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }
  EventPair(const EventPair&) = delete;
  EventPair& operator=(const EventPair&) = delete;

  /// Microseconds that `work` took on the device. @param meanwhile is called when all of it is on its way
  template <class Work>
  double time(
      Stream stream, const char* what, Work&& work, const std::function<void()>& meanwhile = [] {}) {
    check_cuda(cudaEventRecord(begin_, stream), "recording an event");
    work();
    check_cuda(cudaEventRecord(end_, stream), "recording an event");
    meanwhile();
    wait_for_stream(what);
    float milliseconds = 0;
    check_cuda(cudaEventElapsedTime(&milliseconds, begin_, end_), "reading the events' times");
    return 1000.0 * milliseconds;
  }

 private:
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

/// While one of these lives, no part of L2 is set aside for accesses that persist: a carve-out that the process made
/// for other work would take its share from every kernel that is timed. The last one restores it.
class WholeL2 {
 public:
  WholeL2() {
    if (count_++ > 0) return;
    before_ = limit();
    if (before_ == 0) return;
    cudaCtxResetPersistingL2Cache();
    set_limit(0);
  }
  ~WholeL2() {
    if (--count_ == 0 && before_ > 0) set_limit(before_);
  }
  WholeL2(const WholeL2&) = delete;
  WholeL2& operator=(const WholeL2&) = delete;

 private:
  /// 0 also on a GPU that has no such thing (before Ampere).
  static std::size_t limit() {
    std::size_t bytes = 0;
    if (cudaDeviceGetLimit(&bytes, cudaLimitPersistingL2CacheSize) == cudaSuccess) return bytes;
    cudaGetLastError();
    return 0;
  }
  static void set_limit(std::size_t bytes) {
    if (cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, bytes) != cudaSuccess) cudaGetLastError();
  }

  inline static int count_ = 0;
  inline static std::size_t before_ = 0;  // of the limit
};

/// Captures what `record` does on the stream. The stream leaves capture mode whether or not that succeeds.
template <class Record>
cudaGraph_t capture(Stream stream, Record&& record) {
  cudaGraph_t graph = nullptr;
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "beginning a CUDA graph");
  try {
    record();
  } catch (...) {
    if (cudaStreamEndCapture(stream, &graph) == cudaSuccess && graph) cudaGraphDestroy(graph);
    cudaGetLastError();
    throw;
  }
  check_cuda(cudaStreamEndCapture(stream, &graph), "capturing a CUDA graph");
  return graph;
}

}  // namespace

constexpr std::chrono::milliseconds kWarmUp{20};

struct GraphTimer::Graph {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  double launches = 0;
  EventPair events;
  WholeL2 whole_l2;
  ThrottleWatch watch{gpu_now, [] { std::this_thread::sleep_for(std::chrono::milliseconds(50)); }};

  Graph() = default;
  ~Graph() {
    if (executable) cudaGraphExecDestroy(executable);
    if (graph) cudaGraphDestroy(graph);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void replay() const { check_cuda(cudaGraphLaunch(executable, device_stream()), "launching a CUDA graph"); }
};

GraphTimer::GraphTimer(const std::vector<std::function<void(Stream)>>& launches, int repetitions)
    : graph_(std::make_unique<Graph>()) {
  const Stream stream = device_stream();
  graph_->launches = static_cast<double>(launches.size()) * repetitions;
  graph_->graph = capture(stream, [&] {
    for (int i = 0; i < repetitions; ++i) {
      for (const auto& launch : launches) launch(stream);
    }
  });
  check_cuda(cudaGraphInstantiate(&graph_->executable, graph_->graph, 0), "instantiating a CUDA graph");
  check_cuda(cudaGraphUpload(graph_->executable, stream), "uploading a CUDA graph");
  // Clocks rise, code and data reach the caches: one replay that is long enough does it.
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 2 && std::chrono::steady_clock::now() - start < kWarmUp; ++i) {
    graph_->replay();
    wait_for_stream("replaying a CUDA graph");
  }
}

GraphTimer::~GraphTimer() = default;
GraphTimer::GraphTimer(GraphTimer&&) noexcept = default;

double GraphTimer::sample() {
  Graph& graph = *graph_;
  return graph.watch.sample([&](const std::function<void()>& meanwhile) {
    return graph.events.time(
               device_stream(), "replaying a CUDA graph", [&] { graph.replay(); }, meanwhile) /
           graph.launches;
  });
}

std::optional<GpuConditions> GraphTimer::conditions() const { return graph_->watch.conditions(); }

double time_by_events(const std::function<void(Stream)>& launch, int repetitions) {
  EventPair events;
  const WholeL2 whole_l2;
  const Stream stream = device_stream();
  return events.time(stream, "timing launches", [&] {
    for (int i = 0; i < repetitions; ++i) launch(stream);
  }) / repetitions;
}

int repetitions_for(const std::function<void(Stream)>& launch, double target_us) {
  double once = time_by_events(launch, 1);  // also loads the code
  if (once < target_us) once = time_by_events(launch, 10);
  return static_cast<int>(std::clamp(target_us / std::max(once, 0.1), 1.0, 200.0));
}

// --- Ceilings ---

namespace {

__global__ void empty() {}

/// Numbers without pattern in [1, 2): zeros would toggle fewer wires and let the clock rise.
__global__ void fill_noise(float* data, std::size_t count) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    std::uint32_t bits = static_cast<std::uint32_t>(i) * 2654435761u;
    bits = (bits ^ (bits >> 15)) * 2246822519u;
    data[i] = __uint_as_float(0x3f800000u | ((bits ^ (bits >> 13)) >> 9));
  }
}

constexpr int kCopyThreads = 256;
constexpr int kCopyUnroll = 4;  // loads in flight per thread

/// Each block takes pieces of kCopyUnroll * kCopyThreads vectors, grid-stride.
__global__ void copy_vectors(const float4* __restrict__ source, float4* __restrict__ destination, std::size_t count) {
  constexpr std::size_t kPiece = kCopyUnroll * kCopyThreads;
  for (std::size_t piece = blockIdx.x * kPiece; piece < count; piece += gridDim.x * kPiece) {
    float4 held[kCopyUnroll];
    UNROLL for (int j = 0; j < kCopyUnroll; ++j) {
      const std::size_t i = piece + j * kCopyThreads + threadIdx.x;
      if (i < count) held[j] = source[i];
    }
    UNROLL for (int j = 0; j < kCopyUnroll; ++j) {
      const std::size_t i = piece + j * kCopyThreads + threadIdx.x;
      if (i < count) destination[i] = held[j];
    }
  }
}

constexpr int kChains = 16;  // independent sums per thread: more than the pipeline's depth
constexpr int kFmaSteps = 4096;
constexpr int kFmaThreads = 256;

__global__ void __launch_bounds__(kFmaThreads) multiply_add(float* out, float factor, float addend) {
  float sum[kChains];
  UNROLL for (int j = 0; j < kChains; ++j) sum[j] = threadIdx.x + 0.01f * j;
#pragma unroll 8
  for (int step = 0; step < kFmaSteps; ++step) {
    UNROLL for (int j = 0; j < kChains; ++j) sum[j] = fmaf(sum[j], factor, addend);
  }
  float total = 0;
  UNROLL for (int j = 0; j < kChains; ++j) total += sum[j];
  if (total == -1.0f) out[threadIdx.x] = total;  // never: the sums are positive, which the compiler cannot know
}

constexpr int kWarpSize = 32;
constexpr int kMmaSide = 16;   // products of 16 x 16 x 16
constexpr int kMmaChains = 4;  // independent sums per warp
constexpr int kMmaSteps = 2048;
constexpr int kMmaThreads = kFmaThreads;

/// Matrix products of fragments that stay in registers.
template <class Operand, class Sum>
__device__ void multiply_fragments(Sum* out) {
  using namespace nvcuda::wmma;
  fragment<matrix_a, kMmaSide, kMmaSide, kMmaSide, Operand, row_major> a[kMmaChains];
  fragment<matrix_b, kMmaSide, kMmaSide, kMmaSide, Operand, col_major> b;
  fragment<accumulator, kMmaSide, kMmaSide, kMmaSide, Sum> sum[kMmaChains];
  // Numbers without pattern, small enough that no sum overflows: zeros would toggle fewer wires and let the clock rise.
  std::uint32_t noise = threadIdx.x * 2654435761u + blockIdx.x;
  const auto next = [&] {
    noise = noise * 1664525u + 1013904223u;
    return static_cast<Operand>(static_cast<float>(static_cast<int>(noise >> 24) - 128) /
                                (sizeof(Operand) == 1 ? 8 : 128));
  };
  for (int i = 0; i < b.num_elements; ++i) b.x[i] = next();
  UNROLL for (int j = 0; j < kMmaChains; ++j) {
    for (int i = 0; i < a[j].num_elements; ++i) a[j].x[i] = next();
    fill_fragment(sum[j], Sum(0));
  }
#pragma unroll 4
  for (int step = 0; step < kMmaSteps; ++step) {
    UNROLL for (int j = 0; j < kMmaChains; ++j) mma_sync(sum[j], a[j], b, sum[j]);
  }
  Sum total = 0;
  UNROLL for (int j = 0; j < kMmaChains; ++j) for (int i = 0; i < sum[j].num_elements; ++i) total += sum[j].x[i];
  if (total == Sum(123456789)) out[threadIdx.x] = total;  // hardly ever, which the compiler cannot know
}

__global__ void __launch_bounds__(kMmaThreads) multiply_halves([[maybe_unused]] float* out) {
#if __CUDA_ARCH__ >= 700
  multiply_fragments<half>(out);
#endif
}

__global__ void __launch_bounds__(kMmaThreads) multiply_bytes([[maybe_unused]] int* out) {
#if __CUDA_ARCH__ >= 720
  multiply_fragments<signed char>(out);
#endif
}

/// The shortest of several replays, in microseconds per launch.
double best_us(const std::function<void(Stream)>& launch, int repetitions) {
  GraphTimer timer({launch}, repetitions);
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 7; ++i) best = std::min(best, timer.sample());
  return best;
}

/// Bytes read and written per second by the fastest of three ways to copy `bytes`.
double copy_bytes_per_s(std::size_t bytes, int repetitions, int multiprocessors) {
  const DeviceBuffer source(bytes, "the source of the copy ceiling");
  const DeviceBuffer destination(bytes, "the target of the copy ceiling");
  launch(fill_noise, dim3(multiprocessors * 8), dim3(256), 0, device_stream())(source.floats(), bytes / sizeof(float));
  const std::size_t count = bytes / sizeof(float4);
  const std::size_t pieces = (count + kCopyUnroll * kCopyThreads - 1) / (kCopyUnroll * kCopyThreads);
  const auto by_kernel = [&](std::size_t blocks) {
    return best_us(
        [&](Stream stream) {
          launch(copy_vectors, dim3(static_cast<unsigned>(blocks)), dim3(kCopyThreads), 0, stream)(
              static_cast<const float4*>(source.data()), static_cast<float4*>(destination.data()), count);
        },
        repetitions);
  };
  const double by_runtime = best_us(
      [&](Stream stream) {
        check_cuda(cudaMemcpyAsync(destination.data(), source.data(), bytes, cudaMemcpyDeviceToDevice, stream),
                   "copying on the device");
      },
      repetitions);
  const std::size_t resident = 8 * static_cast<std::size_t>(multiprocessors);
  const double fastest = std::min({by_runtime, by_kernel(pieces), by_kernel(std::min(pieces, resident))});
  return 2e6 * static_cast<double>(bytes) / fastest;
}

}  // namespace

Ceilings measure_ceilings() {
  const DeviceInfo info = device_info();
  Ceilings ceilings;
  const unsigned blocks = 8 * info.multiprocessors;
  const DeviceBuffer unused(kFmaThreads * sizeof(float), "the output of the ceilings of arithmetic");
  const double fma_us = best_us(
      [&](Stream stream) {
        launch(multiply_add, dim3(blocks), dim3(kFmaThreads), 0, stream)(unused.floats(), 0.999f, 0.5f);
      },
      4);
  ceilings.fp32_flops_per_s = 2e6 * kChains * kFmaSteps * kFmaThreads * blocks / fma_us;

  const double products =
      static_cast<double>(kMmaSide) * kMmaSide * kMmaSide * kMmaChains * kMmaSteps * blocks * (kMmaThreads / kWarpSize);
  if (info.compute_capability >= 70) {
    ceilings.fp16_flops_per_s =
        2e6 * products /
        best_us(
            [&](Stream stream) {
              launch(multiply_halves, dim3(blocks), dim3(kMmaThreads), 0, stream)(unused.floats());
            },
            4);
  }
  if (info.compute_capability >= 72) {
    ceilings.int8_ops_per_s =
        2e6 * products /
        best_us(
            [&](Stream stream) {
              launch(multiply_bytes, dim3(blocks), dim3(kMmaThreads), 0, stream)(static_cast<int*>(unused.data()));
            },
            4);
  }

  constexpr std::int64_t kGranule = 1 << 20;
  const std::int64_t large = std::min({std::int64_t{2} << 30, info.memory_bytes / 8, info.free_memory_bytes / 4});
  ceilings.dram_bytes_per_s =
      copy_bytes_per_s(std::max(large / kGranule * kGranule, kGranule), 2, info.multiprocessors);
  const std::int64_t quarter_l2 = info.l2_bytes / 4;  // source and target together are half of it
  ceilings.l2_bytes_per_s =
      copy_bytes_per_s(std::max(quarter_l2 / 1024 * 1024, std::int64_t{1024}), 50, info.multiprocessors);
  ceilings.launch_us = best_us([](Stream stream) { launch(empty, dim3(1), dim3(32), 0, stream)(); }, 200);
  return ceilings;
}

}  // namespace convladder
