// > sorted 1
// > order: parent child grandchild tail
// > tree 364
#include <stdio.h>
/// Quicksort: a kernel for each part that has more than one element, Lomuto's scheme.
__global__ void sort(int *data, int first, int last) {
  if (threadIdx.x != 0) return;
  const int pivot = data[last];
  int place = first;
  for (int i = first; i < last; ++i)
    if (data[i] < pivot) {
      const int kept = data[i];
      data[i] = data[place];
      data[place++] = kept;
    }
  data[last] = data[place];
  data[place] = pivot;
  if (first < place - 1) sort<<<1, 32>>>(data, first, place - 1);
  if (place + 1 < last) {
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    sort<<<1, 32, 0, stream>>>(data, place + 1, last);
    cudaStreamDestroy(stream);
  }
}
__global__ void say(const char *, int which) { printf("%s", which == 0 ? " child" : which == 1 ? " grandchild" : " tail\n"); }
__global__ void middle() {
  printf(" child");
  say<<<1, 1>>>(nullptr, 1);
}
__global__ void parent() {
  say<<<1, 1, 0, cudaStreamTailLaunch>>>(nullptr, 2);
  middle<<<1, 1>>>();
  printf("order: parent");
}
__global__ void grow(unsigned *count, int depth) {
  if (threadIdx.x == 0) atomicAdd(count, 1u);
  if (depth > 0) grow<<<1, 3>>>(count, depth - 1);  // each thread its own
}
int main() {
  const int n = 60;
  int h[n], *d;
  unsigned *count, total = 0;
  for (int i = 0; i < n; ++i) h[i] = i * 37 % 101;
  cudaMalloc(&d, sizeof h);
  cudaMalloc(&count, sizeof total);
  cudaMemset(count, 0, sizeof total);
  cudaMemcpy(d, h, sizeof h, cudaMemcpyHostToDevice);
  sort<<<1, 32>>>(d, 0, n - 1);
  cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);
  bool sorted = true;
  for (int i = 1; i < n; ++i) sorted &= h[i - 1] <= h[i];
  printf("sorted %d\n", sorted);
  fflush(stdout);
  parent<<<1, 1>>>();
  cudaDeviceSynchronize();
  grow<<<1, 3>>>(count, 5);
  cudaMemcpy(&total, count, sizeof total, cudaMemcpyDeviceToHost);
  printf("tree %u\n", total);
  cudaFree(d);
  cudaFree(count);
}
