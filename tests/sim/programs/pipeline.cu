// > sum 2016, twice 4032
#include <cuda_pipeline.h>
#include <cstdio>
template <int Stages, typename T>
__global__ void sum(const T *in, T *out, int tiles) {
  __shared__ T tile[Stages][32];
  const int t = threadIdx.x;
  T total = 0;
  for (int i = 0; i < Stages - 1; ++i) {
    if (i < tiles) __pipeline_memcpy_async(&tile[i][t], in + i * 32 + t, sizeof(T));
    __pipeline_commit();
  }
  for (int i = 0; i < tiles; ++i) {
    const int next = i + Stages - 1;
    if (next < tiles) __pipeline_memcpy_async(&tile[next % Stages][t], in + next * 32 + t, sizeof(T));
    __pipeline_commit();
    __pipeline_wait_prior(Stages - 1);
    __syncwarp();
    total += tile[i % Stages][31 - t];
    __syncwarp();
  }
  atomicAdd(out, total);
}
int main() {
  float h[64], *in, *out, got[2];
  for (int i = 0; i < 64; ++i) h[i] = i;
  cudaMalloc(&in, sizeof h);
  cudaMalloc(&out, sizeof got);
  cudaMemcpy(in, h, sizeof h, cudaMemcpyHostToDevice);
  cudaMemset(out, 0, sizeof got);
  sum<2><<<1, 32>>>(in, out, 2);
  sum<3><<<2, 32>>>(in, out + 1, 2);
  cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost);
  printf("sum %g, twice %g\n", got[0], got[1]);
  cudaFree(in);
  cudaFree(out);
}
