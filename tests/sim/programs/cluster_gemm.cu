// > rows, multicast by instruction: wrong 0
// > tiles, multicast by cuda::ptx: wrong 0
// A matrix product in which the two blocks of a cluster need the same tile of B: each loads half of it and sends that
// half to both. A stage is filled again when the consumers of both blocks have released it, as CUTLASS's pipelines do:
// each consumer warp arrives at the empty barrier of every block that writes into its memory.
#include <cuda.h>

#include <cstdint>
#include <cstdio>
#include <cuda/ptx>

namespace ptx = cuda::ptx;

constexpr int kCluster = 2, kStages = 2, kRows = 32, kColumns = 32, kDepth = 16;
constexpr int kConsumers = 2, kThreads = 32 * (kConsumers + 1);
constexpr int kABytes = kRows * kDepth * 4, kBBytes = kDepth * kColumns * 4;

struct Storage {
  alignas(128) float a[kStages][kRows][kDepth];
  alignas(128) float b[kStages][kDepth][kColumns];
  alignas(8) std::uint64_t full[kStages], empty[kStages];
};

__device__ std::uint32_t smem(const void* pointer) { return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer)); }
__device__ std::uint32_t cluster_rank() {
  std::uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;\n" : "=r"(rank));
  return rank;
}
__device__ void cluster_arrive_relaxed() { asm volatile("barrier.cluster.arrive.relaxed.aligned;\n" ::); }
__device__ void cluster_arrive() { asm volatile("barrier.cluster.arrive.aligned;\n" ::: "memory"); }
__device__ void cluster_wait() { asm volatile("barrier.cluster.wait.aligned;\n" ::: "memory"); }
__device__ void fence_barrier_init() { asm volatile("fence.mbarrier_init.release.cluster;\n" ::); }
__device__ void init(std::uint64_t& barrier, std::uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%1], %0;\n" ::"r"(count), "r"(smem(&barrier)));
}
__device__ void wait(std::uint64_t& barrier, std::uint32_t phase) {
  asm volatile(
      "{\n"
      ".reg .pred       P1;\n"
      "LAB_WAIT:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n"
      "@P1 bra DONE;\n"
      "bra     LAB_WAIT;\n"
      "DONE:\n"
      "}\n" ::"r"(smem(&barrier)), "r"(phase));
}
__device__ void expect(std::uint64_t& barrier, std::uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%1], %0;\n" ::"r"(bytes), "r"(smem(&barrier)));
}
/// Arrives at the barrier of that block which lies where this one does.
__device__ void arrive(std::uint64_t& barrier, std::uint32_t block, std::uint32_t predicate = 1) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      ".reg .b32 remAddr32;\n"
      "setp.eq.u32 p, %2, 1;\n"
      "@p mapa.shared::cluster.u32  remAddr32, %0, %1;\n"
      "@p mbarrier.arrive.shared::cluster.b64  _, [remAddr32];\n"
      "}" ::"r"(smem(&barrier)), "r"(block), "r"(predicate));
}
__device__ void load(void* to, const void* from, std::uint32_t bytes, std::uint64_t& barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];\n" ::"r"(smem(to)),
               "l"(from), "r"(bytes), "r"(smem(&barrier)) : "memory");
}
__device__ void multicast(void* to, const void* from, std::uint32_t bytes, std::uint64_t& barrier, std::uint16_t mask) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;\n" ::"r"(
          smem(to)), "l"(from), "r"(bytes), "r"(smem(&barrier)), "h"(mask) : "memory");
}

/// c = a b: A of m x k, B of k x n, each cluster has 2 kRows rows of C.
template <bool Tiles>
__global__ void __launch_bounds__(kThreads, 1)
    product(const float* a, const float* b, float* c, int n, int k, const __grid_constant__ CUtensorMap map_b) {
  extern __shared__ __align__(128) unsigned char memory[];
  Storage& s = *reinterpret_cast<Storage*>(memory);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, steps = k / kDepth;
  const std::uint32_t rank = cluster_rank();
  const std::uint16_t everyone = (1 << kCluster) - 1;
  const int row = blockIdx.x * kRows, column = blockIdx.y * kColumns;

  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) {
      init(s.full[i], 1);
      init(s.empty[i], kConsumers * kCluster);
    }
    fence_barrier_init();
  }
  cluster_arrive_relaxed();
  cluster_wait();

  if (warp == kConsumers) {  // Producer
    if (lane == 0) {
      for (int step = 0; step < steps; ++step) {
        const int stage = step % kStages;
        wait(s.empty[stage], (step / kStages + 1) & 1);
        expect(s.full[stage], kABytes + kBBytes);
        for (int i = 0; i < kRows; ++i)
          load(s.a[stage][i], a + (row + i) * k + step * kDepth, kDepth * 4, s.full[stage]);
        const int half = kDepth / kCluster, first = rank * half;
        if (Tiles) {
          const int at[] = {column, step * kDepth + first};
          ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, s.b[stage][first], &map_b, at, &s.full[stage],
                                    everyone);
        } else {
          for (int i = first; i < first + half; ++i)
            multicast(s.b[stage][i], b + (step * kDepth + i) * n + column, kColumns * 4, s.full[stage], everyone);
        }
      }
      // The last stages: a peer may still arrive here, and this block must not end before.
      for (int step = steps; step < steps + kStages; ++step) wait(s.empty[step % kStages], (step / kStages + 1) & 1);
    }
  } else {  // Consumers
    float sums[kRows / kConsumers] = {};
    for (int step = 0; step < steps; ++step) {
      const int stage = step % kStages;
      wait(s.full[stage], step / kStages & 1);
      for (int d = 0; d < kDepth; ++d)
        for (int i = 0; i < kRows / kConsumers; ++i)
          sums[i] += s.a[stage][warp * (kRows / kConsumers) + i][d] * s.b[stage][d][lane];
      __syncwarp();
      arrive(s.empty[stage], lane, lane < kCluster);
    }
    for (int i = 0; i < kRows / kConsumers; ++i)
      c[(row + warp * (kRows / kConsumers) + i) * n + column + lane] = sums[i];
  }
}

CUtensorMap map_of(float* b, int n, int k) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
  cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found);
  CUtensorMap map{};
  const cuuint64_t size[] = {cuuint64_t(n), cuuint64_t(k)}, stride[] = {n * sizeof(float)};
  const cuuint32_t box[] = {kColumns, kDepth / kCluster}, step[] = {1, 1};
  reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function)(
      &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, b, size, stride, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
      CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return map;
}

template <bool Tiles>
int wrong_elements(float* a, float* b, float* c, int m, int n, int k) {
  for (int i = 0; i < m * n; ++i) c[i] = -1;
  const CUtensorMap map = map_of(b, n, k);
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(m / kRows, n / kColumns);
  config.blockDim = dim3(kThreads);
  config.dynamicSmemBytes = sizeof(Storage);
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = kCluster;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  config.attrs = &attribute;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, product<Tiles>, (const float*)a, (const float*)b, c, n, k, map);
  if (cudaDeviceSynchronize() != cudaSuccess) return -1;
  int wrong = 0;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int d = 0; d < k; ++d) sum += a[i * k + d] * b[d * n + j];
      wrong += c[i * n + j] != sum;
    }
  return wrong;
}

int main() {
  const int m = 2 * kCluster * kRows, n = 2 * kColumns, k = 5 * kDepth;
  float *a, *b, *c;
  cudaMallocManaged(&a, m * k * sizeof(float));
  cudaMallocManaged(&b, k * n * sizeof(float));
  cudaMallocManaged(&c, m * n * sizeof(float));
  for (int i = 0; i < m * k; ++i) a[i] = float(i * 7 % 5 - 2);
  for (int i = 0; i < k * n; ++i) b[i] = float(i * 11 % 7 - 3);
  printf("rows, multicast by instruction: wrong %d\n", wrong_elements<false>(a, b, c, m, n, k));
  printf("tiles, multicast by cuda::ptx: wrong %d\n", wrong_elements<true>(a, b, c, m, n, k));
  cudaFree(a);
  cudaFree(b);
  cudaFree(c);
}
