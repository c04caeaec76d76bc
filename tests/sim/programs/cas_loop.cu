// > sum 105, maximum 269
// Updates that CUDA has no atomic for, by compare-and-swap: the plain first read is a guess that the exchange checks.
#include <cstdio>
__device__ float maximum = -1;
__device__ double add(double *address, double value) {
  unsigned long long *word = (unsigned long long *)address;
  unsigned long long old = *word, assumed;
  do {
    assumed = old;
    old = atomicCAS(word, assumed, __double_as_longlong(value + __longlong_as_double(assumed)));
  } while (assumed != old);
  return __longlong_as_double(old);
}
__device__ void keep_maximum(float *address, float value) {
  int *word = (int *)address, old = *word;
  while (value > __int_as_float(old)) {
    int assumed = old;
    old = atomicCAS(word, assumed, __float_as_int(value));
    if (old == assumed) break;
  }
}
__global__ void gather(double *sum) {
  __shared__ double part;
  if (threadIdx.x == 0) part = 0;
  __syncthreads();
  add(&part, 0.5);
  keep_maximum(&maximum, threadIdx.x + 100 * blockIdx.x);
  __syncthreads();
  if (threadIdx.x == 0) add(sum, part);
}
int main() {
  double *sum, h;
  float top;
  cudaMalloc(&sum, sizeof h);
  cudaMemset(sum, 0, sizeof h);
  gather<<<3, 70>>>(sum);
  cudaMemcpy(&h, sum, sizeof h, cudaMemcpyDeviceToHost);
  cudaMemcpyFromSymbol(&top, maximum, sizeof top);
  printf("sum %g, maximum %g\n", h, top);
  cudaFree(sum);
}
