// 32 implicit-gemm-hopper: the product of 31 by wgmma, from rows of pixels that the copy engine brings.
//
//   [filters][pixels] += [filters][channels] of a tap x [channels][pixels, shifted by the tap]       nine times
//
// Since 31: no tile of im2col's matrix is gathered any more. Pixels lie in shared memory as in the image, 64 channels
// in 128 bytes, one after another. The nine taps read the same pixels, each from another address: for the next column
// 128 bytes further. No thread copies, and none computes an address for each pixel: one asks for a box, and the copy
// engine (TMA) fills what lies outside of the image with zeros. Four warps together multiply 64 filters by up to 256
// pixels with one instruction, wgmma, which takes both from shared memory.
//
//   1. In prepare(): the filters as halves, [64 filters][64 channels] for each tap, with the engine's swizzle.
//   2. `rows`, up to 64 channels. All taps of 64 filters stay in shared memory. A block goes down strips of N pixels,
//      and one thread asks for each row of pixels once, into a ring.
//   3. Two warpgroups take the rows of outputs in turn: nine taps, of three rows of the ring. While one multiplies, the
//      other rounds its sums to halves and hands them to the copy engine.
//   4. `tiles`, more channels. A tile is several rows, or several images, of pixels with so much padding between that
//      they are one line of N positions: a tap's shift is one number for all of them. For each 64 channels one thread
//      asks for the tile's pixels, and another for the nine taps of 64 filters, one by one.
//   5. Two warpgroups take the works, a tile and 64 filters, in turn. The rings hold what comes next, whosever it is:
//      so one multiplies while the other stores. Positions between the rows are computed, too, and not stored.

#include "chapters/32-implicit-gemm-hopper/strips_and_tiles.cuh"
#include "common/stage/tunable.hpp"
#include "common/stage/workspace.hpp"
//
#include "common/kernel/half.hpp"
#include "common/kernel/mma.hpp"

namespace convladder {
namespace {

constexpr int kHalf = 2;                     // bytes
constexpr int kChannels = 64;                // of a pixel in shared memory
constexpr int kPixel = kChannels * kHalf;    // bytes
constexpr int kStep = kStepBytes / kHalf;    // channels of one wgmma
constexpr int kSteps = kChannels / kStep;    // of a pixel
constexpr int kChunk = kChunkBytes / kHalf;  // halves
constexpr int kTap = kFilters * kPixel;      // bytes of a tap of so many filters
constexpr int kStaged = 16;                  // positions that a warp rounds and stores at a time, for 16 filters

// The descriptor of what lies so many bytes behind.
__device__ __forceinline__ std::uint64_t behind(std::uint64_t descriptor, int bytes) { return descriptor + bytes / 16; }

// Two sums as halves in a register.
__device__ __forceinline__ unsigned halves_of(float first, float second) {
  const half2 pair = __floats2half2_rn(first, second);
  return *reinterpret_cast<const unsigned*>(&pair);
}

// Starts the products of so many taps with the pixels that each begins at. ptxas wants fence, wgmmas and commit without
// a branch between: where the steps are not always the same, each is a group of its own.
template <int N, int Taps>
__device__ __forceinline__ void multiply_taps(float (&sums)[N / 2], std::uint64_t a, std::uint64_t b, int steps,
                                              bool accumulate) {
  const auto multiply = [&](int s, int step) {
    const int channel = step * kStep * 2;  // bytes
    wgmma<N>(sums, behind(a, s * kTap + channel), behind(b, s * kPixel + channel), accumulate || s > 0 || step > 0);
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

// 1. A thread an element. A chunk of 16 bytes is at its number xor the filter's, modulo 8, of its 128 bytes.
__global__ void pack(const float* filter,  // [filters][channels][3][3]
                     half* packed,         // [filter block][channel block][tap][64][64]
                     int filters, int channels, int channel_blocks, int size) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= size) return;
  const int row = i / kChannels, of_block = row % kFilters, tap = row / kFilters % (kTaps * kTaps);
  const int blocks = row / kFilters / (kTaps * kTaps);
  const int k = blocks / channel_blocks * kFilters + of_block;
  const int c = blocks % channel_blocks * kChannels + (i % kChannels ^ of_block % 8 * kChunk);
  const bool inside = k < filters && c < channels;
  packed[i] = __float2half_rn(inside ? filter[(k * channels + c) * kTaps * kTaps + tap] : 0.0f);
}

// Pixels whose channels are no whole chunks, with zeros to make them so: the copy engine wants multiples of 16 bytes.
__global__ void widen(const half* input,  // [pixels][channels]
                      half* wide,         // [pixels][wide_channels]
                      std::int64_t size, int channels, int wide_channels) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= size) return;
  const int c = static_cast<int>(i % wide_channels);
  wide[i] = c < channels ? input[i / wide_channels * channels + c] : __float2half_rn(0.0f);
}

// ---- Rows -----------------------------------------------------------------------------------------------------------

// What shared memory holds for strips of N pixels: all taps, the ring, and a buffer a warpgroup for its outputs.
template <int N>
struct RowMemory {
  static constexpr int kSlots = N > 112 ? 4 : N > 56 ? 6 : 8;
  static constexpr int kRow = N + kTaps - 1;  // pixels that the taps of a row reach
  static constexpr int kSlot = (kRow + 7) / 8 * 8 * kPixel;
  static constexpr int kPieces = N > 56 ? 2 : 1;  // in which a row of outputs leaves
  static constexpr int kPiece = N / kPieces;      // pixels
  static constexpr int kBytes =
      kTaps * kTaps * kTap + kSlots * kSlot + 2 * kPiece * kPixel + (2 * kSlots + kTaps * kTaps) * sizeof(Mbarrier);
};

template <int N>
__global__ void __launch_bounds__(kRowThreads, 1)
    multiply_rows(const __grid_constant__ TensorMap input,   // [batch][height][width][channels]
                  const __grid_constant__ TensorMap output,  // [batch][out_height][out_width][filters]
                  const half* packed,                        // [filter block][tap][64][64]
                  half* unaligned_output,                    // in place of the map, where filters are no whole chunks
                  Rows g) {
  using Memory = RowMemory<N>;
  constexpr int kSlots = Memory::kSlots, kPiece = Memory::kPiece;
  unsigned char* const taps = dynamic_shared_1024<unsigned char>();  // [tap][64 filters][kPixel]
  unsigned char* const ring = taps + kTaps * kTaps * kTap;           // [kSlots][kSlot]
  unsigned char* const staging = ring + kSlots * Memory::kSlot;      // [2][kPiece][kPixel]
  Mbarrier* const full = reinterpret_cast<Mbarrier*>(staging + 2 * kPiece * kPixel);
  Mbarrier* const empty = full + kSlots;
  Mbarrier* const taps_full = empty + kSlots;  // [tap]
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
    mbarrier_expect(full + entry % kSlots, Memory::kRow * kPixel);
    tensor_load(ring + entry % kSlots * Memory::kSlot, input, full + entry % kSlots, 0, place.x - g.pad_x,
                place.y + r - g.pad_y, place.image);
  };
  if (thread == kConsumers) {
    for (int slot = 0; slot < kSlots; ++slot) {
      mbarrier_init(full + slot, 1);
      mbarrier_init(empty + slot, kConsumerWarps);
    }
    for (int tap = 0; tap < kTaps * kTaps; ++tap) mbarrier_init(taps_full + tap, 1);
    fence_mbarrier_init();
    // 2. What the first row of outputs needs is on its way before the warps meet, in the order in which it is needed.
    for (int tap = 0; tap < kTaps * kTaps; ++tap) {
      if (tap % kTaps == 0) load(tap / kTaps, place_of(begin), tap / kTaps);
      mbarrier_expect(taps_full + tap, kTap);
      bulk_load(taps + tap * kTap, packed + (filter_block * kTaps * kTaps + tap) * (kFilters * kChannels), kTap,
                taps_full + tap);
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
  // Where this lane's row of the matrices goes that stmatrix turns around: pixels 0 to 15, filters of the warp.
  unsigned char* const stage = staging + group * kPiece * kPixel;
  unsigned char* const stage_row =
      stage + (lane / 16 * 8 + lane % 8) * kPixel + ((warp % 4 * 2 + lane / 8 % 2) ^ lane % 8) * 16;
  float sums[N / 2];
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
      const std::uint64_t a = swizzled_descriptor(taps + r * kTaps * kTap, Swizzle::bytes128);
      const std::uint64_t b = swizzled_descriptor(ring + (entry + r) % kSlots * Memory::kSlot, Swizzle::bytes128);
      if (row < begin + 2) {  // the warpgroup's first: a tap is multiplied as soon as it is there
        UNROLL
        for (int s = 0; s < kTaps; ++s) {
          mbarrier_wait(taps_full + r * kTaps + s, 0);
          multiply_taps<N, 1>(sums, behind(a, s * kTap), behind(b, s * kPixel), g.steps, r + s > 0);
        }
      } else {
        multiply_taps<N, kTaps>(sums, a, b, g.steps, r > 0);
      }
      if (r == kTaps - 1 && row + 1 < end) named_barrier_arrive(other_turn, kConsumers);
      if (r > 0) {
        wgmma_wait<1>();
        release(released++);
      }
    }
    wgmma_wait<0>();
    pin(sums);

    UNROLL
    for (int piece = 0; piece < Memory::kPieces; ++piece) {
      if (leads) bulk_wait_read<0>();
      named_barrier_sync(of_group, 128);  // the buffer is free
      UNROLL
      for (int j = 0; j < kPiece / 8; j += 2) {
        const float* const d = sums + 4 * (piece * kPiece / 8 + j);
        if (j + 1 < kPiece / 8)
          stmatrix_transposed<4>(stage_row + j * 8 * kPixel, {halves_of(d[0], d[1]), halves_of(d[2], d[3]),
                                                              halves_of(d[4], d[5]), halves_of(d[6], d[7])});
        else
          stmatrix_transposed<2>(stage_row + j * 8 * kPixel, {halves_of(d[0], d[1]), halves_of(d[2], d[3])});
      }
      fence_async_proxy();
      named_barrier_sync(of_group, 128);
      const int x = place.x + piece * kPiece, k = filter_block * kFilters;
      if (g.filters % kChunk == 0) {
        if (leads) tensor_store(output, stage, k, x, place.y, place.image);
        if (leads) bulk_commit();
      } else if (const int f = thread % kFilters; k + f < g.filters) {
        for (int i = thread % 128 / kFilters; i < min(kPiece, g.out_width - x); i += 2)
          unaligned_output[((place.image * g.out_height + place.y) * g.out_width + x + i) * g.filters + k + f] =
              *reinterpret_cast<const half*>(stage + i * kPixel + (f / kChunk ^ i % 8) * 16 + f % kChunk * 2);
      }
    }
  }
  if (leads) bulk_wait<0>();
}

// ---- Tiles ----------------------------------------------------------------------------------------------------------

template <int N>
__global__ void __launch_bounds__(kTileThreads, 1)
    multiply_tiles(const __grid_constant__ TensorMap input,  // [batch][height][width][channels]
                   const half* packed,                       // [filter block][channel block][tap][64][64]
                   half* output,                             // [batch][out_height][out_width][filters]
                   Tiles g) {
  constexpr TileMemory kMemory(N);
  constexpr int kFilterSlots = kMemory.filter_slots, kPixelSlots = kMemory.pixel_slots;
  unsigned char* const filter_ring = dynamic_shared_1024<unsigned char>();  // [kFilterSlots][64 filters][kPixel]
  unsigned char* const ring = filter_ring + kFilterSlots * kTap;            // [kPixelSlots][slot][kPixel]
  unsigned char* const staging = ring + kPixelSlots * g.slot * kPixel;      // [warp][2][kStaged][16 filters]
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
  const int rest = (g.slot - g.box) * (kPixel / 16);
  for (int i = thread; i < kPixelSlots * rest; i += kTileThreads)
    *reinterpret_cast<uint4*>(ring + (i / rest * g.slot + g.box) * kPixel + i % rest * 16) = make_uint4(0, 0, 0, 0);
  fence_async_proxy();
  __syncthreads();

  // 4.
  if (warp >= kConsumerWarps) set_max_registers_decrease<40>();
  if (warp == kConsumerWarps) {
    if (lane != 0) return;
    int load = 0;
    for (int work = blockIdx.x; work < g.works; work += gridDim.x) {
      const Place place = place_of(work);
      for (int c = 0; c < g.channels; c += kChannels, ++load) {
        const int slot = load % kPixelSlots;
        if (load >= kPixelSlots) mbarrier_wait(empty + slot, (load / kPixelSlots - 1) & 1);
        mbarrier_expect(full + slot, g.box * kPixel);
        tensor_load(ring + slot * g.slot * kPixel, input, full + slot, c, place.x - g.pad_x, place.y - g.pad_y,
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
      const half* const of_block =
          packed + static_cast<unsigned>(work) % g.by_filter_blocks * taps * (kFilters * kChannels);
      for (int tap = 0; tap < taps; ++tap, ++load) {
        const int slot = load % kFilterSlots;
        if (load >= kFilterSlots) mbarrier_wait(filters_empty + slot, (load / kFilterSlots - 1) & 1);
        mbarrier_expect(filters_full + slot, kTap);
        bulk_load(filter_ring + slot * kTap, of_block + tap * (kFilters * kChannels), kTap, filters_full + slot);
      }
    }
    return;
  }
  if (warp > kConsumerWarps + 1) return;

  // 5.
  set_max_registers_increase<232>();
  const int group = warp / 4, own_turn = 1 + group, other_turn = 2 - group;  // named barriers
  unsigned char* const staged = staging + warp * 2 * kStagedBytes;
  // Rows of 32 bytes: the two chunks of every other four rows change places.
  const auto place = [&](int row, int chunk) { return row * 32 + (chunk ^ row / 4 % 2) * 16; };
  const int written = place(lane / 16 * 8 + lane % 8, lane / 8 % 2);
  float sums[N / 2];
  int pixels = group * g.channel_blocks, taps = pixels * kTaps * kTaps;  // loads so far, of both warpgroups
  const auto release = [&](Mbarrier* barriers, int slot) {
    if (lane == 0) mbarrier_arrive(barriers + slot);
  };
  for (int work = blockIdx.x + group * gridDim.x; work < g.works; work += 2 * gridDim.x) {
    // After its turn the other has seen all its loads come: no slot is two loads behind.
    if (work != static_cast<int>(blockIdx.x)) named_barrier_sync(own_turn, kConsumers);
    bool first = true;
    for (int c = 0; c < g.channels; c += kChannels, ++pixels) {
      const int steps = min(kSteps, blocks_for(g.channels - c, kStep));
      mbarrier_wait(full + pixels % kPixelSlots, pixels / kPixelSlots & 1);
      const std::uint64_t b = swizzled_descriptor(ring + pixels % kPixelSlots * g.slot * kPixel, Swizzle::bytes128);
      UNROLL_BY(1)
      for (int tap = 0; tap < kTaps * kTaps; ++tap, ++taps) {
        mbarrier_wait(filters_full + taps % kFilterSlots, taps / kFilterSlots & 1);
        const std::uint64_t a = swizzled_descriptor(filter_ring + taps % kFilterSlots * kTap, Swizzle::bytes128);
        const int shift = (tap / kTaps * g.row_pitch + tap % kTaps) * kPixel;
        multiply_taps<N, 1>(sums, a, behind(b, shift), steps, !first);
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
    const int k = first_output.filter_block * kFilters + warp % 4 * kStep;  // of the warp's 16
    const int images = min(g.images, g.batch - first_output.image),
              rows = min(g.tile_rows, g.out_height - first_output.y),
              columns = min(g.tile_columns, g.out_width - first_output.x);
    // Where the output at a position of the tile belongs; null where it is none.
    const auto output_at = [&](unsigned position) -> half* {
      const unsigned in_image = position % g.by_image_pitch;
      const int i = static_cast<int>(position / g.by_image_pitch), y = static_cast<int>(in_image / g.by_row_pitch),
                x = static_cast<int>(in_image % g.by_row_pitch);
      if (i >= images || y >= rows || x >= columns) return nullptr;
      const int pixel =
          ((first_output.image + i) * g.out_height + first_output.y + y) * g.out_width + first_output.x + x;
      return output + pixel * g.filters + k;
    };
    __syncwarp();  // both buffers are read, of the tile before
    UNROLL
    for (int j = 0; j < blocks_for(N, kStaged); ++j) {
      unsigned char* const buffer = staged + j % 2 * kStagedBytes;
      const float* const d = sums + 8 * j;
      if ((j + 1) * kStaged <= N)
        stmatrix_transposed<4>(buffer + written, {halves_of(d[0], d[1]), halves_of(d[2], d[3]), halves_of(d[4], d[5]),
                                                  halves_of(d[6], d[7])});
      else
        stmatrix_transposed<2>(buffer + written, {halves_of(d[0], d[1]), halves_of(d[2], d[3])});
      __syncwarp();
      if (g.filters % kChunk == 0) {
        half* const to = output_at(j * kStaged + lane / 2);
        const int f = lane % 2 * kChunk;
        if (to && k + f < g.filters)
          *reinterpret_cast<uint4*>(to + f) = *reinterpret_cast<const uint4*>(buffer + place(lane / 2, lane % 2));
      } else {
        UNROLL_BY(1)
        for (int row = lane / 16; row < kStaged; row += 2) {
          half* const to = output_at(j * kStaged + row);
          const int f = lane % 16;
          if (to && k + f < g.filters)
            to[f] = *reinterpret_cast<const half*>(buffer + place(row, f / kChunk) + f % kChunk * 2);
        }
      }
    }
  }
}

// ---- Strips and tiles -----------------------------------------------------------------------------------------------

// The knob: positions of a wgmma, the width of a strip or the size of a tile.
constexpr int kPositions[] = {56, 64, 112, 128, 208, 216, 232, 240, 248};
constexpr Knob kKnobs[] = {{"positions", kPositions, nullptr, 9}};

// Of the kernel that the problem takes.
bool has_kernel(const ConvProblem& problem, int positions) {
  if (by_rows(problem)) return positions == 56 || positions == 112 || positions == 240;
  return positions != 56 && positions != 112 && positions != 240;
}

class ImplicitGemmHopper final : public TunableStage {
  Knobs knobs() const override { return {kKnobs, 1}; }
  Verdict check_configuration(const ConvProblem& problem, const DeviceLimits&,
                              const Configuration& configuration) const override {
    const int positions = configuration.values[0];
    if (has_kernel(problem, positions)) return Verdict::accept();
    return Verdict::refuse(by_rows(problem) ? "strips, for up to 64 channels, are 56, 112 or 240 wide; got positions=%d"
                                            : "tiles, for more than 64 channels, have 64, 128, 208, 216, 232 or 248 "
                                              "positions; got positions=%d",
                           positions);
  }
  // The least by the arithmetic; of two alike, the larger.
  Configuration default_configuration(const ConvProblem& problem, const DeviceLimits& limits) const override {
    int best = 0;
    for (const int positions : kPositions) {
      if (has_kernel(problem, positions) && (best == 0 || cost_of<kHalf>(problem, positions, limits.multiprocessors) <=
                                                              cost_of<kHalf>(problem, best, limits.multiprocessors)))
        best = positions;
    }
    return {{best}};
  }
  void use(const Configuration& configuration) override { positions_ = configuration.values[0]; }

  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    return check_implicit_gemm_hopper(problem, kChannels, kFilters);
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const int filters = static_cast<int>(problem.k), channels = static_cast<int>(problem.c);
    const int channel_blocks = blocks_for(channels, kChannels);
    const int size = blocks_for(filters, kFilters) * kFilters * channel_blocks * kTaps * kTaps * kChannels;
    packed_.allocate<half>(size, "packed filter");
    convladder::launch(pack, dim3(blocks_for(size, kThreads)), dim3(kThreads), 0, stream)(
        tensors.filter, packed_.as<half>(), filters, channels, channel_blocks, size);
    if (widens<kHalf>(problem)) wide_.allocate<half>(wide_size<kHalf>(problem), "widened input");
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const half* input = tensors.half_input;
    if (widens<kHalf>(problem)) {
      convladder::launch(widen, dim3(static_cast<unsigned>((wide_size<kHalf>(problem) - 1) / kThreads + 1)),
                         dim3(kThreads), 0, stream)(input, wide_.as<half>(), wide_size<kHalf>(problem),
                                                    static_cast<int>(problem.c), wide_channels<kHalf>(problem));
      input = wide_.as<half>();
    }
    const auto map_of_input = [&](int columns, int rows, int images) {
      return map_of<kHalf>(input, wide_channels<kHalf>(problem), problem.w, problem.h, problem.n, kChannels, columns,
                           rows, images);
    };
    if (by_rows(problem)) {
      positions_ == 56    ? launch_rows<56>(problem, map_of_input, tensors.half_output, stream)
      : positions_ == 112 ? launch_rows<112>(problem, map_of_input, tensors.half_output, stream)
                          : launch_rows<240>(problem, map_of_input, tensors.half_output, stream);
      return;
    }
    const Tiles g = tiles_of<kHalf>(problem, positions_);
    const auto kernel = positions_ == 64    ? multiply_tiles<64>
                        : positions_ == 128 ? multiply_tiles<128>
                        : positions_ == 208 ? multiply_tiles<208>
                        : positions_ == 216 ? multiply_tiles<216>
                        : positions_ == 232 ? multiply_tiles<232>
                                            : multiply_tiles<248>;
    const TileMemory memory(positions_);
    convladder::launch(kernel, dim3(blocks_of(g)), dim3(kTileThreads),
                       static_cast<std::size_t>(memory.fixed_bytes + memory.pixel_slots * g.slot * kPixel), stream)(
        map_of_input(g.row_pitch, g.image_pitch / g.row_pitch, g.images), packed_.as<half>(), tensors.half_output, g);
  }

  template <int N, class MapOfInput>
  void launch_rows(const ConvProblem& problem, const MapOfInput& map_of_input, half* output, Stream stream) const {
    using Memory = RowMemory<N>;
    const Rows g = rows_of<kHalf>(problem, N);
    const TensorMap input = map_of_input(Memory::kRow, 1, 1);
    // Without whole chunks the output is no tensor that the copy engine knows, and the map is not used.
    const TensorMap to = problem.k % kChunk == 0 ? map_of<kHalf>(output, problem.k, problem.q(), problem.p(), problem.n,
                                                                 kChannels, Memory::kPiece, 1, 1)
                                                 : input;
    const int blocks = parts_of(g, device_limits().multiprocessors) * g.filter_blocks;
    convladder::launch(multiply_rows<N>, dim3(static_cast<unsigned>(blocks)), dim3(kRowThreads), Memory::kBytes,
                       stream)(input, to, packed_.as<half>(), output, g);
  }

  std::int64_t workspace_bytes() const override { return packed_.bytes() + wide_.bytes(); }
  bool workspace_intact() const override { return packed_.intact() && wide_.intact(); }

  Prediction predict(const ConvProblem& problem) const override {
    Prediction p;
    const Lowering l = lowering_of(problem);
    const int channels = wide_channels<kHalf>(problem);
    if (by_rows(problem)) {
      const Rows g = rows_of<kHalf>(problem, positions_);
      const int parts = parts_of(g, device_limits().multiprocessors);
      const int pieces = positions_ > 56 ? 2 : 1;
      p.global_load_bytes =
          (2 * pixels_loaded(l, g, positions_, parts) * channels + std::int64_t{parts} * kTaps * kTaps * kTap) *
          g.filter_blocks;
      p.shared_store_requests =
          std::int64_t{g.rows} * g.filter_blocks * 4 * pieces * blocks_for(positions_ / pieces, 16);
      if (problem.k % kChunk == 0) p.shared_load_requests = 0;
      p.barriers = std::int64_t{parts} * g.filter_blocks;
    } else {
      const Tiles g = tiles_of<kHalf>(problem, positions_);
      p.global_load_bytes = 2 * pixels_loaded(l, g) * channels * g.filter_blocks +
                            std::int64_t{g.works} * g.channel_blocks * kTaps * kTaps * kTap;
      const std::int64_t pieces = std::int64_t{g.works} * kGroupWarps * blocks_for(positions_, kStaged);
      const int zeros = TileMemory(positions_).pixel_slots * (g.slot - g.box) * (kPixel / 16);
      p.shared_store_requests = pieces + std::int64_t{blocks_of(g)} * blocks_for(zeros, 32);
      p.barriers = blocks_of(g);
    }
    p.global_store_bytes = 2 * problem.output_size();
    if (widens<kHalf>(problem)) {
      p.global_load_bytes += 2 * problem.input_size();
      p.global_store_bytes += 2 * wide_size<kHalf>(problem);
    }
    p.shared_load_conflicts = p.shared_store_conflicts = 0;
    p.constant_load_requests = 0;
    p.atomic_requests = 0;
    p.flops = problem.flops();
    return p;
  }

  int positions_ = 0;
  Workspace packed_, wide_;
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::ImplicitGemmHopper)
