/// @file
/// Clusters of blocks in the simulator, and what sm_90 has for them: the names that common/cuda/ makes CUDA's of.
#pragma once
#include "common/simt/simt.hpp"

/// @cond
namespace simt {

// ---- Where a block is in its cluster; without clusters, each block is one ------------------------------------------

dim3 cluster_size() __attribute__((const));  ///< in blocks
unsigned blocks_in_cluster() __attribute__((const));
unsigned rank_in_cluster() __attribute__((const));
uint3 block_in_cluster() __attribute__((const));
dim3 grid_of_clusters() __attribute__((const));
uint3 cluster_index() __attribute__((const));

// ---- Its shared memory ---------------------------------------------------------------------------------------------

/// The same place in the shared memory of the block of that rank.
void* map_shared(const void* pointer, unsigned rank);
/// The same for an address in the window: see shared_address_of().
std::uint64_t map_shared_address(std::uint64_t address, unsigned rank);
/// The rank of the block whose shared memory it is.
unsigned rank_of_shared(const void* pointer);

enum class Window { own_shared, cluster_shared, global, local, constant };
bool lies_in(Window window, const void* pointer);

// ---- Its barrier ---------------------------------------------------------------------------------------------------

/// @param release what the thread has done becomes known to those that pass
/// @param aligned all lanes of the warp come together
void cluster_arrive(bool release, bool aligned, int line);
void cluster_wait(int line);

// ---- Barriers and copies that reach other blocks -------------------------------------------------------------------

/// So many arrivals, which no later phase waits for.
void mbarrier_arrive_drop(void* barrier, unsigned count);
/// An arrival once the thread's copies by cp.async are complete. @param counted among those of mbarrier_init()
void copies_arrive(void* barrier, bool counted);

/// Stores 4, 8 or 16 bytes and tells the mbarrier.
void store_async(void* shared, const void* value, unsigned bytes, void* barrier);
/// From this block's shared memory to another's.
void bulk_copy_in_cluster(void* to, const void* from, unsigned bytes, void* barrier);

enum class ReduceType { u32, s32, u64, s64, f16, bf16, f32, f64 };
enum class Reduce { add, min, max, inc, dec, bit_and, bit_or, bit_xor };
/// Combines one value with what is there, and tells the mbarrier.
void reduce_async(void* shared, const void* value, ReduceType type, Reduce what, void* barrier);
/// The same for an array in this block's shared memory.
void bulk_reduce_in_cluster(void* to, const void* from, unsigned bytes, ReduceType type, Reduce what, void* barrier);
/// The same to global memory, in the thread's group of bulk copies.
void bulk_reduce(void* global, const void* shared, unsigned bytes, ReduceType type, Reduce what);

}  // namespace simt
/// @endcond
