// Matrix fragments: products of every shape, type and layout.
#include "common/kernel/kernel.hpp"
#include "tests/kernel/fragments.hpp"
//
#include "common/kernel/wmma.hpp"

namespace convladder {
namespace {

using namespace nvcuda;

template <int M, int N, class T, class Layout = wmma::row_major>
using FragmentA = wmma::fragment<wmma::matrix_a, M, N, 16, T, Layout>;
template <int M, int N, class T, class Layout = wmma::col_major>
using FragmentB = wmma::fragment<wmma::matrix_b, M, N, 16, T, Layout>;
template <int M, int N, class T>
using FragmentC = wmma::fragment<wmma::accumulator, M, N, 16, T>;

/// From one row or column of a factor to the next: at least 16 bytes.
template <int Length>
constexpr int kPitch = Length < 16 ? 16 : Length;

// d = 2 (a b + c); through shared memory or not.
template <int M, int N, class T, class TC, class TD, class LayoutA, class LayoutB, bool Shared>
__global__ void matrix_product(const T* a, const T* b, const TC* c, TD* d, wmma::layout_t layout) {
  __shared__ __align__(32) T shared_a[kPitch<M> * 16];
  __shared__ __align__(32) T shared_b[16 * kPitch<N>];
  __shared__ __align__(32) TC shared_c[M * N];
  __shared__ __align__(32) TD shared_d[M * N];
  constexpr bool a_by_rows = std::is_same<LayoutA, wmma::row_major>::value;
  constexpr bool b_by_rows = std::is_same<LayoutB, wmma::row_major>::value;
  const unsigned stride = layout == wmma::mem_row_major ? N : M;
  FragmentA<M, N, T, LayoutA> fragment_a;
  FragmentB<M, N, T, LayoutB> fragment_b;
  FragmentC<M, N, TC> fragment_c;
  FragmentC<M, N, TD> fragment_d;
  if (Shared) {
    for (int i = threadIdx.x; i < (a_by_rows ? M : kPitch<M>)*16; i += 32) shared_a[i] = a[i];
    for (int i = threadIdx.x; i < 16 * (b_by_rows ? kPitch<N> : N); i += 32) shared_b[i] = b[i];
    for (int i = threadIdx.x; i < M * N; i += 32) shared_c[i] = c[i];
    __syncwarp();
    wmma::load_matrix_sync(fragment_a, shared_a, a_by_rows ? 16 : kPitch<M>);
    wmma::load_matrix_sync(fragment_b, shared_b, b_by_rows ? kPitch<N> : 16);
    wmma::load_matrix_sync(fragment_c, shared_c, stride, layout);
  } else {
    wmma::load_matrix_sync(fragment_a, a, a_by_rows ? 16 : kPitch<M>);
    wmma::load_matrix_sync(fragment_b, b, b_by_rows ? kPitch<N> : 16);
    wmma::load_matrix_sync(fragment_c, c, stride, layout);
  }
  wmma::mma_sync(fragment_d, fragment_a, fragment_b, fragment_c);
  for (int i = 0; i < fragment_d.num_elements; ++i) fragment_d.x[i] = fragment_d.x[i] + fragment_d.x[i];
  if (Shared) {
    wmma::store_matrix_sync(shared_d, fragment_d, stride, layout);
    __syncwarp();
    for (int i = threadIdx.x; i < M * N; i += 32) d[i] = shared_d[i];
  } else {
    wmma::store_matrix_sync(d, fragment_d, stride, layout);
  }
}

template <int M, int N, class T, class TC, class TD, class LayoutA, class LayoutB>
void product_of_layouts(const MatrixProduct& p) {
  const auto kernel = p.shared ? matrix_product<M, N, T, TC, TD, LayoutA, LayoutB, true>
                               : matrix_product<M, N, T, TC, TD, LayoutA, LayoutB, false>;
  launch(kernel, 1, 32, 0, p.stream)(static_cast<const T*>(p.a), static_cast<const T*>(p.b),
                                     static_cast<const TC*>(p.c), static_cast<TD*>(p.d),
                                     p.c_by_rows ? wmma::mem_row_major : wmma::mem_col_major);
}

template <int M, int N, class T, class TC, class TD>
void product_of_types(const MatrixProduct& p) {
  if (p.a_by_rows && p.b_by_rows)
    product_of_layouts<M, N, T, TC, TD, wmma::row_major, wmma::row_major>(p);
  else if (p.a_by_rows)
    product_of_layouts<M, N, T, TC, TD, wmma::row_major, wmma::col_major>(p);
  else if (p.b_by_rows)
    product_of_layouts<M, N, T, TC, TD, wmma::col_major, wmma::row_major>(p);
  else
    product_of_layouts<M, N, T, TC, TD, wmma::col_major, wmma::col_major>(p);
}

template <int M, int N>
void product_of_shape(const MatrixProduct& p) {
  switch (p.types) {
    case MatrixTypes::half_float:
      return product_of_types<M, N, half, float, float>(p);
    case MatrixTypes::half_half:
      return product_of_types<M, N, half, half, half>(p);
    case MatrixTypes::half_float_half:
      return product_of_types<M, N, half, float, half>(p);
    case MatrixTypes::signed_bytes:
      return product_of_types<M, N, signed char, int, int>(p);
    case MatrixTypes::unsigned_bytes:
      return product_of_types<M, N, unsigned char, int, int>(p);
  }
}

}  // namespace

void launch_matrix_product(const MatrixProduct& product) {
  if (product.m == 16)
    product_of_shape<16, 16>(product);
  else if (product.m == 32)
    product_of_shape<32, 8>(product);
  else
    product_of_shape<8, 32>(product);
}

}  // namespace convladder
