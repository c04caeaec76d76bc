// > 576 576
// A ring of two slots, filled by bulk copies, that a warpgroup multiplies. One thread of it hands a slot back after its
// own wait, as CUTLASS's pipelines do: a wgmma that is complete has read for all four warps. A fifth warp fills the
// slot again, or, where there is none, that thread does so itself.
#include <cstdint>
#include <cstdio>
#include <cuda/ptx>

namespace ptx = cuda::ptx;

constexpr int kConsumers = 128, kSlots = 2, kSteps = 8;
constexpr int kOfA = 64 * 16, kOfB = 16 * 8;  // halves of a step, in pieces of 8 rows of 16 bytes

__device__ __forceinline__ uint64_t descriptor(const void* shared, uint64_t across, uint64_t down) {
  const uint64_t address = __cvta_generic_to_shared(shared);
  return (address & 0x3ffff) >> 4 | across >> 4 << 16 | down >> 4 << 32;
}

__device__ __forceinline__ void wait(uint64_t* barrier, int parity) {
  while (!ptx::mbarrier_try_wait_parity(barrier, parity)) {
  }
}

struct Slot {
  uint16_t a[kOfA], b[kOfB];
};

__device__ __forceinline__ void fill(Slot* slot, const Slot* from, uint64_t* full) {
  ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, full, sizeof *slot);
  ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, slot, from, sizeof *slot, full);
}

__global__ void product(const Slot* in, float* out) {
  __shared__ alignas(128) Slot slots[kSlots];
  __shared__ alignas(8) uint64_t full[kSlots], empty[kSlots];
  const int t = threadIdx.x;
  if (t == 0) {
    for (int slot = 0; slot < kSlots; ++slot) {
      ptx::mbarrier_init(&full[slot], 1);
      ptx::mbarrier_init(&empty[slot], 1);
    }
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    for (int slot = 0; slot < kSlots; ++slot) fill(&slots[slot], &in[slot], &full[slot]);
  }
  __syncthreads();
  if (t >= kConsumers) {
    if (t > kConsumers) return;
    for (int step = kSlots; step < kSteps; ++step) {
      const int slot = step % kSlots;
      wait(&empty[slot], (step / kSlots - 1) & 1);
      fill(&slots[slot], &in[step], &full[slot]);
    }
    return;
  }
  const bool alone = blockDim.x == kConsumers;
  float d[4] = {};
  for (int step = 0; step < kSteps; ++step) {
    const int slot = step % kSlots;
    wait(&full[slot], step / kSlots & 1);
    const uint64_t of_a = descriptor(slots[slot].a, 128, 256), of_b = descriptor(slots[slot].b, 128, 256);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "l"(of_a), "l"(of_b));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    if (t == 0 && !alone) ptx::mbarrier_arrive(&empty[slot]);
    if (t == 0 && alone && step + kSlots < kSteps) fill(&slots[slot], &in[step + kSlots], &full[slot]);
  }
  for (int i = 0; i < 4; ++i) out[i * kConsumers + t] = d[i];
}

int main() {
  Slot* in;
  float* out;
  cudaMallocManaged(&in, kSteps * sizeof *in);
  cudaMallocManaged(&out, 4 * kConsumers * sizeof *out);
  const uint16_t numbers[] = {0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700, 0x4800};  // 1 to 8
  for (int step = 0; step < kSteps; ++step) {
    for (uint16_t& a : in[step].a) a = numbers[step];
    for (uint16_t& b : in[step].b) b = numbers[0];
  }
  for (const int threads : {kConsumers + 32, kConsumers}) {
    product<<<1, threads>>>(in, out);
    cudaDeviceSynchronize();
    for (int i = 1; i < 4 * kConsumers; ++i)
      if (out[i] != out[0]) printf("%d: %g\n", i, out[i]);
    printf(threads > kConsumers ? "%g " : "%g\n", out[0]);
  }
  cudaFree(in);
  cudaFree(out);
}
