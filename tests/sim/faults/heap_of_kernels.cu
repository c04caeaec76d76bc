__global__ void heap(int *out) {
  int *p = (int *)malloc(4 * sizeof(int));
  p[0] = 1;
  out[0] = p[0] + p[1];  // FAULT uninitialized
  free(p);
  out[1] = p[0];  // FAULT out of bounds
}
int main() {
  int *out;
  cudaMalloc(&out, 2 * sizeof(int));
  heap<<<1, 1>>>(out);
  cudaDeviceSynchronize();
  cudaFree(out);
}
