/// @file
/// `ldmatrix`, `stmatrix` and `mma.sync` in the simulator. Included through common/kernel/mma.hpp, which says what each
/// does and which lane holds what; docs/simulator.md tells what they count, and what they order: nothing.
#pragma once
#include <type_traits>

#include "common/simt/simt.hpp"

/// @cond
namespace simt {

// Collectives of a warp. d, values, a and b are the lane's registers.
void load_matrices(unsigned* d, const void* row, unsigned count, bool transposed, int line);
void store_matrices(void* row, const unsigned* values, unsigned count, bool transposed, int line);
void multiply_halves(float* d, const unsigned* a, const unsigned* b, int line);
void multiply_bytes(int* d, const unsigned* a, const unsigned* b, int line);

/// What mma.sync multiplies, and which shape: 16 x 8, `row_bytes` of a row of A along the sum (16 or 32).
enum class MmaElement { f16, bf16, tf32, s8, u8, e4m3, e5m2 };
struct MmaForm {
  MmaElement a, b;
  unsigned row_bytes;
  bool half_sums;
};
/// d += a b, in the registers that PTX lists; d is floats, ints or pairs of halves.
void multiply_matrices(const MmaForm& form, unsigned* d, const unsigned* a, const unsigned* b, int line);

}  // namespace simt
/// @endcond

namespace convladder {

struct Fp16;
struct Bf16;

/// @name Matrix instructions of a warp
/// As in common/kernel/mma.hpp. A lane that never arrives is a fault.
/// @{

/// See common/kernel/mma.hpp.
template <int Count>
__forceinline__ void ldmatrix(unsigned (&d)[Count], const void* row, int line = __builtin_LINE()) {
  static_assert(Count == 1 || Count == 2 || Count == 4, "ldmatrix loads 1, 2 or 4 matrices");
  simt::load_matrices(d, row, Count, false, line);
}
template <int Count>
__forceinline__ void ldmatrix_transposed(unsigned (&d)[Count], const void* row, int line = __builtin_LINE()) {
  static_assert(Count == 1 || Count == 2 || Count == 4, "ldmatrix loads 1, 2 or 4 matrices");
  simt::load_matrices(d, row, Count, true, line);
}
template <int Count>
__forceinline__ void stmatrix(void* row, const unsigned (&values)[Count], int line = __builtin_LINE()) {
  static_assert(Count == 1 || Count == 2 || Count == 4, "stmatrix stores 1, 2 or 4 matrices");
  simt::store_matrices(row, values, Count, false, line);
}
template <int Count>
__forceinline__ void stmatrix_transposed(void* row, const unsigned (&values)[Count], int line = __builtin_LINE()) {
  static_assert(Count == 1 || Count == 2 || Count == 4, "stmatrix stores 1, 2 or 4 matrices");
  simt::store_matrices(row, values, Count, true, line);
}
template <class Element = Fp16>
__forceinline__ void mma_m16n8k16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                                  int line = __builtin_LINE()) {
  if constexpr (std::is_same_v<Element, Fp16>) {
    simt::multiply_halves(d, a, b, line);
  } else {
    constexpr simt::MmaForm kForm{simt::MmaElement::bf16, simt::MmaElement::bf16, 32, false};
    simt::multiply_matrices(kForm, reinterpret_cast<unsigned*>(d), a, b, line);
  }
}
__forceinline__ void mma_m16n8k32(int (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                                  int line = __builtin_LINE()) {
  simt::multiply_bytes(d, a, b, line);
}
/// @}

}  // namespace convladder
