/// @file
/// Matrix fragments of a warp in the simulator, in the names of mma.h. Included through common/kernel/wmma.hpp.
///
/// In `nvcuda::wmma`, for the shapes (M, N, K) = (16, 16, 16), (32, 8, 16) and (8, 32, 16):
///
/// - Factors: `fragment<matrix_a, M, N, K, T, row_major>`, or `matrix_b`, or `col_major`; T is half, signed char or
///   unsigned char; with (16, 16, 8) precision::tf32, whose elements are floats; with (8, 8, 4) double.
/// - Sums: `fragment<accumulator, M, N, K, T>`; T is float or half for factors of half, int for those of bytes,
///   float for those of TF32, double for those of double.
/// - Elements of a lane: `x[num_elements]`, `element_type`.
/// - For all 32 lanes of a warp: `load_matrix_sync(a, pointer, stride)`, `load_matrix_sync(c, pointer, stride,
///   mem_row_major)`, `store_matrix_sync(pointer, c, stride, mem_row_major)`, or `mem_col_major`; `mma_sync(d, a, b,
///   c)`.
/// - For each lane: `fill_fragment(a, value)`.
///
/// As CUDA wants it, a matrix begins at a multiple of 32 bytes, and its stride is one of 16 bytes. docs/simulator.md
/// tells what loads and stores count, and what they order: nothing.
#pragma once
#include "common/simt/half.hpp"

/// @cond
namespace simt {

enum class MatrixUse : std::uint8_t { a, b, accumulator };
enum class MatrixType : std::uint8_t { fp16, fp32, int8, uint8, int32, bf16, tf32, fp64 };

template <class T>
struct MatrixTypeOf;
#define SIMT_MATRIX_TYPE(T, name)                         \
  template <>                                             \
  struct MatrixTypeOf<T> {                                \
    static constexpr MatrixType value = MatrixType::name; \
  };
SIMT_MATRIX_TYPE(half, fp16)
SIMT_MATRIX_TYPE(float, fp32)
SIMT_MATRIX_TYPE(signed char, int8)
SIMT_MATRIX_TYPE(unsigned char, uint8)
SIMT_MATRIX_TYPE(int, int32)
SIMT_MATRIX_TYPE(double, fp64)

/// What a fragment's element is in memory and in a lane.
template <class T>
struct ElementOf {
  using type = T;
};

/// The length of the sums: columns of a, rows of b.
constexpr unsigned sum_length(MatrixType type) {
  return type == MatrixType::tf32 ? 8 : type == MatrixType::fp64 ? 4 : 16;
}

/// A matrix of M x K (a), K x N (b) or M x N numbers.
struct MatrixForm {
  MatrixUse use;
  MatrixType type;
  std::uint8_t m, n;
};

/// Collectives of a warp. @param elements of the lane  @param stride in elements, of rows or columns
void load_matrix(void* elements, const void* matrix, unsigned stride, bool row_major, MatrixForm form, int line);
void store_matrix(void* matrix, const void* elements, unsigned stride, bool row_major, MatrixForm form, int line);
/// d = a b + c, where the types are those of a and b, c, and d.
struct Product {
  void* d;
  const void *a, *b, *c;
  MatrixType of_factors, of_c, of_d;
  std::uint8_t m, n;
};
void multiply_matrices(const Product& product, int line);

/// Copies a value of some bytes to each element.
void fill_elements(void* elements, unsigned count, const void* value, unsigned bytes);

}  // namespace simt
/// @endcond

namespace nvcuda::wmma {

/// @name Fragments
/// As in CUDA.
/// @{
/// @cond
struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
/// @endcond

/// As in CUDA: how an accumulator lies in memory.
enum layout_t {
  mem_row_major,  ///< a row's elements are neighbours
  mem_col_major,  ///< a column's elements are neighbours
};

/// @cond
template <class Use>
constexpr simt::MatrixUse kUse = simt::MatrixUse::accumulator;
template <>
inline constexpr simt::MatrixUse kUse<matrix_a> = simt::MatrixUse::a;
template <>
inline constexpr simt::MatrixUse kUse<matrix_b> = simt::MatrixUse::b;
template <class Layout>
constexpr bool kRowMajor = false;
template <>
inline constexpr bool kRowMajor<row_major> = true;

/// As in mma.h: 16 halves whatever the shape, where a smaller matrix repeats itself.
constexpr int elements_of_lane(simt::MatrixForm form) {
  if (form.type == simt::MatrixType::fp64) return form.use == simt::MatrixUse::accumulator ? 2 : 1;
  if (form.type == simt::MatrixType::tf32) return 4;
  if (form.use == simt::MatrixUse::accumulator) return 8;
  if (form.type == simt::MatrixType::fp16 || form.type == simt::MatrixType::bf16) return 16;
  return (form.use == simt::MatrixUse::a ? form.m : form.n) / 2;
}

namespace precision {
struct tf32;
}
/// @endcond

/// As in CUDA: a lane's part of a matrix.
template <class Use, int M, int N, int K, class T, class Layout = void>
class fragment {
 public:
  /// @cond
  static_assert((M == 16 && N == 16 && K == 16) || (M == 32 && N == 8 && K == 16) || (M == 8 && N == 32 && K == 16) ||
                    (M == 16 && N == 16 && K == 8) || (M == 8 && N == 8 && K == 4),
                "fragments are 16x16x16, 32x8x16 or 8x32x16; 16x16x8 of TF32; 8x8x4 of double");
  static constexpr simt::MatrixForm kForm{kUse<Use>, simt::MatrixTypeOf<T>::value, M, N};
  using element_type = typename simt::ElementOf<T>::type;
  using storage_element_type = element_type;
  enum { num_elements = elements_of_lane(kForm) };
  element_type x[num_elements];
  /// @endcond
};
/// @}

/// @name Matrix functions of a warp
/// As in CUDA. A lane that never arrives is a fault.
/// @{

/// As in CUDA.
template <class Use, int M, int N, int K, class T, class Layout>
__forceinline__ void fill_fragment(fragment<Use, M, N, K, T, Layout>& f,
                                   const typename simt::ElementOf<T>::type& value) {
  simt::fill_elements(f.x, f.num_elements, &value, sizeof value);
}
template <class Use, int M, int N, int K, class T, class Layout>
__forceinline__ void load_matrix_sync(fragment<Use, M, N, K, T, Layout>& f,
                                      const typename simt::ElementOf<T>::type* matrix, unsigned stride,
                                      int line = __builtin_LINE()) {
  static_assert(kUse<Use> != simt::MatrixUse::accumulator, "an accumulator's layout is given with each load");
  simt::load_matrix(f.x, matrix, stride, kRowMajor<Layout>, f.kForm, line);
}
template <int M, int N, int K, class T>
__forceinline__ void load_matrix_sync(fragment<accumulator, M, N, K, T>& f, const T* matrix, unsigned stride,
                                      layout_t layout, int line = __builtin_LINE()) {
  simt::load_matrix(f.x, matrix, stride, layout == mem_row_major, f.kForm, line);
}
template <int M, int N, int K, class T>
__forceinline__ void store_matrix_sync(T* matrix, const fragment<accumulator, M, N, K, T>& f, unsigned stride,
                                       layout_t layout, int line = __builtin_LINE()) {
  simt::store_matrix(matrix, f.x, stride, layout == mem_row_major, f.kForm, line);
}
template <int M, int N, int K, class T, class LayoutA, class LayoutB, class TD, class TC>
__forceinline__ void mma_sync(fragment<accumulator, M, N, K, TD>& d, const fragment<matrix_a, M, N, K, T, LayoutA>& a,
                              const fragment<matrix_b, M, N, K, T, LayoutB>& b,
                              const fragment<accumulator, M, N, K, TC>& c, int line = __builtin_LINE()) {
  static_assert(
      (sizeof(typename simt::ElementOf<T>::type) == 1) == (simt::MatrixTypeOf<TD>::value == simt::MatrixType::int32) &&
          (sizeof(typename simt::ElementOf<T>::type) == 1) ==
              (simt::MatrixTypeOf<TC>::value == simt::MatrixType::int32),
      "halves are summed in float or half, bytes in int");
  simt::multiply_matrices({d.x, a.x, b.x, c.x, a.kForm.type, c.kForm.type, d.kForm.type, M, N}, line);
}
/// As in CUDA: rounded to TF32's 10 bits behind the point.
__forceinline__ float __float_to_tf32(float value) {
  const unsigned bits = __builtin_bit_cast(unsigned, value);
  return __builtin_bit_cast(float, (bits + 0x1000u) & ~0x1fffu);
}
/// @}

}  // namespace nvcuda::wmma

/// @cond
namespace simt {
template <>
struct ElementOf<nvcuda::wmma::precision::tf32> {
  using type = float;
};
SIMT_MATRIX_TYPE(nvcuda::wmma::precision::tf32, tf32)
}  // namespace simt
/// @endcond
