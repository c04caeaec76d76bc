// A ring of buffers between a producer and consumers, with two mbarriers for each buffer.
//
// The idea: loading and computing should go on at the same time, and neither should wait for the other longer than it
// must. A block barrier in the loop makes all wait for all. Here one thread of one warp only asks for copies, and four
// other warps only add up. A buffer's mbarrier `full` says that its bytes have come, its mbarrier `empty` that all
// consumers have read them. The producer is ahead by as many chunks as the ring has buffers.
//
//   1. One thread makes the mbarriers. A phase of `full` has one arrival, the producer's, and the bytes of a chunk; a
//      phase of `empty` has an arrival of each consumer warp.
//   2. Producer: chunk i goes to buffer i % 4, as its entry i / 4. Entry 0 finds the buffer empty; entry e waits until
//      phase e - 1 of `empty` has ended. A wait knows a phase by its parity alone, its number modulo 2.
//   3. The producer says how many bytes will come, and starts the copy, which ends at `full`.
//   4. Consumer: waits until phase e of `full` has ended, and reads its number.
//   5. When all lanes have read, one arrives at `empty` for its warp: __syncwarp() hands it what the others did.
//      The consumer waits for nobody there.
//
// Build and run it, on a GPU of compute capability 9.0:
//     nvcc -std=c++17 -arch=sm_90a mbarrier_ring.cu -o mbarrier_ring && ./mbarrier_ring
// In the simulator, on any machine:
//     ./lab sim examples/mbarrier_ring.cu
//
// Try it: leave out a wait, of step 2 or of step 4. Results may still be right; the simulator names the line.
#include <cstdio>

#include "../common/kernel/hopper.hpp"  // all that it needs: copy it, too
using namespace convladder;

constexpr int kConsumerWarps = 4, kChunk = 32 * kConsumerWarps;  // floats: one for each thread that consumes
constexpr int kBuffers = 4, kChunks = 50;
constexpr int kChunkBytes = kChunk * sizeof(float);

__global__ void add_chunks(const float* chunks, float* sums) {
  float* const ring = dynamic_shared_1024<float>();  // [kBuffers][kChunk]
  __shared__ Mbarrier full[kBuffers], empty[kBuffers];
  const int thread = threadIdx.x, warp = warp_index(), lane = thread % 32;

  // 1.
  if (thread == 0) {
    for (int i = 0; i < kBuffers; ++i) {
      mbarrier_init(&full[i], 1);
      mbarrier_init(&empty[i], kConsumerWarps);
    }
    fence_mbarrier_init();
  }
  __syncthreads();

  if (warp == kConsumerWarps) {  // Producer
    if (lane != 0) return;
    for (int i = 0; i < kChunks; ++i) {
      const int buffer = i % kBuffers, entry = i / kBuffers;
      // 2.
      if (entry > 0) mbarrier_wait(&empty[buffer], (entry - 1) % 2);
      // 3.
      mbarrier_expect(&full[buffer], kChunkBytes);
      bulk_load(ring + buffer * kChunk, chunks + i * kChunk, kChunkBytes, &full[buffer]);
    }
  } else {  // Consumer
    float sum = 0;
    for (int i = 0; i < kChunks; ++i) {
      const int buffer = i % kBuffers, entry = i / kBuffers;
      // 4.
      mbarrier_wait(&full[buffer], entry % 2);
      sum += ring[buffer * kChunk + thread];
      // 5.
      __syncwarp();
      if (lane == 0) mbarrier_arrive(&empty[buffer]);
    }
    sums[thread] = sum;
  }
}

int main() {
  float *chunks, *sums;
  if (cudaMallocManaged(&chunks, kChunks * kChunkBytes) || cudaMallocManaged(&sums, kChunkBytes))
    return printf("wrong: %s\n", cudaGetErrorString(cudaGetLastError())), 1;
  for (int i = 0; i < kChunks * kChunk; ++i) chunks[i] = float(i * 5 % 31 - 15);
  add_chunks<<<1, 32 * (kConsumerWarps + 1), kBuffers * kChunkBytes>>>(chunks, sums);
  cudaDeviceSynchronize();
  if (const cudaError_t error = cudaGetLastError()) return printf("wrong: %s\n", cudaGetErrorString(error)), 1;

  for (int t = 0; t < kChunk; ++t) {
    float want = 0;
    for (int i = 0; i < kChunks; ++i) want += chunks[i * kChunk + t];
    if (sums[t] != want) return printf("wrong: sum %d is %g, not %g\n", t, sums[t], want), 1;
  }
  printf("chunk  buffer  entry  producer waits for phase of empty  consumers wait for phase of full\n");
  for (int i = 0; i < 10; ++i) {
    const int entry = i / kBuffers;
    printf("%5d  %6d  %5d  ", i, i % kBuffers, entry);
    entry ? printf("%10d, parity %d", entry - 1, (entry - 1) % 2) : printf("%20s", "nobody");
    printf("  %26d, parity %d\n", entry, entry % 2);
  }
  printf("%d chunks went through %d buffers; the loop has no block barrier\n", kChunks, kBuffers);
  printf("right\n");
  cudaFree(chunks);
  cudaFree(sums);
}
