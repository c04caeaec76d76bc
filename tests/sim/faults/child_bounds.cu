#include <stdio.h>
__global__ void child(int *out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) out[i] = i;  // FAULT out of bounds
}
__global__ void parent(int *out, int n) {
  if (threadIdx.x == 0) child<<<(n + 63) / 64, 64>>>(out, n);
}
int main() {
  int *out;
  cudaMalloc(&out, 100 * sizeof(int));
  parent<<<1, 32>>>(out, 100);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  cudaFree(out);
}
