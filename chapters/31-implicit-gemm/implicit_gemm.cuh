// 31 implicit-gemm: the product of im2col on Tensor Cores, without im2col's matrix.
//
//   [outputs][filters] = [outputs][(c, r, s)] x [(c, r, s)][filters]      outputs: all (n, p, q) of the batch
//
// Since 17 and 21: the left matrix exists nowhere. A tile of it is gathered from the input, NHWC, straight to shared
// memory: 32 channels of a pixel are 64 neighbouring bytes. Where three taps side by side read the same pixels, a step
// gathers these once for all three. Since 26: the matrix instructions themselves, ldmatrix and mma.sync, where it is
// known which lane holds what; and shared memory without a padded row.
//
//   1. In prepare(): the filters as halves, step by step, padded with zeros: a step is 32 channels of one tap or three.
//   2. A block of 4 or 8 warps computes a tile of outputs x filters, a warp 64 x 64, 48 x 64 or 64 x 32 of it.
//   3. The copies of a step: 16 bytes of a pixel or a filter each. Outside of the image they write zeros, or read the
//      pixel that the padding puts there.
//   4. Two or three steps are on their way while another is multiplied. One barrier a step.
//   5. A step is multiplied, 16 channels of a tap at a time: 16 x 16 fragments of both tiles come by ldmatrix, while
//      those before them are multiplied. An instruction adds 16 x 8 x 16 products. The copies stand in between.
//   6. The epilogue: the sums are stored as halves, through shared memory, 16 bytes a lane.
//   7. Where blocks are few, the channels are split: a block has one slice of them (not one of 16 channels, as in 5),
//      and stores its sums as they are. A second kernel adds up those of all slices, in their order.
#pragma once
#include "common/kernel/border.hpp"
#include "common/kernel/divisor.hpp"
#include "common/kernel/tracks/lowering.hpp"
//
#include "common/kernel/half_or_bf16.hpp"
#include "common/kernel/mma.hpp"

namespace convladder {
namespace {

constexpr int kDepth = 32;  // channels of a step: rows of 64 bytes in shared memory
constexpr int kChunk = 8;   // elements in 16 bytes: each a half, or a bfloat16
constexpr int kChunks = kDepth / kChunk;
constexpr int kTaps = 3;          // that a step takes together, where they read the same pixels
constexpr int kFilterUnit = 128;  // the most filters of a block
constexpr int kPackThreads = 128;
constexpr int kNowhere = -(1 << 30);  // a row that no tap brings into the image

// The problem as the kernels take it.
struct Gemm {
  Lowering l;
  Divisor by_height, by_width;  // for division by out_height and out_width
  Divisor by_pitch;             // by the slots of a row of outputs
  int outputs;                  // of the batch: rows of the product
  int channel_blocks;           // of 32
  int filter_blocks, block_filters;
  int slices;  // of the channels, each with blocks of its own
};

// Taps times blocks of channels.
__host__ __device__ __forceinline__ int depth_of(const Gemm& g) { return window(g.l) * g.channel_blocks; }
// Where a slice begins, which is where the one before ends: a block of channels.
__device__ __forceinline__ int first_channel_block(const Gemm& g, int slice) {
  return slice * g.channel_blocks / g.slices;
}

// Where a chunk of 16 bytes lies in a tile of rows of 64 bytes, in elements. Two rows take all 32 banks. The
// chunks change places with every second row: so the same chunk of eight rows, which ldmatrix reads, is in all banks
// too.
__device__ __forceinline__ int place(int row, int chunk) { return row * kDepth + (chunk ^ row / 2 % 4) * kChunk; }

// 1. A thread an element.
template <class T>
__global__ void pack(const float* filter,  // [filters][channels][rows][columns]
                     T* packed,            // [filter block][channel block][row][column][filters of a block][32]
                     Gemm g) {
  const int i = blockIdx.x * kPackThreads + threadIdx.x, row = i / kDepth;
  const int tap = row / g.block_filters % depth_of(g), filter_block = row / g.block_filters / depth_of(g);
  if (filter_block >= g.filter_blocks) return;
  const int k = filter_block * g.block_filters + row % g.block_filters, c = tap / window(g.l) * kDepth + i % kDepth;
  const bool inside = k < g.l.filters && c < g.l.channels;
  packed[i] = rounded_to<T>(inside ? filter[(k * g.l.channels + c) * window(g.l) + tap % window(g.l)] : 0.0f);
}

// ---- 2. The block ---------------------------------------------------------------------------------------------------

// What a block can rely on when it copies pixels.
enum class Pixels {
  in_zeros,  // channels are whole chunks, the padding is zeros
  padded,    // channels are whole chunks
  any        // nothing
};

// A block's tile: so many warps, and what each of them computes. A multiprocessor should have so many blocks.
template <int WarpsDown, int WarpsAcross, int WarpOutputs, int WarpFilters, int Blocks>
struct Shape {
  static constexpr int warps_across = WarpsAcross, warp_outputs = WarpOutputs, warp_filters = WarpFilters;
  static constexpr int outputs = WarpsDown * WarpOutputs, filters = WarpsAcross * WarpFilters;
  static constexpr int threads = 32 * WarpsDown * WarpsAcross, blocks = Blocks;
  static constexpr int copied_together = threads / kChunks;                // rows of a tile
  static constexpr int down = WarpOutputs / 16, across = WarpFilters / 8;  // products of a warp
  // ldmatrix of all warps for 16 channels of a tap.
  static constexpr int shared_loads = WarpsDown * WarpsAcross * (WarpOutputs + WarpFilters) / 16;
};

// The block's part of the problem, and the thread's part of the block.
struct Block {
  int filter_block, first_filter, first_output, slice;
  unsigned first_row;  // of the first output, among those of all images
  int first_column;
  int thread, lane;
  int y, x;  // in the tile, of the warp's first output and filter
};

template <class S>
__device__ __forceinline__ Block this_block(const Gemm& g) {
  Block b{};
  b.thread = threadIdx.x;
  b.lane = b.thread % 32;
  const int warp = b.thread / 32;
  b.filter_block = static_cast<int>(blockIdx.x) % g.filter_blocks;
  b.first_filter = b.filter_block * S::filters;
  b.slice = static_cast<int>(blockIdx.y);
  b.first_output = static_cast<int>(blockIdx.x) / g.filter_blocks * S::outputs;
  b.y = warp / S::warps_across * S::warp_outputs;
  b.x = warp % S::warps_across * S::warp_filters;
  b.first_row = static_cast<unsigned>(b.first_output) / g.by_width;
  b.first_column = static_cast<int>(static_cast<unsigned>(b.first_output) % g.by_width);
  return b;
}

// ---- A step with one tap --------------------------------------------------------------------------------------------

// Sizes of a step with so many taps and slots: pixels in shared memory. A thread copies `rows` of them, and filters:
// `copies` in all.
template <class S, int Taps, int Count>
struct StepSizes {
  static constexpr int slots = Count, halves = (Count + Taps * S::filters) * kDepth;
  static constexpr int rows = Count / S::copied_together, copies = rows + Taps * S::filters / S::copied_together;
  static constexpr int slices = Taps * kDepth / 16;  // of 16 channels of a tap
};

// A slot is an output. Each copy asks whether the tap's column is inside of the image.
template <class S, int Taps>
struct StepOf : StepSizes<S, Taps, S::outputs> {
  static_assert(Taps == 1, "three taps have a specialisation, below");
  static constexpr int buffers = 4;
  static constexpr int apart = 16 * kDepth;  // halves to the slots of the next 16 outputs; 0 where that is no constant
  static constexpr bool through_l1 = true;   // the next tap's pixels overlap with this one's

  static __device__ __forceinline__ int slot_of(int o, const Block& b, const Gemm&) { return o - b.first_output; }
  static __device__ __forceinline__ bool always_outside(int, const Lowering&) { return false; }
  static __device__ __forceinline__ bool column_inside(int column, const Lowering& l) {
    return static_cast<unsigned>(column) < static_cast<unsigned>(l.width);
  }
  static __device__ __forceinline__ int across(int s, const Lowering& l) { return s * l.dilation_x; }
  static __device__ __forceinline__ bool next_column(int& s, const Lowering& l) {
    if (++s < l.columns) return true;
    s = 0;
    return false;
  }
};

// ---- A step with three taps that share their pixels -----------------------------------------------------------------

// The pixels that a row of outputs reads are side by side, and then come the next row's; tap s of an output is s
// dilations after its first. All columns of the filter are in one step, so a slot's column is the same in all steps.
template <class S>
struct StepOf<S, kTaps> : StepSizes<S, kTaps, S::outputs + S::copied_together> {
  static constexpr int buffers = 3;
  static constexpr int apart = 0;
  static constexpr bool through_l1 = false;

  static __device__ __forceinline__ int slot_of(int o, const Block& b, const Gemm& g) {
    const unsigned row = static_cast<unsigned>(o) / g.by_width - b.first_row;
    return static_cast<int>(row * g.by_pitch.divisor + static_cast<unsigned>(o) % g.by_width) - b.first_column;
  }
  static __device__ __forceinline__ bool always_outside(int left, const Lowering& l) {
    return static_cast<unsigned>(left) >= static_cast<unsigned>(l.width);
  }
  static __device__ __forceinline__ bool column_inside(int, const Lowering&) { return true; }
  static __device__ __forceinline__ int across(int, const Lowering&) { return 0; }
  static __device__ __forceinline__ bool next_column(int&, const Lowering&) { return false; }
};

// ---- 3. The copies of a step ----------------------------------------------------------------------------------------

// A thread copies one chunk of its slots, which are copied_together apart, and of as many filters.
template <class T, class S, int Taps>
struct Copies {
  int channels;  // of the input, from the chunk's first one on
  // Where tap (0, 0) reads: the row, the column, and the first element (of the image, where the padding is not zeros).
  int top[StepOf<S, Taps>::rows], left[StepOf<S, Taps>::rows];
  unsigned start[StepOf<S, Taps>::rows];
  int r, s, c;    // of the step that is copied next: its tap, or the first of three, and channels
  const T* taps;  // and its filters
};

template <class T, class S, int Taps, Pixels Kind, bool Split>
__device__ __forceinline__ Copies<T, S, Taps> copies_of(const T* packed, const Block& b, const Gemm& g) {
  using Step = StepOf<S, Taps>;
  const Lowering& l = g.l;
  const int last_slot =
      Step::slot_of(min(b.first_output + S::outputs, g.outputs) - 1, b, g) + (Taps - 1) * l.dilation_x;
  Copies<T, S, Taps> own;
  const int first = b.thread / kChunks, chunk = b.thread % kChunks;
  UNROLL
  for (int i = 0; i < Step::rows; ++i) {
    const int slot = first + i * S::copied_together;
    const unsigned at = static_cast<unsigned>(b.first_column + slot), row = b.first_row + at / g.by_pitch;
    own.top[i] = static_cast<int>(row % g.by_height) * l.stride_y - l.pad_y;
    own.left[i] = static_cast<int>(at % g.by_pitch) * l.stride_x - l.pad_x;
    const unsigned corner = Kind == Pixels::in_zeros ? own.top[i] * l.width + own.left[i] : 0;
    own.start[i] = (row / g.by_height * (l.height * l.width) + corner) * l.channels + chunk * kChunk;
    if (slot > last_slot || Step::always_outside(own.left[i], l)) own.top[i] = kNowhere;
  }
  own.channels = l.channels - chunk * kChunk;
  own.r = own.s = own.c = 0;
  own.taps = packed + (b.filter_block * depth_of(g) * S::filters + first) * kDepth + chunk * kChunk;
  if constexpr (Split) {
    const int channel_block = first_channel_block(g, b.slice);
    UNROLL
    for (unsigned& start : own.start) start += channel_block * kDepth;
    own.channels -= channel_block * kDepth;
    own.taps += channel_block * window(l) * S::filters * kDepth;
  }
  return own;
}

// Of a pixel whose channels are no whole chunks: not aligned, so through registers, one by one.
template <class T>
__device__ __forceinline__ void copy_elements(T* shared, const T* global, int count) {
  const T zero{};
  unsigned pairs[4];
  UNROLL
  for (int i = 0; i < 4; ++i)
    pairs[i] = pair_of(2 * i < count ? global[2 * i] : zero, 2 * i + 1 < count ? global[2 * i + 1] : zero);
  *reinterpret_cast<uint4*>(shared) = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
}

// Starts copy i of a step: of a pixel, or of a filter. The thread's first chunk lies at first_place in the buffer.
template <class T, class S, int Taps, Pixels Kind>
__device__ __forceinline__ void start_copy(T* buffer, int first_place, int i, const Copies<T, S, Taps>& own,
                                           const T* input, const Lowering& l) {
  using Step = StepOf<S, Taps>;
  constexpr int kTogether = S::copied_together * kDepth;
  T* const to = buffer + first_place + i * kTogether;
  if (i >= Step::rows) {
    copy_async<16>(to, own.taps + (i - Step::rows) * kTogether);
    return;
  }
  const int down = own.r * l.dilation_y, across = Step::across(own.s, l);
  const int height = own.c < own.channels ? l.height : 0;
  int row = own.top[i] + down, column = own.left[i] + across;
  unsigned from = (down * l.width + across) * l.channels + own.c;
  bool inside = static_cast<unsigned>(row) < static_cast<unsigned>(height) && Step::column_inside(column, l);
  if constexpr (Kind != Pixels::in_zeros) {
    row = border_index(row, l.height, l.padding);
    column = border_index(column, l.width, l.padding);
    inside = own.top[i] != kNowhere && height != 0 && row >= 0 && column >= 0;
    from = (static_cast<unsigned>(row) * l.width + column) * l.channels + own.c;
  }
  if constexpr (Kind != Pixels::any)
    copy_async<16, Step::through_l1>(to, input + (own.start[i] + from), inside);
  else
    copy_elements(to, input + (own.start[i] + from), inside ? own.channels - own.c : 0);
}

// The columns of the filter, its rows, and then the next channels.
template <class T, class S, int Taps>
__device__ __forceinline__ void next_step(Copies<T, S, Taps>& own, const Lowering& l) {
  own.taps += Taps * S::filters * kDepth;
  if (StepOf<S, Taps>::next_column(own.s, l)) return;
  if (++own.r < l.rows) return;
  own.r = 0;
  own.c += kDepth;
}

// ---- 5. The products of a step --------------------------------------------------------------------------------------

// A warp's operands for 16 channels of a tap, a slice, and for the next slice.
template <class S>
struct Operands {
  // A lane's rows for ldmatrix. With one tap they follow each other, and the places of 16 rows are those of the
  // next 16.
  int slots[S::down];
  unsigned a[2][S::down][4], b[2][S::across][2];
};

template <class S, int Taps>
__device__ __forceinline__ void find_rows(Operands<S>& operands, const Block& b, const Gemm& g) {
  UNROLL
  for (int i = 0; i < S::down; ++i)
    operands.slots[i] = StepOf<S, Taps>::slot_of(b.first_output + b.y + i * 16 + b.lane % 16, b, g);
}

// Where the lane's row of the filters begins in a buffer, behind the pixels.
template <class S, int Taps>
__device__ __forceinline__ int filter_place_of(const Block& b) {
  return StepOf<S, Taps>::slots * kDepth + place(b.x + b.lane / 16 * 8 + b.lane % 8, b.lane / 8 % 2);
}

template <class T, class S, int Taps>
__device__ __forceinline__ void load_slice(Operands<S>& operands, const T* buffer, int filter_place, int slice,
                                           const Block& b, const Lowering& l) {
  constexpr int kApart = StepOf<S, Taps>::apart;
  // The chunk after next is 32 bytes away, with this bit of the place turned over.
  constexpr int kNextPair = 2 * kChunk;
  const int tap = slice / (kDepth / 16), pair = slice % (kDepth / 16) * kNextPair;
  UNROLL
  for (int i = 0; i < S::down; ++i) {
    const int slot = operands.slots[kApart == 0 ? i : 0] + tap * l.dilation_x;
    ldmatrix(operands.a[slice % 2][i], buffer + (place(slot, b.lane / 16) ^ pair) + i * kApart);
  }
  UNROLL
  for (int j = 0; j < S::across; j += 2) {
    unsigned two[4];
    ldmatrix(two, buffer + (filter_place ^ pair) + (tap * S::filters + j * 8) * kDepth);
    operands.b[slice % 2][j][0] = two[0];
    operands.b[slice % 2][j][1] = two[1];
    operands.b[slice % 2][j + 1][0] = two[2];
    operands.b[slice % 2][j + 1][1] = two[3];
  }
}

template <class S>
using Sums = float[S::down][S::across][4];

// Multiplies a slice. Between the products stand the copies of a later step, evenly in all slices but the last.
template <class T, class S, int Taps, Pixels Kind>
__device__ __forceinline__ void multiply_slice(Sums<S>& sums, const Operands<S>& operands, int slice, bool copy_more,
                                               T* free, int first_place, const Copies<T, S, Taps>& own, const T* input,
                                               const Lowering& l) {
  using Step = StepOf<S, Taps>;
  constexpr int kCopiesAtOnce = (Step::copies - 1) / ((Step::slices - 1) * S::down) + 1;
  UNROLL
  for (int i = 0; i < S::down; ++i) {
    UNROLL
    for (int j = 0; j < S::across; ++j)
      mma_m16n8k16<OperandOf<T>>(sums[i][j], operands.a[slice % 2][i], operands.b[slice % 2][j]);
    UNROLL
    for (int copy = 0; copy < kCopiesAtOnce; ++copy) {
      const int next = (slice * S::down + i) * kCopiesAtOnce + copy;
      if (slice + 1 < Step::slices && next < Step::copies && copy_more)
        start_copy<T, S, Taps, Kind>(free, first_place, next, own, input, l);
    }
  }
}

// ---- 6. The epilogue ------------------------------------------------------------------------------------------------

// Tiles [32 filters][outputs][32], laid out as the others, over what nobody reads since the last barrier. What a warp
// stores there it reads itself.
template <class T, class S>
__device__ __forceinline__ void store_sums(T* output, T* shared, const Sums<S>& sums, const Block& b, const Gemm& g) {
  constexpr int kOutTile = S::outputs * kDepth;
  const Lowering& l = g.l;
  UNROLL
  for (int i = 0; i < S::down; ++i) {
    UNROLL
    for (int j = 0; j < S::across; ++j) {
      T* const tile = shared + (b.x + 8 * j) / kDepth * kOutTile;
      UNROLL
      for (int below = 0; below < 2; ++below)
        *reinterpret_cast<unsigned*>(tile + place(b.y + 16 * i + 8 * below + b.lane / 4, j % 4) + b.lane % 4 * 2) =
            rounded_pair<T>(sums[i][j][2 * below], sums[i][j][2 * below + 1]);
    }
  }
  __syncwarp();
  UNROLL
  for (int column = 0; column < S::warp_filters; column += kDepth) {
    const T* const tile = shared + (b.x + column) / kDepth * kOutTile;
    const int o = b.first_output + b.y, k = b.first_filter + b.x + column;
    if (l.filters % kChunk == 0) {
      const int of_lane = k + b.lane % 4 * kChunk;
      UNROLL
      for (int i = b.lane / 4; i < S::warp_outputs; i += 8) {
        if (o + i < g.outputs && of_lane < l.filters)
          *reinterpret_cast<uint4*>(output + (o + i) * l.filters + of_lane) =
              *reinterpret_cast<const uint4*>(tile + place(b.y + i, b.lane % 4));
      }
    } else if (k + b.lane < l.filters) {
      for (int i = 0; i < min(S::warp_outputs, g.outputs - o); ++i)
        output[(o + i) * l.filters + k + b.lane] = tile[place(b.y + i, b.lane / kChunk) + b.lane % kChunk];
    }
  }
}

// ---- 7. Slices ------------------------------------------------------------------------------------------------------

// A block's sums lie side by side, so that their place needs none of the tile's coordinates, which would have to stay
// in registers through the loop. A lane stores two neighbours, and four lanes a whole sector.
template <class S>
__device__ __forceinline__ void store_slice(float* slices,  // [slice][block][outputs of a block][filters of a block]
                                            const Sums<S>& sums, const Block& b) {
  float* const first =
      slices + (std::int64_t{blockIdx.y * gridDim.x + blockIdx.x} * S::outputs + b.y + b.lane / 4) * S::filters + b.x +
      b.lane % 4 * 2;
  UNROLL
  for (int i = 0; i < S::down; ++i) {
    UNROLL
    for (int j = 0; j < S::across; ++j) {
      UNROLL
      for (int below = 0; below < 2; ++below)
        *reinterpret_cast<float2*>(first + (16 * i + 8 * below) * S::filters + 8 * j) =
            make_float2(sums[i][j][2 * below], sums[i][j][2 * below + 1]);
    }
  }
}

// A thread an output.
template <class T, class S>
__global__ void add_slices(const float* slices,  // [slice][block][outputs of a block][filters of a block]
                           T* output,            // [outputs][filters]
                           Gemm g, int blocks) {
  const int i = blockIdx.x * kPackThreads + threadIdx.x, o = i / g.l.filters, k = i % g.l.filters;
  if (o >= g.outputs) return;
  const int block = o / S::outputs * g.filter_blocks + k / S::filters;
  const float* const first = slices + (block * S::outputs + o % S::outputs) * S::filters + k % S::filters;
  float sum = 0;
  for (int slice = 0; slice < g.slices; ++slice) sum += first[std::int64_t{slice} * blocks * (S::outputs * S::filters)];
  output[i] = rounded_to<T>(sum);
}

// ---- The kernel and its launch --------------------------------------------------------------------------------------

// What a block stores: outputs, or the sums of a slice.
template <class T, bool Split>
using Stored = std::conditional_t<Split, float, T>;

template <class T, class S, int Taps, Pixels Kind, bool Split>
__global__ void __launch_bounds__(S::threads, S::blocks)
    multiply(const T* input,            // [batch][height][width][channels]
             const T* packed,           // [filter block][channel block][row][column][filters of a block][32]
             Stored<T, Split>* output,  // [batch][out_height][out_width][filters]; or as in store_slice()
             Gemm g) {
  using Step = StepOf<S, Taps>;
  T* const shared = dynamic_shared<T>();  // [buffer][pixels, then filters][32]
  const Lowering& l = g.l;
  const Block b = this_block<S>(g);
  Copies<T, S, Taps> own = copies_of<T, S, Taps, Kind, Split>(packed, b, g);
  // The two places are variables of their own: as members of `own` and `operands` they make the loop longer.
  const int first_place = place(b.thread / kChunks, b.thread % kChunks);

  // 4. The prologue: the first steps are on their way.
  const int channel_blocks =
      Split ? first_channel_block(g, b.slice + 1) - first_channel_block(g, b.slice) : g.channel_blocks;
  const int steps = window(l) * channel_blocks / Taps;
  constexpr int kAhead = Step::buffers - 1;
  UNROLL_BY(1)
  for (int step = 0; step < kAhead; ++step) {
    if (step < steps) {
      UNROLL
      for (int i = 0; i < Step::copies; ++i)
        start_copy<T, S, Taps, Kind>(shared + step * Step::halves, first_place, i, own, input, l);
      next_step(own, l);
    }
    commit_copies();
  }
  Sums<S> sums = {};
  Operands<S> operands;
  find_rows<S, Taps>(operands, b, g);
  const int filter_place = filter_place_of<S, Taps>(b);
  wait_copies<kAhead - 1>();
  __syncthreads();
  load_slice<T, S, Taps>(operands, shared, filter_place, 0, b, l);

  int reading = 0, writing = kAhead;
  UNROLL_BY(1)
  for (int step = 0; step < steps; ++step) {
    const T* const buffer = shared + reading * Step::halves;
    T* const free = shared + writing * Step::halves;
    const bool more = step + kAhead < steps;
    reading = reading == kAhead ? 0 : reading + 1;
    // 5.
    UNROLL
    for (int slice = 0; slice < Step::slices; ++slice) {
      if (slice + 1 < Step::slices) {
        load_slice<T, S, Taps>(operands, buffer, filter_place, slice + 1, b, l);
      } else {
        commit_copies();
        wait_copies<kAhead - 1>();
        __syncthreads();  // the next step's tiles are there, and this one's are read
        if (step + 1 < steps) load_slice<T, S, Taps>(operands, shared + reading * Step::halves, filter_place, 0, b, l);
      }
      multiply_slice<T, S, Taps, Kind>(sums, operands, slice, more, free, first_place, own, input, l);
    }
    next_step(own, l);
    writing = writing == kAhead ? 0 : writing + 1;
  }

  if constexpr (Split)
    store_slice<S>(output, sums, b);
  else
    store_sums<T, S>(output, shared, sums, b, g);
}

std::int64_t blocks_of(const Gemm& g, int block_outputs) {
  return std::int64_t{blocks_for(g.outputs, block_outputs)} * g.filter_blocks;
}

// Sums of all slices.
std::int64_t sums_of_slices(const Gemm& g, int block_outputs) {
  return blocks_of(g, block_outputs) * g.slices * block_outputs * g.block_filters;
}

template <class T, class S, int Taps, Pixels Kind>
void launch_multiply(const T* input, const T* packed, T* output, float* slices, const Gemm& g, Stream stream) {
  constexpr int kSharedBytes = StepOf<S, Taps>::buffers * StepOf<S, Taps>::halves * 2;
  const int blocks = static_cast<int>(blocks_of(g, S::outputs));
  const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(g.slices)), threads(S::threads);
  if (g.slices == 1) {
    launch(multiply<T, S, Taps, Kind, false>, grid, threads, kSharedBytes, stream)(input, packed, output, g);
    return;
  }
  if constexpr (Kind == Pixels::in_zeros) {
    launch(multiply<T, S, Taps, Kind, true>, grid, threads, kSharedBytes, stream)(input, packed, slices, g);
    launch(add_slices<T, S>, dim3(blocks_for(g.outputs * g.l.filters, kPackThreads)), dim3(kPackThreads), 0, stream)(
        slices, output, g, blocks);
  }
}

std::int64_t packed_size(const Gemm& g) {
  return std::int64_t{depth_of(g)} * g.filter_blocks * g.block_filters * kDepth;
}

template <class T>
void launch_pack(const float* filter, T* packed, const Gemm& g, Stream stream) {
  launch(pack<T>, dim3(blocks_for(static_cast<int>(packed_size(g)), kPackThreads)), dim3(kPackThreads), 0, stream)(
      filter, packed, g);
}

// ---- The tiles ------------------------------------------------------------------------------------------------------

using Small = Shape<2, 2, 64, 32, 3>;
using Tall = Shape<4, 1, 64, 64, 2>;
using Square = Shape<2, 2, 64, 64, 2>;
using Large = Shape<4, 2, 48, 64, 1>;

struct Tile {
  int outputs, filters, warps_across;
  int shared_loads;  // of a block for 16 channels of a tap
  int slots;         // with three taps
  int time;          // of a block's step, as measured, where 10 is that of the smallest
  int alone;         // the same of a block that is alone on its multiprocessor, where nobody works while it waits
};

template <class S>
constexpr Tile tile_of(int time, int alone) {
  return {S::outputs, S::filters, S::warps_across, S::shared_loads, StepOf<S, kTaps>::slots, time, alone};
}
constexpr Tile kTileSizes[] = {tile_of<Small>(10, 16), tile_of<Tall>(18, 23), tile_of<Square>(16, 21),
                               tile_of<Large>(25, 27)};

}  // namespace
}  // namespace convladder
