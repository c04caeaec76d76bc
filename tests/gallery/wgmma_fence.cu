// The accumulators are set by ordinary instructions after wgmma.fence: the wgmma may start from what they were before.
#include <cstdint>
#include <cstdio>
#include <cuda/ptx>

namespace ptx = cuda::ptx;

constexpr int kThreads = 128;

// 64 x 16 halves of A and 16 x 8 of B, in pieces of 8 rows of 16 bytes that follow each other.
constexpr int kOfA = 64 * 16, kOfB = 16 * 8;

__device__ __forceinline__ uint64_t descriptor(const void* shared, uint64_t across, uint64_t down) {
  const uint64_t address = __cvta_generic_to_shared(shared);
  return (address & 0x3ffff) >> 4 | across >> 4 << 16 | down >> 4 << 32;
}

__global__ void product(const int*, int* out) {
  __shared__ alignas(128) uint16_t a[kOfA], b[kOfB];
  const int t = threadIdx.x;
  for (int i = t; i < kOfA; i += kThreads) a[i] = 0x3c00;  // 1
  for (int i = t; i < kOfB; i += kThreads) b[i] = 0x4000;  // 2
  float d[4] = {};
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  const uint64_t of_a = descriptor(a, 128, 256), of_b = descriptor(b, 128, 256);
#ifndef MENDED
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
  for (int i = 0; i < 4; ++i) d[i] = t;
#ifdef MENDED
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
  asm volatile(  // FAULT missing wgmma fence
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %6, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, p, 1, 1, 0, 0;\n"
      "}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "l"(of_a), "l"(of_b), "r"(1));
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");

  out[t] = static_cast<int>(d[0]);
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, kThreads * sizeof(int));
  cudaMallocManaged(&out, kThreads * sizeof(int));
  for (int i = 0; i < kThreads; ++i) in[i] = i, out[i] = -1;
  product<<<1, kThreads>>>(in, out);
  cudaDeviceSynchronize();
  printf("last %d\n", out[kThreads - 1]);
  cudaFree(in);
  cudaFree(out);
}
