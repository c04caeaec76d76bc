__global__ void nothing(int *) {}
int main() {
  int *unused = nullptr;
  nothing<<<1, 2048>>>(unused);  // FAULT unchecked launch
  cudaDeviceSynchronize();
}
