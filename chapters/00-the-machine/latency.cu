// How long a GPU takes to answer one thread: the latencies of lesson 00. It needs nvcc and a GPU, and nothing else:
//
//   nvcc -O2 -arch=native latency.cu -o latency && ./latency
//
// Idea: follow a chain. The value of each load is the index of the next one, so no load can start before the one
// before it has answered, and the time of n loads is n latencies. The chain's size decides which memory answers.
//
// 1. Link the elements of a buffer to one ring, in random order, so that nothing can be fetched ahead.
// 2. One thread follows the ring once, untimed: what fits into a cache is there now.
// 3. It follows the ring again, and reads the multiprocessor's cycle counter before and after.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <vector>

namespace {

void require(cudaError_t status) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "latency: %s\n", cudaGetErrorString(status));
  std::exit(2);
}

constexpr int kSteps = 20000;
constexpr int kSharedWords = 2048;

struct ThroughL1 {
  static __device__ std::uint32_t load(const std::uint32_t* address) { return __ldca(address); }
};
struct PastL1 {
  static __device__ std::uint32_t load(const std::uint32_t* address) { return __ldcg(address); }
};

/// result[0]: cycles of kSteps loads; result[1]: where the chain ended, so that no load can be left out.
template <typename Path>
__global__ void follow(const std::uint32_t* next, std::uint32_t warm_up, std::int64_t* result) {
  std::uint32_t at = 0;
  for (std::uint32_t i = 0; i < warm_up; ++i) at = Path::load(next + at);
  const std::int64_t begin = clock64();
  for (int i = 0; i < kSteps; ++i) at = Path::load(next + at);
  result[0] = clock64() - begin;
  result[1] = at;
}

__global__ void follow_shared(const std::uint32_t* next, std::int64_t* result) {
  __shared__ std::uint32_t ring[kSharedWords];
  for (int i = 0; i < kSharedWords; ++i) ring[i] = next[i];
  std::uint32_t at = 0;
  const std::int64_t begin = clock64();
  for (int i = 0; i < kSteps; ++i) at = ring[at];
  result[0] = clock64() - begin;
  result[1] = at;
}

/// Each multiply-add needs the result of the one before it.
__global__ void multiply_add(float a, std::int64_t* result) {
  float sum = a;
  const std::int64_t begin = clock64();
#pragma unroll 100
  for (int i = 0; i < kSteps; ++i) sum = sum * a + a;
  result[0] = clock64() - begin;
  result[1] = sum != 0;
}

/// A block of 256 threads that does nothing but wait for each other.
__global__ void barriers(std::int64_t* result) {
  __syncthreads();
  const std::int64_t begin = clock64();
  for (int i = 0; i < kSteps; ++i) __syncthreads();
  if (threadIdx.x == 0) result[0] = clock64() - begin;
}

/// A ring through every `stride`-th of `words` words, in random order.
std::vector<std::uint32_t> ring(std::size_t words, std::size_t stride) {
  std::vector<std::uint32_t> order(words / stride);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin() + 1, order.end(), std::mt19937(1));
  std::vector<std::uint32_t> next(words);
  for (std::size_t i = 0; i < order.size(); ++i)
    next[order[i] * stride] = static_cast<std::uint32_t>(order[(i + 1) % order.size()] * stride);
  return next;
}

void report(const char* name, const std::int64_t* result, double megahertz) {
  require(cudaGetLastError());
  std::int64_t elapsed = 0;
  require(cudaMemcpy(&elapsed, result, sizeof elapsed, cudaMemcpyDeviceToHost));
  const double cycles = static_cast<double>(elapsed) / kSteps;
  std::printf("%-44s %8.1f cycles %8.1f ns\n", name, cycles, 1000 * cycles / megahertz);
}

template <typename Path>
void measure(const char* name, std::size_t bytes, std::size_t stride_bytes, bool warm, std::int64_t* result,
             double megahertz) {
  const std::vector<std::uint32_t> next = ring(bytes / sizeof(std::uint32_t), stride_bytes / sizeof(std::uint32_t));
  std::uint32_t* device = nullptr;
  require(cudaMalloc(&device, bytes));
  require(cudaMemcpy(device, next.data(), bytes, cudaMemcpyHostToDevice));
  follow<Path><<<1, 1>>>(device, warm ? static_cast<std::uint32_t>(bytes / stride_bytes) : 0, result);
  report(name, result, megahertz);
  require(cudaFree(device));
}

}  // namespace

int main() {
  cudaDeviceProp properties{};
  require(cudaGetDeviceProperties(&properties, 0));
  int kilohertz = 0;
  require(cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, 0));
  const double megahertz = kilohertz / 1000.0;
  std::printf("%s, %d multiprocessors, %.0f MHz\n", properties.name, properties.multiProcessorCount, megahertz);

  std::int64_t* result = nullptr;
  require(cudaMalloc(&result, 2 * sizeof *result));
  std::uint32_t* small = nullptr;
  require(cudaMalloc(&small, kSharedWords * sizeof *small));
  const std::vector<std::uint32_t> next = ring(kSharedWords, 1);
  require(cudaMemcpy(small, next.data(), kSharedWords * sizeof *small, cudaMemcpyHostToDevice));

  multiply_add<<<1, 1>>>(0.5f, result);
  report("a multiply-add that needs the last one's sum", result, megahertz);
  barriers<<<1, 256>>>(result);
  report("a barrier of 256 threads", result, megahertz);
  follow_shared<<<1, 1>>>(small, result);
  report("a load from shared memory", result, megahertz);
  measure<ThroughL1>("a load that L1 answers (16 KB)", 16 << 10, 128, true, result, megahertz);
  measure<PastL1>("a load that L2 answers (8 MB)", 8 << 20, 128, true, result, megahertz);
  measure<PastL1>("a load that DRAM answers (1 GB)", std::size_t{1} << 30, 4096, false, result, megahertz);
  return 0;
}
