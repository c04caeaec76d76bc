// > bf16 0 0, tf32 0 0, double 0 0
#include <cuda_bf16.h>
#include <mma.h>
#include <stdio.h>
#include <type_traits>
using namespace nvcuda;
using wmma::col_major;
using wmma::row_major;
constexpr int kPitch = 16;
template <class Kind, int M, int N, int K, class LayoutA, class LayoutB, class In, class Out>
__global__ void multiply(const In *a, const In *b, Out *c) {
  wmma::fragment<wmma::matrix_a, M, N, K, Kind, LayoutA> left;
  wmma::fragment<wmma::matrix_b, M, N, K, Kind, LayoutB> right;
  wmma::fragment<wmma::accumulator, M, N, K, Out> sum;
  wmma::load_matrix_sync(left, a, kPitch);
  wmma::load_matrix_sync(right, b, kPitch);
  wmma::fill_fragment(sum, Out(1));
  if constexpr (std::is_same<Kind, wmma::precision::tf32>::value) {
    for (int i = 0; i < left.num_elements; ++i) left.x[i] = wmma::__float_to_tf32(left.x[i]);
    for (int i = 0; i < right.num_elements; ++i) right.x[i] = wmma::__float_to_tf32(right.x[i]);
  }
  wmma::mma_sync(sum, left, right, sum);
  wmma::store_matrix_sync(c, sum, kPitch, wmma::mem_row_major);
}
template <class Kind, int M, int N, int K, class LayoutA, class LayoutB, class In, class Out>
int wrong() {
  In a[256], b[256], *da, *db;
  Out c[256], *dc;
  for (int i = 0; i < 256; ++i) {
    a[i] = In(float(i * 3 % 17 - 8));
    b[i] = In(float(i * 5 % 7 - 3));
  }
  cudaMalloc(&da, sizeof a);
  cudaMalloc(&db, sizeof b);
  cudaMalloc(&dc, sizeof c);
  cudaMemset(dc, 0, sizeof c);
  cudaMemcpy(da, a, sizeof a, cudaMemcpyHostToDevice);
  cudaMemcpy(db, b, sizeof b, cudaMemcpyHostToDevice);
  multiply<Kind, M, N, K, LayoutA, LayoutB><<<1, 32>>>(da, db, dc);
  cudaMemcpy(c, dc, sizeof c, cudaMemcpyDeviceToHost);
  int count = 0;
  for (int row = 0; row < M; ++row)
    for (int column = 0; column < N; ++column) {
      float sum = 1;
      for (int k = 0; k < K; ++k)
        sum += float(std::is_same<LayoutA, row_major>::value ? a[row * kPitch + k] : a[k * kPitch + row]) *
               float(std::is_same<LayoutB, row_major>::value ? b[k * kPitch + column] : b[column * kPitch + k]);
      count += float(c[row * kPitch + column]) != sum;
    }
  cudaFree(da);
  cudaFree(db);
  cudaFree(dc);
  return count;
}
int main() {
  printf("bf16 %d %d, ", wrong<__nv_bfloat16, 16, 16, 16, row_major, col_major, __nv_bfloat16, float>(),
         wrong<__nv_bfloat16, 16, 16, 16, col_major, row_major, __nv_bfloat16, float>());
  printf("tf32 %d %d, ", wrong<wmma::precision::tf32, 16, 16, 8, row_major, col_major, float, float>(),
         wrong<wmma::precision::tf32, 16, 16, 8, col_major, row_major, float, float>());
  printf("double %d %d\n", wrong<double, 8, 8, 4, row_major, col_major, double, double>(),
         wrong<double, 8, 8, 4, col_major, row_major, double, double>());
}
