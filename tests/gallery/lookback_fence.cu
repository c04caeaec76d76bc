// Decoupled look-back: each block waits for the sum of those before it. Without a fence between the sum and the flag
// that announces it, another block may see the flag and the old sum.
#include <cstdio>

constexpr int kBlocks = 8;

__global__ void scan(const int* in, int* sums, int* ready, int* out) {
  const int b = blockIdx.x;
  int before = 0;
  if (b > 0) {
    while (atomicAdd(&ready[b - 1], 0) == 0) {
    }
    __threadfence();
    before = sums[b - 1];  // FAULT race
  }
  sums[b] = before + in[b];
#ifdef MENDED
  __threadfence();
#endif
  atomicExch(&ready[b], 1);
  out[b] = before;
}

int main() {
  int *in, *sums, *ready, *out;
  cudaMallocManaged(&in, kBlocks * sizeof(int));
  cudaMallocManaged(&sums, kBlocks * sizeof(int));
  cudaMallocManaged(&ready, kBlocks * sizeof(int));
  cudaMallocManaged(&out, kBlocks * sizeof(int));
  for (int i = 0; i < kBlocks; ++i) in[i] = i, ready[i] = 0;
  scan<<<kBlocks, 1>>>(in, sums, ready, out);
  cudaDeviceSynchronize();
  printf("before the last block %d\n", out[kBlocks - 1]);
  cudaFree(in);
  cudaFree(sums);
  cudaFree(ready);
  cudaFree(out);
}
