// Kernels whose blocks are run on several cores: independent ones, and such as meet in memory.
#include "common/kernel/kernel.hpp"
#include "tests/simt/cores_kernels.hpp"

namespace convladder {
namespace {

__global__ void several(const float* input, float* output, unsigned* meeting, BlocksDo what, void (*allocate)()) {
  __shared__ float tile[64];
  __shared__ unsigned before;
  const int thread = static_cast<int>(threadIdx.x), block = static_cast<int>(blockIdx.x);
  const int i = block * 64 + thread;
  tile[thread] = input[i] + input[thread] + input[i + 32];
  __syncthreads();
  float sum = tile[63 - thread];
  if (what == BlocksDo::read_neighbour && block > 0) sum += output[i - 64];                // <- cores, read
  if (what == BlocksDo::leave_bounds && block == 9 && thread == 5) sum += input[1 << 20];  // <- cores, bounds
  output[i] = sum;
  if (what == BlocksDo::write_neighbour) output[i + 32] = sum;  // <- cores, write
  if (what == BlocksDo::share_words && thread == 0)
    reinterpret_cast<unsigned char*>(meeting)[block] = static_cast<unsigned char>(block);
  if (what == BlocksDo::add) atomicAdd(reinterpret_cast<float*>(meeting), 1 / (1 + sum));
  if (what == BlocksDo::add_late && block >= 8) atomicAdd(reinterpret_cast<float*>(meeting + block % 2), 1 / (1 + sum));
  if (what == BlocksDo::sum_by_last) {
    __syncthreads();
    if (thread == 0) {
      __threadfence();
      before = atomicAdd(meeting, 1u);
      __threadfence();
    }
    __syncthreads();
    if (before + 1 == gridDim.x) {
      float all = 0;
      for (int b = 0; b < static_cast<int>(gridDim.x); ++b) all += output[b * 64 + thread];
      output[static_cast<int>(gridDim.x) * 64 + thread] = all;
    }
  }
  if (what == BlocksDo::wait_for_first && thread == 0) {
    if (block == 0) atomicExch(meeting, 1u);
    if (block + 1 == static_cast<int>(gridDim.x))
      while (atomicAdd(meeting, 0u) == 0) {
      }
  }
  if (what == BlocksDo::allocate && block == 2 && thread == 0) allocate();
  if (what == BlocksDo::sum_of_pairs && block > 6) {
    __syncthreads();
    if (thread == 0) {
      __threadfence();
      before = atomicAdd(meeting + (block + 1) / 2, 1u);
      __threadfence();
    }
    __syncthreads();
    if (before == 1) output[i] = sum + output[i - 64];
  }
  if (what == BlocksDo::wait_for_next && thread == 0) {
    if (block + 1 < static_cast<int>(gridDim.x))
      while (atomicAdd(meeting + block + 1, 0u) == 0) {
      }
    atomicExch(meeting + block, 1u);
  }
}

}  // namespace

void launch_blocks(const float* input, float* output, unsigned* meeting, BlocksDo what, void (*allocate)()) {
  launch(several, kBlocks, 64, 0, nullptr)(input, output, meeting, what, allocate);
}

}  // namespace convladder
