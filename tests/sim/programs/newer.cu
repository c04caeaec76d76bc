// > pairs 496 496
// > std: 12 3 2.5 abc, 6 of 9
// > bytes 32 32, flag 1
// > dpx 9 -4 0 7
// > 0: a
// > 1: a
// > 2: a
// > 0: b
// > 1: b
// > 2: b
// > ranks 32 0 0, tile 4 of 8
// > clusters of 2: 3 3 7 7
// > matrix 32 33
// Newer names: barriers by their primitives, cuda::std, atomics of one byte, DPX, kernels in variables, clusters of a
// template's parameters; lanes that print together; a matrix that is accumulated in shared memory.
#include <cooperative_groups.h>
#include <cuda_awbarrier_primitives.h>
#include <cuda_fp16.h>
#include <mma.h>

#include <cstdio>
#include <cuda/atomic>
#include <cuda/std/array>
#include <cuda/std/cstdint>
#include <cuda/std/limits>
#include <cuda/std/optional>
#include <cuda/std/tuple>
#include <cuda/std/type_traits>
#include <cuda/std/utility>

namespace cg = cooperative_groups;

__global__ void pairs(int *out) {
  __shared__ __mbarrier_t barrier;
  __shared__ int values[64];
  const int t = threadIdx.x;
  if (t == 0) __mbarrier_init(&barrier, blockDim.x);
  __syncthreads();
  values[t] = t;
  const __mbarrier_token_t token = __mbarrier_arrive(&barrier);
  while (!__mbarrier_test_wait(&barrier, token)) {
  }
  int sum = 0;
  for (int i = 0; i < 32; ++i) sum += values[(t & 32) ^ i] - (t & 32);
  out[t] = sum;
}

struct Answer {
  cuda::std::int32_t whole;
  cuda::std::int64_t wide;
  float part;
  cuda::std::array<char, 4> text;
};
template <class T>
__device__ cuda::std::optional<T> half_of(T x) {
  if (x % 2) return cuda::std::nullopt;
  return x / 2;
}
__global__ void standard(Answer *answer, int *count) {
  cuda::std::array<int, 3> a{3, 4, 5};
  static_assert(cuda::std::is_same_v<cuda::std::remove_cvref_t<const int &>, int>, "the same");
  int sum = 0;
  for (int each : a) sum += each;
  auto [x, y] = cuda::std::make_tuple(2, 0.5f);
  answer->whole = sum;
  answer->wide = cuda::std::max(a[0], x);
  answer->part = x + y;
  answer->text = {'a', 'b', 'c', 0};
  for (int i = 6; i < 15; ++i) *count += half_of(i).has_value() || i < cuda::std::numeric_limits<int>::min() + 10 || i > 12;
  cuda::std::swap(count, count);
}

__device__ cuda::atomic<unsigned char, cuda::thread_scope_device> bytes{0};
__device__ cuda::std::atomic<unsigned short> shorts{0};
__device__ cuda::atomic<bool, cuda::thread_scope_device> flag{false};
__global__ void small() {
  bytes.fetch_add(1, cuda::memory_order_relaxed);
  shorts.fetch_add(1);
  if (threadIdx.x == 5) flag.store(true, cuda::std::memory_order_release);
}
__global__ void read_small(int *out) {
  out[0] = bytes.load();
  out[1] = shorts.load();
  out[2] = flag.load();
}
__global__ void dpx(int *out) {
  out[0] = __viaddmax_s32(4, 5, 3);
  out[1] = __vimin3_s32(7, -4, 2);
  out[2] = __viaddmax_s32_relu(-9, 2, -1);
  out[3] = __vimax_s32_relu(7, 3);
}
__global__ void says() {
  printf("%d: a\n", threadIdx.x);
  printf("%d: b\n", threadIdx.x);
}
__global__ void ranks(int *out) {
  const auto block = cg::this_thread_block();
  const auto tile = cg::tiled_partition<8>(block);
  if (block.thread_rank()) return;
  out[0] = block.thread_index().x + block.dim_threads().y;
  out[1] = tile.meta_group_rank();
  out[2] = block.group_index().y;
  out[3] = tile.meta_group_size();
  out[4] = static_cast<int>(tile.size());
}

template <int N>
__global__ void __cluster_dims__(N, 1, 1) sum_of_cluster(int *out) {
  __shared__ int mine;
  auto cluster = cg::this_cluster();
  if (threadIdx.x == 0) mine = blockIdx.x + 1;
  cluster.sync();
  int sum = 0;
  for (unsigned i = 0; i < cluster.num_blocks(); ++i) sum += *cluster.map_shared_rank(&mine, i);
  cluster.sync();
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

__global__ void matrix(const half *a, const half *b, float *c) {
  __shared__ float sums[16 * 16];
  using namespace nvcuda;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> x;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> y;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> z;
  for (int i = threadIdx.x; i < 256; i += 32) sums[i] = i;
  __syncwarp();
  for (int k = 0; k < 2; ++k) {
    wmma::load_matrix_sync(z, sums, 16, wmma::mem_row_major);
    wmma::load_matrix_sync(x, a, 16);
    wmma::load_matrix_sync(y, b, 16);
    wmma::mma_sync(z, x, y, z);
    wmma::store_matrix_sync(sums, z, 16, wmma::mem_row_major);  // over what was read: the registers have it all
    __syncwarp();
  }
  for (int i = threadIdx.x; i < 256; i += 32) c[i] = sums[i];
}
__global__ void ones(half *x) { x[threadIdx.x] = __float2half(1); }

int main() {
  int *d, h[64];
  cudaMalloc(&d, sizeof h);
  cudaMemset(d, 0, sizeof h);
  pairs<<<1, 64>>>(d);
  cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);
  std::printf("pairs %d %d\n", h[0], h[63]);
  Answer *answer, a;
  cudaMalloc(&answer, sizeof a);
  cudaMemset(d, 0, sizeof h);
  standard<<<1, 1>>>(answer, d);
  cudaMemcpy(&a, answer, sizeof a, cudaMemcpyDeviceToHost);
  cudaMemcpy(h, d, sizeof(int), cudaMemcpyDeviceToHost);
  std::printf("std: %d %d %g %s, %d of 9\n", a.whole, static_cast<int>(a.wide), a.part, a.text.data(), h[0]);
  small<<<1, 32>>>();
  read_small<<<1, 1>>>(d);
  cudaMemcpy(h, d, 3 * sizeof(int), cudaMemcpyDeviceToHost);
  std::printf("bytes %d %d, flag %d\n", h[0], h[1], h[2]);
  dpx<<<1, 1>>>(d);
  cudaMemcpy(h, d, 4 * sizeof(int), cudaMemcpyDeviceToHost);
  std::printf("dpx %d %d %d %d\n", h[0], h[1], h[2], h[3]);
  says<<<1, 3>>>();
  cudaDeviceSynchronize();
  ranks<<<1, dim3(1, 32)>>>(d);
  cudaMemcpy(h, d, 5 * sizeof(int), cudaMemcpyDeviceToHost);
  std::printf("ranks %d %d %d, tile %d of %d\n", h[0], h[1], h[2], h[3], h[4]);
  auto *kernel = sum_of_cluster<2>;
  kernel<<<4, 32>>>(d);
  cudaMemcpy(h, d, 4 * sizeof(int), cudaMemcpyDeviceToHost);
  std::printf("clusters of 2: %d %d %d %d\n", h[0], h[1], h[2], h[3]);
  half *x;
  float *c, result[2];
  cudaMalloc(&x, 256 * sizeof(half));
  cudaMalloc(&c, 256 * sizeof(float));
  ones<<<1, 256>>>(x);
  matrix<<<1, 32>>>(x, x, c);
  cudaMemcpy(result, c, sizeof result, cudaMemcpyDeviceToHost);
  std::printf("matrix %g %g\n", result[0], result[1]);
  cudaFree(d);
  cudaFree(answer);
  cudaFree(x);
  cudaFree(c);
}
