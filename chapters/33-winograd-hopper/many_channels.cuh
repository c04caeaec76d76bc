// Steps 6 to 9 of stage 33: F(2,3) along the height for more than 64 channels. A block's filters no longer fit in
// shared memory, so they pass through it, as the pixels do, 32 channels at a time.
//
//   6. The positions of all pairs of rows of all images stand in one long line. A tile is any N of it, and a work item
//      a tile and 128 filters. The kernel is persistent, and warp-specialised.
//   7. TMA loads the four rows of the input that a tile needs as columns of an im2col matrix, some positions at a time.
//      Three warps, the makers, turn them into V0 to V3. Both are swizzled alike, so V is made byte for byte where the
//      pixels lie.
//   8. Two warpgroups multiply the same V, with 64 filters each. M0 and M3 are added where the two rows of outputs are,
//      M1 and M2 where half of their sum and of their difference are: the accumulators go from the one to the other
//      and back, once in 32 channels. So no V is made or loaded twice.
//   9. The epilogue: 16 positions at a time, as halves, through shared memory.
#pragma once
#include "chapters/33-winograd-hopper/winograd_hopper.cuh"

namespace convladder {
namespace {

constexpr int kPart = 32;                                         // channels at a time
constexpr int kPartRow = kPart * 2, kPartChunks = kPartRow / 16;  // bytes of a position; of 16 bytes
constexpr int kTileFilters = kGroups * kFilters;                  // of a work item
constexpr int kPartTap = kFilters * kPartRow;                     // bytes of a warpgroup's filters of one column
constexpr int kGroupFilters = kWinogradTaps * kPartTap;           // and of all columns, of Ui
constexpr int kFilterSlot = kGroups * kGroupFilters;              // of both warpgroups
constexpr int kPartHalves = kSize * kFilterSlot / 2;              // of a part's filters, transformed
constexpr int kVSlots = 2 * kSize;                                // of two parts
constexpr int kRawSlots = 2;                                      // of pieces
constexpr int kMakers = 3, kMakerThreads = kMakers * 32;          // warps
constexpr int kLineThreads = kConsumers + 32 + kMakerThreads;     // all
constexpr int kStagedPositions = 16, kStagedRow = 32;             // bytes: 16 filters, of a warp
constexpr int kStaged = kStagedPositions * kStagedRow;            // of a row of outputs

// The problem as this kernel takes it.
struct Line {
  Winograd w;
  int pitch;  // positions of a pair of rows of an image
  Divisor by_pitch;
  int parts;  // of the channels
  int tiles, works;
  Divisor by_filter_blocks;  // of 128
};

template <int N>
struct LineMemory {
  static constexpr int kPieces = N > 128 ? 3 : 2;                                    // of a tile's positions
  static constexpr int kPiece = blocks_for(N + kWinogradTaps - 1, kPieces * 8) * 8;  // positions
  static constexpr int kRawRow = kPiece * kPartRow, kRawSlot = kSize * kRawRow;      // bytes
  static constexpr int kVSlot = kPieces * kRawRow;                                   // of one Vi
  static constexpr int kFilterSlots = N > 128 ? 3 : 4;
  // A thread's, of consumers and of the others: three warpgroups have 504 in all.
  static constexpr int kConsumerRegisters = N > 192 ? 240 : 232, kOtherRegisters = 504 - 2 * kConsumerRegisters;
  static constexpr int kBarriers = 2 * (kVSlots / kSize + kFilterSlots + kRawSlots);
  static constexpr int kStagedBytes = kConsumers / 32 * kOutputRows * kStaged;
  static constexpr int kBytes = kFilterSlots * kFilterSlot + kVSlots * kVSlot + kRawSlots * kRawSlot + kStagedBytes +
                                kBarriers * static_cast<int>(sizeof(Mbarrier));
};

// Where chunk c of row r lies in rows of 64 bytes, in bytes: as TMA and wgmma swizzle.
__device__ __forceinline__ int part_place(int row, int chunk) {
  return row * kPartRow + (chunk ^ row / 2 % kPartChunks) * 16;
}

// The order in which the products of a part come. Of the next part they come the other way round, so that the
// accumulators stay as they are from one part to the next.
__device__ __forceinline__ int product_of(int part, int i) {
  constexpr int kOrder[kSize] = {0, 3, 1, 2};
  return kOrder[part % 2 == 0 ? i : i ^ 2];
}

// 1. A thread for a column s of a filter and channel.
template <class T>
__global__ void transform_filters_in_parts(const float* filter,  // [filters][channels][3][3]
                                           T* u,  // [128 filters][part][4 products][warpgroup][s][64][32 swizzled]
                                           Line g) {
  const int i = blockIdx.x * kPackThreads + threadIdx.x;
  const int c = i % kPart, row = i / kPart % kFilters, s = i / (kPart * kFilters) % kWinogradTaps;
  const int group = i / (kPart * kFilters * kWinogradTaps) % kGroups;
  const int part_of_block = i / (kPart * kFilters * kWinogradTaps * kGroups);
  const int block = part_of_block / g.parts, part = part_of_block % g.parts;
  if (block * kTileFilters >= g.w.filters) return;
  const int k = block * kTileFilters + group * kFilters + row, channel = part * kPart + c;
  const bool inside = k < g.w.filters && channel < g.w.channels;
  float taps[kWinogradTaps], transformed[kSize];
  UNROLL
  for (int r = 0; r < kWinogradTaps; ++r)
    taps[r] =
        inside ? filter[((std::int64_t{k} * g.w.channels + channel) * kWinogradTaps + r) * kWinogradTaps + s] : 0.0f;
  transform_filter_line<F2>(taps, transformed);
  T* const to = u + std::int64_t{part_of_block} * kPartHalves +
                (group * kGroupFilters + s * kPartTap + part_place(row, c / kChunk)) / 2 + c % kChunk;
  UNROLL
  for (int product = 0; product < kSize; ++product) {
    const int v = product_of(part, product);
    float value = transformed[0];
    UNROLL
    for (int other = 1; other < kSize; ++other) value = v == other ? transformed[other] : value;
    to[product * (kFilterSlot / 2)] = rounded_to<T>(value);
  }
}

// ---- 6. A block, which takes every gridDim.x-th work item, and its shared memory ------------------------------------

template <class T, int N>
struct LineBlock {
  using Memory = LineMemory<N>;
  const Line& g;
  unsigned char* filters = dynamic_shared_1024<unsigned char>();       // [slot][warpgroup][s][64][kPartRow]
  unsigned char* ring = filters + Memory::kFilterSlots * kFilterSlot;  // [part % 2][product][position][kPartRow]
  unsigned char* raw = ring + kVSlots * Memory::kVSlot;                // [slot][d0 to d3][kPiece][kPartRow]
  unsigned char* staged = raw + kRawSlots * Memory::kRawSlot;          // [warp][row of outputs][kStaged]
  Mbarrier* full = reinterpret_cast<Mbarrier*>(staged + Memory::kStagedBytes);  // of the ring, [part % 2]
  Mbarrier* empty = full + kVSlots / kSize;
  Mbarrier* filters_full = empty + kVSlots / kSize;
  Mbarrier* filters_empty = filters_full + Memory::kFilterSlots;
  Mbarrier* raw_full = filters_empty + Memory::kFilterSlots;
  Mbarrier* raw_empty = raw_full + kRawSlots;

  __device__ __forceinline__ int tile_of(int work) const {
    return static_cast<int>(static_cast<unsigned>(work) / g.by_filter_blocks);
  }
  __device__ __forceinline__ int filter_block_of(int work) const {
    return static_cast<int>(static_cast<unsigned>(work) % g.by_filter_blocks);
  }

  __device__ __forceinline__ void start() const {
    if (threadIdx.x == 0) {
      for (int i = 0; i < kVSlots / kSize; ++i) {
        mbarrier_init(full + i, kMakers);
        mbarrier_init(empty + i, kConsumers / 32);
      }
      for (int i = 0; i < Memory::kFilterSlots; ++i) {
        mbarrier_init(filters_full + i, 1);
        mbarrier_init(filters_empty + i, kConsumers / 32);
      }
      for (int i = 0; i < kRawSlots; ++i) {
        mbarrier_init(raw_full + i, 1);
        mbarrier_init(raw_empty + i, kMakers);
      }
      fence_mbarrier_init();
    }
  }

  // 7. What comes next of the input: a piece of a tile's positions, of a part of the channels.
  struct Piece {
    int work, part = 0, piece = 0, slot = 0, parity = 1;
  };
  __device__ __forceinline__ void load_piece(Piece& next, const TensorMap& input) const {
    const unsigned position = static_cast<unsigned>(tile_of(next.work) * N + next.piece * Memory::kPiece);
    const unsigned line = position / g.by_pitch;
    Mbarrier* const barrier = raw_full + next.slot;
    mbarrier_wait(raw_empty + next.slot, next.parity);
    mbarrier_expect(barrier, Memory::kRawSlot);
    UNROLL
    for (int row = 0; row < kSize; ++row)
      im2col_load(raw + next.slot * Memory::kRawSlot + row * Memory::kRawRow, input, barrier, {0, row},
                  next.part * kPart, static_cast<int>(position % g.by_pitch) - g.w.pad_x,
                  static_cast<int>(line % g.w.by_down) * kOutputRows - g.w.pad_y, static_cast<int>(line / g.w.by_down));
    if (++next.slot == kRawSlots) next.slot = 0, next.parity ^= 1;
    if (++next.piece < Memory::kPieces) return;
    next.piece = 0;
    if (++next.part < g.parts) return;
    next.part = 0;
    next.work += gridDim.x;
  }

  // 7. One thread asks for the filters, of each product for both warpgroups, and for the pixels, which are needed a
  // part earlier.
  __device__ __forceinline__ void load(const T* u, const TensorMap& input) const {
    Piece next{static_cast<int>(blockIdx.x)};
    UNROLL_BY(1)
    for (int i = 0; i < kRawSlots; ++i) load_piece(next, input);
    int slot = 0, parity = 1, ahead = kRawSlots - Memory::kPieces;  // pieces beyond the filters' part
    for (int work = blockIdx.x; work < g.works; work += gridDim.x) {
      const T* from = u + std::int64_t{filter_block_of(work)} * g.parts * kPartHalves;
      UNROLL_BY(1)
      for (int i = 0; i < g.parts * kSize; ++i, from += kFilterSlot / 2) {
        mbarrier_wait(filters_empty + slot, parity);
        mbarrier_expect(filters_full + slot, kFilterSlot);
        bulk_load(filters + slot * kFilterSlot, from, kFilterSlot, filters_full + slot);
        if (++slot == Memory::kFilterSlots) slot = 0, parity ^= 1;
        UNROLL_BY(1)
        for (; ahead <= i % kSize && ahead < Memory::kPieces && next.work < g.works; ++ahead) load_piece(next, input);
        if (i % kSize == kSize - 1) ahead -= Memory::kPieces;
      }
    }
  }

  static __device__ __forceinline__ Chunk load_chunk(const unsigned char* from) {
    Chunk d;
    *reinterpret_cast<uint4*>(&d) = *reinterpret_cast<const uint4*>(from);
    return d;
  }
  template <unsigned Combine(unsigned, unsigned)>
  static __device__ __forceinline__ void store_chunk(unsigned char* to, const Chunk& a, const Chunk& b) {
    Chunk v;
    UNROLL
    for (int j = 0; j < 4; ++j) v.pairs[j] = Combine(a.pairs[j], b.pairs[j]);
    *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(&v);
  }

  // 7. The makers. Of a part V0 and V3 lie one after the other, and so do V1 and V2.
  __device__ __forceinline__ void make() const {
    static_assert(kRawSlots == 2 && kVSlots == 2 * kSize, "slots are counted by bits");
    const int thread = threadIdx.x - (kConsumers + 32);
    int work = blockIdx.x, part = 0, pieces = 0;
    UNROLL_BY(1)
    for (int parts = 0; work < g.works; ++parts) {
      int v0 = (parts % 2 * kSize + part % 2 * 2) * Memory::kVSlot,
          v1 = (parts % 2 * kSize + (part + 1) % 2 * 2) * Memory::kVSlot;
      mbarrier_wait(empty + parts % 2, (parts / 2 + 1) & 1);
      UNROLL_BY(1)
      for (const int end = pieces + Memory::kPieces; pieces < end; ++pieces) {
        mbarrier_wait(raw_full + pieces % 2, pieces / 2 & 1);
        UNROLL_BY(1)
        for (int i = thread * 16; i < Memory::kRawRow; i += kMakerThreads * 16) {
          const unsigned char* const d = raw + pieces % 2 * Memory::kRawSlot + i;
          const Chunk d1 = load_chunk(d + Memory::kRawRow), d2 = load_chunk(d + 2 * Memory::kRawRow);
          store_chunk<add_pairs<T>>(ring + v1 + i, d1, d2);
          store_chunk<subtract_pairs<T>>(ring + v1 + i + Memory::kVSlot, d2, d1);
          store_chunk<subtract_pairs<T>>(ring + v0 + i, load_chunk(d), d2);
          store_chunk<subtract_pairs<T>>(ring + v0 + i + Memory::kVSlot, load_chunk(d + 3 * Memory::kRawRow), d1);
        }
        __syncwarp();
        if (thread % 32 == 0) mbarrier_arrive(raw_empty + pieces % 2);
        v0 += Memory::kRawRow;
        v1 += Memory::kRawRow;
      }
      fence_async_proxy();
      __syncwarp();
      if (thread % 32 == 0) mbarrier_arrive(full + parts % 2);
      if (++part == g.parts) part = 0, work += gridDim.x;
    }
  }

  // 8. A consumer's thread, and its present product's place in the rings.
  struct Step {
    int warp, lane;
    int number = 0, slot = 0, parity = 0;  // of all products of the block; of the filters
    int last_slot = -1;                    // of the product under way; -1: none is
  };
  __device__ __forceinline__ void release(Step& step) const {
    if (step.lane == 0) {
      mbarrier_arrive(filters_empty + step.last_slot);
      if (step.number % kSize == 0) mbarrier_arrive(empty + (step.number - 1) / kSize % 2);
    }
    step.last_slot = -1;
  }
  // Starts a product with the next row of V, and waits for the one before.
  __device__ __forceinline__ void multiply(float (&m)[N / 2], bool begin, Step& step) const {
    if (step.number % kSize == 0) mbarrier_wait(full + step.number / kSize % 2, step.number / kVSlots & 1);
    mbarrier_wait(filters_full + step.slot, step.parity);
    const std::uint64_t u = swizzled_descriptor(
        filters + step.slot * kFilterSlot + step.warp / (kGroupThreads / 32) * kGroupFilters, Swizzle::bytes64);
    const std::uint64_t v = swizzled_descriptor(ring + step.number % kVSlots * Memory::kVSlot, Swizzle::bytes64);
    wgmma_fence();
    UNROLL
    for (int s = 0; s < kWinogradTaps; ++s) {
      UNROLL
      for (int c = 0; c < kPartRow; c += 32)
        wgmma<N, OperandOf<T>>(m, u + (s * kPartTap + c) / 16, v + (s * kPartRow + c) / 16, !begin || s + c > 0);
    }
    wgmma_commit();
    wgmma_wait<1>();
    if (step.last_slot >= 0) release(step);
    step.last_slot = step.slot;
    ++step.number;
    if (++step.slot == Memory::kFilterSlots) step.slot = 0, step.parity ^= 1;
  }
  __device__ __forceinline__ void finish(float (&a)[N / 2], float (&b)[N / 2], Step& step) const {
    wgmma_wait<0>();
    pin(a);
    pin(b);
    release(step);
  }

  // 8 and 9. A consumer. Between parts a and b are the rows of outputs so far, or half of their sum and difference, to
  // which M1 and M2 are added.
  __device__ __forceinline__ void consume(T* output) const {
    float a[N / 2], b[N / 2];
    Step step{warp_index(), static_cast<int>(threadIdx.x) % 32};
    UNROLL_BY(1)
    for (int work = blockIdx.x; work < g.works; work += gridDim.x) {
      int part = 0;
      UNROLL_BY(1)
      while (true) {
        multiply(a, part == 0, step);  // M0
        multiply(b, part == 0, step);  // M3
        finish(a, b, step);
        UNROLL
        for (int i = 0; i < N / 2; ++i) {
          a[i] = 0.5f * (a[i] + b[i]);
          b[i] = a[i] - b[i];
        }
        pin(a);
        pin(b);
        multiply(a, false, step);  // M1
        multiply(b, false, step);  // M2
        if (part + 1 < g.parts) {
          multiply(a, false, step);  // of the next part
          multiply(b, false, step);
        }
        finish(a, b, step);
        UNROLL
        for (int i = 0; i < N / 2; ++i) {
          a[i] += b[i];
          b[i] = fmaf(-2.0f, b[i], a[i]);
        }
        pin(a);
        pin(b);
        if (part + 1 == g.parts) break;
        multiply(a, false, step);  // M0
        multiply(b, false, step);  // M3
        part += 2;
        if (part == g.parts) {
          finish(a, b, step);
          break;
        }
      }
      store(a, b, output, work, step.warp, step.lane);
    }
  }

  // 9. Stores both rows of outputs, 16 positions at a time. A lane follows its position from one step to the next.
  __device__ __forceinline__ void store(const float (&above)[N / 2], const float (&below)[N / 2], T* output, int work,
                                        int warp, int lane) const {
    static_assert(N % kStagedPositions == 0, "positions of a step");
    const Winograd& w = g.w;
    unsigned char* const buffer = staged + warp * kOutputRows * kStaged;
    const auto place_of = [](int row, int chunk) { return row * kStagedRow + (chunk ^ row / 4 % 2) * 16; };
    unsigned char* const to_row = buffer + place_of(lane / 16 * 8 + lane % 8, lane / 8 % 2);
    const unsigned char* const from = buffer + place_of(lane / 2, lane % 2);
    const int k = filter_block_of(work) * kTileFilters + warp * 16 + lane % 2 * kChunk, filters_left = w.filters - k;
    const unsigned position = static_cast<unsigned>(tile_of(work) * N + lane / 2), line = position / g.by_pitch;
    int x = static_cast<int>(position % g.by_pitch);
    int image = static_cast<int>(line / g.w.by_down), pair = static_cast<int>(line % g.w.by_down);
    const auto stage = [](unsigned char* to, const float* m) {
      stmatrix_transposed(to, {rounded_pair<T>(m[0], m[1]), rounded_pair<T>(m[2], m[3]), rounded_pair<T>(m[4], m[5]),
                               rounded_pair<T>(m[6], m[7])});
    };
    UNROLL
    for (int j = 0; j < N / kStagedPositions; ++j) {
      __syncwarp();  // what was staged is stored
      stage(to_row, above + 8 * j);
      stage(to_row + kStaged, below + 8 * j);
      __syncwarp();
      if (image < w.batch && x < w.out_width && filters_left > 0) {
        const int p = pair * kOutputRows;
        T* const to = output + ((std::int64_t{image} * w.out_height + p) * w.out_width + x) * w.filters + k;
        store_filters(to, from, filters_left);
        if (p + 1 < w.out_height)
          store_filters(to + std::int64_t{w.out_width} * w.filters, from + kStaged, filters_left);
      }
      for (x += kStagedPositions; x >= g.pitch; x -= g.pitch)
        if (++pair == w.tiles_down) pair = 0, ++image;
    }
  }
  __device__ __forceinline__ void store_filters(T* to, const unsigned char* from, int filters_left) const {
    if (g.w.filters % kChunk == 0) {
      *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
      return;
    }
    UNROLL_BY(1)
    for (int i = 0; i < min(filters_left, kChunk); ++i) to[i] = reinterpret_cast<const T*>(from)[i];
  }
};

template <class T, int N>
__global__ void __launch_bounds__(kLineThreads, 1)
    convolve_line(const __grid_constant__ TensorMap input,  // columns of kPiece pixels, of 32 channels
                  const T* u,                               // as transform_filters_in_parts() leaves it
                  T* output,                                // [batch][out_height][out_width][filters]
                  const __grid_constant__ Line g) {
  static_assert(LineMemory<N>::kBytes <= 227 * 1024, "what a block may have");
  static_assert(LineMemory<N>::kRawRow % 512 == 0, "swizzles repeat after 8 positions: rows begin with one");
  const LineBlock<T, N> block{g};
  block.start();
  __syncthreads();
  if (const int warp = warp_index(); warp >= kConsumers / 32) {
    set_max_registers_decrease<LineMemory<N>::kOtherRegisters>();
    if (warp > kConsumers / 32)
      block.make();
    else if (threadIdx.x % 32 == 0)
      block.load(u, input);
    return;
  }
  set_max_registers_increase<LineMemory<N>::kConsumerRegisters>();
  block.consume(output);
}

template <class T>
void launch_transform(const float* filter, T* u, const Line& g, Stream stream) {
  const std::int64_t threads = std::int64_t{blocks_for(g.w.filters, kTileFilters)} * g.parts * (kPartHalves / kSize);
  launch(transform_filters_in_parts<T>, dim3(static_cast<unsigned>(threads / kPackThreads)), dim3(kPackThreads), 0,
         stream)(filter, u, g);
}

template <class T, int N>
void launch_convolve(const TensorMap& input, const T* u, T* output, const Line& g, int blocks, Stream stream) {
  launch(convolve_line<T, N>, dim3(static_cast<unsigned>(blocks)), dim3(kLineThreads), LineMemory<N>::kBytes, stream)(
      input, u, output, g);
}

}  // namespace
}  // namespace convladder
