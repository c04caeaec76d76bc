// Double buffering by cp.async: while a tile is used, the next one is on its way.
//
// The idea: a copy by cp.async goes from global to shared memory without a register, and the thread goes on. With two
// buffers the block starts the copy of the next tile before it uses the present one. The time of the memory hides
// behind that of the arithmetic. Here a block multiplies a matrix of 128 rows by a vector: the tiles are read along
// rows, as global memory wants it, and used with a row for each thread.
//
//   1. Each thread starts eight copies of 16 bytes of the first tile, and commits them as its group.
//   2. For each tile: it starts and commits the next one, into the other buffer. After the last there is none; an empty
//      group keeps the count.
//   3. It waits until all of its groups but the newest are complete. Then its own part of the present tile is there,
//      and after the barrier that of the others.
//   4. It adds up its row. Rows are 144 bytes apart: 16 bytes of eight rows meet all 32 banks.
//   5. A second barrier: only then may the next round's copies overwrite this buffer.
//
// Build and run it, on a GPU of compute capability 8.0 or later:
//     nvcc -std=c++17 -arch=sm_80 cp_async.cu -o cp_async && ./cp_async
// In the simulator, on any machine:
//     ./lab sim examples/cp_async.cu
//
// Try it: leave out the wait of step 3, or a barrier. The simulator names the lines that race.
#include <cuda_pipeline.h>

#include <cstdio>

constexpr int kRows = 128, kColumns = 256;  // of the matrix; a row for each thread
constexpr int kDepth = 32, kPitch = 36;     // columns of a tile; floats from one row of it to the next
constexpr int kTiles = kColumns / kDepth;
constexpr int kQuads = kDepth / 4;  // chunks of 16 bytes in a row of a tile

// Starts the copy of a tile: neighbouring threads copy neighbouring chunks.
__device__ __forceinline__ void start_copy(float (&to)[kRows][kPitch], const float* matrix, int tile) {
  for (int i = threadIdx.x; i < kRows * kQuads; i += kRows) {
    const int row = i / kQuads, column = i % kQuads * 4;
    __pipeline_memcpy_async(&to[row][column], matrix + row * kColumns + tile * kDepth + column, 16);
  }
}

__global__ void multiply(const float* matrix, const float* vector, float* product) {
  __shared__ __align__(16) float tiles[2][kRows][kPitch];
  const int row = threadIdx.x;
  // 1.
  start_copy(tiles[0], matrix, 0);
  __pipeline_commit();
  float sum = 0;
  for (int tile = 0; tile < kTiles; ++tile) {
    // 2.
    if (tile + 1 < kTiles) start_copy(tiles[(tile + 1) % 2], matrix, tile + 1);
    __pipeline_commit();
    // 3.
    __pipeline_wait_prior(1);
    __syncthreads();
    // 4.
    for (int k = 0; k < kDepth; k += 4) {
      const float4 of_row = *reinterpret_cast<const float4*>(&tiles[tile % 2][row][k]);
      const float4 of_vector = *reinterpret_cast<const float4*>(vector + tile * kDepth + k);
      sum += of_row.x * of_vector.x + of_row.y * of_vector.y + of_row.z * of_vector.z + of_row.w * of_vector.w;
    }
    // 5.
    __syncthreads();
  }
  product[row] = sum;
}

int main() {
  float *matrix, *vector, *product;
  if (cudaMallocManaged(&matrix, kRows * kColumns * sizeof(float)) ||
      cudaMallocManaged(&vector, kColumns * sizeof(float)) || cudaMallocManaged(&product, kRows * sizeof(float)))
    return printf("wrong: %s\n", cudaGetErrorString(cudaGetLastError())), 1;
  for (int i = 0; i < kRows * kColumns; ++i) matrix[i] = float(i * 7 % 19 - 9);
  for (int i = 0; i < kColumns; ++i) vector[i] = float(i * 5 % 13 - 6);
  multiply<<<1, kRows>>>(matrix, vector, product);
  cudaDeviceSynchronize();
  if (const cudaError_t error = cudaGetLastError()) return printf("wrong: %s\n", cudaGetErrorString(error)), 1;

  for (int row = 0; row < kRows; ++row) {
    float want = 0;
    for (int k = 0; k < kColumns; ++k) want += matrix[row * kColumns + k] * vector[k];
    if (product[row] != want) return printf("wrong: row %d is %g, not %g\n", row, product[row], want), 1;
  }
  printf("round  uses tile  in buffer  copies tile  into buffer\n");
  printf("    -          -          -            0            0\n");
  for (int tile = 0; tile < 3; ++tile)
    printf("%5d  %9d  %9d  %11d  %11d\n", tile, tile, tile % 2, tile + 1, (tile + 1) % 2);
  printf("%d tiles of %d bytes went through two buffers\n", kTiles, int(kRows * kDepth * sizeof(float)));
  printf("right\n");
  cudaFree(matrix);
  cudaFree(vector);
  cudaFree(product);
}
