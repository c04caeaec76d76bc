#include <cublas_v2.h>
__global__ void look(const float *c, float *out) {
  out[threadIdx.x] = c[threadIdx.x];  // FAULT uninitialized
}
int main() {
  const int n = 3, ld = 5;  // two floats lie between the columns
  float *a, *c, *out, one = 1, zero = 0;
  cudaMalloc(&a, ld * n * sizeof(float));
  cudaMalloc(&c, ld * n * sizeof(float));
  cudaMalloc(&out, ld * n * sizeof(float));
  cudaMemset(a, 0, ld * n * sizeof(float));
  cublasHandle_t handle;
  cublasCreate(&handle);
  cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a, ld, a, ld, &zero, c, ld);
  look<<<1, ld>>>(c, out);
  cudaDeviceSynchronize();
  cublasDestroy(handle);
  cudaFree(a), cudaFree(c), cudaFree(out);
}
