// An epilogue by stmatrix: sums leave the registers as whole rows.
//
// The idea: after a matrix instruction a lane holds pairs of sums, spread over rows. Stored as they are held, a warp's
// request has 4 bytes of a lane, and 16 bytes of each of eight rows: half of each sector. stmatrix takes the registers
// as they are, and writes rows of 16 bytes to shared memory. From there each lane stores 16 bytes: the warp's request
// has whole rows. The same product is stored both ways here.
//
//   1. One warp multiplies 16 x 16 by 16 x 16 halves, in two instructions of 8 columns. Lane l holds of each: columns
//      2 (l % 4) and the next, of rows l / 4 and l / 4 + 8.
//   2. It rounds each pair to two halves: a register, just as stmatrix takes it.
//   3. Plain: four stores of 4 bytes a lane.
//   4. By stmatrix: lane l gives the address of a row of 16 bytes, row l % 8 of matrix l / 8 of four. Rows are 48 bytes
//      apart, so that eight of them meet all 32 banks.
//   5. Other lanes wrote what a lane stores: the warp meets. Then each lane stores half a row.
//
// Build and run it, on a GPU of compute capability 9.0:
//     nvcc -std=c++17 -arch=sm_90a stmatrix_epilogue.cu -o stmatrix_epilogue && ./stmatrix_epilogue
// In the simulator, on any machine:
//     ./lab sim examples/stmatrix_epilogue.cu
//
// Try it: leave out the __syncwarp() of step 5. The simulator names the race that a GPU may hide.
#include <cuda_fp16.h>

#include <cstdio>
#include <initializer_list>

#include "../common/kernel/mma.hpp"  // all that it needs: copy it, too
using namespace convladder;

constexpr int kSide = 16, kPitch = 24;  // halves from one row in shared memory to the next

// 1., 2. Lane l's pairs: rows l / 4 and l / 4 + 8 of columns 0 to 7, then both of columns 8 to 15.
__device__ __forceinline__ void multiply(const half* a, const half* b, unsigned (&pairs)[4]) {  // [row][k], [column][k]
  const int lane = threadIdx.x;
  unsigned of_a[4], of_b[2];
  for (int i = 0; i < 4; ++i)
    of_a[i] = *reinterpret_cast<const unsigned*>(a + (lane / 4 + i % 2 * 8) * kSide + lane % 4 * 2 + i / 2 * 8);
  for (int half_of_columns = 0; half_of_columns < 2; ++half_of_columns) {
    for (int i = 0; i < 2; ++i)
      of_b[i] = *reinterpret_cast<const unsigned*>(b + (lane / 4 + half_of_columns * 8) * kSide + lane % 4 * 2 + i * 8);
    float sums[4] = {};
    mma_m16n8k16(sums, of_a, of_b);
    for (int i = 0; i < 2; ++i) {
      const half2 pair = __floats2half2_rn(sums[2 * i], sums[2 * i + 1]);
      pairs[half_of_columns * 2 + i] = *reinterpret_cast<const unsigned*>(&pair);
    }
  }
}

__global__ void plain(const half* a, const half* b, half* d) {
  unsigned pairs[4];
  multiply(a, b, pairs);
  // 3.
  const int lane = threadIdx.x;
  for (int i = 0; i < 4; ++i)
    *reinterpret_cast<unsigned*>(d + (lane / 4 + i % 2 * 8) * kSide + lane % 4 * 2 + i / 2 * 8) = pairs[i];
}

__global__ void by_stmatrix(const half* a, const half* b, half* d) {
  __shared__ __align__(16) half tile[kSide * kPitch];
  unsigned pairs[4];
  multiply(a, b, pairs);
  // 4.
  const int row = threadIdx.x % 16, column = threadIdx.x / 16 * 8;
  stmatrix(tile + row * kPitch + column, pairs);
  // 5.
  __syncwarp();
  *reinterpret_cast<uint4*>(d + row * kSide + column) = *reinterpret_cast<const uint4*>(tile + row * kPitch + column);
}

int main() {
  half *a, *b, *d;
  constexpr int kSize = kSide * kSide;
  if (cudaMallocManaged(&a, kSize * sizeof(half)) || cudaMallocManaged(&b, kSize * sizeof(half)) ||
      cudaMallocManaged(&d, kSize * sizeof(half)))
    return printf("wrong: %s\n", cudaGetErrorString(cudaGetLastError())), 1;
  for (int i = 0; i < kSize; ++i) {
    a[i] = __float2half(float(i * 7 % 13 - 6));
    b[i] = __float2half(float(i * 5 % 11 - 5));
  }
  for (const bool with_stmatrix : {false, true}) {
    for (int i = 0; i < kSize; ++i) d[i] = __float2half(-1.5f);  // no product is that
    if (with_stmatrix)
      by_stmatrix<<<1, 32>>>(a, b, d);
    else
      plain<<<1, 32>>>(a, b, d);
    cudaDeviceSynchronize();
    if (const cudaError_t error = cudaGetLastError()) return printf("wrong: %s\n", cudaGetErrorString(error)), 1;
    for (int i = 0; i < kSize; ++i) {
      float want = 0;
      for (int k = 0; k < kSide; ++k)
        want += __half2float(a[i / kSide * kSide + k]) * __half2float(b[i % kSide * kSide + k]);
      if (__half2float(d[i]) != want)
        return printf("wrong: %s, row %d, column %d is %g, not %g\n", with_stmatrix ? "by stmatrix" : "plain",
                      i / kSide, i % kSide, __half2float(d[i]), want),
               1;
    }
  }
  printf(
      "16 x 16 halves: plain, 4 requests of 8 sectors, each half used; by stmatrix, 1 request of 16 whole sectors\n");
  printf("right\n");
  cudaFree(a);
  cudaFree(b);
  cudaFree(d);
}
