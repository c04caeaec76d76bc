// > columns 0 wrong, steps 0 wrong
// A convolution's matrix for a 3 x 3 filter with stride 2 and padding 1, column by column through TMA's im2col mode,
// and every other row and column of the image through element strides.
#include <cuda.h>

#include <cstdint>
#include <cstdio>
#include <vector>

constexpr int kChannels = 32, kWidth = 13, kHeight = 9, kImages = 3;
constexpr int kTaps = 3, kStride = 2, kPadding = 1, kPixels = 16;
constexpr int kColumns = (kWidth + 2 * kPadding - kTaps) / kStride + 1;
constexpr int kRows = (kHeight + 2 * kPadding - kTaps) / kStride + 1;
constexpr int kOutputs = kImages * kRows * kColumns;

__device__ unsigned address_of(const void* shared) { return static_cast<unsigned>(__cvta_generic_to_shared(shared)); }

__device__ void begin(std::uint64_t* barrier, unsigned bytes) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address_of(barrier)) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address_of(barrier)), "r"(bytes)
               : "memory");
}

__device__ void wait(std::uint64_t* barrier) {
  unsigned done;
  do {
    asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;\nselp.b32 %0, 1, 0, p;\n}"
                 : "=r"(done)
                 : "r"(address_of(barrier))
                 : "memory");
  } while (!done);
}

// Block (x, y): outputs x * kPixels and those that follow, for element y of the filter.
__global__ void im2col(const __grid_constant__ CUtensorMap map, unsigned* matrix) {
  __shared__ alignas(128) unsigned column[kPixels][kChannels];
  __shared__ std::uint64_t barrier;
  const int first = blockIdx.x * kPixels, tap = blockIdx.y;
  if (threadIdx.x == 0) {
    begin(&barrier, sizeof column);
    const int w = first % kColumns * kStride - kPadding, h = first / kColumns % kRows * kStride - kPadding;
    const int n = first / (kColumns * kRows);
    const auto s = static_cast<std::uint16_t>(tap % kTaps), r = static_cast<std::uint16_t>(tap / kTaps);
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, "
        "%6}], [%2], {%7, %8};" ::"r"(address_of(column)),
        "l"(&map), "r"(address_of(&barrier)), "r"(0), "r"(w), "r"(h), "r"(n), "h"(s), "h"(r)
        : "memory");
  }
  __syncthreads();
  wait(&barrier);
  for (int i = 0; i < kPixels; ++i)
    matrix[((first + i) * kTaps * kTaps + tap) * kChannels + threadIdx.x] = column[i][threadIdx.x];
}

// Every other row and column of the first image's first half, from row 1 on.
__global__ void sample(const __grid_constant__ CUtensorMap map, unsigned* samples) {
  __shared__ alignas(128) unsigned box[3][4][kChannels];
  __shared__ std::uint64_t barrier;
  if (threadIdx.x == 0) {
    begin(&barrier, sizeof box);
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %3, %4, "
        "%3}], [%2];" ::"r"(address_of(box)),
        "l"(&map), "r"(address_of(&barrier)), "r"(0), "r"(1)
        : "memory");
  }
  __syncthreads();
  wait(&barrier);
  for (int i = 0; i < 12; ++i) samples[i * kChannels + threadIdx.x] = box[i / 4][i % 4][threadIdx.x];
}

int main() {
  void *encode_columns = nullptr, *encode_tiles = nullptr;
  cudaDriverEntryPointQueryResult found;
  cudaGetDriverEntryPointByVersion("cuTensorMapEncodeIm2col", &encode_columns, 12000, cudaEnableDefault, &found);
  if (found != cudaDriverEntryPointSuccess) return 1;
  cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode_tiles, 12000, cudaEnableDefault, &found);

  const int padded = (kOutputs + kPixels - 1) / kPixels * kPixels;
  std::vector<unsigned> image(kImages * kHeight * kWidth * kChannels), got(padded * kTaps * kTaps * kChannels);
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = static_cast<unsigned>(i + 1);
  unsigned *input, *output;
  cudaMalloc(&input, image.size() * sizeof(unsigned));
  cudaMalloc(&output, got.size() * sizeof(unsigned));
  cudaMemcpy(input, image.data(), image.size() * sizeof(unsigned), cudaMemcpyHostToDevice);

  const cuuint64_t size[] = {kChannels, kWidth, kHeight, kImages};
  const cuuint64_t stride[] = {4 * kChannels, 4 * kChannels * kWidth, 4 * kChannels * kWidth * kHeight};
  const int lower[] = {-kPadding, -kPadding}, upper[] = {kPadding - (kTaps - 1), kPadding - (kTaps - 1)};
  const cuuint32_t box[] = {kChannels, 7, 5, 1}, step[] = {1, kStride, kStride, 1};
  CUtensorMap columns{}, tiles{};
  const CUresult made = reinterpret_cast<decltype(&cuTensorMapEncodeIm2col)>(encode_columns)(
      &columns, CU_TENSOR_MAP_DATA_TYPE_UINT32, 4, input, size, stride, lower, upper, kChannels, kPixels, step,
      CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (made != CUDA_SUCCESS) return 1;
  im2col<<<dim3(padded / kPixels, kTaps * kTaps), kChannels>>>(columns, output);
  cudaMemcpy(got.data(), output, got.size() * sizeof(unsigned), cudaMemcpyDeviceToHost);
  int wrong = 0;
  std::size_t at = 0;
  for (int i = 0; i < padded; ++i)
    for (int tap = 0; tap < kTaps * kTaps; ++tap)
      for (int c = 0; c < kChannels; ++c, ++at) {
        const int n = i / (kColumns * kRows), h = i / kColumns % kRows * kStride - kPadding + tap / kTaps;
        const int w = i % kColumns * kStride - kPadding + tap % kTaps;
        const bool inside = n < kImages && h >= 0 && h < kHeight && w >= 0 && w < kWidth;
        wrong += got[at] != (inside ? image[((n * kHeight + h) * kWidth + w) * kChannels + c] : 0);
      }

  reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(encode_tiles)(
      &tiles, CU_TENSOR_MAP_DATA_TYPE_UINT32, 4, input, size, stride, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
      CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  sample<<<1, kChannels>>>(tiles, output);
  cudaMemcpy(got.data(), output, 12 * kChannels * sizeof(unsigned), cudaMemcpyDeviceToHost);
  int wrong_steps = 0;
  for (int i = 0; i < 12 * kChannels; ++i) {
    const int h = 1 + i / kChannels / 4 * kStride, w = i / kChannels % 4 * kStride;
    wrong_steps += got[i] != image[(h * kWidth + w) * kChannels + i % kChannels];
  }
  printf("columns %d wrong, steps %d wrong\n", wrong, wrong_steps);
  cudaFree(input);
  cudaFree(output);
}
