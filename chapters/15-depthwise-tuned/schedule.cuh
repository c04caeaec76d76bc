// The kernel of 15: every schedule of the space from one source.
//
// It is compiled twice. When the program runs, NVRTC compiles it for one problem and one schedule, whose numbers are
// then constants: loops unroll, divisions become shifts, arrays live in registers. With the program it is compiled once
// with all of these numbers as variables: that is what runs in the simulator, and on a GPU where there is no NVRTC.
//
//   1. Tile: a block has block_planes x block_rows x block_columns outputs, a thread thread_rows x thread_columns.
//   2. Cache, where the schedule says so: the block brings its input with the halo, and its filters, to shared memory.
//      With two stages a block has several tiles, and cp.async brings the next one while this one is summed.
//   3. Sum: over the rows of the filter and, for each, the thread's rows; or over the rows of the input, each added to
//      every row of outputs that it serves.
//   4. Store.
#pragma once
#include "common/kernel/border.hpp"

namespace convladder {

// Values of the knobs.
enum Order { kFilterRows, kInputRows };                         // the outermost loop of a thread
enum InputFrom { kInputCache, kInputRegisters, kInputShared };  // where a tap finds its pixel
enum FilterFrom { kFilterCache, kFilterConstant, kFilterShared };

// One point of the space. When compiled by NVRTC, a type with the same names as static constants stands for it.
struct Schedule {
  int block_planes, block_rows, block_columns;  // outputs of a block
  int thread_rows, thread_columns;              // outputs of a thread
  int order;                                    // Order
  int input;                                    // InputFrom
  int filter;                                   // FilterFrom
  int unroll;                                   // 1: the loop over rows is unrolled
  int stages;                                   // 2: the next tile is on its way while this one is summed
};

constexpr int kVector = 4;  // floats of a 16-byte access

// ---- Sizes that follow. D is Depthwise, S is Schedule, or types with the same names as static constants. ------------

__host__ __device__ __forceinline__ constexpr int ceil_div(int a, int b) { return a / b + (a % b != 0); }
__host__ __device__ __forceinline__ constexpr int smaller(int a, int b) { return a < b ? a : b; }
__host__ __device__ __forceinline__ constexpr int round_up(int a, int b) { return ceil_div(a, b) * b; }

// Outputs of a block that exist in a plane at all.
template <class D, class S>
__host__ __device__ __forceinline__ constexpr int tile_rows(D d, S s) {
  return smaller(s.block_rows, d.out_height);
}
template <class D, class S>
__host__ __device__ __forceinline__ constexpr int tile_columns(D d, S s) {
  return smaller(s.block_columns, d.out_width);
}
// Threads that a tile of one plane keeps busy.
template <class D, class S>
__host__ __device__ __forceinline__ constexpr int strips_down(D d, S s) {
  return ceil_div(tile_rows(d, s), s.thread_rows);
}
template <class D, class S>
__host__ __device__ __forceinline__ constexpr int strips_across(D d, S s) {
  return ceil_div(tile_columns(d, s), s.thread_columns);
}
// Threads of a block: whole warps.
template <class D, class S>
__host__ __device__ __forceinline__ constexpr int threads_of(D d, S s) {
  return round_up(s.block_planes * strips_down(d, s) * strips_across(d, s), 32);
}

// Input that a number of outputs in a row needs.
__host__ __device__ __forceinline__ constexpr int span(int outputs, int stride, int taps, int dilation) {
  return (outputs - 1) * stride + (taps - 1) * dilation + 1;
}
// Columns that a window is begun further left than its first tap, so that it begins at a multiple of 16 bytes.
template <class D>
__host__ __device__ __forceinline__ constexpr int lead(D d) {
  return round_up(d.pad_x, kVector) - d.pad_x;
}
// Floats of a thread's window along one row, in whole vectors.
template <class D, class S>
__host__ __device__ __forceinline__ constexpr int window_columns(D d, S s) {
  return round_up(lead(d) + span(s.thread_columns, d.stride_x, d.columns, d.dilation_x), kVector);
}
// Rows of input that a thread needs.
template <class D, class S>
__host__ __device__ __forceinline__ constexpr int window_rows(D d, S s) {
  return span(s.thread_rows, d.stride_y, d.rows, d.dilation_y);
}
// The staged tile of one plane: enough for the last strip's whole window, even where that strip reaches past the tile.
template <class D, class S>
__host__ __device__ __forceinline__ constexpr int staged_rows(D d, S s) {
  return (strips_down(d, s) - 1) * s.thread_rows * d.stride_y + window_rows(d, s);
}
template <class D, class S>
__host__ __device__ __forceinline__ constexpr int staged_columns(D d, S s) {
  return round_up((strips_across(d, s) - 1) * s.thread_columns * d.stride_x + window_columns(d, s), kVector);
}
// Floats of a stage in shared memory, in whole vectors; and of all.
template <class D, class S>
__host__ __device__ __forceinline__ constexpr long long stage_floats(D d, S s) {
  long long floats = 0;
  if (s.input == kInputShared)
    floats += static_cast<long long>(s.block_planes) * staged_rows(d, s) * staged_columns(d, s);
  if (s.filter == kFilterShared) floats += static_cast<long long>(s.block_planes) * d.rows * d.columns;
  return (floats + kVector - 1) / kVector * kVector;
}
template <class D, class S>
__host__ __device__ __forceinline__ constexpr long long shared_floats(D d, S s) {
  return s.stages * stage_floats(d, s);
}
// Tiles of all planes.
template <class D, class S>
__host__ __device__ __forceinline__ constexpr long long tiles_of(D d, S s) {
  return static_cast<long long>(ceil_div(d.batch * d.channels, s.block_planes)) *
         ceil_div(d.out_height, tile_rows(d, s)) * ceil_div(d.out_width, tile_columns(d, s));
}

// Array sizes and loop lengths that must be constants.
template <class D, class S>
struct Sizes {
  static constexpr int rows = S::thread_rows, columns = S::thread_columns;
  // Sums of an output, each of some columns of the filter: a thread of few outputs waits for the sum before.
  static constexpr int parts = rows * columns < 4 ? 4 / (rows * columns) : 1;
  static constexpr int window = S::input == kInputCache ? kVector : window_columns(D{}, S{});
  static constexpr int row_unrolling = S::unroll ? 4096 : 1;
  // A window's columns are always unrolled, so that it stays in registers. Without one, a filter may be very wide.
  static constexpr int column_unrolling = S::unroll || S::input != kInputCache ? 4096 : 4;
  // Vectors that a thread asks for before it stores the first.
  static constexpr int batch =
      S::input == kInputShared
          ? smaller(8, ceil_div(S::block_planes* staged_rows(D{}, S{}) * staged_columns(D{}, S{}) / kVector,
                                threads_of(D{}, S{})))
          : 1;
};

// ---- Access ---------------------------------------------------------------------------------------------------------

// The input's column at any position of the padded plane, or -1 where it reads zero.
template <class D>
__device__ __forceinline__ int column_at(int x, D d) {
  const bool padded = x >= -d.pad_x && x < d.width + d.pad_x;  // past the padding only where no output needs it
  return padded ? border_index(x, d.width, d.padding) : -1;
}

// The input at any position of the padded plane. `row` is a row of it, or null where the row reads zero.
template <class D>
__device__ __forceinline__ float pixel(const float* row, int x, D d) {
  const int j = column_at(x, d);
  return static_cast<int>(row != nullptr) & static_cast<int>(j >= 0) ? row[j] : 0.0f;
}

// The input's row at any position of the padded plane, or null where it reads zero.
template <class D>
__device__ __forceinline__ const float* input_row(const float* in, int y, D d) {
  if (y < -d.pad_y || y >= d.height + d.pad_y) return nullptr;
  const int i = border_index(y, d.height, d.padding);
  return i < 0 ? nullptr : in + static_cast<long long>(i) * d.width;
}

// Four pixels from column x on, a multiple of 4. Where rows are whole vectors, one lies inside the row or outside.
template <class D>
__device__ __forceinline__ float4 four_pixels(const float* row, int x, D d) {
  if (d.width % kVector == 0) {
    if (row && x >= 0 && x < d.width) return *reinterpret_cast<const float4*>(row + x);
    if (d.padding == Padding::zero) return make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  }
  return make_float4(pixel(row, x, d), pixel(row, x + 1, d), pixel(row, x + 2, d), pixel(row, x + 3, d));
}

// The same four pixels to shared memory, on their way.
template <class D>
__device__ __forceinline__ void copy_four(float* to, const float* row, int x, D d) {
  const bool inside = row && x >= 0 && x < d.width;
  if (d.width % kVector == 0 && (inside || d.padding == Padding::zero)) return copy_async<16>(to, row + x, inside);
  UNROLL
  for (int e = 0; e < kVector; ++e) {
    const int j = column_at(x + e, d);
    copy_async<4>(to + e, row + j, row && j >= 0);
  }
}

// ---- 1. The block's tile --------------------------------------------------------------------------------------------

// Where it begins: the tiles of a plane are counted, and then the groups of planes.
struct BlockTile {
  int first_plane, y, x;
};

template <class D, class S>
__device__ __forceinline__ BlockTile block_tile(int number, D d, S s) {
  const int across = ceil_div(d.out_width, tile_columns(d, s)), down = ceil_div(d.out_height, tile_rows(d, s));
  const int group = number / (across * down);
  return {group * s.block_planes, number / across % down * tile_rows(d, s), number % across * tile_columns(d, s)};
}

// ---- 2. Cache -------------------------------------------------------------------------------------------------------

struct Staged {
  float* input;      // [block_planes][staged_rows][staged_columns]
  float* filter;     // [block_planes][taps]
  int pitch, plane;  // floats of a row and of a plane of the input
};

template <class D, class S>
__device__ __forceinline__ Staged staged_memory(int stage, D d, S s) {
  float* input = dynamic_shared<float>() + stage * static_cast<int>(stage_floats(d, s));
  const bool stages_input = s.input == kInputShared;
  const int pitch = stages_input ? staged_columns(d, s) : 1, plane = stages_input ? staged_rows(d, s) * pitch : 1;
  return {input, input + (stages_input ? s.block_planes * plane : 0), pitch, plane};
}

template <class D, class S>
__device__ __forceinline__ void cache_input(const Staged& staged, const float* input, const BlockTile& tile, D d, S s) {
  const int planes = d.batch * d.channels, threads = threads_of(d, s), t = static_cast<int>(threadIdx.x);
  const int left = tile.x * d.stride_x - d.pad_x - lead(d), top = tile.y * d.stride_y - d.pad_y;
  const int count = s.block_planes * staged.plane / kVector;
  for (int begin = 0; begin < count; begin += Sizes<D, S>::batch * threads) {
    float4 held[Sizes<D, S>::batch];  // asked for before the first is stored
    UNROLL
    for (int b = 0; b < Sizes<D, S>::batch; ++b) {
      const int at = (begin + b * threads + t) * kVector;
      const int local = s.block_planes == 1 ? 0 : at / staged.plane, rest = at - local * staged.plane;
      if (at >= count * kVector || tile.first_plane + local >= planes) continue;
      const float* in = input + static_cast<long long>(tile.first_plane + local) * d.height * d.width;
      held[b] = four_pixels(input_row(in, top + rest / staged.pitch, d), left + rest % staged.pitch, d);
    }
    UNROLL
    for (int b = 0; b < Sizes<D, S>::batch; ++b) {
      const int at = (begin + b * threads + t) * kVector;
      const int local = s.block_planes == 1 ? 0 : at / staged.plane;
      if (at >= count * kVector || tile.first_plane + local >= planes) continue;
      *reinterpret_cast<float4*>(staged.input + at) = held[b];
    }
  }
}

// A tap of the block's filters.
template <class D, class S>
__device__ __forceinline__ const float* block_tap(const float* filter, const BlockTile& tile, int at, D d, S s) {
  const int taps = d.rows * d.columns;
  const int channel = (tile.first_plane + (s.block_planes == 1 ? 0 : at / taps)) % d.channels;
  return filter + static_cast<long long>(channel) * taps + at % taps;
}

template <class D, class S>
__device__ __forceinline__ void cache(const Staged& staged, const float* input, const float* filter,
                                      const BlockTile& tile, D d, S s) {
  const int threads = threads_of(d, s), t = static_cast<int>(threadIdx.x);
  const int taps = s.filter == kFilterShared ? s.block_planes * d.rows * d.columns : 0;
  // On its way while the input is asked for.
  const float first_tap = t < taps ? *block_tap(filter, tile, t, d, s) : 0.0f;
  if (s.input == kInputShared) cache_input(staged, input, tile, d, s);
  if (t < taps) staged.filter[t] = first_tap;
  for (int at = t + threads; threads < taps && at < taps; at += threads)
    staged.filter[at] = *block_tap(filter, tile, at, d, s);
  if (s.input == kInputShared || s.filter == kFilterShared) __syncthreads();
}

// The same with cp.async: all of it is on its way, and the thread waits for nothing.
template <class D, class S>
__device__ __forceinline__ void start_copies(const Staged& staged, const float* input, const float* filter,
                                             const BlockTile& tile, D d, S s) {
  const int planes = d.batch * d.channels, threads = threads_of(d, s), t = static_cast<int>(threadIdx.x);
  const int left = tile.x * d.stride_x - d.pad_x - lead(d), top = tile.y * d.stride_y - d.pad_y;
  UNROLL_BY((Sizes<D, S>::batch))
  for (int at = t * kVector; at < s.block_planes * staged.plane; at += threads * kVector) {
    const int local = s.block_planes == 1 ? 0 : at / staged.plane, rest = at - local * staged.plane;
    if (tile.first_plane + local >= planes) break;
    const float* in = input + static_cast<long long>(tile.first_plane + local) * d.height * d.width;
    copy_four(staged.input + at, input_row(in, top + rest / staged.pitch, d), left + rest % staged.pitch, d);
  }
  const int taps = s.filter == kFilterShared ? s.block_planes * d.rows * d.columns : 0;
  for (int at = t; at < taps; at += threads) copy_async<4>(staged.filter + at, block_tap(filter, tile, at, d, s));
  commit_copies();
}

// ---- 3. Sum ---------------------------------------------------------------------------------------------------------

// Where a thread's pixels and taps are. Row i of its window begins at input row `top` + i and column `left`, which is
// `lead` columns left of the first tap.
struct Sources {
  const float* in;      // its plane
  const float* staged;  // its window in shared memory
  int pitch;            // floats from row to row there
  int top, left;
  const float *filter, *constant_filter, *staged_filter;  // all filters, in each memory
  long long taps;                                         // to its own filter
  int staged_taps;                                        // the same in shared memory
};

template <class D, class S>
using Sums = float[Sizes<D, S>::rows][Sizes<D, S>::columns][Sizes<D, S>::parts];

// Brings row i of the window to registers.
template <class D, class S>
__device__ __forceinline__ void load(float (&window)[Sizes<D, S>::window], const Sources& from, int i, D d, S s) {
  const float* row = s.input == kInputRegisters ? input_row(from.in, from.top + i, d) : nullptr;
  const bool aligned = s.thread_columns * d.stride_x % kVector == 0;
  UNROLL
  for (int e = 0; e < window_columns(d, s); e += kVector) {
    if (aligned) {
      const float4 four = s.input == kInputShared ? *reinterpret_cast<const float4*>(from.staged + i * from.pitch + e)
                                                  : four_pixels(row, from.left + e, d);
      window[e] = four.x;
      window[e + 1] = four.y;
      window[e + 2] = four.z;
      window[e + 3] = four.w;
    } else {
      UNROLL
      for (int f = e; f < e + kVector; ++f) {
        if (f < lead(d)) continue;
        window[f] = s.input == kInputShared ? from.staged[i * from.pitch + f] : pixel(row, from.left + f, d);
      }
    }
  }
}

// Adds window row i, through row r of the filter, to row v of the thread's outputs.
template <class D, class S>
__device__ __forceinline__ void add(Sums<D, S>& sum, const float (&window)[Sizes<D, S>::window], const Sources& from,
                                    int i, int r, int v, D d, S s) {
  const float* row = s.input == kInputCache ? input_row(from.in, from.top + i, d) : nullptr;
  UNROLL_BY((Sizes<D, S>::column_unrolling))
  for (int c = 0; c < d.columns; ++c) {
    const float weight = s.filter == kFilterShared     ? from.staged_filter[from.staged_taps + r * d.columns + c]
                         : s.filter == kFilterConstant ? from.constant_filter[from.taps + r * d.columns + c]
                                                       : from.filter[from.taps + r * d.columns + c];
    UNROLL
    for (int e = 0; e < s.thread_columns; ++e) {
      const int at = lead(d) + e * d.stride_x + c * d.dilation_x;
      sum[v][e][c % Sizes<D, S>::parts] +=
          (s.input == kInputCache ? pixel(row, from.left + at, d) : window[at]) * weight;
    }
  }
}

template <class D, class S>
__device__ __forceinline__ void sum_by_filter_rows(Sums<D, S>& sum, const Sources& from, D d, S s) {
  float window[Sizes<D, S>::window];
  UNROLL_BY((Sizes<D, S>::row_unrolling))
  for (int r = 0; r < d.rows; ++r) {
    UNROLL
    for (int v = 0; v < s.thread_rows; ++v) {
      const int i = v * d.stride_y + r * d.dilation_y;
      if (s.input != kInputCache) load(window, from, i, d, s);
      add(sum, window, from, i, r, v, d, s);
    }
  }
}

template <class D, class S>
__device__ __forceinline__ void sum_by_input_rows(Sums<D, S>& sum, const Sources& from, D d, S s) {
  float window[Sizes<D, S>::window];
  UNROLL_BY((Sizes<D, S>::row_unrolling))
  for (int i = 0; i < window_rows(d, s); ++i) {
    if (s.input != kInputCache) load(window, from, i, d, s);
    UNROLL
    for (int v = 0; v < s.thread_rows; ++v) {
      const int below = i - v * d.stride_y;
      if (below < 0 || below % d.dilation_y != 0 || below / d.dilation_y >= d.rows) continue;
      add(sum, window, from, i, below / d.dilation_y, v, d, s);
    }
  }
}

// ---- 4. Store -------------------------------------------------------------------------------------------------------

// From output (y, x) of a plane on.
template <class D, class S>
__device__ __forceinline__ void store(float* output, const Sums<D, S>& sum, int plane, int y, int x, D d, S s) {
  float* out = output + (static_cast<long long>(plane) * d.out_height + y) * d.out_width + x;
  const auto whole = [&](int v, int e) {
    float of_parts = sum[v][e][0];
    UNROLL
    for (int part = 1; part < Sizes<D, S>::parts; ++part) of_parts += sum[v][e][part];
    return of_parts;
  };
  UNROLL
  for (int v = 0; v < s.thread_rows; ++v) {
    if (y + v >= d.out_height) break;
    float* row = out + static_cast<long long>(v) * d.out_width;
    if (s.thread_columns == 4 && d.out_width % 4 == 0) {
      *reinterpret_cast<float4*>(row) = make_float4(whole(v, 0), whole(v, 1), whole(v, 2), whole(v, 3));
    } else if (s.thread_columns == 2 && d.out_width % 2 == 0) {
      *reinterpret_cast<float2*>(row) = make_float2(whole(v, 0), whole(v, 1));
    } else {
      UNROLL
      for (int e = 0; e < s.thread_columns; ++e) {
        if (x + e < d.out_width) row[e] = whole(v, e);
      }
    }
  }
}

// ---- The kernel -----------------------------------------------------------------------------------------------------

// 3 and 4: the thread's outputs in a tile, a strip of its own in one of the planes.
template <class D, class S>
__device__ __forceinline__ void compute(const Staged& staged, const float* input, const float* filter,
                                        const float* constant_filter, float* output, const BlockTile& tile, D d, S s) {
  const int t = static_cast<int>(threadIdx.x), planes = d.batch * d.channels, taps = d.rows * d.columns;
  const int strips = strips_down(d, s) * strips_across(d, s), local = s.block_planes == 1 ? 0 : t / strips;
  const int strip_y = t % strips / strips_across(d, s) * s.thread_rows;
  const int strip_x = t % strips_across(d, s) * s.thread_columns;
  const int plane = tile.first_plane + local, y = tile.y + strip_y, x = tile.x + strip_x;
  if (t >= s.block_planes * strips || plane >= planes || y >= d.out_height || x >= d.out_width) return;

  const Sources from{input + static_cast<long long>(plane) * d.height * d.width,
                     staged.input + local * staged.plane + strip_y * d.stride_y * staged.pitch + strip_x * d.stride_x,
                     staged.pitch,
                     y * d.stride_y - d.pad_y,
                     x * d.stride_x - d.pad_x - lead(d),
                     filter,
                     constant_filter,
                     staged.filter,
                     static_cast<long long>(plane % d.channels) * taps,
                     local * taps};
  Sums<D, S> sum = {};
  if (s.order == kFilterRows)
    sum_by_filter_rows(sum, from, d, s);
  else
    sum_by_input_rows(sum, from, d, s);
  store(output, sum, plane, y, x, d, s);
}

template <class D, class S>
__device__ __forceinline__ void depthwise_scheduled(const float* __restrict__ input,   // [planes][height][width]
                                                    const float* __restrict__ filter,  // [channels][rows][columns]
                                                    const float* constant_filter,      // the same, in constant memory
                                                    float* __restrict__ output,  // [planes][out_height][out_width]
                                                    D d, S s) {
  const int first = static_cast<int>(blockIdx.x), blocks = static_cast<int>(gridDim.x);
  if (s.stages == 1) {
    const BlockTile tile = block_tile(first, d, s);
    const Staged staged = staged_memory(0, d, s);
    cache(staged, input, filter, tile, d, s);
    return compute(staged, input, filter, constant_filter, output, tile, d, s);
  }
  const int tiles = static_cast<int>(tiles_of(d, s));
  start_copies(staged_memory(0, d, s), input, filter, block_tile(first, d, s), d, s);
  int stage = 0;
  UNROLL_BY(1)
  for (int number = first; number < tiles; number += blocks, stage ^= 1) {
    wait_copies<0>();
    __syncthreads();  // the tile is there, and the one before is done with
    if (tiles - number > blocks)
      start_copies(staged_memory(stage ^ 1, d, s), input, filter, block_tile(number + blocks, d, s), d, s);
    compute(staged_memory(stage, d, s), input, filter, constant_filter, output, block_tile(number, d, s), d, s);
    if (tiles - number <= blocks) break;
  }
}

}  // namespace convladder
