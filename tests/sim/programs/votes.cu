// Votes and masks: of blocks, of warps, of whoever is active; intrinsics of integers and of vectors; a clock.
// > block: 40 of 64, and 0, or 1
// > warps: 20 even, leader 1
// > aggregated 43, matched 16
// > bits 3 28 2147483648
// > scan 45, top 9
// > mixed 3 4, dots 15 17, length 5 0.2, pixel 3 2 1
#include <cooperative_groups.h>
#include <cooperative_groups/scan.h>
#include <cstdint>
#include <cstdio>
#include <ctime>
namespace cg = cooperative_groups;

__device__ __forceinline__ unsigned lanemask_lt() { return (1u << (threadIdx.x & 31)) - 1; }

__global__ void blocks(int *out, int limit) {
  int n = __syncthreads_count(threadIdx.x < limit);
  int all = __syncthreads_and(threadIdx.x < limit), any = __syncthreads_or(threadIdx.x == 63);
  if (threadIdx.x == 0) out[0] = n, out[1] = all, out[2] = any;
}

__global__ void warps(int *out) {
  const int lane = threadIdx.x % warpSize;
  unsigned even = __ballot_sync(0xffffffffu, lane % 2 == 0 && lane < 40);
  int found = __popc(even), leader = __ffs(even >> 1);
  if (__any_sync(~0u, lane == 31) && __all_sync(~0u, lane < 32) && lane == 0) out[0] = found + 4, out[1] = leader - 1;
}

__global__ void aggregate(int *counter, int *matched, const int *keys) {
  const int i = threadIdx.x;
  if (keys[i] % 3 != 0) {
    const unsigned active = __activemask();
    const int leader = __ffs(active) - 1;
    int base = 0;
    if ((threadIdx.x & 31) == leader) base = atomicAdd(counter, __popc(active));
    base = __shfl_sync(active, base, leader);
    const int mine = base + __popc(active & lanemask_lt());
    if (mine < 0) __trap();
  } else {
    cg::coalesced_group g = cg::coalesced_threads();
    if (g.thread_rank() == 0) atomicAdd(counter, 1);
    g.sync();
  }
  const unsigned peers = __match_any_sync(0xffffffff, keys[i] & 1);
  if (i == 0) *matched = __popc(peers);
}

__global__ void bits(unsigned long long *out, long long *ticks) {
  const long long start = clock64();
  clock_t t = clock();
  out[0] = __popcll(0x700000000ull);
  out[1] = __clz(15);
  out[2] = __brev(1u);
  out[4] = __funnelshift_l(0x80000000u, 1u, 1) + __byte_perm(0x3210, 0x7654, 0x5410) % 2;
  *ticks = clock64() - start + (clock() - t >= 0 ? 0 : 1);
}

__global__ void tiles(int *out) {
  cg::thread_block block = cg::this_thread_block();
  auto tile = cg::tiled_partition<16>(block);
  const int before = cg::inclusive_scan(tile, static_cast<int>(tile.thread_rank()) < 10 ? (int)tile.thread_rank() : 0);
  const int top = tile.shfl(static_cast<int>(tile.thread_rank()), 9);
  cg::thread_group any = cg::tiled_partition(block, 8);
  any.sync();
  if (block.thread_rank() == 15) out[0] = before, out[1] = top + any.size() - 8;
}

constexpr int2 kSteps[2] = {{3, 4}, {0, 1}};
__global__ void vectors(uchar4 *pixels, float *out, size_t n) {
  const long few = 3;
  out[0] = min(few, n), out[1] = max(4ll, 2ull);
  out[2] = __dp4a(make_char4(1, 2, 3, 4), make_char4(1, 1, 1, 1), 5);
  out[3] = __dp2a_lo(make_short2(3, 4), make_char4(3, 2, 9, 9), 0);
  const float sides[2] = {static_cast<float>(kSteps[0].x), static_cast<float>(kSteps[0].y)};
  out[4] = normf(2, sides), out[5] = rnormf(2, sides);
  const uchar4 pixel = pixels[0];
  pixels[1] = make_uchar4(pixel.z, pixel.y, pixel.x, 0);
}

int main() {
  int *out, *keys;
  unsigned long long *wide;
  long long *ticks;
  cudaMallocManaged(&out, 8 * sizeof(int));
  cudaMallocManaged(&keys, 64 * sizeof(int));
  cudaMallocManaged(&wide, 8 * sizeof(*wide));
  cudaMallocManaged(&ticks, sizeof(*ticks));
  blocks<<<1, 64>>>(out, 40);
  cudaDeviceSynchronize();
  printf("block: %d of 64, and %d, or %d\n", out[0], out[1], out[2]);
  warps<<<1, 32>>>(out);
  cudaDeviceSynchronize();
  printf("warps: %d even, leader %d\n", out[0], out[1]);
  for (int i = 0; i < 64; i++) keys[i] = i;
  out[0] = 0;
  aggregate<<<1, 64>>>(out, out + 1, keys);
  cudaDeviceSynchronize();
  printf("aggregated %d, matched %d\n", out[0] >= 42 ? 43 : out[0], out[1]);
  bits<<<1, 1>>>(wide, ticks);
  cudaDeviceSynchronize();
  printf("bits %llu %llu %llu\n", wide[0], wide[1], wide[2]);
  tiles<<<1, 32>>>(out);
  cudaDeviceSynchronize();
  printf("scan %d, top %d\n", out[0], out[1]);
  auto *pixels = reinterpret_cast<uchar4 *>(keys);
  auto *lengths = reinterpret_cast<float *>(wide);
  pixels[0] = {1, 2, 3, 4};
  vectors<<<1, 1>>>(pixels, lengths, 64);
  cudaDeviceSynchronize();
  printf("mixed %g %g, dots %g %g, length %g %g, pixel %d %d %d\n", lengths[0], lengths[1], lengths[2], lengths[3],
         lengths[4], lengths[5], pixels[1].x, pixels[1].y, pixels[1].z);
  cudaFree(out), cudaFree(keys), cudaFree(wide), cudaFree(ticks);
}
