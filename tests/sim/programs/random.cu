// > first of seed 1234: 0.145468 0.820181
// > host 1 of 1
// > uniform and normal: 1 1 1
// > pi 1
#include <curand.h>
#include <curand_kernel.h>
#include <math.h>
#include <stdio.h>
#include <vector>
__global__ void begin(curandState *states, unsigned long long seed) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  curand_init(seed, i, 0, &states[i]);
}
__global__ void inside(curandState *states, unsigned *hits, int tries) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  curandState mine = states[i];
  unsigned count = 0;
  for (int k = 0; k < tries; ++k) {
    const float x = curand_uniform(&mine), y = curand_uniform(&mine);
    count += x * x + y * y <= 1;
  }
  states[i] = mine;
  atomicAdd(hits, count);
}
__global__ void normals(float *sums) {
  curandStatePhilox4_32_10_t state;
  curand_init(7, threadIdx.x, 0, &state);
  const float4 four = curand_normal4(&state);
  atomicAdd(&sums[0], four.x + four.y + four.z + four.w);
  atomicAdd(&sums[1], four.x * four.x + four.y * four.y + four.z * four.z + four.w * four.w);
}
int main() {
  float *d;
  const int n = 4096;
  cudaMalloc(&d, n * sizeof(float));
  curandGenerator_t generator;
  if (curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_DEFAULT) != CURAND_STATUS_SUCCESS) return 1;
  curandSetPseudoRandomGeneratorSeed(generator, 1234ULL);
  curandGenerateUniform(generator, d, n);
  std::vector<float> h(n), again(n);
  cudaMemcpy(h.data(), d, n * sizeof(float), cudaMemcpyDeviceToHost);
  printf("first of seed 1234: %.6f %.6f\n", h[0], h[1]);
  curandGenerator_t host;
  curandCreateGeneratorHost(&host, CURAND_RNG_PSEUDO_DEFAULT);
  curandSetPseudoRandomGeneratorSeed(host, 1234ULL);
  curandGenerateUniform(host, again.data(), n);
  printf("host %d of 1\n", h == again);
  double mean = 0, square = 0;
  for (const float x : h) mean += x / n;
  curandGenerateNormal(generator, d, n, 5.0f, 2.0f);
  cudaMemcpy(h.data(), d, n * sizeof(float), cudaMemcpyDeviceToHost);
  double center = 0;
  for (const float x : h) center += x / n;
  for (const float x : h) square += (x - center) * (x - center) / n;
  printf("uniform and normal: %d %d %d\n", fabs(mean - 0.5) < 0.02, fabs(center - 5) < 0.15, fabs(square - 4) < 0.4);
  curandDestroyGenerator(generator);
  curandDestroyGenerator(host);

  curandState *states;
  unsigned *hits, count = 0;
  cudaMalloc(&states, 256 * sizeof(curandState));
  cudaMalloc(&hits, sizeof count);
  cudaMemset(hits, 0, sizeof count);
  begin<<<4, 64>>>(states, 99);
  inside<<<4, 64>>>(states, hits, 50);
  inside<<<4, 64>>>(states, hits, 50);
  cudaMemcpy(&count, hits, sizeof count, cudaMemcpyDeviceToHost);
  cudaMemset(d, 0, 2 * sizeof(float));
  normals<<<1, 128>>>(d);
  cudaMemcpy(h.data(), d, 2 * sizeof(float), cudaMemcpyDeviceToHost);
  printf("pi %d\n", fabs(4.0 * count / (256 * 100) - M_PI) < 0.05 && fabs(h[0]) < 100 && fabs(h[1] / 512 - 1) < 0.2);
  cudaFree(states);
  cudaFree(hits);
  cudaFree(d);
}
