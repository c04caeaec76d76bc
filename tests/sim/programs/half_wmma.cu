// > 0 wrong
#include <cuda_fp16.h>
#include <mma.h>
#include <cstdio>
using namespace nvcuda;
const int N = 32;
__global__ void product(const half *a, const half *b, float *c) {
  int row = blockIdx.y * 16, col = blockIdx.x * 16;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
  wmma::fill_fragment(fc, 0.0f);
  for (int k = 0; k < N; k += 16) {
    wmma::load_matrix_sync(fa, a + row * N + k, N);
    wmma::load_matrix_sync(fb, b + col * N + k, N);
    wmma::mma_sync(fc, fa, fb, fc);
  }
  wmma::store_matrix_sync(c + row * N + col, fc, N, wmma::mem_row_major);
}
__global__ void convert(const float *in, __half *out, int n) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i < n) out[i] = __float2half(in[i]);
}
int main() {
  float host[N * N], got[N * N], *f, *c;
  half *a;
  for (int i = 0; i < N * N; ++i) host[i] = i % 5 - 2;
  cudaMalloc(&f, sizeof host);
  cudaMalloc(&c, sizeof host);
  cudaMalloc(&a, N * N * sizeof(half));
  cudaMemcpy(f, host, sizeof host, cudaMemcpyHostToDevice);
  convert<<<N * N / 256, 256>>>(f, a, N * N);
  product<<<dim3(2, 2), 32>>>(a, a, c);
  cudaMemcpy(got, c, sizeof got, cudaMemcpyDeviceToHost);
  int wrong = 0;
  for (int i = 0; i < N; ++i)
    for (int j = 0; j < N; ++j) {
      float want = 0;
      for (int k = 0; k < N; ++k) want += host[i * N + k] * host[j * N + k];
      wrong += want != got[i * N + j];
    }
  printf("%d wrong\n", wrong);
  cudaFree(f), cudaFree(c), cudaFree(a);
  return wrong != 0;
}
