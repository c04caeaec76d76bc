// A tile of Winograd's algorithm by one warp: 16 products of matrices instead of 36.
//
// The idea: F(2x2, 3x3) makes 2 x 2 outputs from 4 x 4 inputs with 16 multiplications, where the direct sum has 36. At
// each of the 16 positions of a transformed tile, the sum over channels is a product of matrices: filters x channels
// times channels x tiles. With 16 of each it is one product of a warp on Tensor Cores. Directly, the same outputs take
// 36: 9 taps, and 64 outputs instead of 16 tiles.
//
//   1. Filters: U = G g G', 4 x 4 for each filter and channel, shared by the lanes. A network does it once.
//   2. Inputs: V = B' d B, of the 4 x 4 inputs around each 2 x 2 outputs. Neighbouring tiles share inputs.
//   3. At each position M = U V, 16 x 16 x 16 halves, summed in float. The warp meets before it and after it.
//   4. Outputs: Y = A' M A, four for each filter and tile. Numbers are small here, so all steps are exact.
//
// Build and run it, on a GPU of compute capability 8.0 or later:
//     nvcc -std=c++17 -arch=sm_80 warp_winograd.cu -o warp_winograd && ./warp_winograd
// In the simulator, on any machine:
//     ./lab sim examples/warp_winograd.cu
//
// Try it: leave out the __syncwarp() before step 3. The simulator names both lines of the race.
#include <cuda_fp16.h>
#include <mma.h>

#include <cstdio>
using namespace nvcuda;

constexpr int kFilters = 16, kChannels = 16, kTiles = 16;  // 4 x 4 tiles of 2 x 2 outputs
constexpr int kIn = 10, kOut = 8;                          // sides of the input and of the output

// In place, for numbers that are `d` apart: B' of 4 numbers, G from 3 to 4, A' from 4 to 2.
__device__ void transform_input(float* x, int d) {
  const float a = x[0], b = x[d], c = x[2 * d], e = x[3 * d];
  x[0] = a - c, x[d] = b + c, x[2 * d] = c - b, x[3 * d] = b - e;
}
__device__ void transform_filter(float* x, int d) {
  const float a = x[0], b = x[d], c = x[2 * d];
  x[d] = (a + b + c) / 2, x[2 * d] = (a - b + c) / 2, x[3 * d] = c;
}
__device__ void transform_output(float* x, int d) {
  const float a = x[0], b = x[d], c = x[2 * d], e = x[3 * d];
  x[0] = a + b + c, x[d] = b - c - e;
}

__global__ void convolve(const float* input,    // [channel][10][10]
                         const float* filters,  // [filter][channel][3][3]
                         float* output) {       // [filter][8][8]
  __shared__ __align__(32) half u[16][kFilters * kChannels], v[16][kChannels * kTiles];
  __shared__ __align__(32) float m[16][kFilters * kTiles];
  const int lane = threadIdx.x;
  float x[16];
  // 1.
  for (int i = lane; i < kFilters * kChannels; i += 32) {
    for (int p = 0; p < 9; ++p) x[p / 3 * 4 + p % 3] = filters[i * 9 + p];
    for (int r = 0; r < 3; ++r) transform_filter(x + 4 * r, 1);
    for (int s = 0; s < 4; ++s) transform_filter(x + s, 4);
    for (int p = 0; p < 16; ++p) u[p][i] = __float2half(x[p]);
  }
  // 2.
  for (int i = lane; i < kChannels * kTiles; i += 32) {
    const int channel = i / kTiles, top = i % kTiles / 4 * 2, left = i % 4 * 2;
    for (int p = 0; p < 16; ++p) x[p] = input[(channel * kIn + top + p / 4) * kIn + left + p % 4];
    for (int r = 0; r < 4; ++r) transform_input(x + 4 * r, 1);
    for (int s = 0; s < 4; ++s) transform_input(x + s, 4);
    for (int p = 0; p < 16; ++p) v[p][i] = __float2half(x[p]);
  }
  __syncwarp();
  // 3.
  for (int p = 0; p < 16; ++p) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> of_u;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> of_v;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums;
    wmma::fill_fragment(sums, 0.0f);
    wmma::load_matrix_sync(of_u, u[p], kChannels);
    wmma::load_matrix_sync(of_v, v[p], kTiles);
    wmma::mma_sync(sums, of_u, of_v, sums);
    wmma::store_matrix_sync(m[p], sums, kTiles, wmma::mem_row_major);
  }
  __syncwarp();
  // 4.
  for (int i = lane; i < kFilters * kTiles; i += 32) {
    const int filter = i / kTiles, top = i % kTiles / 4 * 2, left = i % 4 * 2;
    for (int p = 0; p < 16; ++p) x[p] = m[p][i];
    for (int r = 0; r < 4; ++r) transform_output(x + 4 * r, 1);
    for (int s = 0; s < 2; ++s) transform_output(x + s, 4);
    for (int p = 0; p < 4; ++p) output[(filter * kOut + top + p / 2) * kOut + left + p % 2] = x[p / 2 * 4 + p % 2];
  }
}

int main() {
  float *input, *filters, *output;
  if (cudaMallocManaged(&input, kChannels * kIn * kIn * sizeof(float)) ||
      cudaMallocManaged(&filters, kFilters * kChannels * 9 * sizeof(float)) ||
      cudaMallocManaged(&output, kFilters * kOut * kOut * sizeof(float)))
    return printf("wrong: %s\n", cudaGetErrorString(cudaGetLastError())), 1;
  for (int i = 0; i < kChannels * kIn * kIn; ++i) input[i] = float(i * 7 % 17 - 8);
  for (int i = 0; i < kFilters * kChannels * 9; ++i) filters[i] = float(i * 5 % 9 - 4);
  convolve<<<1, 32>>>(input, filters, output);
  cudaDeviceSynchronize();
  if (const cudaError_t error = cudaGetLastError()) return printf("wrong: %s\n", cudaGetErrorString(error)), 1;

  for (int i = 0; i < kFilters * kOut * kOut; ++i) {
    const int filter = i / (kOut * kOut), y = i / kOut % kOut, left = i % kOut;
    float want = 0;
    for (int c = 0; c < kChannels; ++c)
      for (int p = 0; p < 9; ++p)
        want += input[(c * kIn + y + p / 3) * kIn + left + p % 3] * filters[(filter * kChannels + c) * 9 + p];
    if (output[i] != want)
      return printf("wrong: filter %d, row %d, column %d is %g, not %g\n", filter, y, left, output[i], want), 1;
  }
  printf("%d outputs of %d channels: 16 products of 16 x 16 x 16 instead of 36, 2.25 times fewer\n",
         kFilters * kOut * kOut, kChannels);
  printf("right\n");
  cudaFree(input);
  cudaFree(filters);
  cudaFree(output);
}
