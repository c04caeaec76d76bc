// Steps 4 and 5 of stages 32 and 34: a persistent kernel for more channels, and for any filter. A work item is a tile
// of N positions and 64 filters, or 128 where the consumers share it; pixels and filters pass through rings.
#pragma once
#include "chapters/32-implicit-gemm-hopper/multiply_taps.cuh"

namespace convladder {
namespace {

// The phases' maps of the input. 3 x 3 taps with stride 1 are one phase.
template <int Count>
struct PhaseMaps {
  TensorMap of[Count];
};

// Where the slices of a tile's channels leave their sums, and how many have; nothing without slices.
template <class Element>
struct Slices {
  typename Element::FourSums* sums;  // [work item][kStreams][N / 8][thread of a consumer]
  int* done;                         // [work item of all slices][kStreams]
};

// A block, which takes every gridDim.x-th work item, and its shared memory.
template <class Element, int N, Cut kCut>
struct TilesBlock {
  using Value = typename Element::Value;
  using Sums = typename Element::Sum[N / 2];
  using Maps = PhaseMaps<kCut == Cut::nine ? 1 : kMostPhases>;
  static constexpr bool kNine = kCut == Cut::nine, kShared = kCut == Cut::shared;
  static constexpr TileMemory kMemory{N, kCut};
  static constexpr int kStreams = kShared ? 2 : 1;  // blocks of filters of a work item
  static constexpr int kFilterSlot = kStreams * kTileTap, kFilterSlots = kMemory.filter_slots / kStreams;
  static constexpr int kReaders = kShared ? kConsumerWarps : kGroupWarps;  // warps, of a slot
  static constexpr int kChannels = kTilePixel / Element::kBytes, kTapSize = kFilters * kChannels;
  static constexpr int kPlaces = kNine ? 0 : places_for(N), kTickets = kNine ? 0 : 2;
  static constexpr int kGroup = kGroupWarps * 32;  // threads of a consumer

  const Tiles& g;
  int pixel_slots = kNine ? kMemory.pixel_slots : g.pixel_slots;
  unsigned char* filter_ring =
      dynamic_shared_1024<unsigned char>();                        // [kFilterSlots][kStreams][64 filters][kTilePixel]
  unsigned char* ring = filter_ring + kFilterSlots * kFilterSlot;  // [pixel_slots][slot][kTilePixel]
  unsigned char* outputs = ring + pixel_slots * g.slot * kTilePixel;  // [warp][2][kMatrixPositions][16 filters]
  Place* places = reinterpret_cast<Place*>(outputs + kConsumerWarps * 2 * kOutputBytes);  // [kPlaces]
  int* tickets = reinterpret_cast<int*>(places + kPlaces);  // [kTickets]: what each consumer has drawn
  Mbarrier* filters_full = reinterpret_cast<Mbarrier*>(tickets + kTickets);
  Mbarrier* filters_empty = filters_full + kFilterSlots;
  Mbarrier* full = filters_empty + kFilterSlots;
  Mbarrier* empty = full + pixel_slots;
  int warp = warp_index(), thread = threadIdx.x, lane = thread % 32;

  // The slot of a load of pixels, and how many that slot had before.
  __device__ __forceinline__ int slot_of(int load) const {
    return kNine ? load % kMemory.pixel_slots : static_cast<int>(static_cast<unsigned>(load) % g.by_pixel_slots);
  }
  __device__ __forceinline__ int round_of(int load) const {
    return kNine ? load / kMemory.pixel_slots : static_cast<int>(static_cast<unsigned>(load) / g.by_pixel_slots);
  }
  // The taps, phase by phase.
  __device__ __forceinline__ int taps() const { return kNine ? kTaps * kTaps : g.taps; }
  __device__ __forceinline__ int phases() const { return kNine ? 1 : g.phases; }
  __device__ __forceinline__ int first_tap(int phase) const {
    return kNine ? phase * kTaps * kTaps : g.first_tap[phase];
  }
  __device__ __forceinline__ int shift_of(int tap) const {
    return kNine ? tap / kTaps * g.row_pitch + tap % kTaps : g.shifts[tap];
  }

  // A work item without its slice; and where the channels of its slice begin, or with `next` 1 those of the next.
  __device__ __forceinline__ unsigned whole(int item) const {
    return kNine ? static_cast<unsigned>(item) : static_cast<unsigned>(item) / g.by_slices;
  }
  __device__ __forceinline__ int first_block_of(int item, int next) const {
    if (kNine) return next * g.channel_blocks;
    return static_cast<int>((static_cast<unsigned>(item) % g.by_slices + next) * g.channel_blocks / g.by_slices);
  }
  __device__ __forceinline__ int blocks_in(int item) const {
    return kNine ? g.channel_blocks : first_block_of(item, 1) - first_block_of(item, 0);
  }
  __device__ __forceinline__ int first_channel_of(int item) const {
    return kNine ? 0 : first_block_of(item, 0) * kChannels;
  }
  __device__ __forceinline__ int end_channel_of(int item) const {
    return kNine ? g.channels : min(g.channels, first_block_of(item, 1) * kChannels);
  }
  __device__ __forceinline__ Origin origin_of(int item) const {
    const unsigned tile = whole(item) / g.by_filter_blocks, row = tile / g.by_strips;
    return {static_cast<int>(row / g.by_row_tiles) * g.images, static_cast<int>(tile % g.by_strips) * g.tile_columns,
            static_cast<int>(row % g.by_row_tiles) * g.tile_rows};
  }

  // Prologue, by all threads: the barriers, the places, and zeros beyond each box. These are read, too: for the last
  // column of a tile as the zero column beyond it, and for positions that are no outputs.
  __device__ __forceinline__ void start() const {
    if (thread == kConsumers) {
      init_ring(filters_full, filters_empty, kFilterSlots, kReaders);
      init_ring(full, empty, pixel_slots, kReaders);
      fence_mbarrier_init();
    }
    const int rest = (g.slot - g.box) * (kTilePixel / 16);
    for (int i = thread; i < pixel_slots * rest; i += kTileThreads)
      *reinterpret_cast<uint4*>(ring + (i / rest * g.slot + g.box) * kTilePixel + i % rest * 16) =
          make_uint4(0, 0, 0, 0);
    for (int p = thread; !kNine && p < kPlaces; p += kTileThreads) {
      const unsigned in_image = static_cast<unsigned>(p) % g.by_image_pitch;
      const int i = static_cast<int>(static_cast<unsigned>(p) / g.by_image_pitch),
                y = static_cast<int>(in_image / g.by_row_pitch), x = static_cast<int>(in_image % g.by_row_pitch);
      const bool output = i < g.images && y < g.tile_rows && x < g.tile_columns;
      *reinterpret_cast<uint2*>(places + p) =
          output ? make_uint2(((i * g.out_height + y) * g.out_width + x) * g.filters, packed_place(i, y, x))
                 : make_uint2(0, packed_place(kNowhere, kNowhere, kNowhere));
    }
    fence_async_proxy();
  }

  // 4. Producer of pixels, one thread: a box for each 128 bytes of channels and each phase.
  __device__ __forceinline__ void produce_pixels(const Maps& input) const {
    int load = 0;
    for (int item = blockIdx.x; item < g.work_items; item += gridDim.x) {
      const Origin origin = origin_of(item);
      const int end = end_channel_of(item);
      for (int c = first_channel_of(item); c < end; c += kChannels) {
        for (int phase = 0; phase < phases(); ++phase, ++load) {
          const int slot = slot_of(load);
          if (load >= pixel_slots) mbarrier_wait(empty + slot, (round_of(load) - 1) & 1);
          mbarrier_expect(full + slot, g.box * kTilePixel);
          tensor_load(ring + slot * g.slot * kTilePixel, input.of[phase], full + slot, c,
                      origin.x + (kNine ? -g.pad_x : g.phase_x[phase]),
                      origin.y + (kNine ? -g.pad_y : g.phase_y[phase]), origin.image);
        }
      }
    }
  }

  // 4. Producer of filters, one thread: all taps for each 128 bytes of channels, one by one.
  __device__ __forceinline__ void produce_filters(const Value* packed) const {
    const int all_taps = g.channel_blocks * taps();
    int load = 0;
    for (int item = blockIdx.x; item < g.work_items; item += gridDim.x) {
      const Value* const of_block = packed + whole(item) % g.by_filter_blocks * kStreams * all_taps * kTapSize;
      const int end = kNine ? all_taps : first_block_of(item, 1) * taps();
      for (int tap = kNine ? 0 : first_block_of(item, 0) * taps(); tap < end; ++tap, ++load) {
        const int slot = load % kFilterSlots;
        if (load >= kFilterSlots) mbarrier_wait(filters_empty + slot, (load / kFilterSlots - 1) & 1);
        mbarrier_expect(filters_full + slot, kFilterSlot);
        for (int stream = 0; stream < kStreams; ++stream)
          bulk_load(filter_ring + slot * kFilterSlot + stream * kTileTap,
                    of_block + (stream * all_taps + tap) * kTapSize, kTileTap, filters_full + slot);
      }
    }
  }

  // 5. Two consumers take the block's work items alternately, ping-pong: while one multiplies, the other runs its
  // epilogue. The rings hold the loads for both, in this order. Where they share tiles, both take every work item, and
  // each has 64 of its filters.
  __device__ __forceinline__ void consume(const typename Element::Filters& filters, Value* output,
                                          const Slices<Element>& slices) const {
    const int consumer = warp / 4, own_products = 1 + consumer, other_products = 2 - consumer;  // named barriers
    const auto release = [&](Mbarrier* barriers, int slot) {
      if (lane == 0) mbarrier_arrive(barriers + slot);
    };
    Sums sums;
    const int step_items = (kShared ? 1 : 2) * gridDim.x;
    const auto others_blocks = [&](int item) { return kShared ? 0 : blocks_in(item); };
    int pixels = consumer * others_blocks(blockIdx.x) * phases(),
        filter_loads = consumer * others_blocks(blockIdx.x) * taps();  // so far, for both
    for (int item = blockIdx.x + (kShared ? 0 : consumer * gridDim.x); item < g.work_items; item += step_items) {
      // The other one hands over when it has seen all its loads come. So no wait is for a phase two loads back, which
      // has the same parity.
      if (!kShared && item != static_cast<int>(blockIdx.x)) named_barrier_sync(own_products, kConsumers);
      bool first = true;
      const int end = end_channel_of(item);
      for (int c = first_channel_of(item); c < end; c += kChannels) {
        const int steps = min(kTilePixel / kStepBytes, blocks_for((g.channels - c) * Element::kBytes, kStepBytes));
        for (int phase = 0; phase < phases(); ++phase, ++pixels) {
          mbarrier_wait(full + slot_of(pixels), round_of(pixels) & 1);
          const std::uint64_t b = swizzled_descriptor(ring + slot_of(pixels) * g.slot * kTilePixel, Swizzle::bytes128);
          UNROLL_BY(1)
          for (int tap = first_tap(phase); tap < first_tap(phase + 1); ++tap, ++filter_loads) {
            const int slot = filter_loads % kFilterSlots;
            mbarrier_wait(filters_full + slot, filter_loads / kFilterSlots & 1);
            const std::uint64_t a = swizzled_descriptor(
                filter_ring + slot * kFilterSlot + (kShared ? consumer * kTileTap : 0), Swizzle::bytes128);
            multiply_taps<N, 1, kTilePixel>(sums, a, further(b, shift_of(tap) * kTilePixel), steps, !first);
            wgmma_wait<1>();  // the tap before
            if (!first) release(filters_empty, (filter_loads - 1) % kFilterSlots);
            if (!first && tap == (kNine ? 0 : g.first_tap[phase])) release(empty, slot_of(pixels - 1));
            first = false;
          }
        }
      }
      if (!kShared && item + static_cast<int>(gridDim.x) < g.work_items)
        named_barrier_arrive(other_products, kConsumers);
      wgmma_wait<0>();
      pin(sums);
      release(filters_empty, (filter_loads - 1) % kFilterSlots);
      release(empty, slot_of(pixels - 1));
      pixels += others_blocks(item + gridDim.x) * phases();
      filter_loads += others_blocks(item + gridDim.x) * taps();
      if (!kNine && g.slices > 1 && !gather(sums, item, slices)) continue;
      const int filter_block = static_cast<int>(whole(item) % g.by_filter_blocks);
      store(sums, filters, output, origin_of(item), kShared ? 2 * filter_block + consumer : filter_block);
    }
  }

  // 5. Of a tile whose channels are in slices: leaves the sums of this one. The last consumer to do so has the sums of
  // all, in an order that does not depend on who is last.
  __device__ __forceinline__ bool gather(Sums& sums, int item, const Slices<Element>& slices) const {
    using Four = typename Element::FourSums;
    constexpr int kSlice = kStreams * N / 8 * kGroup;
    const int consumer = warp / 4, in_group = thread % kGroup, stream = kShared ? consumer : 0;
    const int of_group = 3 + consumer;  // a named barrier
    Four* const all = slices.sums + stream * (N / 8 * kGroup) + in_group;
    Four* const own = all + std::int64_t{item} * kSlice;
    UNROLL
    for (int i = 0; i < N / 8; ++i)
      own[i * kGroup] = Four{sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]};
    named_barrier_sync(of_group, kGroup);
    if (in_group == 0) {
      int* const done = slices.done + whole(item) * kStreams + stream;
      __threadfence();
      tickets[consumer] = 1 + atomicAdd(done, 1);
      __threadfence();
      if (tickets[consumer] == g.slices) *done = 0;  // for the next launch
    }
    named_barrier_sync(of_group, kGroup);
    if (tickets[consumer] != g.slices) return false;
    const Four* from = all + static_cast<std::int64_t>(whole(item)) * g.slices * kSlice;
    UNROLL
    for (int i = 0; i < N / 2; ++i) sums[i] = 0;
    UNROLL_BY(1)
    for (int slice = 0; slice < g.slices; ++slice, from += kSlice) {
      UNROLL
      for (int i = 0; i < N / 8; ++i) {
        const Four four = from[i * kGroup];
        sums[4 * i] += four.x, sums[4 * i + 1] += four.y, sums[4 * i + 2] += four.z, sums[4 * i + 3] += four.w;
      }
    }
    return true;
  }

  // 5. Epilogue of a work item, by each warp with two buffers of its own: rounds 16 filters of kMatrixPositions at a
  // time into one, and stores those that are outputs.
  __device__ __forceinline__ void store(const Sums& sums, const typename Element::Filters& filters, Value* output,
                                        const Origin& origin, int filter_block) const {
    constexpr int kPitch = kWarpFilters * Element::kBytes, kChunks = kPitch / kChunkBytes;  // of a position
    const int lane_row = matrix_row<Element, kPitch>(lane, 0);
    const int k = filter_block * kFilters + warp % 4 * kWarpFilters;  // of the warp's 16
    const int images = min(g.images, g.batch - origin.image), rows = min(g.tile_rows, g.out_height - origin.y),
              columns = min(g.tile_columns, g.out_width - origin.x);
    const unsigned most = kGuards | packed_place(images - 1, rows - 1, columns - 1);
    Value* const first_output =
        output + ((origin.image * g.out_height + origin.y) * g.out_width + origin.x) * g.filters + k;
    // The address of the output at a position of the tile; null where it is none.
    const auto output_at = [&](unsigned position) -> Value* {
      if constexpr (kNine) {
        const unsigned in_image = position % g.by_image_pitch;
        const int i = static_cast<int>(position / g.by_image_pitch), y = static_cast<int>(in_image / g.by_row_pitch),
                  x = static_cast<int>(in_image % g.by_row_pitch);
        if (i >= images || y >= rows || x >= columns) return nullptr;
        const int pixel = ((origin.image + i) * g.out_height + origin.y + y) * g.out_width + origin.x + x;
        return output + pixel * g.filters + k;
      } else {
        const uint2 place = *reinterpret_cast<const uint2*>(places + position);
        return ((most - place.y) & kGuards) == kGuards ? first_output + static_cast<int>(place.x) : nullptr;
      }
    };
    const typename Element::Scale scale = Element::scale_of(filters, k, lane);
    __syncwarp();  // both buffers are read, of the tile before
    UNROLL
    for (int j = 0; j < blocks_for(N, kMatrixPositions<Element>); ++j) {
      const int first = j * kMatrixPositions<Element>;
      unsigned char* const buffer = outputs + (2 * warp + j % 2) * kOutputBytes;
      store_rounded<Element>(buffer + lane_row, sums + first / 2, scale, first + kMatrixPositions<Element> <= N);
      __syncwarp();
      if (g.filters % kChunk<Element> == 0) {
        Value* const to = output_at(first + lane / kChunks);
        const int f = lane % kChunks * kChunk<Element>;
        if (to && k + f < g.filters)
          *reinterpret_cast<uint4*>(to + f) =
              *reinterpret_cast<const uint4*>(buffer + swizzled<kPitch>(lane / kChunks, f * Element::kBytes));
      } else {
        UNROLL_BY(1)
        for (int i = lane / kWarpFilters; i < kMatrixPositions<Element>; i += 2) {
          Value* const to = output_at(first + i);
          const int f = lane % kWarpFilters;
          if (to && k + f < g.filters)
            to[f] = *reinterpret_cast<const Value*>(buffer + swizzled<kPitch>(i, f * Element::kBytes));
        }
      }
    }
  }
};

template <class Element, int N, Cut kCut>
__global__ void __launch_bounds__(kTileThreads, 1)
    multiply_tiles(const __grid_constant__
                   typename TilesBlock<Element, N, kCut>::Maps input,  // [batch][height][width][channels]
                   typename Element::Filters filters,  // packed [filter block][channel block][tap][64][kTilePixel]
                   typename Element::Value* output,    // [batch][out_height][out_width][filters]
                   Tiles g, Slices<Element> slices) {
  const TilesBlock<Element, N, kCut> block{g};
  block.start();
  __syncthreads();
  if (block.warp >= kConsumerWarps) {
    set_max_registers_decrease<40>();
    if (block.lane != 0) return;
    if (block.warp == kConsumerWarps) block.produce_pixels(input);
    if (block.warp == kConsumerWarps + 1) block.produce_filters(filters.packed);
    return;
  }
  set_max_registers_increase<232>();
  block.consume(filters, output, slices);
}

template <Cut kCut, class Element, int... N, class Value = typename Element::Value>
void launch_tiles_of(Positions<N...>, const ConvProblem& problem, const Choice& choice, const Value* input,
                     const typename Element::Filters& filters, Value* output, const Slices<Element>& slices,
                     Stream stream) {
  const Tiles g = tiles_of<Element>(problem, choice);
  constexpr int kMaps = kCut == Cut::nine ? 1 : kMostPhases;
  PhaseMaps<kMaps> from;
  for (int phase = 0; phase < kMaps; ++phase)
    from.of[phase] = map_of_phase<Element>(input, layout_of<Element>(problem), g, phase < g.phases ? phase : 0);
  const int bytes = TileMemory(choice.positions, kCut).fixed_bytes + g.pixel_slots * g.slot * kTilePixel;
  ((choice.positions == N ? launch(multiply_tiles<Element, N, kCut>, dim3(blocks_of(g)), dim3(kTileThreads),
                                   static_cast<std::size_t>(bytes), stream)(from, filters, output, g, slices)
                          : void()),
   ...);
}

template <class Element, class Value = typename Element::Value>
void launch_tiles(const ConvProblem& problem, const Choice& choice, const Value* input,
                  const typename Element::Filters& filters, Value* output, const Slices<Element>& slices,
                  Stream stream) {
  constexpr typename Element::TileSizes kNineSizes;
  constexpr typename Element::AnyTileSizes kSizes;
  switch (cut_of(problem, choice)) {
    case Cut::nine:
      return launch_tiles_of<Cut::nine, Element>(kNineSizes, problem, choice, input, filters, output, slices, stream);
    case Cut::own:
      return launch_tiles_of<Cut::own, Element>(kSizes, problem, choice, input, filters, output, slices, stream);
    case Cut::shared:
      return launch_tiles_of<Cut::shared, Element>(kSizes, problem, choice, input, filters, output, slices, stream);
  }
}

}  // namespace
}  // namespace convladder
