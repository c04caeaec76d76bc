// Idioms of textbooks: a lock, dot products, a heap on the device, virtual functions, recursion, goto, __managed__ trees.
// > dot ok, locked 64
// > shapes 4 9, list 45, fib 55
// > life 5 cells, pi ok
// > refused: invalid argument
// > C addWithCuda {11,22,33,44,55}
#include "cuda_runtime.h"
#include "device_launch_parameters.h"
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define imin(a, b) (a < b ? a : b)
const int N = 33 * 1024 / 8;
const int threadsPerBlock = 256;
const int blocksPerGrid = imin(32, (N + threadsPerBlock - 1) / threadsPerBlock);

struct Lock {
  int *mutex;
  Lock(void) {
    int state = 0;
    cudaMalloc((void **)&mutex, sizeof(int));
    cudaMemcpy(mutex, &state, sizeof(int), cudaMemcpyHostToDevice);
  }
  void free() { cudaFree(mutex); }
  __device__ void lock(void) {
    while (atomicCAS(mutex, 0, 1) != 0);
    __threadfence();
  }
  __device__ void unlock(void) {
    __threadfence();
    atomicExch(mutex, 0);
  }
};

__global__ void dot(float *a, float *b, float *c) {
  __shared__ float cache[threadsPerBlock];
  int tid = threadIdx.x + blockIdx.x * blockDim.x, cacheIndex = threadIdx.x;
  float temp = 0;
  while (tid < N) {
    temp += a[tid] * b[tid];
    tid += blockDim.x * gridDim.x;
  }
  cache[cacheIndex] = temp;
  __syncthreads();
  int i = blockDim.x / 2;
  while (i != 0) {
    if (cacheIndex < i) cache[cacheIndex] += cache[cacheIndex + i];
    __syncthreads();
    i /= 2;
  }
  if (cacheIndex == 0) c[blockIdx.x] = cache[0];
}

__global__ void locked_count(Lock lock, volatile int *count) {
  if (threadIdx.x == 0) {
    lock.lock();
    *count = *count + 1;
    lock.unlock();
  }
}

struct Shape {
  __device__ virtual ~Shape() {}
  __device__ virtual float area() const = 0;
};
struct Square : Shape {
  float side;
  __device__ Square(float s) : side(s) {}
  __device__ float area() const override { return side * side; }
};
struct Node { int value; Node *next; };
__device__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__global__ void heap(float *areas, int *sum) {
  if (threadIdx.x < 2) {
    Shape *shape = new Square(threadIdx.x + 2);
    areas[threadIdx.x] = shape->area();
    delete shape;
  }
  if (threadIdx.x != 0) return;
  Node *list = nullptr;
  for (int i = 0; i < 10; i++) {
    Node *n = (Node *)malloc(sizeof(Node));
    n->value = i, n->next = list, list = n;
  }
  int s = 0;
  while (list) {
    Node *n = list;
    s += n->value, list = n->next;
    free(n);
  }
  sum[0] = s;
  sum[1] = fib(10);
}

__global__ void life(const unsigned char *in, unsigned char *out, int n) {
  for (int cell = blockIdx.x * blockDim.x + threadIdx.x; cell < n * n; cell += blockDim.x * gridDim.x) {
    int x = cell % n, y = cell - x, left = (x + n - 1) % n, right = (x + 1) % n;
    int up = (y + n * n - n) % (n * n), down = (y + n) % (n * n);
    int alive = in[left + up] + in[x + up] + in[right + up] + in[left + y] + in[right + y] + in[left + down] + in[x + down] + in[right + down];
    out[x + y] = alive == 3 || (alive == 2 && in[x + y]) ? 1 : 0;
  }
}

__global__ void pi(unsigned *hits, int trials) {
  unsigned state = 1234u + blockIdx.x * blockDim.x + threadIdx.x, mine = 0;
  auto next = [&state]() { state = state * 1664525u + 1013904223u; return (state >> 8) * (1.0f / 16777216.0f); };
  for (int i = 0; i < trials; i++) {
    float x = next(), y = next();
    if (x * x + y * y <= 1.0f) mine++;
  }
  atomicAdd(hits, mine);
}

__global__ void addKernel(int *c, const int *a, const int *b) { int i = threadIdx.x; c[i] = a[i] + b[i]; }

cudaError_t addWithCuda(int *c, const int *a, const int *b, unsigned int size) {
  int *dev_a = 0, *dev_b = 0, *dev_c = 0;
  cudaError_t cudaStatus = cudaSetDevice(0);
  if (cudaStatus != cudaSuccess) { fprintf(stderr, "cudaSetDevice failed!"); goto Error; }
  cudaStatus = cudaMalloc((void **)&dev_c, size * sizeof(int));
  if (cudaStatus != cudaSuccess) goto Error;
  cudaStatus = cudaMalloc((void **)&dev_a, size * sizeof(int));
  if (cudaStatus != cudaSuccess) goto Error;
  cudaStatus = cudaMalloc((void **)&dev_b, size * sizeof(int));
  if (cudaStatus != cudaSuccess) goto Error;
  cudaMemcpy(dev_a, a, size * sizeof(int), cudaMemcpyHostToDevice);
  cudaMemcpy(dev_b, b, size * sizeof(int), cudaMemcpyHostToDevice);
  addKernel<<<1, size>>>(dev_c, dev_a, dev_b);
  cudaStatus = cudaGetLastError();
  if (cudaStatus != cudaSuccess) goto Error;
  cudaStatus = cudaMemcpy(c, dev_c, size * sizeof(int), cudaMemcpyDeviceToHost);
Error:
  cudaFree(dev_c);
  cudaFree(dev_a);
  cudaFree(dev_b);
  return cudaStatus;
}

int main(void) {
  float *a = (float *)malloc(N * sizeof(float)), *b = (float *)malloc(N * sizeof(float)), c = 0, partial[32], *dev_a, *dev_b, *dev_c;
  cudaMalloc((void **)&dev_a, N * sizeof(float));
  cudaMalloc((void **)&dev_b, N * sizeof(float));
  cudaMalloc((void **)&dev_c, blocksPerGrid * sizeof(float));
  for (int i = 0; i < N; i++) a[i] = i, b[i] = i * 2;
  cudaMemcpy(dev_a, a, N * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(dev_b, b, N * sizeof(float), cudaMemcpyHostToDevice);
  dot<<<blocksPerGrid, threadsPerBlock>>>(dev_a, dev_b, dev_c);
  cudaMemcpy(partial, dev_c, blocksPerGrid * sizeof(float), cudaMemcpyDeviceToHost);
  for (int i = 0; i < blocksPerGrid; i++) c += partial[i];
  Lock lock;
  int *ints, got[2];
  cudaMalloc(&ints, 2 * sizeof(int));
  cudaMemset(ints, 0, 2 * sizeof(int));
  locked_count<<<64, 32>>>(lock, ints);
  cudaMemcpy(got, ints, sizeof(int), cudaMemcpyDeviceToHost);
  double want = 0;
  for (int i = 0; i < N; i++) want += 2.0 * i * i;
  printf("dot %s, locked %d\n", fabs(c - want) < 1e-5 * want ? "ok" : "WRONG", got[0]);
  lock.free();
  heap<<<1, 32>>>(dev_c, ints);
  cudaMemcpy(partial, dev_c, 2 * sizeof(float), cudaMemcpyDeviceToHost);
  cudaMemcpy(got, ints, 2 * sizeof(int), cudaMemcpyDeviceToHost);
  printf("shapes %g %g, list %d, fib %d\n", partial[0], partial[1], got[0], got[1]);
  unsigned char world[64] = {0}, *w[2];
  world[1] = world[10] = world[16] = world[17] = world[18] = 1;
  for (int i = 0; i < 2; i++) cudaMalloc(&w[i], 64);
  cudaMemcpy(w[0], world, 64, cudaMemcpyHostToDevice);
  for (int gen = 0; gen < 6; gen++) life<<<2, 16>>>(w[gen & 1], w[(gen + 1) & 1], 8);
  cudaMemcpy(world, w[0], sizeof world, cudaMemcpyDeviceToHost);
  int cells = 0;
  for (unsigned char v : world) cells += v;
  unsigned *hits = (unsigned *)ints, h;
  cudaMemset(hits, 0, sizeof(unsigned));
  pi<<<4, 64>>>(hits, 100);
  cudaMemcpy(&h, hits, sizeof h, cudaMemcpyDeviceToHost);
  printf("life %d cells, pi %s\n", cells, fabs(4.0 * h / 25600 - M_PI) < 0.05 ? "ok" : "WRONG");
  addKernel<<<1, 2048>>>(ints, ints, ints);
  printf("refused: %s\n", cudaGetErrorString(cudaGetLastError()));
  const int x[5] = {1, 2, 3, 4, 5}, y[5] = {10, 20, 30, 40, 50};
  int z[5] = {0};
  if (addWithCuda(z, x, y, 5) != cudaSuccess) return 1;
  printf("C addWithCuda {%d,%d,%d,%d,%d}\n", z[0], z[1], z[2], z[3], z[4]);
  free(a), free(b), cudaFree(dev_a), cudaFree(dev_b), cudaFree(dev_c), cudaFree(ints), cudaFree(w[0]), cudaFree(w[1]);
  return cudaDeviceReset() != cudaSuccess;
}
