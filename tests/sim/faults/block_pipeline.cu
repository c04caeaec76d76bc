#include <cooperative_groups.h>
#include <cuda/pipeline>
#include <stdio.h>
namespace cg = cooperative_groups;
__global__ void reverse(int *out, const int *in, int parts) {
  __shared__ int tiles[2][64];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  const auto block = cg::this_thread_block();
  auto line = cuda::make_pipeline(block, &state);
  for (int part = 0; part < parts; ++part) {
    line.producer_acquire();
    cuda::memcpy_async(block, tiles[part % 2], in + part * 64, sizeof tiles[0], line);
    line.producer_commit();
    // consumer_wait() is missing
    out[part * 64 + threadIdx.x] = tiles[part % 2][63 - threadIdx.x];  // FAULT race
    line.consumer_release();
  }
}
int main() {
  int h[128] = {}, *in, *out;
  cudaMalloc(&in, sizeof h);
  cudaMalloc(&out, sizeof h);
  cudaMemcpy(in, h, sizeof h, cudaMemcpyHostToDevice);
  reverse<<<1, 64>>>(out, in, 1);
  cudaMemcpy(h, out, sizeof h, cudaMemcpyDeviceToHost);
  printf("%d\n", h[0]);
  cudaFree(in);
  cudaFree(out);
}
