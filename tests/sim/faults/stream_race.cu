#include <cstdio>
__global__ void fill(float *a, float v) {
  a[threadIdx.x] = v;
}
__global__ void sum(const float *a, float *out) {
  float s = 0;
  for (int i = 0; i < 32; ++i) s += a[i];  // FAULT race
  out[threadIdx.x] = s;
}
int main() {
  float *a, *out, *h;
  cudaStream_t s, t;
  cudaStreamCreate(&s);
  cudaStreamCreate(&t);
  cudaMalloc(&a, 32 * sizeof(float));
  cudaMalloc(&out, 32 * sizeof(float));
  cudaMallocHost(&h, 32 * sizeof(float));
  fill<<<1, 32, 0, s>>>(a, 1);
  sum<<<1, 32, 0, t>>>(a, out);
  cudaMemcpyAsync(h, out, 32 * sizeof(float), cudaMemcpyDeviceToHost, s);  // FAULT race
  printf("%g\n", h[0]);  // FAULT host race
  cudaDeviceSynchronize();
  cudaEvent_t ready;  // from here on all is in order
  cudaEventCreate(&ready);
  fill<<<1, 32, 0, s>>>(a, 2);
  cudaEventRecord(ready, s);
  cudaStreamWaitEvent(t, ready, 0);
  sum<<<1, 32, 0, t>>>(a, out);
  cudaMemcpyAsync(h, out, 32 * sizeof(float), cudaMemcpyDeviceToHost, t);
  cudaStreamSynchronize(t);
  printf("%g\n", h[0]);
  cudaFree(a), cudaFree(out), cudaFreeHost(h), cudaEventDestroy(ready), cudaStreamDestroy(s), cudaStreamDestroy(t);
}
