// > made 0, wrong 0
// > padded: made 0, wrong 0
// The programming guide's tensor copy: each block adds 1 to a tile of a matrix, through TMA loads and stores.
#include <cuda.h>

#include <cstdint>
#include <cstdio>
#include <cuda/barrier>
#include <utility>

using barrier = cuda::barrier<cuda::thread_scope_block>;
namespace cde = cuda::device::experimental;

constexpr int kWidth = 100, kHeight = 40, kTile = 32;

__global__ void add_one(const __grid_constant__ CUtensorMap map) {
  __shared__ alignas(128) int tile[kTile][kTile];
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ barrier bar;
  const int x = blockIdx.x * kTile, y = blockIdx.y * kTile;
  if (threadIdx.x == 0) {
    init(&bar, blockDim.x);
    cde::fence_proxy_async_shared_cta();
  }
  __syncthreads();
  barrier::arrival_token token;
  if (threadIdx.x == 0) {
    cde::cp_async_bulk_tensor_2d_global_to_shared(&tile, &map, x, y, bar);
    token = cuda::device::barrier_arrive_tx(bar, 1, sizeof tile);
  } else {
    token = bar.arrive();
  }
  bar.wait(std::move(token));
  for (int row = 0; row < kTile; ++row) tile[row][threadIdx.x] += 1;
  cde::fence_proxy_async_shared_cta();
  __syncthreads();
  if (threadIdx.x == 0) {
    cde::cp_async_bulk_tensor_2d_shared_to_global(&map, x, y, &tile);
    cde::cp_async_bulk_commit_group();
    cde::cp_async_bulk_wait_group_read<0>();
  }
}

// The box is wider than the matrix. What lies outside is not stored, and nobody has written it.
__global__ void store_padded(const __grid_constant__ CUtensorMap map) {
  __shared__ alignas(128) int tile[kTile][kTile + 4];
  for (int row = 0; row < kTile; ++row) tile[row][threadIdx.x] = row + threadIdx.x;
  cde::fence_proxy_async_shared_cta();
  __syncthreads();
  if (threadIdx.x != 0) return;
  cde::cp_async_bulk_tensor_2d_shared_to_global(&map, 0, 0, &tile);
  cde::cp_async_bulk_commit_group();
  cde::cp_async_bulk_wait_group_read<0>();
}

int main() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
  cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found);
  if (found != cudaDriverEntryPointSuccess) return 1;
  int* matrix;
  cudaMallocManaged(&matrix, kWidth * kHeight * sizeof(int));
  for (int i = 0; i < kWidth * kHeight; ++i) matrix[i] = i;
  CUtensorMap map{};
  const cuuint64_t size[] = {kWidth, kHeight}, stride[] = {kWidth * sizeof(int)};
  const cuuint32_t box[] = {kTile, kTile}, step[] = {1, 1};
  const CUresult made = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function)(
      &map, CU_TENSOR_MAP_DATA_TYPE_INT32, 2, matrix, size, stride, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
      CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  add_one<<<dim3(4, 2), kTile>>>(map);
  cudaDeviceSynchronize();
  int wrong = 0;
  for (int i = 0; i < kWidth * kHeight; ++i) wrong += matrix[i] != i + 1;
  printf("made %d, wrong %d\n", made, wrong);
  const cuuint64_t narrow[] = {kTile, kTile}, narrow_stride[] = {kTile * sizeof(int)};
  const cuuint32_t padded[] = {kTile + 4, kTile};
  const CUresult made_padded = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function)(
      &map, CU_TENSOR_MAP_DATA_TYPE_INT32, 2, matrix, narrow, narrow_stride, padded, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
      CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  store_padded<<<1, kTile>>>(map);
  cudaDeviceSynchronize();
  wrong = 0;
  for (int i = 0; i < kTile * kTile; ++i) wrong += matrix[i] != i / kTile + i % kTile;
  printf("padded: made %d, wrong %d\n", made_padded, wrong);
  cudaFree(matrix);
}
