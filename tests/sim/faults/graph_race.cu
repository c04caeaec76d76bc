// A graph's nodes run in the order of its edges alone: two are missing here.
#include <cstdio>
__global__ void fill(int *x, int value) {
  x[threadIdx.x] = value;
}
__global__ void twice(int *x, int *y) {
  y[threadIdx.x] = 2 * x[threadIdx.x];  // FAULT race
}
int main() {
  int *x, *y, value = 7, h[32];
  cudaMalloc(&y, sizeof h);
  cudaGraph_t graph;
  cudaGraphCreate(&graph, 0);
  cudaGraphNode_t made, filled, doubled, copied, freed;
  cudaMemAllocNodeParams memory = {};
  memory.bytesize = sizeof h;
  cudaGraphAddMemAllocNode(&made, graph, nullptr, 0, &memory);
  x = (int *)memory.dptr;
  void *of_fill[] = {&x, &value}, *of_twice[] = {&x, &y};
  cudaKernelNodeParams node = {(void *)fill, dim3(1), dim3(32), 0, of_fill, nullptr};
  cudaGraphAddKernelNode(&filled, graph, &made, 1, &node);
  node.func = (void *)twice;
  node.kernelParams = of_twice;
  cudaGraphAddKernelNode(&doubled, graph, &made, 1, &node);
  cudaGraphAddMemcpyNode1D(&copied, graph, &doubled, 1, h, x, sizeof h, cudaMemcpyDeviceToHost);  // FAULT race
  cudaGraphNode_t before[] = {filled, doubled};
  cudaGraphAddMemFreeNode(&freed, graph, before, 2, x);  // FAULT race
  cudaGraphExec_t exec;
  cudaGraphInstantiate(&exec, graph, 0);
  cudaGraphLaunch(exec, 0);
  cudaDeviceSynchronize();
  printf("%d\n", h[0]);
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
  cudaFree(y);
}
