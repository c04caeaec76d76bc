#include <cstdlib>
__global__ void fill(int *a) {
  a[threadIdx.x] = 1;  // FAULT out of bounds
}
int main() {
  int *h = (int *)malloc(128);
  fill<<<1, 32>>>(h);
  cudaDeviceSynchronize();
  free(h);
}
