// Block 0 of a cluster sends each tile to both blocks. A block says that its tile may be overwritten, in the memory of
// block 0; here before it has read it.
#include <cooperative_groups.h>

#include <cstdint>
#include <cstdio>
#include <cuda/ptx>

namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;

constexpr int kThreads = 64, kTile = 64, kTiles = 4, kBlocks = 2;

__global__ void __cluster_dims__(kBlocks, 1, 1) doubled(const int* in, int* out) {
  __shared__ alignas(128) int tile[kTile];
  __shared__ alignas(8) uint64_t full, empty;
  cg::cluster_group cluster = cg::this_cluster();
  const unsigned rank = cluster.block_rank();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&full, 1);
    ptx::mbarrier_init(&empty, kBlocks * kThreads);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full, sizeof tile);
  }
  cluster.sync();
  uint64_t* const released = cluster.map_shared_rank(&empty, 0);
  for (int i = 0; i < kTiles; ++i) {
    if (rank == 0 && threadIdx.x == 0) {
      while (i > 0 && !ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &empty, (i - 1) % 2)) {
      }
      const uint16_t both = 3;
      const int* from = in + i * kTile;
      ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, tile, from, sizeof tile, &full, both);  // FAULT race
    }
    while (!ptx::mbarrier_try_wait_parity(&full, i % 2)) {
    }
    if (threadIdx.x == 0 && i + 1 < kTiles)
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full, sizeof tile);
#ifndef MENDED
    ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cluster, ptx::space_cluster, released);
#endif
    out[(rank * kTiles + i) * kTile + threadIdx.x] = 2 * tile[threadIdx.x];
#ifdef MENDED
    ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cluster, ptx::space_cluster, released);
#endif
  }
  cluster.sync();
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, kTiles * kTile * sizeof(int));
  cudaMallocManaged(&out, kBlocks * kTiles * kTile * sizeof(int));
  for (int i = 0; i < kTiles * kTile; ++i) in[i] = i;
  for (int i = 0; i < kBlocks * kTiles * kTile; ++i) out[i] = -1;
  doubled<<<kBlocks, kThreads>>>(in, out);
  cudaDeviceSynchronize();
  printf("last %d\n", out[kBlocks * kTiles * kTile - 1]);
  cudaFree(in);
  cudaFree(out);
}
