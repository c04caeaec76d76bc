// > 0 wrong
// C = A B for 64 x 64 x 128 halves: TMA with a swizzle of 128 bytes, mbarriers and wgmma, all in inline PTX.
#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <cstdio>

constexpr int kM = 64, kN = 64, kK = 128, kStep = 64;  // 64 halves are a row of the swizzle

__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void wait(uint64_t* barrier, uint32_t parity) {
  asm volatile(
      "{\n"
      ".reg .pred P1;\n"
      "LAB_WAIT:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n"
      "@P1 bra DONE;\n"
      "bra LAB_WAIT;\n"
      "DONE:\n"
      "}\n" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
}

__device__ __forceinline__ void load(void* to, const CUtensorMap* map, int x, int y, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
      :
      : "r"(shared_address(to)), "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y)
      : "memory");
}

__device__ __forceinline__ uint64_t descriptor(const void* shared) {
  uint64_t bits = (shared_address(shared) & 0x3ffff) >> 4;
  bits |= uint64_t{1} << 16;          // not used with a swizzle
  bits |= uint64_t{1024 >> 4} << 32;  // from 8 rows to the next 8
  return bits | uint64_t{1} << 62;
}

#define R8(i)                                                                                                 \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), \
      "+f"(d[i + 7])

__device__ __forceinline__ void wgmma(float (&d)[32], uint64_t a, uint64_t b, int accumulate) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "%32, %33, p, %35, %36, %37, %38;\n"
      "}\n"
      : R8(0), R8(8), R8(16), R8(24)
      : "l"(a), "l"(b), "r"(accumulate), "n"(1), "n"(1), "n"(0), "n"(0));
}

__global__ void __launch_bounds__(128)
    gemm(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b, float* c) {
  __shared__ alignas(1024) half a[2][kM * kStep];
  extern __shared__ __align__(1024) half b[];  // [2][kN * kStep]
  __shared__ alignas(8) uint64_t full[2];
  const int t = threadIdx.x;
  if (t == 0) {
    for (int i = 0; i < 2; ++i) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&full[i])));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    for (int i = 0; i < 2; ++i) {
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&full[i])),
                   "r"((kM + kN) * kStep * 2)
                   : "memory");
      load(a[i], &map_a, i * kStep, 0, &full[i]);
      load(b + i * kN * kStep, &map_b, i * kStep, 0, &full[i]);
    }
  }
  __syncthreads();
  float d[32];
  asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
  for (int i = 0; i < 2; ++i) {
    wait(&full[i], 0);
    const uint64_t of_a = descriptor(a[i]), of_b = descriptor(b + i * kN * kStep);
    for (int k = 0; k < kStep / 16; ++k) wgmma(d, of_a + 2 * k, of_b + 2 * k, i + k > 0);
  }
  asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(0) : "memory");
  for (int i = 0; i < 32; ++i) {
    const int row = t / 32 * 16 + t % 32 / 4 + i / 2 % 2 * 8, column = i / 4 * 8 + t % 4 * 2 + i % 2;
    c[row * kN + column] = d[i];
  }
}

CUtensorMap map_of(half* matrix, int rows) {
  void* function;
  cudaDriverEntryPointQueryResult found;
  cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found);
  CUtensorMap map;
  const cuuint64_t size[] = {kK, static_cast<cuuint64_t>(rows)}, stride[] = {kK * sizeof(half)};
  const cuuint32_t box[] = {kStep, static_cast<cuuint32_t>(rows)}, step[] = {1, 1};
  const CUresult made = reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function)(
      &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, matrix, size, stride, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
      CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (made != CUDA_SUCCESS) printf("no tensor map\n");
  return map;
}

int main() {
  half *a, *b;
  float* c;
  cudaMallocManaged(&a, kM * kK * sizeof(half));
  cudaMallocManaged(&b, kN * kK * sizeof(half));
  cudaMallocManaged(&c, kM * kN * sizeof(float));
  for (int i = 0; i < kM * kK; ++i) a[i] = __float2half(static_cast<float>(i * 7 % 11 - 5));
  for (int i = 0; i < kN * kK; ++i) b[i] = __float2half(static_cast<float>(i * 5 % 9 - 4));
  gemm<<<1, 128, 2 * kN * kStep * sizeof(half)>>>(map_of(a, kM), map_of(b, kN), c);
  if (const cudaError_t error = cudaDeviceSynchronize()) printf("%s\n", cudaGetErrorString(error));
  int wrong = 0;
  for (int row = 0; row < kM; ++row)
    for (int column = 0; column < kN; ++column) {
      float sum = 0;
      for (int k = 0; k < kK; ++k) sum += __half2float(a[row * kK + k]) * __half2float(b[column * kK + k]);
      wrong += c[row * kN + column] != sum;
    }
  printf("%d wrong\n", wrong);
  cudaFree(a);
  cudaFree(b);
  cudaFree(c);
}
