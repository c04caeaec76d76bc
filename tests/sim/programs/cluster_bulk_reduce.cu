// > sums in global memory: wrong 0
// > smallest 3, largest 60, bits 0xff
// > sums in block 0: wrong 0
// > exchanged: wrong 0
// Bulk reductions: each block adds an array in its shared memory to one in global memory, or to one in the shared memory
// of block 0 of its cluster; and a copy from shared memory to shared memory of the neighbour.
#include <cooperative_groups.h>

#include <cstdint>
#include <cstdio>
#include <cuda/ptx>

namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;

constexpr int kThreads = 64, kBlocks = 4;

__device__ std::uint32_t smem(const void* pointer) { return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer)); }

__global__ void add_to_global(float* sums, int* small, int* large, unsigned* bits) {
  __shared__ alignas(128) float mine[kThreads];
  __shared__ alignas(128) int numbers[4];
  __shared__ alignas(128) unsigned flags[4];
  mine[threadIdx.x] = float(threadIdx.x + blockIdx.x);
  if (threadIdx.x < 4) {
    numbers[threadIdx.x] = 3 + 19 * ((blockIdx.x + 1) % kBlocks);
    flags[threadIdx.x] = 3u << 2 * blockIdx.x;
  }
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::cp_reduce_async_bulk(ptx::space_global, ptx::space_shared, ptx::op_add, sums, mine, sizeof mine);
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.min.s32 [%0], [%1], %2;" ::"l"(small), "r"(smem(numbers)),
                 "r"(16) : "memory");
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.max.s32 [%0], [%1], %2;" ::"l"(large), "r"(smem(numbers)),
                 "r"(16) : "memory");
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.or.b32 [%0], [%1], %2;" ::"l"(bits), "r"(smem(flags)),
                 "r"(16) : "memory");
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
  }
}

__global__ void __cluster_dims__(kBlocks, 1, 1) add_in_cluster(int* out) {
  __shared__ alignas(128) int mine[kThreads], total[kThreads];
  __shared__ alignas(8) std::uint64_t barrier;
  cg::cluster_group cluster = cg::this_cluster();
  mine[threadIdx.x] = threadIdx.x * (cluster.block_rank() + 1);
  total[threadIdx.x] = 1000;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&barrier, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    if (cluster.block_rank() == 0)
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &barrier, kBlocks * sizeof mine);
  }
  ptx::fence_proxy_async(ptx::space_shared);
  cluster.sync();
  if (threadIdx.x == 0)
    ptx::cp_reduce_async_bulk(ptx::space_cluster, ptx::space_shared, ptx::op_add, cluster.map_shared_rank(total, 0), mine,
                              sizeof mine, cluster.map_shared_rank(&barrier, 0));
  if (cluster.block_rank() == 0) {
    while (!ptx::mbarrier_try_wait_parity(&barrier, 0)) {
    }
    out[threadIdx.x] = total[threadIdx.x];
  }
  cluster.sync();
}

__global__ void __cluster_dims__(kBlocks, 1, 1) exchange(const int* in, int* out) {
  __shared__ alignas(128) int mine[kThreads], theirs[kThreads];
  __shared__ alignas(8) std::uint64_t barrier;
  cg::cluster_group cluster = cg::this_cluster();
  const unsigned next = (cluster.block_rank() + 1) % kBlocks;
  mine[threadIdx.x] = in[blockIdx.x * kThreads + threadIdx.x];
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&barrier, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cluster, ptx::space_shared, &barrier, sizeof theirs);
  }
  ptx::fence_proxy_async(ptx::space_shared);
  ptx::barrier_cluster_arrive(ptx::sem_release);
  ptx::barrier_cluster_wait(ptx::sem_acquire);
  if (threadIdx.x == 0) {
    int* const to = cluster.map_shared_rank(theirs, next);
    std::uint64_t* const told = cluster.map_shared_rank(&barrier, next);
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_shared, to, mine, sizeof mine, told);
  }
  while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &barrier, 0)) {
  }
  out[blockIdx.x * kThreads + threadIdx.x] = theirs[threadIdx.x];
  cluster.sync();
}

int main() {
  float* sums;
  int *numbers, *in, *out;
  unsigned* bits;
  cudaMallocManaged(&sums, kThreads * sizeof(float));
  cudaMallocManaged(&numbers, 8 * sizeof(int));
  cudaMallocManaged(&bits, 4 * sizeof(unsigned));
  cudaMallocManaged(&in, kBlocks * kThreads * sizeof(int));
  cudaMallocManaged(&out, kBlocks * kThreads * sizeof(int));
  for (int i = 0; i < kThreads; ++i) sums[i] = 0.5f;
  for (int i = 0; i < 4; ++i) numbers[i] = 1000, numbers[4 + i] = -1000, bits[i] = 0;
  add_to_global<<<kBlocks, kThreads>>>(sums, numbers, numbers + 4, bits);
  cudaDeviceSynchronize();
  int wrong = 0;
  for (int i = 0; i < kThreads; ++i) wrong += sums[i] != 0.5f + kBlocks * i + 6;
  printf("sums in global memory: wrong %d\n", wrong);
  printf("smallest %d, largest %d, bits 0x%x\n", numbers[3], numbers[7], bits[3]);
  add_in_cluster<<<kBlocks, kThreads>>>(out);
  cudaDeviceSynchronize();
  wrong = 0;
  for (int i = 0; i < kThreads; ++i) wrong += out[i] != 1000 + 10 * i;
  printf("sums in block 0: wrong %d\n", wrong);
  for (int i = 0; i < kBlocks * kThreads; ++i) in[i] = i;
  exchange<<<kBlocks, kThreads>>>(in, out);
  cudaDeviceSynchronize();
  wrong = 0;
  for (int i = 0; i < kBlocks * kThreads; ++i) wrong += out[(i + kThreads) % (kBlocks * kThreads)] != i;
  printf("exchanged: wrong %d\n", wrong);
  cudaFree(sums);
  cudaFree(numbers);
  cudaFree(bits);
  cudaFree(in);
  cudaFree(out);
}
