// > 0 0 0
// > no error, 1 copied
// What the first block asks of the other one, which has ended. That does nothing, loads give zeros, and the program
// goes on.
#include <cooperative_groups.h>

#include <cstdint>
#include <cstdio>
#include <cuda/ptx>
namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;

__global__ void __cluster_dims__(2, 1, 1) asks(const int *in, int *out) {
  __shared__ alignas(128) int tile[32];
  __shared__ alignas(128) int mine[32];
  __shared__ alignas(8) std::uint64_t barrier;
  cg::cluster_group cluster = cg::this_cluster();
  tile[threadIdx.x] = mine[threadIdx.x] = 7;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&barrier, 2);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  ptx::fence_proxy_async(ptx::space_shared);
  cluster.sync();
  if (cluster.block_rank() == 1 || threadIdx.x > 0) return;
  const std::uint16_t both = 3;
  const int bytes = sizeof tile;
  int *theirs = cluster.map_shared_rank(tile, 1);
  std::uint64_t *there = cluster.map_shared_rank(&barrier, 1);
  out[0] = theirs[3];                                                                           // FAULT absent block
  theirs[3] = 5;                                                                                // FAULT absent block
  out[1] = atomicAdd(&theirs[3], 9);                                                            // FAULT absent block
  out[2] = theirs[3];                                                                           // FAULT absent block
  ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cluster, ptx::space_cluster, there);        // FAULT absent block
  ptx::cp_async_bulk(ptx::space_cluster, ptx::space_shared, theirs, mine, sizeof mine, there);  // FAULT absent block
  mine[0] = 1;  // nothing reads it any more
  ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cluster, ptx::space_shared, &barrier, bytes);
  ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, tile, in, bytes, &barrier, both);  // FAULT absent block
  ptx::mbarrier_arrive(&barrier);
  while (!ptx::mbarrier_try_wait_parity(&barrier, 0)) {
  }
  out[3] = tile[31];
}

int main() {
  int *data;
  cudaMallocManaged(&data, 64 * sizeof(int));
  for (int i = 0; i < 64; ++i) data[i] = 1;
  asks<<<2, 32>>>(data, data + 32);
  const cudaError_t ended = cudaDeviceSynchronize();
  printf("%d %d %d\n%s, %d copied\n", data[32], data[33], data[34], cudaGetErrorString(ended), data[35]);
  cudaFree(data);
}
