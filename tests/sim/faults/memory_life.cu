#include <cstdio>
#include <cstdlib>
#include <vector>
__global__ void fill(float *a, int n) { for (int i = threadIdx.x; i < n; i += blockDim.x) a[i] = i; }
int main() {
  float *d, *e, *h = (float *)malloc(10 * sizeof(float));
  cudaMalloc(&d, 64 * sizeof(float));
  cudaMalloc(&e, 64 * sizeof(float));
  fill<<<1, 32>>>(d, 64);
  cudaMemcpy(h, d, 64 * sizeof(float), cudaMemcpyDeviceToHost);  // FAULT out of bounds
  std::vector<float> v(32);
  cudaMemcpy(d, v.data(), 64 * sizeof(float), cudaMemcpyHostToDevice);  // FAULT out of bounds
  cudaFree(d);
  cudaFree(d);  // FAULT double free
  cudaMemcpy(v.data(), d, 32 * sizeof(float), cudaMemcpyDeviceToHost);  // FAULT use after free
  cudaFree(h);  // FAULT invalid free
  cudaFree(e + 1);  // FAULT invalid free
  free(h);
}
