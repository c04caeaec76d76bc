// A swizzle, seen: where TMA puts the bytes of a tile, and which banks a column of it meets.
//
// The idea: a tile with rows of 128 bytes fills all 32 banks with each row. So the same 16 bytes of eight rows lie in
// the same four banks, and eight lanes that read them, as matrix instructions do, wait for each other. The swizzle of
// 128 bytes moves chunk c of row r, 16 bytes, to where chunk c xor r % 8 would lie. TMA does it on its way; who reads
// must know.
//
//   1. The host describes the tensor twice: as it is, and with the swizzle. All else is the same.
//   2. TMA brings 32 rows of 128 bytes. The box begins at a multiple of 1024 bytes: the swizzle goes by the address.
//   3. The block copies shared memory out as it lies. The host looks where each chunk is.
//   4. Each lane reads a chunk of its own row, one column after the other: with the swizzle, at c xor row % 8.
//   5. The host checks what was read, and counts in how many passes eight lanes are served: 16 bytes each are one pass
//      where they meet 32 different banks.
//
// Build and run it, on a GPU of compute capability 9.0:
//     nvcc -std=c++17 -arch=sm_90a swizzle.cu -o swizzle && ./swizzle
// In the simulator, on any machine:
//     ./lab sim examples/swizzle.cu
//
// Try it: forget the xor of step 4, and see which chunks are wrong; the simulator counts the conflicts of both kernels.
#include <cstdio>
#include <initializer_list>

#include "../common/kernel/hopper.hpp"  // all that it needs: copy it, too
using namespace convladder;

constexpr int kRows = 32, kChunks = 8;  // chunks of 16 bytes, four numbers each
constexpr int kBytes = kRows * kChunks * 16;

template <bool kSwizzled>
__global__ void look(const __grid_constant__ TensorMap map, int4* as_it_lies, int4* columns) {
  int4* const box = dynamic_shared_1024<int4>();
  __shared__ Mbarrier come;
  const int lane = threadIdx.x;
  // 2.
  if (lane == 0) {
    mbarrier_init(&come, 1);
    fence_mbarrier_init();
    mbarrier_expect(&come, kBytes);
    tensor_load(box, map, &come, 0, 0);
  }
  __syncwarp();
  mbarrier_wait(&come, 0);
  // 3.
  for (int row = 0; row < kRows; row += 4) as_it_lies[row * kChunks + lane] = box[row * kChunks + lane];
  // 4.
  for (int c = 0; c < kChunks; ++c) columns[c * kRows + lane] = box[lane * kChunks + (kSwizzled ? c ^ lane % 8 : c)];
}

int main() {
  int* tensor;
  int4 *as_it_lies, *columns;
  if (cudaMallocManaged(&tensor, kBytes) || cudaMallocManaged(&as_it_lies, kBytes) ||
      cudaMallocManaged(&columns, kBytes))
    return printf("wrong: %s\n", cudaGetErrorString(cudaGetLastError())), 1;
  for (int i = 0; i < kBytes / 4; ++i) tensor[i] = i / 4;  // each chunk holds its own number

  for (const bool swizzled : {false, true}) {
    // 1.
    TensorMap map;
    if (encode_tensor_map(&map, tensor,
                          {TensorElement::int32,
                           swizzled ? Swizzle::bytes128 : Swizzle::none,
                           2,
                           {{4 * kChunks, 4, 4 * kChunks}, {kRows, 16 * kChunks, kRows}}}))
      return printf("wrong: the driver refuses the tensor map\n"), 1;
    if (swizzled)
      look<true><<<1, 32, kBytes>>>(map, as_it_lies, columns);
    else
      look<false><<<1, 32, kBytes>>>(map, as_it_lies, columns);
    cudaDeviceSynchronize();
    if (const cudaError_t error = cudaGetLastError()) return printf("wrong: %s\n", cudaGetErrorString(error)), 1;

    // 5.
    int at[kRows * kChunks] = {};  // where each chunk lies
    for (int i = 0; i < kRows * kChunks; ++i) {
      const int number = as_it_lies[i].x;
      if (number < 0 || number >= kRows * kChunks) return printf("wrong: %d is no chunk\n", number), 1;
      at[number] = i;
    }
    printf("%s: which chunk of the row lies where, and its banks\n", swizzled ? "swizzled" : "as it is");
    for (int row = 0; row < 8; ++row) {
      printf("  row %d:", row);
      for (int c = 0; c < kChunks; ++c) printf("  %d", as_it_lies[row * kChunks + c].x - row * kChunks);
      printf("    chunk 0 is in banks %d to %d\n", at[row * kChunks] % 8 * 4, at[row * kChunks] % 8 * 4 + 3);
    }
    int meeting[8] = {}, passes = 0;  // chunks of column 0 in each four banks, rows 0 to 7
    for (int row = 0; row < 8; ++row) ++meeting[at[row * kChunks] % 8];
    for (const int count : meeting) passes = count > passes ? count : passes;
    printf("  8 lanes that read chunk 0 of 8 rows are served in %d pass%s\n", passes, passes == 1 ? "" : "es");
    if (passes != (swizzled ? 1 : 8)) return printf("wrong: this is not the layout of the text\n"), 1;
    for (int c = 0; c < kChunks; ++c)
      for (int row = 0; row < kRows; ++row)
        if (const int got = columns[c * kRows + row].x; got != row * kChunks + c)
          return printf("wrong: chunk %d of row %d is chunk %d of row %d\n", c, row, got % kChunks, got / kChunks), 1;
  }
  printf("right\n");
  cudaFree(tensor);
  cudaFree(as_it_lies);
  cudaFree(columns);
}
