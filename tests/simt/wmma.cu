// Matrix fragments: what loads and stores count; and faults. The line of a fault carries a marker: "// <- name".
#include "common/kernel/kernel.hpp"
//
#include "common/kernel/wmma.hpp"
#include "tests/simt/kernels.hpp"

using convladder::dynamic_shared;
using convladder::launch;
using namespace nvcuda;

namespace {

template <int M, int N, class T, class Layout = wmma::row_major>
using FragmentA = wmma::fragment<wmma::matrix_a, M, N, 16, T, Layout>;
template <int M, int N, class T, class Layout = wmma::col_major>
using FragmentB = wmma::fragment<wmma::matrix_b, M, N, 16, T, Layout>;
template <int M, int N, class T>
using FragmentC = wmma::fragment<wmma::accumulator, M, N, 16, T>;

// ---- Requests ------------------------------------------------------------------------------------------------------

template <class Fragment, class T, class... Layout>
__global__ void load_fragment(const T* input, float* output, int elements, unsigned stride, bool shared,
                              Layout... layout) {
  T* tile = dynamic_shared<T>();
  for (int i = threadIdx.x; i < elements; i += 32) tile[i] = T(1);
  __syncwarp();
  Fragment fragment;
  if (shared) {
    wmma::load_matrix_sync(fragment, tile, stride, layout...);
  } else {
    wmma::load_matrix_sync(fragment, input, stride, layout...);
  }
  output[threadIdx.x] = static_cast<float>(fragment.x[0]);
}

template <class Fragment, class T>
__global__ void store_fragment(T* output, unsigned stride, bool shared, wmma::layout_t layout) {
  T* tile = dynamic_shared<T>();
  Fragment fragment;
  wmma::fill_fragment(fragment, T(threadIdx.x));
  if (shared) {
    wmma::store_matrix_sync(tile, fragment, stride, layout);
  } else {
    wmma::store_matrix_sync(output, fragment, stride, layout);
  }
}

template <class Fragment, class T, class... Layout>
void load_request(const FragmentAccess& x, Layout... layout) {
  const std::size_t bytes = x.shared ? x.elements * sizeof(T) : 0;
  launch(load_fragment<Fragment, T, Layout...>, 1, 32, bytes, nullptr)(
      static_cast<const T*>(x.memory), x.output, x.shared ? x.elements : 0, x.stride, x.shared, layout...);
}

template <int M, int N, class T>
void factor_request(const FragmentAccess& x) {
  if (x.part == MatrixPart::a)
    x.by_rows ? load_request<FragmentA<M, N, T, wmma::row_major>, T>(x)
              : load_request<FragmentA<M, N, T, wmma::col_major>, T>(x);
  else
    x.by_rows ? load_request<FragmentB<M, N, T, wmma::row_major>, T>(x)
              : load_request<FragmentB<M, N, T, wmma::col_major>, T>(x);
}

template <int M, int N, class T>
void accumulator_request(const FragmentAccess& x) {
  const wmma::layout_t layout = x.by_rows ? wmma::mem_row_major : wmma::mem_col_major;
  if (x.part == MatrixPart::load_c) return load_request<FragmentC<M, N, T>, T>(x, layout);
  const std::size_t bytes = x.shared ? x.elements * sizeof(T) : 0;
  launch(store_fragment<FragmentC<M, N, T>, T>, 1, 32, bytes, nullptr)(static_cast<T*>(x.memory), x.stride, x.shared,
                                                                       layout);
}

template <int M, int N>
void request_of_shape(const FragmentAccess& x) {
  const bool factor = x.part == MatrixPart::a || x.part == MatrixPart::b;
  const bool bytes = x.types == MatrixTypes::signed_bytes;
  if (factor)
    bytes ? factor_request<M, N, signed char>(x) : factor_request<M, N, half>(x);
  else if (bytes)
    accumulator_request<M, N, int>(x);
  else
    x.types == MatrixTypes::half_half ? accumulator_request<M, N, half>(x) : accumulator_request<M, N, float>(x);
}

// ---- Faults --------------------------------------------------------------------------------------------------------

__global__ void misaligned_matrix(const half* input, float* output, int offset, int stride) {
  FragmentA<16, 16, half> a;
  wmma::load_matrix_sync(a, input + offset, stride);  // <- misaligned_matrix
  output[threadIdx.x] = __half2float(a.x[0]);
}

__global__ void misaligned_result(float* output, int stride) {
  FragmentC<16, 16, float> c;
  wmma::fill_fragment(c, 1.0f);
  wmma::store_matrix_sync(output, c, stride, wmma::mem_row_major);  // <- misaligned_result
}

__global__ void missing_lane(const half* input, float* output, int lanes) {
  FragmentA<16, 16, half> a;
  if (static_cast<int>(threadIdx.x) < lanes) {
    wmma::load_matrix_sync(a, input, 16);  // <- missing_lane
    output[threadIdx.x] = __half2float(a.x[0]);
  }
  __syncwarp();
}

__global__ void ended_lane(float* output, int lanes) {
  if (static_cast<int>(threadIdx.x) >= lanes) return;
  FragmentA<16, 16, half> a;
  FragmentB<16, 16, half> b;
  FragmentC<16, 16, float> c;
  wmma::fill_fragment(a, half(1));
  wmma::fill_fragment(b, half(1));
  wmma::fill_fragment(c, 0.0f);
  wmma::mma_sync(c, a, b, c);  // <- ended_lane
  output[threadIdx.x] = c.x[0];
}

__global__ void different_matrices(const half* input, float* output, int shift) {
  FragmentA<16, 16, half> a;
  wmma::load_matrix_sync(a, input + (threadIdx.x == 31 ? shift : 0), 16);  // <- different_matrices
  output[threadIdx.x] = __half2float(a.x[0]);
}

template <bool Sync>
__global__ void load_without_syncwarp(const half* input, float* output) {
  __shared__ __align__(32) half tile[256];
  for (int i = threadIdx.x; i < 256; i += 32) tile[i] = input[i];
  if (Sync) __syncwarp();
  FragmentA<16, 16, half> a;
  wmma::load_matrix_sync(a, tile, 16);  // <- load_without_syncwarp
  output[threadIdx.x] = __half2float(a.x[0]);
}

// Each line is written by the one lane that will load it, and by no other: but which lane loads what is not known.
template <bool Sync>
__global__ void own_line(const half* input, float* output) {
  __shared__ __align__(32) half tile[256];
  const int line = threadIdx.x;
  if (line < 16)
    for (int i = 0; i < 16; ++i) tile[16 * line + i] = input[16 * line + i];
  if (Sync) __syncwarp();
  FragmentA<16, 16, half> a;
  wmma::load_matrix_sync(a, tile, 16);  // <- own_line
  output[threadIdx.x] = __half2float(a.x[0]);
}

template <bool Sync>
__global__ void store_after_load(const half* input, float* output) {
  __shared__ __align__(32) half tile[256];
  for (int i = threadIdx.x; i < 256; i += 32) tile[i] = input[i];
  __syncwarp();
  FragmentA<16, 16, half> a;
  wmma::load_matrix_sync(a, tile, 16);
  if (Sync) __syncwarp();
  if (threadIdx.x < 16) tile[16 * threadIdx.x] = half(0);  // <- store_after_load
  output[threadIdx.x] = __half2float(a.x[0]);
}

template <bool Sync>
__global__ void read_after_matrix_store(float* output) {
  __shared__ __align__(32) float tile[256];
  FragmentC<16, 16, float> c;
  wmma::fill_fragment(c, 1.0f);
  wmma::store_matrix_sync(tile, c, 16, wmma::mem_row_major);
  if (Sync) __syncwarp();
  const int i = threadIdx.x < 16 ? 16 * threadIdx.x : 0;
  output[threadIdx.x] = tile[i];  // <- read_after_matrix_store
}

template <bool Sync>
__global__ void load_after_matrix_store(float* output) {
  __shared__ __align__(32) float tile[256];
  FragmentC<16, 16, float> c;
  wmma::fill_fragment(c, 1.0f);
  wmma::store_matrix_sync(tile, c, 16, wmma::mem_row_major);
  if (Sync) __syncwarp();
  wmma::load_matrix_sync(c, tile, 16, wmma::mem_row_major);  // <- load_after_matrix_store
  output[threadIdx.x] = c.x[0];
}

// A fragment of what another warp has written.
template <bool Sync>
__global__ void load_of_another_warp(const half* input, float* output) {
  __shared__ __align__(32) half tile[2][256];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int i = lane; i < 256; i += 32) tile[warp][i] = input[i];
  if (Sync) __syncthreads();
  __syncwarp();
  FragmentA<16, 16, half> a;
  wmma::load_matrix_sync(a, tile[1 - warp], 16);  // <- load_of_another_warp
  output[threadIdx.x] = __half2float(a.x[0]);
}

__global__ void matrix_past_end(const half* input, float* output, int stride) {
  FragmentA<16, 16, half> a;
  wmma::load_matrix_sync(a, input, stride);  // <- matrix_past_end
  output[threadIdx.x] = __half2float(a.x[0]);
}

__global__ void result_past_shared(float* output, int stride) {
  __shared__ __align__(32) float tile[16 * 16];
  FragmentC<16, 16, float> c;
  wmma::fill_fragment(c, 1.0f);
  wmma::store_matrix_sync(tile, c, stride, wmma::mem_row_major);  // <- result_past_shared
  __syncwarp();
  output[threadIdx.x] = tile[threadIdx.x];
}

__global__ void unwritten_matrix(const half* input, float* output, int rows) {
  __shared__ __align__(32) half tile[256];
  for (int i = threadIdx.x; i < 16 * rows; i += 32) tile[i] = input[i];
  __syncwarp();
  FragmentA<16, 16, half> a;
  wmma::load_matrix_sync(a, tile, 16);  // <- unwritten_matrix
  output[threadIdx.x] = __half2float(a.x[0]);
}

const half* halves(const std::uint16_t* bits) { return reinterpret_cast<const half*>(bits); }

}  // namespace

void launch_fragment_access(const FragmentAccess& access) {
  if (access.m == 16)
    request_of_shape<16, 16>(access);
  else if (access.m == 32)
    request_of_shape<32, 8>(access);
  else
    request_of_shape<8, 32>(access);
}

void launch_misaligned_matrix(const std::uint16_t* input, float* output, int offset, int stride) {
  launch(misaligned_matrix, 1, 32, 0, nullptr)(halves(input), output, offset, stride);
}
void launch_misaligned_result(float* output, int stride) {
  launch(misaligned_result, 1, 32, 0, nullptr)(output, stride);
}
void launch_missing_lane(const std::uint16_t* input, float* output, bool fixed) {
  launch(missing_lane, 1, 32, 0, nullptr)(halves(input), output, fixed ? 32 : 31);
}
void launch_ended_lane(float* output, int threads, bool fixed) {
  launch(ended_lane, 1, threads, 0, nullptr)(output, fixed ? 32 : 31);
}
void launch_different_matrices(const std::uint16_t* input, float* output, bool fixed) {
  launch(different_matrices, 1, 32, 0, nullptr)(halves(input), output, fixed ? 0 : 256);
}
void launch_load_without_syncwarp(const std::uint16_t* input, float* output, bool fixed) {
  launch(fixed ? load_without_syncwarp<true> : load_without_syncwarp<false>, 1, 32, 0, nullptr)(halves(input), output);
}
void launch_own_line(const std::uint16_t* input, float* output, bool fixed) {
  launch(fixed ? own_line<true> : own_line<false>, 1, 32, 0, nullptr)(halves(input), output);
}
void launch_store_after_load(const std::uint16_t* input, float* output, bool fixed) {
  launch(fixed ? store_after_load<true> : store_after_load<false>, 1, 32, 0, nullptr)(halves(input), output);
}
void launch_read_after_matrix_store(float* output, bool fixed) {
  launch(fixed ? read_after_matrix_store<true> : read_after_matrix_store<false>, 1, 32, 0, nullptr)(output);
}
void launch_load_after_matrix_store(float* output, bool fixed) {
  launch(fixed ? load_after_matrix_store<true> : load_after_matrix_store<false>, 1, 32, 0, nullptr)(output);
}
void launch_load_of_another_warp(const std::uint16_t* input, float* output, bool fixed) {
  launch(fixed ? load_of_another_warp<true> : load_of_another_warp<false>, 1, 64, 0, nullptr)(halves(input), output);
}
void launch_matrix_past_end(const std::uint16_t* input, float* output, int stride) {
  launch(matrix_past_end, 1, 32, 0, nullptr)(halves(input), output, stride);
}
void launch_result_past_shared(float* output, int stride) {
  launch(result_past_shared, 1, 32, 0, nullptr)(output, stride);
}
void launch_unwritten_matrix(const std::uint16_t* input, float* output, bool fixed) {
  launch(unwritten_matrix, 1, 32, 0, nullptr)(halves(input), output, fixed ? 16 : 15);
}
