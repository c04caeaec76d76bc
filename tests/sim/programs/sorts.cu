// Sorting: bitonic over global and shared memory, one-bit radix passes with a scan, merge by co-rank, odd-even.
// > bitonic sorted
// > radix sorted
// > merge sorted
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

typedef unsigned int uint;
#define SHARED_SIZE_LIMIT 64U

__device__ inline void Comparator(uint &keyA, uint &keyB, uint dir) {
  if ((keyA > keyB) == dir) { uint t = keyA; keyA = keyB; keyB = t; }
}

__global__ void bitonicSortShared(uint *d_Key, uint arrayLength, uint dir) {
  __shared__ uint s_key[SHARED_SIZE_LIMIT];
  d_Key += blockIdx.x * SHARED_SIZE_LIMIT + threadIdx.x;
  s_key[threadIdx.x + 0] = d_Key[0];
  s_key[threadIdx.x + (SHARED_SIZE_LIMIT / 2)] = d_Key[(SHARED_SIZE_LIMIT / 2)];
  for (uint size = 2; size <= arrayLength; size <<= 1) {
    uint ddd = (((blockIdx.x * SHARED_SIZE_LIMIT / 2 + threadIdx.x) & (size / 2)) != 0) ^ dir;
    for (uint stride = size / 2; stride > 0; stride >>= 1) {
      __syncthreads();
      uint pos = 2 * threadIdx.x - (threadIdx.x & (stride - 1));
      Comparator(s_key[pos + 0], s_key[pos + stride], ddd);
    }
  }
  __syncthreads();
  d_Key[0] = s_key[threadIdx.x + 0];
  d_Key[(SHARED_SIZE_LIMIT / 2)] = s_key[threadIdx.x + (SHARED_SIZE_LIMIT / 2)];
}

__global__ void bitonic_sort_step(uint *dev_values, int j, int k) {
  unsigned int i = threadIdx.x + blockDim.x * blockIdx.x, ixj = i ^ j;
  if (ixj > i) {
    if ((i & k) == 0 && dev_values[i] > dev_values[ixj] || (i & k) != 0 && dev_values[i] < dev_values[ixj]) {
      uint temp = dev_values[i];
      dev_values[i] = dev_values[ixj];
      dev_values[ixj] = temp;
    }
  }
}

__global__ void radix_pass(const uint *in, uint *out, uint bit, int n) {
  __shared__ uint ones_before[257];
  const int i = threadIdx.x;
  const uint key = i < n ? in[i] : ~0u, one = key >> bit & 1;
  ones_before[i + 1] = one;
  if (i == 0) ones_before[0] = 0;
  __syncthreads();
  for (int d = 1; d <= blockDim.x; d *= 2) {
    uint add = i + 1 >= d ? ones_before[i + 1 - d] : 0;
    __syncthreads();
    ones_before[i + 1] += add;
    __syncthreads();
  }
  const uint zeros = blockDim.x - ones_before[blockDim.x];
  const uint to = one ? zeros + ones_before[i] : i - ones_before[i];
  if (to < n) out[to] = key;
}

__device__ int co_rank(int k, const int *A, int m, const int *B, int n) {
  int i = k < m ? k : m, j = k - i, i_low = 0 > (k - n) ? 0 : k - n, j_low = 0 > (k - m) ? 0 : k - m, delta;
  bool active = true;
  while (active) {
    if (i > 0 && j < n && A[i - 1] > B[j]) {
      delta = ((i - i_low + 1) >> 1);
      j_low = j;
      j += delta;
      i -= delta;
    } else if (j > 0 && i < m && B[j - 1] >= A[i]) {
      delta = ((j - j_low + 1) >> 1);
      i_low = i;
      i += delta;
      j -= delta;
    } else active = false;
  }
  return i;
}

__global__ void merge_basic(const int *A, int m, const int *B, int n, int *C) {
  int tid = blockIdx.x * blockDim.x + threadIdx.x;
  int each = ceil((m + n) / (float)(blockDim.x * gridDim.x));
  int k_curr = min(tid * each, m + n), k_next = min((tid + 1) * each, m + n);
  int i = co_rank(k_curr, A, m, B, n), i_end = co_rank(k_next, A, m, B, n), j = k_curr - i, j_end = k_next - i_end;
  for (int k = k_curr; k < k_next; k++) C[k] = i < i_end && (j >= j_end || A[i] <= B[j]) ? A[i++] : B[j++];
}

int main() {
  const int N = 256;
  std::vector<uint> h(N);
  uint *d, *e;
  cudaMalloc((void **)&d, N * sizeof(uint));
  cudaMalloc((void **)&e, N * sizeof(uint));
  for (auto &v : h) v = rand() % 1000;
  cudaMemcpy(d, h.data(), N * sizeof(uint), cudaMemcpyHostToDevice);
  bitonicSortShared<<<N / SHARED_SIZE_LIMIT, SHARED_SIZE_LIMIT / 2>>>(d, SHARED_SIZE_LIMIT, 1);
  for (int k = 2; k <= N; k <<= 1)
    for (int j = k >> 1; j > 0; j = j >> 1) bitonic_sort_step<<<N / 64, 64>>>(d, j, k);
  cudaMemcpy(h.data(), d, N * sizeof(uint), cudaMemcpyDeviceToHost);
  printf("bitonic %s\n", std::is_sorted(h.begin(), h.end()) ? "sorted" : "NOT SORTED");
  for (auto &v : h) v = rand() % 1000;
  cudaMemcpy(d, &h[0], 200 * sizeof(uint), cudaMemcpyHostToDevice);
  for (uint bit = 0; bit < 10; bit++) {
    radix_pass<<<1, 256>>>(d, e, bit, 200);
    std::swap(d, e);
  }
  cudaMemcpy(&h[0], d, 200 * sizeof(uint), cudaMemcpyDeviceToHost);
  printf("radix %s\n", std::is_sorted(h.begin(), h.begin() + 200) ? "sorted" : "NOT SORTED");
  int *a, *b, *c;
  cudaMallocManaged(&a, 50 * sizeof(int));
  cudaMallocManaged(&b, 30 * sizeof(int));
  cudaMallocManaged(&c, 80 * sizeof(int));
  for (int i = 0; i < 50; i++) a[i] = i * 3;
  for (int i = 0; i < 30; i++) b[i] = i * 4 + 1;
  merge_basic<<<2, 8>>>(a, 50, b, 30, c);
  cudaDeviceSynchronize();
  printf("merge %s\n", std::is_sorted(c, c + 80) ? "sorted" : "NOT SORTED");
  cudaFree(d), cudaFree(e), cudaFree(a), cudaFree(b), cudaFree(c);
}
