#include <cstdio>
int main() {
  int h = 1, *d;
  cudaMalloc(&d, sizeof h);
  cudaMemcpy(d, &h, sizeof h, cudaMemcpyDeviceToHost);  // FAULT wrong pointer
  cudaFree(d);
  cudaFree(d);  // FAULT double free
  printf("done\n");
}
