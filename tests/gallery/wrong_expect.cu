// The barrier is told of more bytes than the copy brings: its phase never ends, and the kernel hangs.
#include <cstdint>
#include <cstdio>
#include <cuda/ptx>

namespace ptx = cuda::ptx;

constexpr int kThreads = 128, kTiles = 4;

__global__ void doubled(const int* in, int* out) {
  __shared__ alignas(128) int tile[kThreads];
  __shared__ alignas(8) uint64_t full;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&full, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();
  for (int i = 0; i < kTiles; ++i) {
    if (threadIdx.x == 0) {
#ifdef MENDED
      const uint32_t bytes = sizeof tile;
#else
      const uint32_t bytes = 2 * sizeof tile;
#endif
      ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full, bytes);
      ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, tile, in + i * kThreads, sizeof tile, &full);
    }
    while (!ptx::mbarrier_try_wait_parity(&full, i % 2)) {  // FAULT stuck barrier
    }
    out[i * kThreads + threadIdx.x] = 2 * tile[threadIdx.x];
    ptx::fence_proxy_async(ptx::space_shared);  // its reads, before the copy that overwrites what they read
    __syncthreads();
  }
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, kTiles * kThreads * sizeof(int));
  cudaMallocManaged(&out, kTiles * kThreads * sizeof(int));
  for (int i = 0; i < kTiles * kThreads; ++i) in[i] = i, out[i] = -1;
  doubled<<<1, kThreads>>>(in, out);
  cudaDeviceSynchronize();
  printf("last %d\n", out[kTiles * kThreads - 1]);
  cudaFree(in);
  cudaFree(out);
}
