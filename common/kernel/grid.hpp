/// @file
/// Grids that cover more than their dimensions allow.
#pragma once
#include "common/kernel/kernel.hpp"

namespace convladder {

/// A grid of `x` by `y` blocks. A grid's y ends at 65,535: what is more goes on in z.
dim3 grid_in_y(std::int64_t x, std::int64_t y);
/// The block's place along the y of grid_in_y(); in the last z it may be past the end.
__device__ __forceinline__ int block_in_y() { return static_cast<int>(blockIdx.y + gridDim.y * blockIdx.z); }

/// ceil(count / size)
__host__ __device__ __forceinline__ constexpr int blocks_for(int count, int size) { return (count - 1) / size + 1; }

}  // namespace convladder
