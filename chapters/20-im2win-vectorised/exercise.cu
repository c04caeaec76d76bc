// 20, exercise: windows at 16 bytes.
//
// In stage 20 a pixel is loaded with 4 bytes, since a window begins at any multiple of 4 bytes. Here the tensor stores
// more rows than a filter has: their number is rounded up to a multiple of 4. Then every column of every window begins
// at a multiple of 16 bytes, and one request brings 4 products of a sum.
//
//   tensor[n][c][p][j][r] = input[n][c][p stride_y - pad_y + r dilation_y][j - pad_x], or 0 from r = l.rows on
//
//   1. In prepare(): the filters as a matrix [depth][filters], zero where the tensor has a row and the filter has none;
//      the offset of each vector of 4 products.
//   2. The transform.
//   3. A block of 128 threads computes 64 x 64 filters x outputs (given).
//   4. Each thread loads vectors of one output's window, and stores each as 4 rows of the tile.
//   5. A thread multiplies 8 x 4 (given).
//
// Rules: two launches beside prepare's; tiles of 64 x 64 x 16.
// Graded: the outputs of whole and of torn tiles, for every padding mode, stride and dilation; no fault; the requests
// of the loads; no conflicts.

#include "common/kernel/border.hpp"
#include "common/kernel/grid.hpp"
#include "common/kernel/tracks/lowering.hpp"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

constexpr int kThreads = 128;
constexpr int kFilters = 64, kOutputs = 64;  // of a tile
constexpr int kDepth = 16;                   // products of a step
constexpr int kVector = 4;                   // products in 16 bytes

// Rows of the tensor for each column.
__host__ __device__ __forceinline__ int stored_rows(const Lowering& l) {
  return l.rows;  // not a multiple of 4 yet
}

// Products of a sum, in the tensor's order (c, s, r), the zeros included.
__host__ __device__ __forceinline__ int stored_depth(const Lowering& l) {
  return l.channels * l.columns * stored_rows(l);
}
__host__ __device__ __forceinline__ int stored_row(const Lowering& l) { return padded_width(l) * stored_rows(l); }
__host__ __device__ __forceinline__ int stored_plane(const Lowering& l) { return l.out_height * stored_row(l); }
// Rows of the filters' matrix: whole steps.
__host__ __device__ __forceinline__ int padded_depth(const Lowering& l) {
  return blocks_for(stored_depth(l), kDepth) * kDepth;
}
__host__ __device__ __forceinline__ int padded_filters(const Lowering& l) {
  return blocks_for(l.filters, kFilters) * kFilters;
}

// 1.
__global__ void pack(const float* filter,  // [filters][channels][rows][columns]
                     float* packed,        // [padded_depth][padded_filters]
                     int* offsets,         // [padded_depth / 4], in floats from a window's start
                     Lowering l) {
  const int i = blockIdx.x * kThreads + threadIdx.x, k = i % padded_filters(l), d = i / padded_filters(l);
  if (d >= padded_depth(l)) return;
  const int r = d % stored_rows(l), s = d / stored_rows(l) % l.columns, c = d / stored_rows(l) / l.columns;
  (void)filter, (void)r, (void)s, (void)c;
  packed[i] = 0.0f;                                          // which products are zero?
  if (k == 0 && d % kVector == 0) offsets[d / kVector] = 0;  // where do the four products of a vector begin?
}

// 2. A thread for each element of the tensor.
__global__ void transform(const float* input,  // [batch][channels][height][width]
                          float* tensor,       // [batch][channels][out_height][padded_width][stored_rows]
                          Lowering l) {
  const int nc = block_in_y(), i = blockIdx.x * kThreads + threadIdx.x;
  if (nc >= l.batch * l.channels || i >= stored_plane(l)) return;
  const int r = i % stored_rows(l), j = i / stored_rows(l) % padded_width(l), p = i / stored_row(l);
  const int y = border_index(p * l.stride_y - l.pad_y + r * l.dilation_y, l.height, l.padding);
  const int x = border_index(j - l.pad_x, l.width, l.padding);
  const bool exists = y >= 0 && x >= 0;
  tensor[nc * static_cast<std::int64_t>(stored_plane(l)) + i] =
      exists ? input[nc * input_plane(l) + static_cast<std::int64_t>(y) * l.width + x] : 0.0f;
}

// 3.
__global__ void multiply(const float* filter,  // [padded_depth][padded_filters]
                         const int* offsets,   // [padded_depth / 4]
                         const float* tensor,  // as above
                         float* output,        // [batch][filters][out_height * out_width]
                         Lowering l) {
  __shared__ __align__(16) float filter_tile[kDepth][kFilters];
  __shared__ __align__(16) float window_tile[kDepth][kOutputs];
  const int thread = threadIdx.x, outputs = l.batch * output_plane(l);
  const int first_filter = blockIdx.y * kFilters, first_output = blockIdx.x * kOutputs;
  const int y = thread / 16 * 8, x = thread % 16 * 4;  // the thread's first filter and first output in the tile
  float sums[8][4] = {};

  // Two threads share a column of the tile. Past the last output, the last one's window does as well.
  const int column = thread % kOutputs, group = thread / kOutputs;
  const int mine = min(first_output + column, outputs - 1), pq = mine % output_plane(l);
  const float* window = tensor + static_cast<std::int64_t>(mine / output_plane(l)) * l.channels * stored_plane(l) +
                        pq / l.out_width * stored_row(l) + pq % l.out_width * l.stride_x * stored_rows(l);

  for (int step = 0; step < padded_depth(l); step += kDepth) {
    UNROLL
    for (int i = thread; i < kDepth * kFilters / kVector; i += kThreads) {
      const int d = i / (kFilters / kVector), k = i % (kFilters / kVector) * kVector;
      *reinterpret_cast<float4*>(&filter_tile[d][k]) =
          *reinterpret_cast<const float4*>(filter + (step + d) * padded_filters(l) + first_filter + k);
    }
    // 4.
    (void)window, (void)offsets;
    for (int d = group; d < kDepth; d += kThreads / kOutputs) window_tile[d][column] = 0.0f;  // no pixels yet
    __syncthreads();
    // 5.
    UNROLL
    for (int d = 0; d < kDepth; ++d) {
      const float4 pixels = *reinterpret_cast<const float4*>(&window_tile[d][x]);
      UNROLL
      for (int i = 0; i < 8; i += 4) {
        const float4 taps = *reinterpret_cast<const float4*>(&filter_tile[d][y + i]);
        const float tap[4] = {taps.x, taps.y, taps.z, taps.w}, pixel[4] = {pixels.x, pixels.y, pixels.z, pixels.w};
        UNROLL
        for (int e = 0; e < 4; ++e) {
          UNROLL
          for (int j = 0; j < 4; ++j) sums[i + e][j] += tap[e] * pixel[j];
        }
      }
    }
    __syncthreads();
  }
  UNROLL
  for (int j = 0; j < 4; ++j) {
    const int o = first_output + x + j;
    if (o >= outputs) continue;
    float* out = output + static_cast<std::int64_t>(o / output_plane(l)) * l.filters * output_plane(l);
    UNROLL
    for (int i = 0; i < 8; ++i) {
      const int k = first_filter + y + i;
      if (k < l.filters) out[k * output_plane(l) + o % output_plane(l)] = sums[i][j];
    }
  }
}

void launch_product(const float* filter, const int* offsets, const float* tensor, float* output, const Lowering& l,
                    Stream stream) {
  const dim3 grid(blocks_for(l.batch * output_plane(l), kOutputs), blocks_for(l.filters, kFilters));
  launch(multiply, grid, dim3(kThreads), 0, stream)(filter, offsets, tensor, output, l);
}

class WindowsAt16Bytes final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    const Verdict verdict = check_lowering(problem);
    if (!verdict.accepted()) return verdict;
    const Lowering l = lowering_of(problem);
    const std::int64_t taps = static_cast<std::int64_t>(padded_depth(l)) * padded_filters(l);
    if (taps > INT32_MAX - kThreads || padded_filters(l) / kFilters > 65535)
      return Verdict::refuse("the padded filters are indexed with 32 bits, and a grid has 65535 blocks in y; got {}",
                             taps);
    return verdict;
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Lowering l = lowering_of(problem);
    tensor_.allocate(static_cast<std::int64_t>(l.batch) * l.channels * stored_plane(l));
    filter_.allocate(static_cast<std::int64_t>(padded_depth(l)) * padded_filters(l));
    offsets_.allocate(padded_depth(l) / kVector);
    convladder::launch(pack, dim3(blocks_for(padded_depth(l) * padded_filters(l), kThreads)), dim3(kThreads), 0,
                       stream)(tensors.filter, filter_.floats(), offsets_.ints(), l);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Lowering l = lowering_of(problem);
    convladder::launch(transform, grid_in_y(blocks_for(stored_plane(l), kThreads), l.batch * l.channels),
                       dim3(kThreads), 0, stream)(tensors.input, tensor_.floats(), l);
    launch_product(filter_.floats(), offsets_.ints(), tensor_.floats(), tensors.output, l, stream);
  }

  Workspace tensor_{*this, "tensor"};
  Workspace filter_{*this, "packed filter"};
  Workspace offsets_{*this, "offsets of the vectors"};
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::WindowsAt16Bytes)
