// Scans: Hillis and Steele with two buffers, Blelloch without bank conflicts over many blocks, decoupled look-back.
// > hillis steele 1275
// > blelloch ok
// > look-back ok
#include <algorithm>
#include <cstdio>
#include <numeric>
#include <vector>
#include <cuda_runtime.h>

#define NUM_BANKS 32
#define LOG_NUM_BANKS 5
#define CONFLICT_FREE_OFFSET(n) ((n) >> LOG_NUM_BANKS)
#define CUDA_CHECK(expr) do { cudaError_t _e = (expr); if (_e != cudaSuccess) { printf("%s\n", cudaGetErrorName(_e)); std::abort(); } } while (0)

__global__ void hillis_steele(float *g_odata, float *g_idata, int n) {
  extern __shared__ float temp[];
  int thid = threadIdx.x, pout = 0, pin = 1;
  temp[pout * n + thid] = g_idata[thid];
  __syncthreads();
  for (int offset = 1; offset < n; offset *= 2) {
    pout = 1 - pout;
    pin = 1 - pout;
    if (thid >= offset) temp[pout * n + thid] = temp[pin * n + thid] + temp[pin * n + thid - offset];
    else temp[pout * n + thid] = temp[pin * n + thid];
    __syncthreads();
  }
  g_odata[thid] = temp[pout * n + thid];
}

__global__ void blelloch(int *out, const int *in, int *sums, int n) {
  extern __shared__ int s[];
  const int t = threadIdx.x, width = 2 * blockDim.x, base = blockIdx.x * width;
  const int ai = t, bi = t + blockDim.x;
  s[ai + CONFLICT_FREE_OFFSET(ai)] = base + ai < n ? in[base + ai] : 0;
  s[bi + CONFLICT_FREE_OFFSET(bi)] = base + bi < n ? in[base + bi] : 0;
  int offset = 1;
  for (int d = width >> 1; d > 0; d >>= 1) {
    __syncthreads();
    if (t < d) {
      int a = offset * (2 * t + 1) - 1, b = offset * (2 * t + 2) - 1;
      s[b + CONFLICT_FREE_OFFSET(b)] += s[a + CONFLICT_FREE_OFFSET(a)];
    }
    offset *= 2;
  }
  if (t == 0) {
    const int last = width - 1 + CONFLICT_FREE_OFFSET(width - 1);
    if (sums) sums[blockIdx.x] = s[last];
    s[last] = 0;
  }
  for (int d = 1; d < width; d *= 2) {
    offset >>= 1;
    __syncthreads();
    if (t < d) {
      int a = offset * (2 * t + 1) - 1, b = offset * (2 * t + 2) - 1;
      a += CONFLICT_FREE_OFFSET(a), b += CONFLICT_FREE_OFFSET(b);
      int v = s[a];
      s[a] = s[b];
      s[b] += v;
    }
  }
  __syncthreads();
  if (base + ai < n) out[base + ai] = s[ai + CONFLICT_FREE_OFFSET(ai)];
  if (base + bi < n) out[base + bi] = s[bi + CONFLICT_FREE_OFFSET(bi)];
}

__global__ void add_sums(int *out, const int *sums, int n) {
  int i = blockIdx.x * 2 * blockDim.x + threadIdx.x;
  if (i < n) out[i] += sums[blockIdx.x];
  if (i + blockDim.x < n) out[i + blockDim.x] += sums[blockIdx.x];
}

void scan(int *out, const int *in, int n) {
  const int threads = 32, blocks = (n + 2 * threads - 1) / (2 * threads);
  const size_t shared = (2 * threads + CONFLICT_FREE_OFFSET(2 * threads)) * sizeof(int);
  if (blocks == 1) return blelloch<<<1, threads, shared>>>(out, in, nullptr, n);
  int *sums, *scanned;
  CUDA_CHECK(cudaMalloc(&sums, blocks * sizeof(int)));
  CUDA_CHECK(cudaMalloc(&scanned, blocks * sizeof(int)));
  blelloch<<<blocks, threads, shared>>>(out, in, sums, n);
  scan(scanned, sums, blocks);
  add_sums<<<blocks, threads>>>(out, scanned, n);
  CUDA_CHECK(cudaFree(sums));
  CUDA_CHECK(cudaFree(scanned));
}

__device__ unsigned int tickets;
__global__ void look_back(const int *in, int *out, volatile int *totals, volatile int *prefixes, int *flags, int n) {
  __shared__ int block, before, values[64];
  if (threadIdx.x == 0) block = atomicAdd(&tickets, 1);
  __syncthreads();
  const int i = block * 64 + threadIdx.x;
  values[threadIdx.x] = i < n ? in[i] : 0;
  __syncthreads();
  for (int d = 1; d < 64; d *= 2) {
    int add = threadIdx.x >= d ? values[threadIdx.x - d] : 0;
    __syncthreads();
    values[threadIdx.x] += add;
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    totals[block] = values[63];
    __threadfence();
    atomicExch(&flags[block], 1);
    int sum = 0, flag;
    for (int p = block - 1; p >= 0; p--) {
      while ((flag = atomicAdd(&flags[p], 0)) == 0) {}
      __threadfence();
      sum += flag == 2 ? prefixes[p] : totals[p];
      if (flag == 2) break;
    }
    prefixes[block] = sum + values[63];
    __threadfence();
    atomicExch(&flags[block], 2);
    before = sum;
  }
  __syncthreads();
  if (i < n) out[i] = before + values[threadIdx.x];
}

int main() {
  float f[50], *d_in, *d_out;
  std::iota(f, f + 50, 1.0f);
  CUDA_CHECK(cudaMalloc(&d_in, sizeof(f)));
  CUDA_CHECK(cudaMalloc(&d_out, sizeof(f)));
  CUDA_CHECK(cudaMemcpy(d_in, f, sizeof(f), cudaMemcpyHostToDevice));
  hillis_steele<<<1, 50, 2 * 50 * sizeof(float)>>>(d_out, d_in, 50);
  CUDA_CHECK(cudaMemcpy(f, d_out, sizeof(f), cudaMemcpyDeviceToHost));
  printf("hillis steele %g\n", f[49]);
  const int n = 1000;
  std::vector<int> h(n), got(n), want(n);
  for (int &x : h) x = rand() % 10;
  int *in, *out, *scratch;
  CUDA_CHECK(cudaMalloc(&in, n * sizeof(int)));
  CUDA_CHECK(cudaMalloc(&out, n * sizeof(int)));
  CUDA_CHECK(cudaMalloc(&scratch, 3 * 16 * sizeof(int)));
  CUDA_CHECK(cudaMemset(scratch, 0, 3 * 16 * sizeof(int)));
  CUDA_CHECK(cudaMemcpy(in, h.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  scan(out, in, n);
  CUDA_CHECK(cudaMemcpy(got.data(), out, n * sizeof(int), cudaMemcpyDeviceToHost));
  std::exclusive_scan(h.begin(), h.end(), want.begin(), 0);
  printf("blelloch %s\n", got == want ? "ok" : "WRONG");
  look_back<<<(n + 63) / 64, 64>>>(in, out, scratch, scratch + 16, scratch + 32, n);
  CUDA_CHECK(cudaMemcpy(got.data(), out, n * sizeof(int), cudaMemcpyDeviceToHost));
  std::inclusive_scan(h.begin(), h.end(), want.begin());
  printf("look-back %s\n", got == want ? "ok" : "WRONG");
  for (void *p : {(void *)d_in, (void *)d_out, (void *)in, (void *)out, (void *)scratch}) CUDA_CHECK(cudaFree(p));
}
