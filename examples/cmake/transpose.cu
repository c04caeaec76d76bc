#include "common/kernel/kernel.hpp"
#include "transpose.hpp"

namespace {

constexpr int kSize = 64, kTile = 32;

// A warp reads a row and writes a column: 32 sectors a request.
__global__ void transpose_naive(const float* input, float* output) {
  const int x = blockIdx.x * kTile + threadIdx.x, y = blockIdx.y * kTile + threadIdx.y;
  output[x * kSize + y] = input[y * kSize + x];
}

// The tile is turned in shared memory, whose rows are padded so that a column lies on 32 banks.
__global__ void transpose_tiled(const float* input, float* output) {
  __shared__ float tile[kTile][kTile + 1];
  const int left = blockIdx.x * kTile, top = blockIdx.y * kTile;
  tile[threadIdx.y][threadIdx.x] = input[(top + threadIdx.y) * kSize + left + threadIdx.x];
  __syncthreads();
  output[(left + threadIdx.y) * kSize + top + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}

}  // namespace

void transpose(const float* input, float* output, bool tiled) {
  convladder::launch(tiled ? transpose_tiled : transpose_naive, dim3(kSize / kTile, kSize / kTile), dim3(kTile, kTile),
                     0, nullptr)(input, output);
}
