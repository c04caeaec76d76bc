// The common part of `rows` and `tiles`: products from shared memory, and the first half of the epilogue.
#pragma once
#include "chapters/32-implicit-gemm-hopper/strips_and_tiles.cuh"
//
#include "common/kernel/mma.hpp"

namespace convladder {
namespace {

constexpr int kWarpFilters = 16;  // rows of a wgmma whose sums a warp holds
template <class Element>
constexpr int kMatrixPositions = 32 / Element::kBytes;  // of four matrices of 8 x 8 halves, with a warp's filters

// Where a byte of a row lies, of so many rows of Pitch bytes with TMA's swizzle: a chunk is at its number xor that of
// the 128 bytes in which the row begins.
template <int Pitch>
__device__ __forceinline__ int swizzled(int row, int byte) {
  constexpr int kChunks = Pitch / kChunkBytes, kLine = 128;
  return row * Pitch + (byte / kChunkBytes ^ row * Pitch / kLine % kChunks) * kChunkBytes + byte % kChunkBytes;
}

// The descriptor of a matrix that begins so many bytes further: its lower word has the address.
__device__ __forceinline__ std::uint64_t further(std::uint64_t descriptor, int bytes) {
  return descriptor >> 32 << 32 | (static_cast<std::uint32_t>(descriptor) + static_cast<std::uint32_t>(bytes / 16));
}

// Starts the products of so many taps with the pixels that each begins at, of Pixel bytes. ptxas wants fence, wgmmas
// and commit without a branch between: where the steps are not always the same, each is a group of its own.
template <class Element, int N, int Taps, int Pixel>
__device__ __forceinline__ void multiply_taps(typename Element::Sum (&sums)[N / 2], std::uint64_t a, std::uint64_t b,
                                              int steps, bool accumulate) {
  using Operand = typename Element::Operand;
  constexpr int kSteps = Pixel / kStepBytes;
  const auto multiply = [&](int s, int step) {
    wgmma<N, Operand>(sums, further(a, s * kFilters * Pixel + step * kStepBytes),
                      further(b, s * Pixel + step * kStepBytes), accumulate || s > 0 || step > 0);
  };
  if (steps == kSteps) {
    wgmma_fence();
    UNROLL
    for (int i = 0; i < Taps * kSteps; ++i) multiply(i / kSteps, i % kSteps);
    wgmma_commit();
    return;
  }
  UNROLL_BY(1)
  for (int s = 0; s < Taps; ++s) {
    UNROLL_BY(1)
    for (int step = 0; step < steps; ++step) {
      wgmma_fence();
      multiply(s, step);
      wgmma_commit();
    }
  }
}

// Where a lane's row of four matrices goes, in rows of Pitch bytes: a position's outputs of the warp's filters, whose
// first byte is `byte`. Two matrices side by side hold 16 halves of filters, one holds 16 bytes of them.
template <class Element, int Pitch>
__device__ __forceinline__ int matrix_row(int lane, int byte) {
  const int matrix = lane / 8;
  return swizzled<Pitch>(matrix / Element::kBytes * 8 + lane % 8, byte + matrix % Element::kBytes * kChunkBytes);
}

// Rounds the warp's sums of kMatrixPositions, or of half as many, and stores a position's filters side by side. Where
// an epilogue has a residual, that lies in as many rows alike, perhaps the same ones, and a lane loads of it what it is
// going to store.
template <class Element>
__device__ __forceinline__ void store_rounded(unsigned char* row, const typename Element::Sum* sums,
                                              typename Element::Scale scale, bool all,
                                              [[maybe_unused]] const unsigned char* residual_row) {
  [[maybe_unused]] unsigned residual[4] = {}, half_of_it[2] = {};
  if constexpr (Element::kFused) {
    if (scale.residual && all) ldmatrix_transposed(residual, residual_row);
    if (scale.residual && !all) ldmatrix_transposed(half_of_it, residual_row);
    if (!all) residual[0] = half_of_it[0], residual[1] = half_of_it[1];
    __syncwarp();  // before others' outputs take its place
  }
  const auto matrix = [&](int i) {
    const typename Element::Sum* const of_matrix = sums + i * (4 / Element::kBytes);
    if constexpr (Element::kFused)
      return Element::finished(of_matrix, scale, i, residual[i]);
    else
      return Element::rounded(of_matrix, scale);
  };
  if (all)
    stmatrix_transposed<4>(row, {matrix(0), matrix(1), matrix(2), matrix(3)});
  else
    stmatrix_transposed<2>(row, {matrix(0), matrix(1)});
}

// Makes the barriers of a ring, by one thread; so many producers fill a slot, and so many arrivals empty it.
__device__ __forceinline__ void init_ring(Mbarrier* full, Mbarrier* empty, int slots, int producers, int arrivals) {
  for (int slot = 0; slot < slots; ++slot) {
    mbarrier_init(full + slot, producers);
    mbarrier_init(empty + slot, arrivals);
  }
}

// The bias of an epilogue, times a factor and so much more, and zeros past the last filter. A thread a filter.
__global__ void pad_bias(const float* bias,  // [filters]
                         float* padded,      // [filter block][64]
                         int filters, int padded_filters, float factor, float offset) {
  const int k = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
  if (k < padded_filters) padded[k] = k < filters ? bias[k] * factor + offset : 0.0f;
}

// The copy, in a layout of which TMA can move whole chunks. A thread a chunk; half a chunk is never of two pixels.
template <class Value>
__global__ void widen(const Value* input,  // [rows][width][channels]
                      Value* wide,         // [rows][to.width][to.channels]
                      InputLayout to, int rows, int width, int channels) {
  constexpr int kValues = kChunkBytes / static_cast<int>(sizeof(Value)), kHalf = kValues / 2;
  const std::int64_t chunk = std::int64_t{blockIdx.x} * kThreads + threadIdx.x,
                     chunks = std::int64_t{to.width} * to.channels / kValues;  // of a row
  const int row = block_in_y();
  if (row >= rows || chunk >= chunks) return;
  const int pixel = static_cast<int>(chunk * kValues / to.channels);
  int x = pixel - to.left, c = static_cast<int>(chunk * kValues - std::int64_t{pixel} * to.channels);
  alignas(uint4) Value values[kValues];
  UNROLL
  for (int part = 0; part < 2; ++part) {
    const std::int64_t from = (std::int64_t{row} * width + x) * channels + c;
    const int inside = x >= 0 && x < width ? channels - c : 0;
    UNROLL
    for (int i = 0; i < kHalf; ++i) values[part * kHalf + i] = i < inside ? input[from + i] : Value{};
    c += kHalf;
    if (c == to.channels) c = 0, ++x;
  }
  const unsigned* const words = reinterpret_cast<const unsigned*>(values);
  reinterpret_cast<uint4*>(wide)[row * chunks + chunk] = make_uint4(words[0], words[1], words[2], words[3]);
}

// The input as TMA can take it: itself, or its copy.
template <class Element, class Value = typename Element::Value>
const Value* widened(const ConvProblem& problem, const Value* input, Value* wide, Stream stream) {
  if (wide_size<Element>(problem) == 0) return input;
  const InputLayout to = layout_of<Element>(problem);
  const std::int64_t rows = problem.n * problem.h, chunks = std::int64_t{to.width} * to.channels / kChunk<Element>;
  launch(widen<Value>, grid_in_y((chunks - 1) / kThreads + 1, rows), dim3(kThreads), 0, stream)(
      input, wide, to, static_cast<int>(rows), static_cast<int>(problem.w), static_cast<int>(problem.c));
  return wide;
}

}  // namespace
}  // namespace convladder
