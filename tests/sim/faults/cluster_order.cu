// Blocks of a cluster that nothing orders. None of these faults ends the launch.
#include <cooperative_groups.h>
#include <cstdint>
#include <cuda/barrier>
#include <cuda/ptx>
#include <utility>
namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;

__global__ void __cluster_dims__(2, 1, 1) not_begun(int *out) {
  __shared__ int mine[32];
  cg::cluster_group cluster = cg::this_cluster();
  int *theirs = cluster.map_shared_rank(mine, cluster.block_rank() ^ 1);
  theirs[threadIdx.x] = threadIdx.x;  // FAULT absent block
  cluster.sync();
  out[blockIdx.x * 32 + threadIdx.x] = mine[threadIdx.x];
}

__global__ void __cluster_dims__(2, 1, 1) missing_sync(int *out) {
  __shared__ int mine[32];
  cg::cluster_group cluster = cg::this_cluster();
  cluster.sync();
  mine[threadIdx.x] = threadIdx.x;
  __syncthreads();  // of this block alone
  out[blockIdx.x * 32 + threadIdx.x] = *cluster.map_shared_rank(&mine[31 - threadIdx.x], cluster.block_rank() ^ 1);  // FAULT race
  cluster.sync();
}

__global__ void __cluster_dims__(2, 1, 1) no_release(int *out) {
  __shared__ int mine[32];
  cg::cluster_group cluster = cg::this_cluster();
  mine[threadIdx.x] = threadIdx.x;
  __cluster_barrier_arrive_relaxed();
  __cluster_barrier_wait();
  out[blockIdx.x * 32 + threadIdx.x] = cluster.map_shared_rank(mine, cluster.block_rank() ^ 1)[threadIdx.x];  // FAULT race
  cluster.sync();
}

__global__ void __cluster_dims__(2, 1, 1) early_end(int *out) {
  __shared__ int mine[32];
  cg::cluster_group cluster = cg::this_cluster();
  mine[threadIdx.x] = threadIdx.x;
  cluster.sync();
  if (cluster.block_rank() == 0)
    out[threadIdx.x] = cluster.map_shared_rank(mine, 1)[threadIdx.x];  // FAULT absent block
}

// The neighbour's barrier is told, but this block may end before the neighbour tells it.
__global__ void __cluster_dims__(2, 1, 1) late_arrival(int *out) {
  __shared__ alignas(8) std::uint64_t barrier;
  cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0) ptx::mbarrier_init(&barrier, 1);
  cluster.sync();
  if (threadIdx.x == 0)
    ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cluster, ptx::space_cluster,  // FAULT absent block
                         cluster.map_shared_rank(&barrier, cluster.block_rank() ^ 1));
  out[blockIdx.x * 32 + threadIdx.x] = 1;
}

// A copy reads shared memory that is written again before anything says that it has.
__global__ void __cluster_dims__(2, 1, 1) source_reused(int *out) {
  __shared__ alignas(128) int mine[32], theirs[32];
  __shared__ alignas(8) std::uint64_t barrier;
  cg::cluster_group cluster = cg::this_cluster();
  mine[threadIdx.x] = threadIdx.x;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&barrier, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cluster, ptx::space_shared, &barrier, sizeof theirs);
  }
  ptx::fence_proxy_async(ptx::space_shared);
  cluster.sync();
  const unsigned peer = cluster.block_rank() ^ 1;
  if (threadIdx.x == 0)
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_shared, cluster.map_shared_rank(theirs, peer), mine, sizeof mine,
                       cluster.map_shared_rank(&barrier, peer));
  __syncthreads();
  mine[threadIdx.x] = 0;  // FAULT missing wait
  while (!ptx::mbarrier_try_wait_parity(&barrier, 0)) {
  }
  out[blockIdx.x * 32 + threadIdx.x] = theirs[threadIdx.x];
  cluster.sync();
}

// A copy by cp.async that ends at a barrier of this block.
__global__ void __cluster_dims__(2, 1, 1) not_waited(const int *in, int *out) {
  __shared__ int mine[32];
  __shared__ cuda::barrier<cuda::thread_scope_block> full;
  if (threadIdx.x == 0) init(&full, 32);
  __syncthreads();
  cuda::memcpy_async(cg::this_thread_block(), mine, in, sizeof mine, full);
  auto token = full.arrive();
  const int early = mine[5];  // FAULT missing wait
  full.wait(std::move(token));
  out[blockIdx.x * 32 + threadIdx.x] = mine[threadIdx.x] + early;
}

int main() {
  int *in, *out;
  cudaMalloc(&in, 32 * sizeof(int));
  cudaMemset(in, 0, 32 * sizeof(int));
  cudaMalloc(&out, 64 * sizeof(int));
  not_begun<<<2, 32>>>(out);
  missing_sync<<<2, 32>>>(out);
  no_release<<<2, 32>>>(out);
  early_end<<<2, 32>>>(out);
  late_arrival<<<2, 32>>>(out);
  source_reused<<<2, 32>>>(out);
  not_waited<<<2, 32>>>(in, out);
  cudaDeviceSynchronize();
  cudaFree(in);
  cudaFree(out);
}
