// What a cluster does not have, one kernel after another: each ends its launch.
#include <cooperative_groups.h>
#include <cstdint>
#include <cuda/ptx>
namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;

__global__ void __cluster_dims__(2, 1, 1) past_the_end(int *out) {
  __shared__ int mine[32];
  cg::cluster_group cluster = cg::this_cluster();
  mine[threadIdx.x] = threadIdx.x;
  cluster.sync();
  out[threadIdx.x] = cluster.map_shared_rank(mine, cluster.block_rank() ^ 1)[threadIdx.x + 1];  // FAULT out of bounds
  cluster.sync();
}

__global__ void __cluster_dims__(2, 1, 1) wrong_rank(int *out) {
  __shared__ int mine[32];
  cg::cluster_group cluster = cg::this_cluster();
  mine[threadIdx.x] = threadIdx.x;
  cluster.sync();
  out[threadIdx.x] = cluster.map_shared_rank(mine, cluster.block_rank() + 1)[threadIdx.x];  // FAULT invalid operand
  cluster.sync();
}

__global__ void __cluster_dims__(2, 1, 1) no_barrier_there() {
  __shared__ alignas(8) std::uint64_t barrier;
  cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0 && cluster.block_rank() == 0) ptx::mbarrier_init(&barrier, 1);
  cluster.sync();
  if (threadIdx.x == 0)
    ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cluster, ptx::space_cluster,  // FAULT invalid barrier
                         cluster.map_shared_rank(&barrier, 1));
  cluster.sync();
}

__global__ void __cluster_dims__(2, 1, 1) waits_elsewhere() {
  __shared__ alignas(8) std::uint64_t barrier;
  cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0) ptx::mbarrier_init(&barrier, 1);
  cluster.sync();
  if (cluster.block_rank() == 1)
    while (!ptx::mbarrier_try_wait_parity(cluster.map_shared_rank(&barrier, 0), 0)) {  // FAULT invalid barrier
    }
  cluster.sync();
}

__global__ void __cluster_dims__(2, 1, 1) multicast_to_many(const int *in) {
  __shared__ alignas(128) int tile[32];
  __shared__ alignas(8) std::uint64_t barrier;
  cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&barrier, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cluster, ptx::space_shared, &barrier, sizeof tile);
  }
  cluster.sync();
  if (threadIdx.x == 0 && cluster.block_rank() == 0)
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, tile, in, sizeof tile, &barrier, std::uint16_t{7});  // FAULT invalid operand
  while (!ptx::mbarrier_try_wait_parity(&barrier, 0)) {
  }
  cluster.sync();
}

__global__ void __cluster_dims__(2, 1, 1) never_all() {
  __shared__ alignas(8) std::uint64_t barrier;
  cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0) ptx::mbarrier_init(&barrier, 1);
  cluster.sync();
  if (cluster.block_rank() == 0) {
    cluster.sync();
    if (threadIdx.x == 0)
      ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cluster, ptx::space_cluster, cluster.map_shared_rank(&barrier, 1));
  } else {
    while (!ptx::mbarrier_try_wait_parity(&barrier, 0)) {  // FAULT stuck barrier
    }
    cluster.sync();
  }
}

__global__ void __cluster_dims__(2, 1, 1) twice() {
  __cluster_barrier_arrive();
  __cluster_barrier_arrive();  // FAULT invalid barrier
  __cluster_barrier_wait();
}

__global__ void __cluster_dims__(2, 1, 1) in_a_branch() {
  if (threadIdx.x < 16)
    cg::this_cluster().sync();
  else
    cg::this_cluster().sync();  // FAULT divergent barrier
}

__global__ void __cluster_dims__(2, 1, 1) nothing() {}

int main() {
  int *data;
  cudaMalloc(&data, 64 * sizeof(int));
  cudaMemset(data, 0, 64 * sizeof(int));
  past_the_end<<<2, 32>>>(data);
  cudaDeviceReset();
  cudaMalloc(&data, 64 * sizeof(int));
  wrong_rank<<<2, 32>>>(data);
  cudaDeviceReset();
  no_barrier_there<<<2, 32>>>();
  cudaDeviceReset();
  waits_elsewhere<<<2, 32>>>();
  cudaDeviceReset();
  cudaMalloc(&data, 64 * sizeof(int));
  cudaMemset(data, 0, 64 * sizeof(int));
  multicast_to_many<<<2, 32>>>(data);
  cudaDeviceReset();
  never_all<<<2, 32>>>();
  cudaDeviceReset();
  twice<<<2, 32>>>();
  cudaDeviceReset();
  in_a_branch<<<2, 32>>>();
  cudaDeviceReset();
  nothing<<<3, 32>>>();  // FAULT unchecked launch
  cudaDeviceSynchronize();
}
