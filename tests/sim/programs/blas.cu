// A kernel beside cuBLAS, as ladders of SGEMM check theirs; also halves, and a batch by strides.
// > sgemm same, gemmEx 8, batched 12 24, gemv 3
// > 15 * 2^-26 beside 1: 0
#include <cublas_v2.h>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CUBLAS_CHECK(x) do { cublasStatus_t s_ = (x); if (s_ != CUBLAS_STATUS_SUCCESS) { fprintf(stderr, "cuBLAS %d at %s:%d\n", (int)s_, __FILE__, __LINE__); exit(1); } } while (0)

__global__ void sgemm(int M, int N, int K, float alpha, const float *A, const float *B, float beta, float *C) {
  const int r = blockIdx.y * blockDim.y + threadIdx.y, c = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= M || c >= N) return;
  float sum = 0;
  for (int k = 0; k < K; k++) sum += A[r * K + k] * B[k * N + c];
  C[r * N + c] = alpha * sum + beta * C[r * N + c];
}
template <typename T>
__global__ void fill(T *p, int n, float v) { for (int i = threadIdx.x; i < n; i += blockDim.x) p[i] = T(v); }

int main() {
  const int M = 20, N = 24, K = 16;
  float *A, *B, *C, *R;
  for (auto [p, n] : {std::pair<float **, int>{&A, M * K}, {&B, K * N}, {&C, M * N}, {&R, M * N}})
    if (cudaMallocManaged(p, n * sizeof(float)) != cudaSuccess) return 1;
  for (int i = 0; i < M * K; i++) A[i] = rand() % 7 - 3;
  for (int i = 0; i < K * N; i++) B[i] = rand() % 5 - 2;
  for (int i = 0; i < M * N; i++) C[i] = R[i] = i % 3;
  cublasHandle_t handle;
  CUBLAS_CHECK(cublasCreate(&handle));
  const float alpha = 0.5f, beta = 2.0f;
  CUBLAS_CHECK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, N, M, K, &alpha, B, N, A, K, &beta, R, N));
  sgemm<<<dim3(2, 2), dim3(16, 16)>>>(M, N, K, alpha, A, B, beta, C);
  cudaDeviceSynchronize();
  bool same = true;
  for (int i = 0; i < M * N; i++) same = same && std::fabs(C[i] - R[i]) < 1e-4f;
  half *h;
  cudaMalloc(&h, 3 * 16 * sizeof(half));
  fill<<<1, 32>>>(h, 32, 2.0f);
  const float one = 1, zero = 0;
  CUBLAS_CHECK(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_T, 4, 4, 2, &one, h, CUDA_R_16F, 4, h + 16, CUDA_R_16F, 4, &zero,
                            h + 32, CUDA_R_16F, 4, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  half got;
  cudaMemcpy(&got, h + 33, sizeof got, cudaMemcpyDeviceToHost);
  // Tensor Cores keep 25 bits below the largest of 17 terms.
  for (half each : {half(1), half(0x1p-13f)}) cudaMemcpy(h + (each == half(1) ? 0 : 1), &each, sizeof each, cudaMemcpyHostToDevice);
  for (int i = 2; i < 16; i++) cudaMemcpy(h + i, h + 1, sizeof(half), cudaMemcpyDeviceToDevice);
  CUBLAS_CHECK(cublasGemmEx(handle, CUBLAS_OP_T, CUBLAS_OP_N, 1, 1, 16, &one, h, CUDA_R_16F, 16, h, CUDA_R_16F, 16, &zero, C,
                            CUDA_R_32F, 1, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  cudaDeviceSynchronize();
  const float cut = C[0] - 1;
  for (int i = 0; i < 16; i++) A[i] = i < 8 ? 2 : 4, B[i] = 3;
  CUBLAS_CHECK(cublasSgemmStridedBatched(handle, CUBLAS_OP_T, CUBLAS_OP_N, 2, 2, 2, &one, A, 2, 8, B, 2, 4, &zero, C, 2, 4, 2));
  cudaDeviceSynchronize();
  float first = C[0], second = C[7];
  for (int i = 0; i < 6; i++) A[i] = i % 2, B[i] = 1;
  CUBLAS_CHECK(cublasSgemv(handle, CUBLAS_OP_N, 2, 3, &one, A, 2, B, 1, &zero, C, 1));
  cudaDeviceSynchronize();
  // What lies between the columns of a matrix is neither read nor written.
  float *G;
  cudaMalloc(&G, 5 * 3 * sizeof(float));
  cudaMemset2D(G, 5 * sizeof(float), 0, 3 * sizeof(float), 3);
  CUBLAS_CHECK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 3, 3, 3, &one, G, 5, G, 5, &zero, R, 5));
  CUBLAS_CHECK(cublasSgeam(handle, CUBLAS_OP_N, CUBLAS_OP_T, 3, 3, &one, G, 5, &one, G, 5, R, 5));
  cudaDeviceSynchronize();
  cudaFree(G);
  printf("sgemm %s, gemmEx %g, batched %g %g, gemv %g\n", same ? "same" : "WRONG", __half2float(got), first, second, C[1]);
  printf("15 * 2^-26 beside 1: %g\n", cut);
  CUBLAS_CHECK(cublasDestroy(handle));
  cudaFree(A), cudaFree(B), cudaFree(C), cudaFree(R), cudaFree(h);
}
