// Syntax that a front end may trip over.
// > matrix 2401 2401
// > runner 3 9
// > mix 40.75 6 2
// > host 8
#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstdint>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <cuda_runtime.h>

#define CUDA_CALL(x) do { if ((x) != cudaSuccess) { printf("Error at %s:%d\n", __FILE__, __LINE__); return EXIT_FAILURE; } } while (0)
#define KERNEL_LAUNCH(k, n, ...) \
  k<<<((n) + 63) / 64,           \
      64>>>(__VA_ARGS__)
#define THREADS (1 << 6)

namespace {
struct Matrix {
  int width, height;
  float *elements;
  __host__ __device__ float &at(int r, int c) const { return elements[r * width + c]; }
  __device__ __forceinline__ float operator()(int r, int c) const { return at(r, c); }
};
template <typename A, typename B>
struct Both { A a; B b; };
enum class Mode { kAdd, kScale };
}  // namespace

namespace ops {
template <Mode mode>
__global__ void apply(Matrix m, float by);
static __global__ void fill(float *p, int n, float v = 1.0f) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) p[i] = v;
}
}  // namespace ops

template <Mode mode>
__global__ void ops::apply(Matrix m, float by) {
  const int r = blockIdx.y * blockDim.y + threadIdx.y, c = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= m.height || c >= m.width) return;
  if constexpr (mode == Mode::kAdd) m.at(r, c) = m(r, c) + by;
  else m.at(r, c) *= by;
}

__constant__ float coefficients[3], bias = 0.5f;
__constant__ int lookup[4] = {1, 2, 4, 8};
__device__ __constant__ double precise[2] = {0.25, 0.75};
__device__ const float kTable[4] = {1.f, 10.f, 100.f, 1000.f};
static __device__ int hits[2][2];
__device__ volatile int flag = 3, unused;
__device__ unsigned long long big;
constexpr int kShared = 64;

extern "C" __global__ void __launch_bounds__(64) mix(float *__restrict__ out, const Both<int, float> *in, int n) {
  __shared__ Both<int, float> pairs[kShared], *chosen;
  __shared__ float first[kShared],
      second[kShared][2];
  __shared__ alignas(16) unsigned char bytes[16];
  volatile __shared__ int count;
  extern __shared__ float4 dynamic[];
  const int t = threadIdx.x;
  if (t == 0) count = 0, chosen = pairs;
  if (t < 16) bytes[t] = t;
  pairs[t] = in[t];
  first[t] = t, second[t][0] = 2 * t, second[t][1] = 1;
  dynamic[t] = make_float4(t, 1, 2, 3);
  __syncthreads();
  auto weigh = [&](int i) { return first[i] + second[i][0] * second[i][1]; };
  float v = weigh((t + 1) % kShared) + chosen[t].a + pairs[t].b + dynamic[(t + 1) % 64].x + bytes[t % 16];
  v += coefficients[t % 3] + bias + lookup[t & 3] + float(precise[t & 1]) + kTable[0];
  if (t < n && t > 61) atomicAdd(&hits[t & 1][1], flag), atomicAdd(&big, 1ull);
  out[t] = v;
}

typedef float (*Function)(float);
__device__ float doubled(float x) { return 2 * x; }
__device__ float squared(float x) { return x * x; }
template <class F>
__global__ void map(float *p, int n, F f) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] = f(p[i]);
}
struct Square { __device__ float operator()(float x) const { return squared(x); } };

template <int N, typename T = float>
class Runner {
 public:
  void run(T *p) {
    if (N > 2) ops::fill<<<dim3{1}, THREADS, 0, 0>>>(p, N, static_cast<T>(scale_));
    else
      ops::fill <<< 1, 1 << 5 >>> (p, N, (T)1);
  }
 private:
  T scale_ = 3;
};

int main(int argc, char **argv) {
  const int w = 20, h = 10, n = w * h;
  Matrix m{w, h, nullptr};
  CUDA_CALL(cudaMalloc((void **)&m.elements, n * sizeof(float)));
  KERNEL_LAUNCH(ops::fill, n, m.elements, n, 2.f);
  dim3 block(8, 8);
  dim3 grid((w + block.x - 1) / block.x, (h + block.y - 1) / block.y);
  ops::apply<Mode::kAdd><<<grid, block>>>(m, 1.5f);
  for (auto &[name, by] : std::map<std::string, float>{{"half", 0.5f}, {"four", 4.f}})
    ops::apply<Mode::kScale><<<grid, block>>>(m, by);
  map<<<4, 64>>>(m.elements, n, Square());
  map<Square><<<(n + 63) >> 6, 64>>>(m.elements, n, {});
  std::vector<float> host(n);
  CUDA_CALL(cudaMemcpy(host.data(), m.elements, n * sizeof(float), cudaMemcpyDeviceToHost));
  std::cout << "matrix " << host[0] << " " << host.back() << "\n";
  Runner<50> r;
  r.run(m.elements);
  void (*chosen)(float *, int, float) = argc > 5 ? nullptr : ops::fill;
  chosen<<<1, 32>>>(m.elements + 50, 2, 9.f);
  CUDA_CALL(cudaMemcpy(host.data(), m.elements, 52 * sizeof(float), cudaMemcpyDeviceToHost));
  std::cout << "runner " << host[49] << " " << host[51] << "\n";

  Both<int, float> in[64];
  for (int i = 0; i < 64; ++i) in[i] = {i, 0.5f};
  Both<int, float> *d_in;
  CUDA_CALL(cudaMalloc(&d_in, sizeof in));
  CUDA_CALL(cudaMemcpy(d_in, in, sizeof in, cudaMemcpyHostToDevice));
  float c[3] = {0, 1, 2};
  CUDA_CALL(cudaMemcpyToSymbol(coefficients, c, sizeof(c)));
  mix<<<1, 64, 64 * sizeof(float4)>>>(m.elements, d_in, 64);
  CUDA_CALL(cudaGetLastError());
  int got[2][2];
  unsigned long long many;
  CUDA_CALL(cudaMemcpyFromSymbol(got, hits, sizeof(got)));
  CUDA_CALL(cudaMemcpyFromSymbol(&many, big, sizeof(many)));
  CUDA_CALL(cudaMemcpy(host.data(), m.elements, 64 * sizeof(float), cudaMemcpyDeviceToHost));
  std::cout << "mix " << host[5] << " " << got[0][1] + got[1][1] << " " << many << "\n";
  auto shared = std::make_shared<int>(4);
  std::function<int()> f = [shared] { return *shared << 2 >> 1; };
  std::cout << "host " << f() << std::endl;
  int blocks, size;
  CUDA_CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, mix, 64, 1024));
  CUDA_CALL(cudaOccupancyMaxPotentialBlockSize(&blocks, &size, ops::fill, 0, 0));
  CUDA_CALL(cudaFree(m.elements));
  CUDA_CALL(cudaFree(d_in));
  return 0;
}
