__device__ int out[32];
__global__ void shift(int n) {
  __shared__ int a[32], b[32];
  a[threadIdx.x] = b[threadIdx.x] = 0;
  __syncwarp();
  out[threadIdx.x] = b[threadIdx.x] + a[threadIdx.x + n];  // FAULT out of bounds
}
int main() {
  shift<<<1, 32>>>(1);
  cudaDeviceSynchronize();
}
