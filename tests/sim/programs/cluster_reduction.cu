// > softmax: largest error below 1e-6: yes
// > places right: 24 of 24
// > copied 496 496
// Rows that are longer than a block would like: the blocks of a cluster share each row, and exchange their largest
// element and their sum through distributed shared memory. Then where each block of a cluster of 3 dimensions is.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cuda/barrier>
#include <cuda/ptx>
#include <utility>

namespace cg = cooperative_groups;

constexpr int kCluster = 4, kThreads = 128, kRows = 3, kLength = 4 * 128 * 3;

template <class Combine>
__device__ float block_reduce(float value, float* scratch, Combine combine) {
  auto block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  for (int offset = 16; offset > 0; offset /= 2) value = combine(value, warp.shfl_xor(value, offset));
  if (warp.thread_rank() == 0) scratch[block.thread_rank() / 32] = value;
  block.sync();
  float result = scratch[0];
  for (int i = 1; i < kThreads / 32; ++i) result = combine(result, scratch[i]);
  block.sync();
  return result;
}

__global__ void __cluster_dims__(kCluster, 1, 1) softmax(const float* in, float* out) {
  __shared__ float scratch[kThreads / 32], largest, total;
  cg::cluster_group cluster = cg::this_cluster();
  const int row = blockIdx.y, each = kLength / kCluster;
  const float* mine = in + row * kLength + cluster.block_rank() * each;
  float* to = out + row * kLength + cluster.block_rank() * each;

  float most = -INFINITY;
  for (int i = threadIdx.x; i < each; i += kThreads) most = fmaxf(most, mine[i]);
  most = block_reduce(most, scratch, [](float a, float b) { return fmaxf(a, b); });
  if (threadIdx.x == 0) largest = most;
  cluster.sync();
  for (unsigned rank = 0; rank < cluster.num_blocks(); ++rank) most = fmaxf(most, *cluster.map_shared_rank(&largest, rank));

  float sum = 0;
  for (int i = threadIdx.x; i < each; i += kThreads) sum += expf(mine[i] - most);
  sum = block_reduce(sum, scratch, [](float a, float b) { return a + b; });
  if (threadIdx.x == 0) total = sum;
  auto token = cluster.barrier_arrive();
  float kept[kLength / kCluster / kThreads];  // while the others come
  for (int i = threadIdx.x, n = 0; i < each; i += kThreads) kept[n++] = expf(mine[i] - most);
  cluster.barrier_wait(std::move(token));
  sum = 0;
  for (unsigned rank = 0; rank < cluster.num_blocks(); ++rank) sum += *cluster.map_shared_rank(&total, rank);
  for (int i = threadIdx.x, n = 0; i < each; i += kThreads) to[i] = kept[n++] / sum;
  cluster.sync();  // nobody reads a block that has ended
}

__device__ unsigned special(int which) {
  unsigned value = 0;
  switch (which) {
    case 0: asm("mov.u32 %0, %%cluster_ctaid.x;" : "=r"(value)); break;
    case 1: asm("mov.u32 %0, %%cluster_ctaid.y;" : "=r"(value)); break;
    case 2: asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(value)); break;
    case 3: asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(value)); break;
    case 4: asm("mov.u32 %0, %%clusterid.x;" : "=r"(value)); break;
    case 5: asm("mov.u32 %0, %%nclusterid.y;" : "=r"(value)); break;
    case 6: asm("mov.u32 %0, %%cluster_nctaid.y;" : "=r"(value)); break;
  }
  return value;
}

__global__ void __cluster_dims__(2, 3, 1) places(int* right) {
  __shared__ unsigned mine;
  cg::cluster_group cluster = cg::this_cluster();
  const dim3 in = cluster.block_index(), size = cluster.dim_blocks();
  const unsigned rank = cluster.block_rank();
  bool good = size.x == 2 && size.y == 3 && size.z == 1 && cluster.num_threads() == 6 * blockDim.x;
  good &= in.x == blockIdx.x % 2 && in.y == blockIdx.y % 3 && rank == in.x + 2 * in.y;
  good &= special(0) == in.x && special(1) == in.y && special(2) == rank && special(3) == 6;
  good &= special(4) == blockIdx.x / 2 && special(5) == gridDim.y / 3 && special(6) == 3;
  good &= __clusterRelativeBlockRank() == rank && __clusterSizeInBlocks() == 6 && __clusterIdx().y == blockIdx.y / 3;
  good &= cg::this_grid().num_clusters() == 4;
  if (threadIdx.x == 0) mine = rank + 100 * blockIdx.z;
  __cluster_barrier_arrive();
  __cluster_barrier_wait();
  const unsigned next = (rank + 1) % 6;
  unsigned* const peer = cluster.map_shared_rank(&mine, next);
  good &= *peer == next + 100 * blockIdx.z && cluster.query_shared_rank(peer) == next;
  std::uint32_t here = static_cast<std::uint32_t>(__cvta_generic_to_shared(&mine)), there, value, whose, inside, own;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(here), "r"(next));
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(there) : "memory");
  asm volatile("getctarank.shared::cluster.u32 %0, %1;" : "=r"(whose) : "r"(there));
  asm volatile("{ .reg .pred p, q; isspacep.shared::cluster p, %2; isspacep.shared::cta q, %2;"
               "  selp.u32 %0, 1, 0, p; selp.u32 %1, 1, 0, q; }" : "=r"(inside), "=r"(own) : "l"(peer));
  good &= value == next + 100 * blockIdx.z && whose == next && inside == 1 && own == 0;
  cluster.sync();  // all have read: now each adds 1000 to its neighbour's
  if (threadIdx.x == 0) {
    asm volatile("atom.add.release.cluster.shared::cluster.u32 %0, [%1], 1000;" : "=r"(value) : "r"(there) : "memory");
    good &= value == next + 100 * blockIdx.z;
  }
  cluster.sync();
  good &= mine == rank + 100 * blockIdx.z + 1000;
  cluster.sync();
  if (threadIdx.x == 0) asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(there), "r"(7) : "memory");
  cluster.sync();
  good &= mine == 7;
  if (threadIdx.x == 0 && good) atomicAdd(right, 1);
}

/// Copies that end at a barrier of the block, whose phase the other block may complete.
__global__ void __cluster_dims__(2, 1, 1) copy_and_tell(const int* in, int* out) {
  __shared__ int mine[32];
  __shared__ cuda::barrier<cuda::thread_scope_block> full;
  cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0) init(&full, 33);
  cluster.sync();
  cuda::memcpy_async(cg::this_thread_block(), mine, in, sizeof mine, full);
  auto token = full.arrive();
  if (threadIdx.x == 0)
    cuda::ptx::mbarrier_arrive(cuda::ptx::sem_release, cuda::ptx::scope_cluster, cuda::ptx::space_cluster,
                               cluster.map_shared_rank(cuda::device::barrier_native_handle(full), cluster.block_rank() ^ 1));
  full.wait(std::move(token));
  atomicAdd(&out[cluster.block_rank()], mine[31 - threadIdx.x]);
  cluster.sync();
}

int main() {
  float *in, *out;
  int* right;
  cudaMallocManaged(&in, kRows * kLength * sizeof(float));
  cudaMallocManaged(&out, kRows * kLength * sizeof(float));
  cudaMallocManaged(&right, sizeof(int));
  for (int i = 0; i < kRows * kLength; ++i) in[i] = float(i * 37 % 101) / 10;
  softmax<<<dim3(kCluster, kRows), kThreads>>>(in, out);
  cudaDeviceSynchronize();
  double error = 0;
  for (int row = 0; row < kRows; ++row) {
    double sum = 0;
    for (int i = 0; i < kLength; ++i) sum += std::exp(double(in[row * kLength + i]));
    for (int i = 0; i < kLength; ++i)
      error = std::fmax(error, std::fabs(out[row * kLength + i] - std::exp(double(in[row * kLength + i])) / sum));
  }
  printf("softmax: largest error below 1e-6: %s\n", error < 1e-6 ? "yes" : "no");
  *right = 0;
  places<<<dim3(4, 3, 2), 32>>>(right);
  cudaDeviceSynchronize();
  printf("places right: %d of 24\n", *right);
  int* numbers;
  cudaMallocManaged(&numbers, 34 * sizeof(int));
  for (int i = 0; i < 34; ++i) numbers[i] = i % 32 * (i < 32);
  copy_and_tell<<<2, 32>>>(numbers, numbers + 32);
  cudaDeviceSynchronize();
  printf("copied %d %d\n", numbers[32], numbers[33]);
  cudaFree(numbers);
  cudaFree(in);
  cudaFree(out);
  cudaFree(right);
}
