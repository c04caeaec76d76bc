// Steps 4 and 5 of stages 32 and 34: a persistent kernel for more channels. A work item is a tile of N positions and 64
// filters; pixels and filters pass through rings.
#pragma once
#include "chapters/32-implicit-gemm-hopper/multiply_taps.cuh"

namespace convladder {
namespace {

// A block, which takes every gridDim.x-th work item, and its shared memory.
template <class Element, int N>
struct TilesBlock {
  using Value = typename Element::Value;
  using Sums = typename Element::Sum[N / 2];
  static constexpr int kFilterSlots = TileMemory(N).filter_slots, kPixelSlots = TileMemory(N).pixel_slots;
  static constexpr int kChannels = kTilePixel / Element::kBytes, kTapSize = kFilters * kChannels;

  const Tiles& g;
  unsigned char* filter_ring = dynamic_shared_1024<unsigned char>();  // [kFilterSlots][64 filters][kTilePixel]
  unsigned char* ring = filter_ring + kFilterSlots * kTileTap;        // [kPixelSlots][slot][kTilePixel]
  unsigned char* outputs = ring + kPixelSlots * g.slot * kTilePixel;  // [warp][2][kMatrixPositions][16 filters]
  Mbarrier* filters_full = reinterpret_cast<Mbarrier*>(outputs + kConsumerWarps * 2 * kOutputBytes);
  Mbarrier* filters_empty = filters_full + kFilterSlots;
  Mbarrier* full = filters_empty + kFilterSlots;
  Mbarrier* empty = full + kPixelSlots;
  int warp = warp_index(), thread = threadIdx.x, lane = thread % 32;

  __device__ __forceinline__ Origin origin_of(int item) const {
    const unsigned tile = static_cast<unsigned>(item) / g.by_filter_blocks, row = tile / g.by_strips;
    return {static_cast<int>(row / g.by_row_tiles) * g.images, static_cast<int>(tile % g.by_strips) * g.tile_columns,
            static_cast<int>(row % g.by_row_tiles) * g.tile_rows};
  }

  // Prologue, by all threads: the barriers, and zeros beyond each box. They are read, too: for the last column of a
  // tile as the zero column beyond it, and for positions that are no outputs.
  __device__ __forceinline__ void start() const {
    if (thread == kConsumers) {
      init_ring(filters_full, filters_empty, kFilterSlots, kGroupWarps);
      init_ring(full, empty, kPixelSlots, kGroupWarps);
      fence_mbarrier_init();
    }
    const int rest = (g.slot - g.box) * (kTilePixel / 16);
    for (int i = thread; i < kPixelSlots * rest; i += kTileThreads)
      *reinterpret_cast<uint4*>(ring + (i / rest * g.slot + g.box) * kTilePixel + i % rest * 16) =
          make_uint4(0, 0, 0, 0);
    fence_async_proxy();
  }

  // 4. Producer of pixels, one thread: a box for each 128 bytes of channels.
  __device__ __forceinline__ void produce_pixels(const TensorMap& input) const {
    int load = 0;
    for (int item = blockIdx.x; item < g.work_items; item += gridDim.x) {
      const Origin origin = origin_of(item);
      for (int c = 0; c < g.channels; c += kChannels, ++load) {
        const int slot = load % kPixelSlots;
        if (load >= kPixelSlots) mbarrier_wait(empty + slot, (load / kPixelSlots - 1) & 1);
        mbarrier_expect(full + slot, g.box * kTilePixel);
        tensor_load(ring + slot * g.slot * kTilePixel, input, full + slot, c, origin.x - g.pad_x, origin.y - g.pad_y,
                    origin.image);
      }
    }
  }

  // 4. Producer of filters, one thread: nine taps for each 128 bytes of channels, one by one.
  __device__ __forceinline__ void produce_filters(const Value* packed) const {
    const int taps = g.channel_blocks * kTaps * kTaps;
    int load = 0;
    for (int item = blockIdx.x; item < g.work_items; item += gridDim.x) {
      const Value* const of_block = packed + static_cast<unsigned>(item) % g.by_filter_blocks * taps * kTapSize;
      for (int tap = 0; tap < taps; ++tap, ++load) {
        const int slot = load % kFilterSlots;
        if (load >= kFilterSlots) mbarrier_wait(filters_empty + slot, (load / kFilterSlots - 1) & 1);
        mbarrier_expect(filters_full + slot, kTileTap);
        bulk_load(filter_ring + slot * kTileTap, of_block + tap * kTapSize, kTileTap, filters_full + slot);
      }
    }
  }

  // 5. Two consumers take the block's work items alternately, ping-pong: while one multiplies, the other runs its
  // epilogue. The rings hold the loads for both, in this order.
  __device__ __forceinline__ void consume(const typename Element::Filters& filters, Value* output) const {
    const int consumer = warp / 4, own_products = 1 + consumer, other_products = 2 - consumer;  // named barriers
    const auto release = [&](Mbarrier* barriers, int slot) {
      if (lane == 0) mbarrier_arrive(barriers + slot);
    };
    Sums sums;
    int pixels = consumer * g.channel_blocks, taps = pixels * kTaps * kTaps;  // loads so far, for both
    for (int item = blockIdx.x + consumer * gridDim.x; item < g.work_items; item += 2 * gridDim.x) {
      // The other one hands over when it has seen all its loads come. So no wait is for a phase two loads back, which
      // has the same parity.
      if (item != static_cast<int>(blockIdx.x)) named_barrier_sync(own_products, kConsumers);
      bool first = true;
      for (int c = 0; c < g.channels; c += kChannels, ++pixels) {
        const int steps = min(kTilePixel / kStepBytes, blocks_for((g.channels - c) * Element::kBytes, kStepBytes));
        mbarrier_wait(full + pixels % kPixelSlots, pixels / kPixelSlots & 1);
        const std::uint64_t b =
            swizzled_descriptor(ring + pixels % kPixelSlots * g.slot * kTilePixel, Swizzle::bytes128);
        UNROLL_BY(1)
        for (int tap = 0; tap < kTaps * kTaps; ++tap, ++taps) {
          mbarrier_wait(filters_full + taps % kFilterSlots, taps / kFilterSlots & 1);
          const std::uint64_t a = swizzled_descriptor(filter_ring + taps % kFilterSlots * kTileTap, Swizzle::bytes128);
          const int shift = (tap / kTaps * g.row_pitch + tap % kTaps) * kTilePixel;
          multiply_taps<N, 1, kTilePixel>(sums, a, further(b, shift), steps, !first);
          wgmma_wait<1>();  // the tap before
          if (!first) release(filters_empty, (taps - 1) % kFilterSlots);
          if (!first && tap == 0) release(empty, (pixels - 1) % kPixelSlots);
          first = false;
        }
      }
      if (item + static_cast<int>(gridDim.x) < g.work_items) named_barrier_arrive(other_products, kConsumers);
      wgmma_wait<0>();
      pin(sums);
      release(filters_empty, (taps - 1) % kFilterSlots);
      release(empty, (pixels - 1) % kPixelSlots);
      pixels += g.channel_blocks;  // the other's
      taps += g.channel_blocks * kTaps * kTaps;
      store(sums, filters, output, origin_of(item), static_cast<unsigned>(item) % g.by_filter_blocks);
    }
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
    // The address of the output at a position of the tile; null where it is none.
    const auto output_at = [&](unsigned position) -> Value* {
      const unsigned in_image = position % g.by_image_pitch;
      const int i = static_cast<int>(position / g.by_image_pitch), y = static_cast<int>(in_image / g.by_row_pitch),
                x = static_cast<int>(in_image % g.by_row_pitch);
      if (i >= images || y >= rows || x >= columns) return nullptr;
      const int pixel = ((origin.image + i) * g.out_height + origin.y + y) * g.out_width + origin.x + x;
      return output + pixel * g.filters + k;
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

template <class Element, int N>
__global__ void __launch_bounds__(kTileThreads, 1)
    multiply_tiles(const __grid_constant__ TensorMap input,  // [batch][height][width][channels]
                   typename Element::Filters filters,  // packed [filter block][channel block][tap][64][kTilePixel]
                   typename Element::Value* output,    // [batch][out_height][out_width][filters]
                   Tiles g) {
  const TilesBlock<Element, N> block{g};
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
  block.consume(filters, output);
}

template <class Element, int... N, class Value = typename Element::Value>
void launch_tiles(Positions<N...>, int positions, const ConvProblem& problem, const Value* input,
                  const typename Element::Filters& filters, Value* output, Stream stream) {
  const Tiles g = tiles_of<Element>(problem, positions);
  const TileMemory memory(positions);
  const TensorMap from =
      map_of<Element>(input, wide_channels<Element>(problem), problem.w, problem.h, problem.n,
                      kTilePixel / Element::kBytes, g.row_pitch, g.image_pitch / g.row_pitch, g.images);
  const auto bytes = static_cast<std::size_t>(memory.fixed_bytes + memory.pixel_slots * g.slot * kTilePixel);
  ((positions == N ? launch(multiply_tiles<Element, N>, dim3(blocks_of(g)), dim3(kTileThreads), bytes, stream)(
                         from, filters, output, g)
                   : void()),
   ...);
}

}  // namespace
}  // namespace convladder
