// Copies that end at a barrier's phase: the last phase is not waited for.
#include <cooperative_groups.h>

#include <cstdio>
#include <cuda/barrier>
namespace cg = cooperative_groups;
__global__ void sums(const int *in, int *out, int tiles) {
  __shared__ int tile[2][128];
  __shared__ cuda::barrier<cuda::thread_scope_block> full[2];
  const auto block = cg::this_thread_block();
  const int t = threadIdx.x;
  if (t == 0) {
    init(&full[0], 64);
    init(&full[1], 64);
  }
  block.sync();
  cuda::memcpy_async(block, tile[0], in, sizeof tile[0], full[0]);
  int sum = 0;
  for (int i = 0; i < tiles; ++i) {
    if (i + 1 < tiles) {
      cuda::memcpy_async(block, tile[(i + 1) % 2], in + (i + 1) * 128, sizeof tile[0], full[(i + 1) % 2]);
      full[i % 2].arrive_and_wait();
    }
    sum += tile[i % 2][t] + tile[i % 2][127 - t];  // FAULT missing wait
    block.sync();
  }
  out[t] = sum;
}
int main() {
  int *in, *out, h[64];
  cudaMalloc(&in, 4 * 128 * sizeof(int));
  cudaMalloc(&out, sizeof h);
  cudaMemset(in, 0, 4 * 128 * sizeof(int));
  sums<<<1, 64>>>(in, out, 4);
  cudaMemcpy(h, out, sizeof h, cudaMemcpyDeviceToHost);
  printf("%d\n", h[0]);
  cudaFree(in);
  cudaFree(out);
}
