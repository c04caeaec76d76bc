// One wgmma: four warps multiply 64 x 16 halves by 16 x 64 halves, straight from shared memory.
//
// The idea: wgmma is an instruction of a warpgroup, four warps. Both matrices stay in shared memory; a descriptor of 64
// bits says where. It runs while the warps go on, so it must be fenced, committed and waited for. What makes it hard to
// begin with is the layout: of operands in shared memory, and of sums in registers. Both stand here, without a swizzle.
//
//   1. The operands lie in core matrices of 8 rows of 16 bytes, 128 bytes each: element (row, k) is element (row % 8,
//      k % 8) of core matrix (row / 8, k / 8). Here that of the next 8 k follows after 128 bytes, that of the next 8
//      rows after 256. B lies as A does, with its columns for rows.
//   2. wgmma reads shared memory through the asynchronous proxy, ordinary stores write through another: each thread
//      makes its stores visible there by a fence, and then all meet.
//   3. A fence orders earlier accesses to the registers of the sums; then comes the wgmma, its commit, and the wait.
//   4. Warp w has rows 16 w to 16 w + 15. A lane's sum 4 j + i is that of row lane / 4 + 8 (i / 2) among these, column
//      8 j + 2 (lane % 4) + i % 2.
//
// Build and run it, on a GPU of compute capability 9.0:
//     nvcc -std=c++17 -arch=sm_90a wgmma.cu -o wgmma && ./wgmma
// In the simulator, on any machine:
//     ./lab sim examples/wgmma.cu
//
// Try it: leave out the wait of step 3, or the fence of step 2. The simulator names the line.
#include <cuda_fp16.h>

#include <cstdio>

#include "../common/kernel/hopper.hpp"  // all that it needs: copy it, too
using namespace convladder;

constexpr int kRows = 64, kColumns = 64, kDepth = 16;  // of A, of B, of the sum
constexpr int kThreads = 128;
constexpr int kAcross = 128, kDown = 256;  // bytes to the core matrix of the next 8 k, and of the next 8 rows

// Where element k of a row begins, in halves.
__host__ __device__ constexpr int offset_of(int row, int k) {
  return row / 8 * (kDown / 2) + k / 8 * (kAcross / 2) + row % 8 * 8 + k % 8;
}

__global__ void multiply(const half* a, const half* b, float* d) {  // [row][k], [column][k], [row][column]
  half* const shared_a = dynamic_shared_1024<half>();
  half* const shared_b = shared_a + kRows * kDepth;
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  // 1.
  for (int i = thread; i < kRows * kDepth; i += kThreads) {
    shared_a[offset_of(i / kDepth, i % kDepth)] = a[i];
    shared_b[offset_of(i / kDepth, i % kDepth)] = b[i];
  }
  // 2.
  fence_async_proxy();
  __syncthreads();
  // 3.
  float sums[kColumns / 2];
  wgmma_fence();
  wgmma<kColumns>(sums, plain_descriptor(shared_a, kAcross, kDown), plain_descriptor(shared_b, kAcross, kDown), false);
  wgmma_commit();
  wgmma_wait<0>();
  pin(sums);
  // 4.
#pragma unroll
  for (int n = 0; n < kColumns / 2; ++n) {
    const int j = n / 4, i = n % 4;
    d[(16 * warp + lane / 4 + 8 * (i / 2)) * kColumns + 8 * j + 2 * (lane % 4) + i % 2] = sums[n];
  }
}

int main() {
  half *a, *b;
  float* d;
  if (cudaMallocManaged(&a, kRows * kDepth * sizeof(half)) || cudaMallocManaged(&b, kColumns * kDepth * sizeof(half)) ||
      cudaMallocManaged(&d, kRows * kColumns * sizeof(float)))
    return printf("wrong: %s\n", cudaGetErrorString(cudaGetLastError())), 1;
  for (int i = 0; i < kRows * kDepth; ++i) a[i] = __float2half(float(i * 7 % 13 - 6));
  for (int i = 0; i < kColumns * kDepth; ++i) b[i] = __float2half(float(i * 5 % 11 - 5));
  multiply<<<1, kThreads, (kRows + kColumns) * kDepth * sizeof(half)>>>(a, b, d);
  cudaDeviceSynchronize();
  if (const cudaError_t error = cudaGetLastError()) return printf("wrong: %s\n", cudaGetErrorString(error)), 1;

  for (int row = 0; row < kRows; ++row)
    for (int column = 0; column < kColumns; ++column) {
      float want = 0;
      for (int k = 0; k < kDepth; ++k) want += __half2float(a[row * kDepth + k]) * __half2float(b[column * kDepth + k]);
      if (d[row * kColumns + column] != want)
        return printf("wrong: row %d, column %d is %g, not %g\n", row, column, d[row * kColumns + column], want), 1;
    }
  printf("one instruction: %d multiplications by %d threads\n", kRows * kColumns * kDepth, kThreads);
  printf("in shared memory, A's element (row, k) lies at byte: (0, 1) %d, (1, 0) %d, (0, 8) %d, (8, 0) %d, (9, 9) %d\n",
         2 * offset_of(0, 1), 2 * offset_of(1, 0), 2 * offset_of(0, 8), 2 * offset_of(8, 0), 2 * offset_of(9, 9));
  printf("thread 37, lane 5 of warp 1, has sums of rows 17 and 25, columns 2 and 3 of each 8\n");
  printf("right\n");
  cudaFree(a);
  cudaFree(b);
  cudaFree(d);
}
