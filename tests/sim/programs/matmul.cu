// > worst 0, time measured
#include <cuda_runtime.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#define TILE 16
#define gpuErrchk(ans) { gpuAssert((ans), __FILE__, __LINE__); }
inline void gpuAssert(cudaError_t code, const char *file, int line, bool abort = true) {
  if (code != cudaSuccess) {
    fprintf(stderr, "GPUassert: %s %s %d\n", cudaGetErrorString(code), file, line);
    if (abort) exit(code);
  }
}
__global__ void matmul(float *A, float *B, float *C, int n) {
  __shared__ float As[TILE][TILE], Bs[TILE][TILE + 1];
  int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
  float sum = 0.0f;
  for (int t = 0; t < (n + TILE - 1) / TILE; ++t) {
    int x = t * TILE + threadIdx.x, y = t * TILE + threadIdx.y;
    As[threadIdx.y][threadIdx.x] = (row < n && x < n) ? A[row * n + x] : 0.0f;
    Bs[threadIdx.y][threadIdx.x] = (y < n && col < n) ? B[y * n + col] : 0.0f;
    __syncthreads();
    for (int k = 0; k < TILE; ++k) sum += As[threadIdx.y][k] * Bs[k][threadIdx.x];
    __syncthreads();
  }
  if (row < n && col < n) C[row * n + col] = sum;
}
int main() {
  const int n = 50;
  float A[n * n], B[n * n], C[n * n], *dA, *dB, *dC;
  for (int i = 0; i < n * n; i++) A[i] = rand() % 10, B[i] = rand() % 10;
  gpuErrchk(cudaMalloc((void **)&dA, sizeof(A)));
  gpuErrchk(cudaMalloc((void **)&dB, sizeof(B)));
  gpuErrchk(cudaMalloc((void **)&dC, sizeof(C)));
  gpuErrchk(cudaMemcpy(dA, A, sizeof(A), cudaMemcpyHostToDevice));
  gpuErrchk(cudaMemcpy(dB, B, sizeof(B), cudaMemcpyHostToDevice));
  cudaEvent_t start, stop;
  cudaEventCreate(&start);
  cudaEventCreate(&stop);
  dim3 block(TILE, TILE), grid((n + TILE - 1) / TILE, (n + TILE - 1) / TILE);
  cudaEventRecord(start);
  matmul<<<grid, block>>>(dA, dB, dC, n);
  cudaEventRecord(stop);
  gpuErrchk(cudaPeekAtLastError());
  gpuErrchk(cudaEventSynchronize(stop));
  float ms = 0;
  cudaEventElapsedTime(&ms, start, stop);
  gpuErrchk(cudaMemcpy(C, dC, sizeof(C), cudaMemcpyDeviceToHost));
  double worst = 0;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      double want = 0;
      for (int k = 0; k < n; k++) want += A[i * n + k] * B[k * n + j];
      worst = fmax(worst, fabs(want - C[i * n + j]));
    }
  printf("worst %g, time %s\n", worst, ms > 0 ? "measured" : "missing");
  cudaFree(dA); cudaFree(dB); cudaFree(dC);
  cudaEventDestroy(start); cudaEventDestroy(stop);
  return 0;
}
