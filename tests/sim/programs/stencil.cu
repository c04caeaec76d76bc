// > edge 10, middle 16
#include <stdio.h>
#define RADIUS 3
#define BLOCK_SIZE 64
#define N 500
__constant__ float weights[2 * RADIUS + 1];
__global__ void stencil_1d(const float *in, float *out) {
  __shared__ float temp[BLOCK_SIZE + 2 * RADIUS];
  int g = threadIdx.x + blockIdx.x * blockDim.x, l = threadIdx.x + RADIUS;
  temp[l] = g < N ? in[g] : 0;
  if (threadIdx.x < RADIUS) {
    temp[l - RADIUS] = g >= RADIUS ? in[g - RADIUS] : 0;
    temp[l + BLOCK_SIZE] = g + BLOCK_SIZE < N ? in[g + BLOCK_SIZE] : 0;
  }
  __syncthreads();
  float result = 0;
  for (int o = -RADIUS; o <= RADIUS; o++) result += weights[o + RADIUS] * temp[l + o];
  if (g < N) out[g] = result;
}
int main(void) {
  float w[2 * RADIUS + 1] = {1, 2, 3, 4, 3, 2, 1}, *in, *out;
  cudaMallocManaged(&in, N * sizeof(float));
  cudaMallocManaged(&out, N * sizeof(float));
  for (int i = 0; i < N; i++) in[i] = 1;
  cudaMemcpyToSymbol(weights, w, sizeof(w));
  stencil_1d<<<(N + BLOCK_SIZE - 1) / BLOCK_SIZE, BLOCK_SIZE>>>(in, out);
  cudaDeviceSynchronize();
  printf("edge %g, middle %g\n", out[0], out[N / 2]);
  cudaFree(in);
  cudaFree(out);
}
