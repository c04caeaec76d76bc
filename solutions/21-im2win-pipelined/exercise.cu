// 21, exercise: a ring of three tiles.
//
// Stage 21 keeps one tile ahead, and reads the tensor that im2win made. Here two tiles are ahead, and there is no
// tensor: each copy finds its pixel in the input itself.
//
//        step      0       1       2       3       4
//   multiplied  buffer 0       1       2       0       1
//   on its way    1, 2    2, 0    0, 1    1, 2    2, 0
//
//   1. In prepare(): the filters as a matrix [(c, r, s)][filters], padded with zeros (given).
//   2. The copies of a step: 16 bytes of filters, 4 bytes of a pixel; zeros outside the input.
//   3. The first two steps are on their way before the loop.
//   4. Each step waits for its own copies alone, meets one barrier, starts the copies of the step after the next, and
//      multiplies.
//
// Rules: one launch beside prepare's; copies are asynchronous, and two steps ahead.
// Graded: the outputs of whole and of torn tiles, for every padding mode, stride and dilation; no fault; one barrier a
// step; filters in 16 bytes.

#include "common/kernel/border.hpp"
#include "common/kernel/grid.hpp"
#include "common/kernel/tracks/lowering.hpp"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

constexpr int kThreads = 128;
constexpr int kFilters = 64, kOutputs = 64;  // of a tile
constexpr int kDepth = 8;                    // products of a step
constexpr int kBuffers = 3;

// Products of a sum, rounded up to whole steps.
__host__ __device__ __forceinline__ int padded_depth(const Lowering& l) {
  return blocks_for(depth(l), kDepth) * kDepth;
}
__host__ __device__ __forceinline__ int padded_filters(const Lowering& l) {
  return blocks_for(l.filters, kFilters) * kFilters;
}

// 1.
__global__ void pack(const float* filter,  // [filters][channels * rows * columns]
                     float* packed,        // [padded_depth][padded_filters]
                     Lowering l) {
  const int i = blockIdx.x * kThreads + threadIdx.x, k = i % padded_filters(l), d = i / padded_filters(l);
  if (d < padded_depth(l)) packed[i] = k < l.filters && d < depth(l) ? filter[k * depth(l) + d] : 0.0f;
}

// Where product d of output (p, q) finds its pixel in the image; -1 where it reads zero.
__device__ __forceinline__ std::int64_t pixel_index(const Lowering& l, int p, int q, int d) {
  const int c = d / window(l), r = d % window(l) / l.columns, s = d % l.columns;
  const int y = border_index(p * l.stride_y - l.pad_y + r * l.dilation_y, l.height, l.padding);
  const int x = border_index(q * l.stride_x - l.pad_x + s * l.dilation_x, l.width, l.padding);
  return d >= depth(l) || y < 0 || x < 0 ? -1 : c * input_plane(l) + static_cast<std::int64_t>(y) * l.width + x;
}

__global__ void multiply(const float* filter,  // [padded_depth][padded_filters]
                         const float* input,   // [batch][channels][height][width]
                         float* output,        // [batch][filters][out_height * out_width]
                         Lowering l) {
  __shared__ __align__(16) float filter_tile[kBuffers][kDepth][kFilters];
  __shared__ __align__(16) float window_tile[kBuffers][kDepth][kOutputs];
  const int thread = threadIdx.x, outputs = l.batch * output_plane(l);
  const int first_filter = blockIdx.y * kFilters, first_output = blockIdx.x * kOutputs;
  const int y = thread / 16 * 8, x = thread % 16 * 4;  // the thread's first filter and first output in the tile
  float sums[8][4] = {};

  // The thread's output, whose pixels it brings: every second product. Past the last output, the last one's do as well.
  const int column = thread % kOutputs, group = thread / kOutputs;
  const int mine = min(first_output + column, outputs - 1), pq = mine % output_plane(l);
  const int p = pq / l.out_width, q = pq % l.out_width;
  const float* image = input + mine / output_plane(l) * l.channels * input_plane(l);
  // The thread's 4 filters, of which it brings one tap of each step.
  const int row = thread / (kFilters / 4), quad = thread % (kFilters / 4) * 4;
  static_assert(kThreads == kDepth * kFilters / 4, "one vector of filters for each thread and step");

  const auto multiply_tile = [&](int buffer) {
    UNROLL
    for (int d = 0; d < kDepth; ++d) {
      const float4 pixels = *reinterpret_cast<const float4*>(&window_tile[buffer][d][x]);
      UNROLL
      for (int i = 0; i < 8; i += 4) {
        const float4 taps = *reinterpret_cast<const float4*>(&filter_tile[buffer][d][y + i]);
        const float tap[4] = {taps.x, taps.y, taps.z, taps.w}, pixel[4] = {pixels.x, pixels.y, pixels.z, pixels.w};
        UNROLL
        for (int e = 0; e < 4; ++e) {
          UNROLL
          for (int j = 0; j < 4; ++j) sums[i + e][j] += tap[e] * pixel[j];
        }
      }
    }
  };

  // SOLUTION
  // 2. A group for each call, be there no copies left to start.
  const auto start_copies = [&](int step, int buffer) {
    if (step < padded_depth(l)) {
      copy_async<16>(&filter_tile[buffer][row][quad], filter + (step + row) * padded_filters(l) + first_filter + quad);
      UNROLL
      for (int i = group; i < kDepth; i += kThreads / kOutputs) {
        const std::int64_t index = pixel_index(l, p, q, step + i);
        copy_async<4>(&window_tile[buffer][i][column], image + index, index >= 0);
      }
    }
    commit_copies();
  };

  // 3.
  start_copies(0, 0);
  start_copies(kDepth, 1);
  int buffer = 0;
  for (int step = 0; step < padded_depth(l); step += kDepth) {
    // 4. Of the two groups on their way, the older is this step's. The barrier also says that all have multiplied the
    // step before, whose buffer is the next to be filled.
    wait_copies<1>();
    __syncthreads();
    start_copies(step + 2 * kDepth, (buffer + 2) % kBuffers);
    multiply_tile(buffer);
    buffer = (buffer + 1) % kBuffers;
  }
  // STARTER
  // | // Of all steps only the first yet, and by loads: its tile is stored, and multiplied after a barrier.
  // | *reinterpret_cast<float4*>(&filter_tile[0][row][quad]) =
  // |     *reinterpret_cast<const float4*>(filter + row * padded_filters(l) + first_filter + quad);
  // | for (int i = group; i < kDepth; i += kThreads / kOutputs) {
  // |   const std::int64_t index = pixel_index(l, p, q, i);
  // |   window_tile[0][i][column] = index >= 0 ? image[index] : 0.0f;
  // | }
  // | __syncthreads();
  // | multiply_tile(0);
  // END

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

void launch_product(const float* filter, const Tensors& tensors, const Lowering& l, Stream stream) {
  const dim3 grid(blocks_for(l.batch * output_plane(l), kOutputs), blocks_for(l.filters, kFilters));
  launch(multiply, grid, dim3(kThreads), 0, stream)(filter, tensors.input, tensors.output, l);
}

class RingOfTiles final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    const Verdict verdict = check_lowering(problem);
    if (verdict.accepted() && (problem.k - 1) / kFilters + 1 > 65535)
      return Verdict::refuse("a grid has at most 65535 blocks in y, here tiles of 64 filters; got k={}", problem.k);
    return verdict;
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Lowering l = lowering_of(problem);
    filter_.allocate(static_cast<std::int64_t>(padded_depth(l)) * padded_filters(l));
    convladder::launch(pack, dim3(blocks_for(padded_depth(l) * padded_filters(l), kThreads)), dim3(kThreads), 0,
                       stream)(tensors.filter, filter_.floats(), l);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    launch_product(filter_.floats(), tensors, lowering_of(problem), stream);
  }

  Workspace filter_{*this, "packed filter"};
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::RingOfTiles)
