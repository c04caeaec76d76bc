// > tiles of 128: 0 of 8 wrong
// > tiles of 64: 0 of 16 wrong
// > staged: 0 of 640 wrong
// > roles: 0 of 640 wrong
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda/pipeline>
#include <stdio.h>
namespace cg = cooperative_groups;
__global__ void sums(const int *in, int *out) {
  __shared__ cg::block_tile_memory<256> memory;
  const cg::thread_block block = cg::this_thread_block(memory);
  const auto tile = cg::tiled_partition<128>(block);
  const int i = blockIdx.x * 256 + threadIdx.x;
  const int sum = cg::reduce(tile, in[i], cg::plus<int>());
  tile.sync();
  if (tile.thread_rank() == 0) out[blockIdx.x * tile.meta_group_size() + tile.meta_group_rank()] = sum;
}
/// As many tiles as a block can have.
__global__ void small_sums(const int *in, int *out) {
  __shared__ cg::block_tile_memory<1024> memory;
  const auto tile = cg::tiled_partition<64>(cg::this_thread_block(memory));
  const int sum = cg::reduce(tile, in[threadIdx.x], cg::plus<int>());
  if (tile.thread_rank() == 0) out[tile.meta_group_rank()] = sum;
}
constexpr int kThreads = 64, kStages = 3;
/// Every thread copies and reads.
__global__ void staged(int *out, const int *in, int parts) {
  __shared__ int tiles[kStages][kThreads];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, kStages> state;
  const auto block = cg::this_thread_block();
  auto line = cuda::make_pipeline(block, &state);
  for (int part = 0, next = 0; part < parts; ++part) {
    while (next < parts && next < part + kStages) {
      line.producer_acquire();
      cuda::memcpy_async(block, tiles[next % kStages], in + next * kThreads, sizeof tiles[0], line);
      line.producer_commit();
      ++next;
    }
    line.consumer_wait();
    out[part * kThreads + threadIdx.x] = 2 * tiles[part % kStages][kThreads - 1 - threadIdx.x];
    line.consumer_release();
  }
}
/// One warp copies, two read.
__global__ void roles(int *out, const int *in, int parts) {
  __shared__ int tiles[kStages][kThreads];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, kStages> state;
  const auto block = cg::this_thread_block();
  const bool copies = threadIdx.x < 32;
  auto line = cuda::make_pipeline(block, &state, copies ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer);
  for (int part = 0; part < parts; ++part) {
    int(&tile)[kThreads] = tiles[part % kStages];
    if (copies) {
      line.producer_acquire();
      for (int i = threadIdx.x; i < kThreads; i += 32)
        cuda::memcpy_async(&tile[i], &in[part * kThreads + i], sizeof(int), line);
      line.producer_commit();
    } else {
      line.consumer_wait();
      const int i = threadIdx.x - 32;
      out[part * kThreads + i] = 2 * tile[kThreads - 1 - i];
      line.consumer_release();
    }
  }
}
int main() {
  const int n = 1024, parts = 10;
  int h[n], back[n], *in, *out;
  for (int i = 0; i < n; ++i) h[i] = i * 7 % 19;
  cudaMalloc(&in, sizeof h);
  cudaMalloc(&out, sizeof h);
  cudaMemcpy(in, h, sizeof h, cudaMemcpyHostToDevice);
  sums<<<n / 256, 256>>>(in, out);
  cudaMemcpy(back, out, 8 * sizeof(int), cudaMemcpyDeviceToHost);
  const auto wrong_sums = [&](int threads) {
    int wrong = 0;
    for (int t = 0; t < n / threads; ++t) {
      int right = 0;
      for (int i = 0; i < threads; ++i) right += h[t * threads + i];
      wrong += back[t] != right;
    }
    return wrong;
  };
  printf("tiles of 128: %d of 8 wrong\n", wrong_sums(128));
  small_sums<<<1, n>>>(in, out);
  cudaMemcpy(back, out, 16 * sizeof(int), cudaMemcpyDeviceToHost);
  printf("tiles of 64: %d of 16 wrong\n", wrong_sums(64));
  for (int which = 0; which < 2; ++which) {
    cudaMemset(out, 0, sizeof h);
    if (which == 0) staged<<<1, kThreads>>>(out, in, parts);
    else roles<<<1, 96>>>(out, in, parts);
    cudaMemcpy(back, out, sizeof h, cudaMemcpyDeviceToHost);
    int wrong = 0;
    for (int i = 0; i < parts * kThreads; ++i)
      wrong += back[i] != 2 * h[i / kThreads * kThreads + kThreads - 1 - i % kThreads];
    printf("%s: %d of 640 wrong\n", which == 0 ? "staged" : "roles", wrong);
  }
  cudaFree(in);
  cudaFree(out);
}
