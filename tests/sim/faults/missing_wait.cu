#include <cuda_pipeline.h>
__global__ void first(const float *in, float *out) {
  __shared__ float tile[32];
  __pipeline_memcpy_async(&tile[threadIdx.x], in + threadIdx.x, sizeof(float));
  __pipeline_commit();
  out[threadIdx.x] = tile[threadIdx.x];  // FAULT missing wait
}
int main() {
  float *in, *out;
  cudaMalloc(&in, 128);
  cudaMalloc(&out, 128);
  cudaMemset(in, 0, 128);
  first<<<1, 32>>>(in, out);
  cudaDeviceSynchronize();
  cudaFree(in);
  cudaFree(out);
}
