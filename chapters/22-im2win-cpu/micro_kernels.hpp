// The micro-kernels of stage 22: one tile of outputs, for each instruction set.
#pragma once
#include <array>
#include <cstdint>
#include <utility>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

// After ONE_BY_ONE no load moves before it: clang would load the elements of all pixels first, which takes more
// registers than there are.
#if defined(__clang__)
#define UNROLLED _Pragma("unroll")
#define ONE_BY_ONE asm volatile("" ::: "memory")
#else
#define UNROLLED _Pragma("GCC unroll 16")
#define ONE_BY_ONE
#endif

namespace convladder {

// A tile of outputs: `filters` of them from a few groups of `lanes`, by some pixels that follow one another in the
// output plane. Their windows may lie anywhere.
struct Tile {
  const float* const* windows;  // [pixels]
  const std::int32_t* taps;     // [depth]
  int depth;                    // products that are summed here
  const float* packed;          // [groups][...][lanes], at the first of the depth
  std::int64_t group;           // floats from one group to the next
  int filters;                  // that are stored: those of the last group may be fewer than its lanes
  float* output;                // of the first filter and pixel
  std::int64_t plane;           // floats from one filter's outputs to the next one's
  bool add;                     // to what the output holds: sums of earlier channels
};

// The same three steps in each of them: (a) every tap's filters are loaded once, and every pixel's element once, for
// Vectors x lanes x Pixels products; (b) the sums, [pixel][filter], are turned; (c) each filter's run of pixels is
// stored. Pixels are at most what the registers hold beside a tap's filters and one element.
using MicroKernel = void (*)(const Tile&);

// (c) from [filter][row] in memory.
template <int Pixels, int Row>
inline void store_tile(const Tile& t, const float (*sums)[Row]) {
  for (int k = 0; k < t.filters; ++k) {
    float* output = t.output + k * t.plane;
    for (int j = 0; j < Pixels; ++j) output[j] = (t.add ? output[j] : 0.0f) + sums[k][j];
  }
}

// Portable: vectors of four in the compiler's own notation, which any CPU of 64 bits has: 2 vectors x 6 pixels of sums.
using Four = float __attribute__((vector_size(16)));

template <int Vectors, int Pixels>
void multiply_portable(const Tile& t) {
  Four sums[Vectors][Pixels];
  UNROLLED for (int v = 0; v < Vectors; ++v) { UNROLLED for (int j = 0; j < Pixels; ++j) sums[v][j] = Four{}; }
  const float* windows[Pixels];
  UNROLLED for (int j = 0; j < Pixels; ++j) windows[j] = t.windows[j];
  const float* filters = t.packed;  // (a)
  for (int d = 0; d < t.depth; ++d, filters += 4) {
    const std::int64_t tap = t.taps[d];
    Four filter[Vectors];
    UNROLLED for (int v = 0; v < Vectors; ++v) filter[v] = *reinterpret_cast<const Four*>(filters + v * t.group);
    UNROLLED for (int j = 0; j < Pixels; ++j) {
      UNROLLED for (int v = 0; v < Vectors; ++v) sums[v][j] += windows[j][tap] * filter[v];
    }
  }
  float turned[Vectors * 4][Pixels];  // (b)
  UNROLLED for (int v = 0; v < Vectors; ++v) {
    UNROLLED for (int j = 0; j < Pixels; ++j) {
      UNROLLED for (int k = 0; k < 4; ++k) turned[v * 4 + k][j] = sums[v][j][k];
    }
  }
  store_tile<Pixels, Pixels>(t, turned);
}

#if defined(__x86_64__)
#define TARGET(isa) __attribute__((target(isa)))

// AVX2: 16 registers: 2 vectors x 6 pixels of sums, 2 of filters, 1 element.
template <int Vectors, int Pixels>
TARGET("avx2,fma")
void multiply_avx2(const Tile& t) {
  __m256 sums[Vectors][8];
  UNROLLED for (int v = 0; v < Vectors; ++v) { UNROLLED for (int j = 0; j < 8; ++j) sums[v][j] = _mm256_setzero_ps(); }
  const float* windows[Pixels];
  UNROLLED for (int j = 0; j < Pixels; ++j) windows[j] = t.windows[j];
  const float* filters = t.packed;  // (a)
  for (int d = 0; d < t.depth; ++d, filters += 8) {
    const std::int64_t tap = t.taps[d];
    __m256 filter[Vectors];
    UNROLLED for (int v = 0; v < Vectors; ++v) filter[v] = _mm256_load_ps(filters + v * t.group);
    UNROLLED for (int j = 0; j < Pixels; ++j) {
      const __m256 element = _mm256_broadcast_ss(windows[j] + tap);
      UNROLLED for (int v = 0; v < Vectors; ++v) sums[v][j] = _mm256_fmadd_ps(element, filter[v], sums[v][j]);
      ONE_BY_ONE;
    }
  }
  alignas(16) float turned[Vectors * 8][8];  // (b)
  UNROLLED for (int v = 0; v < Vectors; ++v) {
    UNROLLED for (int j = 0; j < Pixels; j += 4) {
      const __m256 a = _mm256_unpacklo_ps(sums[v][j], sums[v][j + 1]);
      const __m256 b = _mm256_unpackhi_ps(sums[v][j], sums[v][j + 1]);
      const __m256 c = _mm256_unpacklo_ps(sums[v][j + 2], sums[v][j + 3]);
      const __m256 d = _mm256_unpackhi_ps(sums[v][j + 2], sums[v][j + 3]);
      const __m256 filter[4] = {_mm256_shuffle_ps(a, c, 0x44), _mm256_shuffle_ps(a, c, 0xee),
                                _mm256_shuffle_ps(b, d, 0x44), _mm256_shuffle_ps(b, d, 0xee)};
      UNROLLED for (int k = 0; k < 4; ++k) {  // filter k in the lower half, k + 4 in the upper
        _mm_store_ps(&turned[v * 8 + k][j], _mm256_castps256_ps128(filter[k]));
        _mm_store_ps(&turned[v * 8 + 4 + k][j], _mm256_extractf128_ps(filter[k], 1));
      }
    }
  }
  store_tile<Pixels, 8>(t, turned);
}

// Turns a square of 16 x 16: in step s = 1, 2, 4, 8, rows i and i + s exchange the squares of s x s beside their
// diagonal.
template <int Step>
TARGET("avx512f")
inline __attribute__((always_inline)) void turn(__m512 (&rows)[16]) {
  const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const __mmask16 odd = _mm512_test_epi32_mask(lane, _mm512_set1_epi32(Step));
  // Lane n of row i has number n, lane n of row i + s has 16 + n.
  const __m512i first = _mm512_mask_add_epi32(lane, odd, lane, _mm512_set1_epi32(16 - Step));
  const __m512i second = _mm512_add_epi32(first, _mm512_set1_epi32(Step));
  UNROLLED for (int i = 0; i < 16; ++i) {
    if (i & Step) continue;
    const __m512 row = rows[i];
    rows[i] = _mm512_permutex2var_ps(row, first, rows[i + Step]);
    rows[i + Step] = _mm512_permutex2var_ps(row, second, rows[i + Step]);
  }
}

// AVX-512: 32 registers: 2 vectors x 14 pixels of sums, 2 of filters, 1 element.
template <int Vectors, int Pixels>
TARGET("avx512f")
void multiply_avx512(const Tile& t) {
  __m512 sums[Vectors][16];
  UNROLLED for (int v = 0; v < Vectors; ++v) { UNROLLED for (int j = 0; j < 16; ++j) sums[v][j] = _mm512_setzero_ps(); }
  const float* windows[Pixels];
  UNROLLED for (int j = 0; j < Pixels; ++j) windows[j] = t.windows[j];
  const float* filters = t.packed;  // (a)
  for (int d = 0; d < t.depth; ++d, filters += 16) {
    const std::int64_t tap = t.taps[d];
    __m512 filter[Vectors];
    UNROLLED for (int v = 0; v < Vectors; ++v) filter[v] = _mm512_load_ps(filters + v * t.group);
    UNROLLED for (int j = 0; j < Pixels; ++j) {
      const __m512 element = _mm512_set1_ps(windows[j][tap]);
      UNROLLED for (int v = 0; v < Vectors; ++v) sums[v][j] = _mm512_fmadd_ps(element, filter[v], sums[v][j]);
      ONE_BY_ONE;
    }
  }
  constexpr __mmask16 kStored = (1 << Pixels) - 1;
  UNROLLED for (int v = 0; v < Vectors; ++v) {
    turn<1>(sums[v]);  // (b)
    turn<2>(sums[v]);
    turn<4>(sums[v]);
    turn<8>(sums[v]);
    UNROLLED for (int k = 0; k < 16; ++k) {  // (c)
      if (v * 16 + k >= t.filters) continue;
      float* output = t.output + (v * 16 + k) * t.plane;
      if (t.add) sums[v][k] = _mm512_add_ps(sums[v][k], _mm512_maskz_loadu_ps(kStored, output));
      _mm512_mask_storeu_ps(output, kStored, sums[v][k]);
    }
  }
}
#endif

enum { kPortable, kAvx2, kAvx512 };

// The micro-kernels of one instruction set, for every number of pixels up to the most, by one or two groups.
struct Simd {
  int lanes, pixels;
  std::array<std::array<MicroKernel, 14>, 2> kernels;
};

template <int... J>
constexpr Simd portable_kernels(std::integer_sequence<int, J...>) {
  return {4, sizeof...(J), {{{multiply_portable<1, J + 1>...}, {multiply_portable<2, J + 1>...}}}};
}
#if defined(__x86_64__)
template <int... J>
constexpr Simd avx2_kernels(std::integer_sequence<int, J...>) {
  return {8, sizeof...(J), {{{multiply_avx2<1, J + 1>...}, {multiply_avx2<2, J + 1>...}}}};
}
template <int... J>
constexpr Simd avx512_kernels(std::integer_sequence<int, J...>) {
  return {16, sizeof...(J), {{{multiply_avx512<1, J + 1>...}, {multiply_avx512<2, J + 1>...}}}};
}
#endif

// Whether this CPU has it.
inline bool host_has(int simd) {
#if defined(__x86_64__)
  if (simd == kAvx512) return __builtin_cpu_supports("avx512f");
  if (simd == kAvx2) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
  return simd == kPortable;
}

inline const Simd& simd_of(int simd) {
  static constexpr Simd kPortableKernels = portable_kernels(std::make_integer_sequence<int, 6>{});
#if defined(__x86_64__)
  static constexpr Simd kAvx2Kernels = avx2_kernels(std::make_integer_sequence<int, 6>{});
  static constexpr Simd kAvx512Kernels = avx512_kernels(std::make_integer_sequence<int, 14>{});
  if (simd == kAvx512) return kAvx512Kernels;
  if (simd == kAvx2) return kAvx2Kernels;
#endif
  return kPortableKernels;
}

}  // namespace convladder
