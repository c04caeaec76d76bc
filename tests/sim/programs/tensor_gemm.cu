// A half-precision GEMM in the manner of attention codes: float4 copies of eight halves, WMMA, a fused epilogue.
// > gemm ok
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;

template <int BM, int BN, int BK>
__global__ void __launch_bounds__(128) gemm_bias_relu(const half *__restrict__ A, const half *__restrict__ B,
                                                      const float *__restrict__ bias, float *__restrict__ C, int M,
                                                      int N, int K) {
  __shared__ __align__(16) half As[BM][BK + 8];
  __shared__ __align__(16) half Bs[BK][BN + 8];
  __shared__ float Cs[BM][BN + 4];
  const int warp = threadIdx.x / 32, wm = warp / 2, wn = warp % 2;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> b;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc;
  wmma::fill_fragment(acc, 0.0f);
  for (int k0 = 0; k0 < K; k0 += BK) {
    for (int i = threadIdx.x; i < BM * BK / 8; i += blockDim.x) {
      const int r = i / (BK / 8), c = i % (BK / 8) * 8;
      *(float4 *)&As[r][c] = *(const float4 *)&A[(blockIdx.y * BM + r) * K + k0 + c];
    }
    for (int i = threadIdx.x; i < BK * BN / 8; i += blockDim.x) {
      const int r = i / (BN / 8), c = i % (BN / 8) * 8;
      *reinterpret_cast<uint4 *>(&Bs[r][c]) = *reinterpret_cast<const uint4 *>(&B[(k0 + r) * N + blockIdx.x * BN + c]);
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < BK; k += 16) {
      wmma::load_matrix_sync(a, &As[wm * 16][k], BK + 8);
      wmma::load_matrix_sync(b, &Bs[k][wn * 16], BN + 8);
      wmma::mma_sync(acc, a, b, acc);
    }
    __syncthreads();
  }
  for (int i = 0; i < acc.num_elements; i++) acc.x[i] *= 0.5f;
  wmma::store_matrix_sync(&Cs[wm * 16][wn * 16], acc, BN + 4, wmma::mem_row_major);
  __syncthreads();
  for (int i = threadIdx.x; i < BM * BN; i += blockDim.x) {
    const int r = i / BN, c = i % BN;
    C[(blockIdx.y * BM + r) * N + blockIdx.x * BN + c] = fmaxf(Cs[r][c] + bias[blockIdx.x * BN + c], 0.0f);
  }
}

int main() {
  const int M = 64, N = 32, K = 64;
  std::vector<half> a(M * K), b(K * N);
  std::vector<float> bias(N, 0.25f), c(M * N);
  for (auto &v : a) v = __float2half((rand() % 9 - 4) / 4.0f);
  for (auto &v : b) v = __float2half_rn((rand() % 9 - 4) / 8.0f);
  half *da, *db;
  float *dbias, *dc;
  cudaMalloc(&da, a.size() * sizeof(half)), cudaMalloc(&db, b.size() * sizeof(half));
  cudaMalloc(&dbias, N * sizeof(float)), cudaMalloc(&dc, c.size() * sizeof(float));
  cudaMemcpy(da, a.data(), a.size() * sizeof(half), cudaMemcpyHostToDevice);
  cudaMemcpy(db, b.data(), b.size() * sizeof(half), cudaMemcpyHostToDevice);
  cudaMemcpy(dbias, bias.data(), N * sizeof(float), cudaMemcpyHostToDevice);
  gemm_bias_relu<32, 32, 32><<<dim3(N / 32, M / 32), 128>>>(da, db, dbias, dc, M, N, K);
  cudaMemcpy(c.data(), dc, c.size() * sizeof(float), cudaMemcpyDeviceToHost);
  bool ok = cudaGetLastError() == cudaSuccess;
  for (int i = 0; i < M; i++)
    for (int j = 0; j < N; j++) {
      float sum = 0;
      for (int k = 0; k < K; k++) sum += __half2float(a[i * K + k]) * float(b[k * N + j]);
      ok = ok && std::fabs(std::fmax(0.5f * sum + bias[j], 0.0f) - c[i * N + j]) < 1e-3f;
    }
  printf("gemm %s\n", ok ? "ok" : "WRONG");
  cudaFree(da), cudaFree(db), cudaFree(dbias), cudaFree(dc);
}
