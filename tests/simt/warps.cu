#include "common/kernel/kernel.hpp"
#include "tests/simt/kernels.hpp"

using convladder::launch;

namespace {

constexpr unsigned kAll = 0xffffffffu;

__global__ void warp_sum(const float* input, float* output) {
  float value = input[threadIdx.x];
  for (int distance = 16; distance > 0; distance /= 2) {
    const float other = __shfl_down_sync(kAll, value, distance);
    if (threadIdx.x % 32 + distance < 32 && threadIdx.x + distance < blockDim.x) value += other;
  }
  if (threadIdx.x % 32 == 0) output[threadIdx.x / 32] = value;
}

__global__ void shuffles(int* output) {  // [6][32]
  const int lane = threadIdx.x;
  output[lane] = __shfl_sync(kAll, lane, 5);
  output[32 + lane] = __shfl_sync(kAll, lane, lane + 1, 8);
  output[64 + lane] = __shfl_up_sync(kAll, lane, 3);
  output[96 + lane] = __shfl_down_sync(kAll, lane, 3, 16);
  output[128 + lane] = __shfl_xor_sync(kAll, lane, 7);
  output[160 + lane] = __shfl_xor_sync(kAll, lane, 16, 16);
}

__global__ void votes(unsigned* output) {
  const int lane = threadIdx.x;
  const unsigned odd = __ballot_sync(kAll, lane & 1);
  const int any = __any_sync(kAll, lane == 31), none = __any_sync(kAll, lane == 32);
  const int all = __all_sync(kAll, lane < 32), some = __all_sync(kAll, lane < 31);
  if (lane == 0) {
    output[0] = odd;
    output[1] = any;
    output[2] = none;
    output[3] = all;
    output[4] = some;
  }
}

// Two halves of a warp, each with a collective of its own in a branch of its own.
__global__ void half_masks(int* output) {
  const int lane = threadIdx.x;
  int value;
  if (lane < 16) {
    value = __shfl_sync(0x0000ffffu, lane, 3);
  } else {
    value = __shfl_sync(0xffff0000u, lane, 20);
  }
  __syncwarp();
  output[lane] = value;
}

// Sources outside a warp: a GPU takes five bits of them.
__global__ void odd_sources(int* output) {
  const int lane = threadIdx.x;
  output[lane] = __shfl_sync(kAll, lane, 37);
  output[32 + lane] = __shfl_xor_sync(kAll, lane, -1);
}

__global__ void syncwarps_of_two_lines(int* output) {
  __shared__ int value;
  if (threadIdx.x == 0) {
    value = 7;
    __syncwarp();
  } else {
    __syncwarp();
    output[threadIdx.x] = value;
  }
}

// Prefix sum of one warp through shared memory: __syncwarp orders the steps.
__global__ void warp_scan_shared(const float* input, float* output) {
  __shared__ float sums[32];
  const unsigned lane = threadIdx.x;
  sums[lane] = input[lane];
  for (unsigned distance = 1; distance < 32; distance *= 2) {
    __syncwarp();
    const float left = lane >= distance ? sums[lane - distance] : 0.0f;
    __syncwarp();
    sums[lane] += left;
  }
  output[lane] = sums[lane];
}

}  // namespace

void launch_warp_sum(const float* input, float* output, int threads) {
  launch(warp_sum, 1, threads, 0, nullptr)(input, output);
}
void launch_shuffles(int* output) { launch(shuffles, 1, 32, 0, nullptr)(output); }
void launch_votes(unsigned* output) { launch(votes, 1, 32, 0, nullptr)(output); }
void launch_half_masks(int* output) { launch(half_masks, 1, 32, 0, nullptr)(output); }
void launch_odd_sources(int* output) { launch(odd_sources, 1, 32, 0, nullptr)(output); }
void launch_syncwarps_of_two_lines(int* output) { launch(syncwarps_of_two_lines, 1, 32, 0, nullptr)(output); }
void launch_warp_scan_shared(const float* input, float* output) {
  launch(warp_scan_shared, 1, 32, 0, nullptr)(input, output);
}
