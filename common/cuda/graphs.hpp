/// @file
/// Graphs of a plain CUDA program, captured from streams or built node by node. Each node of a launch runs at once, as
/// in a stream of its own, so that two which touch the same memory and which nothing orders are found.
#pragma once
#include <memory>
#include <vector>

#include "common/cuda/include/cuda_runtime.h"

namespace simt_cuda {
/// What decides whether a conditional node's bodies run.
struct Condition {
  unsigned value, initial;
  bool is_assigned;  ///< the initial value, at each launch of the graph
};
/// What a conditional node has.
struct Conditional {
  Condition* condition;
  cudaGraphConditionalNodeType type;
  std::vector<std::unique_ptr<CUgraph_st>> bodies;
  std::vector<cudaGraph_t> shown;  ///< the bodies again, as CUDA shows them
};
}  // namespace simt_cuda

/// A node of a graph.
struct CUgraphNode_st {
  cudaGraphNodeType type;                               ///< what it does
  std::shared_ptr<simt_cuda::Step> step;                ///< null: it only orders
  std::vector<CUgraphNode_st*> after;                   ///< what must be over before it begins
  CUgraph_st* graph = nullptr;                          ///< that it is of
  std::shared_ptr<simt_cuda::Conditional> conditional;  ///< of a conditional node; its step is made at instantiation
};
/// A graph of nodes.
struct CUgraph_st {
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;  ///< in the order in which they were added
};

namespace simt_cuda {
/// A new node of the graph. @param step which the node owns from now on, or null
CUgraphNode_st* add_node(CUgraph_st& graph, cudaGraphNodeType type, Step* step, std::vector<CUgraphNode_st*> after);
}  // namespace simt_cuda
