// 36 split-fp32: fp32 convolution on Tensor Cores, from three products of halves.
//
//   x = xh + xl, w = wh + wl        each half has 11 bits of the number's 24, so two have 22
//   w x = wh xh + wh xl + wl xh     and wl xl, which is below 2^-22 of the product and is left out
//
// Since 32: input and output are fp32. TMA cannot split a number, so warps load the pixels, split them, and store
// their high and low halves where wgmma reads them. For each tap there are three products, of which the two small ones
// are summed first. Tensor Cores do not round their sums but cut them off, towards zero, and over a long sum that adds
// up. So the sums begin anew at each tap, and are added, rounded, to a master sum in registers.
//
// The kernel is persistent and warp-specialised. Tiles are cut as in 32, also for strides and for any small filter
// (tiles.hpp). Two consumers, a warpgroup each, have a tile each and the same 64 filters; or one tile, 64 filters each.
//
//   1. In prepare(): powers of two by which the input and each filter are scaled, so that their halves neither overflow
//      nor fade; and the filters split, [64 filters][64 channels] of low halves and of high ones for each tap.
//   2. A producer thread asks for the filters, tap by tap, into a ring.
//   3. Seven splitting warps load fp32 pixels, 64 channels of a box at a time, scale and split them, and store both
//      halves with TMA's swizzle into a ring of boxes. They ask for a box's pixels before its slot is empty, and note
//      where a pixel's numbers do not fit the scale.
//   4. A consumer multiplies: for each tap 4 steps of 16 channels, three times. Then it adds the sums to its
//      master sum.
//   5. When a tile is complete, its outputs go to the slot of its last box, which is no longer needed, and from
//      there by TMA to global memory, while the next tile is being multiplied. Those of a shared tile are stored
//      from registers. Where pairs are few, the channels of each are in slices, a work item each: a consumer leaves
//      its sums in global memory, and the last one to come to a tile adds up those of all its slices.
//   6. A tile with numbers that do not fit is computed anew, without splitting, in double.
#pragma once
#include "chapters/36-split-fp32/tiles.hpp"
#include "common/kernel/bf16_tf32.hpp"
#include "common/kernel/half.hpp"
#include "common/kernel/hopper.hpp"

namespace convladder {
namespace {

constexpr int kConsumers = 256, kThreads = 512;  // threads: two consumers; all
constexpr int kSplitters = 7;                    // warps
constexpr int kGroupWarps = 4;                   // of a consumer

// Which products are summed: their number, 1 to 4. One long sum: without a master sum.
enum { kOneProduct = 1, kTwoProducts, kThreeProducts, kFourProducts, kOneLongSum };

// The format of a number's two parts: Fp16, or for comparison Bf16 or Tf32. A row of 128 bytes has so many channels,
// and a word of 4 bytes two parts, or one of TF32.
template <class Format>
constexpr int kChannels = channels_for(false);
template <>
constexpr int kChannels<Tf32> = channels_for(true);
constexpr int kWords = kRow / 4;  // of a row

// The high parts of a word's numbers, and the low parts: what the high ones leave, rounded as well.
__device__ __forceinline__ void split_word(Fp16, const float* v, unsigned& high, unsigned& low) {
  const half2 top = __floats2half2_rn(v[0], v[1]);
  const float2 back = __half22float2(top);
  const half2 rest = __floats2half2_rn(v[0] - back.x, v[1] - back.y);
  high = *reinterpret_cast<const unsigned*>(&top);
  low = *reinterpret_cast<const unsigned*>(&rest);
}
__device__ __forceinline__ void split_word(Bf16, const float* v, unsigned& high, unsigned& low) {
  high = bf16_pair(v[0], v[1]);
  low = bf16_pair(v[0] - bf16_low(high), v[1] - bf16_high(high));
}
__device__ __forceinline__ void split_word(Tf32, const float* v, unsigned& high, unsigned& low) {
  high = tf32_bits(v[0]);
  low = tf32_bits(v[0] - __uint_as_float(high));
}

// What of the input fits the scale. Of a pixel's 64 channels the largest magnitude must be 0, or in [least, most].
struct InputScale {
  float factor, least, most;
  int exponent;  // of the factor
};
// Two factors, powers of two, by which a filter's sums are multiplied: one alone could overflow, or fade, where the
// result does not. The first is 0 where the filter is not finite.
struct alignas(8) SumScale {
  float first, second;
};

struct Origin {  // of a tile: its first image, and first output
  int image, x, y;
};

// A block, which takes every gridDim.x-th work item, and its shared memory.
template <int N, int Products, Cut kCut, class Format>
struct SplitBlock {
  static constexpr bool kShared = kCut != Cut::own;
  static constexpr int kRows = kCut == Cut::row_pairs ? 2 : 1;  // of outputs, at a position
  static constexpr int kNumbers = kChannels<Format> / kWords;   // of a word
  static constexpr int kParts = parts_for(N, kCut), kBoxes = boxes_for(kCut);
  static constexpr int kTiles = kShared ? 1 : 2;    // of both consumers
  static constexpr int kStreams = kShared ? 2 : 1;  // of filters
  // A stream's filters have slots of their own. A barrier's parity tells only two uses of a slot in a row apart, so
  // whoever waits for one must have waited for the one before, and copies may come in another order than they began.
  __device__ __forceinline__ static constexpr int slots_of(int stream) {
    return kParts / kStreams + (stream < kParts % kStreams ? 1 : 0);
  }
  __device__ __forceinline__ static constexpr int first_slot_of(int stream) { return stream == 0 ? 0 : slots_of(0); }

  const Tiles& g;
  unsigned char* ring = dynamic_shared_1024<unsigned char>();  // [kParts][64 filters][kRow]
  unsigned char* boxes = ring + kParts * kPart;                // [kBoxes][high, low][slot][kRow]
  int half_box = g.slot * kRow;
  Entry* entries = reinterpret_cast<Entry*>(boxes + kBoxes * 2 * half_box);  // [slot]
  int* dense = reinterpret_cast<int*>(entries + g.slot);  // [N]: an output's number among the tile's, or -1
  int* unfit = dense + N;                                 // [kBoxes][8]: by each splitting warp, and one 0
  int* tickets = unfit + kBoxes * 8;                      // [2]: what each consumer has drawn
  Mbarrier* full = reinterpret_cast<Mbarrier*>(tickets + 2);
  Mbarrier* empty = full + kParts;
  Mbarrier* box_full = empty + kParts;
  Mbarrier* box_empty = box_full + kBoxes;
  int warp = warp_index(), thread = threadIdx.x, lane = thread % 32;
  int first_work = blockIdx.x, step_work = gridDim.x;
  int rounds = (g.works - first_work + step_work - 1) / step_work;

  __device__ __forceinline__ unsigned work_of(int round) const { return first_work + round * step_work; }
  __device__ __forceinline__ int tile_of(int round, int consumer) const {
    const int group = static_cast<int>(work_of(round) / g.by_slices / g.by_filter_groups);
    return kShared ? group : 2 * group + consumer;
  }
  __device__ __forceinline__ int filter_block_of(int round, int consumer) const {
    const int group = static_cast<int>(work_of(round) / g.by_slices % g.by_filter_groups);
    return kShared ? 2 * group + consumer : group;
  }
  // Where a work item's channel blocks begin; with `next` 1, where those of the next slice do.
  __device__ __forceinline__ int first_block_of(int round, int next) const {
    return static_cast<int>((work_of(round) % g.by_slices + next) * g.channel_blocks / g.by_slices);
  }
  __device__ __forceinline__ Origin origin_of(int tile) const {
    const unsigned row = static_cast<unsigned>(tile) / g.by_strips;
    return {static_cast<int>(row / g.by_row_tiles) * g.images,
            static_cast<int>(static_cast<unsigned>(tile) % g.by_strips) * g.tile_columns,
            static_cast<int>(row % g.by_row_tiles) * g.tile_rows};
  }

  // Prologue, by all threads.
  __device__ __forceinline__ void start() const {
    if (thread == 0) {
      for (int i = 0; i < kParts; ++i) {
        mbarrier_init(full + i, 1);
        mbarrier_init(empty + i, kGroupWarps * kTiles);
      }
      for (int i = 0; i < kBoxes; ++i) {
        mbarrier_init(box_full + i, kSplitters);
        mbarrier_init(box_empty + i, kGroupWarps * kStreams);
        unfit[i * 8 + kSplitters] = 0;
      }
      fence_mbarrier_init();
    }
    for (int p = thread; p < g.slot; p += kThreads) {
      const int image = static_cast<int>(static_cast<unsigned>(p) / g.by_image_pitch);
      const unsigned in_image = static_cast<unsigned>(p) % g.by_image_pitch;
      const int row = static_cast<int>(in_image / g.by_row_pitch), column = static_cast<int>(in_image % g.by_row_pitch);
      const int pixel = (image * g.of.height + row * g.of.stride_y * kRows) * g.of.width + column * g.of.stride_x;
      const unsigned place = p < g.box ? packed_place(image, row, column) : packed_place(kNowhere, kNowhere, kNowhere);
      *reinterpret_cast<uint2*>(entries + p) = make_uint2(static_cast<unsigned>(pixel), place);
      if (p >= N) continue;
      const bool output = image < g.images && row < g.tile_rows && column < g.tile_columns;
      dense[p] = output ? (image * g.tile_rows + row) * g.tile_columns + column : -1;
    }
  }

  // 2. Of each tap the low halves, which are multiplied first, and the high ones; of a shared tile those of the one
  // consumer, then of the other. One thread asks for all of them, four parts a tap with F(2,3). So its loop keeps
  // slots, parities and addresses, and divides nothing. A slot's first wait is for the phase before its first, which
  // counts as ended.
  __device__ __forceinline__ void produce_filters(const unsigned* packed) const {
    constexpr int kWordsOfPart = kPart / 4;
    int slot[kStreams], parity[kStreams];
    UNROLL
    for (int s = 0; s < kStreams; ++s) slot[s] = first_slot_of(s), parity[s] = 1;
    for (int round = 0; round < rounds; ++round) {
      const int first = first_block_of(round, 0) * g.taps, end = first_block_of(round, 1) * g.taps;
      const unsigned* from[kStreams];
      UNROLL
      for (int s = 0; s < kStreams; ++s)
        from[s] =
            packed + (std::int64_t{filter_block_of(round, s)} * g.channel_blocks * g.taps + first) * 2 * kWordsOfPart;
      UNROLL_BY(1)
      for (int step = first; step < end; ++step) {
        UNROLL
        for (int s = 0; s < kStreams; ++s) {
          UNROLL
          for (int part = 0; part < 2; ++part, from[s] += kWordsOfPart) {
            const int at = slot[s];
            mbarrier_wait(empty + at, parity[s]);
            mbarrier_expect(full + at, kPart);
            bulk_load(ring + at * kPart, from[s], kPart, full + at);
            if (++slot[s] == first_slot_of(s) + slots_of(s)) slot[s] = first_slot_of(s), parity[s] ^= 1;
          }
        }
      }
    }
  }

  // Which places of a phase's box lie in the image, as fields: from `least` to `most`. A field that has none gets a
  // least that no place reaches.
  struct Inside {
    unsigned least, most;
  };
  static __device__ __forceinline__ int first_inside(int from, int stride, int size) {
    const int first = from < 0 ? (-from + stride - 1) / stride : 0;
    return from + first * stride < size ? min(first, kNowhere) : kNowhere;
  }
  static __device__ __forceinline__ int last_inside(int from, int stride, int size) {
    return size > from ? min((size - 1 - from) / stride, kNowhere - 1) : 0;
  }

  // 3. A box, as a splitting warp loads it.
  struct Box {
    unsigned least, most;  // of the places in the image
    const float* first;    // the lane's first channel of the pixel at place 0, which may lie outside
    int left;              // channels from there on
  };
  __device__ __forceinline__ Box find(int tile, int block, int phase, const float* input) const {
    const int channel = block * kChannels<Format> + 4 * (lane % 4);
    const Origin at = origin_of(tile);
    const int y = at.y * g.of.stride_y - g.of.pad_y + g.phase_y[phase];
    const int x = at.x * g.of.stride_x - g.of.pad_x + g.phase_x[phase];
    Box box;
    box.most =
        kGuards | packed_place(min(g.images, g.of.batch - at.image) - 1, last_inside(y, g.of.stride_y, g.of.height),
                               last_inside(x, g.of.stride_x, g.of.width));
    box.least = tile < g.tiles ? packed_place(0, first_inside(y, g.of.stride_y, g.of.height),
                                              first_inside(x, g.of.stride_x, g.of.width))
                               : packed_place(kNowhere, kNowhere, kNowhere);
    box.first =
        input + ((static_cast<std::int64_t>(at.image) * g.of.height + y) * g.of.width + x) * g.of.channels + channel;
    box.left = g.of.channels - channel;
    return box;
  }

  // A lane has 8 channels of each 32 of a position: 4 from 4 j on and 4 from 16 + 4 j on, so that 4 lanes read 64 bytes
  // at a time. The filters' channels are packed in the same order. Of TF32 there are 32 channels in all.
  static constexpr int kVectors = 2 * kNumbers;
  // Four channels of a pixel, of which `left` exist, if it is in the image.
  __device__ __forceinline__ float4 load_four(const float* from, int left, bool inside) const {
    float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (g.of.channels % 4 == 0) {
      if (inside && left > 0) v = *reinterpret_cast<const float4*>(from);
    } else if (inside) {
      if (left > 0) v.x = from[0];
      if (left > 1) v.y = from[1];
      if (left > 2) v.z = from[2];
      if (left > 3) v.w = from[3];
    }
    return v;
  }
  __device__ __forceinline__ void load(float4 (&d)[kVectors], const Box& box, int position) const {
    const Entry entry = entries[position];
    const bool inside = ((box.most - entry.place) & ((kGuards | entry.place) - box.least) & kGuards) == kGuards;
    const float* const from = box.first + static_cast<std::int64_t>(entry.pixel) * g.of.channels;
    UNROLL
    for (int e = 0; e < kVectors; ++e) d[e] = load_four(from + 16 * e, box.left - 16 * e, inside);
  }
  // Splits what a lane has of half a position's channels, and stores both parts. Of 8 lanes that store 16 bytes at a
  // time two positions differ in bits 0 and 2, and so they reach all 8 places of a line.
  __device__ __forceinline__ void split_half(const float* v, unsigned char* high, int position, int h) const {
    unsigned highs[4], lows[4];
    UNROLL
    for (int e = 0; e < 4; ++e) split_word(Format{}, v + e * kNumbers, highs[e], lows[e]);
    unsigned char* const to = high + position * kRow + ((4 * h + lane % 4) ^ (position % 8)) * 16;
    *reinterpret_cast<uint4*>(to) = make_uint4(highs[0], highs[1], highs[2], highs[3]);
    *reinterpret_cast<uint4*>(to + half_box) = make_uint4(lows[0], lows[1], lows[2], lows[3]);
  }
  // Whether what the four lanes of a position have of it fits, given the largest magnitude of each.
  static __device__ __forceinline__ bool fits_scale(float magnitude, const InputScale& scale) {
    magnitude = max_or_nan(magnitude, __shfl_xor_sync(~0u, magnitude, 1));
    magnitude = max_or_nan(magnitude, __shfl_xor_sync(~0u, magnitude, 2));
    return magnitude <= scale.most && (magnitude >= scale.least || magnitude == 0.0f);
  }
  // Splits the lane's channels of a position, and tells whether all channels of the position fit.
  __device__ __forceinline__ bool split(const float4 (&d)[kVectors], unsigned char* high, int position,
                                        const InputScale& scale) const {
    float v[4 * kVectors], magnitude = 0.0f;
    UNROLL
    for (int e = 0; e < kVectors; ++e)
      v[4 * e] = d[e].x, v[4 * e + 1] = d[e].y, v[4 * e + 2] = d[e].z, v[4 * e + 3] = d[e].w;
    UNROLL
    for (int e = 0; e < 4 * kVectors; ++e) {
      magnitude = max_or_nan(magnitude, fabsf(v[e]));
      v[e] *= scale.factor;
    }
    UNROLL
    for (int h = 0; h < 2; ++h) split_half(v + 4 * h * kNumbers, high, position, h);
    return fits_scale(magnitude, scale);
  }
  // A splitting warp has every seventh eight of positions of a box, at most four. It asks for the pixels of all of
  // them, and only then waits for the box's slot.
  __device__ __forceinline__ void split_box(int number, const Box& box, const InputScale& scale) const {
    constexpr int kEights = blocks_for(most_slot(N, kCut) / 8, kSplitters);
    const int splitter = warp - kConsumers / 32, b = number % kBoxes;
    const int in8 = lane / 4 % 2 ? (lane / 8 ^ 5) : lane / 8, eights = g.slot / 8;
    float4 d[kEights][kVectors];
    UNROLL
    for (int i = 0; i < kEights; ++i)
      if (const int eight = splitter + i * kSplitters; eight < eights) load(d[i], box, eight * 8 + in8);
    if (number >= kBoxes) mbarrier_wait(box_empty + b, (number / kBoxes - 1) & 1);
    bool fits = true;
    UNROLL
    for (int i = 0; i < kEights; ++i)
      if (const int eight = splitter + i * kSplitters; eight < eights)
        fits = split(d[i], boxes + b * 2 * half_box, eight * 8 + in8, scale) && fits;
    const bool all_fit = !__any_sync(~0u, !fits);
    if (lane == 0) unfit[b * 8 + splitter] = !all_fit;
    fence_async_proxy();
    __syncwarp();
    if (lane == 0) mbarrier_arrive(box_full + b);
  }
  // The boxes come in the order in which they are multiplied: of each 64 channels and each phase one for either
  // consumer, or one for both.
  __device__ __forceinline__ void split_pixels(const float* input, const InputScale* input_scale) const {
    const InputScale scale = *input_scale;
    int box = 0;
    for (int round = 0; round < rounds; ++round) {
      int block = first_block_of(round, 0), phase = 0, consumer = 0;
      while (block < first_block_of(round, 1)) {
        split_box(box++, find(tile_of(round, consumer), block, phase, input), scale);
        if (++consumer == kTiles) consumer = 0, ++phase;
        if (phase == g.phases) phase = 0, ++block;
      }
    }
  }

  // 4. The products of a tap: the small ones first.
  static __device__ __forceinline__ void multiply(float (&sums)[N / 2], std::uint64_t low_filters,
                                                  std::uint64_t high_filters, std::uint64_t high_pixels,
                                                  std::uint64_t low_pixels, bool accumulate) {
    wgmma_fence();
    if (Products == kFourProducts) {
      UNROLL
      for (int k = 0; k < 4; ++k) wgmma<N, Format>(sums, low_filters + 2 * k, low_pixels + 2 * k, accumulate || k > 0);
      accumulate = true;
    }
    if (Products >= kThreeProducts) {
      UNROLL
      for (int k = 0; k < 4; ++k) wgmma<N, Format>(sums, low_filters + 2 * k, high_pixels + 2 * k, accumulate || k > 0);
      accumulate = true;
    }
    if (Products >= kTwoProducts) {
      UNROLL
      for (int k = 0; k < 4; ++k) wgmma<N, Format>(sums, high_filters + 2 * k, low_pixels + 2 * k, accumulate || k > 0);
      accumulate = true;
    }
    UNROLL
    for (int k = 0; k < 4; ++k) wgmma<N, Format>(sums, high_filters + 2 * k, high_pixels + 2 * k, accumulate || k > 0);
    wgmma_commit();
  }

  // 5. Of a tile whose channels are in slices: leaves the sums of this one. The last consumer to do so has the sums of
  // all, in an order that does not depend on who is last, and learns whether all slices fit.
  __device__ __forceinline__ bool gather(float (&master)[N / 2], bool& fits, int round, int consumer, float4* sliced,
                                         int* counters) const {
    constexpr int kGroup = kGroupWarps * 32, kUnfit = 1 << 16, kSlice = 2 * N / 8 * kGroup;
    const std::int64_t work = work_of(round);
    const int in_group = thread % kGroup, pair = static_cast<int>(work_of(round) / g.by_slices);
    sliced += consumer * (kSlice / 2) + in_group;
    float4* const own = sliced + work * kSlice;
    UNROLL
    for (int i = 0; i < N / 8; ++i)
      own[i * kGroup] = make_float4(master[4 * i], master[4 * i + 1], master[4 * i + 2], master[4 * i + 3]);
    named_barrier_sync(1 + consumer, kGroup);
    if (in_group == 0) {
      int* const counter = counters + 2 * pair + consumer;
      const int drawn = fits ? 1 : 1 + kUnfit;
      __threadfence();
      tickets[consumer] = drawn + atomicAdd(counter, drawn);
      __threadfence();
      if (tickets[consumer] % kUnfit == g.slices) *counter = 0;  // for the next launch
    }
    named_barrier_sync(1 + consumer, kGroup);
    const int ticket = tickets[consumer];
    if (ticket % kUnfit != g.slices) return false;
    fits = ticket == g.slices;
    const float4* from = sliced + static_cast<std::int64_t>(pair) * g.slices * kSlice;
    UNROLL
    for (int i = 0; i < N / 2; ++i) master[i] = 0.0f;
    UNROLL_BY(1)
    for (int slice = 0; slice < g.slices; ++slice, from += kSlice) {
      UNROLL
      for (int i = 0; i < N / 8; ++i) {
        const float4 sums = from[i * kGroup];
        master[4 * i] += sums.x, master[4 * i + 1] += sums.y;
        master[4 * i + 2] += sums.z, master[4 * i + 3] += sums.w;
      }
    }
    return true;
  }

  // 6. A warp computes its 16 filters of a tile in double, from the numbers as they came.
  __device__ __forceinline__ void compute_anew(const float* input, const float* filter, float* output, Origin at,
                                               int first_filter) const {
    const int k = first_filter + lane % 16;
    if (k >= g.of.filters) return;
    UNROLL_BY(1)
    for (int i = lane / 16; i < N * kRows; i += 2) {
      const int p = i / kRows;
      const unsigned place = entries[p].place;
      const int image = at.image + static_cast<int>(place >> 20), x = at.x + static_cast<int>(place & 511u);
      const int y = (at.y + static_cast<int>(place >> 10 & 511u)) * kRows + i % kRows;
      if (dense[p] < 0 || image >= g.of.batch || y >= g.of.out_height || x >= g.of.out_width) continue;
      double sum = 0;
      UNROLL_BY(1)
      for (int tap = 0; tap < window(g.of); ++tap) {
        const int row = y * g.of.stride_y - g.of.pad_y + tap / g.of.columns * g.of.dilation_y;
        const int column = x * g.of.stride_x - g.of.pad_x + tap % g.of.columns * g.of.dilation_x;
        if (row < 0 || row >= g.of.height || column < 0 || column >= g.of.width) continue;
        const float* const pixel =
            input + ((static_cast<std::int64_t>(image) * g.of.height + row) * g.of.width + column) * g.of.channels;
        const float* const weights = filter + static_cast<std::int64_t>(k) * depth(g.of) + tap;
        UNROLL_BY(1)
        for (int c = 0; c < g.of.channels; ++c)
          sum += static_cast<double>(pixel[c]) * weights[static_cast<std::int64_t>(c) * window(g.of)];
      }
      output[((static_cast<std::int64_t>(image) * g.of.out_height + y) * g.of.out_width + x) * g.of.filters + k] =
          static_cast<float>(sum);
    }
  }

  // 5. The outputs of a tile, in the slot of its last box: 32 filters of each in 128 bytes, and the other 32 in the
  // half of the low halves, with TMA's swizzle. A lane has two neighbouring filters (rows f and f + 8 of the packed
  // ones) of two neighbouring positions.
  __device__ __forceinline__ void stage(const float (&master)[N / 2], SumScale even, SumScale odd,
                                        unsigned char* slot) const {
    const int byte = (warp % kGroupWarps * 16 + lane / 4 * 2) * 4;  // of the 256 of an output
    unsigned char* const lines = slot + byte / kRow * half_box + byte % 16;
    const int chunk = byte % kRow / 16;
    const int2* const own = reinterpret_cast<const int2*>(dense + lane % 4 * 2);
    UNROLL
    for (int i = 0; i < N / 8; ++i) {
      const int2 numbers = own[4 * i];
      UNROLL
      for (int e = 0; e < 2; ++e) {
        const int number = e ? numbers.y : numbers.x;
        if (number >= 0)
          *reinterpret_cast<float2*>(lines + number * kRow + (chunk ^ (number % 8)) * 16) =
              make_float2(master[4 * i + e] * even.first * even.second, master[4 * i + 2 + e] * odd.first * odd.second);
      }
    }
  }

  // The same from registers: both consumers of a shared tile have only one slot between them. Of pairs, also the
  // outputs below.
  __device__ __forceinline__ void store(const float (&master)[N / 2], const float (&below)[N / 2], SumScale even,
                                        SumScale odd, float* output, Origin at, int first_filter) const {
    const int k = first_filter + warp % kGroupWarps * 16 + lane / 4 * 2, left = g.of.filters - k;
    UNROLL
    for (int i = 0; i < N / 4; ++i) {
      const int p = i / 2 * 8 + lane % 4 * 2 + i % 2;
      const unsigned place = entries[p].place;
      const int image = at.image + static_cast<int>(place >> 20), x = at.x + static_cast<int>(place & 511u);
      const int y = (at.y + static_cast<int>(place >> 10 & 511u)) * kRows;
      if (dense[p] < 0 || image >= g.of.batch || y >= g.of.out_height || x >= g.of.out_width) continue;
      float* to =
          output + ((static_cast<std::int64_t>(image) * g.of.out_height + y) * g.of.out_width + x) * g.of.filters + k;
      UNROLL
      for (int row = 0; row < kRows; ++row, to += static_cast<std::int64_t>(g.of.out_width) * g.of.filters) {
        if (row == 1 && y + 1 == g.of.out_height) break;
        const float(&sums)[N / 2] = row == 0 ? master : below;
        const float first = sums[i / 2 * 4 + i % 2] * even.first * even.second;
        const float second = sums[i / 2 * 4 + 2 + i % 2] * odd.first * odd.second;
        if (left > 1 && g.of.filters % 2 == 0) {
          *reinterpret_cast<float2*>(to) = make_float2(first, second);
        } else {
          if (left > 0) to[0] = first;
          if (left > 1) to[1] = second;
        }
      }
    }
  }

  // Where TMA cannot store, since filters are no whole 16 bytes: the consumer's threads copy what is staged.
  __device__ __forceinline__ void copy_staged(const unsigned char* slot, float* output, Origin at, int first_filter,
                                              int in_group) const {
    const int f = in_group % kBlock;
    if (first_filter + f >= g.of.filters) return;
    UNROLL_BY(1)
    for (int p = in_group / kBlock; p < N; p += kGroupWarps * 32 / kBlock) {
      const unsigned place = entries[p].place;
      const int image = at.image + static_cast<int>(place >> 20), y = at.y + static_cast<int>(place >> 10 & 511u);
      const int x = at.x + static_cast<int>(place & 511u), number = dense[p];
      if (number < 0 || image >= g.of.batch || y >= g.of.out_height || x >= g.of.out_width) continue;
      output[((static_cast<std::int64_t>(image) * g.of.out_height + y) * g.of.out_width + x) * g.of.filters +
             first_filter + f] = *reinterpret_cast<const float*>(slot + f / 32 * half_box + number * kRow +
                                                                 ((f % 32 / 4) ^ (number % 8)) * 16 + f % 4 * 4);
    }
  }

  // Whether all pixels of a box fit. Lane 0 reads for its warp: it is the one whose arrival gives the slot back.
  __device__ __forceinline__ bool box_fits(int slot) const {
    int of_box = 0;
    if (lane == 0) {
      const int4 first = reinterpret_cast<const int4*>(unfit)[2 * slot];
      const int4 last = reinterpret_cast<const int4*>(unfit)[2 * slot + 1];
      of_box = first.x | first.y | first.z | first.w | last.x | last.y | last.z | last.w;
    }
    return __shfl_sync(~0u, of_box, 0) == 0;
  }
  // Whether all 64 filters are.
  __device__ __forceinline__ bool finite_filters(const SumScale* of_block) const {
    const SumScale mine = of_block[lane], others = of_block[lane + 32];
    return !__any_sync(~0u, mine.first == 0.0f || others.first == 0.0f);
  }

  // 4 and 5. A consumer.
  __device__ __forceinline__ void consume(const float* input, const float* filter, const SumScale* scales,
                                          float4* sliced, int* counters, const TensorMap& outputs,
                                          float* output) const {
    const int consumer = warp / kGroupWarps, of_consumer = 1 + consumer;
    const bool leads = thread % (kGroupWarps * 32) == 0, by_tma = g.of.filters % 4 == 0;
    float sums[N / 2], master[N / 2];
    const int stream = kShared ? consumer : 0, slots = slots_of(stream), first_slot = first_slot_of(stream);
    int part = 0, box = kShared ? 0 : consumer;
    int stored = -1;  // the slot that TMA still reads
    for (int round = 0; round < rounds; ++round) {
      const int steps = (first_block_of(round, 1) - first_block_of(round, 0)) * g.taps;
      bool fits = true;
      UNROLL
      for (int i = 0; i < N / 2; ++i) master[i] = 0.0f;
      int tap = 0;
      UNROLL_BY(1)
      for (int step = 0; step < steps; ++step, part += 2) {
        const int low = first_slot + part % slots, high = first_slot + (part + 1) % slots, b = box % kBoxes;
        if (g.first_taps >> tap & 1) {
          mbarrier_wait(box_full + b, box / kBoxes & 1);
          fits = box_fits(b) && fits;
        }
        mbarrier_wait(full + low, part / slots & 1);
        mbarrier_wait(full + high, (part + 1) / slots & 1);
        const std::uint64_t high_pixels =
            swizzled_descriptor(boxes + b * 2 * half_box, Swizzle::bytes128) + g.shifts[tap] * (kRow / 16);
        multiply(sums, swizzled_descriptor(ring + low * kPart, Swizzle::bytes128),
                 swizzled_descriptor(ring + high * kPart, Swizzle::bytes128), high_pixels, high_pixels + half_box / 16,
                 Products == kOneLongSum && step > 0);
        wgmma_wait<0>();
        pin(sums);
        if (lane == 0) mbarrier_arrive(empty + low);
        if (lane == 0) mbarrier_arrive(empty + high);
        if (leads && stored >= 0) {
          bulk_wait_read<0>();
          mbarrier_arrive(box_empty + stored);
          stored = -1;
        }
        if (Products != kOneLongSum) {
          UNROLL
          for (int i = 0; i < N / 2; ++i) master[i] += sums[i];
        }
        if (++tap == g.taps) tap = 0;
        if (step + 1 < steps && (g.first_taps >> tap & 1)) {
          if (lane == 0) mbarrier_arrive(box_empty + b);
          box += kTiles;
        }
      }
      if (Products == kOneLongSum) {
        UNROLL
        for (int i = 0; i < N / 2; ++i) master[i] = sums[i];
      }

      const int b = box % kBoxes, tile = tile_of(round, consumer);
      const int first_filter = filter_block_of(round, consumer) * kBlock;
      box += kTiles;
      const Origin at = origin_of(tile);
      unsigned char* const slot = boxes + b * 2 * half_box;
      bool complete = tile < g.tiles;
      if (Products == kThreeProducts && g.slices > 1 && complete)
        complete = gather(master, fits, round, consumer, sliced, counters);
      if (complete) {
        const bool finite = finite_filters(scales + first_filter);
        const SumScale* const own = scales + first_filter + warp % kGroupWarps * 16 + lane / 4 * 2;
        if (!fits || !finite) {
          compute_anew(input, filter, output, at, first_filter + warp % kGroupWarps * 16);
        } else if (kShared) {
          store(master, master, own[0], own[1], output, at, first_filter);
        } else {
          named_barrier_sync(of_consumer, kGroupWarps * 32);  // all four warps have multiplied
          stage(master, own[0], own[1], slot);
          fence_async_proxy();
          named_barrier_sync(of_consumer, kGroupWarps * 32);
          if (!by_tma) copy_staged(slot, output, at, first_filter, thread % (kGroupWarps * 32));
          if (by_tma && leads) {
            tensor_store(outputs, slot, first_filter, at.x, at.y, at.image);
            if (first_filter + 32 < g.of.filters)
              tensor_store(outputs, slot + half_box, first_filter + 32, at.x, at.y, at.image);
            bulk_commit();
            stored = b;
          }
        }
      }
      __syncwarp();
      if (lane == 0 && stored != b) mbarrier_arrive(box_empty + b);
    }
    if (leads) bulk_wait_read<0>();
  }
};

// ---- 1. Scales and filters ------------------------------------------------------------------------------------------

constexpr int kPackThreads = 256;

// The exponent of a positive number's leading bit.
__device__ __forceinline__ int leading_exponent(float value) {
  constexpr float kTwo64 = 18446744073709551616.0f;
  const bool small = value < 1.17549435e-38f;  // no leading bit in the format
  const float normal = small ? value * kTwo64 : value;
  return static_cast<int>(*reinterpret_cast<const unsigned*>(&normal) >> 23) - 127 - (small ? 64 : 0);
}
// 2 to this power, from -126 to 127.
__device__ __forceinline__ float power_of_two(int exponent) {
  const unsigned bits = static_cast<unsigned>(exponent + 127) << 23;
  return *reinterpret_cast<const float*>(&bits);
}
// Its magnitude; 0 where it is not finite.
__device__ __forceinline__ float finite_magnitude(float value) {
  const float magnitude = fabsf(value);
  return magnitude <= 3.40282347e38f ? magnitude : 0.0f;
}

__global__ void clear(int* values, int count) {
  if (const int i = blockIdx.x * kPackThreads + threadIdx.x; i < count) values[i] = 0;
}

// The largest finite magnitude of the input, as an integer: for floats that are not negative the order is the same.
__global__ void find_largest(const float* input, std::int64_t size, int* largest) {
  float magnitude = 0.0f;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kPackThreads + threadIdx.x; i < size;
       i += std::int64_t{gridDim.x} * kPackThreads)
    magnitude = fmaxf(magnitude, finite_magnitude(input[i]));
  UNROLL
  for (int bits = 16; bits > 0; bits /= 2) magnitude = fmaxf(magnitude, __shfl_xor_sync(~0u, magnitude, bits));
  if (threadIdx.x % 32 == 0) atomicMax(largest, *reinterpret_cast<const int*>(&magnitude));
}

// Brings the largest magnitude to 2^11, below 2^12; that of the sum of two numbers, too. So another input may have
// numbers 16 times as large, and a pixel's largest channel may be 2^17 times smaller, before its tile is computed anew:
// at 2^-6 its halves are right to 2^-19.
__global__ void scale_input(const int* largest, InputScale* scale, int numbers) {
  const float most = *reinterpret_cast<const float*>(largest);
  const int exponent = most > 0 ? min(max(12 - numbers - leading_exponent(most), -111), 126) : 0;
  const float back = power_of_two(-exponent), bound = 65504.0f / static_cast<float>(numbers) * back;
  *scale = {power_of_two(exponent), 0.015625f * back, fminf(bound, 3.40282347e38f), exponent};
}

// A warp a filter: brings its largest magnitude to 2^13, below 2^14. The sums are multiplied back by two powers of two.
__global__ void scale_filters(const float* filter,  // [filters][taps]
                              const InputScale* input_scale, int* exponents,
                              SumScale* scales,  // [filters, rounded up to 64]
                              int filters, int taps) {
  const int k = blockIdx.x * (kPackThreads / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  float most = 0.0f;
  bool finite = true;
  for (int i = lane; k < filters && i < taps; i += 32) {
    const float value = filter[static_cast<std::int64_t>(k) * taps + i];
    most = fmaxf(most, finite_magnitude(value));
    finite = finite && value - value == 0.0f;
  }
  UNROLL
  for (int bits = 16; bits > 0; bits /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, bits));
  finite = !__any_sync(~0u, !finite);
  if (lane != 0) return;
  const int exponent = most > 0 ? min(max(13 - leading_exponent(most), -113), 126) : 0;
  const int back = -exponent - input_scale->exponent, half_of_it = back / 2;
  exponents[k] = exponent;
  scales[k] = {finite ? power_of_two(half_of_it) : 0.0f, power_of_two(back - half_of_it)};
}

// A channel's place among the 64 of a block: see split_pixels().
__device__ __forceinline__ int channel_at(int place) {
  const int e = place % 8, chunk = place / 8 % 4;
  return place / 32 * 32 + (e < 4 ? 4 * chunk + e : 16 + 4 * chunk + e - 4);
}

// The number of a filter at a tap, scaled. F(2,3) has another one.
struct TapsAsTheyAre {
  static __device__ __forceinline__ float number(const float* taps, const Tiles& g, int tap, float factor) {
    return taps[g.tap_of[tap]] * factor;
  }
};

// A thread a word of a filter's numbers, scaled: their high parts, and their low ones.
template <class Format, class Taps>
__global__ void pack(const float* filter,   // [filters][channels][taps]
                     const int* exponents,  // [filters]
                     unsigned* packed,      // [filter block][channel block][tap][low, high][64][kWords]
                     Tiles g, int size) {
  constexpr int kNumbers = kChannels<Format> / kWords;
  const int i = blockIdx.x * kPackThreads + threadIdx.x;
  if (i >= size) return;
  const int word = i % kWords, of_block = i / kWords % kBlock;
  const int step = i / (kWords * kBlock), tap = step % g.taps, blocks = step / g.taps;
  const int k = blocks / g.channel_blocks * kBlock + of_block;
  float v[kNumbers];
  UNROLL
  for (int e = 0; e < kNumbers; ++e) {
    const int place = word * kNumbers + e;
    const int c = blocks % g.channel_blocks * kChannels<Format> + (kNumbers == 2 ? channel_at(place) : place);
    v[e] = 0.0f;
    if (k < g.of.filters && c < g.of.channels)
      v[e] = Taps::number(filter + (static_cast<std::int64_t>(k) * g.of.channels + c) * window(g.of), g, tap,
                          power_of_two(exponents[k]));
  }
  const int row = of_block / 16 * 16 + of_block % 2 * 8 + of_block % 16 / 2;  // so that a lane gets two neighbours
  unsigned* const to =
      packed + static_cast<std::int64_t>(step) * (kPart / 2) + row * kWords + (word / 4 ^ row % 8) * 4 + word % 4;
  split_word(Format{}, v, to[kPart / 4], to[0]);
}

// ---- The kernel -----------------------------------------------------------------------------------------------------

template <int N, int Products, Cut kCut, class Format>
__global__ void __launch_bounds__(kThreads, 1)
    split_multiply(const float* input,             // [batch][height][width][channels]
                   const unsigned* packed,         // [filter block][channel block][tap][low, high][64][kWords]
                   const InputScale* input_scale,  //
                   const SumScale* scales,         // [filters, rounded up to 64]
                   const float* filter,            // [filters][channels][rows][columns], as it came
                   float4* sliced,                 // [work item][consumer][N / 8][thread]; without slices none
                   int* counters,                  // [pair][consumer]: slices that are done; without slices none
                   const __grid_constant__ TensorMap outputs,
                   float* output,  // [batch][out_height][out_width][filters]
                   const __grid_constant__ Tiles g) {
  const SplitBlock<N, Products, kCut, Format> block{g};
  block.start();
  __syncthreads();
  if (block.warp >= kConsumers / 32) {
    set_max_registers_decrease<104>();
    if (block.warp < kConsumers / 32 + kSplitters)
      block.split_pixels(input, input_scale);
    else if (block.lane == 0)
      block.produce_filters(packed);
    return;
  }
  set_max_registers_increase<152>();
  block.consume(input, filter, scales, sliced, counters, outputs, output);
}

}  // namespace
}  // namespace convladder
