#include <cstdio>
__global__ void fill(int *a) { a[threadIdx.x] = threadIdx.x; }
int main() {
  int *m, *d;
  cudaMallocManaged(&m, 32 * sizeof(int));
  cudaMalloc(&d, 32 * sizeof(int));
  fill<<<1, 32>>>(m);
  int early = m[3];  // FAULT host race
  cudaDeviceSynchronize();
  printf("%d %d\n", early, m[3]);
  fill<<<1, 32>>>(d);
  cudaDeviceSynchronize();
  return d[3];  // FAULT host access
}
