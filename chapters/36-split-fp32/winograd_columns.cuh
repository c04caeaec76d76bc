// 36 split-fp32 with F(2,3) down the columns in front of the split (transform=f23).
//
//   V0 = d0 - d2, V1 = d1 + d2, V2 = d2 - d1, V3 = d1 - d3                 of rows d0 to d3 of the padded input
//   U0 = g0, U1 = (g0 + g1 + g2) / 2, U2 = (g0 - g1 + g2) / 2, U3 = g2     of the rows of a filter
//   y0 = m0 + m1 + m2, y1 = m1 - m2 - m3, where m_j = V_j U_j              summed over columns and channels
//
// Two rows of outputs take 4 phases of 3 taps, where directly they take 2 x 9 taps. V is made in fp32 and then split,
// so all else is as in split_fp32.cuh, in the block of its shared tiles: a position of a tile is a pair of outputs, one
// below the other.
//
//   1. In prepare(): scales as there, for sums of two numbers; and the filters transformed before they are split.
//   2. A producer thread asks for the filters, tap by tap, into a ring, as there.
//   3. Seven splitting warps load four rows of fp32 pixels once, make V0 to V3, and store the halves of each in a box
//      of its own. So their registers hold 32 channels of 8 positions at a time, and not whole boxes.
//   4. Two consumers have one tile, and 64 filters each. Each adds the sums of a tap to two master sums.
//   5. Lanes store both rows of outputs from registers.
//   6. A tile with numbers that do not fit is computed anew in double, without transforming and splitting.
#pragma once
#include "chapters/36-split-fp32/split_fp32.cuh"

namespace convladder {
namespace {

template <int N>
struct ColumnsBlock : SplitBlock<N, kThreeProducts, Cut::row_pairs, Fp16> {
  using Block = SplitBlock<N, kThreeProducts, Cut::row_pairs, Fp16>;
  using Block::full, Block::empty, Block::box_full, Block::box_empty, Block::kBoxes;
  using Block::g, Block::boxes, Block::half_box, Block::entries, Block::ring, Block::rounds, Block::warp, Block::lane;

  // 3. The boxes of a channel block, as a splitting warp loads them.
  struct Boxes {
    unsigned least, most;  // of the places whose image and column exist
    int y;                 // row d0 of place 0
    const float* first;    // the lane's first channel of row d0's pixel at place 0, which may lie outside
    int left;              // channels from there on
  };
  __device__ __forceinline__ Boxes find(int tile, int block, const float* input) const {
    const int channel = block * kBlock + 4 * (lane % 4);
    const Origin at = Block::origin_of(tile);
    const int y = 2 * at.y - g.of.pad_y, x = at.x - g.of.pad_x;
    Boxes made;
    made.most = kGuards | packed_place(min(g.images, g.of.batch - at.image) - 1, kNowhere - 1,
                                       Block::last_inside(x, 1, g.of.width));
    made.least = packed_place(0, 0, Block::first_inside(x, 1, g.of.width));
    made.y = y;
    made.first =
        input + ((static_cast<std::int64_t>(at.image) * g.of.height + y) * g.of.width + x) * g.of.channels + channel;
    made.left = g.of.channels - channel;
    return made;
  }
  // Four rows of a position: of the 32 channels that come first, or last, those that the lane has.
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
        const float4 v = Block::load_four(at + 16 * e, left - 16 * e, inside);
        d[r][4 * e] = v.x, d[r][4 * e + 1] = v.y, d[r][4 * e + 2] = v.z, d[r][4 * e + 3] = v.w;
      }
    }
  }
  // Scales them, and tells whether all fit.
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
      fits = Block::fits_scale(magnitude, scale) && fits;
    }
    return fits;
  }
  static __device__ __forceinline__ float transformed(const float (&d)[4][8], int phase, int e) {
    return phase == 0   ? d[0][e] - d[2][e]
           : phase == 1 ? d[1][e] + d[2][e]
           : phase == 2 ? d[2][e] - d[1][e]
                        : d[1][e] - d[3][e];
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
      for (int phase = 0; phase < kPhasesOfPairs; ++phase) {
        const int box = number + phase, b = box % kBoxes;
        if (unit == splitter && box >= kBoxes) mbarrier_wait(box_empty + b, (box / kBoxes - 1) & 1);
        float v[8];
        UNROLL
        for (int e = 0; e < 8; ++e) v[e] = transformed(d, phase, e);
        Block::split_half(v, boxes + b * 2 * half_box, position, unit % 2);
      }
    }
    const bool all_fit = !__any_sync(~0u, !fits);
    fence_async_proxy();
    UNROLL
    for (int phase = 0; phase < kPhasesOfPairs; ++phase)
      if (lane == 0) Block::unfit[(number + phase) % kBoxes * 8 + splitter] = !all_fit;
    __syncwarp();
    UNROLL
    for (int phase = 0; phase < kPhasesOfPairs; ++phase)
      if (lane == 0) mbarrier_arrive(box_full + (number + phase) % kBoxes);
  }
  __device__ __forceinline__ void split_pixels(const float* input, const InputScale* input_scale) const {
    const InputScale scale = *input_scale;
    int box = 0;
    for (int round = 0; round < rounds; ++round)
      for (int block = 0; block < g.channel_blocks; ++block, box += kPhasesOfPairs)
        split_block(box, find(Block::tile_of(round, 0), block, input), scale);
  }

  // 4. The products of a tap, the small ones first. Those with low filters are a group of their own, since their slot
  // is free for the next filters when they are done.
  static __device__ __forceinline__ void multiply_low(float (&sums)[N / 2], std::uint64_t low_filters,
                                                      std::uint64_t high_pixels) {
    wgmma_fence();
    UNROLL
    for (int k = 0; k < 4; ++k) wgmma<N>(sums, low_filters + 2 * k, high_pixels + 2 * k, k > 0);
    wgmma_commit();
  }
  static __device__ __forceinline__ void multiply_high(float (&sums)[N / 2], std::uint64_t high_filters,
                                                       std::uint64_t high_pixels, std::uint64_t low_pixels) {
    wgmma_fence();
    UNROLL
    for (int k = 0; k < 4; ++k) wgmma<N>(sums, high_filters + 2 * k, low_pixels + 2 * k, true);
    UNROLL
    for (int k = 0; k < 4; ++k) wgmma<N>(sums, high_filters + 2 * k, high_pixels + 2 * k, true);
    wgmma_commit();
  }

  // 4 and 5. A consumer.
  __device__ __forceinline__ void consume(const float* input, const float* filter, const SumScale* scales,
                                          float* output) const {
    const int consumer = warp / kGroupWarps;
    float sums[N / 2], above[N / 2], below[N / 2];
    const int first_slot = Block::first_slot_of(consumer), end_slot = first_slot + Block::slots_of(consumer);
    int slot = first_slot, parity = 0, box = 0;  // of the next part of filters; the next box
    const auto next_slot = [&] {
      if (++slot == end_slot) slot = first_slot, parity ^= 1;
    };
    for (int round = 0; round < rounds; ++round) {
      bool fits = true;
      UNROLL
      for (int i = 0; i < N / 2; ++i) above[i] = below[i] = 0.0f;
      UNROLL_BY(1)
      for (int step = 0; step < g.channel_blocks * kPhasesOfPairs; ++step, ++box) {
        const int b = box % kBoxes, phase = step % kPhasesOfPairs;
        mbarrier_wait(box_full + b, box / kBoxes & 1);
        fits = Block::box_fits(b) && fits;
        std::uint64_t high_pixels = swizzled_descriptor(boxes + b * 2 * half_box, Swizzle::bytes128);
        UNROLL_BY(1)
        for (int tap = 0; tap < 3; ++tap, high_pixels += kRow / 16) {
          const int low = slot;
          mbarrier_wait(full + low, parity);
          next_slot();
          multiply_low(sums, swizzled_descriptor(ring + low * kPart, Swizzle::bytes128), high_pixels);
          const int high = slot;
          mbarrier_wait(full + high, parity);
          next_slot();
          multiply_high(sums, swizzled_descriptor(ring + high * kPart, Swizzle::bytes128), high_pixels,
                        high_pixels + half_box / 16);
          wgmma_wait<1>();
          if (lane == 0) mbarrier_arrive(empty + low);
          wgmma_wait<0>();
          pin(sums);
          if (lane == 0) mbarrier_arrive(empty + high);
          if (tap == 2 && lane == 0) mbarrier_arrive(box_empty + b);
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
      const int first_filter = Block::filter_block_of(round, consumer) * kBlock;
      const Origin at = Block::origin_of(Block::tile_of(round, consumer));
      const bool finite = Block::finite_filters(scales + first_filter);
      const SumScale* const own = scales + first_filter + warp % kGroupWarps * 16 + lane / 4 * 2;
      if (fits && finite)
        Block::store(above, below, own[0], own[1], output, at, first_filter);
      else
        Block::compute_anew(input, filter, output, at, first_filter + warp % kGroupWarps * 16);
      __syncwarp();
    }
  }
};

// 1. A transformed filter's number of a phase and column: scaled first, so that its sum cannot overflow, and summed in
// double, so that it is rounded once.
struct TransformedTaps {
  static __device__ __forceinline__ float number(const float* taps, const Tiles&, int tap, float factor) {
    const float* const column = taps + tap % 3;
    const double g0 = column[0] * factor, g1 = column[3] * factor, g2 = column[6] * factor;
    const int phase = tap / 3;
    return static_cast<float>(phase == 0 ? g0 : phase == 1 ? (g0 + g1 + g2) / 2 : phase == 2 ? (g0 - g1 + g2) / 2 : g2);
  }
};

template <int N>
__global__ void __launch_bounds__(kThreads, 1)
    split_columns(const float* input,             // [batch][height][width][channels]
                  const unsigned* packed,         // [filter block][channel block][tap][low, high][64][kWords]
                  const InputScale* input_scale,  //
                  const SumScale* scales,         // [filters, rounded up to 128]
                  const float* filter,            // [filters][channels][3][3], as it came
                  float* output,                  // [batch][out_height][out_width][filters]
                  const __grid_constant__ Tiles g) {
  const ColumnsBlock<N> block{{g}};
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
