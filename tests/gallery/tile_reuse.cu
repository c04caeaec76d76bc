// A tile of shared memory is filled again while slower warps still read it: the barrier at the loop's end is missing.
#include <cstdio>

constexpr int kThreads = 128, kTiles = 4;

__global__ void sum_of_tiles(const int* in, int* out) {
  __shared__ int tile[kThreads];
  const int t = threadIdx.x;
  int sum = 0;
  for (int i = 0; i < kTiles; ++i) {
    tile[t] = in[i * kThreads + t];  // FAULT race
    __syncthreads();
    for (int j = 0; j < kThreads; j += 8) sum += tile[(t + j) % kThreads];
#ifdef MENDED
    __syncthreads();
#endif
  }
  out[t] = sum;
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, kTiles * kThreads * sizeof(int));
  cudaMallocManaged(&out, kThreads * sizeof(int));
  for (int i = 0; i < kTiles * kThreads; ++i) in[i] = 1;
  sum_of_tiles<<<1, kThreads>>>(in, out);
  cudaDeviceSynchronize();
  printf("sum %d\n", out[5]);
  cudaFree(in);
  cudaFree(out);
}
