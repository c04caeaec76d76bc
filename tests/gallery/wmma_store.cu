// A warp stores its tile by WMMA, and each lane goes on with elements that other lanes have stored.
#include <mma.h>

#include <cstdio>

using namespace nvcuda;

__global__ void product(const half* a, const half* b, float* out) {
  __shared__ alignas(32) float tile[256];
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> of_a;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> of_b;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums;
  wmma::fill_fragment(sums, 0.0f);
  wmma::load_matrix_sync(of_a, a, 16);
  wmma::load_matrix_sync(of_b, b, 16);
  wmma::mma_sync(sums, of_a, of_b, sums);
  wmma::store_matrix_sync(tile, sums, 16, wmma::mem_row_major);
#ifdef MENDED
  __syncwarp();
#endif
  for (int i = threadIdx.x; i < 256; i += 32) out[i] = 2 * tile[i];  // FAULT race
}

int main() {
  half *a, *b;
  float* out;
  cudaMallocManaged(&a, 256 * sizeof(half));
  cudaMallocManaged(&b, 256 * sizeof(half));
  cudaMallocManaged(&out, 256 * sizeof(float));
  for (int i = 0; i < 256; ++i) a[i] = b[i] = __float2half(1.0f);
  product<<<1, 32>>>(a, b, out);
  cudaDeviceSynchronize();
  printf("element %g\n", out[17]);
  cudaFree(a);
  cudaFree(b);
  cudaFree(out);
}
