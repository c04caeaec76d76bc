// Cooperative launches: a grid that waits for itself, coalesced groups, and aggregated atomics.
// > sum 4560
// > kept 50
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
namespace cg = cooperative_groups;
using namespace cooperative_groups;

#define CHECK(call)                                                                       \
  {                                                                                       \
    const cudaError_t error = call;                                                       \
    if (error != cudaSuccess) {                                                           \
      fprintf(stderr, "Error: %s:%d, ", __FILE__, __LINE__);                              \
      fprintf(stderr, "code: %d, reason: %s\n", error, cudaGetErrorString(error));        \
      exit(1);                                                                            \
    }                                                                                     \
  }

__device__ int atomicAggInc(int *ctr) {
  auto g = coalesced_threads();
  int warp_res;
  if (g.thread_rank() == 0) warp_res = atomicAdd(ctr, g.size());
  return g.shfl(warp_res, 0) + g.thread_rank();
}

__global__ void filter(int *dst, int *nres, const int *src, int n) {
  int id = threadIdx.x + blockIdx.x * blockDim.x;
  if (id >= n) return;
  if (src[id] % 2 == 0) dst[atomicAggInc(nres)] = src[id];
}

__global__ void gridReduce(float *in, float *partial, float *out, int n) {
  grid_group grid = this_grid();
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<32> tile = cg::tiled_partition<32>(block);
  __shared__ float warps[4];
  float sum = 0;
  for (int i = grid.thread_rank(); i < n; i += grid.size()) sum += in[i];
  sum = cg::reduce(tile, sum, cg::plus<float>());
  if (tile.thread_rank() == 0) warps[tile.meta_group_rank()] = sum;
  block.sync();
  if (block.thread_rank() == 0) {
    for (int w = 1; w < tile.meta_group_size(); w++) sum += warps[w];
    partial[blockIdx.x] = sum;
  }
  grid.sync();
  if (grid.thread_rank() == 0) {
    float total = 0;
    for (int b = 0; b < gridDim.x; b++) total += partial[b];
    *out = total;
  }
  cg::sync(grid);
  if (block.thread_rank() == 0) partial[blockIdx.x] = *out + warps[0];
}

int main() {
  int dev = 0, supports = 0, perSm = 0;
  CHECK(cudaDeviceGetAttribute(&supports, cudaDevAttrCooperativeLaunch, dev));
  cudaDeviceProp prop;
  CHECK(cudaGetDeviceProperties(&prop, dev));
  if (!supports || !prop.cooperativeLaunch) return 1;
  int n = 96, threads = 32;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&perSm, gridReduce, threads, 0));
  dim3 blocks(3), block(threads, 1, 1);
  if (blocks.x > perSm * prop.multiProcessorCount) return 1;
  float *in, *partial, *out;
  CHECK(cudaMallocManaged(&in, n * sizeof(float)));
  CHECK(cudaMallocManaged(&partial, 3 * sizeof(float)));
  CHECK(cudaMallocManaged(&out, sizeof(float)));
  for (int i = 0; i < n; i++) in[i] = i;
  void *args[] = {(void *)&in, (void *)&partial, &out, &n};
  CHECK(cudaLaunchCooperativeKernel((void *)gridReduce, blocks, block, args, 0, NULL));
  CHECK(cudaDeviceSynchronize());
  printf("sum %g\n", *out);
  int *src, *dst, *count;
  CHECK(cudaMallocManaged(&src, 100 * sizeof(int)));
  CHECK(cudaMallocManaged(&dst, 100 * sizeof(int)));
  CHECK(cudaMallocManaged(&count, sizeof(int)));
  *count = 0;
  for (int i = 0; i < 100; i++) src[i] = i;
  filter<<<2, 64>>>(dst, count, src, 100);
  CHECK(cudaDeviceSynchronize());
  printf("kept %d\n", *count);
  cudaFree(in), cudaFree(partial), cudaFree(out), cudaFree(src), cudaFree(dst), cudaFree(count);
}
