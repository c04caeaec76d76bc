/// @file
/// What one block of a launch does, event by event, and what all blocks load, as the simulator meets it. In a GPU
/// program this throws.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace convladder {

/// A warp's request, a copy, a barrier: one thing that a block did.
struct TraceEvent {
  std::string what;         ///< load, store, atomic, bulk_load, bulk_store, wgmma, arrive, wait, complete or barrier
  unsigned warp = 0;        ///< of the block
  std::uint32_t lanes = 0;  ///< of the warp, that took part, a bit each
  std::string file;         ///< relative to the project where it lies in it
  int line = 0;
  std::string space;             ///< global, shared or constant; "" for a barrier of the block and for wgmma
  std::string object;            ///< what is accessed there
  unsigned origin = 0;           ///< byte of a line of 128 bytes at which the object begins
  unsigned bytes = 0;            ///< of each lane; of a bulk copy in all; of a wgmma its columns
  std::int64_t cost = 0;         ///< of a global request its sectors, of a shared one its extra passes over the banks
  std::vector<std::int64_t> at;  ///< in bytes from the object's beginning: of each lane, lowest first; of a copy, one
};

/// What a block did in one launch.
struct BlockTrace {
  std::string kernel;
  std::array<unsigned, 3> grid, block;  ///< sizes
  std::vector<TraceEvent> events;       ///< in the order of the run: warps one after another, from barrier to barrier
  std::int64_t left_out = 0;            ///< events past the limit
};

/// Runs `work` and tells what the block at `index` did in each of its launches whose grid has it.
/// @param limit events of a launch that are kept
std::vector<BlockTrace> traces_of(std::array<unsigned, 3> index, std::size_t limit, const std::function<void()>& work);

/// How often one kernel loaded each sector, 32 bytes, of one tensor.
struct TensorLoads {
  std::string kernel;                ///< its name
  std::string tensor;                ///< its name
  std::size_t bytes = 0;             ///< of the tensor
  std::vector<std::uint32_t> loads;  ///< of each sector: the requests that fetch it
};

/// Runs `work` and tells what its kernels loaded from global memory, in the order in which they began to.
std::vector<TensorLoads> loads_of(const std::function<void()>& work);

}  // namespace convladder
