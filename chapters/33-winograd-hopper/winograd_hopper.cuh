// 33 winograd-hopper: F(2,3) along the height, the three columns of the filter as they are, all in one kernel.
//
//   V0 = d0 - d2, V1 = d1 + d2, V2 = d2 - d1, V3 = d3 - d1      from four rows of the input
//   Mi[filters][pixels] = sum over the columns s of Ui,s [filters][64] x Vi, s pixels further [64][pixels]
//   row 0 = M0 + M1 + M2, row 1 = M1 - M2 + M3                  of the output
//
// Since 32: 12 products instead of 18 for two rows of outputs, on the same machine: a ring in shared memory, resident
// filters, wgmma, a column shift that is an address. The rows of the ring are no longer copies of the input, so threads
// fill it, not TMA. Since 28: nothing but the input is read and nothing but the output written.
//
//   1. In prepare(): the filters' transform along the height, as halves, laid out as shared memory has them: 96 KB for
//      each 64 filters.
//   2. The images of the batch stand side by side in one long row, with the columns of padding that lie between them. A
//      block goes down a strip of it, 112 or 120 positions wide, two rows of outputs at a time: a pair. Its warps are
//      specialised: eight produce, two warpgroups consume.
//   3. The producers load the input's rows to registers, two for each pair; add, subtract, and store to the ring.
//   4. The consumers multiply, every other pair each. M1 and M2 come first: they become, where they are, their sum and
//      their difference. M0 is added onto the one, M3 onto the other.
//   5. The epilogue of a row of outputs: as halves, through shared memory, by a bulk copy; by the threads where the
//      strip meets several images.
#pragma once
#include "common/kernel/tracks/winograd.hpp"
//
#include "common/kernel/half_or_bf16.hpp"
#include "common/kernel/hopper.hpp"
#include "common/kernel/mma.hpp"
#include "common/kernel/wide_load.hpp"

namespace convladder {
namespace {

constexpr int kSize = kTileSize<F2>, kOutputRows = kTileOutputs<F2>;  // of a pair: rows of the input, of the output
constexpr int kChannels = 64, kFilters = 64;                          // of a block
constexpr int kRow = kChannels * 2;                                   // bytes of a pixel or filter in shared memory
constexpr int kChunk = 8, kChunks = kChannels / kChunk;               // elements in 16 bytes; of a pixel
constexpr int kTap = kFilters * kRow;                                 // bytes of the filters of one column
constexpr int kFilterRow = kWinogradTaps * kTap;                      // of Ui
constexpr int kSlots = 3;                                             // of the ring, two transformed rows each
constexpr int kGroups = 2, kGroupThreads = 128;                       // warpgroups of consumers
constexpr int kConsumers = kGroups * kGroupThreads, kProducers = 256, kThreads = kConsumers + kProducers;
constexpr int kLoadedTogether = kProducers / kChunks;  // pixels
constexpr int kPackThreads = 256;
constexpr int kFilterHalves = kSize * kFilterRow / 2;  // of a block of filters, transformed

// The problem as the kernels take it.
struct Strips {
  Winograd w;
  int pitch;  // positions of an image
  Divisor by_pitch;
  int strips, pairs;  // in all; of a block
  int blocks_down;    // of a strip
  int filter_blocks;  // of 64
};

// What a block can rely on when it loads and stores pixels.
enum class Pixels {
  chunks,  // channels and filters are whole chunks
  any      // nothing
};

// 16 bytes that are moved at once: eight elements, two in a word.
struct __align__(16) Chunk {
  unsigned pairs[4];
};

// Where chunk c of row r lies in rows of 128 bytes, in bytes: as bulk copies and wgmma swizzle.
__device__ __forceinline__ int place(int row, int chunk) { return row * kRow + (chunk ^ row % 8) * 16; }

// 1. A thread for a column s of a filter and channel. V1 and V2 are multiplied first, so U1 and U2 come first.
template <class T>
__global__ void transform_filters(const float* filter,  // [filters][channels][3][3]
                                  T* u,                 // [block of 64 filters][U1, U2, U0, U3][s][64][64 swizzled]
                                  Strips g) {
  const int i = blockIdx.x * kPackThreads + threadIdx.x, block = i / (kWinogradTaps * kFilters * kChannels);
  if (block >= g.filter_blocks) return;
  const int row = i / kChannels % kFilters, c = i % kChannels, s = i / (kFilters * kChannels) % kWinogradTaps;
  const int k = block * kFilters + row;
  const bool inside = k < g.w.filters && c < g.w.channels;
  float taps[kWinogradTaps], transformed[kSize];
  UNROLL
  for (int r = 0; r < kWinogradTaps; ++r)
    taps[r] = inside ? filter[((k * g.w.channels + c) * kWinogradTaps + r) * kWinogradTaps + s] : 0.0f;
  transform_filter_line<F2>(taps, transformed);
  const int at = place(row, c / kChunk) / 2 + c % kChunk;
  constexpr int kOrder[kSize] = {1, 2, 0, 3};
  UNROLL
  for (int v = 0; v < kSize; ++v)
    u[((block * kSize + v) * kWinogradTaps + s) * (kTap / 2) + at] = rounded_to<T>(transformed[kOrder[v]]);
}

// ---- 2. The block --------------------------------------------------------------------------------------------------

template <int Positions>
constexpr int kRingRow = (Positions + kWinogradTaps - 1 + 7) / 8 * 8 * kRow;  // bytes
template <int Positions>
constexpr int kSlot = 2 * kRingRow<Positions>;
template <int Positions>
constexpr int kBuffer = Positions* kRow;
template <int Positions>
constexpr int kSharedBytes = kSize* kFilterRow + kSlots* kSlot<Positions> + kGroups* kBuffer<Positions> +
                             (2 * kSlots + kSize) * static_cast<int>(sizeof(Mbarrier));

// The block's shared memory, its part of the problem, and which of its threads this is.
struct Block {
  unsigned char* filters;  // [U1, U2, U0, U3][s][64][kRow]
  unsigned char* ring;     // [kSlots][2][Positions + 2, rounded up][kRow]
  unsigned char* buffers;  // of outputs, [group][Positions][kRow]
  Mbarrier* full;          // [kSlots]
  Mbarrier* empty;         // [kSlots]
  Mbarrier* filters_full;  // [U1, U2, U0, U3]
  int filter_block, first_position, first_pair, pairs;
  int thread, lane, warp;  // read once: read again by the producers, they make these spill (CUDA 13.0)
};

template <int Positions>
__device__ __forceinline__ Block this_block(const Strips& g) {
  Block b{};
  b.thread = threadIdx.x;
  b.lane = b.thread % 32;
  b.warp = warp_index();
  b.filters = dynamic_shared_1024<unsigned char>();
  b.ring = b.filters + kSize * kFilterRow;
  b.buffers = b.ring + kSlots * kSlot<Positions>;
  b.full = reinterpret_cast<Mbarrier*>(b.buffers + kGroups * kBuffer<Positions>);
  b.empty = b.full + kSlots;
  b.filters_full = b.empty + kSlots;
  const int block = static_cast<int>(blockIdx.x);
  b.filter_block = block % g.filter_blocks;
  b.first_position = block / g.filter_blocks % g.strips * Positions;
  b.first_pair = block / g.filter_blocks / g.strips * g.pairs;
  b.pairs = min(g.pairs, g.w.tiles_down - b.first_pair);
  return b;
}

// Asks for the filters of one product, by one thread: v counts U1, U2, U0, U3.
template <class T>
__device__ __forceinline__ void load_filters(const Block& b, const T* u, int v) {
  mbarrier_expect(b.filters_full + v, kFilterRow);
  bulk_load(b.filters + v * kFilterRow, u + (b.filter_block * kSize + v) * (kFilterRow / 2), kFilterRow,
            b.filters_full + v);
}

__device__ __forceinline__ void make_barriers(const Block& b) {
  for (int slot = 0; slot < kSlots; ++slot) {
    mbarrier_init(b.full + slot, kProducers / 32);
    mbarrier_init(b.empty + slot, kGroupThreads / 32);
  }
  for (int v = 0; v < kSize; ++v) mbarrier_init(b.filters_full + v, 1);
  fence_mbarrier_init();
}

// Only then are the mbarriers used by threads other than the one that made them. The first rows are under way by that
// time.
__device__ __forceinline__ void meet() { named_barrier_sync(1 + kGroups, kThreads); }

// ---- 3. The producers ----------------------------------------------------------------------------------------------

// A producer has one chunk of every 32nd pixel of a row.
template <int Positions>
constexpr int kLoads = blocks_for(Positions + kWinogradTaps - 1, kLoadedTogether);
template <int Positions>
using Row = Chunk[kLoads<Positions>];

template <int Positions>
struct Chunks {
  int pixel, chunk;           // of the first
  int at[kLoads<Positions>];  // in the input, without the row; -1 where it reads zeros
};

template <int Positions>
__device__ __forceinline__ Chunks<Positions> chunks_of(const Block& b, const Strips& g) {
  const Winograd& w = g.w;
  const int producer = b.thread - kConsumers;
  Chunks<Positions> own;
  own.pixel = producer / kChunks;
  own.chunk = producer % kChunks;
  UNROLL
  for (int i = 0; i < kLoads<Positions>; ++i) {
    const int in_strip = own.pixel + i * kLoadedTogether, c = own.chunk * kChunk;
    const unsigned position = static_cast<unsigned>(b.first_position + in_strip);
    const int image = static_cast<int>(position / g.by_pitch);
    const int column = tile_index(static_cast<int>(position % g.by_pitch) - w.pad_x, w.width, w.pad_x, w.padding);
    const bool inside = in_strip < Positions + kWinogradTaps - 1 && image < w.batch && column >= 0 && c < w.channels;
    own.at[i] = inside ? (image * w.height * w.width + column) * w.channels + c : -1;
  }
  return own;
}

// Loads the chunks of row y of the input, or zeros where y is negative.
template <class T, int Positions, Pixels Kind>
__device__ __forceinline__ void load_row(Row<Positions>& to, const T* input, int y, const Chunks<Positions>& own,
                                         const Winograd& w) {
  const int c = own.chunk * kChunk;
  UNROLL
  for (int i = 0; i < kLoads<Positions>; ++i) {
    const T* const from = input + (own.at[i] + y * w.width * w.channels);
    const bool inside = y >= 0 && own.at[i] >= 0;
    if constexpr (Kind == Pixels::chunks) {
      *reinterpret_cast<uint4*>(&to[i]) = load_or_zero(from, inside);
    } else {
      const T zero{};
      UNROLL
      for (int j = 0; j < 4; ++j)
        to[i].pairs[j] = pair_of(inside && c + 2 * j < w.channels ? from[2 * j] : zero,
                                 inside && c + 2 * j + 1 < w.channels ? from[2 * j + 1] : zero);
    }
  }
}

// Stores one transformed row to the ring: the sum or the difference of two rows.
template <int Positions, unsigned Combine(unsigned, unsigned)>
__device__ __forceinline__ void store_row(unsigned char* row, const Row<Positions>& a, const Row<Positions>& b,
                                          const Chunks<Positions>& own) {
  const bool has_last = own.pixel + (kLoads<Positions> - 1) * kLoadedTogether < Positions + kWinogradTaps - 1;
  UNROLL
  for (int i = 0; i < kLoads<Positions>; ++i) {
    if (i == kLoads<Positions> - 1 && !has_last) continue;
    Chunk v;
    UNROLL
    for (int j = 0; j < 4; ++j) v.pairs[j] = Combine(a[i].pairs[j], b[i].pairs[j]);
    *reinterpret_cast<uint4*>(row + place(own.pixel, own.chunk) + i * kLoadedTogether * kRow) =
        *reinterpret_cast<const uint4*>(&v);
  }
}

// The slot of the ring that fill number `fill` goes to, once the consumers have released what it held.
template <int Positions>
__device__ __forceinline__ unsigned char* wait_empty(const Block& b, int fill) {
  if (fill >= kSlots) mbarrier_wait(b.empty + fill % kSlots, (fill / kSlots - 1) & 1);
  return b.ring + fill % kSlots * kSlot<Positions>;
}

__device__ __forceinline__ void hand_over(const Block& b, int fill) {
  __syncwarp();
  if (b.lane == 0) mbarrier_arrive(b.full + fill % kSlots);
}

template <class T, int Positions, Pixels Kind>
__device__ __forceinline__ void produce(const T* input, const Block& b, const Strips& g) {
  const Winograd& w = g.w;
  const Chunks<Positions> own = chunks_of<Positions>(b, g);
  const int top = b.first_pair * kOutputRows - w.pad_y, rows = b.pairs * kOutputRows + kWinogradTaps - 1;
  const auto load = [&](int row, Row<Positions>& to) {
    const int y = row < rows ? tile_index(top + row, w.height, w.pad_y, w.padding) : -1;
    load_row<T, Positions, Kind>(to, input, y, own, w);
  };
  constexpr int kRowsHeld = Kind == Pixels::chunks ? 5 : 4;  // single elements take registers of their own
  Row<Positions> d[kRowsHeld];                               // row i in i % kRowsHeld
  load(1, d[1]);
  load(2, d[2]);
  load(0, d[0]);
  load(3, d[3]);
  if constexpr (kRowsHeld > 4) load(4, d[4]);
  meet();
  UNROLL_BY(1)
  for (int first = 0; first < b.pairs; first += kRowsHeld) {
    UNROLL
    for (int j = 0; j < kRowsHeld; ++j) {
      const int pair = first + j;
      if (pair >= b.pairs) break;
      Row<Positions>&d0 = d[2 * j % kRowsHeld], &d1 = d[(2 * j + 1) % kRowsHeld];
      Row<Positions>&d2 = d[(2 * j + 2) % kRowsHeld], &d3 = d[(2 * j + 3) % kRowsHeld];
      unsigned char* slot = wait_empty<Positions>(b, 2 * pair);
      store_row<Positions, add_pairs<T>>(slot, d1, d2, own);                             // V1
      store_row<Positions, subtract_pairs<T>>(slot + kRingRow<Positions>, d2, d1, own);  // V2
      hand_over(b, 2 * pair);
      slot = wait_empty<Positions>(b, 2 * pair + 1);
      store_row<Positions, subtract_pairs<T>>(slot, d0, d2, own);                        // V0
      store_row<Positions, subtract_pairs<T>>(slot + kRingRow<Positions>, d3, d1, own);  // V3
      hand_over(b, 2 * pair + 1);
      load(2 * pair + kRowsHeld, d0);
      load(2 * pair + kRowsHeld + 1, d1);
    }
  }
}

// ---- 4. The consumers' products ------------------------------------------------------------------------------------

// The fence stands with the reader: with the writer, it would wait for the rows that are on their way to registers.
__device__ __forceinline__ void wait_full(const Block& b, int fill) {
  mbarrier_wait(b.full + fill % kSlots, fill / kSlots & 1);
  fence_async_proxy();
}

__device__ __forceinline__ void release(const Block& b, int fill) {
  if (b.lane == 0) mbarrier_arrive(b.empty + fill % kSlots);
}

// Adds to `m`, or begins it: Ui Vi of a pair, for i = 1, 2, 0, 3.
template <class T, int Positions>
__device__ __forceinline__ void multiply(float (&m)[Positions / 2], int i, bool add, int pair, bool first,
                                         const Block& b) {
  const int slot = (2 * pair + i / 2) % kSlots;
  const unsigned char* const row = b.ring + slot * kSlot<Positions> + i % 2 * kRingRow<Positions>;
  const std::uint64_t u = swizzled_descriptor(b.filters + i * kFilterRow, Swizzle::bytes128);
  const std::uint64_t v = swizzled_descriptor(row, Swizzle::bytes128);
  if (first) mbarrier_wait(b.filters_full + i, 0);
  wgmma_fence();
  UNROLL
  for (int s = 0; s < kWinogradTaps; ++s) {
    UNROLL
    for (int c = 0; c < kRow; c += 32)
      wgmma<Positions, OperandOf<T>>(m, u + (s * kTap + c) / 16, v + (s * kRow + c) / 16, add || s + c > 0);
  }
  wgmma_commit();
}

// ---- 5. The epilogue -----------------------------------------------------------------------------------------------

// Of a sum, a lane holds two neighbouring positions of a filter. Transposed, they are rows of filters.
template <class T, int Positions>
__device__ __forceinline__ void round_to_buffer(unsigned char* buffer, const float (&m)[Positions / 2],
                                                const Block& b) {
  const auto pair = [&](int i) { return rounded_pair<T>(m[i], m[i + 1]); };
  unsigned char* const row = buffer + place(b.lane / 16 * 8 + b.lane % 8, b.warp % 4 * 2 + b.lane / 8 % 2);
  UNROLL
  for (int j = 0; j + 1 < Positions / 8; j += 2)
    stmatrix_transposed(row + j * 8 * kRow, {pair(4 * j), pair(4 * j + 2), pair(4 * j + 4), pair(4 * j + 6)});
  if constexpr (Positions / 8 % 2 == 1) {
    constexpr int kLast = Positions / 8 - 1;
    stmatrix_transposed(row + kLast * 8 * kRow, {pair(4 * kLast), pair(4 * kLast + 2)});
  }
}

// Stores positions of several images, which a box cannot be cut into: it may not begin before its tensor.
template <class T, int Positions, Pixels Kind>
__device__ __forceinline__ void store_positions(T* output, const unsigned char* buffer, int p, const Block& b,
                                                const Strips& g) {
  const Winograd& w = g.w;
  constexpr int kTogether = Kind == Pixels::chunks ? kChunk : 1;  // elements
  for (int i = b.thread % kGroupThreads; i < Positions * kFilters / kTogether; i += kGroupThreads) {
    const int row = i * kTogether / kFilters, of_row = i * kTogether % kFilters;
    const unsigned position = static_cast<unsigned>(b.first_position + row);
    const int image = static_cast<int>(position / g.by_pitch), q = static_cast<int>(position % g.by_pitch);
    const int k = b.filter_block * kFilters + of_row;
    if (image >= w.batch || q >= w.out_width || k >= w.filters) continue;
    T* const to = output + (((image * w.out_height + p) * w.out_width + q) * w.filters + k);
    const unsigned char* const from = buffer + place(row, of_row / kChunk) + of_row % kChunk * 2;
    if constexpr (Kind == Pixels::chunks)
      *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
    else
      *to = *reinterpret_cast<const T*>(from);
  }
}

// What a warpgroup sends its rows of outputs with.
template <class T>
struct Sender {
  T* output;
  const TensorMap& output_map;
  unsigned char* buffer;
  int group;
  bool leads;                   // the thread that starts bulk copies
  int first_image, last_image;  // that the strip meets
};

// Sends row p of outputs. It may still be on its way when this returns.
template <class T, int Positions, Pixels Kind>
__device__ __forceinline__ void send_row(const float (&m)[Positions / 2], int p, const Sender<T>& sender,
                                         const Block& b, const Strips& g) {
  if (sender.leads) bulk_wait_read<0>();
  named_barrier_sync(1 + sender.group, kGroupThreads);  // the buffer is free
  round_to_buffer<T, Positions>(sender.buffer, m, b);
  fence_async_proxy();
  named_barrier_sync(1 + sender.group, kGroupThreads);
  if (p >= g.w.out_height) return;
  if (Kind == Pixels::chunks && sender.first_image == sender.last_image) {
    if (!sender.leads) return;
    tensor_store(sender.output_map, sender.buffer, b.filter_block * kFilters,
                 b.first_position - sender.first_image * g.pitch, p, sender.first_image);
    bulk_commit();
    return;
  }
  store_positions<T, Positions, Kind>(sender.output, sender.buffer, p, b, g);
}

// ---- 4. and 5. A consumer ------------------------------------------------------------------------------------------

template <class T, int Positions, Pixels Kind>
__device__ __forceinline__ void consume(const T* u, T* output, const TensorMap& output_map, const Block& b,
                                        const Strips& g) {
  const int group = b.warp / (kGroupThreads / 32);
  const auto image_at = [&](int position) { return static_cast<int>(static_cast<unsigned>(position) / g.by_pitch); };
  const Sender<T> sender{output,
                         output_map,
                         b.buffers + group * kBuffer<Positions>,
                         group,
                         b.thread % kGroupThreads == 0,
                         image_at(b.first_position),
                         min(image_at(b.first_position + Positions - 1), g.w.batch - 1)};
  float sums[Positions / 2], differences[Positions / 2];
  for (int pair = group; pair < b.pairs; pair += kGroups) {
    const bool first = pair == group;
    wait_full(b, 2 * pair);
    multiply<T, Positions>(sums, 0, false, pair, first, b);         // M1
    multiply<T, Positions>(differences, 1, false, pair, first, b);  // M2
    if (b.thread == 0 && pair == 0) {  // those needed later come later: the first rows are on their way until now
      load_filters(b, u, 2);
      load_filters(b, u, 3);
    }
    wgmma_wait<0>();
    pin(sums);
    pin(differences);
    release(b, 2 * pair);
    UNROLL
    for (int i = 0; i < Positions / 2; ++i) {
      sums[i] += differences[i];                              // M1 + M2
      differences[i] = fmaf(-2.0f, differences[i], sums[i]);  // M1 - M2
    }
    pin(sums);
    pin(differences);
    wait_full(b, 2 * pair + 1);
    multiply<T, Positions>(sums, 2, true, pair, first, b);         // M0
    multiply<T, Positions>(differences, 3, true, pair, first, b);  // M3

    const int p = (b.first_pair + pair) * kOutputRows;
    wgmma_wait<1>();
    pin(sums);
    send_row<T, Positions, Kind>(sums, p, sender, b, g);
    wgmma_wait<0>();
    pin(differences);
    release(b, 2 * pair + 1);
    send_row<T, Positions, Kind>(differences, p + 1, sender, b, g);
  }
  if (sender.leads) bulk_wait_read<0>();  // shared memory is the block's as long as that
}

// ---- The kernel and its launch -------------------------------------------------------------------------------------

template <class T, int Positions, Pixels Kind>
__global__ void __launch_bounds__(kThreads, 1)
    convolve(const T* input,                                // [batch][height][width][channels]
             const T* u,                                    // as transform_filters() leaves it
             T* output,                                     // [batch][out_height][out_width][filters]
             const __grid_constant__ TensorMap output_map,  // of it, with boxes of Positions x 64; not for Pixels::any
             Strips g) {
  static_assert(Positions % 8 == 0, "swizzles repeat after 8 pixels: rows of the ring and buffers begin with one");
  static_assert(kSharedBytes<Positions> <= 227 * 1024, "what a block may have");
  const Block b = this_block<Positions>(g);
  if (b.thread == 0) {
    make_barriers(b);
    load_filters(b, u, 0);
    load_filters(b, u, 1);
  }
  if (b.warp >= kConsumers / 32) {
    set_max_registers_decrease<104>();
    produce<T, Positions, Kind>(input, b, g);
  } else {
    set_max_registers_increase<152>();
    meet();
    consume<T, Positions, Kind>(u, output, output_map, b, g);
  }
}

std::int64_t blocks_of(const Strips& g) { return std::int64_t{g.filter_blocks} * g.strips * g.blocks_down; }

template <class T>
void launch_transform(const float* filter, T* u, const Strips& g, Stream stream) {
  const int threads = g.filter_blocks * kWinogradTaps * kFilters * kChannels;
  launch(transform_filters<T>, dim3(blocks_for(threads, kPackThreads)), dim3(kPackThreads), 0, stream)(filter, u, g);
}

template <class T, int Positions, Pixels Kind>
void launch_convolve(const T* input, const T* u, T* output, const TensorMap& output_map, const Strips& g,
                     Stream stream) {
  launch(convolve<T, Positions, Kind>, dim3(static_cast<unsigned>(blocks_of(g))), dim3(kThreads),
         kSharedBytes<Positions>, stream)(input, u, output, output_map, g);
}

}  // namespace
}  // namespace convladder
