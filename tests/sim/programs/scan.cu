// > last 32896
#include <cstdio>
#include <cstdlib>
extern __shared__ int temp[];
template <class T> struct Sum { __host__ __device__ T operator()(T a, T b) const { return a + b; } };
template <class T, class Op>
__global__ void scan(T *data, int n, Op op) {
  const int t = threadIdx.x;
  int in = 1, out = 0;
  temp[t] = t < n ? data[t] : 0;
  __syncthreads();
  for (int offset = 1; offset < n; offset *= 2) {
    out = 1 - out;
    in = 1 - out;
    if (t >= offset) temp[out * n + t] = op(temp[in * n + t], temp[in * n + t - offset]);
    else temp[out * n + t] = temp[in * n + t];
    __syncthreads();
  }
  data[t] = temp[out * n + t];
}
int main() {
  const int n = 256;
  cudaDeviceProp prop;
  cudaGetDeviceProperties(&prop, 0);
  if (n > prop.maxThreadsPerBlock) return 1;
  int *h, *d;
  cudaMallocHost((void **)&h, n * sizeof(int));
  cudaMalloc(&d, n * sizeof(int));
  for (int i = 0; i < n; ++i) h[i] = i + 1;
  cudaMemcpy(d, h, n * sizeof *h, cudaMemcpyHostToDevice);
  scan<<<1, n, 2 * n * sizeof(int)>>>(d, n, Sum<int>());
  if (auto error = cudaDeviceSynchronize()) printf("%s\n", cudaGetErrorString(error));
  cudaMemcpy(h, d, n * sizeof *h, cudaMemcpyDeviceToHost);
  printf("last %d\n", h[n - 1]);
  cudaFree(d);
  cudaFreeHost(h);
  return h ? 0 : 1;
}
