#include <cstdio>
__global__ void count(int *counter) {
  *counter = *counter + 1;  // FAULT race
}
int main() {
  int *d, h;
  cudaMalloc(&d, sizeof(int));
  cudaMemset(d, 0, sizeof(int));
  count<<<2, 1>>>(d);
  cudaMemcpy(&h, d, sizeof h, cudaMemcpyDeviceToHost);
  cudaFree(d);
}
