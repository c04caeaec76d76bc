#include <cstdio>
const int kMany = 1 << 16;  // that are read in a loop without a synchronisation, as programs do
__global__ void fill(int *a) { a[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x; }
int main() {
  int *m, *d, sum = 0;
  cudaMallocManaged(&m, kMany * sizeof(int));
  cudaMalloc(&d, 32 * sizeof(int));
  fill<<<kMany / 64, 64>>>(m);
  for (int i = 0; i < kMany; ++i) sum += m[i];  // FAULT host race
  cudaDeviceSynchronize();
  printf("%d %d\n", sum, m[3]);
  fill<<<1, 32>>>(d);
  cudaDeviceSynchronize();
  return d[3];  // FAULT host access
}
