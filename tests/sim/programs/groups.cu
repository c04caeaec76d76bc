// > device: 44850
// > device: 44850
// > 44850 of 2 tiles, total 89700
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <stdio.h>
namespace cg = cooperative_groups;
struct Pair { int sum, tiles; };
__device__ int total;
template <int Tile>
__global__ void sum(const int *in, Pair *out, int n) {
  cg::thread_block block = cg::this_thread_block();
  auto tile = cg::tiled_partition<Tile>(block);
  extern __shared__ int partial[];
  int value = 0;
  for (int i = block.thread_rank(); i < n; i += block.size()) value += in[i];
  value = cg::reduce(tile, value, cg::plus<int>());
  if (tile.thread_rank() == 0) partial[tile.meta_group_rank()] = value;
  block.sync();
  if (block.thread_rank() == 0) {
    int all = 0;
    for (int i = 0; i < tile.meta_group_size(); ++i) all += partial[i];
    out->sum = all;
    out->tiles = tile.meta_group_size();
    atomicAdd(&total, all);
    printf("device: %d\n", all);
  }
}
int main() {
  int h[300], *d;
  Pair *r, back;
  for (int i = 0; i < 300; ++i) h[i] = i;
  cudaMalloc(&d, sizeof h);
  cudaMalloc(&r, sizeof back);
  cudaMemcpy(d, h, sizeof h, cudaMemcpyHostToDevice);
  sum<8><<<1, 64, 64 / 8 * sizeof(int)>>>(d, r, 300);
  sum<32><<<1, 64, 64>>>(d, r, 300);
  cudaMemcpy(&back, r, sizeof back, cudaMemcpyDeviceToHost);
  int t;
  cudaMemcpyFromSymbol(&t, total, sizeof t);
  printf("%d of %d tiles, total %d\n", back.sum, back.tiles, t);
  cudaFree(d); cudaFree(r);
}
