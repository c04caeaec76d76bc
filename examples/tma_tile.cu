// A tile by TMA: one thread asks for a box of an image, and the hardware brings it to shared memory.
//
// The idea: a convolution's tile needs a halo, and at the image's borders the halo lies outside. Ordinary loads need an
// address for each thread and a branch for each border. TMA is told once what the image is; then one instruction names
// a box by its first corner. What lies outside of the image comes as zeros: zero padding costs nothing. Here each block
// adds up 3 x 3 pixels for each of its 32 x 8 outputs.
//
//   1. The host describes the image to TMA: its type, its sizes and strides, and the size of the box.
//   2. One thread makes an mbarrier that one arrival ends, and makes it visible to TMA.
//   3. It says how many bytes will come, which is the arrival, and asks for the box. The first column must be a
//      multiple of 16 bytes: so the halo is 4 pixels wide to the left, of which 1 is needed.
//   4. All threads wait for phase 0 of the mbarrier. Then all of the box is there, zeros included.
//   5. Each thread adds up its window. No thread asks where the border is.
//
// Build and run it, on a GPU of compute capability 9.0:
//     nvcc -std=c++17 -arch=sm_90a tma_tile.cu -o tma_tile && ./tma_tile
// In the simulator, on any machine:
//     ./lab sim examples/tma_tile.cu
//
// Try it: leave out the wait of step 4. The simulator names the line that reads what may not be there yet.
#include <cstdio>

#include "../common/kernel/hopper.hpp"  // all that it needs: copy it, too
using namespace convladder;

constexpr int kWidth = 100, kHeight = 50;          // of the image: no tile divides it
constexpr int kTileX = 32, kTileY = 8, kHalo = 4;  // 4 floats are 16 bytes
constexpr int kBoxX = kTileX + 2 * kHalo, kBoxY = kTileY + 2;
constexpr int kBoxBytes = kBoxX * kBoxY * sizeof(float);

__global__ void sums_of_windows(const __grid_constant__ TensorMap image, float* sums) {
  float* const box = dynamic_shared_1024<float>();  // [kBoxY][kBoxX]
  __shared__ Mbarrier come;
  const int tx = threadIdx.x, ty = threadIdx.y, x = blockIdx.x * kTileX + tx, y = blockIdx.y * kTileY + ty;
  if (tx == 0 && ty == 0) {
    // 2.
    mbarrier_init(&come, 1);
    fence_mbarrier_init();
    // 3.
    mbarrier_expect(&come, kBoxBytes);
    tensor_load(box, image, &come, int(blockIdx.x) * kTileX - kHalo, int(blockIdx.y) * kTileY - 1);
  }
  __syncthreads();
  // 4.
  mbarrier_wait(&come, 0);
  // 5.
  float sum = 0;
  for (int r = 0; r < 3; ++r)
    for (int s = 0; s < 3; ++s) sum += box[(ty + r) * kBoxX + tx + s + kHalo - 1];
  if (x < kWidth && y < kHeight) sums[y * kWidth + x] = sum;
}

int main() {
  float *image, *sums;
  if (cudaMallocManaged(&image, kWidth * kHeight * sizeof(float)) ||
      cudaMallocManaged(&sums, kWidth * kHeight * sizeof(float)))
    return printf("wrong: %s\n", cudaGetErrorString(cudaGetLastError())), 1;
  for (int i = 0; i < kWidth * kHeight; ++i) image[i] = float(i * 7 % 23 - 11);

  // 1. Innermost dimension first: size, bytes from one index to the next, elements of the box.
  TensorMap map;
  if (encode_tensor_map(&map, image,
                        {TensorElement::fp32,
                         Swizzle::none,
                         2,
                         {{kWidth, sizeof(float), kBoxX}, {kHeight, kWidth * sizeof(float), kBoxY}}}))
    return printf("wrong: the driver refuses the tensor map\n"), 1;
  const dim3 grid((kWidth + kTileX - 1) / kTileX, (kHeight + kTileY - 1) / kTileY), block(kTileX, kTileY);
  sums_of_windows<<<grid, block, kBoxBytes>>>(map, sums);
  cudaDeviceSynchronize();
  if (const cudaError_t error = cudaGetLastError()) return printf("wrong: %s\n", cudaGetErrorString(error)), 1;

  for (int y = 0; y < kHeight; ++y)
    for (int x = 0; x < kWidth; ++x) {
      float want = 0;
      for (int v = y - 1; v <= y + 1; ++v)
        for (int u = x - 1; u <= x + 1; ++u)
          if (u >= 0 && u < kWidth && v >= 0 && v < kHeight) want += image[v * kWidth + u];
      if (sums[y * kWidth + x] != want)
        return printf("wrong: the sum at row %d, column %d is %g, not %g\n", y, x, sums[y * kWidth + x], want), 1;
    }
  printf("%u blocks, each with one request of %d x %d pixels, %d bytes; no thread asked where the border is\n",
         grid.x * grid.y, kBoxX, kBoxY, kBoxBytes);
  printf("right\n");
  cudaFree(image);
  cudaFree(sums);
}
