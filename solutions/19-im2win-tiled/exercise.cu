// 19, exercise: long sums in parts.
//
// Stage 19 gives a tile of outputs to each block. Deep layers have few outputs and long sums: too few tiles to fill the
// GPU, and much to do for each. Here several blocks share a tile. Each adds a part of the products; a second kernel
// adds the parts.
//
//   grid of multiply():  tiles in x, parts in y
//   partial              [parts][batch][filters][out_height * out_width]
//   add_parts()          output = partial[0] + partial[1] + ...
//
//   1. How many parts: as many as it takes to fill kPlaces, but no part shorter than kLeast steps.
//   2. Which steps are this block's.
//   3. Where its sums go: to its part's place, or to the output if the sum is in one part.
//   4. The parts are added, one thread an output, and the second kernel is launched where there are parts.
//
// Rules: no atomics, so that each run adds in the same order. Where the tiles are enough there is one part, and neither
// partial sums nor a second kernel. Any problem with groups = 1.
// Graded: the outputs, in parts and in one; no fault; what is loaded and stored where sums are split and where they
// are not.

#include "common/kernel/border.hpp"
#include "common/kernel/tracks/lowering.hpp"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

constexpr int kThreads = 128;
constexpr int kFilters = 32, kOutputs = 64;  // of a tile
constexpr int kDepth = 8;                    // products of a step
constexpr int kSide = 4;                     // a thread has 4 x 4 sums

// Blocks that the device has room for. 16 here, so that small problems show what an H200 shows with its 528.
[[maybe_unused]] constexpr int kPlaces = 16;
[[maybe_unused]] constexpr int kLeast = 4;  // steps that a part has at least

int tiles(const Lowering& l) {
  return blocks_for(l.filters, kFilters) * blocks_for(l.batch * output_plane(l), kOutputs);
}

int steps_of(const Lowering& l) { return blocks_for(depth(l), kDepth); }

// 1.
int parts_of(const Lowering& l) {
  // SOLUTION
  const int wanted = kPlaces / tiles(l), longest = steps_of(l) / kLeast;
  const int parts = wanted < longest ? wanted : longest;
  return parts > 1 ? parts : 1;
  // STARTER
  // | return steps_of(l) > 0 ? 1 : 0;  // always one part
  // END
}

// As in 18, an element a thread.
__global__ void im2win(const float* input,  // [batch][channels][height][width]
                       float* tensor,       // [batch][channels][out_height][padded_width][rows]
                       Lowering l) {
  const int n = block_in_y(), i = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  if (n >= l.batch || i >= l.channels * im2win_plane(l)) return;
  const int r = i % l.rows, j = i / l.rows % padded_width(l);
  const int p = i / im2win_row(l) % l.out_height, c = i / im2win_plane(l);
  const int y = border_index(p * l.stride_y - l.pad_y + r * l.dilation_y, l.height, l.padding);
  const int x = border_index(j - l.pad_x, l.width, l.padding);
  const float* plane = input + (static_cast<std::int64_t>(n) * l.channels + c) * input_plane(l);
  tensor[static_cast<std::int64_t>(n) * l.channels * im2win_plane(l) + i] =
      y >= 0 && x >= 0 ? plane[static_cast<std::int64_t>(y) * l.width + x] : 0.0f;
}

// As in 19: the filters as a matrix, and each product's offset in a window.
__global__ void pack(const float* filter,  // [filters][channels][rows][columns]
                     float* packed,        // [depth][filters]
                     int* offsets,         // [depth]
                     Lowering l) {
  const int i = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  if (i >= l.filters * depth(l)) return;
  const int k = i % l.filters, d = i / l.filters;
  const int c = d / window(l), s = d % window(l) / l.rows, r = d % l.rows;
  packed[i] = filter[k * depth(l) + (c * l.rows + r) * l.columns + s];
  if (k == 0) offsets[d] = c * im2win_plane(l) + s * l.dilation_x * l.rows + r;
}

__global__ void multiply(const float* filter,  // [depth][filters]
                         const int* offsets,   // [depth]
                         const float* tensor,  // [batch][channels][out_height][padded_width][rows]
                         float* sums_out,      // the output, or [parts][batch][filters][out_height * out_width]
                         int parts, Lowering l) {
  __shared__ float filter_tile[kDepth][kFilters];
  __shared__ float window_tile[kDepth][kOutputs];
  const int thread = static_cast<int>(threadIdx.x), x = thread % (kOutputs / kSide), y = thread / (kOutputs / kSide);
  const int filter_tiles = blocks_for(l.filters, kFilters), outputs = l.batch * output_plane(l);
  const int first_filter = static_cast<int>(blockIdx.x) % filter_tiles * kFilters;
  const int first_output = static_cast<int>(blockIdx.x) / filter_tiles * kOutputs;
  const int steps = blocks_for(depth(l), kDepth);
  float sums[kSide][kSide] = {};

  const int column = thread % kOutputs;
  const int mine = min(first_output + column, outputs - 1), pq = mine % output_plane(l);
  const float* start = tensor + static_cast<std::int64_t>(mine / output_plane(l)) * l.channels * im2win_plane(l) +
                       pq / l.out_width * im2win_row(l) + pq % l.out_width * l.stride_x * l.rows;

  // SOLUTION
  // 2. The steps, in `parts` pieces whose lengths differ by one at most.
  const int part = static_cast<int>(blockIdx.y);
  const int first = static_cast<int>(static_cast<std::int64_t>(steps) * part / parts);
  const int end = static_cast<int>(static_cast<std::int64_t>(steps) * (part + 1) / parts);
  // STARTER
  // | // Half of the products: nobody adds the others.
  // | const int first = 0, end = steps / 2;
  // | (void)parts;
  // END

  for (int step = first * kDepth; step < end * kDepth; step += kDepth) {
    for (int i = thread; i < kDepth * kFilters; i += kThreads) {
      const int d = step + i / kFilters, k = first_filter + i % kFilters;
      filter_tile[i / kFilters][i % kFilters] = d < depth(l) && k < l.filters ? filter[d * l.filters + k] : 0.0f;
    }
    for (int i = thread / kOutputs; i < kDepth; i += kThreads / kOutputs)
      window_tile[i][column] = step + i < depth(l) ? start[offsets[step + i]] : 0.0f;
    __syncthreads();
    UNROLL
    for (int d = 0; d < kDepth; ++d) {
      float taps[kSide], pixels[kSide];
      UNROLL
      for (int i = 0; i < kSide; ++i) taps[i] = filter_tile[d][y + kFilters / kSide * i];
      UNROLL
      for (int j = 0; j < kSide; ++j) pixels[j] = window_tile[d][x + kOutputs / kSide * j];
      UNROLL
      for (int i = 0; i < kSide; ++i) {
        UNROLL
        for (int j = 0; j < kSide; ++j) sums[i][j] += taps[i] * pixels[j];
      }
    }
    __syncthreads();
  }

  // 3.
  // SOLUTION
  sums_out += static_cast<std::int64_t>(part) * outputs * l.filters;
  // STARTER
  // | // There is one place only.
  // END
  UNROLL
  for (int j = 0; j < kSide; ++j) {
    const int o = first_output + x + kOutputs / kSide * j;
    if (o >= outputs) continue;
    float* out = sums_out + static_cast<std::int64_t>(o / output_plane(l)) * l.filters * output_plane(l);
    UNROLL
    for (int i = 0; i < kSide; ++i) {
      const int k = first_filter + y + kFilters / kSide * i;
      if (k < l.filters) out[k * output_plane(l) + o % output_plane(l)] = sums[i][j];
    }
  }
}

// SOLUTION
// 4.
__global__ void add_parts(const float* partial,  // [parts][size]
                          float* output,         // [size]
                          std::int64_t size, int parts) {
  const std::int64_t mine = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (mine >= size) return;
  float sum = 0.0f;
  for (int part = 0; part < parts; ++part) sum += partial[part * size + mine];
  output[mine] = sum;
}
// STARTER
// | // 4. A kernel that adds the parts belongs here.
// END

class Im2winInParts final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override { return check_lowering(problem); }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Lowering l = lowering_of(problem);
    tensor_.allocate(im2win_size(problem));
    filter_.allocate(problem.filter_size());
    offsets_.allocate(problem.reduction_length());
    if (parts_of(l) > 1) partial_.allocate(parts_of(l) * problem.output_size());
    convladder::launch(pack, dim3(blocks_for(l.filters * depth(l), kThreads)), dim3(kThreads), 0, stream)(
        tensors.filter, filter_.floats(), offsets_.ints(), l);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Lowering l = lowering_of(problem);
    convladder::launch(im2win, grid_in_y(blocks_for(l.channels * im2win_plane(l), kThreads), l.batch), dim3(kThreads),
                       0, stream)(tensors.input, tensor_.floats(), l);
    // SOLUTION
    const int parts = parts_of(l);
    float* sums = parts > 1 ? partial_.floats() : tensors.output;
    convladder::launch(multiply, dim3(tiles(l), parts), dim3(kThreads), 0, stream)(filter_.floats(), offsets_.ints(),
                                                                                   tensor_.floats(), sums, parts, l);
    if (parts == 1) return;
    const auto blocks = static_cast<unsigned>((problem.output_size() - 1) / kThreads + 1);
    convladder::launch(add_parts, dim3(blocks), dim3(kThreads), 0, stream)(sums, tensors.output, problem.output_size(),
                                                                           parts);
    // STARTER
    // | convladder::launch(multiply, dim3(tiles(l)), dim3(kThreads), 0, stream)(
    // |     filter_.floats(), offsets_.ints(), tensor_.floats(), tensors.output, parts_of(l), l);
    // END
  }

  Workspace tensor_{*this, "im2win tensor"};
  Workspace filter_{*this, "packed filter"};
  Workspace offsets_{*this, "offsets of the products"};
  Workspace partial_{*this, "partial sums"};
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::Im2winInParts)
