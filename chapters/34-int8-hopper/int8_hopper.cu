// 34 int8-hopper: the product of 32 in bytes.
//
//   q = x / step, rounded, from -127 to 127         the input has one step, the output one, and each filter its own
//   sum[filters][pixels] += q_filter[filters][channels] of a tap x q_input[channels][pixels, shifted by the tap]
//   output = sum * (input_step * filter_step / output_step), rounded, from -127 to 127
//
// Since 32: input and output have half the bytes, and a wgmma of bytes multiplies 32 channels in the time of 16. Its
// sums are exact. What is lost is lost in rounding to 8 bits: the input and the output before and behind this stage,
// the filters in prepare(), each by its own largest tap. So only the way out is new: a sum times its filter's scale
// becomes a byte, and the bytes of two filters leave together, as one half did.
//
//   1. In prepare(): a warp finds the step of a filter and packs its taps as bytes. Filters 2 i and 2 i + 1 of 16 are
//      rows i and i + 8 of the product: a lane that holds row i holds row i + 8, too, and so two neighbouring filters.
//   2. `rows`, up to 64 channels, as in 32. A pixel is 64 bytes long, with the swizzle for rows of 64 bytes.
//   3. Two warpgroups in turn. A row of outputs leaves in one piece.
//   4. `tiles`, more channels: 128 of them are as long as 64 were, so nothing but the number of channels has changed.
//   5. As in 32, but a lane stores the 16 filters of its warp for a position.

#include "chapters/32-implicit-gemm-hopper/strips_and_tiles.cuh"
#include "common/stage/tunable.hpp"
#include "common/stage/workspace.hpp"
//
#include "common/kernel/mma.hpp"

namespace convladder {
namespace {

constexpr int kByte = 1;                              // the size of an element
constexpr int kRowPixel = kRowChannels;               // bytes of a pixel for `rows`
constexpr int kRowTap = kFilters * kRowPixel;         // and of a tap of a warpgroup's filters
constexpr int kWarpFilters = 16;                      // of a warp: the bytes of a chunk
constexpr int kStaged = kStagedBytes / kWarpFilters;  // positions that a warp of `tiles` stores at a time
constexpr float kLargest = 127.0f;
constexpr float kLeastStep = 0x1p-126f;                                  // of a filter of zeros
constexpr double kMostScale = 0x1.fffffep127;                            // zero times it is zero
constexpr int kMostChannels = 0x7fffffff / (127 * 127 * kTaps * kTaps);  // whose sums always fit in 32 bits

// The descriptor of what lies so many bytes behind.
__device__ __forceinline__ std::uint64_t behind(std::uint64_t descriptor, int bytes) { return descriptor + bytes / 16; }

// Where channel c of a row lies, of so many rows of Pixel bytes with the copy engine's swizzle.
template <int Pixel>
__device__ __forceinline__ int swizzled(int row, int c) {
  constexpr int kChunks = Pixel / kChunkBytes, kLine = 128;
  return row * Pixel + (c / kChunkBytes ^ row * Pixel / kLine % kChunks) * kChunkBytes + c % kChunkBytes;
}

// The output of a sum as a byte, the lowest of the result. The scale is over 254, so that -127 to 127 steps become 0 to
// 1: the instruction that multiplies saturates, too. To add 1.5 * 2^23 rounds to an integer, in the lowest bits.
__device__ __forceinline__ unsigned byte_of(int sum, float scale) {
  const float share = __saturatef(__fmaf_rn(static_cast<float>(sum), scale, 0.5f));
  return __float_as_uint(__fmaf_rn(share, 2 * kLargest, 0x1.8p23f - kLargest));
}

// Two filters of each of two pixels, from a lane's four sums.
__device__ __forceinline__ unsigned bytes_of(const int* d, float2 scale) {
  const unsigned first = __byte_perm(byte_of(d[0], scale.x), byte_of(d[2], scale.y), 0x0040),
                 second = __byte_perm(byte_of(d[1], scale.x), byte_of(d[3], scale.y), 0x0040);
  return __byte_perm(first, second, 0x5410);
}

// Starts the products of so many taps with the pixels that each begins at. ptxas wants fence, wgmmas and commit without
// a branch between: where the steps are not always the same, each is a group of its own.
template <int N, int Taps, int Pixel>
__device__ __forceinline__ void multiply_taps(int (&sums)[N / 2], std::uint64_t a, std::uint64_t b, int steps,
                                              bool accumulate) {
  constexpr int kSteps = Pixel / kStepBytes;
  const auto multiply = [&](int s, int step) {
    const int channel = step * kStepBytes;
    wgmma<N>(sums, behind(a, s * kFilters * Pixel + channel), behind(b, s * Pixel + channel),
             accumulate || s > 0 || step > 0);
  };
  if (steps == kSteps) {
    wgmma_fence();
    UNROLL
    for (int i = 0; i < Taps * kSteps; ++i) multiply(i / kSteps, i % kSteps);
    wgmma_commit();
    return;
  }
  UNROLL_BY(1)
  for (int s = 0; s < Taps; ++s) {
    UNROLL_BY(1)
    for (int step = 0; step < steps; ++step) {
      wgmma_fence();
      multiply(s, step);
      wgmma_commit();
    }
  }
}

// 1. A warp packs a filter, or zeros past the last.
template <int Pixel>
__global__ void pack(const float* filter,  // [filters][channels][3][3]
                     std::int8_t* packed,  // [filter block][channel block][tap][64][Pixel]
                     float* scales,        // [filter block][64]: of a sum, over 254
                     int filters, int channels, int channel_blocks, double input_scale) {
  const int k = static_cast<int>(blockIdx.x * kThreads + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (k >= blocks_for(filters, kFilters) * kFilters) return;
  const float* const taps = filter + k * channels * (kTaps * kTaps);
  float largest = 0.0f;
  for (int i = lane; k < filters && i < channels * kTaps * kTaps; i += 32) largest = fmaxf(largest, fabsf(taps[i]));
  for (int bits = 16; bits > 0; bits /= 2) largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, bits));
  const float step = fmaxf(largest / kLargest, kLeastStep);
  if (lane == 0) scales[k] = static_cast<float>(fmin(input_scale * step, kMostScale));
  const int of_block = k % kFilters, of_warp = of_block % kWarpFilters;
  const int row = of_block - of_warp + of_warp / 2 + of_warp % 2 * (kWarpFilters / 2);
  std::int8_t* const block = packed + k / kFilters * channel_blocks * (kTaps * kTaps * kFilters * Pixel);
  for (int i = lane; i < channel_blocks * kTaps * kTaps * Pixel; i += 32) {
    const int tap = i / Pixel, c = tap / (kTaps * kTaps) * Pixel + i % Pixel;
    const bool inside = k < filters && c < channels;
    const float steps = inside ? taps[c * kTaps * kTaps + tap % (kTaps * kTaps)] / step : 0.0f;
    block[tap * kFilters * Pixel + swizzled<Pixel>(row, i % Pixel)] =
        static_cast<std::int8_t>(__float2int_rn(fminf(fmaxf(steps, -kLargest), kLargest)));
  }
}

// Pixels whose channels are no whole chunks, with zeros to make them so: the copy engine wants multiples of 16 bytes.
__global__ void widen(const std::int8_t* input,  // [pixels][channels]
                      std::int8_t* wide,         // [pixels][wide_channels]
                      std::int64_t size, int channels, int wide_channels) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= size) return;
  const int c = static_cast<int>(i % wide_channels);
  wide[i] = c < channels ? input[i / wide_channels * channels + c] : std::int8_t{0};
}

// ---- Rows -----------------------------------------------------------------------------------------------------------

// What shared memory holds for strips of N pixels: all taps, the ring, and a row of outputs a warpgroup.
template <int N>
struct RowMemory {
  static constexpr int kSlots = 10;
  static constexpr int kRow = N + kTaps - 1;  // pixels that the taps of a row reach
  static constexpr int kSlot = (kRow + 7) / 8 * 8 * kRowPixel;
  static constexpr int kOutputs = N * kRowPixel;
  static constexpr int kBytes =
      kTaps * kTaps * kRowTap + kSlots * kSlot + 2 * kOutputs + (2 * kSlots + kTaps) * sizeof(Mbarrier);
};

template <int N>
__global__ void __launch_bounds__(kRowThreads, 1)
    multiply_rows(const __grid_constant__ TensorMap input,   // [batch][height][width][channels]
                  const __grid_constant__ TensorMap output,  // [batch][out_height][out_width][filters]
                  const std::int8_t* packed,                 // [filter block][tap][64][64]
                  const float* scales,                       // [filter block][64]
                  std::int8_t* unaligned_output,             // in place of the map, where filters are no whole chunks
                  Rows g) {
  using Memory = RowMemory<N>;
  constexpr int kSlots = Memory::kSlots;
  unsigned char* const taps = dynamic_shared_1024<unsigned char>();  // [tap][64 filters][kRowPixel]
  unsigned char* const ring = taps + kTaps * kTaps * kRowTap;        // [kSlots][kSlot]
  unsigned char* const staging = ring + kSlots * Memory::kSlot;      // [2][N][64 filters]
  Mbarrier* const full = reinterpret_cast<Mbarrier*>(staging + 2 * Memory::kOutputs);
  Mbarrier* const empty = full + kSlots;
  Mbarrier* const taps_full = empty + kSlots;  // [row of the filter]
  const int warp = warp_index(), thread = threadIdx.x, lane = thread % 32;
  const int filter_block = static_cast<int>(blockIdx.x) % g.filter_blocks;
  const std::int64_t part = blockIdx.x / g.filter_blocks, parts = gridDim.x / g.filter_blocks;
  const int begin = static_cast<int>(part * g.rows / parts), end = static_cast<int>((part + 1) * g.rows / parts);
  struct Place {
    int image, x, y;
  };
  const auto place_of = [&](int row) {
    const unsigned column = static_cast<unsigned>(row) / g.by_height;
    return Place{static_cast<int>(column / g.by_strips), static_cast<int>(column % g.by_strips) * N,
                 static_cast<int>(static_cast<unsigned>(row) % g.by_height)};
  };

  // The row of outputs y needs the rows of pixels y, y + 1 and y + 2.
  const auto load = [&](int entry, const Place& place, int r) {
    mbarrier_expect(full + entry % kSlots, Memory::kRow * kRowPixel);
    tensor_load(ring + entry % kSlots * Memory::kSlot, input, full + entry % kSlots, 0, place.x - g.pad_x,
                place.y + r - g.pad_y, place.image);
  };
  if (thread == kConsumers) {
    for (int slot = 0; slot < kSlots; ++slot) {
      mbarrier_init(full + slot, 1);
      mbarrier_init(empty + slot, kConsumerWarps);
    }
    for (int r = 0; r < kTaps; ++r) mbarrier_init(taps_full + r, 1);
    fence_mbarrier_init();
    // 2. What the first row of outputs needs is on its way before the warps meet, in the order in which it is needed.
    for (int r = 0; r < kTaps; ++r) {
      load(r, place_of(begin), r);
      mbarrier_expect(taps_full + r, kTaps * kRowTap);
      bulk_load(taps + r * kTaps * kRowTap, packed + (filter_block * kTaps + r) * (kTaps * kRowTap), kTaps * kRowTap,
                taps_full + r);
    }
  }
  __syncthreads();

  // Of the three rows of pixels only the last is new, but at the top of a strip.
  if (warp == kConsumerWarps) {
    if (lane != 0) return;
    int entry = kTaps;  // rows of pixels so far
    for (int row = begin + 1; row < end; ++row) {
      const Place place = place_of(row);
      for (int r = place.y == 0 ? 0 : kTaps - 1; r < kTaps; ++r, ++entry) {
        if (entry >= kSlots) mbarrier_wait(empty + entry % kSlots, (entry / kSlots - 1) & 1);
        load(entry, place, r);
      }
    }
    return;
  }

  // 3.
  const int group = warp / 4, own_turn = 1 + group, other_turn = 2 - group, of_group = 3 + group;  // named barriers
  const bool leads = thread % 128 == 0;
  const auto first_entry = [&](int row) {
    return row - begin +
           (kTaps - 1) *
               static_cast<int>(static_cast<unsigned>(row) / g.by_height - static_cast<unsigned>(begin) / g.by_height);
  };
  const auto wait_full = [&](int entry) { mbarrier_wait(full + entry % kSlots, entry / kSlots & 1); };
  const auto release = [&](int entry) {
    if (lane == 0) mbarrier_arrive(empty + entry % kSlots);
  };
  const int first_filter = filter_block * kFilters + warp % 4 * kWarpFilters;  // of the warp
  const float2 scale = *reinterpret_cast<const float2*>(scales + first_filter + lane / 4 * 2);
  // Where this lane's row of the matrices goes that stmatrix turns around: pixels 0 to 31, filters of the warp.
  unsigned char* const stage = staging + group * Memory::kOutputs;
  unsigned char* const stage_row = stage + swizzled<kRowPixel>(lane, warp % 4 * kWarpFilters);
  int sums[N / 2];
  int released = 0;
  for (int row = begin + group; row < end; row += 2) {
    const Place place = place_of(row);
    const int entry = first_entry(row);
    for (; released < entry; ++released) {  // what only the other warpgroup reads
      wait_full(released);
      release(released);
    }
    if (row > begin) named_barrier_sync(own_turn, kConsumers);
    UNROLL
    for (int r = 0; r < kTaps; ++r) {
      wait_full(entry + r);
      mbarrier_wait(taps_full + r, 0);
      const std::uint64_t a = swizzled_descriptor(taps + r * kTaps * kRowTap, Swizzle::bytes64);
      const std::uint64_t b = swizzled_descriptor(ring + (entry + r) % kSlots * Memory::kSlot, Swizzle::bytes64);
      multiply_taps<N, kTaps, kRowPixel>(sums, a, b, g.steps, r > 0);
      if (r == kTaps - 1 && row + 1 < end) named_barrier_arrive(other_turn, kConsumers);
      if (r > 0) {
        wgmma_wait<1>();
        release(released++);
      }
    }
    wgmma_wait<0>();
    pin(sums);

    if (leads) bulk_wait_read<0>();
    named_barrier_sync(of_group, 128);  // the buffer is free
    UNROLL
    for (int j = 0; j < N / 8; j += 4) {
      const int* const d = sums + 4 * j;
      unsigned char* const to = stage_row + j * 8 * kRowPixel;
      if (j + 2 < N / 8)
        stmatrix_transposed<4>(
            to, {bytes_of(d, scale), bytes_of(d + 4, scale), bytes_of(d + 8, scale), bytes_of(d + 12, scale)});
      else
        stmatrix_transposed<2>(to, {bytes_of(d, scale), bytes_of(d + 4, scale)});
    }
    fence_async_proxy();
    named_barrier_sync(of_group, 128);
    const int k = filter_block * kFilters;
    if (g.filters % kChunkBytes == 0) {
      if (leads) tensor_store(output, stage, k, place.x, place.y, place.image);
      if (leads) bulk_commit();
    } else if (const int f = thread % kFilters; k + f < g.filters) {
      for (int i = thread % 128 / kFilters; i < min(N, g.out_width - place.x); i += 2)
        unaligned_output[((place.image * g.out_height + place.y) * g.out_width + place.x + i) * g.filters + k + f] =
            static_cast<std::int8_t>(stage[swizzled<kRowPixel>(i, f)]);
    }
  }
  if (leads) bulk_wait<0>();
}

// ---- Tiles ----------------------------------------------------------------------------------------------------------

template <int N>
__global__ void __launch_bounds__(kTileThreads, 1)
    multiply_tiles(const __grid_constant__ TensorMap input,  // [batch][height][width][channels]
                   const std::int8_t* packed,                // [filter block][channel block][tap][64][128]
                   const float* scales,                      // [filter block][64]
                   std::int8_t* output,                      // [batch][out_height][out_width][filters]
                   Tiles g) {
  constexpr int kFilterSlots = TileMemory(N).filter_slots, kPixelSlots = TileMemory(N).pixel_slots;
  unsigned char* const filter_ring = dynamic_shared_1024<unsigned char>();  // [kFilterSlots][64 filters][kTilePixel]
  unsigned char* const ring = filter_ring + kFilterSlots * kTileTap;        // [kPixelSlots][slot][kTilePixel]
  unsigned char* const staging = ring + kPixelSlots * g.slot * kTilePixel;  // [warp][2][kStaged][16 filters]
  Mbarrier* const filters_full = reinterpret_cast<Mbarrier*>(staging + kConsumerWarps * 2 * kStagedBytes);
  Mbarrier* const filters_empty = filters_full + kFilterSlots;
  Mbarrier* const full = filters_empty + kFilterSlots;
  Mbarrier* const empty = full + kPixelSlots;
  const int warp = warp_index(), thread = threadIdx.x, lane = thread % 32;
  struct Place {
    int filter_block, image, x, y;
  };
  const auto place_of = [&](int work) {
    const unsigned tile = static_cast<unsigned>(work) / g.by_filter_blocks, row = tile / g.by_strips;
    return Place{static_cast<int>(static_cast<unsigned>(work) % g.by_filter_blocks),
                 static_cast<int>(row / g.by_row_tiles) * g.images,
                 static_cast<int>(tile % g.by_strips) * g.tile_columns,
                 static_cast<int>(row % g.by_row_tiles) * g.tile_rows};
  };

  if (thread == kConsumers) {
    for (int slot = 0; slot < kFilterSlots; ++slot) {
      mbarrier_init(filters_full + slot, 1);
      mbarrier_init(filters_empty + slot, kGroupWarps);
    }
    for (int slot = 0; slot < kPixelSlots; ++slot) {
      mbarrier_init(full + slot, 1);
      mbarrier_init(empty + slot, kGroupWarps);
    }
    fence_mbarrier_init();
  }
  // What lies behind a box is read, too: for the last column of a tile as the zero column beyond it, and for positions
  // that are no outputs.
  const int rest = (g.slot - g.box) * (kTilePixel / 16);
  for (int i = thread; i < kPixelSlots * rest; i += kTileThreads)
    *reinterpret_cast<uint4*>(ring + (i / rest * g.slot + g.box) * kTilePixel + i % rest * 16) = make_uint4(0, 0, 0, 0);
  fence_async_proxy();
  __syncthreads();

  // 4.
  if (warp >= kConsumerWarps) set_max_registers_decrease<40>();
  if (warp == kConsumerWarps) {
    if (lane != 0) return;
    int load = 0;
    for (int work = blockIdx.x; work < g.works; work += gridDim.x) {
      const Place place = place_of(work);
      for (int c = 0; c < g.channels; c += kTilePixel, ++load) {
        const int slot = load % kPixelSlots;
        if (load >= kPixelSlots) mbarrier_wait(empty + slot, (load / kPixelSlots - 1) & 1);
        mbarrier_expect(full + slot, g.box * kTilePixel);
        tensor_load(ring + slot * g.slot * kTilePixel, input, full + slot, c, place.x - g.pad_x, place.y - g.pad_y,
                    place.image);
      }
    }
    return;
  }
  if (warp == kConsumerWarps + 1) {
    if (lane != 0) return;
    const int taps = g.channel_blocks * kTaps * kTaps;
    int load = 0;
    for (int work = blockIdx.x; work < g.works; work += gridDim.x) {
      const std::int8_t* const of_block = packed + static_cast<unsigned>(work) % g.by_filter_blocks * taps * kTileTap;
      for (int tap = 0; tap < taps; ++tap, ++load) {
        const int slot = load % kFilterSlots;
        if (load >= kFilterSlots) mbarrier_wait(filters_empty + slot, (load / kFilterSlots - 1) & 1);
        mbarrier_expect(filters_full + slot, kTileTap);
        bulk_load(filter_ring + slot * kTileTap, of_block + tap * kTileTap, kTileTap, filters_full + slot);
      }
    }
    return;
  }
  if (warp > kConsumerWarps + 1) return;

  // 5.
  set_max_registers_increase<232>();
  const int group = warp / 4, own_turn = 1 + group, other_turn = 2 - group;  // named barriers
  unsigned char* const staged = staging + warp * 2 * kStagedBytes;
  int sums[N / 2];
  int pixels = group * g.channel_blocks, taps = pixels * kTaps * kTaps;  // loads so far, of both warpgroups
  const auto release = [&](Mbarrier* barriers, int slot) {
    if (lane == 0) mbarrier_arrive(barriers + slot);
  };
  for (int work = blockIdx.x + group * gridDim.x; work < g.works; work += 2 * gridDim.x) {
    // Whose turn it is knows that all earlier loads have come: else a wait by parity could be for the use before.
    if (work >= static_cast<int>(gridDim.x)) named_barrier_sync(own_turn, kConsumers);
    bool first = true;
    for (int c = 0; c < g.channels; c += kTilePixel, ++pixels) {
      const int steps = min(kTilePixel / kStepBytes, blocks_for(g.channels - c, kStepBytes));
      mbarrier_wait(full + pixels % kPixelSlots, pixels / kPixelSlots & 1);
      const std::uint64_t b = swizzled_descriptor(ring + pixels % kPixelSlots * g.slot * kTilePixel, Swizzle::bytes128);
      UNROLL_BY(1)
      for (int tap = 0; tap < kTaps * kTaps; ++tap, ++taps) {
        mbarrier_wait(filters_full + taps % kFilterSlots, taps / kFilterSlots & 1);
        const std::uint64_t a = swizzled_descriptor(filter_ring + taps % kFilterSlots * kTileTap, Swizzle::bytes128);
        const int shift = (tap / kTaps * g.row_pitch + tap % kTaps) * kTilePixel;
        multiply_taps<N, 1, kTilePixel>(sums, a, behind(b, shift), steps, !first);
        wgmma_wait<1>();  // the tap before
        if (!first) release(filters_empty, (taps - 1) % kFilterSlots);
        if (!first && tap == 0) release(empty, (pixels - 1) % kPixelSlots);
        first = false;
      }
    }
    if (work + static_cast<int>(gridDim.x) < g.works) named_barrier_arrive(other_turn, kConsumers);
    wgmma_wait<0>();
    pin(sums);
    release(filters_empty, (taps - 1) % kFilterSlots);
    release(empty, (pixels - 1) % kPixelSlots);
    pixels += g.channel_blocks;  // the other's
    taps += g.channel_blocks * kTaps * kTaps;

    const Place first_output = place_of(work);
    const int k = first_output.filter_block * kFilters + warp % 4 * kWarpFilters;  // of the warp's 16
    const int images = min(g.images, g.batch - first_output.image),
              rows = min(g.tile_rows, g.out_height - first_output.y),
              columns = min(g.tile_columns, g.out_width - first_output.x);
    // Where the output at a position of the tile belongs; null where it is none.
    const auto output_at = [&](unsigned position) -> std::int8_t* {
      const unsigned in_image = position % g.by_image_pitch;
      const int i = static_cast<int>(position / g.by_image_pitch), y = static_cast<int>(in_image / g.by_row_pitch),
                x = static_cast<int>(in_image % g.by_row_pitch);
      if (i >= images || y >= rows || x >= columns) return nullptr;
      const int pixel =
          ((first_output.image + i) * g.out_height + first_output.y + y) * g.out_width + first_output.x + x;
      return output + pixel * g.filters + k;
    };
    const float2 scale = *reinterpret_cast<const float2*>(scales + k + lane / 4 * 2);
    __syncwarp();  // both buffers are read, of the tile before
    UNROLL
    for (int j = 0; j < N / 8; j += 4) {
      unsigned char* const buffer = staged + j / 4 % 2 * kStagedBytes;
      unsigned char* const row = buffer + lane * kWarpFilters;
      const int* const d = sums + 4 * j;
      const int count = j + 2 < N / 8 ? kStaged : kStaged / 2;
      if (count == kStaged)
        stmatrix_transposed<4>(
            row, {bytes_of(d, scale), bytes_of(d + 4, scale), bytes_of(d + 8, scale), bytes_of(d + 12, scale)});
      else
        stmatrix_transposed<2>(row, {bytes_of(d, scale), bytes_of(d + 4, scale)});
      __syncwarp();
      if (g.filters % kChunkBytes == 0) {
        std::int8_t* const to = lane < count ? output_at(j * 8 + lane) : nullptr;
        if (to && k < g.filters) *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(row);
      } else {
        UNROLL_BY(1)
        for (int position = lane / kWarpFilters; position < count; position += 2) {
          std::int8_t* const to = output_at(j * 8 + position);
          const int f = lane % kWarpFilters;
          if (to && k + f < g.filters) to[f] = static_cast<std::int8_t>(buffer[position * kWarpFilters + f]);
        }
      }
    }
  }
}

// ---- The stage ------------------------------------------------------------------------------------------------------

// The knob: positions of a wgmma, the width of a strip or the size of a tile. For bytes they are multiples of 16.
constexpr int kPositions[] = {64, 112, 128, 160, 208, 224, 240, 256};
constexpr Knob kKnobs[] = {{"positions", kPositions, nullptr, 8}};

// Of the kernel that the problem takes.
bool has_kernel(const ConvProblem& problem, int positions) {
  if (by_rows(problem)) return positions == 64 || positions == 112 || positions == 160 || positions == 240;
  return positions != 112 && positions != 160;
}

// Of the whole, up to a factor. A row of a strip is 18 wgmmas of N / 2 cycles, and takes as long as if each had 17
// more; filling and emptying a block half a row (measured once on an H200, strips of 112 and 240).
std::int64_t cycles_of(const ConvProblem& problem, int positions, int multiprocessors) {
  if (!by_rows(problem)) return cost_of<kByte>(problem, positions, multiprocessors);
  const Rows g = rows_of<kByte>(problem, positions);
  const int parts = parts_of(g, multiprocessors);
  return std::int64_t{blocks_for(parts * g.filter_blocks, multiprocessors)} * (2 * blocks_for(g.rows, parts) + 1) *
         (positions / 2 + 17);
}

class Int8Hopper final : public TunableStage {
  Knobs knobs() const override { return {kKnobs, 1}; }
  Verdict check_configuration(const ConvProblem& problem, const DeviceLimits&,
                              const Configuration& configuration) const override {
    const int positions = configuration.values[0];
    if (has_kernel(problem, positions)) return Verdict::accept();
    return Verdict::refuse(by_rows(problem)
                               ? "strips, for up to 64 channels, are 64, 112, 160 or 240 wide; got positions=%d"
                               : "tiles, for more than 64 channels, have 64, 128, 208, 224, 240 or 256 "
                                 "positions; got positions=%d",
                           positions);
  }
  // The least by the arithmetic; of two alike, the larger.
  Configuration default_configuration(const ConvProblem& problem, const DeviceLimits& limits) const override {
    int best = 0;
    for (const int positions : kPositions) {
      if (has_kernel(problem, positions) && (best == 0 || cycles_of(problem, positions, limits.multiprocessors) <=
                                                              cycles_of(problem, best, limits.multiprocessors)))
        best = positions;
    }
    return {{best}};
  }
  void use(const Configuration& configuration) override { positions_ = configuration.values[0]; }

  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    if (problem.c > kMostChannels)
      return Verdict::refuse("sums of 9 c products of bytes are kept in 32 bits: c at most %d; got %lld", kMostChannels,
                             static_cast<long long>(problem.c));
    return check_implicit_gemm_hopper(problem, kTilePixel, kFilters);
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const int filters = static_cast<int>(problem.k), channels = static_cast<int>(problem.c);
    const int pixel = by_rows(problem) ? kRowPixel : kTilePixel, channel_blocks = blocks_for(channels, pixel),
              padded_filters = blocks_for(filters, kFilters) * kFilters;
    packed_.allocate<std::int8_t>(std::int64_t{padded_filters} * channel_blocks * kTaps * kTaps * pixel,
                                  "packed filter");
    scales_.allocate<float>(padded_filters, "scales");
    const double input_scale = static_cast<double>(tensors.input_step) / tensors.output_step / (2 * kLargest);
    convladder::launch(by_rows(problem) ? pack<kRowPixel> : pack<kTilePixel>,
                       dim3(blocks_for(padded_filters, kThreads / 32)), dim3(kThreads), 0, stream)(
        tensors.filter, packed_.as<std::int8_t>(), scales_.floats(), filters, channels, channel_blocks, input_scale);
    if (widens<kByte>(problem)) wide_.allocate<std::int8_t>(wide_size<kByte>(problem), "widened input");
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const std::int8_t* input = tensors.byte_input;
    if (widens<kByte>(problem)) {
      const std::int64_t size = wide_size<kByte>(problem);
      convladder::launch(widen, dim3(static_cast<unsigned>((size - 1) / kThreads + 1)), dim3(kThreads), 0, stream)(
          input, wide_.as<std::int8_t>(), size, static_cast<int>(problem.c), wide_channels<kByte>(problem));
      input = wide_.as<std::int8_t>();
    }
    const auto map_of_input = [&](int box_channels, int columns, int rows, int images) {
      return map_of<kByte>(input, wide_channels<kByte>(problem), problem.w, problem.h, problem.n, box_channels, columns,
                           rows, images);
    };
    if (by_rows(problem)) {
      positions_ == 64    ? launch_rows<64>(problem, map_of_input, tensors.byte_output, stream)
      : positions_ == 112 ? launch_rows<112>(problem, map_of_input, tensors.byte_output, stream)
      : positions_ == 160 ? launch_rows<160>(problem, map_of_input, tensors.byte_output, stream)
                          : launch_rows<240>(problem, map_of_input, tensors.byte_output, stream);
      return;
    }
    const Tiles g = tiles_of<kByte>(problem, positions_);
    const TileMemory memory(positions_);
    const auto kernel = positions_ == 64    ? multiply_tiles<64>
                        : positions_ == 128 ? multiply_tiles<128>
                        : positions_ == 208 ? multiply_tiles<208>
                        : positions_ == 224 ? multiply_tiles<224>
                        : positions_ == 240 ? multiply_tiles<240>
                                            : multiply_tiles<256>;
    convladder::launch(kernel, dim3(blocks_of(g)), dim3(kTileThreads),
                       static_cast<std::size_t>(memory.fixed_bytes + memory.pixel_slots * g.slot * kTilePixel),
                       stream)(map_of_input(kTilePixel, g.row_pitch, g.image_pitch / g.row_pitch, g.images),
                               packed_.as<std::int8_t>(), scales_.floats(), tensors.byte_output, g);
  }

  template <int N, class MapOfInput>
  void launch_rows(const ConvProblem& problem, const MapOfInput& map_of_input, std::int8_t* output,
                   Stream stream) const {
    using Memory = RowMemory<N>;
    const Rows g = rows_of<kByte>(problem, N);
    const TensorMap input = map_of_input(kRowChannels, Memory::kRow, 1, 1);
    // Without whole chunks the output is no tensor that the copy engine knows, and the map is not used.
    const TensorMap to = problem.k % kChunkBytes == 0
                             ? map_of<kByte>(output, problem.k, problem.q(), problem.p(), problem.n, kFilters, N, 1, 1)
                             : input;
    const int blocks = parts_of(g, device_limits().multiprocessors) * g.filter_blocks;
    convladder::launch(multiply_rows<N>, dim3(static_cast<unsigned>(blocks)), dim3(kRowThreads), Memory::kBytes,
                       stream)(input, to, packed_.as<std::int8_t>(), scales_.floats(), output, g);
  }

  std::int64_t workspace_bytes() const override { return packed_.bytes() + scales_.bytes() + wide_.bytes(); }
  bool workspace_intact() const override { return packed_.intact() && scales_.intact() && wide_.intact(); }

  Prediction predict(const ConvProblem& problem) const override {
    Prediction p;
    const Lowering l = lowering_of(problem);
    const int channels = wide_channels<kByte>(problem);
    constexpr int kScales = 128 * static_cast<int>(sizeof(float2));  // bytes that a warpgroup's lanes ask for
    if (by_rows(problem)) {
      const Rows g = rows_of<kByte>(problem, positions_);
      const int parts = parts_of(g, device_limits().multiprocessors);
      p.global_load_bytes = (pixels_loaded(l, g, positions_, parts) * channels +
                             std::int64_t{parts} * (kTaps * kTaps * kRowTap + 2 * kScales)) *
                            g.filter_blocks;
      p.shared_store_requests = std::int64_t{g.rows} * g.filter_blocks * 4 * blocks_for(positions_, kStaged);
      if (problem.k % kChunkBytes == 0) p.shared_load_requests = 0;
      p.barriers = std::int64_t{parts} * g.filter_blocks;
    } else {
      const Tiles g = tiles_of<kByte>(problem, positions_);
      p.global_load_bytes =
          pixels_loaded(l, g) * channels * g.filter_blocks +
          std::int64_t{g.works} * (std::int64_t{g.channel_blocks} * kTaps * kTaps * kTileTap + kScales);
      const std::int64_t pieces = std::int64_t{g.works} * kGroupWarps * blocks_for(positions_, kStaged);
      const int zeros = TileMemory(positions_).pixel_slots * (g.slot - g.box) * (kTilePixel / 16);
      p.shared_store_requests = pieces + std::int64_t{blocks_of(g)} * blocks_for(zeros, 32);
      p.barriers = blocks_of(g);
    }
    p.global_store_bytes = problem.output_size();
    if (widens<kByte>(problem)) {
      p.global_load_bytes += problem.input_size();
      p.global_store_bytes += wide_size<kByte>(problem);
    }
    p.shared_load_conflicts = p.shared_store_conflicts = 0;
    p.constant_load_requests = 0;
    p.atomic_requests = 0;
    p.flops = problem.flops();
    return p;
  }

  int positions_ = 0;
  Workspace packed_, scales_, wide_;
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::Int8Hopper)
