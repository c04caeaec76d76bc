#include <cstdio>
#define N 64
__global__ void reverse(int *d) {
  __shared__ int s[N];
  int t = threadIdx.x;
  s[t] = d[t];
  // a __syncthreads() is missing here
  d[t] = s[N - 1 - t];  // FAULT race
}
int main() {
  int h[N], *d;
  for (int i = 0; i < N; ++i) h[i] = i;
  cudaMalloc(&d, sizeof h);
  cudaMemcpy(d, h, sizeof h, cudaMemcpyHostToDevice);
  reverse<<<1, N>>>(d);
  cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);
  cudaFree(d);
  printf("done\n");
}
