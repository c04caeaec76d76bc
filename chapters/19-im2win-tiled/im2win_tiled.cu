// 19 im2win-tiled: block tiles in shared memory, thread tiles in registers.
//
//   [filters][outputs] = [filters][(c, s, r)] x [(c, s, r)][outputs]      outputs: all (n, p, q) of the batch
//
// Since 18: the product is computed as a matrix multiplication, as in 17. The right matrix is never made: its element
// (d, output) is what the output's window holds at product d, at tensor[start of the window + offset of d]. Both parts
// are known before the sum begins, so that no border, no division and no condition is left in the loop.
//
//   1. In prepare(): the filters as a matrix [(c, s, r)][filters], and the offset of each product.
//   2. A block of 128 threads computes Filters x Outputs; a thread a part of them in registers, 8 x 8 or 12 x 8.
//   3. Each thread loads pixels of one column of the tile alone: so it looks for its window once.
//   4. Tiles of 8 products go through shared memory. Past the last product they hold zeros.
//   5. Each thread multiplies: for each product 8 + 8 numbers from shared memory, 64 multiply-adds.
//   6. The sums are stored.

#include "chapters/18-im2win/im2win.cuh"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

constexpr int kThreads = 128;
constexpr int kDepth = 8;  // products of a step

// 1.
__global__ void pack(const float* filter,  // [filters][channels][rows][columns]
                     float* packed,        // [channels * columns * rows][filters]
                     int* offsets,         // [channels * columns * rows]
                     Lowering l) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= l.filters * depth(l)) return;
  const int k = i % l.filters, d = i / l.filters;
  packed[i] = filter[k * depth(l) + tap_of_product(l, d)];
  if (k == 0) offsets[d] = window_offset(l, d);
}

template <int Filters, int Outputs>
__global__ void multiply(const float* filter,  // [depth][filters]
                         const int* offsets,   // [depth]
                         const float* tensor,  // [batch][channels][out_height][padded_width][rows]
                         float* output,        // [batch][filters][out_height * out_width]
                         Lowering l) {
  constexpr int kAcross = Outputs / 8;                  // threads along the outputs
  constexpr int kDown = kThreads / kAcross;             // and along the filters
  constexpr int kRows = Filters / kDown, kColumns = 8;  // of a thread's part
  constexpr int kGroups = kThreads / Outputs;           // threads that load one column together
  __shared__ float filter_tile[kDepth][Filters];
  __shared__ float window_tile[kDepth][Outputs];
  static_assert(kThreads % Outputs == 0 && kDepth % kGroups == 0, "each thread loads from one column");
  // 2.
  const int thread = threadIdx.x, x = thread % kAcross, y = thread / kAcross;
  const int filter_tiles = blocks_for(l.filters, Filters), outputs = l.batch * output_plane(l);
  const int first_filter = blockIdx.x % filter_tiles * Filters, first_output = blockIdx.x / filter_tiles * Outputs;
  float sums[kRows][kColumns] = {};

  // 3. Past the last output, the last one's window does as well: nobody stores what comes of it.
  const int column = thread % Outputs;
  const int mine = min(first_output + column, outputs - 1), pq = mine % output_plane(l);
  const float* start = tensor + window_start(l, mine / output_plane(l), pq / l.out_width, pq % l.out_width);

  for (int step = 0; step < depth(l); step += kDepth) {
    // 4.
    for (int i = thread; i < kDepth * Filters; i += kThreads) {
      const int d = step + i / Filters, k = first_filter + i % Filters;
      filter_tile[i / Filters][i % Filters] = d < depth(l) && k < l.filters ? filter[d * l.filters + k] : 0.0f;
    }
    UNROLL
    for (int i = thread / Outputs; i < kDepth; i += kGroups)
      window_tile[i][column] = step + i < depth(l) ? start[offsets[step + i]] : 0.0f;
    __syncthreads();
    // 5.
    UNROLL
    for (int d = 0; d < kDepth; ++d) {
      float taps[kRows], pixels[kColumns];
      UNROLL
      for (int i = 0; i < kRows; ++i) taps[i] = filter_tile[d][y + kDown * i];
      UNROLL
      for (int j = 0; j < kColumns; ++j) pixels[j] = window_tile[d][x + kAcross * j];
      UNROLL
      for (int i = 0; i < kRows; ++i) {
        UNROLL
        for (int j = 0; j < kColumns; ++j) sums[i][j] += taps[i] * pixels[j];
      }
    }
    __syncthreads();
  }
  // 6.
  UNROLL
  for (int j = 0; j < kColumns; ++j) {
    const int o = first_output + x + kAcross * j;
    if (o >= outputs) continue;
    float* out = output + static_cast<std::int64_t>(o / output_plane(l)) * l.filters * output_plane(l);
    UNROLL
    for (int i = 0; i < kRows; ++i) {
      const int k = first_filter + y + kDown * i;
      if (k < l.filters) out[k * output_plane(l) + o % output_plane(l)] = sums[i][j];
    }
  }
}

struct Tile {
  int filters, outputs;
};

/// The tile that fits the filters best: with 64 or 96 of them, a tile of 128 would compute rows that nobody wants.
Tile tile_for(const Lowering& l) {
  const int filters = tile_filters(l.filters);
  return {filters, filters == 128 ? 64 : 128};
}

void launch_pack(const float* filter, float* packed, int* offsets, const Lowering& l, Stream stream) {
  launch(pack, dim3(blocks_for(l.filters * depth(l), kThreads)), dim3(kThreads), 0, stream)(filter, packed, offsets, l);
}

void launch_product(const float* filter, const int* offsets, const float* tensor, float* output, const Lowering& l,
                    Stream stream) {
  const Tile tile = tile_for(l);
  const auto kernel = tile.filters == 128  ? multiply<128, 64>
                      : tile.filters == 96 ? multiply<96, 128>
                                           : multiply<64, 128>;
  const int blocks = blocks_for(l.filters, tile.filters) * blocks_for(l.batch * output_plane(l), tile.outputs);
  launch(kernel, dim3(blocks), dim3(kThreads), 0, stream)(filter, offsets, tensor, output, l);
}

class Im2winTiled final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override { return check_lowering(problem); }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    tensor_.allocate(im2win_size(problem));
    filter_.allocate(problem.filter_size());
    offsets_.allocate(problem.reduction_length());
    launch_pack(tensors.filter, filter_.floats(), offsets_.ints(), lowering_of(problem), stream);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    launch_im2win(tensors.input, tensor_.floats(), lowering_of(problem), stream);
    launch_without_transform(problem, tensors, stream);
  }

  bool launch_without_transform(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    launch_product(filter_.floats(), offsets_.ints(), tensor_.floats(), tensors.output, lowering_of(problem), stream);
    return true;
  }

  Prediction predict(const ConvProblem& problem) const override {
    const Lowering l = lowering_of(problem);
    const Tile tile = tile_for(l);
    const std::int64_t filter_tiles = blocks_for(l.filters, tile.filters);
    const std::int64_t output_tiles = blocks_for(l.batch * output_plane(l), tile.outputs);
    const std::int64_t steps = blocks_for(depth(l), kDepth), warps = kThreads / 32;
    Prediction p;
    // A tile's window is loaded for each 128 (96, 64) filters, its offset by each thread that loads; the filters for
    // each 64 (128) outputs.
    p.global_load_bytes = (im2win_reads(l) + 2 * depth(l) * output_tiles * tile.outputs * filter_tiles +
                           problem.filter_size() * output_tiles) *
                          4;
    p.global_store_bytes = (im2win_size(problem) + problem.output_size()) * 4;
    p.shared_load_requests = im2win_shared_loads(l) + filter_tiles * output_tiles * steps * kDepth * warps *
                                                          (tile.filters * tile.outputs / kThreads / 8 + 8);
    p.constant_load_requests = 0;
    p.barriers = filter_tiles * output_tiles * steps * 2;
    p.flops = problem.flops();
    return p;
  }

  Workspace tensor_{*this, "im2win tensor"};
  Workspace filter_{*this, "packed filter"};
  Workspace offsets_{*this, "offsets of the products"};
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::Im2winTiled)
