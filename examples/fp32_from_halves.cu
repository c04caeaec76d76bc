// A product in fp32 from halves: each number becomes two halves, and three products on Tensor Cores are enough.
//
// The idea: Tensor Cores multiply halves exactly and sum in fp32; what loses digits is the rounding of the factors to
// 11 bits. So keep the rest of each factor as a second half: a = high + low / 2048, together 22 bits of a float's 24.
// Of the four products of such pairs, low x low counts for no more than the bits that are left out anyway.
//
//   1. The warp splits 16 x 64 and 64 x 16 floats. The rest is multiplied by 2048 before it is rounded: it would be
//      among the smallest halves otherwise, which have fewer bits.
//   2. high x high goes into one sum, high x low and low x high into another, which is so much smaller.
//   3. At the end the second sum is divided by 2048 and added to the first.
//   4. The host compares with sums in double: halves alone, three products, and an ordinary loop of fp32.
//
// Build and run it, on a GPU of compute capability 8.0 or later:
//     nvcc -std=c++17 -arch=sm_80 fp32_from_halves.cu -o fp32_from_halves && ./fp32_from_halves
// In the simulator, on any machine:
//     ./lab sim examples/fp32_from_halves.cu
//
// Try it: set kScale to 1, and see what it is for; or leave out the __syncwarp() before step 2.
#include <cuda_fp16.h>
#include <mma.h>

#include <cmath>
#include <cstdio>
using namespace nvcuda;

constexpr int kSide = 16, kDepth = 64, kSize = kSide * kDepth;
constexpr float kScale = 2048;  // 2^11: a half has 11 bits

__global__ void multiply(const float* a, const float* b, float* halves_alone, float* three_products) {
  __shared__ __align__(32) half a_high[kSize], a_low[kSize], b_high[kSize], b_low[kSize];  // [16][64], [64][16]
  // 1.
  for (int i = threadIdx.x; i < kSize; i += 32) {
    a_high[i] = __float2half(a[i]);
    a_low[i] = __float2half((a[i] - __half2float(a_high[i])) * kScale);
    b_high[i] = __float2half(b[i]);
    b_low[i] = __float2half((b[i] - __half2float(b_high[i])) * kScale);
  }
  __syncwarp();
  // 2.
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> high_a, low_a;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> high_b, low_b;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum, small_sum;
  wmma::fill_fragment(sum, 0.0f);
  wmma::fill_fragment(small_sum, 0.0f);
  for (int k = 0; k < kDepth; k += 16) {
    wmma::load_matrix_sync(high_a, a_high + k, kDepth);
    wmma::load_matrix_sync(low_a, a_low + k, kDepth);
    wmma::load_matrix_sync(high_b, b_high + k * kSide, kSide);
    wmma::load_matrix_sync(low_b, b_low + k * kSide, kSide);
    wmma::mma_sync(sum, high_a, high_b, sum);
    wmma::mma_sync(small_sum, high_a, low_b, small_sum);
    wmma::mma_sync(small_sum, low_a, high_b, small_sum);
  }
  wmma::store_matrix_sync(halves_alone, sum, kSide, wmma::mem_row_major);
  // 3.
  for (int i = 0; i < sum.num_elements; ++i) sum.x[i] += small_sum.x[i] / kScale;
  wmma::store_matrix_sync(three_products, sum, kSide, wmma::mem_row_major);
}

int main() {
  float *a, *b, *halves_alone, *three_products;
  constexpr int kSums = kSide * kSide;
  if (cudaMallocManaged(&a, kSize * sizeof(float)) || cudaMallocManaged(&b, kSize * sizeof(float)) ||
      cudaMallocManaged(&halves_alone, kSums * sizeof(float)) ||
      cudaMallocManaged(&three_products, kSums * sizeof(float)))
    return printf("wrong: %s\n", cudaGetErrorString(cudaGetLastError())), 1;
  for (int i = 0; i < kSize; ++i) {
    a[i] = 0.01f * std::sin(0.37f * i);
    b[i] = std::cos(0.73f * i);
  }
  multiply<<<1, 32>>>(a, b, halves_alone, three_products);
  cudaDeviceSynchronize();
  if (const cudaError_t error = cudaGetLastError()) return printf("wrong: %s\n", cudaGetErrorString(error)), 1;

  // 4. Errors relative to the sum of the products' sizes: the worst of all.
  double of_halves = 0, of_three = 0, of_fp32 = 0;
  for (int i = 0; i < kSums; ++i) {
    double exact = 0, sizes = 0;
    float in_fp32 = 0;
    for (int k = 0; k < kDepth; ++k) {
      const float x = a[i / kSide * kDepth + k], y = b[k * kSide + i % kSide];
      exact += double(x) * y;
      sizes += std::fabs(double(x) * y);
      in_fp32 += x * y;
    }
    of_halves = std::fmax(of_halves, std::fabs(halves_alone[i] - exact) / sizes);
    of_three = std::fmax(of_three, std::fabs(three_products[i] - exact) / sizes);
    of_fp32 = std::fmax(of_fp32, std::fabs(in_fp32 - exact) / sizes);
  }
  printf("worst error: %.1e of halves alone, %.1e of three products, %.1e of fp32 on the host\n", of_halves, of_three,
         of_fp32);
  if (!(of_three < 5e-7)) return printf("wrong: three products should be about as exact as fp32, below 5e-7\n"), 1;
  printf("right\n");
  cudaFree(a);
  cudaFree(b);
  cudaFree(halves_alone);
  cudaFree(three_products);
}
