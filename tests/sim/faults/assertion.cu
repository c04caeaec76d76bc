#include <cassert>
__global__ void checked(int n) {
  assert(n > 3);  // FAULT crash
}
int main() {
  checked<<<1, 1>>>(3);
  cudaDeviceSynchronize();
}
