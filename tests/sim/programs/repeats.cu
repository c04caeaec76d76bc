// > 100 products 100000, 40 additions 40
// > said said
// > cold 0 warm 1
// > put 2
#include <stdio.h>
#include <vector>
struct Sample { char kind; double value; };
__global__ void product(float *c, const float *a, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < n; ++k) sum += a[k] * a[n - 1 - k];
  c[i] = sum;
}
__global__ void add(float *c) { c[blockIdx.x * blockDim.x + threadIdx.x] += 1; }
__global__ void say() { if (threadIdx.x == 0) printf("said%s", blockIdx.x == 0 ? " " : "\n"); }
/// All that find something write the same.
__global__ void find(const Sample *samples, int *found, int n, double least) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const Sample mine = samples[i];
  if (mine.kind == 'w' && mine.value > least) *found = 1;
}
namespace one {
__global__ void put(int *p) { p[threadIdx.x] = 1; }
}
namespace two {
__global__ void put(int *p) { p[threadIdx.x] = 2; }
}
int main() {
  const int n = 1000;
  std::vector<float> h(n, 10);
  float *a, *c;
  cudaMalloc(&a, n * sizeof(float));
  cudaMalloc(&c, 128 * sizeof(float));
  cudaMemcpy(a, h.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  for (int i = 0; i < 100; ++i) product<<<2, 64>>>(c, a, n);
  cudaMemcpy(h.data(), c, 128 * sizeof(float), cudaMemcpyDeviceToHost);
  const float first = h[127];
  for (int i = 0; i < 40; ++i) add<<<2, 64>>>(c);
  cudaMemcpy(h.data(), c, 128 * sizeof(float), cudaMemcpyDeviceToHost);
  printf("100 products %g, 40 additions %g\n", first, h[127] - first);
  product<<<2, 64>>>(c, a, n);  // not as it was before the additions
  cudaMemcpy(h.data(), c, 128 * sizeof(float), cudaMemcpyDeviceToHost);
  if (h[5] != first) printf("wrong\n");
  fflush(stdout);
  say<<<2, 32>>>();
  cudaDeviceSynchronize();

  std::vector<Sample> samples(300);
  for (int i = 0; i < 300; ++i) samples[i] = {i % 3 ? 'w' : 'c', i * 1.0};
  Sample *d;
  int *found, answer[2];
  cudaMalloc(&d, 300 * sizeof(Sample));
  cudaMalloc(&found, sizeof(int));
  cudaMemcpy(d, samples.data(), 300 * sizeof(Sample), cudaMemcpyHostToDevice);
  for (int which = 0; which < 2; ++which) {
    cudaMemset(found, 0, sizeof(int));
    find<<<3, 128>>>(d, found, 300, which == 0 ? 1000 : 100);
    cudaMemcpy(&answer[which], found, sizeof(int), cudaMemcpyDeviceToHost);
  }
  printf("cold %d warm %d\n", answer[0], answer[1]);
  int *p;
  cudaMalloc(&p, 128 * sizeof(int));
  void *arguments[] = {&p};
  for (int i = 0; i < 3; ++i) cudaLaunchKernel((void *)one::put, dim3(1), dim3(128), arguments, 0, nullptr);
  cudaLaunchKernel((void *)two::put, dim3(1), dim3(128), arguments, 0, nullptr);
  cudaMemcpy(answer, p, sizeof(int), cudaMemcpyDeviceToHost);
  printf("put %d\n", answer[0]);
  cudaFree(p);
  cudaFree(a);
  cudaFree(c);
  cudaFree(d);
  cudaFree(found);
}
