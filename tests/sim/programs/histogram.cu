// > total 4574, missed 426
#include <cstdio>
#include <vector>

#include "bins.cuh"

__device__ unsigned int overflow = 0;

__global__ void histogram(const unsigned char *data, int n, unsigned int *bins) {
  __shared__ unsigned int local[BINS];
  for (int i = threadIdx.x; i < BINS; i += blockDim.x) local[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    if (data[i] < BINS) atomicAdd(&local[data[i]], 1);
    else atomicAdd(&overflow, 1u);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < BINS; i += blockDim.x) atomicAdd(&bins[i], local[i]);
}

int main() {
  std::vector<unsigned char> data(5000);
  for (size_t i = 0; i < data.size(); ++i) data[i] = i % 70;
  unsigned char *d_data;
  unsigned int *d_bins, bins[BINS], missed;
  cudaMalloc(&d_data, data.size());
  cudaMalloc(&d_bins, sizeof bins);
  cudaMemcpy(d_data, data.data(), data.size(), cudaMemcpyHostToDevice);
  cudaMemset(d_bins, 0, sizeof bins);
  histogram<<<4, 128>>>(d_data, (int)data.size(), d_bins);
  cudaMemcpy(bins, d_bins, sizeof bins, cudaMemcpyDeviceToHost);
  cudaMemcpyFromSymbol(&missed, overflow, sizeof missed);
  unsigned int total = 0;
  for (unsigned int bin : bins) total += bin;
  printf("total %u, missed %u\n", total, missed);
  cudaFree(d_data);
  cudaFree(d_bins);
}
