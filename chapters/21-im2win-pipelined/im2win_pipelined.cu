// 21 im2win-pipelined: the next tile travels while this one is multiplied.
//
//   [filters][outputs] = [filters][(c, s, r)] x [(c, s, r)][outputs]      outputs: all (n, p, q) of the batch
//
// Since 20: shared memory holds two pairs of tiles. While the threads multiply one, asynchronous copies (cp.async) fill
// the other: they go from global to shared memory through no register, and nobody waits for them until the tile is
// needed. One barrier a step is left of two. What registers need next is fetched ahead too: the first numbers of the
// next tile, and the offsets of the tile after it.
//
//   1. In prepare(): the filters tile by tile, each tile in one piece and padded with zeros; the products' offsets.
//   2. A block of 4 warps computes 128 x 64, 96 x 128 or 64 x 128 filters x outputs, as in 20.
//   3. The copies of a step: 16 bytes of filters, 4 bytes of a window. Past the last product they write zeros.
//   4. The first tiles are on their way before the loop.
//   5. A step starts the copies of the next one, then multiplies. Before its last product it waits for the copies, and
//      a barrier makes them everybody's: from there on, the next tile is read, and the old one may be overwritten.
//   6. The sums are stored, as vectors where no vector spans two images.

#include "chapters/18-im2win/im2win.cuh"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

constexpr int kThreads = 128;
constexpr int kDepth = 16;  // products of a step

// 1.
__global__ void pack(const float* filter,  // [filters][channels][rows][columns]
                     float* packed,        // [filter tiles][padded_depth][tile]
                     int* offsets,         // [padded_depth], in bytes
                     Lowering l, int tile, int padded_depth) {
  const int i = blockIdx.x * kThreads + threadIdx.x, d = i / tile % padded_depth;
  const int k = i / tile / padded_depth * tile + i % tile;
  if (i >= blocks_for(l.filters, tile) * tile * padded_depth) return;
  packed[i] = k < l.filters && d < depth(l) ? filter[k * depth(l) + tap_of_product(l, d)] : 0.0f;
  if (k == 0) offsets[d] = d < depth(l) ? window_offset(l, d) * static_cast<int>(sizeof(float)) : 0;
}

__device__ __forceinline__ int element(const int4& v, int i) {
  return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}

__device__ __forceinline__ void unpack(const float4& v, float* values) {
  values[0] = v.x;
  values[1] = v.y;
  values[2] = v.z;
  values[3] = v.w;
}

// 3. Fetches the offsets of a step's pixels; the next call those of the step after it.
template <int Vectors>
__device__ __forceinline__ void fetch_offsets(const int4*& offsets, int4 (&offset)[Vectors]) {
  UNROLL
  for (int i = 0; i < Vectors; ++i) offset[i] = offsets[i];
  offsets += kDepth / 4;
}

// Starts the copies of a step's vectors of filters; the next call those of the step after it.
template <int Filters>
__device__ __forceinline__ void copy_filters(const float4*& vectors, float (&tile)[kDepth][Filters]) {
  const int thread = threadIdx.x;
  UNROLL
  for (int i = 0; i < kDepth * Filters / 4 / kThreads; ++i)
    copy_async<16>(reinterpret_cast<float4*>(&tile[0][0]) + thread + i * kThreads, vectors + i * kThreads);
  vectors += kDepth * Filters / 4;
}

// And of the pixels of a part of a column of the tile, from first_row on. Past the last product they write zeros.
template <int Outputs, int Vectors>
__device__ __forceinline__ void copy_pixels(const char* start, const int4 (&offset)[Vectors], int products, int step,
                                            int first_row, int column, float (&tile)[kDepth][Outputs]) {
  if (step + kDepth <= products) {
    UNROLL
    for (int i = 0; i < 4 * Vectors; ++i)
      copy_async<4>(&tile[first_row + i][column], start + element(offset[i / 4], i % 4));
  } else {
    UNROLL
    for (int i = 0; i < 4 * Vectors; ++i)
      copy_async<4>(&tile[first_row + i][column], start + element(offset[i / 4], i % 4),
                    step + first_row + i < products);
  }
}

// 5. What a thread multiplies for one product: its taps and its pixels.
template <int FilterQuads>
struct Operands {
  float4 taps[FilterQuads], pixels[2];
};

template <int FilterQuads>
__device__ __forceinline__ void fetch(const float* filter_row, const float* window_row,
                                      Operands<FilterQuads>& operands) {
  UNROLL
  for (int i = 0; i < FilterQuads; ++i) operands.taps[i] = *reinterpret_cast<const float4*>(filter_row + 16 * i);
  UNROLL
  for (int j = 0; j < 2; ++j) operands.pixels[j] = *reinterpret_cast<const float4*>(window_row + 32 * j);
}

template <int Rows>
__device__ __forceinline__ void multiply_add(const float (&down)[Rows], const float (&across)[8],
                                             float (&sums)[Rows][8]) {
  UNROLL
  for (int i = 0; i < Rows; ++i) {
    UNROLL
    for (int column_of_row = 0; column_of_row < 8; ++column_of_row) {
      const int j = i % 2 ? 7 - column_of_row : column_of_row;  // there and back: the last pixel is used again
      sums[i][j] += down[i] * across[j ^ 1];
    }
  }
}

// A function here, since the last product of a step is multiplied apart from the others.
template <int FilterQuads>
__device__ __forceinline__ void multiply_product(const Operands<FilterQuads>& operands,
                                                 float (&sums)[4 * FilterQuads][8]) {
  float down[4 * FilterQuads], across[8];
  UNROLL
  for (int i = 0; i < FilterQuads; ++i) unpack(operands.taps[i], down + 4 * i);
  UNROLL
  for (int j = 0; j < 2; ++j) unpack(operands.pixels[j], across + 4 * j);
  multiply_add(down, across, sums);
}

// 6. Stores a thread's sums; its part begins at this filter and this output.
template <int Rows>
__device__ __forceinline__ void store_sums(const float (&sums)[Rows][8], int first_filter, int first_output,
                                           float* output, const Lowering& l) {
  const int outputs = l.batch * output_plane(l), plane = output_plane(l);
  UNROLL
  for (int quad = 0; quad < 8; quad += 4) {
    const int o = first_output + quad * 8;
    if (plane % 4 == 0 && o < outputs) {
      float* out = output + static_cast<std::int64_t>(o / plane) * l.filters * plane + o % plane;
      UNROLL
      for (int i = 0; i < Rows; ++i) {
        const int k = first_filter + i / 4 * 16 + i % 4;
        if (k < l.filters)
          *reinterpret_cast<float4*>(out + k * plane) =
              make_float4(sums[i][quad], sums[i][quad + 1], sums[i][quad + 2], sums[i][quad + 3]);
      }
    } else {
      UNROLL
      for (int j = 0; j < 4; ++j) {
        if (o + j >= outputs) continue;
        float* out = output + static_cast<std::int64_t>((o + j) / plane) * l.filters * plane + (o + j) % plane;
        UNROLL
        for (int i = 0; i < Rows; ++i) {
          const int k = first_filter + i / 4 * 16 + i % 4;
          if (k < l.filters) out[k * plane] = sums[i][quad + j];
        }
      }
    }
  }
}

template <int FilterQuads, int WarpsDown, int WarpsAcross>
__global__ void __launch_bounds__(kThreads, FilterQuads == 2 ? 4 : 3)
    multiply(const float* filter,  // [filter tiles][padded_depth][16 FilterQuads WarpsDown]
             const int* offsets,   // [padded_depth]
             const float* tensor,  // [batch][channels][out_height][padded_width][rows]
             float* output,        // [batch][filters][out_height * out_width]
             Lowering l, int padded_depth) {
  constexpr int kFilters = 16 * FilterQuads * WarpsDown, kOutputs = 64 * WarpsAcross;
  constexpr int kRows = 4 * FilterQuads;                 // of a thread's part
  constexpr int kPixels = kDepth * kOutputs / kThreads;  // that a thread copies in a step
  __shared__ __align__(16) float filter_tile[2][kDepth][kFilters];
  __shared__ __align__(16) float window_tile[2][kDepth][kOutputs];
  static_assert(32 * WarpsDown * WarpsAcross == kThreads && kPixels % 4 == 0, "whole vectors of offsets");
  // 2.
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  const int filter_tiles = blocks_for(l.filters, kFilters), outputs = l.batch * output_plane(l);
  const int filter_block = blockIdx.x % filter_tiles, first_output = blockIdx.x / filter_tiles * kOutputs;
  const int y = warp / WarpsAcross * 16 * FilterQuads + lane / 8 * 4;  // the thread's first filter in the tile
  const int x = warp % WarpsAcross * 64 + lane % 8 * 4;                // and its first output
  float sums[kRows][8] = {};

  // 3. Past the last output, the last one's window does as well: nobody stores what comes of it.
  const int column = thread % kOutputs, first_row = thread / kOutputs * kPixels;
  const int mine = min(first_output + (column ^ 1), outputs - 1), pq = mine % output_plane(l);
  const char* start = reinterpret_cast<const char*>(
      tensor + window_start(l, mine / output_plane(l), pq / l.out_width, pq % l.out_width));
  const float4* vectors = reinterpret_cast<const float4*>(filter + filter_block * kFilters * padded_depth) + thread;
  const int4* next_offsets = reinterpret_cast<const int4*>(offsets + first_row);
  int4 offset[kPixels / 4];
  const auto start_copies = [&](int step, int buffer) {
    copy_filters(vectors, filter_tile[buffer]);
    copy_pixels(start, offset, depth(l), step, first_row, column, window_tile[buffer]);
    commit_copies();
  };

  // 4.
  Operands<FilterQuads> operands[2];
  fetch_offsets(next_offsets, offset);
  start_copies(0, 0);
  if (kDepth < padded_depth) fetch_offsets(next_offsets, offset);
  wait_copies<0>();
  __syncthreads();
  fetch(filter_tile[0][0] + y, window_tile[0][0] + x, operands[0]);

  // 5.
  int buffer = 0;
  UNROLL_BY(1)
  for (int step = 0; step < padded_depth; step += kDepth) {
    const bool last = step + kDepth == padded_depth;
    if (!last) start_copies(step + kDepth, buffer ^ 1);
    if (step + 2 * kDepth < padded_depth) fetch_offsets(next_offsets, offset);
    UNROLL
    for (int d = 0; d + 1 < kDepth; ++d) {
      fetch(filter_tile[buffer][d + 1] + y, window_tile[buffer][d + 1] + x, operands[(d + 1) % 2]);
      multiply_product(operands[d % 2], sums);
    }
    if (!last) {
      wait_copies<0>();
      __syncthreads();
      fetch(filter_tile[buffer ^ 1][0] + y, window_tile[buffer ^ 1][0] + x, operands[0]);
    }
    multiply_product(operands[(kDepth - 1) % 2], sums);
    buffer ^= 1;
  }
  // 6.
  store_sums(sums, filter_block * kFilters + y, first_output + x, output, l);
}

struct Tiles {
  int filters, outputs;  // of a tile
  int filter_tiles, output_tiles;
  int padded_depth;
};

Tiles tiles_of(const Lowering& l) {
  const int filters = tile_filters(l.filters), outputs = filters == 128 ? 64 : 128;
  return {filters, outputs, blocks_for(l.filters, filters), blocks_for(l.batch * output_plane(l), outputs),
          blocks_for(depth(l), kDepth) * kDepth};
}

std::int64_t packed_size(const Tiles& t) {
  return static_cast<std::int64_t>(t.filter_tiles) * t.filters * t.padded_depth;
}

void launch_pack(const float* filter, float* packed, int* offsets, const Lowering& l, Stream stream) {
  const Tiles t = tiles_of(l);
  launch(pack, dim3(blocks_for(static_cast<int>(packed_size(t)), kThreads)), dim3(kThreads), 0, stream)(
      filter, packed, offsets, l, t.filters, t.padded_depth);
}

void launch_product(const float* filter, const int* offsets, const float* tensor, float* output, const Lowering& l,
                    Stream stream) {
  const Tiles t = tiles_of(l);
  const auto kernel = t.filters == 128 ? multiply<2, 4, 1> : t.filters == 96 ? multiply<3, 2, 2> : multiply<2, 2, 2>;
  launch(kernel, dim3(t.filter_tiles * t.output_tiles), dim3(kThreads), 0, stream)(filter, offsets, tensor, output, l,
                                                                                   t.padded_depth);
}

class Im2winPipelined final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override { return check_lowering(problem); }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Lowering l = lowering_of(problem);
    tensor_.allocate(im2win_size(problem));
    filter_.allocate(packed_size(tiles_of(l)));
    offsets_.allocate(tiles_of(l).padded_depth);
    launch_pack(tensors.filter, filter_.floats(), offsets_.ints(), l, stream);
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
    const Tiles t = tiles_of(l);
    const std::int64_t blocks = static_cast<std::int64_t>(t.filter_tiles) * t.output_tiles, warps = kThreads / 32;
    Prediction p;
    p.global_load_bytes = (im2win_reads(l) + blocks * (depth(l) + t.padded_depth) * t.outputs +  // pixels, offsets
                           packed_size(t) * t.output_tiles) *
                          4;
    p.global_store_bytes = (im2win_size(problem) + problem.output_size()) * 4;
    p.shared_load_requests =
        im2win_shared_loads(l) + blocks * t.padded_depth * warps * (t.filters * t.outputs / kThreads / 32 + 2);
    p.constant_load_requests = 0;
    p.barriers = blocks * t.padded_depth / kDepth;
    p.flops = problem.flops();
    return p;
  }

  Workspace tensor_{*this, "im2win tensor"};
  Workspace filter_{*this, "packed filter"};
  Workspace offsets_{*this, "offsets of the products"};
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::Im2winPipelined)
