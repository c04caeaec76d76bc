// > copied by cp.async: 128 of 128 right, twice
// > dropped: phases 3, sum 23
// > together 16 16
// > alone in a cluster: 64 of 64
// mbarriers in rarer ways: told by cp.async, with arrivals that drop out; activemask; and the functions of clusters in
// a launch without them, where each block is one.
#include <cooperative_groups.h>

#include <cstdint>
#include <cstdio>
#include <cuda/ptx>

namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;

__device__ std::uint32_t smem(const void* pointer) { return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer)); }

__global__ void copied(const int* in, int* right) {
  __shared__ int tile[2][128];
  __shared__ alignas(8) std::uint64_t counted, added;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&counted, blockDim.x);
    ptx::mbarrier_init(&added, blockDim.x);
  }
  __syncthreads();
  for (int i = 0; i < 2; ++i)
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(smem(&tile[i][threadIdx.x])), "l"(in + threadIdx.x));
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(smem(&counted)) : "memory");
  ptx::cp_async_mbarrier_arrive(&added);
  ptx::mbarrier_arrive(&added);
  while (!ptx::mbarrier_try_wait_parity(&counted, 0)) {
  }
  while (!ptx::mbarrier_try_wait_parity(&added, 0)) {
  }
  const int at = 127 - threadIdx.x;
  if (tile[0][at] == in[at] && tile[1][at] == in[at]) atomicAdd(right, 1);
}

/// One warp after another leaves: 4 of them come to the first phase, 3 to the next, then 2.
__global__ void dropped(int* out) {
  __shared__ alignas(8) std::uint64_t barrier;
  __shared__ int sum[3];
  const int warp = threadIdx.x / 32;
  if (threadIdx.x < 3) sum[threadIdx.x] = 0;
  if (threadIdx.x == 0) ptx::mbarrier_init(&barrier, 4);
  __syncthreads();
  if (threadIdx.x % 32 != 0) return;
  int phase = 0;
  for (; phase < 3; ++phase) {
    atomicAdd(&sum[phase], warp + 1);
    if (phase == warp - 1) {
      asm volatile("mbarrier.arrive_drop.shared.b64 _, [%0];" ::"r"(smem(&barrier)) : "memory");
      return;
    }
    ptx::mbarrier_arrive(&barrier);
    while (!ptx::mbarrier_try_wait_parity(&barrier, phase % 2)) {
    }
  }
  out[0] = phase;
  out[1] = sum[0] + sum[1] + sum[2];
}

__global__ void together(int* out) {
  unsigned mask;
  if (threadIdx.x % 2 == 0) {
    asm volatile("activemask.b32 %0;" : "=r"(mask));
    if (threadIdx.x == 0) out[0] = __popc(mask);
  } else {
    asm volatile("activemask.b32 %0;" : "=r"(mask));
    if (threadIdx.x == 1) out[1] = __popc(mask);
  }
}

__global__ void alone(int* right) {
  __shared__ int mine;
  cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0) mine = blockIdx.x + 5;
  cluster.sync();
  const bool here = cluster.num_blocks() == 1 && cluster.block_rank() == 0 && cluster.dim_blocks().x == 1;
  if (here && *cluster.map_shared_rank(&mine, 0) == static_cast<int>(blockIdx.x) + 5) atomicAdd(right, 1);
  cluster.barrier_arrive();
  cluster.barrier_wait();
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, 128 * sizeof(int));
  cudaMallocManaged(&out, 2 * sizeof(int));
  for (int i = 0; i < 128; ++i) in[i] = 3 * i;
  out[0] = 0;
  copied<<<1, 128>>>(in, out);
  cudaDeviceSynchronize();
  printf("copied by cp.async: %d of 128 right, twice\n", out[0]);
  dropped<<<1, 128>>>(out);
  cudaDeviceSynchronize();
  printf("dropped: phases %d, sum %d\n", out[0], out[1]);
  together<<<1, 32>>>(out);
  cudaDeviceSynchronize();
  printf("together %d %d\n", out[0], out[1]);
  out[0] = 0;
  alone<<<2, 32>>>(out);
  cudaDeviceSynchronize();
  printf("alone in a cluster: %d of 64\n", out[0]);
  cudaFree(in);
  cudaFree(out);
}
