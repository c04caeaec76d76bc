// > ring of 4: 101 102 103 100 after 3 hops, and all four of block 1: 408
// > sums 10 20 30 40, largest 7
// > handed on: 60
// Blocks of a cluster pass values around a ring by st.async: the store itself tells the mbarrier of the next block.
// Then red.async: all blocks add to a word of block 0. Then flags: each block waits for the one before it in a loop.
#include <cooperative_groups.h>

#include <cstdint>
#include <cstdio>
#include <cuda/atomic>
#include <cuda/ptx>

namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;

constexpr int kBlocks = 4, kHops = 3;

__device__ std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}
__device__ std::uint32_t map_address(std::uint32_t address, unsigned rank) {
  std::uint32_t mapped;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(address), "r"(rank));
  return mapped;
}
__device__ void wait_for(std::uint64_t* barrier, std::uint32_t parity) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "again:\n"
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1;\n"
      "@p bra done;\n"
      "bra again;\n"
      "done:\n"
      "}\n" ::"r"(shared_address(barrier)), "r"(parity) : "memory");
}

__global__ void __cluster_dims__(kBlocks, 1, 1) ring(int* out) {
  __shared__ alignas(8) std::uint64_t full[kHops];
  __shared__ alignas(16) int slot[kHops][4];
  const unsigned rank = cg::this_cluster().block_rank(), next = (rank + 1) % kBlocks;
  if (threadIdx.x == 0) {
    for (int hop = 0; hop < kHops; ++hop) {
      ptx::mbarrier_init(&full[hop], 1);
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cluster, ptx::space_shared, &full[hop], 16);
    }
  }
  cg::this_cluster().sync();
  if (threadIdx.x == 0) {
    int value = 100 + rank, pair = 0;
    for (int hop = 0; hop < kHops; ++hop) {
      const std::uint32_t to = map_address(shared_address(slot[hop]), next);
      const std::uint32_t barrier = map_address(shared_address(&full[hop]), next);
      asm volatile(
          "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(to), "r"(value), "r"(barrier)
          : "memory");
      asm volatile(
          "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0+4], %1, [%2];" ::"r"(to), "r"(value), "r"(barrier)
          : "memory");
      asm volatile(
          "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.u32 [%0+8], {%1, %2}, [%3];" ::"r"(to), "r"(value),
          "r"(value), "r"(barrier)
          : "memory");
      wait_for(&full[hop], 0);
      value = slot[hop][0];
      pair = slot[hop][1] + slot[hop][2] + slot[hop][3];
    }
    out[rank] = value;
    if (rank == 1) out[kBlocks] = pair + value;
  }
  cg::this_cluster().sync();
}

__global__ void __cluster_dims__(kBlocks, 1, 1) sums(int* out) {
  __shared__ alignas(8) std::uint64_t barrier;
  __shared__ std::uint32_t total[kBlocks], most;
  cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x < kBlocks) total[threadIdx.x] = 0;
  if (threadIdx.x == 0) {
    most = 0;
    ptx::mbarrier_init(&barrier, 1);
    if (cluster.block_rank() == 0)
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cluster, ptx::space_shared, &barrier, kBlocks * (kBlocks + 1) * 4);
  }
  cluster.sync();
  std::uint64_t* const told = cluster.map_shared_rank(&barrier, 0);
  if (threadIdx.x < kBlocks) {
    const std::uint32_t value = (threadIdx.x + 1) * (cluster.block_rank() + 1);
    ptx::red_async(ptx::op_add, cluster.map_shared_rank(&total[threadIdx.x], 0), value, told);
  } else if (threadIdx.x == kBlocks) {
    ptx::red_async(ptx::op_max, cluster.map_shared_rank(&most, 0), 1 + 2 * cluster.block_rank(), told);
  }
  if (cluster.block_rank() == 0) {
    while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &barrier, 0)) {
    }
    if (threadIdx.x < kBlocks) out[threadIdx.x] = total[threadIdx.x];
    if (threadIdx.x == kBlocks) out[kBlocks] = most;
  }
  cluster.sync();
}

__global__ void __cluster_dims__(kBlocks, 1, 1) handed_on(int* out) {
  __shared__ int flag, value;
  cg::cluster_group cluster = cg::this_cluster();
  const unsigned rank = cluster.block_rank();
  if (threadIdx.x == 0) flag = 0;
  cluster.sync();
  if (threadIdx.x == 0) {
    cuda::atomic_ref<int, cuda::thread_scope_device> mine(flag);
    while (rank < kBlocks - 1 && mine.load(cuda::memory_order_acquire) == 0) {
    }
    const int sum = (rank < kBlocks - 1 ? value : 0) + 10 * static_cast<int>(rank);
    if (rank > 0) {  // from the last to the first
      *cluster.map_shared_rank(&value, rank - 1) = sum;
      cuda::atomic_ref<int, cuda::thread_scope_device> next(*cluster.map_shared_rank(&flag, rank - 1));
      next.store(1, cuda::memory_order_release);
    } else {
      *out = sum;
    }
  }
  if (threadIdx.x > 20) return;  // the barrier does not wait for those that have ended
  cluster.sync();
}

int main() {
  int* out;
  cudaMallocManaged(&out, (kBlocks + 1) * sizeof(int));
  ring<<<kBlocks, 32>>>(out);
  cudaDeviceSynchronize();
  printf("ring of %d: %d %d %d %d after %d hops, and all four of block 1: %d\n", kBlocks, out[0], out[1], out[2], out[3],
         kHops, out[4]);
  sums<<<kBlocks, 32>>>(out);
  cudaDeviceSynchronize();
  printf("sums %d %d %d %d, largest %d\n", out[0], out[1], out[2], out[3], out[4]);
  handed_on<<<kBlocks, 32>>>(out);
  cudaDeviceSynchronize();
  printf("handed on: %d\n", out[0]);
  cudaFree(out);
}
