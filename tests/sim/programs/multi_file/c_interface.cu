// The C interface of multi_file.cu.
#include "points.cuh"

__global__ void twice(int *v) { *v = 2 * from_another_file(*v) * calls; }

extern "C" int c_interface(int v) {
  int *d;
  cudaMalloc(&d, sizeof v);
  cudaMemcpy(d, &v, sizeof v, cudaMemcpyHostToDevice);
  twice<<<1, 1>>>(d);
  cudaMemcpy(&v, d, sizeof v, cudaMemcpyDeviceToHost);
  cudaFree(d);
  return v;
}
