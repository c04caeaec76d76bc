// cp.async in two buffers. The wait lets one group too many be under way, so the last tile is read before it is there.
#include <cstdint>
#include <cstdio>

constexpr int kTiles = 4;

__device__ __forceinline__ void copy(int* shared, const int* global) {
  asm volatile(
      "cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(static_cast<uint32_t>(__cvta_generic_to_shared(shared))),
      "l"(global)
      : "memory");
}

__global__ void sum_of_tiles(const int* in, int* out) {
  __shared__ int buffers[2][32];
  const int t = threadIdx.x;
  int sum = 0;
  copy(&buffers[0][t], in + t);
  asm volatile("cp.async.commit_group;" ::: "memory");
  for (int i = 0; i < kTiles; ++i) {
    if (i + 1 < kTiles) {
      copy(&buffers[(i + 1) % 2][t], in + (i + 1) * 32 + t);
      asm volatile("cp.async.commit_group;" ::: "memory");
    }
#ifdef MENDED
    if (i + 1 == kTiles) asm volatile("cp.async.wait_group 0;" ::: "memory");
#endif
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncwarp();
    sum += buffers[i % 2][t ^ 1];  // FAULT missing wait
    __syncwarp();
  }
  out[t] = sum;
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, kTiles * 32 * sizeof(int));
  cudaMallocManaged(&out, 32 * sizeof(int));
  for (int i = 0; i < kTiles * 32; ++i) in[i] = i;
  sum_of_tiles<<<1, 32>>>(in, out);
  cudaDeviceSynchronize();
  printf("sum %d\n", out[1]);
  cudaFree(in);
  cudaFree(out);
}
