// Bulk copies and matrix products of sm_90, one at a time.
#include <type_traits>

#include "common/kernel/hopper.hpp"
#include "tests/kernel/hopper.hpp"

namespace convladder {
namespace {

// ---- Copies --------------------------------------------------------------------------------------------------------

__device__ __forceinline__ void load(void* shared, const TensorMap& map, Mbarrier* barrier, int rank, const int* c) {
  if (rank == 1)
    tensor_load(shared, map, barrier, c[0]);
  else if (rank == 2)
    tensor_load(shared, map, barrier, c[0], c[1]);
  else if (rank == 3)
    tensor_load(shared, map, barrier, c[0], c[1], c[2]);
  else if (rank == 4)
    tensor_load(shared, map, barrier, c[0], c[1], c[2], c[3]);
  else
    tensor_load(shared, map, barrier, c[0], c[1], c[2], c[3], c[4]);
}

__device__ __forceinline__ void load_column(void* shared, const TensorMap& map, Mbarrier* barrier, int rank,
                                            const int* c, const int* offsets) {
  if (rank == 3)
    im2col_load(shared, map, barrier, {offsets[0]}, c[0], c[1], c[2]);
  else if (rank == 4)
    im2col_load(shared, map, barrier, {offsets[0], offsets[1]}, c[0], c[1], c[2], c[3]);
  else
    im2col_load(shared, map, barrier, {offsets[0], offsets[1], offsets[2]}, c[0], c[1], c[2], c[3], c[4]);
}

__device__ __forceinline__ void store(const TensorMap& map, const void* shared, int rank, const int* c) {
  if (rank == 1)
    tensor_store(map, shared, c[0]);
  else if (rank == 2)
    tensor_store(map, shared, c[0], c[1]);
  else if (rank == 3)
    tensor_store(map, shared, c[0], c[1], c[2]);
  else if (rank == 4)
    tensor_store(map, shared, c[0], c[1], c[2], c[3]);
  else
    tensor_store(map, shared, c[0], c[1], c[2], c[3], c[4]);
}

struct Offsets {
  int of[3];
};

/// @param columns the map is one for columns of pixels
__global__ void load_box(const __grid_constant__ TensorMap map, int rank, int c0, int c1, int c2, int c3, int c4,
                         bool columns, Offsets offsets, std::uint8_t* output, int bytes) {
  __shared__ Mbarrier barrier;
  std::uint8_t* box = dynamic_shared_1024<std::uint8_t>();
  if (threadIdx.x == 0) {
    mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
    mbarrier_expect(&barrier, bytes);
    const int at[] = {c0, c1, c2, c3, c4};
    if (columns)
      load_column(box, map, &barrier, rank, at, offsets.of);
    else
      load(box, map, &barrier, rank, at);
  }
  __syncthreads();
  mbarrier_wait(&barrier, 0);
  for (int i = static_cast<int>(threadIdx.x); i < bytes; i += 64) output[i] = box[i];
}

__global__ void store_box(const __grid_constant__ TensorMap map, int rank, int c0, int c1, int c2, int c3, int c4,
                          const std::uint8_t* input, int bytes) {
  std::uint8_t* box = dynamic_shared_1024<std::uint8_t>();
  for (int i = static_cast<int>(threadIdx.x); i < bytes; i += 64) box[i] = input[i];
  fence_async_proxy();
  __syncthreads();
  if (threadIdx.x == 0) {
    const int at[] = {c0, c1, c2, c3, c4};
    store(map, box, rank, at);
    bulk_commit();
    bulk_wait<0>();
  }
}

__global__ void bulk_copy(const std::uint8_t* input, std::uint8_t* output, int bytes) {
  __shared__ Mbarrier barrier;
  std::uint8_t* piece = dynamic_shared_1024<std::uint8_t>() + 16;
  if (threadIdx.x == 0) {
    mbarrier_init(&barrier, 1);
    fence_mbarrier_init();
    mbarrier_expect(&barrier, bytes);
    bulk_prefetch(input, bytes);  // counts nothing
    bulk_load(piece, input, bytes, &barrier);
  }
  __syncthreads();
  mbarrier_wait(&barrier, 0);
  for (int i = static_cast<int>(threadIdx.x); i < bytes; i += 64) output[i] = piece[i];
}

// ---- Products ------------------------------------------------------------------------------------------------------

/// Where 16 bytes of a row lie. @param rows of the matrix
__device__ __forceinline__ int place(int row, int piece, int rows, int span) {
  if (span == 0) return piece * rows * 16 + row * 16;
  const int line = (row * span + piece * 16) / 128;
  return row * span + ((piece ^ (line % (span / 16))) * 16);
}

/// Bytes of a row, up to whole panels.
__host__ __device__ __forceinline__ int padded_row(const ProductForm& form) {
  const int bytes = (form.first_step + form.steps) * 32;
  return form.span == 0 ? bytes : (bytes + form.span - 1) / form.span * form.span;
}

/// `row` bytes of each row of a matrix, several panels of `span` bytes if it is longer.
__device__ __forceinline__ void write_matrix(std::uint8_t* to, const uint4* from, int rows, int row_bytes, int span) {
  const int pieces = row_bytes / 16, per_panel = span == 0 ? pieces : span / 16;
  for (int i = static_cast<int>(threadIdx.x); i < rows * pieces; i += static_cast<int>(blockDim.x)) {
    const int row = i / pieces, piece = i % pieces;
    std::uint8_t* panel = to + piece / per_panel * rows * span;
    *reinterpret_cast<uint4*>(panel + place(row, piece % per_panel, rows, span)) = from[i];
  }
}

template <int N, class Element, class T>
__global__ void product(ProductForm form, const uint4* a, const uint4* b, T* d) {
  const int rows_b = (form.n + form.shift + 7) / 8 * 8, row_bytes = (form.first_step + form.steps) * 32;
  std::uint8_t* shared_a = dynamic_shared_1024<std::uint8_t>();
  std::uint8_t* shared_b = shared_a + 64 * padded_row(form);
  write_matrix(shared_a, a, 64, row_bytes, form.span);
  write_matrix(shared_b, b, rows_b, row_bytes, form.span);
  fence_async_proxy();
  __syncthreads();

  const int lane = static_cast<int>(threadIdx.x) % 32, warp = warp_index() % 4;
  const int group = static_cast<int>(threadIdx.x) / 128;
  const Swizzle swizzle = form.span == 64 ? Swizzle::bytes64 : Swizzle::bytes128;
  T sums[N / 2];
  for (int i = 0; i < N / 2; ++i)
    sums[i] = d[group * 64 * N + (warp * 16 + lane / 4 + i % 4 / 2 * 8) * N + i / 4 * 8 + lane % 4 * 2 + i % 2];
  wgmma_fence();
  for (int step = form.first_step; step < form.first_step + form.steps; ++step) {
    const int k = step * 32, panel = form.span == 0 ? 0 : k / form.span, within = form.span == 0 ? k : k % form.span;
    std::uint64_t of_a = form.span == 0 ? plain_descriptor(shared_a, 64 * 16, 128)
                                        : swizzled_descriptor(shared_a + panel * 64 * form.span, swizzle);
    std::uint64_t of_b = form.span == 0 ? plain_descriptor(shared_b, rows_b * 16, 128)
                                        : swizzled_descriptor(shared_b + panel * rows_b * form.span, swizzle);
    of_a += static_cast<std::uint64_t>(form.span == 0 ? within / 16 * 64 : within / 16);
    of_b += static_cast<std::uint64_t>(form.span == 0 ? within / 16 * rows_b + form.shift
                                                      : (form.shift * form.span + within) / 16);
    if constexpr (std::is_same_v<Element, Fp16> || std::is_same_v<T, int>) {
      if (form.a_registers) {
        wgmma_wait<0>();
        unsigned of_lane[4];
        for (int i = 0; i < 4; ++i)
          of_lane[i] = reinterpret_cast<const unsigned*>(
              a)[((warp * 16 + lane / 4 + i % 2 * 8) * row_bytes + k + lane % 4 * 4 + i / 2 * 16) / 4];
        wgmma_fence();
        wgmma<N>(sums, of_lane, of_b, true);
      } else {
        wgmma<N>(sums, of_a, of_b, true);
      }
    } else {
      wgmma<N, Element>(sums, of_a, of_b, true);
    }
    wgmma_commit();
  }
  wgmma_wait<0>();
  pin(sums);
  for (int i = 0; i < N / 2; ++i)
    d[group * 64 * N + (warp * 16 + lane / 4 + i % 4 / 2 * 8) * N + i / 4 * 8 + lane % 4 * 2 + i % 2] = sums[i];
}

}  // namespace

void launch_tensor_load(const void* tensor, const TensorForm& form, const int (&at)[5], const int (&offsets)[3],
                        std::uint8_t* output, int bytes, Stream stream) {
  launch(load_box, 1, 64, static_cast<std::size_t>(bytes), stream)(
      make_tensor_map(tensor, form), form.rank, at[0], at[1], at[2], at[3], at[4], form.pixels > 0,
      Offsets{{offsets[0], offsets[1], offsets[2]}}, output, bytes);
}
void launch_tensor_store(void* tensor, const TensorForm& form, const int (&at)[5], const std::uint8_t* input, int bytes,
                         Stream stream) {
  launch(store_box, 1, 64, static_cast<std::size_t>(bytes), stream)(make_tensor_map(tensor, form), form.rank, at[0],
                                                                    at[1], at[2], at[3], at[4], input, bytes);
}
void launch_bulk_load(const std::uint8_t* input, std::uint8_t* output, int bytes, Stream stream) {
  launch(bulk_copy, 1, 64, static_cast<std::size_t>(bytes) + 16, stream)(input, output, bytes);
}

void launch_product(const ProductForm& form, const void* a, const void* b, void* d, int warpgroups, Stream stream) {
  const auto shared = static_cast<std::size_t>((64 + (form.n + form.shift + 7) / 8 * 8) * padded_row(form));
  const auto run = [&](auto kernel, auto* sums) {
    launch(kernel, 1, static_cast<unsigned>(128 * warpgroups), shared, stream)(form, static_cast<const uint4*>(a),
                                                                               static_cast<const uint4*>(b), sums);
  };
  const auto of = [&](auto* sums, auto element) {
    using T = std::remove_pointer_t<decltype(sums)>;
    using Element = decltype(element);
    switch (form.n) {
      case 8:
        return run(product<8, Element, T>, sums);
      case 16:
        return run(product<16, Element, T>, sums);
      case 24:
        return run(product<24, Element, T>, sums);
      case 64:
        return run(product<64, Element, T>, sums);
      case 112:
        return run(product<112, Element, T>, sums);
      case 128:
        return run(product<128, Element, T>, sums);
      case 256:
        return run(product<256, Element, T>, sums);
    }
    if constexpr (!std::is_same_v<T, int>) return run(product<200, Element, T>, sums);
  };
  switch (form.element) {
    case ProductOf::int8:
      return of(static_cast<int*>(d), std::int8_t{});
    case ProductOf::fp16:
      return of(static_cast<float*>(d), Fp16{});
    case ProductOf::bf16:
      return of(static_cast<float*>(d), Bf16{});
    case ProductOf::tf32:
      return of(static_cast<float*>(d), Tf32{});
  }
}

}  // namespace convladder
