// ldmatrix, stmatrix and mma.sync: which lane holds what, what they count, and faults. The line of a fault carries a
// marker: "// <- name".
#include "common/kernel/kernel.hpp"
//
#include "common/kernel/half.hpp"
#include "common/kernel/mma.hpp"
#include "tests/simt/kernels.hpp"

using convladder::commit_copies;
using convladder::copy_async;
using convladder::dynamic_shared;
using convladder::launch;
using convladder::ldmatrix;
using convladder::ldmatrix_transposed;
using convladder::mma_m16n8k16;
using convladder::mma_m16n8k32;
using convladder::stmatrix;
using convladder::stmatrix_transposed;
using convladder::wait_copies;

namespace {

constexpr int kRowHalves = 8;

// ---- Registers -----------------------------------------------------------------------------------------------------

template <class Sum>
__global__ void registers_product(const unsigned* a, const unsigned* b, Sum* d) {  // [lane][registers]
  const int lane = threadIdx.x;
  unsigned a_lane[4], b_lane[2];
  Sum sums[4];
  for (int i = 0; i < 4; ++i) a_lane[i] = a[4 * lane + i];
  for (int i = 0; i < 2; ++i) b_lane[i] = b[2 * lane + i];
  for (int i = 0; i < 4; ++i) sums[i] = d[4 * lane + i];
  if constexpr (Sum(0.5f) != Sum(0))
    mma_m16n8k16(sums, a_lane, b_lane);
  else
    mma_m16n8k32(sums, a_lane, b_lane);
  for (int i = 0; i < 4; ++i) d[4 * lane + i] = sums[i];
}

// Lane l gives the row 5 l mod (8 Count), if it gives one; a place outside of all memory if not.
template <int Count>
__device__ __forceinline__ half* row_of_lane(half* tile, int lane, int pitch) {
  return tile + (lane < 8 * Count ? 5 * lane % (8 * Count) * pitch : 1 + lane * (1 << 22));
}

template <int Count, bool Transposed>
__global__ void load_rows(const half* rows, unsigned* d, int pitch) {  // [8 Count][pitch], [lane][Count]
  half* const tile = dynamic_shared<half>();
  const int lane = threadIdx.x;
  for (int i = lane; i < 8 * Count * pitch; i += 32) tile[i] = rows[i];
  __syncwarp();
  const half* const row = row_of_lane<Count>(tile, lane, pitch);
  unsigned values[Count];
  if constexpr (Transposed)
    ldmatrix_transposed(values, row);
  else
    ldmatrix(values, row);
  for (int i = 0; i < Count; ++i) d[Count * lane + i] = values[i];
}

template <int Count, bool Transposed>
__global__ void store_rows(const unsigned* values, half* rows, int pitch) {
  half* const tile = dynamic_shared<half>();
  const int lane = threadIdx.x;
  unsigned of_lane[Count];
  for (int i = 0; i < Count; ++i) of_lane[i] = values[Count * lane + i];
  half* const row = row_of_lane<Count>(tile, lane, pitch);
  if constexpr (Transposed)
    stmatrix_transposed(row, of_lane);
  else
    stmatrix(row, of_lane);
  __syncwarp();
  for (int i = lane; i < 8 * Count * kRowHalves; i += 32) rows[i] = tile[i / kRowHalves * pitch + i % kRowHalves];
}

// d [16][8] = a b from memory: a [16][16], b [8][16] (a column of it is a row in memory).
__global__ void memory_product(const half* a, const half* b, float* d) {
  __shared__ __align__(16) half a_tile[16][24];
  __shared__ __align__(16) half b_tile[8][24];
  const int lane = threadIdx.x;
  for (int i = lane; i < 256; i += 32) a_tile[i / 16][i % 16] = a[i];
  for (int i = lane; i < 128; i += 32) b_tile[i / 16][i % 16] = b[i];
  __syncwarp();
  unsigned a_lane[4], b_lane[2];
  float sums[4] = {};
  ldmatrix(a_lane, &a_tile[lane % 16][lane / 16 * 8]);
  ldmatrix(b_lane, &b_tile[lane % 8][lane / 8 % 2 * 8]);
  mma_m16n8k16(sums, a_lane, b_lane);
  for (int i = 0; i < 4; ++i) d[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = sums[i];
}

template <int Count>
void launch_rows(const MatrixRows& x) {
  const std::size_t bytes = std::size_t{8} * Count * static_cast<std::size_t>(x.pitch) * sizeof(half);
  if (x.store)
    launch(x.transposed ? store_rows<Count, true> : store_rows<Count, false>, 1, 32, bytes, nullptr)(
        x.registers, reinterpret_cast<half*>(x.rows), x.pitch);
  else
    launch(x.transposed ? load_rows<Count, true> : load_rows<Count, false>, 1, 32, bytes, nullptr)(
        reinterpret_cast<const half*>(x.rows), x.registers, x.pitch);
}

// ---- Faults --------------------------------------------------------------------------------------------------------

// Loads four matrices: 32 rows, one a lane.
template <MatrixMistake M>
__global__ void matrix_rows(const half* input, unsigned* output) {
  __shared__ __align__(16) half tile[32][8];
  const int lane = threadIdx.x;
  if (M == MatrixMistake::no_wait) {
    copy_async<16>(&tile[lane][0], input + 8 * lane);
    commit_copies();
  } else {
    const bool own = M == MatrixMistake::own_row;
    const int filled = M == MatrixMistake::unwritten ? 31 * 8 : 32 * 8;
    for (int i = 0; i < 8; ++i) {
      const int at = own ? 8 * lane + i : 32 * i + lane;
      if (at < filled) tile[at / 8][at % 8] = input[at];
    }
  }
  if (M != MatrixMistake::no_syncwarp && M != MatrixMistake::own_row) __syncthreads();
  const half* row = &tile[lane][0];
  if (M == MatrixMistake::misaligned && lane == 9) row += 4;
  if (M == MatrixMistake::from_global) row = input + 8 * lane;
  if (M == MatrixMistake::past_end && lane == 31) row += 8;
  unsigned d[4] = {};
  if (M == MatrixMistake::missing_lane && lane == 7) {
    output[lane] = 0;
  } else {
    const bool transposed = M == MatrixMistake::different_instructions && lane == 0;
    transposed ? ldmatrix_transposed(d, row) : ldmatrix(d, row);  // <- matrix_rows
  }
  output[lane] = d[0];
}

// Lanes past `lanes` end before the product.
__global__ void product_without_lane(float* output, int lanes) {
  if (static_cast<int>(threadIdx.x) >= lanes) return;
  const unsigned a[4] = {}, b[2] = {};
  float d[4] = {1, 1, 1, 1};
  mma_m16n8k16(d, a, b);  // <- product_without_lane
  output[threadIdx.x] = d[0];
}

template <bool Sync>
__global__ void store_after_matrix_load(const half* input, unsigned* output) {
  __shared__ __align__(16) half tile[8][8];
  const int lane = threadIdx.x;
  for (int i = lane; i < 64; i += 32) tile[i / 8][i % 8] = input[i];
  __syncwarp();
  unsigned d[1];
  ldmatrix(d, &tile[lane % 8][0]);
  if (Sync) __syncwarp();
  if (lane < 8) tile[lane][0] = half(0);  // <- store_after_matrix_load
  output[lane] = d[0];
}

template <bool Sync>
__global__ void read_after_stmatrix(unsigned* output) {
  __shared__ __align__(16) half tile[8][8];
  const int lane = threadIdx.x;
  const unsigned values[1] = {threadIdx.x};
  stmatrix(&tile[lane % 8][0], values);
  if (Sync) __syncwarp();
  output[lane] = *reinterpret_cast<const unsigned*>(&tile[lane % 8][0]);  // <- read_after_stmatrix
}

// Two lanes give one row.
__global__ void stmatrix_of_one_row(unsigned* output, int row_of_last) {
  __shared__ __align__(16) half tile[8][8];
  const int lane = threadIdx.x;
  const unsigned values[1] = {threadIdx.x};
  stmatrix(&tile[lane == 7 ? row_of_last : lane % 8][0], values);  // <- stmatrix_of_one_row
  __syncwarp();
  output[lane] = *reinterpret_cast<const unsigned*>(&tile[lane % 7][0]);
}

template <bool Sync>
__global__ void rows_of_another_warp(const half* input, unsigned* output) {
  __shared__ __align__(16) half tile[2][8][8];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int i = lane; i < 64; i += 32) tile[warp][i / 8][i % 8] = input[i];
  if (Sync) __syncthreads();
  __syncwarp();
  unsigned d[1];
  ldmatrix(d, &tile[1 - warp][lane % 8][0]);  // <- rows_of_another_warp
  output[threadIdx.x] = d[0];
}

const half* halves(const std::uint16_t* bits) { return reinterpret_cast<const half*>(bits); }

template <MatrixMistake M>
void launch_mistake(const std::uint16_t* input, unsigned* output) {
  launch(matrix_rows<M>, 1, 32, 0, nullptr)(halves(input), output);
}

}  // namespace

void launch_registers_product(const unsigned* a, const unsigned* b, float* d) {
  launch(registers_product<float>, 1, 32, 0, nullptr)(a, b, d);
}
void launch_registers_product(const unsigned* a, const unsigned* b, int* d) {
  launch(registers_product<int>, 1, 32, 0, nullptr)(a, b, d);
}
void launch_memory_product(const std::uint16_t* a, const std::uint16_t* b, float* d) {
  launch(memory_product, 1, 32, 0, nullptr)(halves(a), halves(b), d);
}
void launch_matrix_rows(const MatrixRows& rows) {
  if (rows.count == 1)
    launch_rows<1>(rows);
  else if (rows.count == 2)
    launch_rows<2>(rows);
  else
    launch_rows<4>(rows);
}

void launch_matrix_mistake(MatrixMistake mistake, const std::uint16_t* input, unsigned* output) {
  switch (mistake) {
    case MatrixMistake::none:
      return launch_mistake<MatrixMistake::none>(input, output);
    case MatrixMistake::misaligned:
      return launch_mistake<MatrixMistake::misaligned>(input, output);
    case MatrixMistake::from_global:
      return launch_mistake<MatrixMistake::from_global>(input, output);
    case MatrixMistake::missing_lane:
      return launch_mistake<MatrixMistake::missing_lane>(input, output);
    case MatrixMistake::different_instructions:
      return launch_mistake<MatrixMistake::different_instructions>(input, output);
    case MatrixMistake::past_end:
      return launch_mistake<MatrixMistake::past_end>(input, output);
    case MatrixMistake::unwritten:
      return launch_mistake<MatrixMistake::unwritten>(input, output);
    case MatrixMistake::no_syncwarp:
      return launch_mistake<MatrixMistake::no_syncwarp>(input, output);
    case MatrixMistake::own_row:
      return launch_mistake<MatrixMistake::own_row>(input, output);
    case MatrixMistake::no_wait:
      return launch_mistake<MatrixMistake::no_wait>(input, output);
  }
}
void launch_product_without_lane(float* output, int threads, bool fixed) {
  launch(product_without_lane, 1, threads, 0, nullptr)(output, fixed ? 32 : 31);
}
void launch_store_after_matrix_load(const std::uint16_t* input, unsigned* output, bool fixed) {
  launch(fixed ? store_after_matrix_load<true> : store_after_matrix_load<false>, 1, 32, 0, nullptr)(halves(input),
                                                                                                    output);
}
void launch_read_after_stmatrix(unsigned* output, bool fixed) {
  launch(fixed ? read_after_stmatrix<true> : read_after_stmatrix<false>, 1, 32, 0, nullptr)(output);
}
void launch_stmatrix_of_one_row(unsigned* output, bool fixed) {
  launch(stmatrix_of_one_row, 1, 32, 0, nullptr)(output, fixed ? 7 : 6);
}
void launch_rows_of_another_warp(const std::uint16_t* input, unsigned* output, bool fixed) {
  launch(fixed ? rows_of_another_warp<true> : rows_of_another_warp<false>, 1, 64, 0, nullptr)(halves(input), output);
}
