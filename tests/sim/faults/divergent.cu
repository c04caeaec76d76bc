#include <cassert>
__device__ int sink;
__global__ void half_waits() {
  if (threadIdx.x < 32) {
    __syncthreads();  // FAULT missing barrier
  }
  sink = 1;
}
__global__ void asserts(int n) {
  assert(n > 3);  // FAULT crash
}
int main(int argc, char **) {
  if (argc > 1) asserts<<<1, 1>>>(3);
  else half_waits<<<1, 64>>>();
  cudaDeviceSynchronize();
}
