#include "common/cuda/graphs.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include "common/cuda/streams.hpp"
#include "common/simt/cores.hpp"
#include "common/simt/machine.hpp"

struct CUgraphExec_st {
  /// A node, as it was when the graph was instantiated.
  struct Node {
    cudaGraphNode_t of;
    cudaGraphNodeType type;
    std::shared_ptr<simt_cuda::Step> step;
    std::vector<std::size_t> after;
    bool enabled = true;
    cudaStream_t stream = nullptr;  ///< its own
  };
  std::vector<Node> nodes;                        ///< each behind those that it waits for
  std::vector<simt_cuda::Condition*> conditions;  ///< of its nodes, and of what those hold
};

namespace simt_cuda {

CUgraphNode_st* add_node(CUgraph_st& graph, cudaGraphNodeType type, Step* step, std::vector<CUgraphNode_st*> after) {
  graph.nodes.push_back(std::make_unique<CUgraphNode_st>());
  CUgraphNode_st* const node = graph.nodes.back().get();
  node->type = type;
  node->step.reset(step);
  node->after = std::move(after);
  node->graph = &graph;
  return node;
}

namespace {

template <class Work>
Step* step_of(const Work& work) {
  return new StepOf<Work>(work);
}

cudaError add(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, std::size_t count,
              cudaGraphNodeType type, Step* step) {
  if (!node || !graph || (count > 0 && !after)) return cudaErrorInvalidValue;
  *node = add_node(*graph, type, step, std::vector<CUgraphNode_st*>(after, after + count));
  return cudaSuccess;
}

Step* kernel_step(const cudaKernelNodeParams& p, const char* file, int line) {
  return later("a kernel node of a graph", p.func, {p.gridDim, p.blockDim, p.sharedMemBytes, nullptr, file, line},
               p.kernelParams);
}
Step* copy_step(const cudaMemcpy3DParms& copy, const char* file, int line) {
  return step_of([=](cudaStream_t stream) { cudaMemcpy3DAsync(&copy, stream, file, line); });
}
Step* copy_step(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, const char* file, int line) {
  return step_of([=](cudaStream_t stream) { cudaMemcpyAsync(to, from, bytes, kind, stream, file, line); });
}
Step* fill_step(const cudaMemsetParams& p, const char* file, int line) {
  return step_of([=](cudaStream_t stream) { fill_pattern(p, stream, file, line); });
}
Step* host_step(const cudaHostNodeParams& p) {
  return step_of([=](cudaStream_t stream) { cudaLaunchHostFunc(stream, p.fn, p.userData); });
}

/// Of a node of the graph, or of what was instantiated of it; the old one goes.
cudaError change(cudaGraphNode_t node, cudaGraphNodeType type, Step* step) {
  std::shared_ptr<Step> owned(step);
  if (!node || node->type != type) return cudaErrorInvalidValue;
  node->step = std::move(owned);
  return cudaSuccess;
}
cudaError change(cudaGraphExec_t executable, cudaGraphNode_t node, cudaGraphNodeType type, Step* step) {
  std::shared_ptr<Step> owned(step);
  if (!executable) return cudaErrorInvalidValue;
  for (CUgraphExec_st::Node& each : executable->nodes) {
    if (each.of != node || each.type != type) continue;
    each.step = std::move(owned);
    return cudaSuccess;
  }
  return cudaErrorInvalidValue;
}

/// The graph's nodes, each behind those that it waits for. Fewer than it has where they wait for each other.
std::vector<CUgraphExec_st::Node> in_order(const CUgraph_st& graph) {
  std::vector<CUgraphExec_st::Node> nodes;
  std::map<const CUgraphNode_st*, std::size_t> place;
  for (bool found = true; found;) {
    found = false;
    for (const auto& node : graph.nodes) {
      const auto is_placed = [&](const CUgraphNode_st* other) { return place.count(other) > 0; };
      if (is_placed(node.get()) || !std::all_of(node->after.begin(), node->after.end(), is_placed)) continue;
      CUgraphExec_st::Node placed{node.get(), node->type, node->step, {}};
      for (const CUgraphNode_st* other : node->after) placed.after.push_back(place[other]);
      place[node.get()] = nodes.size();
      nodes.push_back(std::move(placed));
      found = true;
    }
  }
  return nodes;
}

/// What a conditional node does. @param bodies of it, instantiated
Step* conditional_step(const Conditional& node, const std::vector<std::shared_ptr<CUgraphExec_st>>& bodies);

void run_nodes(CUgraphExec_st& executable, cudaStream_t stream) {
  const Clock begin = begin_in(stream);
  Clock end = begin;
  const bool was = in_graph();
  in_graph() = true;
  for (CUgraphExec_st::Node& node : executable.nodes) {
    Clock clock = begin;
    for (const std::size_t other : node.after) clock.join(reached_in(executable.nodes[other].stream));
    reach(node.stream, clock);
    if (node.step && node.enabled) node.step->run(node.stream);
    end.join(reached_in(node.stream));
  }
  in_graph() = was;
  reach(stream, end);
}

Step* conditional_step(const Conditional& node, const std::vector<std::shared_ptr<CUgraphExec_st>>& bodies) {
  return step_of([condition = node.condition, type = node.type, bodies](cudaStream_t stream) {
    const unsigned chosen = type == cudaGraphCondTypeIf ? condition->value == 0 : condition->value;
    if (type == cudaGraphCondTypeWhile) {
      while (condition->value != 0) run_nodes(*bodies[0], stream);
    } else if (chosen < bodies.size()) {
      run_nodes(*bodies[chosen], stream);
    }
  });
}

/// The whole graph, from its beginning.
void launch_graph(CUgraphExec_st& executable, cudaStream_t stream) {
  for (Condition* condition : executable.conditions)
    if (condition->is_assigned) condition->value = condition->initial;
  run_nodes(executable, stream);
}

template <class Found>
cudaError give(const std::vector<Found>& found, Found* to, std::size_t* count) {
  if (to) std::copy_n(found.begin(), std::min(*count, found.size()), to);
  *count = to ? std::min(*count, found.size()) : found.size();
  return cudaSuccess;
}

}  // namespace
}  // namespace simt_cuda

using simt_cuda::add;
using simt_cuda::change;

cudaError cudaGraphCreate(cudaGraph_t* graph, unsigned) {
  *graph = new CUgraph_st;
  return cudaSuccess;
}

cudaError cudaGraphClone(cudaGraph_t* clone, cudaGraph_t graph) {
  if (!clone || !graph) return cudaErrorInvalidValue;
  *clone = new CUgraph_st;
  std::map<const CUgraphNode_st*, CUgraphNode_st*> copies;
  for (const auto& node : graph->nodes) {
    CUgraphNode_st* const copy = simt_cuda::add_node(**clone, node->type, nullptr, {});
    copy->step = node->step;
    copy->conditional = node->conditional;
    copies[node.get()] = copy;
  }
  for (const auto& node : graph->nodes)
    for (const CUgraphNode_st* other : node->after) copies[node.get()]->after.push_back(copies[other]);
  return cudaSuccess;
}

cudaError cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

cudaError cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                                 const cudaKernelNodeParams* p, const char* file, int line) {
  return add(node, graph, after, count, cudaGraphNodeTypeKernel, simt_cuda::kernel_step(*p, file, line));
}
cudaError cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                                 const cudaMemcpy3DParms* copy, const char* file, int line) {
  return add(node, graph, after, count, cudaGraphNodeTypeMemcpy, simt_cuda::copy_step(*copy, file, line));
}
cudaError cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                                   void* to, const void* from, size_t bytes, cudaMemcpyKind kind, const char* file,
                                   int line) {
  return add(node, graph, after, count, cudaGraphNodeTypeMemcpy,
             simt_cuda::copy_step(to, from, bytes, kind, file, line));
}
cudaError cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                                 const cudaMemsetParams* p, const char* file, int line) {
  return add(node, graph, after, count, cudaGraphNodeTypeMemset, simt_cuda::fill_step(*p, file, line));
}
cudaError cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                               const cudaHostNodeParams* p) {
  return add(node, graph, after, count, cudaGraphNodeTypeHost, simt_cuda::host_step(*p));
}
cudaError cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count) {
  return add(node, graph, after, count, cudaGraphNodeTypeEmpty, nullptr);
}
cudaError cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                     size_t count, cudaGraph_t child) {
  cudaGraphExec_t executable = nullptr;
  if (const cudaError error = cudaGraphInstantiate(&executable, child)) return error;
  const std::shared_ptr<CUgraphExec_st> inner(executable, cudaGraphExecDestroy);
  return add(node, graph, after, count, cudaGraphNodeTypeGraph,
             simt_cuda::step_of([=](cudaStream_t stream) { simt_cuda::launch_graph(*inner, stream); }));
}
cudaError cudaGraphAddEventRecordNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                      size_t count, cudaEvent_t event) {
  return add(node, graph, after, count, cudaGraphNodeTypeEventRecord,
             simt_cuda::step_of([=](cudaStream_t stream) { cudaEventRecord(event, stream); }));
}
cudaError cudaGraphAddEventWaitNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                    size_t count, cudaEvent_t event) {
  return add(node, graph, after, count, cudaGraphNodeTypeWaitEvent,
             simt_cuda::step_of([=](cudaStream_t stream) { cudaStreamWaitEvent(stream, event); }));
}
// A graph's memory is there from when it is built: what a launch has of it is new each time, but not its address.
cudaError cudaGraphAddMemAllocNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                                   cudaMemAllocNodeParams* p, const char* file, int line) {
  if (const cudaError error = simt_cuda::allocate_for_graph(&p->dptr, p->bytesize, "memory of a graph", file, line))
    return error;
  void* const begin = p->dptr;
  return add(node, graph, after, count, cudaGraphNodeTypeMemAlloc,
             simt_cuda::step_of([=](cudaStream_t) { simt_cuda::begin_of_graph(begin); }));
}
cudaError cudaGraphAddMemFreeNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                                  void* pointer, const char* file, int line) {
  return add(node, graph, after, count, cudaGraphNodeTypeMemFree,
             simt_cuda::step_of([=](cudaStream_t stream) { cudaFreeAsync(pointer, stream, file, line); }));
}

cudaError cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle* handle, cudaGraph_t graph, unsigned value,
                                           unsigned flags) {
  if (!handle || !graph || flags > cudaGraphCondAssignDefault) return cudaErrorInvalidValue;
  auto* const condition = new simt_cuda::Condition{value, value, flags != 0};  // as long as the program, as handles are
  *handle = reinterpret_cast<cudaGraphConditionalHandle>(condition);
  return cudaSuccess;
}

void cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned value) {
  simt::leave_to_others();
  simt::machine.has_traces = true;
  reinterpret_cast<simt_cuda::Condition*>(handle)->value = value;
}

namespace {
cudaError add_conditional(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                          cudaConditionalNodeParams& p) {
  const bool is_switch = p.type == cudaGraphCondTypeSwitch;
  if (p.handle == 0 || p.size == 0 || (!is_switch && p.size > (p.type == cudaGraphCondTypeIf ? 2u : 1u)))
    return cudaErrorInvalidValue;
  if (const cudaError error = add(node, graph, after, count, cudaGraphNodeTypeConditional, nullptr)) return error;
  (*node)->conditional = std::make_shared<simt_cuda::Conditional>();
  simt_cuda::Conditional& made = *(*node)->conditional;
  made.condition = reinterpret_cast<simt_cuda::Condition*>(p.handle);
  made.type = p.type;
  for (unsigned i = 0; i < p.size; ++i)
    made.shown.push_back(made.bodies.emplace_back(std::make_unique<CUgraph_st>()).get());
  p.phGraph_out = made.shown.data();
  return cudaSuccess;
}
}  // namespace

cudaError cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                           cudaGraphNodeParams* p, const char* file, int line) {
  if (!p) return cudaErrorInvalidValue;
  switch (p->type) {
    case cudaGraphNodeTypeKernel:
      return cudaGraphAddKernelNode(node, graph, after, count, &p->kernel, file, line);
    case cudaGraphNodeTypeMemcpy:
      return cudaGraphAddMemcpyNode(node, graph, after, count, &p->memcpy.copyParams, file, line);
    case cudaGraphNodeTypeMemset:
      return cudaGraphAddMemsetNode(node, graph, after, count, &p->memset, file, line);
    case cudaGraphNodeTypeHost:
      return cudaGraphAddHostNode(node, graph, after, count, &p->host);
    case cudaGraphNodeTypeGraph:
      return cudaGraphAddChildGraphNode(node, graph, after, count, p->graph.graph);
    case cudaGraphNodeTypeEmpty:
      return cudaGraphAddEmptyNode(node, graph, after, count);
    case cudaGraphNodeTypeWaitEvent:
      return cudaGraphAddEventWaitNode(node, graph, after, count, p->eventWait.event);
    case cudaGraphNodeTypeEventRecord:
      return cudaGraphAddEventRecordNode(node, graph, after, count, p->eventRecord.event);
    case cudaGraphNodeTypeMemAlloc:
      return cudaGraphAddMemAllocNode(node, graph, after, count, &p->alloc, file, line);
    case cudaGraphNodeTypeMemFree:
      return cudaGraphAddMemFreeNode(node, graph, after, count, p->free.dptr, file, line);
    case cudaGraphNodeTypeConditional:
      return add_conditional(node, graph, after, count, p->conditional);
  }
  return cudaErrorInvalidValue;
}

cudaError cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                   size_t count) {
  if (!graph) return cudaErrorInvalidValue;
  for (size_t i = 0; i < count; ++i) to[i]->after.push_back(from[i]);
  return cudaSuccess;
}
cudaError cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                      size_t count) {
  if (!graph) return cudaErrorInvalidValue;
  for (size_t i = 0; i < count; ++i) std::erase(to[i]->after, from[i]);
  return cudaSuccess;
}
cudaError cudaGraphDestroyNode(cudaGraphNode_t node) {
  if (!node) return cudaErrorInvalidValue;
  auto& nodes = node->graph->nodes;
  for (const auto& other : nodes) std::erase(other->after, node);
  std::erase_if(nodes, [&](const auto& each) { return each.get() == node; });
  return cudaSuccess;
}

cudaError cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  if (!graph || !count) return cudaErrorInvalidValue;
  std::vector<cudaGraphNode_t> found;
  for (const auto& node : graph->nodes) found.push_back(node.get());
  return simt_cuda::give(found, nodes, count);
}
cudaError cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  if (!graph || !count) return cudaErrorInvalidValue;
  std::vector<cudaGraphNode_t> found;
  for (const auto& node : graph->nodes)
    if (node->after.empty()) found.push_back(node.get());
  return simt_cuda::give(found, nodes, count);
}
cudaError cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, size_t* count) {
  if (!graph || !count) return cudaErrorInvalidValue;
  std::vector<cudaGraphNode_t> befores, afters;
  for (const auto& node : graph->nodes) {
    for (CUgraphNode_st* other : node->after) {
      befores.push_back(other);
      afters.push_back(node.get());
    }
  }
  std::size_t same = *count;
  simt_cuda::give(befores, from, &same);
  return simt_cuda::give(afters, to, count);
}
cudaError cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* dependencies, size_t* count) {
  if (!node || !count) return cudaErrorInvalidValue;
  return simt_cuda::give(node->after, dependencies, count);
}
cudaError cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  if (!node || !type) return cudaErrorInvalidValue;
  return *type = node->type, cudaSuccess;
}

cudaError cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams* p, const char* file,
                                       int line) {
  return change(node, cudaGraphNodeTypeKernel, simt_cuda::kernel_step(*p, file, line));
}
cudaError cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const cudaMemcpy3DParms* copy, const char* file,
                                       int line) {
  return change(node, cudaGraphNodeTypeMemcpy, simt_cuda::copy_step(*copy, file, line));
}
cudaError cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void* to, const void* from, size_t bytes,
                                         cudaMemcpyKind kind, const char* file, int line) {
  return change(node, cudaGraphNodeTypeMemcpy, simt_cuda::copy_step(to, from, bytes, kind, file, line));
}
cudaError cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const cudaMemsetParams* p, const char* file, int line) {
  return change(node, cudaGraphNodeTypeMemset, simt_cuda::fill_step(*p, file, line));
}
cudaError cudaGraphHostNodeSetParams(cudaGraphNode_t node, const cudaHostNodeParams* p) {
  return change(node, cudaGraphNodeTypeHost, simt_cuda::host_step(*p));
}

cudaError cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  if (!executable || !graph) return cudaErrorInvalidValue;
  auto nodes = simt_cuda::in_order(*graph);
  if (nodes.size() < graph->nodes.size()) return cudaErrorInvalidValue;  // some wait for each other
  auto made = std::make_unique<CUgraphExec_st>(CUgraphExec_st{std::move(nodes), {}});
  for (CUgraphExec_st::Node& node : made->nodes) {
    if (const simt_cuda::Conditional* const conditional = node.of->conditional.get()) {
      std::vector<std::shared_ptr<CUgraphExec_st>> bodies;
      made->conditions.push_back(conditional->condition);
      for (const auto& body : conditional->bodies) {
        cudaGraphExec_t inner = nullptr;
        if (const cudaError error = cudaGraphInstantiate(&inner, body.get())) return error;
        bodies.emplace_back(inner, cudaGraphExecDestroy);
        made->conditions.insert(made->conditions.end(), inner->conditions.begin(), inner->conditions.end());
      }
      node.step.reset(simt_cuda::conditional_step(*conditional, bodies));
    }
  }
  for (CUgraphExec_st::Node& node : made->nodes) cudaStreamCreateWithFlags(&node.stream, cudaStreamNonBlocking);
  *executable = made.release();
  return cudaSuccess;
}

cudaError cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  if (!executable || !simt_cuda::is_stream(stream)) return cudaErrorInvalidValue;
  if (simt_cuda::is_capturing(stream)) {
    simt_cuda::add_step(stream, simt_cuda::step_of([=](cudaStream_t s) { simt_cuda::launch_graph(*executable, s); }),
                        cudaGraphNodeTypeGraph);
    return cudaSuccess;
  }
  simt_cuda::launch_graph(*executable, stream);
  return cudaSuccess;
}

cudaError cudaGraphExecDestroy(cudaGraphExec_t executable) {
  if (!executable) return cudaErrorInvalidValue;
  for (const CUgraphExec_st::Node& node : executable->nodes) cudaStreamDestroy(node.stream);
  delete executable;
  return cudaSuccess;
}

cudaError cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph, cudaGraphNode_t* failed,
                              cudaGraphExecUpdateResult* result) {
  if (!executable || !graph || !result) return cudaErrorInvalidValue;
  const auto nodes = simt_cuda::in_order(*graph);
  *result =
      nodes.size() == executable->nodes.size() ? cudaGraphExecUpdateSuccess : cudaGraphExecUpdateErrorTopologyChanged;
  for (std::size_t i = 0; i < nodes.size() && *result == cudaGraphExecUpdateSuccess; ++i) {
    if (nodes[i].type != executable->nodes[i].type) *result = cudaGraphExecUpdateErrorNodeTypeChanged;
    if (nodes[i].after != executable->nodes[i].after) *result = cudaGraphExecUpdateErrorTopologyChanged;
    if (*result != cudaGraphExecUpdateSuccess && failed) *failed = nodes[i].of;
  }
  if (*result != cudaGraphExecUpdateSuccess) return cudaErrorGraphExecUpdateFailure;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (nodes[i].type != cudaGraphNodeTypeConditional) executable->nodes[i].step = nodes[i].step;
  return cudaSuccess;
}
cudaError cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* info) {
  if (!info) return cudaErrorInvalidValue;
  info->errorNode = info->errorFromNode = nullptr;
  return cudaGraphExecUpdate(executable, graph, &info->errorNode, &info->result);
}

cudaError cudaGraphExecKernelNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                           const cudaKernelNodeParams* p, const char* file, int line) {
  return change(executable, node, cudaGraphNodeTypeKernel, simt_cuda::kernel_step(*p, file, line));
}
cudaError cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                           const cudaMemcpy3DParms* copy, const char* file, int line) {
  return change(executable, node, cudaGraphNodeTypeMemcpy, simt_cuda::copy_step(*copy, file, line));
}
cudaError cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t executable, cudaGraphNode_t node, void* to,
                                             const void* from, size_t bytes, cudaMemcpyKind kind, const char* file,
                                             int line) {
  return change(executable, node, cudaGraphNodeTypeMemcpy, simt_cuda::copy_step(to, from, bytes, kind, file, line));
}
cudaError cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node, const cudaMemsetParams* p,
                                           const char* file, int line) {
  return change(executable, node, cudaGraphNodeTypeMemset, simt_cuda::fill_step(*p, file, line));
}
cudaError cudaGraphExecHostNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                         const cudaHostNodeParams* p) {
  return change(executable, node, cudaGraphNodeTypeHost, simt_cuda::host_step(*p));
}
cudaError cudaGraphNodeSetEnabled(cudaGraphExec_t executable, cudaGraphNode_t node, unsigned enabled) {
  if (!executable) return cudaErrorInvalidValue;
  for (CUgraphExec_st::Node& each : executable->nodes)
    if (each.of == node) return each.enabled = enabled != 0, cudaSuccess;
  return cudaErrorInvalidValue;
}
