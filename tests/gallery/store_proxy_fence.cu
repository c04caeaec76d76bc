// A bulk store reads shared memory through the async proxy. The barrier orders the threads that wrote it, but their
// writes went through the generic proxy: each of them needs a fence first.
#include <cstdint>
#include <cstdio>
#include <cuda/ptx>

namespace ptx = cuda::ptx;

constexpr int kThreads = 128;

__global__ void doubled(const int* in, int* out) {
  __shared__ alignas(128) int tile[kThreads];
  tile[threadIdx.x] = 2 * in[threadIdx.x];
#ifdef MENDED
  ptx::fence_proxy_async(ptx::space_shared);
#endif
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out, tile, sizeof tile);  // FAULT missing proxy fence
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
  }
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, kThreads * sizeof(int));
  cudaMallocManaged(&out, kThreads * sizeof(int));
  for (int i = 0; i < kThreads; ++i) in[i] = i, out[i] = -1;
  doubled<<<1, kThreads>>>(in, out);
  cudaDeviceSynchronize();
  printf("last %d\n", out[kThreads - 1]);
  cudaFree(in);
  cudaFree(out);
}
