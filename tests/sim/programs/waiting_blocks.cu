// Blocks and warps that wait for each other by hand: a barrier of the grid, a flag between two warps.
// > grid 4
// > flag 42
#include <cstdio>
__device__ unsigned arrived;
__device__ volatile unsigned generation;
__device__ void grid_barrier() {
  __syncthreads();
  if (threadIdx.x == 0) {
    unsigned mine = generation;
    __threadfence();
    if (atomicAdd(&arrived, 1) == gridDim.x - 1) {
      arrived = 0;
      __threadfence();
      generation = mine + 1;
    } else while (generation == mine) {}
    __threadfence();
  }
  __syncthreads();
}
__global__ void k(int *a, int n) {
  a[blockIdx.x * 32 + threadIdx.x] = 1;
  grid_barrier();
  int s = 0;
  for (int b = 0; b < gridDim.x; b++) s += a[b * 32 + threadIdx.x];
  grid_barrier();
  a[blockIdx.x * 32 + threadIdx.x] = s;
}
__global__ void pc(volatile int *flag, int *out) {
  if (threadIdx.x < 32) { while (*flag == 0) {} __threadfence(); if (threadIdx.x == 0) out[0] = out[1] + 1; }
  else if (threadIdx.x == 32) { out[1] = 41; __threadfence(); *flag = 1; }
}
int main() {
  int *a, h[4];
  cudaMalloc(&a, 4 * 32 * 4); cudaMemset(a, 0, 512);
  k<<<4, 32>>>(a, 4);
  cudaMemcpy(h, a, 4, cudaMemcpyDeviceToHost);
  printf("grid %d\n", h[0]);
  cudaMemset(a, 0, 512);
  pc<<<1, 64>>>(a, a + 4);
  cudaMemcpy(h, a + 4, 4, cudaMemcpyDeviceToHost);
  printf("flag %d\n", h[0]);
  cudaFree(a);
}
