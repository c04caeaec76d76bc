// A block of a cluster ends while its neighbour still reads its shared memory: the barrier before the reads is not
// enough, another must come after them.
#include <cooperative_groups.h>

#include <cstdio>

namespace cg = cooperative_groups;

constexpr int kThreads = 128, kBlocks = 4;

__global__ void __cluster_dims__(kBlocks, 1, 1) rotated(const int* in, int* out) {
  __shared__ int tile[kThreads];
  cg::cluster_group cluster = cg::this_cluster();
  tile[threadIdx.x] = in[blockIdx.x * kThreads + threadIdx.x];
  cluster.sync();
  const int* next = cluster.map_shared_rank(tile, (cluster.block_rank() + 1) % kBlocks);
  out[blockIdx.x * kThreads + threadIdx.x] = next[threadIdx.x];  // FAULT absent block
#ifdef MENDED
  cluster.sync();
#endif
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, kBlocks * kThreads * sizeof(int));
  cudaMallocManaged(&out, kBlocks * kThreads * sizeof(int));
  for (int i = 0; i < kBlocks * kThreads; ++i) in[i] = i, out[i] = -1;
  rotated<<<kBlocks, kThreads>>>(in, out);
  cudaDeviceSynchronize();
  printf("last %d\n", out[kBlocks * kThreads - 1]);
  cudaFree(in);
  cudaFree(out);
}
