#include <cstdio>
__global__ void twice(float *a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) a[i] = 2 * i;  // FAULT out of bounds
}
int main() {
  float *a;
  cudaMalloc(&a, 100 * sizeof(float));
  twice<<<1, 128>>>(a, 100);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
