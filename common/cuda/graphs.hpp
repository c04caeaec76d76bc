/// @file
/// Graphs of a plain CUDA program, captured from streams or built node by node. Each node of a launch runs at once, as
/// in a stream of its own, so that two which touch the same memory and which nothing orders are found.
#pragma once
#include <memory>
#include <vector>

#include "common/cuda/include/cuda_runtime.h"

/// A node of a graph.
struct CUgraphNode_st {
  cudaGraphNodeType type;                 ///< what it does
  std::shared_ptr<simt_cuda::Step> step;  ///< null: it only orders
  std::vector<CUgraphNode_st*> after;     ///< what must be over before it begins
  CUgraph_st* graph = nullptr;            ///< that it is of
};
/// A graph of nodes.
struct CUgraph_st {
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;  ///< in the order in which they were added
};

namespace simt_cuda {
/// A new node of the graph. @param step which the node owns from now on, or null
CUgraphNode_st* add_node(CUgraph_st& graph, cudaGraphNodeType type, Step* step, std::vector<CUgraphNode_st*> after);
}  // namespace simt_cuda
