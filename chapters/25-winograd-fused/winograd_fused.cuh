// 25 winograd-fused: transform, multiply and transform back in one kernel. F(2 x 2, 3 x 3).
//
// Since 24: the transformed input and the sums never leave the multiprocessor. A block takes 32 tiles and 64 filters
// through all channels, 8 a step, at all 16 positions: that is 16 small matrix products side by side.
//
//   1. In prepare(): the filters are transformed, and laid out as the blocks read them, padded with zeros.
//   2. Load balance: the tiles of the whole batch are numbered through, and each block takes the next 32, wherever an
//      image ends; and 64 filters, so that a transformed tile serves 64 of them. (Blocks of Wang and Zhen take the
//      tiles at one place of so many images.)
//   3. Dynamic padding: a mask of 16 bits tells a thread which pixels of its tile are inside the input; the others are
//      zeros that nobody loads. The alternative to be measured: a copy of the input with its padding around it. Padding
//      other than with zeros always takes that.
//   4. Staged loads: the next step's filters go to shared memory as asynchronous copies, its pixels to registers, while
//      a step is multiplied. With three buffers the filters are two steps ahead; with one, nothing is.
//   5. A step: each warp multiplies at two of the 16 positions, each of its threads 8 filters x 8 tiles. The next row
//      of numbers is fetched while one is multiplied; how far ahead, register buffers say.
//   6. The next step's tiles are transformed, and stored where the step after reads them.
//   7. At the end the sums meet in shared memory, half of the filters at a time; each thread transforms tiles back.

#pragma once
#include "common/kernel/kernel.hpp"
#include "common/kernel/tracks/winograd.hpp"

namespace convladder {
namespace {

constexpr int kThreads = 256;
constexpr int kTiles = 32, kFilters = 64;  // of a block
constexpr int kDepth = 8;                  // channels of a step: one for each warp that loads and transforms
constexpr int kPositions = 16;
constexpr int kInputBuffer = kPositions * kDepth * kTiles;     // floats of a step's transformed tiles
constexpr int kFilterBuffer = kPositions * kDepth * kFilters;  // and filters
constexpr int kHalfSums = kPositions * (kFilters / 2) * kTiles;

// 1. U [filter block][step][position][channel of the step][filter of the block]
__global__ void transform_filters(const float* filter,  // [filters][channels][3][3]
                                  float* u, Winograd w, int steps) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const int k = i % kFilters, c = i / kFilters % (steps * kDepth), block = i / kFilters / (steps * kDepth);
  if (block * kFilters >= w.filters) return;
  const bool inside = block * kFilters + k < w.filters && c < w.channels;
  const float* taps = filter + ((block * kFilters + k) * w.channels + c) * 9;
  float g[3][3], tile[4][4];
  UNROLL
  for (int r = 0; r < 3; ++r) {
    UNROLL
    for (int s = 0; s < 3; ++s) g[r][s] = inside ? taps[r * 3 + s] : 0.0f;
  }
  transform_filter<F2>(g, tile);
  float* of_step = u + (block * steps + c / kDepth) * kFilterBuffer + c % kDepth * kFilters + k;
  UNROLL
  for (int position = 0; position < kPositions; ++position)
    of_step[position * kDepth * kFilters] = tile[position / 4][position % 4];
}

// 3. The alternative: [batch][channels][2 tiles_down + 2][2 tiles_across + 2]
__global__ void pad_input(const float* input,  // [batch][channels][height][width]
                          float* padded, Winograd w) {
  const int width = 2 * w.tiles_across + 2, height = 2 * w.tiles_down + 2;
  const int x = blockIdx.x * kThreads + threadIdx.x, row = block_in_y();
  const int plane = row / height, y = row % height;
  if (x >= width || plane >= w.batch * w.channels) return;
  const int i = tile_index(y - w.pad_y, w.height, w.pad_y, w.padding);
  const int j = tile_index(x - w.pad_x, w.width, w.pad_x, w.padding);
  padded[row * width + x] = i >= 0 && j >= 0 ? input[(plane * w.height + i) * w.width + j] : 0.0f;
}

// 3. The tile that a thread loads and transforms.
struct Source {
  const float* corner;  // its first pixel, in the channel that is loaded next
  int channel;          // that channel
  int width, plane;     // floats from row to row, and from channel to channel
  unsigned mask;        // bit i: whether the pixel of row i / 4 and column i % 4 is inside
};

template <bool Masked>
__device__ __forceinline__ Source source_of(const float* input, const Winograd& w, const TilePlace& place,
                                            int channel) {
  const int height = Masked ? w.height : 2 * w.tiles_down + 2, width = Masked ? w.width : 2 * w.tiles_across + 2;
  const int top = place.row - (Masked ? w.pad_y : 0), left = place.column - (Masked ? w.pad_x : 0);
  unsigned mask = 0;
  UNROLL
  for (int i = 0; i < kPositions; ++i) {
    const int y = top + i / 4, x = left + i % 4;
    if (!Masked || (y >= 0 && y < height && x >= 0 && x < width)) mask |= 1u << i;
  }
  const int plane = height * width;
  return {input + (place.image * w.channels + channel) * plane + top * width + left, channel, width, plane, mask};
}

template <bool Masked>
__device__ __forceinline__ void load_pixels(Source& source, int channels, float (&pixels)[4][4]) {
  const bool inside = source.channel < channels;
  UNROLL
  for (int i = 0; i < kPositions; ++i)
    pixels[i / 4][i % 4] =
        inside && (!Masked || (source.mask >> i & 1)) ? source.corner[i / 4 * source.width + i % 4] : 0.0f;
  source.corner += kDepth * source.plane;
  source.channel += kDepth;
}

// 4. Starts the copies of a step's filters; the next call those of the step after it.
__device__ __forceinline__ void start_filters(const float4*& filters, float* buffer) {
  float4* to = reinterpret_cast<float4*>(buffer) + threadIdx.x;
  UNROLL
  for (int i = 0; i < kFilterBuffer / 4 / kThreads; ++i) copy_async<16>(to + i * kThreads, filters + i * kThreads);
  filters += kFilterBuffer / 4;
}

// 5. What a thread multiplies of one channel at one position: two groups of 4 filters, and of 4 tiles.
struct Operands {
  float4 down[2], across[2];
};

__device__ __forceinline__ void fetch(const float* filter_row, const float* input_row, Operands& operands) {
  UNROLL
  for (int half = 0; half < 2; ++half) {
    operands.down[half] = *reinterpret_cast<const float4*>(filter_row + 32 * half);
    operands.across[half] = *reinterpret_cast<const float4*>(input_row + 16 * half);
  }
}

__device__ __forceinline__ void unpack(float4 v, float* values) {
  values[0] = v.x;
  values[1] = v.y;
  values[2] = v.z;
  values[3] = v.w;
}

__device__ __forceinline__ void multiply_add(const Operands& operands, float (&sums)[8][8]) {
  float a[8], b[8];
  UNROLL
  for (int half = 0; half < 2; ++half) {
    unpack(operands.down[half], a + 4 * half);
    unpack(operands.across[half], b + 4 * half);
  }
  UNROLL
  for (int i = 0; i < 8; ++i) {
    UNROLL
    for (int column = 0; column < 8; ++column) {
      const int j = i % 2 ? 7 - column : column;  // there and back: the last number is used again
      sums[i][j] += a[i] * b[j ^ 1];
    }
  }
}

// One row is fetched while the one before it is multiplied.
__device__ __forceinline__ void multiply_step(const float* filter_rows,  // [2 positions][kDepth][kFilters]
                                              const float* input_rows,   // [2 positions][kDepth][kTiles]
                                              float (&sums)[2][8][8]) {
  Operands operands[2];
  fetch(filter_rows, input_rows, operands[0]);
  UNROLL
  for (int row = 0; row < 2 * kDepth; ++row) {
    if (row + 1 < 2 * kDepth)
      fetch(filter_rows + (row + 1) * kFilters, input_rows + (row + 1) * kTiles, operands[(row + 1) % 2]);
    multiply_add(operands[row % 2], sums[row / kDepth]);
  }
}

// The same as a loop over the rows, with so many register buffers: rows are fetched two ahead, one, or not at all. Of
// unrolled rows nvcc makes the same machine code however many buffers there are; over the end of a loop it moves
// nothing.
template <int Registers>
__device__ __forceinline__ void multiply_step_in_loop(const float* filter_rows,  // as above
                                                      const float* input_rows, float (&sums)[2][8][8]) {
  UNROLL
  for (int position = 0; position < 2; ++position, filter_rows += kDepth * kFilters, input_rows += kDepth * kTiles) {
    Operands operands[Registers];
    UNROLL
    for (int row = 0; row < Registers - 1; ++row)
      fetch(filter_rows + row * kFilters, input_rows + row * kTiles, operands[row]);
    UNROLL_BY(1)
    for (int first = 0; first < kDepth; first += Registers) {
      UNROLL
      for (int i = 0; i < Registers; ++i) {
        const int row = first + i, next = row + Registers - 1;
        if (kDepth % Registers != 0 && row >= kDepth) break;
        if (Registers == 1 || next < kDepth)
          fetch(filter_rows + next * kFilters, input_rows + next * kTiles, operands[(i + Registers - 1) % Registers]);
        multiply_add(operands[i], sums[position]);
      }
    }
  }
}

// 6. Neighbouring tiles change places, and registers of a product lie in different banks (stage 20).
__device__ __forceinline__ void store_tile(float (&pixels)[4][4], float* buffer, int warp, int lane) {
  transform_input<F2>(pixels);
  float* to = buffer + warp * kTiles + (lane ^ 1);
  UNROLL
  for (int i = 0; i < kPositions; ++i) to[i * kDepth * kTiles] = pixels[i / 4][i % 4];
}

// 7. Of every other four filters, the halves of a row change places: lanes 0 to 3 and 4 to 7, which store at the same
// time, then use different banks.
__device__ __forceinline__ void store_sums(const float (&sums)[2][8][8], int half,
                                           float* exchange,  // [position][half of the filters][tile]
                                           int warp, int y, int x) {
  UNROLL
  for (int i = 0; i < 2; ++i) {
    UNROLL
    for (int r = 0; r < 4; ++r) {
      float* row = exchange + ((2 * warp + i) * (kFilters / 2) + y + r) * kTiles;
      const float* s = sums[i][4 * half + r];
      *reinterpret_cast<float4*>(row + (x ^ (y / 4 % 2 * 16))) = make_float4(s[0], s[1], s[2], s[3]);
      *reinterpret_cast<float4*>(row + ((x + 16) ^ (y / 4 % 2 * 16))) = make_float4(s[4], s[5], s[6], s[7]);
    }
  }
}

// A thread transforms its tile back for every eighth filter from first_k on, and stores the outputs.
__device__ __forceinline__ void store_outputs(const float* exchange, int first_k, bool exists, const TilePlace& place,
                                              float* output, const Winograd& w, int warp, int lane) {
  const bool pairs = w.out_width % 2 == 0;
  UNROLL
  for (int r = 0; r < 4; ++r) {
    const int row = r * (kThreads / 32) + warp, k = first_k + row;
    float m[4][4], out[2][2];
    UNROLL
    for (int i = 0; i < kPositions; ++i)
      m[i / 4][i % 4] = exchange[(i * (kFilters / 2) + row) * kTiles + (lane ^ (row / 4 % 2 * 16))];
    transform_output<F2>(m, out);
    if (k >= w.filters || !exists) continue;
    float* to =
        output + (place.image * w.filters + k) * w.out_height * w.out_width + place.row * w.out_width + place.column;
    UNROLL
    for (int i = 0; i < 2; ++i, to += w.out_width) {
      if (place.row + i >= w.out_height) continue;
      if (pairs) {
        *reinterpret_cast<float2*>(to) = make_float2(out[i][0], out[i][1]);
      } else {
        to[0] = out[i][0];
        if (place.column + 1 < w.out_width) to[1] = out[i][1];
      }
    }
  }
}

// Registers: the register buffers of step 5, or kUnrolled.
constexpr int kUnrolled = 0;

template <int Buffers, bool Masked, int Registers, bool SamePlace>
__global__ void __launch_bounds__(kThreads, 1)
    winograd_fused(const float* input,  // [batch][channels][height][width], or the padded copy
                   const float* u,      // [filter block][step][position][kDepth][kFilters]
                   float* output,       // [batch][filters][out_height][out_width]
                   Winograd w, int steps, int tiles_of_group) {
  float* const filter_buffers = dynamic_shared<float>();                  // [Buffers][position][kDepth][kFilters]
  float* const input_buffers = filter_buffers + Buffers * kFilterBuffer;  // [2][position][kDepth][kTiles]
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  // 2. A group is what blocks do not span: the batch; to see what balance brings, an image; or, as Wang and
  // Zhen have it, the tiles at one place of all images.
  const int filter_blocks = blocks_for(w.filters, kFilters), group_blocks = blocks_for(tiles_of_group, kTiles);
  const int filter_block = static_cast<int>(blockIdx.x) % filter_blocks;
  const int tile_block = static_cast<int>(blockIdx.x) / filter_blocks;
  const int group = tile_block / group_blocks, first = tile_block % group_blocks * kTiles;
  const int to_next = SamePlace ? w.tiles_down * w.tiles_across : 1;  // from tile to tile
  const int first_tile = SamePlace ? group + first * to_next : group * tiles_of_group + first;
  const int past_tile = SamePlace ? group + (tiles_of_group - 1) * to_next + 1 : (group + 1) * tiles_of_group;

  // 3. Each thread loads and transforms the tile `lane` of channel `warp` of a step.
  Source source = source_of<Masked>(input, w, place_of(w, min(first_tile + lane * to_next, past_tile - 1)), warp);
  const float4* filters = reinterpret_cast<const float4*>(u + filter_block * steps * kFilterBuffer) + thread;
  const int y = lane / 4 * 4, x = lane % 4 * 4;  // the thread's first filter and tile, and again 32 and 16 on
  float pixels[4][4], sums[2][8][8] = {};

  // 4.
  start_filters(filters, filter_buffers);
  commit_copies();
  if (Buffers == 3) {
    if (steps > 1) start_filters(filters, filter_buffers + kFilterBuffer);
    commit_copies();
  }
  load_pixels<Masked>(source, w.channels, pixels);
  store_tile(pixels, input_buffers, warp, lane);
  int filter_buffer = 0, next_filter_buffer = Buffers - 1;
  UNROLL_BY(1)
  for (int step = 0; step < steps; ++step) {
    wait_copies<Buffers == 3 ? 1 : 0>();
    __syncthreads();  // the step's buffers are complete, and no thread reads the others any more
    const bool more = step + 1 < steps;
    if (Buffers > 1) {
      // Before the copies, and of no channel at the end: else nvcc moves the loads to where the tile is needed.
      load_pixels<Masked>(source, w.channels, pixels);
      if (step + Buffers - 1 < steps) start_filters(filters, filter_buffers + next_filter_buffer * kFilterBuffer);
      commit_copies();
    }
    // 5.
    const float* filter_rows = filter_buffers + filter_buffer * kFilterBuffer + 2 * warp * kDepth * kFilters + y;
    const float* input_rows =
        input_buffers + (Buffers == 1 ? 0 : step % 2) * kInputBuffer + 2 * warp * kDepth * kTiles + x;
    if constexpr (Registers == kUnrolled) {
      multiply_step(filter_rows, input_rows, sums);
    } else {
      multiply_step_in_loop<Registers>(filter_rows, input_rows, sums);
    }
    if (Buffers == 1) {
      __syncthreads();  // the only buffers are read
      if (more) start_filters(filters, filter_buffers);
      commit_copies();
      if (more) load_pixels<Masked>(source, w.channels, pixels);
    }
    // 6.
    if (more) store_tile(pixels, input_buffers + (Buffers == 1 ? 0 : (step + 1) % 2) * kInputBuffer, warp, lane);
    filter_buffer = filter_buffer + 1 == Buffers ? 0 : filter_buffer + 1;
    next_filter_buffer = next_filter_buffer + 1 == Buffers ? 0 : next_filter_buffer + 1;
  }

  // 7.
  float* const exchange = dynamic_shared<float>();
  const int tile = first_tile + lane * to_next;
  const TilePlace place = place_of(w, min(tile, past_tile - 1));
  UNROLL
  for (int half = 0; half < 2; ++half) {
    __syncthreads();  // the buffers, or the first half of the sums, are read
    store_sums(sums, half, exchange, warp, y, x);
    __syncthreads();
    store_outputs(exchange, filter_block * kFilters + half * (kFilters / 2), tile < past_tile, place, output, w, warp,
                  lane);
  }
}

// ---- Launch ---------------------------------------------------------------------------------------------------------

std::int64_t shared_bytes(int buffers) {
  const std::int64_t floats = buffers * kFilterBuffer + (buffers == 1 ? 1 : 2) * kInputBuffer;
  return (floats > kHalfSums ? floats : kHalfSums) * 4;
}

// Floats of the transformed filters.
std::int64_t filter_elements(const Winograd& w) {
  return std::int64_t{blocks_for(w.filters, kFilters)} * blocks_for(w.channels, kDepth) * kFilterBuffer;
}

std::int64_t padded_rows(const Winograd& w) { return std::int64_t{w.batch} * w.channels * (2 * w.tiles_down + 2); }
int padded_width(const Winograd& w) { return 2 * w.tiles_across + 2; }

// Which tiles a block takes (knob "tiles").
enum { kBalanced, kPerImage, kPerPlace };

int tiles_of_group(const Winograd& w, int mapping) {
  const int of_image = w.tiles_down * w.tiles_across;
  return mapping == kBalanced ? w.tiles : mapping == kPerImage ? of_image : w.batch;
}

std::int64_t blocks(const Winograd& w, int mapping) {
  const int of_group = tiles_of_group(w, mapping);
  return std::int64_t{w.tiles / of_group} * blocks_for(of_group, kTiles) * blocks_for(w.filters, kFilters);
}

void launch_transform_filters(const float* filter, float* u, const Winograd& w, Stream stream) {
  const int steps = blocks_for(w.channels, kDepth), filter_blocks = blocks_for(w.filters, kFilters);
  launch(transform_filters, dim3(filter_blocks * steps * kDepth * kFilters / kThreads), dim3(kThreads), 0, stream)(
      filter, u, w, steps);
}

void launch_pad_input(const float* input, float* padded, const Winograd& w, Stream stream) {
  launch(pad_input, grid_in_y(blocks_for(padded_width(w), kThreads), padded_rows(w)), dim3(kThreads), 0, stream)(
      input, padded, w);
}

using Kernel = decltype(&winograd_fused<2, true, kUnrolled, false>);

// What the host side chooses (its knobs).
struct Form {
  int buffers;  // of filters in shared memory
  bool masked;
  int registers, mapping;
};

template <bool Masked, int Registers, bool SamePlace>
Kernel kernel_with_buffers(int buffers) {
  switch (buffers) {
    case 1:
      return winograd_fused<1, Masked, Registers, SamePlace>;
    case 2:
      return winograd_fused<2, Masked, Registers, SamePlace>;
    default:
      return winograd_fused<3, Masked, Registers, SamePlace>;
  }
}

template <bool SamePlace>
Kernel kernel_for(const Form& form) {
  if (!form.masked) return kernel_with_buffers<false, kUnrolled, SamePlace>(form.buffers);
  switch (form.registers) {
    case 1:
      return kernel_with_buffers<true, 1, SamePlace>(form.buffers);
    case 2:
      return kernel_with_buffers<true, 2, SamePlace>(form.buffers);
    case 3:
      return kernel_with_buffers<true, 3, SamePlace>(form.buffers);
    default:
      return kernel_with_buffers<true, kUnrolled, SamePlace>(form.buffers);
  }
}

void launch_winograd_fused(const float* input, const float* u, float* output, const Winograd& w, const Form& form,
                           Stream stream) {
  launch(form.mapping == kPerPlace ? kernel_for<true>(form) : kernel_for<false>(form),
         dim3(static_cast<unsigned>(blocks(w, form.mapping))), dim3(kThreads),
         static_cast<std::size_t>(shared_bytes(form.buffers)),
         stream)(input, u, output, w, blocks_for(w.channels, kDepth), tiles_of_group(w, form.mapping));
}

}  // namespace
}  // namespace convladder
