// The steps of a SGEMM ladder: naive, coalesced, shared memory, and register tiles with vector loads.
// > kernel 0: ok
// > kernel 1: ok
// > kernel 2: ok
// > kernel 3: ok
#include <cassert>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CEIL_DIV(M, N) (((M) + (N)-1) / (N))
#define cudaCheck(err) (cudaCheck_(err, __FILE__, __LINE__))

static void cudaCheck_(cudaError_t error, const char *file, int line) {
  if (error != cudaSuccess) {
    printf("[CUDA ERROR] at file %s:%d:\n%s\n", file, line, cudaGetErrorString(error));
    exit(EXIT_FAILURE);
  }
}

__global__ void sgemm_naive(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C) {
  const uint x = blockIdx.x * blockDim.x + threadIdx.x;
  const uint y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < M && y < N) {
    float tmp = 0.0;
    for (int i = 0; i < K; ++i) tmp += A[x * K + i] * B[i * N + y];
    C[x * N + y] = alpha * tmp + beta * C[x * N + y];
  }
}

template <const uint BLOCKSIZE>
__global__ void sgemm_coalesced(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C) {
  const int row = blockIdx.x * BLOCKSIZE + (threadIdx.x / BLOCKSIZE);
  const int col = blockIdx.y * BLOCKSIZE + (threadIdx.x % BLOCKSIZE);
  if (row >= M || col >= N) return;
  float tmp = 0.0f;
  for (int i = 0; i < K; ++i) tmp += A[row * K + i] * B[i * N + col];
  C[row * N + col] = alpha * tmp + beta * C[row * N + col];
}

template <const int BLOCKSIZE>
__global__ void sgemm_shared(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C) {
  const uint cRow = blockIdx.x, cCol = blockIdx.y;
  __shared__ float As[BLOCKSIZE * BLOCKSIZE];
  __shared__ float Bs[BLOCKSIZE * BLOCKSIZE];
  const uint threadCol = threadIdx.x % BLOCKSIZE, threadRow = threadIdx.x / BLOCKSIZE;
  A += cRow * BLOCKSIZE * K;
  B += cCol * BLOCKSIZE;
  C += cRow * BLOCKSIZE * N + cCol * BLOCKSIZE;
  float tmp = 0.0;
  for (int bkIdx = 0; bkIdx < K; bkIdx += BLOCKSIZE) {
    As[threadRow * BLOCKSIZE + threadCol] = A[threadRow * K + threadCol];
    Bs[threadRow * BLOCKSIZE + threadCol] = B[threadRow * N + threadCol];
    __syncthreads();
    A += BLOCKSIZE;
    B += BLOCKSIZE * N;
    for (int dotIdx = 0; dotIdx < BLOCKSIZE; ++dotIdx)
      tmp += As[threadRow * BLOCKSIZE + dotIdx] * Bs[dotIdx * BLOCKSIZE + threadCol];
    __syncthreads();
  }
  C[threadRow * N + threadCol] = alpha * tmp + beta * C[threadRow * N + threadCol];
}

template <const int BM, const int BN, const int BK, const int TM, const int TN>
__global__ void __launch_bounds__((BM * BN) / (TM * TN), 1)
    sgemm_vectorized(int M, int N, int K, float alpha, float *A, float *B, float beta, float *C) {
  const uint cRow = blockIdx.y, cCol = blockIdx.x;
  const int threadCol = threadIdx.x % (BN / TN), threadRow = threadIdx.x / (BN / TN);
  __shared__ float As[BM * BK];
  __shared__ float Bs[BK * BN];
  A += cRow * BM * K;
  B += cCol * BN;
  C += cRow * BM * N + cCol * BN;
  const uint innerRowA = threadIdx.x / (BK / 4), innerColA = threadIdx.x % (BK / 4);
  const uint innerRowB = threadIdx.x / (BN / 4), innerColB = threadIdx.x % (BN / 4);
  float threadResults[TM * TN] = {0.0};
  float regM[TM] = {0.0}, regN[TN] = {0.0};
  for (uint bkIdx = 0; bkIdx < K; bkIdx += BK) {
    float4 tmp = reinterpret_cast<float4 *>(&A[innerRowA * K + innerColA * 4])[0];
    As[(innerColA * 4 + 0) * BM + innerRowA] = tmp.x;
    As[(innerColA * 4 + 1) * BM + innerRowA] = tmp.y;
    As[(innerColA * 4 + 2) * BM + innerRowA] = tmp.z;
    As[(innerColA * 4 + 3) * BM + innerRowA] = tmp.w;
    reinterpret_cast<float4 *>(&Bs[innerRowB * BN + innerColB * 4])[0] =
        reinterpret_cast<float4 *>(&B[innerRowB * N + innerColB * 4])[0];
    __syncthreads();
    A += BK;
    B += BK * N;
#pragma unroll
    for (uint dotIdx = 0; dotIdx < BK; ++dotIdx) {
      for (uint i = 0; i < TM; ++i) regM[i] = As[dotIdx * BM + threadRow * TM + i];
      for (uint i = 0; i < TN; ++i) regN[i] = Bs[dotIdx * BN + threadCol * TN + i];
      for (uint m = 0; m < TM; ++m)
        for (uint n = 0; n < TN; ++n) threadResults[m * TN + n] += regM[m] * regN[n];
    }
    __syncthreads();
  }
  for (uint m = 0; m < TM; m += 1) {
    for (uint n = 0; n < TN; n += 4) {
      float4 tmp = reinterpret_cast<float4 *>(&C[(threadRow * TM + m) * N + threadCol * TN + n])[0];
      tmp.x = alpha * threadResults[m * TN + n] + beta * tmp.x;
      tmp.y = alpha * threadResults[m * TN + n + 1] + beta * tmp.y;
      tmp.z = alpha * threadResults[m * TN + n + 2] + beta * tmp.z;
      tmp.w = alpha * threadResults[m * TN + n + 3] + beta * tmp.w;
      reinterpret_cast<float4 *>(&C[(threadRow * TM + m) * N + threadCol * TN + n])[0] = tmp;
    }
  }
}

void run_kernel(int kernel_num, int M, int N, int K, float alpha, float *A, float *B, float beta, float *C) {
  switch (kernel_num) {
  case 0: {
    dim3 gridDim(CEIL_DIV(M, 16), CEIL_DIV(N, 16));
    dim3 blockDim(16, 16);
    sgemm_naive<<<gridDim, blockDim>>>(M, N, K, alpha, A, B, beta, C);
    break;
  }
  case 1:
    sgemm_coalesced<16><<<dim3(CEIL_DIV(M, 16), CEIL_DIV(N, 16)), dim3(16 * 16)>>>(M, N, K, alpha, A, B, beta, C);
    break;
  case 2:
    cudaFuncSetAttribute(sgemm_shared<16>, cudaFuncAttributePreferredSharedMemoryCarveout,
                         cudaSharedmemCarveoutMaxShared);
    sgemm_shared<16><<<dim3(CEIL_DIV(M, 16), CEIL_DIV(N, 16)), 256>>>(M, N, K, alpha, A, B, beta, C);
    break;
  case 3: {
    const uint BK = 8, TM = 4, TN = 4, BM = 32, BN = 32;
    dim3 gridDim(CEIL_DIV(N, BN), CEIL_DIV(M, BM));
    sgemm_vectorized<BM, BN, BK, TM, TN><<<gridDim, (BM * BN) / (TM * TN)>>>(M, N, K, alpha, A, B, beta, C);
    break;
  }
  default:
    exit(EXIT_FAILURE);
  }
}

int main(int argc, char **argv) {
  const int m = 64, n = 64, k = 32;
  float alpha = 0.5, beta = 3.0;
  float *A = (float *)malloc(sizeof(float) * m * k), *B = (float *)malloc(sizeof(float) * k * n);
  float *C = (float *)malloc(sizeof(float) * m * n), *R = (float *)malloc(sizeof(float) * m * n);
  for (int i = 0; i < m * k; i++) A[i] = (float)(rand() % 5) + 0.01 * (rand() % 5);
  for (int i = 0; i < k * n; i++) B[i] = (float)(rand() % 5) - 0.01 * (rand() % 5);
  float *dA = NULL, *dB = NULL, *dC = NULL;
  cudaCheck(cudaMalloc((void **)&dA, sizeof(float) * m * k));
  cudaCheck(cudaMalloc((void **)&dB, sizeof(float) * k * n));
  cudaCheck(cudaMalloc((void **)&dC, sizeof(float) * m * n));
  cudaCheck(cudaMemcpy(dA, A, sizeof(float) * m * k, cudaMemcpyHostToDevice));
  cudaCheck(cudaMemcpy(dB, B, sizeof(float) * k * n, cudaMemcpyHostToDevice));
  for (int kernel = 0; kernel < 4; ++kernel) {
    for (int i = 0; i < m * n; i++) C[i] = i % 7;
    cudaCheck(cudaMemcpy(dC, C, sizeof(float) * m * n, cudaMemcpyHostToDevice));
    run_kernel(kernel, m, n, k, alpha, dA, dB, beta, dC);
    cudaCheck(cudaDeviceSynchronize());
    cudaCheck(cudaGetLastError());
    cudaMemcpy(R, dC, sizeof(float) * m * n, cudaMemcpyDeviceToHost);
    bool good = true;
    for (int r = 0; r < m; r++)
      for (int c = 0; c < n; c++) {
        double sum = 0;
        for (int i = 0; i < k; i++) sum += (double)A[r * k + i] * B[i * n + c];
        if (std::fabs(alpha * sum + beta * C[r * n + c] - R[r * n + c]) > 0.01) good = false;
      }
    printf("kernel %d: %s\n", kernel, good ? "ok" : "WRONG");
  }
  free(A), free(B), free(C), free(R);
  cudaFree(dA);
  cudaFree(dB);
  cudaFree(dC);
  return 0;
}
