// > cluster of 4 blocks, at most 8
// > 4096 values, wrong bins 0
// > 4096 values, wrong bins 0
// A histogram with more bins than one block would hold: each block of a cluster keeps a part of them, and all count
// into all parts through distributed shared memory.
#include <cooperative_groups.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace cg = cooperative_groups;

#define CHECK(call)                                                                      \
  do {                                                                                   \
    cudaError_t error = (call);                                                          \
    if (error != cudaSuccess) {                                                          \
      printf("%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(error));               \
      exit(1);                                                                           \
    }                                                                                    \
  } while (0)

__global__ void cluster_histogram(int* bins, int num_bins, int bins_per_block, const int* input, size_t size) {
  extern __shared__ int smem[];
  const int tid = cg::this_grid().thread_rank();
  cg::cluster_group cluster = cg::this_cluster();
  const unsigned rank = cluster.block_rank();
  const int cluster_size = cluster.dim_blocks().x;

  for (int i = threadIdx.x; i < bins_per_block; i += blockDim.x) smem[i] = 0;
  cluster.sync();  // all parts are zero, and all blocks are there

  for (size_t i = tid; i < size; i += blockDim.x * gridDim.x) {
    int bin = input[i];
    if (bin < 0) bin = 0;
    if (bin >= num_bins) bin = num_bins - 1;
    int* part = cluster.map_shared_rank(smem, bin / bins_per_block);
    atomicAdd(part + bin % bins_per_block, 1);
  }
  cluster.sync();  // nobody counts any more

  int* mine = bins + rank * bins_per_block;
  for (int i = threadIdx.x; i < bins_per_block; i += blockDim.x)
    if (rank * bins_per_block + i < num_bins) atomicAdd(&mine[i], smem[i]);
  if (cluster_size != (int)cluster.num_blocks()) __trap();
}

int main() {
  const int num_bins = 300, count = 4096, threads = 128, blocks = 8, cluster_size = 4;
  const int bins_per_block = (num_bins + cluster_size - 1) / cluster_size;
  std::vector<int> input(count), want(num_bins), got(num_bins);
  unsigned state = 1;
  for (int& value : input) {
    state = state * 1664525u + 1013904223u;
    value = state >> 16 & 511;
    ++want[value < num_bins ? value : num_bins - 1];
  }
  int *d_input, *d_bins;
  CHECK(cudaMalloc(&d_input, count * sizeof(int)));
  CHECK(cudaMalloc(&d_bins, num_bins * sizeof(int)));
  CHECK(cudaMemcpy(d_input, input.data(), count * sizeof(int), cudaMemcpyHostToDevice));

  cudaLaunchConfig_t config = {0};
  config.gridDim = blocks;
  config.blockDim = threads;
  config.dynamicSmemBytes = bins_per_block * sizeof(int);
  CHECK(cudaFuncSetAttribute(cluster_histogram, cudaFuncAttributeMaxDynamicSharedMemorySize, config.dynamicSmemBytes));
  cudaLaunchAttribute attribute[1];
  attribute[0].id = cudaLaunchAttributeClusterDimension;
  attribute[0].val.clusterDim.x = cluster_size;
  attribute[0].val.clusterDim.y = 1;
  attribute[0].val.clusterDim.z = 1;
  config.numAttrs = 1;
  config.attrs = attribute;
  int largest = 0, active = 0;
  CHECK(cudaOccupancyMaxPotentialClusterSize(&largest, cluster_histogram, &config));
  CHECK(cudaOccupancyMaxActiveClusters(&active, cluster_histogram, &config));
  printf("cluster of %d blocks, at most %d\n", cluster_size, largest);
  if (active < 1) return 1;
  for (int run = 0; run < 2; ++run) {
    CHECK(cudaMemset(d_bins, 0, num_bins * sizeof(int)));
    if (run == 0) {
      CHECK(cudaLaunchKernelEx(&config, cluster_histogram, d_bins, num_bins, bins_per_block, (const int*)d_input,
                               (size_t)count));
    } else {
      size_t size = count;
      void* arguments[] = {&d_bins, (void*)&num_bins, (void*)&bins_per_block, &d_input, &size};
      CHECK(cudaLaunchKernelExC(&config, (const void*)cluster_histogram, arguments));
    }
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(got.data(), d_bins, num_bins * sizeof(int), cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (int i = 0; i < num_bins; ++i) wrong += got[i] != want[i];
    printf("%d values, wrong bins %d\n", count, wrong);
  }
  CHECK(cudaFree(d_input));
  CHECK(cudaFree(d_bins));
}
