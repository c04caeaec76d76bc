// A barrier that the threads past the end of the array never reach.
#include <cstdio>

constexpr int kCount = 100;

__global__ void shift(const int* in, int* out) {
  __shared__ int tile[128];
  const int t = threadIdx.x;
#ifdef MENDED
  if (t < kCount) tile[t] = in[t];
  __syncthreads();
  if (t < kCount) out[t] = tile[(t + 1) % kCount];
#else
  if (t < kCount) {
    tile[t] = in[t];
    __syncthreads();  // FAULT missing barrier
    out[t] = tile[(t + 1) % kCount];
  }
#endif
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, kCount * sizeof(int));
  cudaMallocManaged(&out, kCount * sizeof(int));
  for (int i = 0; i < kCount; ++i) in[i] = i;
  shift<<<1, 128>>>(in, out);
  cudaDeviceSynchronize();
  printf("last %d\n", out[kCount - 1]);
  cudaFree(in);
  cudaFree(out);
}
