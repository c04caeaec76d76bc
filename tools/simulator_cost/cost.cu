// Common kernels at a size that is given, for tools/simulator_cost/measure.py: what the simulator takes for them.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

__global__ void add(const float *a, const float *b, float *c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

__global__ void reduce(const float *a, float *sum, int n) {
  __shared__ float s[256];
  float mine = 0;
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) mine += a[i];
  s[threadIdx.x] = mine;
  __syncthreads();
  for (int d = 128; d > 0; d /= 2) {
    if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(sum, s[0]);
}

__global__ void transpose(const float *a, float *b, int n) {
  __shared__ float tile[32][33];
  const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = a[(y + j) * n + x];
  __syncthreads();
  for (int j = 0; j < 32; j += 8)
    b[(blockIdx.x * 32 + threadIdx.y + j) * n + blockIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y + j];
}

__global__ void histogram(const float *a, unsigned *bins, int n) {
  __shared__ unsigned s[256];
  s[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) atomicAdd(&s[(int)a[i] & 255], 1u);
  __syncthreads();
  atomicAdd(&bins[threadIdx.x], s[threadIdx.x]);
}

__global__ void gemm(const float *a, const float *b, float *c, int n) {
  const int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  float sum = 0;
  for (int k = 0; k < n; ++k) sum += a[y * n + k] * b[k * n + x];
  c[y * n + x] = sum;
}

__global__ void tiled(const float *a, const float *b, float *c, int n) {
  __shared__ float as[16][16], bs[16][16];
  const int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  float sum = 0;
  for (int k = 0; k < n; k += 16) {
    as[threadIdx.y][threadIdx.x] = a[y * n + k + threadIdx.x];
    bs[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + x];
    __syncthreads();
    for (int i = 0; i < 16; ++i) sum += as[threadIdx.y][i] * bs[i][threadIdx.x];
    __syncthreads();
  }
  c[y * n + x] = sum;
}

int main(int argc, char **argv) {
  if (argc < 3) return 1;
  const int n = atoi(argv[2]), elements = strchr("gGt", argv[1][0]) ? n * n : n;
  float *a, *b, *c;
  for (float **p : {&a, &b, &c}) {
    cudaMalloc(p, elements * sizeof(float));
    cudaMemset(*p, 0, elements * sizeof(float));
  }
  const dim3 tiles(n / 16, n / 16), threads(16, 16);
  switch (argv[1][0]) {
    case 'a':
      add<<<(n + 255) / 256, 256>>>(a, b, c, n);
      break;
    case 'r':
      reduce<<<256, 256>>>(a, c, n);
      break;
    case 't':
      transpose<<<dim3(n / 32, n / 32), dim3(32, 8)>>>(a, b, n);
      break;
    case 'h':
      histogram<<<256, 256>>>(a, (unsigned *)c, n);
      break;
    case 'g':
      gemm<<<tiles, threads>>>(a, b, c, n);
      break;
    case 'G':
      tiled<<<tiles, threads>>>(a, b, c, n);
      break;
  }
  const cudaError_t error = cudaDeviceSynchronize();
  for (float *p : {a, b, c}) cudaFree(p);
  return error != cudaSuccess;
}
