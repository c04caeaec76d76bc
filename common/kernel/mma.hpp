/// @file
/// Matrix instructions of a warp, as the PTX ISA defines them: `ldmatrix`, `stmatrix`, `mma.sync`. Unlike fragments
/// (wmma.hpp), which lane holds what is known. PTX under nvcc, the simulator (simt/mma.hpp) elsewhere. Include it after
/// kernel.hpp; under nvcc a copy of this one file is enough elsewhere, too.
///
/// All 32 lanes of a warp call these functions together. They order no memory. A register holds a word: two halves or
/// four bytes, the first of them in the lowest bits.
///
// clang-format off
/// @file
/// | instruction | lane l holds |
/// | --- | --- |
/// | `ldmatrix`, `stmatrix` | word l % 4 of row l / 4 of each matrix of 8 x 8 halves; transposed, rows 2 (l % 4) and 2 (l % 4) + 1 of column l / 4 |
/// | `mma_*`: a, 16 rows of 8 words | register i: word l % 4 + 4 (i / 2) of row l / 4 + 8 (i % 2) |
/// | `mma_*`: b, 8 columns of 8 words | register i: word l % 4 + 4 i of column l / 4 |
/// | `mma_*`: d, 16 rows of 8 sums | register i: sum 2 (l % 4) + i % 2 of row l / 4 + 8 (i / 2) |
// clang-format on
#pragma once
#if defined(__CUDACC__) && !defined(SIMT_PLAIN_CUDA)
#include <type_traits>

namespace convladder {

struct Fp16;
struct Bf16;

/// Loads 1, 2 or 4 matrices of 8 x 8 halves from shared memory (sm_80). Row r of matrix i, 16 bytes, begins where lane
/// 8 i + r says; the other lanes' pointers are not looked at.
/// @param d a register for each matrix  @param row in shared memory, a multiple of 16 bytes
template <int Count>
__device__ __forceinline__ void ldmatrix(unsigned (&d)[Count], const void* row) {
  static_assert(Count == 1 || Count == 2 || Count == 4, "ldmatrix loads 1, 2 or 4 matrices");
#if __CUDA_ARCH__ >= 800
  const unsigned from = static_cast<unsigned>(__cvta_generic_to_shared(row));
  if constexpr (Count == 1)
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(d[0]) : "r"(from) : "memory");
  else if constexpr (Count == 2)
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(d[0]), "=r"(d[1])
                 : "r"(from)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
                 : "r"(from)
                 : "memory");
#else
  __trap();
#endif
}

/// The same, each matrix transposed on its way.
template <int Count>
__device__ __forceinline__ void ldmatrix_transposed(unsigned (&d)[Count], const void* row) {
  static_assert(Count == 1 || Count == 2 || Count == 4, "ldmatrix loads 1, 2 or 4 matrices");
#if __CUDA_ARCH__ >= 800
  const unsigned from = static_cast<unsigned>(__cvta_generic_to_shared(row));
  if constexpr (Count == 1)
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(d[0]) : "r"(from) : "memory");
  else if constexpr (Count == 2)
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(d[0]), "=r"(d[1])
                 : "r"(from)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
                 : "r"(from)
                 : "memory");
#else
  __trap();
#endif
}

/// Stores 1, 2 or 4 matrices of 8 x 8 halves to shared memory (sm_90), as ldmatrix loads them.
template <int Count>
__device__ __forceinline__ void stmatrix(void* row, const unsigned (&values)[Count]) {
  static_assert(Count == 1 || Count == 2 || Count == 4, "stmatrix stores 1, 2 or 4 matrices");
#if __CUDA_ARCH__ >= 900
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(row));
  if constexpr (Count == 1)
    asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" ::"r"(to), "r"(values[0]) : "memory");
  else if constexpr (Count == 2)
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(to), "r"(values[0]), "r"(values[1])
                 : "memory");
  else
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(values[0]),
                 "r"(values[1]), "r"(values[2]), "r"(values[3])
                 : "memory");
#else
  __trap();
#endif
}

/// The same, each matrix transposed on its way.
template <int Count>
__device__ __forceinline__ void stmatrix_transposed(void* row, const unsigned (&values)[Count]) {
  static_assert(Count == 1 || Count == 2 || Count == 4, "stmatrix stores 1, 2 or 4 matrices");
#if __CUDA_ARCH__ >= 900
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(row));
  if constexpr (Count == 1)
    asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};" ::"r"(to), "r"(values[0]) : "memory");
  else if constexpr (Count == 2)
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(to), "r"(values[0]),
                 "r"(values[1])
                 : "memory");
  else
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(values[0]),
                 "r"(values[1]), "r"(values[2]), "r"(values[3])
                 : "memory");
#else
  __trap();
#endif
}

/// @cond
#define CONVLADDER_MMA_M16N8K16(types)                                            \
  asm volatile("mma.sync.aligned.m16n8k16.row.col." types                         \
               " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                   \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
/// @endcond

/// d += a b (sm_80): 16 x 16 halves times 16 x 8 halves, sums in fp32. @tparam Element Fp16, or Bf16 of both
template <class Element = Fp16>
__device__ __forceinline__ void mma_m16n8k16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  if constexpr (std::is_same_v<Element, Fp16>)
    CONVLADDER_MMA_M16N8K16("f32.f16.f16.f32");
  else
    CONVLADDER_MMA_M16N8K16("f32.bf16.bf16.f32");
#else
  __trap();
#endif
}
#undef CONVLADDER_MMA_M16N8K16

/// d += a b (sm_80): 16 x 32 signed bytes times 32 x 8 signed bytes, sums in int32, which wrap.
__device__ __forceinline__ void mma_m16n8k32(int (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  __trap();
#endif
}

}  // namespace convladder

#else
#include "common/simt/mma.hpp"
#endif
