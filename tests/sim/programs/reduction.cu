// > int 4498500, double 4.4985e+06
#include <iostream>
#include <numeric>
#include <vector>

template <typename T, unsigned int blockSize>
__global__ void __launch_bounds__(256) reduce(const T* __restrict__ in, T* out, unsigned int n) {
  extern __shared__ __align__(sizeof(T)) unsigned char raw[];
  T* sdata = reinterpret_cast<T*>(raw);
  unsigned int tid = threadIdx.x;
  unsigned int i = blockIdx.x * (blockSize * 2) + tid;
  T sum = 0;
  if (i < n) sum += in[i];
  if (i + blockSize < n) sum += in[i + blockSize];
  sdata[tid] = sum;
  __syncthreads();
#pragma unroll
  for (unsigned int s = blockSize / 2; s > 0; s >>= 1) {
    if (tid < s) sdata[tid] += sdata[tid + s];
    __syncthreads();
  }
  if (tid == 0) out[blockIdx.x] = sdata[0];
}

template <typename T>
T run(const std::vector<T>& data) {
  constexpr unsigned int kBlock = 128;
  const unsigned int n = data.size(), blocks = (n + 2 * kBlock - 1) / (2 * kBlock);
  T *in = nullptr, *out = NULL;
  cudaMalloc(&in, n * sizeof(T));
  cudaMalloc(&out, blocks * sizeof(T));
  cudaMemcpy(in, data.data(), n * sizeof(T), cudaMemcpyHostToDevice);
  reduce<T, kBlock><<<dim3(blocks, 1, 1), kBlock, kBlock * sizeof(T)>>>(in, out, n);
  std::vector<T> partial(blocks);
  cudaMemcpy(partial.data(), out, blocks * sizeof(T), cudaMemcpyDeviceToHost);
  cudaFree(in);
  cudaFree(out);
  return std::accumulate(partial.begin(), partial.end(), T(0));
}

int main() {
  std::vector<int> ints(3000);
  std::iota(ints.begin(), ints.end(), 0);
  std::vector<double> doubles(ints.begin(), ints.end());
  std::cout << "int " << run(ints) << ", double " << run(doubles) << std::endl;
  return cudaGetLastError() == cudaSuccess ? 0 : 1;
}
