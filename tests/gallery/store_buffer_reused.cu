// The buffer of a bulk store is filled again after commit_group. Only wait_group.read says that it has been read.
#include <cstdint>
#include <cstdio>
#include <cuda/ptx>

namespace ptx = cuda::ptx;

constexpr int kThreads = 128, kTiles = 4;

__global__ void doubled(const int* in, int* out) {
  __shared__ alignas(128) int tile[kThreads];
  for (int i = 0; i < kTiles; ++i) {
    tile[threadIdx.x] = 2 * in[i * kThreads + threadIdx.x];  // FAULT missing wait
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
      ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out + i * kThreads, tile, sizeof tile);
      ptx::cp_async_bulk_commit_group();
#ifdef MENDED
      ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
#endif
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
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
