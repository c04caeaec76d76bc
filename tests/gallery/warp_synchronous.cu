// The last steps of a reduction without __syncwarp(): volatile alone orders nothing since Volta.
#include <cstdio>

__global__ void reduce(const int* in, int* out) {
  __shared__ int partial[64];
  const unsigned t = threadIdx.x;
  partial[t] = in[t];
  __syncthreads();
  if (t < 32) {
#ifdef MENDED
    int sum = partial[t] + partial[t + 32];
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
    if (t == 0) out[0] = sum;
#else
    volatile int* shared = partial;
    shared[t] += shared[t + 32];  // FAULT race
    for (int offset = 16; offset > 0; offset /= 2) {
      shared[t] += shared[t + offset];  // FAULT race
    }
    if (t == 0) out[0] = shared[0];
#endif
  }
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, 64 * sizeof(int));
  cudaMallocManaged(&out, sizeof(int));
  for (int i = 0; i < 64; ++i) in[i] = i;
  reduce<<<1, 64>>>(in, out);
  cudaDeviceSynchronize();
  printf("sum %d\n", out[0]);
  cudaFree(in);
  cudaFree(out);
}
