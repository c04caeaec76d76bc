// A shuffle inside of a branch, with a mask that names lanes that did not take it.
#include <cstdio>

constexpr int kCount = 20;

__global__ void reduce(const int* in, int* out) {
  const int t = threadIdx.x;
#ifdef MENDED
  int sum = t < kCount ? in[t] : 0;
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
#else
  int sum = 0;
  if (t < kCount) {
    sum = in[t];
    for (int offset = 16; offset > 0; offset /= 2) {
      sum += __shfl_down_sync(0xffffffff, sum, offset);  // FAULT divergent collective
    }
  }
  __syncwarp();
#endif
  if (t == 0) out[0] = sum;
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, kCount * sizeof(int));
  cudaMallocManaged(&out, sizeof(int));
  for (int i = 0; i < kCount; ++i) in[i] = 1;
  reduce<<<1, 32>>>(in, out);
  cudaDeviceSynchronize();
  printf("sum %d\n", out[0]);
  cudaFree(in);
  cudaFree(out);
}
