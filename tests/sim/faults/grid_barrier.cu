#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void uneven(int *a) {
  cg::grid_group grid = cg::this_grid();
  a[grid.thread_rank()] = 1;
  if (blockIdx.x > 0) grid.sync();  // FAULT missing barrier
}
__global__ void racing(int *a) {
  a[cg::this_grid().thread_rank()] = 1;  // FAULT race
  if (cg::this_grid().thread_rank() == 0) a[32] = 2;
  cg::this_grid().sync();
  a[(cg::this_grid().thread_rank() + 32) % 64] = 3;
}
int main() {
  int *a;
  cudaMalloc(&a, 64 * sizeof(int));
  void *args[] = {&a};
  cudaLaunchCooperativeKernel((void *)racing, 2, 32, args);
  cudaDeviceSynchronize();
  cudaLaunchCooperativeKernel((void *)uneven, dim3(2), dim3(32), args, 0, 0);
  cudaDeviceSynchronize();
  cudaFree(a);
}
