__device__ int before[4], after[4];
__global__ void past(int n) {
  before[threadIdx.x + n] = 1;  // FAULT out of bounds
}
int main() {
  past<<<1, 4>>>(1);
  cudaDeviceSynchronize();
}
