__global__ void fill(float *a) {
  a[threadIdx.x] = threadIdx.x;  // FAULT out of bounds
}
int main() {
  float *d;
  cudaMalloc(&d, 32 * sizeof(float));
  cudaFree(d);
  fill<<<1, 32>>>(d);
  return cudaDeviceSynchronize() == cudaSuccess;
}
