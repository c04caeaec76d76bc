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

constexpr int maps_of(Cut cut) { return cut == Cut::nine ? 1 : kMostPhases; }

// A slot of a ring, and the parity of its phase: each time the ring has gone round, it is the other.
struct RingPlace {
  int slot, parity;
  __device__ __forceinline__ void advance(int slots) {
    if (++slot == slots) slot = 0, parity ^= 1;
  }
};

// Of a tensor of outputs, those of a tile and of one block of filters.
template <class Value>
struct TileOutputs {
  unsigned most;  // image, row and column of the tile
  Value* first;
  const Place* places;
  // The address at a position; null where it has no output.
  __device__ __forceinline__ Value* at(int position) const {
    const uint2 place = *reinterpret_cast<const uint2*>(places + position);
    return ((most - place.y) & kGuards) == kGuards ? first + static_cast<int>(place.x) : nullptr;
  }
};

// A block, which takes every gridDim.x-th work item, and its shared memory.
template <class Element, int N, Cut kCut>
struct TilesBlock {
  using Value = typename Element::Value;
  using Sums = typename Element::Sum[N / 2];
  using Maps = PhaseMaps<maps_of(kCut)>;
  static constexpr bool kNine = kCut == Cut::nine, kShared = kCut == Cut::shared;
  static constexpr TileMemory kMemory{N, kCut};
  static constexpr int kStreams = kShared ? 2 : 1;  // blocks of filters of a work item
  static constexpr int kFilterSlot = kStreams * kTileTap, kFilterSlots = kMemory.filter_slots / kStreams;
  static constexpr int kReaders = kShared ? kConsumerWarps : kGroupWarps;  // warps, of a slot
  static constexpr int kChannels = kTilePixel / Element::kBytes, kTapSize = kFilters * kChannels;
  static constexpr int kPlaces = places_for(N);
  static constexpr int kGroup = kGroupWarps * 32;                                            // threads of a consumer
  static constexpr int kStarted = 5;                                                         // a named barrier
  static constexpr int kPitch = kFilters * Element::kBytes, kChunks = kPitch / kChunkBytes;  // of a position of outputs
  static constexpr int kSteps = blocks_for(N, kMatrixPositions<Element>);                    // of the epilogue
  static constexpr int kStep = kGroup * kChunkBytes, kPartSteps = kOutputBytes / kStep, kBuffers = 2;
  static constexpr int kParts = blocks_for(kSteps, kPartSteps);
  static_assert(kStep == kMatrixPositions<Element> * kPitch, "a step is a chunk of each thread");

  const Tiles& g;
  int pixel_slots = kNine ? kMemory.pixel_slots : g.pixel_slots;
  unsigned char* filter_ring =
      dynamic_shared_1024<unsigned char>();                        // [kFilterSlots][kStreams][64 filters][kTilePixel]
  unsigned char* ring = filter_ring + kFilterSlots * kFilterSlot;  // [pixel_slots][slot][kTilePixel]
  unsigned char* outputs = ring + pixel_slots * g.slot * kTilePixel;         // [consumer][2][kOutputBytes]
  Place* places = reinterpret_cast<Place*>(outputs + 2 * 2 * kOutputBytes);  // [kPlaces]
  Mbarrier* filters_full = reinterpret_cast<Mbarrier*>(places + kPlaces);
  Mbarrier* filters_empty = filters_full + kFilterSlots;
  Mbarrier* full = filters_empty + kFilterSlots;
  Mbarrier* empty = full + pixel_slots;
  int warp = warp_index(), thread = threadIdx.x, lane = thread % 32;

  // Of a load of pixels, and of a tap.
  __device__ __forceinline__ RingPlace place_of_box(int load) const {
    if (kNine) return {load % kMemory.pixel_slots, load / kMemory.pixel_slots % 2};
    return {static_cast<int>(static_cast<unsigned>(load) % g.by_pixel_slots),
            static_cast<int>(static_cast<unsigned>(load) / g.by_pixel_slots % 2)};
  }
  __device__ __forceinline__ RingPlace place_of_tap(int load) const {
    return {load % kFilterSlots, load / kFilterSlots % 2};
  }
  // The taps, phase by phase; and of one its shift, with kNewBox at the first of a phase.
  __device__ __forceinline__ int taps() const { return kNine ? kTaps * kTaps : g.taps; }
  __device__ __forceinline__ int phases() const { return kNine ? 1 : g.phases; }
  __device__ __forceinline__ int shift_of(int tap) const {
    return kNine ? tap / kTaps * g.row_pitch + tap % kTaps + (tap == 0 ? kNewBox : 0) : g.shifts[tap];
  }

  // The block's i-th work item; and its block of filters, or the first of two.
  __device__ __forceinline__ int item_of(int i) const { return blockIdx.x + i * static_cast<int>(gridDim.x); }
  __device__ __forceinline__ int filter_block_of(int item) const {
    return static_cast<int>(static_cast<unsigned>(item) % g.by_groups) * kStreams;
  }
  __device__ __forceinline__ Origin origin_of(int item) const {
    const unsigned tile = static_cast<unsigned>(item) / g.by_groups, row = tile / g.by_strips;
    return {static_cast<int>(row / g.by_row_tiles) * g.images, static_cast<int>(tile % g.by_strips) * g.tile_columns,
            static_cast<int>(row % g.by_row_tiles) * g.tile_rows};
  }

  // Prologue of a producer, which makes its ring's barriers and need not wait for the others. Consumers wait for it.
  __device__ __forceinline__ void start_ring(Mbarrier* ring_full, Mbarrier* ring_empty, int slots, int arrivals) const {
    if (lane == 0) {
      init_ring(ring_full, ring_empty, slots, 1, arrivals);
      fence_mbarrier_init();
    }
    __syncwarp();
    named_barrier_arrive(kStarted, kConsumers + 2 * 32);
  }
  // Prologue of the consumers: the places, and zeros beyond each box. These are read, too: for the last column of a
  // tile as the zero column beyond it, and for positions that are no outputs.
  __device__ __forceinline__ void start() const {
    const int rest = (g.slot - g.box) * (kTilePixel / 16);
    for (int i = thread; i < pixel_slots * rest; i += kConsumers)
      *reinterpret_cast<uint4*>(ring + (i / rest * g.slot + g.box) * kTilePixel + i % rest * 16) =
          make_uint4(0, 0, 0, 0);
    for (int p = thread; p < kPlaces; p += kConsumers) {
      const unsigned in_image = static_cast<unsigned>(p) % g.by_image_pitch;
      const int i = static_cast<int>(static_cast<unsigned>(p) / g.by_image_pitch),
                y = static_cast<int>(in_image / g.by_row_pitch), x = static_cast<int>(in_image % g.by_row_pitch);
      const bool output = i < g.images && y < g.tile_rows && x < g.tile_columns;
      *reinterpret_cast<uint2*>(places + p) =
          output ? make_uint2(((i * g.out_height + y) * g.out_width + x) * g.filters, packed_place(i, y, x))
                 : make_uint2(0, packed_place(kNowhere, kNowhere, kNowhere));
    }
    fence_async_proxy();
    named_barrier_sync(kStarted, kConsumers + 2 * 32);
  }

  // 4. Producer of pixels, one thread: a box for each 128 bytes of channels and each phase.
  __device__ __forceinline__ void produce_pixels(const Maps& input) const {
    start_ring(full, empty, pixel_slots, kReaders);
    if (lane != 0) return;
    RingPlace place{0, 1};  // of an empty slot no phase has passed, which is as if one of parity 1 had
    for (int item = blockIdx.x; item < g.work_items; item += gridDim.x) {
      const Origin origin = origin_of(item);
      for (int c = 0; c < g.channels; c += kChannels) {
        for (int phase = 0; phase < phases(); ++phase, place.advance(pixel_slots)) {
          Mbarrier* const arrived = full + place.slot;
          mbarrier_wait(empty + place.slot, place.parity);
          mbarrier_expect(arrived, g.box * kTilePixel);
          tensor_load(ring + place.slot * g.slot * kTilePixel, input.of[phase], arrived, c,
                      origin.x + (kNine ? -g.pad_x : g.phase_x[phase]),
                      origin.y + (kNine ? -g.pad_y : g.phase_y[phase]), origin.image);
        }
      }
    }
  }

  // 4. Producer of filters, one thread: all taps for each 128 bytes of channels, one by one.
  __device__ __forceinline__ void produce_filters(const Value* packed) const {
    start_ring(filters_full, filters_empty, kFilterSlots, kReaders);
    if (lane != 0) return;
    const int all_taps = g.channel_blocks * taps();
    RingPlace place{0, 1};  // as of pixels
    for (int item = blockIdx.x; item < g.work_items; item += gridDim.x) {
      const Value* const of_block = packed + filter_block_of(item) * all_taps * kTapSize;
      for (int tap = 0; tap < all_taps; ++tap, place.advance(kFilterSlots)) {
        Mbarrier* const arrived = filters_full + place.slot;
        mbarrier_wait(filters_empty + place.slot, place.parity);
        mbarrier_expect(arrived, kFilterSlot);
        for (int stream = 0; stream < kStreams; ++stream)
          bulk_load(filter_ring + place.slot * kFilterSlot + stream * kTileTap,
                    of_block + (stream * all_taps + tap) * kTapSize, kTileTap, arrived);
      }
    }
  }

  // 5. Two consumers take the block's work items alternately, ping-pong: while one multiplies, the other runs its
  // epilogue. The rings hold the loads for both, in this order. Where they share tiles, both take every item, and each
  // has 64 of its filters.
  __device__ __forceinline__ void consume(const typename Element::Filters& filters, Value* output) const {
    const int consumer = warp / 4, own_turn = 1 + consumer, other_turn = 2 - consumer;  // named barriers
    const auto release = [&](Mbarrier* barrier) {
      if (lane == 0) mbarrier_arrive(barrier);
    };
    const std::uint64_t first_tap =
                            swizzled_descriptor(filter_ring + (kShared ? consumer * kTileTap : 0), Swizzle::bytes128),
                        first_box = swizzled_descriptor(ring, Swizzle::bytes128);
    Sums sums;
    for (int i = kShared ? 0 : consumer, item; (item = item_of(i)) < g.work_items; i += kShared ? 1 : 2) {
      const int filter_block = filter_block_of(item) + (kShared ? consumer : 0);
      if constexpr (Element::kFused) load_residual(filters.residual, origin_of(item), filter_block, 0, kBuffers);
      // The other one hands over when it has seen all its loads come. So no wait is for a phase two loads back, which
      // has the same parity.
      if (!kShared && i > 0) named_barrier_sync(own_turn, kConsumers);
      RingPlace box = place_of_box(i * g.channel_blocks * phases()), tap = place_of_tap(i * g.channel_blocks * taps());
      int read_box = 0, read_tap = -1;  // slots of the products before, which may still be under way
      std::uint64_t b = 0;
      int shift = shift_of(0);
      for (int c = 0; c < g.channels; c += kChannels) {
        const int steps = min(kTilePixel / kStepBytes, blocks_for((g.channels - c) * Element::kBytes, kStepBytes));
        UNROLL_BY(1)
        for (int t = 0; t < taps(); ++t) {
          const int next_shift = shift_of(t + 1 < taps() ? t + 1 : 0);
          const bool is_new_box = shift >= kNewBox;
          if (is_new_box) {
            mbarrier_wait(full + box.slot, box.parity);
            b = further(first_box, box.slot * g.slot * kTilePixel);
          }
          mbarrier_wait(filters_full + tap.slot, tap.parity);
          multiply_taps<Element, N, 1, kTilePixel>(sums, further(first_tap, tap.slot * kFilterSlot),
                                                   further(b, shift % kNewBox * kTilePixel), steps, read_tap >= 0);
          wgmma_wait<1>();  // the tap before
          if (read_tap >= 0) release(filters_empty + read_tap);
          if (read_tap >= 0 && is_new_box) release(empty + read_box);
          read_tap = tap.slot;
          tap.advance(kFilterSlots);
          if (is_new_box) {
            read_box = box.slot;
            box.advance(pixel_slots);
          }
          shift = next_shift;
        }
      }
      if (!kShared && item_of(i + 1) < g.work_items) named_barrier_arrive(other_turn, kConsumers);
      wgmma_wait<0>();
      pin(sums);
      release(filters_empty + read_tap);
      release(empty + read_box);
      store(sums, filters, output, origin_of(item), filter_block);
    }
  }

  template <class Tensor>
  __device__ __forceinline__ TileOutputs<Tensor> outputs_of(Tensor* tensor, const Origin& origin, int k) const {
    const int images = min(g.images, g.batch - origin.image), rows = min(g.tile_rows, g.out_height - origin.y),
              columns = min(g.tile_columns, g.out_width - origin.x);
    return {kGuards | packed_place(images - 1, rows - 1, columns - 1),
            tensor + ((origin.image * g.out_height + origin.y) * g.out_width + origin.x) * g.filters + k, places};
  }

  // 5. Asks for the residual of some parts of a product, in the buffers in which these will be rounded: of the first
  // two before the product is computed. A thread copies the chunks that it will store.
  __device__ __forceinline__ void load_residual(const Value* residual, const Origin& origin, int filter_block,
                                                int first_part, int parts) const {
    if (!residual) return;
    const int consumer = warp / 4, in_group = thread % kGroup, k = filter_block * kFilters;
    const bool chunks = g.filters % kChunk<Element> == 0;
    const TileOutputs<const Value> from = outputs_of(residual, origin, k);
    if (first_part == 0 || !chunks) named_barrier_sync(3 + consumer, kGroup);  // the buffers are read
    for (int part = first_part; part < first_part + parts && part < kParts; ++part) {
      unsigned char* const buffer = outputs + (kBuffers * consumer + part % kBuffers) * kOutputBytes;
      const int first_step = part * kPartSteps, steps = min(kSteps - first_step, kPartSteps);
      if (chunks) {
        const int f = in_group % kChunks * kChunk<Element>;
        UNROLL
        for (int step = 0; step < kPartSteps; ++step) {
          const int in_step = in_group / kChunks, position = (first_step + step) * kMatrixPositions<Element> + in_step;
          const Value* const chunk = step < steps && position < N ? from.at(position) : nullptr;
          copy_async<kChunkBytes>(buffer + step * kStep + swizzled<kPitch>(in_step, f * Element::kBytes),
                                  chunk ? chunk + f : residual, chunk && k + f < g.filters);
        }
      } else {
        const int f = in_group % kFilters;
        UNROLL_BY(1)
        for (int i = in_group / kFilters; i < steps * kMatrixPositions<Element>; i += kGroup / kFilters) {
          const int position = first_step * kMatrixPositions<Element> + i;
          const Value* const pixel = position < N ? from.at(position) : nullptr;
          *reinterpret_cast<Value*>(buffer + swizzled<kPitch>(i, f * Element::kBytes)) =
              pixel && k + f < g.filters ? pixel[f] : Value{};
        }
      }
      commit_copies();
    }
  }

  // 5. Epilogue, with two buffers: a consumer rounds a few steps, each of kMatrixPositions of 64
  // filters. Then a thread loads 16 bytes of every step, and stores those that are outputs: no load waits for a store.
  __device__ __forceinline__ void store(const Sums& sums, const typename Element::Filters& filters, Value* output,
                                        const Origin& origin, int filter_block) const {
    const int consumer = warp / 4, in_group = thread % kGroup, of_group = 3 + consumer;
    const int lane_row = matrix_row<Element, kPitch>(lane, warp % 4 * kWarpFilters * Element::kBytes);
    const int k = filter_block * kFilters, chunk_position = in_group / kChunks,
              f = in_group % kChunks * kChunk<Element>, chunk = swizzled<kPitch>(chunk_position, f * Element::kBytes);
    const TileOutputs<Value> tile = outputs_of(output, origin, k);
    const typename Element::Scale scale = Element::scale_of(filters, k + warp % 4 * kWarpFilters, lane);
    named_barrier_sync(of_group, kGroup);  // both buffers are read, of the product before
    UNROLL
    for (int part = 0; part < kParts; ++part) {
      const int first_step = part * kPartSteps,
                steps = kSteps - first_step < kPartSteps ? kSteps - first_step : kPartSteps;
      unsigned char* const buffer = outputs + (kBuffers * consumer + part % kBuffers) * kOutputBytes;
      if constexpr (Element::kFused) {
        if (part + 1 < kParts)
          wait_copies<1>();  // the next part's may still be on its way
        else
          wait_copies<0>();
        if (filters.residual) named_barrier_sync(of_group, kGroup);
      }
      UNROLL
      for (int step = 0; step < steps; ++step) {
        const int first = (first_step + step) * kMatrixPositions<Element>;
        store_rounded<Element>(buffer + step * kStep + lane_row, sums + first / 2, scale,
                               first + kMatrixPositions<Element> <= N, buffer + step * kStep + lane_row);
      }
      named_barrier_sync(of_group, kGroup);
      if (g.filters % kChunk<Element> == 0) {
        Value* to[kPartSteps];
        uint4 values[kPartSteps];
        UNROLL
        for (int step = 0; step < steps; ++step) {
          const int position = (first_step + step) * kMatrixPositions<Element> + chunk_position;
          to[step] = nullptr;
          if (position >= N) continue;
          to[step] = tile.at(position);
          values[step] = *reinterpret_cast<const uint4*>(buffer + step * kStep + chunk);
        }
        UNROLL
        for (int step = 0; step < steps; ++step)
          if (to[step] && k + f < g.filters) *reinterpret_cast<uint4*>(to[step] + f) = values[step];
      } else {
        UNROLL_BY(1)
        for (int i = in_group / kFilters; i < steps * kMatrixPositions<Element>; i += kGroup / kFilters) {
          Value* const to = tile.at(first_step * kMatrixPositions<Element> + i);
          const int filter = in_group % kFilters;
          if (to && k + filter < g.filters)
            to[filter] = *reinterpret_cast<const Value*>(buffer + swizzled<kPitch>(i, filter * Element::kBytes));
        }
      }
      if constexpr (Element::kFused) load_residual(filters.residual, origin, filter_block, part + kBuffers, 1);
    }
  }
};

template <class Element, int N, Cut kCut>
__global__ void __launch_bounds__(kTileThreads, 1)
    multiply_tiles(const __grid_constant__
                   typename TilesBlock<Element, N, kCut>::Maps input,  // [batch][height][width][channels]
                   typename Element::Filters filters,  // packed [filter block][channel block][tap][64][kTilePixel]
                   typename Element::Value* output,    // [batch][out_height][out_width][filters]
                   Tiles g) {
  const TilesBlock<Element, N, kCut> block{g};
  if (block.thread == 0) {
    for (int phase = 0; phase < block.phases(); ++phase) prefetch_tensor_map(input.of[phase]);
  }
  if (block.warp >= kConsumerWarps) {
    set_max_registers_decrease<40>();
    if (block.warp == kConsumerWarps) block.produce_pixels(input);
    if (block.warp == kConsumerWarps + 1) block.produce_filters(filters.packed);
    return;
  }
  set_max_registers_increase<232>();
  block.start();
  block.consume(filters, output);
}

template <Cut kCut, class Element, int... N, class Value = typename Element::Value>
void launch_tiles_of(Positions<N...>, const ConvProblem& problem, const Choice& choice, const Value* input,
                     const typename Element::Filters& filters, Value* output, Stream stream) {
  const Tiles g = tiles_of<Element>(problem, choice);
  PhaseMaps<maps_of(kCut)> from;
  for (int phase = 0; phase < maps_of(kCut); ++phase)
    from.of[phase] = map_of_phase<Element>(input, layout_of<Element>(problem), g, phase < g.phases ? phase : 0);
  const int bytes = TileMemory(choice.positions, kCut).fixed_bytes + g.pixel_slots * g.slot * kTilePixel;
  const auto launch_if = [&](auto size) {
    constexpr int kN = decltype(size)::value;
    if (choice.positions == kN)
      launch(multiply_tiles<Element, kN, kCut>, dim3(persistent_blocks(g.work_items)), dim3(kTileThreads),
             static_cast<std::size_t>(bytes), stream)(from, filters, output, g);
  };
  (launch_if(std::integral_constant<int, N>{}), ...);
}

template <class Element, class Value = typename Element::Value>
void launch_tiles(const ConvProblem& problem, const Choice& choice, const Value* input,
                  const typename Element::Filters& filters, Value* output, Stream stream) {
  constexpr typename Element::TileSizes kNineSizes;
  constexpr typename Element::AnyTileSizes kSizes;
  switch (cut_of(problem, choice)) {
    case Cut::nine:
      return launch_tiles_of<Cut::nine, Element>(kNineSizes, problem, choice, input, filters, output, stream);
    case Cut::own:
      return launch_tiles_of<Cut::own, Element>(kSizes, problem, choice, input, filters, output, stream);
    case Cut::shared:
      return launch_tiles_of<Cut::shared, Element>(kSizes, problem, choice, input, filters, output, stream);
  }
}

}  // namespace
}  // namespace convladder
