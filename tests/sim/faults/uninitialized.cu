__global__ void add(const float *a, float *b) {
  b[threadIdx.x] += a[threadIdx.x];  // FAULT uninitialized
}
int main() {
  float *a, *b;
  cudaMalloc(&a, 128);
  cudaMalloc(&b, 128);
  cudaMemset(b, 0, 128);
  add<<<1, 32>>>(a, b);
  cudaDeviceSynchronize();
  cudaFree(a);
  cudaFree(b);
}
