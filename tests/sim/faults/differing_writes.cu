#include <stdio.h>
/// All threads that write 1 agree; those that write their number do not.
__global__ void mark(const int *in, int *any, int *which) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (in[i] > 5) {
    *any = 1;
    *which = i;  // FAULT race
  }
}
int main() {
  int h[256], *in, *out;
  for (int i = 0; i < 256; ++i) h[i] = i % 8;
  cudaMalloc(&in, sizeof h);
  cudaMalloc(&out, 2 * sizeof(int));
  cudaMemcpy(in, h, sizeof h, cudaMemcpyHostToDevice);
  mark<<<2, 128>>>(in, out, out + 1);
  cudaMemcpy(h, out, 2 * sizeof(int), cudaMemcpyDeviceToHost);
  printf("%d\n", h[0]);
  cudaFree(in);
  cudaFree(out);
}
