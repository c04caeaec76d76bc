__device__ int sink;
__global__ void half_waits() {
  if (threadIdx.x < 32) {
    __syncthreads();  // FAULT missing barrier
  }
  if (threadIdx.x == 40) sink = 1;
}
int main() {
  half_waits<<<1, 64>>>();
  cudaDeviceSynchronize();
}
