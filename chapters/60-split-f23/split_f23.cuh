// 60 split-f23: an experiment. Stage 36 with Winograd's F(2, 3) along the height in front of the split.
//
//   V0 = d0 - d2, V1 = d1 + d2, V2 = d2 - d1, V3 = d1 - d3                 of rows d0 to d3 of the padded input
//   U0 = g0, U1 = (g0 + g1 + g2) / 2, U2 = (g0 - g1 + g2) / 2, U3 = g2     of the rows of a filter
//   y0 = m0 + m1 + m2, y1 = m1 - m2 - m3, where m_j = V_j U_j              summed over columns and channels
//
// So two rows of outputs take 12 taps instead of 18. A position of a tile is a pair of outputs, one below the other.
//
//   1. In prepare(): scales as in 36; and the filters transformed, scaled and split, [64 filters][64 channels] of low
//      halves and of high ones for each of 4 phases of 3 columns.
//   2. A producer thread asks for the filters, tap by tap, into a ring.
//   3. Seven splitting warps load four rows of fp32 pixels once, make V0 to V3, and store the halves of each in a box
//      of its own. For this their registers hold 32 channels of 8 positions at a time.
//   4. Two consumers have one tile, and 64 filters each. Each adds the sums of a tap to two master sums.
//   5. Lanes store both rows of outputs from registers.
//   6. A tile with numbers that do not fit is computed anew in double, without transforming and splitting.
#pragma once
#include "chapters/60-split-f23/tiles.hpp"
#include "common/kernel/half.hpp"
#include "common/kernel/hopper.hpp"

namespace convladder {
namespace {

constexpr int kConsumers = 256, kThreads = 512;  // threads: two consumers; all
constexpr int kSplitters = 7;                    // warps
constexpr int kGroupWarps = 4;                   // of a consumer

// When the sums are added to the master sums: after each tap, or after the three of a phase.
enum { kSumsOfTap = 1, kSumsOfPhase };

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

// Fields of 9 bits for image, row and column, each with a bit free above. In (kGuards | most) - place, and in (kGuards
// | place) - least, a guard stays set where the field is not above most, or not below least.
constexpr unsigned kGuards = 1u << 29 | 1u << 19 | 1u << 9;
constexpr int kNowhere = 511;  // in a field: above every most
__host__ __device__ __forceinline__ constexpr unsigned packed_place(int image, int row, int column) {
  return static_cast<unsigned>(image) << 20 | static_cast<unsigned>(row) << 10 | static_cast<unsigned>(column);
}

struct Origin {  // of a tile: its first image, and first output
  int image, x, y;
};

// A block, which takes every gridDim.x-th work item, and its shared memory.
template <int N, int Sums>
struct SplitBlock {
  static constexpr int kParts = parts_for(N), kStreams = 2, kTaps = 3 * kPhases;

  const Tiles& g;
  unsigned char* ring = dynamic_shared_1024<unsigned char>();  // [kParts][64 filters][kRow]
  unsigned char* boxes = ring + kParts * kPart;                // [kBoxes][high, low][slot][kRow]
  int half_box = g.slot * kRow;
  Entry* entries = reinterpret_cast<Entry*>(boxes + kBoxes * 2 * half_box);  // [slot]
  int* dense = reinterpret_cast<int*>(entries + g.slot);  // [N]: an output's number among the tile's, or -1
  int* unfit = dense + N;                                 // [kBoxes][8]: by each splitting warp, and one 0
  Mbarrier* full = reinterpret_cast<Mbarrier*>(unfit + kBoxes * 8);
  Mbarrier* empty = full + kParts;
  Mbarrier* box_full = empty + kParts;
  Mbarrier* box_empty = box_full + kBoxes;
  int warp = warp_index(), thread = threadIdx.x, lane = thread % 32;
  int first_work = blockIdx.x, step_work = gridDim.x;
  int rounds = (g.works - first_work + step_work - 1) / step_work;

  __device__ __forceinline__ unsigned work_of(int round) const { return first_work + round * step_work; }
  __device__ __forceinline__ int tile_of(int round) const {
    return static_cast<int>(work_of(round) / g.by_filter_groups);
  }
  __device__ __forceinline__ int filter_block_of(int round, int consumer) const {
    return 2 * static_cast<int>(work_of(round) % g.by_filter_groups) + consumer;
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
        mbarrier_init(empty + i, kGroupWarps);
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
      const int pixel = (image * g.of.height + 2 * row) * g.of.width + column;
      const unsigned place = p < g.box ? packed_place(image, row, column) : packed_place(kNowhere, kNowhere, kNowhere);
      *reinterpret_cast<uint2*>(entries + p) = make_uint2(static_cast<unsigned>(pixel), place);
      if (p >= N) continue;
      const bool output = image < g.images && row < g.tile_rows && column < g.tile_columns;
      dense[p] = output ? (image * g.tile_rows + row) * g.tile_columns + column : -1;
    }
  }

  // 2. Of each tap the low halves, which are multiplied first, and the high ones; of a shared tile those of the one
  // consumer, then of the other.
  __device__ __forceinline__ void produce_filters(const half* packed) const {
    const int parts = 2 * kStreams * kTaps * g.channel_blocks;
    int load = 0;
    for (int round = 0; round < rounds; ++round) {
      for (int part = 0; part < parts; ++part, ++load) {
        const std::int64_t block = filter_block_of(round, part / 2 % kStreams);
        const std::int64_t of_block = block * (parts / kStreams) + part / (2 * kStreams) * 2 + part % 2;
        const int slot = load % kParts;
        if (load >= kParts) mbarrier_wait(empty + slot, (load / kParts - 1) & 1);
        mbarrier_expect(full + slot, kPart);
        bulk_load(ring + slot * kPart, packed + of_block * (kPart / 2), kPart, full + slot);
      }
    }
  }

  // Which places of a line lie in the image: from the first to the last.
  static __device__ __forceinline__ int first_inside(int from, int stride, int size) {
    const int first = from < 0 ? (-from + stride - 1) / stride : 0;
    return from + first * stride < size ? min(first, kNowhere) : kNowhere;
  }
  static __device__ __forceinline__ int last_inside(int from, int stride, int size) {
    return size > from ? min((size - 1 - from) / stride, kNowhere - 1) : 0;
  }

  // 3. The boxes of a channel block, as a splitting warp loads them.
  struct Boxes {
    unsigned least, most;  // of the places whose image and column exist
    int y;                 // row d0 of place 0
    const float* first;    // the lane's first channel of row d0's pixel at place 0, which may lie outside
    int left;              // channels from there on
  };
  __device__ __forceinline__ Boxes find(int tile, int block, const float* input) const {
    const int channel = block * kBlock + 4 * (lane % 4);
    const Origin at = origin_of(tile);
    const int y = 2 * at.y - g.of.pad_y, x = at.x - g.of.pad_x;
    Boxes boxes_of;
    boxes_of.most =
        kGuards | packed_place(min(g.images, g.of.batch - at.image) - 1, kNowhere - 1, last_inside(x, 1, g.of.width));
    boxes_of.least = packed_place(0, 0, first_inside(x, 1, g.of.width));
    boxes_of.y = y;
    boxes_of.first =
        input + ((static_cast<std::int64_t>(at.image) * g.of.height + y) * g.of.width + x) * g.of.channels + channel;
    boxes_of.left = g.of.channels - channel;
    return boxes_of;
  }

  // A lane has 8 channels of each 32 of a position: 4 from 4 j on and 4 from 16 + 4 j on, so that 4 lanes read 64 bytes
  // at a time. The filters' channels are packed in the same order.
  __device__ __forceinline__ void load(float (&d)[4][8], const Boxes& from, int position, int half32) const {
    const Entry entry = entries[position];
    const float* at = from.first + static_cast<std::int64_t>(entry.pixel) * g.of.channels + 32 * half32;
    const int left = from.left - 32 * half32;
    const bool exists = ((from.most - entry.place) & ((kGuards | entry.place) - from.least) & kGuards) == kGuards;
    const int y = from.y + 2 * static_cast<int>(entry.place >> 10 & 511u);
    UNROLL
    for (int r = 0; r < 4; ++r, at += static_cast<std::int64_t>(g.of.width) * g.of.channels) {
      const bool inside = exists && static_cast<unsigned>(y + r) < static_cast<unsigned>(g.of.height);
      UNROLL
      for (int e = 0; e < 2; ++e) {
        float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (g.of.channels % 4 == 0) {
          if (inside && 16 * e < left) v = *reinterpret_cast<const float4*>(at + 16 * e);
        } else if (inside) {
          if (16 * e < left) v.x = at[16 * e];
          if (16 * e + 1 < left) v.y = at[16 * e + 1];
          if (16 * e + 2 < left) v.z = at[16 * e + 2];
          if (16 * e + 3 < left) v.w = at[16 * e + 3];
        }
        d[r][4 * e] = v.x, d[r][4 * e + 1] = v.y, d[r][4 * e + 2] = v.z, d[r][4 * e + 3] = v.w;
      }
    }
  }
  // Whether the 32 channels of each row fit; and scales them.
  static __device__ __forceinline__ bool scale_rows(float (&d)[4][8], const InputScale& scale) {
    bool fits = true;
    UNROLL
    for (int r = 0; r < 4; ++r) {
      float magnitude = 0.0f;
      UNROLL
      for (int e = 0; e < 8; ++e) {
        magnitude = max_or_nan(magnitude, fabsf(d[r][e]));
        d[r][e] *= scale.factor;
      }
      magnitude = max_or_nan(magnitude, __shfl_xor_sync(~0u, magnitude, 1));
      magnitude = max_or_nan(magnitude, __shfl_xor_sync(~0u, magnitude, 2));
      fits = fits && magnitude <= scale.most && (magnitude >= scale.least || magnitude == 0.0f);
    }
    return fits;
  }
  static __device__ __forceinline__ float transformed(const float (&d)[4][8], int phase, int e) {
    return phase == 0   ? d[0][e] - d[2][e]
           : phase == 1 ? d[1][e] + d[2][e]
           : phase == 2 ? d[2][e] - d[1][e]
                        : d[1][e] - d[3][e];
  }
  // Of 8 lanes that store 16 bytes at a time two positions differ in bits 0 and 2, and so they reach all 8 places of a
  // line.
  __device__ __forceinline__ void split(const float (&d)[4][8], int phase, unsigned char* high, int position,
                                        int half32) const {
    unsigned highs[4], lows[4];
    UNROLL
    for (int e = 0; e < 4; ++e) {
      const float first = transformed(d, phase, 2 * e), second = transformed(d, phase, 2 * e + 1);
      const half2 top = __floats2half2_rn(first, second);
      const float2 back = __half22float2(top);
      const half2 rest = __floats2half2_rn(first - back.x, second - back.y);
      highs[e] = *reinterpret_cast<const unsigned*>(&top);
      lows[e] = *reinterpret_cast<const unsigned*>(&rest);
    }
    unsigned char* const to = high + position * kRow + ((4 * half32 + lane % 4) ^ (position % 8)) * 16;
    *reinterpret_cast<uint4*>(to) = make_uint4(highs[0], highs[1], highs[2], highs[3]);
    *reinterpret_cast<uint4*>(to + half_box) = make_uint4(lows[0], lows[1], lows[2], lows[3]);
  }
  // A splitting warp has every seventh unit, 32 channels of eight positions. It asks for the first pixels before the
  // slots are empty.
  __device__ __forceinline__ void split_block(int number, const Boxes& from, const InputScale& scale) const {
    const int splitter = warp - kConsumers / 32, units = g.slot / 8 * 2;
    const int in8 = lane / 4 % 2 ? (lane / 8 ^ 5) : lane / 8;
    bool fits = true;
    UNROLL_BY(1)
    for (int unit = splitter; unit < units; unit += kSplitters) {
      const int position = unit / 2 * 8 + in8;
      float d[4][8];
      load(d, from, position, unit % 2);
      fits = scale_rows(d, scale) && fits;
      UNROLL
      for (int phase = 0; phase < kPhases; ++phase) {
        const int box = number + phase, b = box % kBoxes;
        if (unit == splitter && box >= kBoxes) mbarrier_wait(box_empty + b, (box / kBoxes - 1) & 1);
        split(d, phase, boxes + b * 2 * half_box, position, unit % 2);
      }
    }
    const bool all_fit = !__any_sync(~0u, !fits);
    fence_async_proxy();
    UNROLL
    for (int phase = 0; phase < kPhases; ++phase)
      if (lane == 0) unfit[(number + phase) % kBoxes * 8 + splitter] = !all_fit;
    __syncwarp();
    UNROLL
    for (int phase = 0; phase < kPhases; ++phase)
      if (lane == 0) mbarrier_arrive(box_full + (number + phase) % kBoxes);
  }
  __device__ __forceinline__ void split_pixels(const float* input, const InputScale* input_scale) const {
    const InputScale scale = *input_scale;
    int box = 0;
    for (int round = 0; round < rounds; ++round)
      for (int block = 0; block < g.channel_blocks; ++block, box += kPhases)
        split_block(box, find(tile_of(round), block, input), scale);
  }

  // 4. The products of a tap: the small ones first.
  static __device__ __forceinline__ void multiply(float (&sums)[N / 2], std::uint64_t low_filters,
                                                  std::uint64_t high_filters, std::uint64_t high_pixels,
                                                  std::uint64_t low_pixels, bool accumulate) {
    wgmma_fence();
    UNROLL
    for (int k = 0; k < 4; ++k) wgmma<N>(sums, low_filters + 2 * k, high_pixels + 2 * k, accumulate || k > 0);
    UNROLL
    for (int k = 0; k < 4; ++k) wgmma<N>(sums, high_filters + 2 * k, low_pixels + 2 * k, true);
    UNROLL
    for (int k = 0; k < 4; ++k) wgmma<N>(sums, high_filters + 2 * k, high_pixels + 2 * k, true);
    wgmma_commit();
  }

  // 6. A warp computes its 16 filters of a tile in double, from the numbers as they came.
  __device__ __forceinline__ void compute_anew(const float* input, const float* filter, float* output, Origin at,
                                               int first_filter) const {
    const int k = first_filter + lane % 16;
    if (k >= g.of.filters) return;
    UNROLL_BY(1)
    for (int p = 0; p < N; ++p) {
      const int row_of = lane / 16;
      const unsigned place = entries[p].place;
      const int image = at.image + static_cast<int>(place >> 20),
                y = 2 * (at.y + static_cast<int>(place >> 10 & 511u)) + row_of;
      const int x = at.x + static_cast<int>(place & 511u);
      if (dense[p] < 0 || image >= g.of.batch || y >= g.of.out_height || x >= g.of.out_width) continue;
      double sum = 0;
      UNROLL_BY(1)
      for (int tap = 0; tap < 9; ++tap) {
        const int row = y - g.of.pad_y + tap / 3;
        const int column = x - g.of.pad_x + tap % 3;
        if (row < 0 || row >= g.of.height || column < 0 || column >= g.of.width) continue;
        const float* const pixel =
            input + ((static_cast<std::int64_t>(image) * g.of.height + row) * g.of.width + column) * g.of.channels;
        const float* const weights = filter + static_cast<std::int64_t>(k) * g.of.channels * 9 + tap;
        UNROLL_BY(1)
        for (int c = 0; c < g.of.channels; ++c)
          sum += static_cast<double>(pixel[c]) * weights[static_cast<std::int64_t>(c) * 9];
      }
      output[((static_cast<std::int64_t>(image) * g.of.out_height + y) * g.of.out_width + x) * g.of.filters + k] =
          static_cast<float>(sum);
    }
  }

  // 5. A lane has two neighbouring filters (rows f and f + 8 of the packed ones) of two neighbouring positions.
  __device__ __forceinline__ void store(const float (&above)[N / 2], const float (&below)[N / 2], SumScale even,
                                        SumScale odd, float* output, Origin at, int first_filter) const {
    const int k = first_filter + warp % kGroupWarps * 16 + lane / 4 * 2, left = g.of.filters - k;
    const std::int64_t row = static_cast<std::int64_t>(g.of.out_width) * g.of.filters;
    UNROLL
    for (int i = 0; i < N / 4; ++i) {
      const int p = i / 2 * 8 + lane % 4 * 2 + i % 2;
      const unsigned place = entries[p].place;
      const int image = at.image + static_cast<int>(place >> 20);
      const int y = 2 * (at.y + static_cast<int>(place >> 10 & 511u)), x = at.x + static_cast<int>(place & 511u);
      if (dense[p] < 0 || image >= g.of.batch || y >= g.of.out_height || x >= g.of.out_width) continue;
      float* to =
          output + ((static_cast<std::int64_t>(image) * g.of.out_height + y) * g.of.out_width + x) * g.of.filters + k;
      UNROLL
      for (int r = 0; r < 2; ++r, to += row) {
        if (r == 1 && y + 1 >= g.of.out_height) break;
        const float first = (r == 0 ? above : below)[i / 2 * 4 + i % 2] * even.first * even.second;
        const float second = (r == 0 ? above : below)[i / 2 * 4 + 2 + i % 2] * odd.first * odd.second;
        if (left > 1 && g.of.filters % 2 == 0) {
          *reinterpret_cast<float2*>(to) = make_float2(first, second);
        } else {
          if (left > 0) to[0] = first;
          if (left > 1) to[1] = second;
        }
      }
    }
  }

  // 4 and 5. A consumer.
  __device__ __forceinline__ void consume(const float* input, const float* filter, const SumScale* scales,
                                          float* output) const {
    const int consumer = warp / kGroupWarps;
    float sums[N / 2], above[N / 2], below[N / 2];
    int part = 2 * consumer, box = 0;
    for (int round = 0; round < rounds; ++round) {
      bool fits = true;
      UNROLL
      for (int i = 0; i < N / 2; ++i) above[i] = below[i] = 0.0f;
      UNROLL_BY(1)
      for (int step = 0; step < g.channel_blocks * kPhases; ++step, ++box) {
        const int b = box % kBoxes, phase = step % kPhases;
        mbarrier_wait(box_full + b, box / kBoxes & 1);
        // Lane 0 reads for all: it is the one whose arrival gives the slot back.
        int of_box = 0;
        if (lane == 0) {
          const int4 first = reinterpret_cast<const int4*>(unfit)[2 * b];
          const int4 last = reinterpret_cast<const int4*>(unfit)[2 * b + 1];
          of_box = first.x | first.y | first.z | first.w | last.x | last.y | last.z | last.w;
        }
        fits = fits && __shfl_sync(~0u, of_box, 0) == 0;
        std::uint64_t high_pixels = swizzled_descriptor(boxes + b * 2 * half_box, Swizzle::bytes128);
        UNROLL_BY(1)
        for (int tap = 0; tap < 3; ++tap, part += 2 * kStreams, high_pixels += kRow / 16) {
          const int low = part % kParts, high = (part + 1) % kParts;
          mbarrier_wait(full + low, part / kParts & 1);
          mbarrier_wait(full + high, (part + 1) / kParts & 1);
          multiply(sums, swizzled_descriptor(ring + low * kPart, Swizzle::bytes128),
                   swizzled_descriptor(ring + high * kPart, Swizzle::bytes128), high_pixels,
                   high_pixels + half_box / 16, Sums == kSumsOfPhase && tap > 0);
          wgmma_wait<0>();
          pin(sums);
          if (lane == 0) mbarrier_arrive(empty + low);
          if (lane == 0) mbarrier_arrive(empty + high);
          if (tap == 2 && lane == 0) mbarrier_arrive(box_empty + b);
          if (Sums == kSumsOfPhase && tap < 2) continue;
          if (phase != 3) {
            UNROLL
            for (int i = 0; i < N / 2; ++i) above[i] += sums[i];
          }
          if (phase == 1) {
            UNROLL
            for (int i = 0; i < N / 2; ++i) below[i] += sums[i];
          } else if (phase != 0) {
            UNROLL
            for (int i = 0; i < N / 2; ++i) below[i] -= sums[i];
          }
        }
      }
      const int first_filter = filter_block_of(round, consumer) * kBlock;
      const Origin at = origin_of(tile_of(round));
      const SumScale* const of_block = scales + first_filter;
      const SumScale mine = of_block[lane], others = of_block[lane + 32];
      const bool finite = !__any_sync(~0u, mine.first == 0.0f || others.first == 0.0f);
      const SumScale* const own = of_block + warp % kGroupWarps * 16 + lane / 4 * 2;
      if (!fits || !finite) {
        compute_anew(input, filter, output, at, first_filter + warp % kGroupWarps * 16);
      } else {
        store(above, below, own[0], own[1], output, at, first_filter);
      }
      __syncwarp();
    }
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

// Brings the largest magnitude to 2^10, below 2^11, so that the sum of two is below 2^12. So another input may have
// numbers 16 times as large, and a pixel's largest channel may be 2^17 times smaller, before its tile is computed anew:
// at 2^-6 its halves are right to 2^-19.
__global__ void scale_input(const int* largest, InputScale* scale) {
  const float most = *reinterpret_cast<const float*>(largest);
  const int exponent = most > 0 ? min(max(10 - leading_exponent(most), -111), 126) : 0;
  const float back = power_of_two(-exponent), bound = 32752.0f * back;
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

// A thread an element: both halves of a transformed filter's number, scaled.
__global__ void pack(const float* filter,   // [filters][channels][taps]
                     const int* exponents,  // [filters]
                     half* packed,          // [filter block][channel block][tap][low, high][64][64]
                     Tiles g, int size) {
  const int i = blockIdx.x * kPackThreads + threadIdx.x;
  if (i >= size) return;
  const int place = i % kBlock, of_block = i / kBlock % kBlock;
  const int step = i / (kBlock * kBlock), tap = step % 12, phase = tap / 3, blocks = step / 12;
  const int k = blocks / g.channel_blocks * kBlock + of_block;
  const int c = blocks % g.channel_blocks * kBlock + channel_at(place);
  float value = 0.0f, rest = 0.0f;
  if (k < g.of.filters && c < g.of.channels) {
    const float* const column = filter + (static_cast<std::int64_t>(k) * g.of.channels + c) * 9 + tap % 3;
    const double d0 = column[0], d1 = column[3], d2 = column[6];
    const double sum = phase == 0 ? d0 : phase == 3 ? d2 : (d0 + d2 + (phase == 1 ? d1 : -d1)) / 2;
    const double scaled = sum * power_of_two(exponents[k]);
    value = static_cast<float>(scaled);
    rest = static_cast<float>(scaled - value);
  }
  const half high = __float2half_rn(value);
  const int row = of_block / 16 * 16 + of_block % 2 * 8 + of_block % 16 / 2;  // so that a lane gets two neighbours
  half* const to =
      packed + static_cast<std::int64_t>(step) * kPart + row * kBlock + (place / 8 ^ row % 8) * 8 + place % 8;
  to[0] = __float2half_rn(value - __half2float(high) + rest);
  to[kPart / 2] = high;
}

// ---- The kernel -----------------------------------------------------------------------------------------------------

template <int N, int Sums>
__global__ void __launch_bounds__(kThreads, 1)
    split_multiply(const float* input,             // [batch][height][width][channels]
                   const half* packed,             // [filter block][channel block][tap][low, high][64][64]
                   const InputScale* input_scale,  //
                   const SumScale* scales,         // [filters, rounded up to 128]
                   const float* filter,            // [filters][channels][rows][columns], as it came
                   float* output,                  // [batch][out_height][out_width][filters]
                   const __grid_constant__ Tiles g) {
  const SplitBlock<N, Sums> block{g};
  block.start();
  __syncthreads();
  if (block.warp >= kConsumers / 32) {
    set_max_registers_decrease<72>();
    if (block.warp < kConsumers / 32 + kSplitters)
      block.split_pixels(input, input_scale);
    else if (block.lane == 0)
      block.produce_filters(packed);
    return;
  }
  set_max_registers_increase<184>();
  block.consume(input, filter, scales, output);
}

}  // namespace
}  // namespace convladder
