// > vectors: sum 55, largest at 10, scaled 2 to 20, 1 + 2 = 3
// > matrices: 0 wrong of 24
// > with a bias: 0 wrong of 24
// > a batch by pointers: 7 15
#include <cublasLt.h>
#include <cublas_v2.h>
#include <stdio.h>
#include <vector>
int main() {
  cublasHandle_t blas;
  cublasCreate(&blas);
  const int n = 10;
  float h[n], back[n], sum = 0, two = 2, one = 1, zero = 0, *x, *y;
  for (int i = 0; i < n; ++i) h[i] = i + 1;
  cudaMalloc(&x, sizeof h);
  cudaMalloc(&y, sizeof h);
  cublasSetVector(n, sizeof(float), h, 1, x, 1);
  cudaMemset(y, 0, sizeof h);
  int largest = 0;
  cublasSasum(blas, n, x, 1, &sum);
  cublasIsamax(blas, n, x, 1, &largest);
  cublasSscal(blas, n, &two, x, 1);
  cublasSaxpy(blas, n, &one, x, 1, y, 1);
  cublasGetVector(n, sizeof(float), y, 1, back, 1);
  float dot = 0;
  cublasSdot(blas, 1, x, 1, x, 1, &dot);
  printf("vectors: sum %g, largest at %d, scaled %g to %g, 1 + 2 = %g\n", sum, largest, back[0], back[n - 1], dot - 1);

  // C = A B of rows: to cuBLAS, the transposed of all three.
  const int rows = 4, columns = 6, inner = 5;
  std::vector<float> a(rows * inner), b(inner * columns), c(rows * columns), bias(columns);
  for (size_t i = 0; i < a.size(); ++i) a[i] = i % 7 - 3.f;
  for (size_t i = 0; i < b.size(); ++i) b[i] = i % 5 - 2.f;
  for (size_t i = 0; i < bias.size(); ++i) bias[i] = 10.f * i;
  float *da, *db, *dc, *dbias;
  cudaMalloc(&da, a.size() * sizeof(float));
  cudaMalloc(&db, b.size() * sizeof(float));
  cudaMalloc(&dc, c.size() * sizeof(float));
  cudaMalloc(&dbias, bias.size() * sizeof(float));
  cudaMemcpy(da, a.data(), a.size() * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(db, b.data(), b.size() * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(dbias, bias.data(), bias.size() * sizeof(float), cudaMemcpyHostToDevice);
  const auto wrong = [&](bool biased) {
    cudaMemcpy(c.data(), dc, c.size() * sizeof(float), cudaMemcpyDeviceToHost);
    int count = 0;
    for (int row = 0; row < rows; ++row)
      for (int column = 0; column < columns; ++column) {
        float right = biased ? bias[column] : 0;
        for (int k = 0; k < inner; ++k) right += a[row * inner + k] * b[k * columns + column];
        if (biased && right < 0) right = 0;
        count += c[row * columns + column] != right;
      }
    return count;
  };
  cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, columns, rows, inner, &one, db, columns, da, inner, &zero, dc, columns);
  printf("matrices: %d wrong of 24\n", wrong(false));

  cublasLtHandle_t light;
  cublasLtMatmulDesc_t product;
  cublasLtMatrixLayout_t left, right, out;
  cublasLtMatmulPreference_t wish;
  cublasLtCreate(&light);
  cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F);
  const cublasLtEpilogue_t after = CUBLASLT_EPILOGUE_RELU_BIAS;
  cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_EPILOGUE, &after, sizeof after);
  cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &dbias, sizeof dbias);
  cublasLtMatrixLayoutCreate(&left, CUDA_R_32F, columns, inner, columns);
  cublasLtMatrixLayoutCreate(&right, CUDA_R_32F, inner, rows, inner);
  cublasLtMatrixLayoutCreate(&out, CUDA_R_32F, columns, rows, columns);
  cublasLtMatmulPreferenceCreate(&wish);
  cublasLtMatmulHeuristicResult_t found;
  int count = 0;
  cublasLtMatmulAlgoGetHeuristic(light, product, left, right, out, out, wish, 1, &found, &count);
  if (count == 0) return 1;
  cublasLtMatmul(light, product, &one, db, left, da, right, &zero, dc, out, dc, out, &found.algo, nullptr, 0, 0);
  printf("with a bias: %d wrong of 24\n", wrong(true));
  cublasLtMatmulPreferenceDestroy(wish);
  cublasLtMatrixLayoutDestroy(left);
  cublasLtMatrixLayoutDestroy(right);
  cublasLtMatrixLayoutDestroy(out);
  cublasLtMatmulDescDestroy(product);
  cublasLtDestroy(light);

  // Two products of 1 x 2 by 2 x 1.
  const float numbers[] = {1, 3, 2, 5};
  cudaMemcpy(x, numbers, sizeof numbers, cudaMemcpyHostToDevice);
  const float ones[] = {1, 2, 5, 1};
  cudaMemcpy(y, ones, sizeof ones, cudaMemcpyHostToDevice);
  float *lists[3][2] = {{x, x + 2}, {y, y + 2}, {dc, dc + 1}}, **on_device[3];
  for (int i = 0; i < 3; ++i) {
    cudaMalloc(&on_device[i], sizeof lists[i]);
    cudaMemcpy(on_device[i], lists[i], sizeof lists[i], cudaMemcpyHostToDevice);
  }
  cublasSgemmBatched(blas, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 2, &one, on_device[0], 1, on_device[1], 2, &zero,
                     on_device[2], 1, 2);
  cudaMemcpy(back, dc, 2 * sizeof(float), cudaMemcpyDeviceToHost);
  printf("a batch by pointers: %g %g\n", back[0], back[1]);
  cublasDestroy(blas);
  for (float **list : on_device) cudaFree(list);
  for (float *memory : {x, y, da, db, dc, dbias}) cudaFree(memory);
}
