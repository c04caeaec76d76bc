// Streams: pinned memory, chunks that copy and compute, events between streams, callbacks, a graph by capture.
// > max error 0
// > pipeline 6
// > callback after 2 steps
// > graph of 3 nodes: 40
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

inline void __checkCuda(cudaError_t result, char const *const func, const char *const file, int const line) {
  if (result) {
    fprintf(stderr, "CUDA error at %s:%d code=%d(%s) \"%s\" \n", file, line, static_cast<unsigned int>(result),
            cudaGetErrorName(result), func);
    exit(EXIT_FAILURE);
  }
}
#define checkCudaErrors(val) __checkCuda((val), #val, __FILE__, __LINE__)
#define getLastCudaError(msg) do { cudaError_t e = cudaGetLastError(); if (cudaSuccess != e) { printf("%s", msg); exit(1); } } while (0)

__global__ void kernel(float *a, int offset) {
  int i = offset + threadIdx.x + blockIdx.x * blockDim.x;
  float x = (float)i, s = sinf(x), c = cosf(x);
  a[i] = a[i] + sqrtf(s * s + c * c);
}
__global__ void add(int *x, int v, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += v;
}
__global__ void twice(int *y, const int *x, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = 2 * x[i];
}
float maxError(float *a, int n) {
  float maxE = 0;
  for (int i = 0; i < n; i++) maxE = fmax(maxE, fabs(a[i] - 1.0f));
  return maxE < 1e-6 ? 0 : maxE;
}
void CUDART_CB report(void *data) { printf("callback after %d steps\n", *static_cast<int *>(data)); }

int main(int argc, char **argv) {
  const int blockSize = 64, nStreams = 4, n = 4 * blockSize * nStreams;
  const int streamSize = n / nStreams, streamBytes = streamSize * sizeof(float), bytes = n * sizeof(float);
  float *a, *d_a, ms;
  checkCudaErrors(cudaMallocHost((void **)&a, bytes));
  checkCudaErrors(cudaMalloc((void **)&d_a, bytes));
  cudaEvent_t startEvent, stopEvent, ready;
  cudaStream_t stream[nStreams];
  checkCudaErrors(cudaEventCreate(&startEvent));
  checkCudaErrors(cudaEventCreate(&stopEvent));
  checkCudaErrors(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming));
  for (int i = 0; i < nStreams; ++i) checkCudaErrors(cudaStreamCreate(&stream[i]));
  memset(a, 0, bytes);
  checkCudaErrors(cudaEventRecord(startEvent, 0));
  for (int i = 0; i < nStreams; ++i) {
    int offset = i * streamSize;
    checkCudaErrors(cudaMemcpyAsync(&d_a[offset], &a[offset], streamBytes, cudaMemcpyHostToDevice, stream[i]));
    kernel<<<streamSize / blockSize, blockSize, 0, stream[i]>>>(d_a, offset);
    getLastCudaError("kernel failed");
    checkCudaErrors(cudaMemcpyAsync(&a[offset], &d_a[offset], streamBytes, cudaMemcpyDeviceToHost, stream[i]));
  }
  checkCudaErrors(cudaEventRecord(stopEvent, 0));
  checkCudaErrors(cudaEventSynchronize(stopEvent));
  checkCudaErrors(cudaEventElapsedTime(&ms, startEvent, stopEvent));
  printf("max error %g\n", maxError(a, n));

  int *x, *y, *h;
  checkCudaErrors(cudaMalloc(&x, 100 * sizeof(int)));
  checkCudaErrors(cudaMalloc(&y, 100 * sizeof(int)));
  checkCudaErrors(cudaHostAlloc(&h, 100 * sizeof(int), cudaHostAllocDefault));
  checkCudaErrors(cudaMemsetAsync(x, 0, 100 * sizeof(int), stream[0]));
  add<<<2, 64, 0, stream[0]>>>(x, 3, 100);
  checkCudaErrors(cudaEventRecord(ready, stream[0]));
  checkCudaErrors(cudaStreamWaitEvent(stream[1], ready, 0));
  twice<<<1, 32, 0, stream[1]>>>(y, x, 100);
  checkCudaErrors(cudaMemcpyAsync(h, y, 100 * sizeof(int), cudaMemcpyDeviceToHost, stream[1]));
  checkCudaErrors(cudaStreamSynchronize(stream[1]));
  printf("pipeline %d\n", h[99]);
  int steps = 2;
  checkCudaErrors(cudaLaunchHostFunc(stream[1], report, &steps));
  checkCudaErrors(cudaDeviceSynchronize());

  cudaGraph_t graph;
  cudaGraphExec_t instance;
  checkCudaErrors(cudaStreamBeginCapture(stream[2], cudaStreamCaptureModeGlobal));
  for (int i = 0; i < 2; i++) add<<<2, 64, 0, stream[2]>>>(x, i + 1, 100);
  twice<<<1, 32, 0, stream[2]>>>(y, x, 100);
  checkCudaErrors(cudaStreamEndCapture(stream[2], &graph));
  size_t nodes;
  checkCudaErrors(cudaGraphGetNodes(graph, NULL, &nodes));
  checkCudaErrors(cudaGraphInstantiate(&instance, graph, NULL, NULL, 0));
  checkCudaErrors(cudaMemset(x, 0, 100 * sizeof(int)));
  checkCudaErrors(cudaDeviceSynchronize());
  add<<<2, 64, 0, stream[2]>>>(x, 11, 100);
  for (int i = 0; i < 3; i++) checkCudaErrors(cudaGraphLaunch(instance, stream[2]));
  checkCudaErrors(cudaStreamSynchronize(stream[2]));
  checkCudaErrors(cudaMemcpy(h, y, 100 * sizeof(int), cudaMemcpyDeviceToHost));
  printf("graph of %zu nodes: %d\n", nodes, h[50]);
  checkCudaErrors(cudaGraphExecDestroy(instance));
  checkCudaErrors(cudaGraphDestroy(graph));
  for (int i = 0; i < nStreams; ++i) checkCudaErrors(cudaStreamDestroy(stream[i]));
  for (cudaEvent_t event : {startEvent, stopEvent, ready}) checkCudaErrors(cudaEventDestroy(event));
  cudaFree(d_a), cudaFree(x), cudaFree(y), cudaFreeHost(a), cudaFreeHost(h);
}
