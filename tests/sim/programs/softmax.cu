// > rows sum to 1
#include <cfloat>
#include <cmath>
#include <cstdio>
#include <vector>
#define FULL 0xffffffff
__inline__ __device__ float warpMax(float v) {
  for (int offset = warpSize / 2; offset > 0; offset /= 2) v = fmaxf(v, __shfl_down_sync(FULL, v, offset));
  return __shfl_sync(FULL, v, 0);
}
__inline__ __device__ float warpSum(float v) {
#pragma unroll
  for (int mask = 16; mask > 0; mask >>= 1) v += __shfl_xor_sync(FULL, v, mask);
  return v;
}
__global__ void softmax(const float* __restrict__ in, float* __restrict__ out, int rows, int cols) {
  const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x & 31;
  if (row >= rows) return;
  float top = -FLT_MAX, sum = 0;
  for (int i = lane; i < cols; i += 32) top = max(top, __ldg(&in[row * cols + i]));
  top = warpMax(top);
  for (int i = lane; i < cols; i += 32) sum += __expf(in[row * cols + i] - top);
  sum = warpSum(sum);
  for (int i = lane; i < cols; i += 32) out[row * cols + i] = expf(in[row * cols + i] - top) / sum;
}
int main() {
  const int rows = 10, cols = 77;
  std::vector<float> h(rows * cols), r(rows * cols);
  for (size_t i = 0; i < h.size(); ++i) h[i] = std::sin(float(i)) * 5;
  float *in, *out;
  cudaMalloc(&in, h.size() * 4);
  cudaMalloc(&out, h.size() * 4);
  cudaStream_t s;
  cudaStreamCreate(&s);
  cudaMemcpyAsync(in, h.data(), h.size() * 4, cudaMemcpyHostToDevice, s);
  softmax<<<(rows + 3) / 4, 128, 0, s>>>(in, out, rows, cols);
  cudaMemcpyAsync(r.data(), out, h.size() * 4, cudaMemcpyDeviceToHost, s);
  cudaStreamSynchronize(s);
  cudaStreamDestroy(s);
  double worst = 0;
  for (int i = 0; i < rows; ++i) {
    double sum = 0;
    for (int j = 0; j < cols; ++j) sum += r[i * cols + j];
    worst = std::fmax(worst, std::fabs(sum - 1));
  }
  printf("%s\n", worst < 1e-5 ? "rows sum to 1" : "wrong");
  cudaFree(in);
  cudaFree(out);
}
