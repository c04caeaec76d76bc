// > 6 nodes, 1 root, 6 edges; the kernel comes before 2
// > sum 528, host saw 528
// > other arguments: sum 1056, host saw 1056
// > the clone adds: 100
// > without the last kernel: 1056
// > updated 0, sum 1584, 2 nodes of a capture
// > of the graph's own memory: 30
// > conditions: 3 rounds, 2 odd, 1 even, then 3 rounds
// Graphs built node by node, changed when they are instantiated, and updated.
#include <cstdio>
#include <vector>

__global__ void scale(float *x, float by, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= by;
}
__global__ void sum(const float *x, double *to, int n) {
  double s = 0;
  for (int i = 0; i < n; ++i) s += x[i];
  *to = s;
}
__global__ void fill(int *x, int value) { x[threadIdx.x] = value; }
template <class T>
__global__ void add_up(const T *x, T *to) { atomicAdd(to, x[threadIdx.x]); }

// Counts down, and tells whether there is more to do.
__global__ void count_down(int *left, int *rounds, cudaGraphConditionalHandle more, cudaGraphConditionalHandle odd) {
  ++*rounds;
  cudaGraphSetConditional(odd, *left % 2);
  cudaGraphSetConditional(more, --*left > 0);
}
__global__ void count_up(int *to) { ++*to; }

struct Seen { double *from, value; };
void CUDART_CB look(void *data) {
  auto *seen = static_cast<Seen *>(data);
  seen->value = *seen->from;
}

int main() {
  const int n = 32;
  std::vector<float> h(n);
  for (int i = 0; i < n; ++i) h[i] = i + 1;
  float *x;
  double *total, result = 0;
  cudaMalloc(&x, n * sizeof(float));
  cudaMalloc(&total, sizeof(double));
  cudaGraph_t graph;
  cudaGraphCreate(&graph, 0);
  cudaGraphNode_t up, clear, scaled, summed, down, told;
  std::vector<cudaGraphNode_t> after;

  cudaMemcpy3DParms copy = {};
  copy.srcPtr = make_cudaPitchedPtr(h.data(), n * sizeof(float), n, 1);
  copy.dstPtr = make_cudaPitchedPtr(x, n * sizeof(float), n, 1);
  copy.extent = make_cudaExtent(n * sizeof(float), 1, 1);
  copy.kind = cudaMemcpyHostToDevice;
  cudaGraphAddMemcpyNode(&up, graph, nullptr, 0, &copy);
  cudaMemsetParams zero = {};
  zero.dst = total;
  zero.elementSize = 4;
  zero.width = 2;
  zero.height = 1;
  cudaGraphAddMemsetNode(&clear, graph, &up, 1, &zero);
  cudaKernelNodeParams of_scale = {};
  float by = 1;
  int count = n;
  void *scale_arguments[] = {&x, &by, &count};
  of_scale.func = (void *)scale;
  of_scale.gridDim = dim3(1);
  of_scale.blockDim = dim3(n);
  of_scale.kernelParams = scale_arguments;
  cudaGraphAddKernelNode(&scaled, graph, &up, 1, &of_scale);
  cudaKernelNodeParams of_sum = {};
  void *sum_arguments[] = {&x, &total, &count};
  of_sum.func = reinterpret_cast<void *>(sum);
  of_sum.gridDim = of_sum.blockDim = dim3(1, 1, 1);
  of_sum.kernelParams = sum_arguments;
  after = {clear, scaled};
  cudaGraphAddKernelNode(&summed, graph, after.data(), after.size(), &of_sum);
  cudaGraphAddMemcpyNode1D(&down, graph, nullptr, 0, &result, total, sizeof result, cudaMemcpyDeviceToHost);
  cudaGraphAddDependencies(graph, &summed, &down, 1);
  Seen seen = {&result, 0};
  cudaHostNodeParams host = {look, &seen};
  cudaGraphAddHostNode(&told, graph, &down, 1, &host);

  size_t nodes = 0, roots = 0, edges = 0, before = 0;
  cudaGraphGetNodes(graph, nullptr, &nodes);
  cudaGraphGetRootNodes(graph, nullptr, &roots);
  cudaGraphGetEdges(graph, nullptr, nullptr, &edges);
  cudaGraphNodeGetDependencies(summed, nullptr, &before);
  std::printf("%zu nodes, %zu root, %zu edges; the kernel comes before %zu\n", nodes, roots, edges, before);

  cudaStream_t stream;
  cudaStreamCreate(&stream);
  cudaGraphExec_t exec;
  cudaGraphInstantiate(&exec, graph, nullptr, nullptr, 0);
  cudaGraphLaunch(exec, stream);
  cudaStreamSynchronize(stream);
  std::printf("sum %g, host saw %g\n", result, seen.value);

  by = 2;  // the node took a copy: only now it knows
  cudaGraphExecKernelNodeSetParams(exec, scaled, &of_scale);
  cudaGraphLaunch(exec, stream);
  cudaStreamSynchronize(stream);
  std::printf("other arguments: sum %g, host saw %g\n", result, seen.value);

  // A graph that has a clone of another as a node.
  int *counts, c = 0;
  cudaMalloc(&counts, 26 * sizeof(int));
  cudaMemset(counts, 0, 26 * sizeof(int));
  cudaGraph_t inner, clone, outer;
  cudaGraphCreate(&inner, 0);
  cudaGraphNode_t filled, added, child, end;
  int value = 4, *to = counts + 25;
  void *fill_arguments[] = {&counts, &value}, *add_arguments[] = {&counts, &to};
  cudaKernelNodeParams small = {};
  small.func = (void *)fill;
  small.gridDim = dim3(1);
  small.blockDim = dim3(25);
  small.kernelParams = fill_arguments;
  cudaGraphAddKernelNode(&filled, inner, nullptr, 0, &small);
  small.func = (void *)add_up<int>;
  small.kernelParams = add_arguments;
  cudaGraphAddKernelNode(&added, inner, &filled, 1, &small);
  cudaGraphClone(&clone, inner);
  cudaGraphDestroy(inner);
  cudaGraphCreate(&outer, 0);
  cudaGraphAddChildGraphNode(&child, outer, nullptr, 0, clone);
  cudaGraphAddEmptyNode(&end, outer, &child, 1);
  cudaGraphExec_t outer_exec;
  cudaGraphInstantiate(&outer_exec, outer, 0);
  cudaGraphLaunch(outer_exec, stream);
  cudaMemcpyAsync(&c, counts + 25, sizeof c, cudaMemcpyDeviceToHost, stream);
  cudaStreamSynchronize(stream);
  std::printf("the clone adds: %d\n", c);

  cudaGraphNodeSetEnabled(exec, summed, 0);
  result = 0;
  by = 3;
  cudaGraphExecKernelNodeSetParams(exec, scaled, &of_scale);
  cudaGraphNodeSetEnabled(exec, clear, 0);
  cudaGraphLaunch(exec, stream);
  cudaStreamSynchronize(stream);
  std::printf("without the last kernel: %g\n", result);

  // Captures of one shape: the executable graph takes the later one's work.
  cudaGraph_t captured;
  cudaGraphExec_t updated;
  cudaGraphExecUpdateResultInfo changed;
  for (int round = 0; round < 2; ++round) {
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    scale<<<1, n, 0, stream>>>(x, round ? 1.0f : 0.5f, n);
    sum<<<1, 1, 0, stream>>>(x, total, n);
    cudaStreamEndCapture(stream, &captured);
    if (round == 0) cudaGraphInstantiate(&updated, captured, 0);
    else cudaGraphExecUpdate(updated, captured, &changed);
    cudaGraphGetNodes(captured, nullptr, &nodes);
    cudaGraphDestroy(captured);
  }
  cudaGraphLaunch(updated, stream);
  cudaMemcpyAsync(&result, total, sizeof result, cudaMemcpyDeviceToHost, stream);
  cudaStreamSynchronize(stream);
  std::printf("updated %d, sum %g, %zu nodes of a capture\n", static_cast<int>(changed.result), result, nodes);

  cudaGraph_t owner;
  cudaGraphCreate(&owner, 0);
  cudaMemAllocNodeParams memory = {};
  memory.bytesize = 10 * sizeof(int);
  memory.poolProps.allocType = cudaMemAllocationTypePinned;
  memory.poolProps.location.type = cudaMemLocationTypeDevice;
  cudaGraphNode_t made, kept, freed;
  cudaGraphAddMemAllocNode(&made, owner, nullptr, 0, &memory);
  int *own = static_cast<int *>(memory.dptr), tens[10];
  value = 3;
  void *own_arguments[] = {&own, &value};
  small.func = (void *)fill;
  small.blockDim = dim3(10);
  small.kernelParams = own_arguments;
  cudaGraphAddKernelNode(&filled, owner, &made, 1, &small);
  cudaGraphAddMemcpyNode1D(&kept, owner, &filled, 1, tens, own, sizeof tens, cudaMemcpyDeviceToHost);
  cudaGraphAddMemFreeNode(&freed, owner, &kept, 1, own);
  cudaGraphExec_t of_owner;
  cudaGraphInstantiate(&of_owner, owner, 0);
  for (int round = 0; round < 3; ++round) cudaGraphLaunch(of_owner, stream);  // the memory is new each time
  cudaStreamSynchronize(stream);
  int s = 0;
  for (int each : tens) s += each;
  std::printf("of the graph's own memory: %d\n", s);

  // While there is more, with an if and its else in the body; the kernel of a body is captured.
  int *seen_by, seen_then[4];
  cudaMalloc(&seen_by, 4 * sizeof(int));
  cudaMemset(seen_by, 0, 4 * sizeof(int));
  cudaGraph_t looping, body;
  cudaGraphCreate(&looping, 0);
  cudaGraphConditionalHandle more, odd;
  cudaGraphConditionalHandleCreate(&more, looping, 1, cudaGraphCondAssignDefault);
  cudaGraphNodeParams of_loop = {cudaGraphNodeTypeConditional}, of_if = {cudaGraphNodeTypeConditional};
  of_loop.conditional.handle = more;
  of_loop.conditional.type = cudaGraphCondTypeWhile;
  of_loop.conditional.size = 1;
  cudaGraphNode_t loop, choice, counted;
  cudaGraphAddNode(&loop, looping, nullptr, nullptr, 0, &of_loop);
  body = of_loop.conditional.phGraph_out[0];
  cudaGraphConditionalHandleCreate(&odd, body);
  cudaStreamBeginCaptureToGraph(stream, body, nullptr, nullptr, 0, cudaStreamCaptureModeGlobal);
  count_down<<<1, 1, 0, stream>>>(seen_by, seen_by + 1, more, odd);
  cudaStreamCaptureStatus status;
  const cudaGraphNode_t *last;
  size_t behind;
  cudaStreamGetCaptureInfo(stream, &status, nullptr, nullptr, &last, &behind);
  of_if.conditional.handle = odd;
  of_if.conditional.type = cudaGraphCondTypeIf;
  of_if.conditional.size = 2;
  cudaGraphAddNode(&choice, body, last, behind, &of_if);
  cudaStreamUpdateCaptureDependencies(stream, &choice, 1, cudaStreamSetCaptureDependencies);
  cudaStreamEndCapture(stream, nullptr);
  for (int which = 0; which < 2; ++which) {
    int *counter = seen_by + 2 + which;
    void *arguments[] = {&counter};
    cudaGraphNodeParams of_count = {cudaGraphNodeTypeKernel};
    of_count.kernel.func = (void *)count_up;
    of_count.kernel.gridDim = of_count.kernel.blockDim = dim3(1, 1, 1);
    of_count.kernel.kernelParams = arguments;
    cudaGraphAddNode(&counted, of_if.conditional.phGraph_out[which], nullptr, 0, &of_count);
  }
  cudaGraphExec_t of_looping;
  cudaGraphInstantiate(&of_looping, looping, 0);
  for (int round = 0; round < 2; ++round) {
    const int rounds = 3;
    cudaMemcpyAsync(seen_by, &rounds, sizeof rounds, cudaMemcpyHostToDevice, stream);
    cudaGraphLaunch(of_looping, stream);
    if (round == 0) cudaMemcpyAsync(seen_then, seen_by, sizeof seen_then, cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
  }
  int in_all;
  cudaMemcpy(&in_all, seen_by + 1, sizeof in_all, cudaMemcpyDeviceToHost);
  std::printf("conditions: %d rounds, %d odd, %d even, then %d rounds\n", seen_then[1], seen_then[2], seen_then[3],
              in_all - seen_then[1]);
  cudaFree(seen_by);

  for (cudaGraphExec_t each : {exec, outer_exec, updated, of_owner, of_looping}) cudaGraphExecDestroy(each);
  for (cudaGraph_t each : {graph, clone, outer, owner, looping}) cudaGraphDestroy(each);
  cudaFree(x);
  cudaFree(total);
  cudaFree(counts);
  cudaStreamDestroy(stream);
}
