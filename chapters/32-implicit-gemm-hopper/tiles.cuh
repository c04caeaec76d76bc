// Steps 4 and 5 of stages 32 and 34: a persistent kernel for more channels. A work item is a tile of N positions and 64
// filters; pixels and filters pass through rings.
#pragma once
#include "chapters/32-implicit-gemm-hopper/multiply_taps.cuh"

namespace convladder {
namespace {

template <int N>
struct TileBuffers {
  static constexpr int kFilterSlots = TileMemory(N).filter_slots, kPixelSlots = TileMemory(N).pixel_slots;
  unsigned char* filters = dynamic_shared_1024<unsigned char>();  // [kFilterSlots][64 filters][kTilePixel]
  unsigned char* pixels = filters + kFilterSlots * kTileTap;      // [kPixelSlots][slot][kTilePixel]
  unsigned char* outputs;                                         // [warp][2][kMatrixPositions][16 filters]
  Mbarrier *filters_full, *filters_empty, *full, *empty;

  __device__ __forceinline__ explicit TileBuffers(const Tiles& g)
      : outputs(pixels + kPixelSlots * g.slot * kTilePixel),
        filters_full(reinterpret_cast<Mbarrier*>(outputs + kConsumerWarps * 2 * kOutputBytes)),
        filters_empty(filters_full + kFilterSlots),
        full(filters_empty + kFilterSlots),
        empty(full + kPixelSlots) {}
};

// The first output of a work item.
struct TileOrigin {
  int filter_block, image, x, y;
};
__device__ __forceinline__ TileOrigin tile_origin(const Tiles& g, int item) {
  const unsigned tile = static_cast<unsigned>(item) / g.by_filter_blocks, row = tile / g.by_strips;
  return {static_cast<int>(static_cast<unsigned>(item) % g.by_filter_blocks),
          static_cast<int>(row / g.by_row_tiles) * g.images, static_cast<int>(tile % g.by_strips) * g.tile_columns,
          static_cast<int>(row % g.by_row_tiles) * g.tile_rows};
}

// Prologue, by all threads: the barriers, and zeros beyond each box. They are read, too: for the last column of a tile
// as the zero column beyond it, and for positions that are no outputs.
template <int N>
__device__ __forceinline__ void start_tiles(const TileBuffers<N>& buffers, const Tiles& g) {
  if (threadIdx.x == kConsumers) {
    for (int slot = 0; slot < buffers.kFilterSlots; ++slot) {
      mbarrier_init(buffers.filters_full + slot, 1);
      mbarrier_init(buffers.filters_empty + slot, kGroupWarps);
    }
    for (int slot = 0; slot < buffers.kPixelSlots; ++slot) {
      mbarrier_init(buffers.full + slot, 1);
      mbarrier_init(buffers.empty + slot, kGroupWarps);
    }
    fence_mbarrier_init();
  }
  const int rest = (g.slot - g.box) * (kTilePixel / 16);
  for (int i = threadIdx.x; i < buffers.kPixelSlots * rest; i += kTileThreads)
    *reinterpret_cast<uint4*>(buffers.pixels + (i / rest * g.slot + g.box) * kTilePixel + i % rest * 16) =
        make_uint4(0, 0, 0, 0);
  fence_async_proxy();
}

// 4. Producer of pixels, one thread: a box for each 128 bytes of channels.
template <class Element, int N>
__device__ __forceinline__ void produce_pixels(const TileBuffers<N>& buffers, const TensorMap& input, const Tiles& g) {
  constexpr int kSlots = TileBuffers<N>::kPixelSlots;
  int load = 0;
  for (int item = blockIdx.x; item < g.work_items; item += gridDim.x) {
    const TileOrigin origin = tile_origin(g, item);
    for (int c = 0; c < g.channels; c += kTilePixel / Element::kBytes, ++load) {
      const int slot = load % kSlots;
      if (load >= kSlots) mbarrier_wait(buffers.empty + slot, (load / kSlots - 1) & 1);
      mbarrier_expect(buffers.full + slot, g.box * kTilePixel);
      tensor_load(buffers.pixels + slot * g.slot * kTilePixel, input, buffers.full + slot, c, origin.x - g.pad_x,
                  origin.y - g.pad_y, origin.image);
    }
  }
}

// 4. Producer of filters, one thread: nine taps for each 128 bytes of channels, one by one.
template <class Value, int N>
__device__ __forceinline__ void produce_filters(const TileBuffers<N>& buffers, const Value* packed, const Tiles& g) {
  constexpr int kSlots = TileBuffers<N>::kFilterSlots, kTapSize = kTileTap / static_cast<int>(sizeof(Value));
  const int taps = g.channel_blocks * kTaps * kTaps;
  int load = 0;
  for (int item = blockIdx.x; item < g.work_items; item += gridDim.x) {
    const Value* const of_block = packed + static_cast<unsigned>(item) % g.by_filter_blocks * taps * kTapSize;
    for (int tap = 0; tap < taps; ++tap, ++load) {
      const int slot = load % kSlots;
      if (load >= kSlots) mbarrier_wait(buffers.filters_empty + slot, (load / kSlots - 1) & 1);
      mbarrier_expect(buffers.filters_full + slot, kTileTap);
      bulk_load(buffers.filters + slot * kTileTap, of_block + tap * kTapSize, kTileTap, buffers.filters_full + slot);
    }
  }
}

// 5. The products of a work item. `pixels` and `taps` count the loads so far, of both consumers.
template <class Element, int N>
__device__ __forceinline__ void multiply_tile(typename Element::Sum (&sums)[N / 2], const TileBuffers<N>& buffers,
                                              const Tiles& g, int& pixels, int& taps, int next_consumer,
                                              bool hands_over) {
  constexpr int kFilterSlots = TileBuffers<N>::kFilterSlots, kPixelSlots = TileBuffers<N>::kPixelSlots;
  constexpr int kChannels = kTilePixel / Element::kBytes, kStep = kStepBytes / Element::kBytes;
  const auto release = [&](Mbarrier* barriers, int slot) {
    if (threadIdx.x % 32 == 0) mbarrier_arrive(barriers + slot);
  };
  bool first = true;
  for (int c = 0; c < g.channels; c += kChannels, ++pixels) {
    const int steps = min(kChannels / kStep, blocks_for(g.channels - c, kStep));
    mbarrier_wait(buffers.full + pixels % kPixelSlots, pixels / kPixelSlots & 1);
    const std::uint64_t b =
        swizzled_descriptor(buffers.pixels + pixels % kPixelSlots * g.slot * kTilePixel, Swizzle::bytes128);
    UNROLL_BY(1)
    for (int tap = 0; tap < kTaps * kTaps; ++tap, ++taps) {
      mbarrier_wait(buffers.filters_full + taps % kFilterSlots, taps / kFilterSlots & 1);
      const std::uint64_t a = swizzled_descriptor(buffers.filters + taps % kFilterSlots * kTileTap, Swizzle::bytes128);
      const int shift = (tap / kTaps * g.row_pitch + tap % kTaps) * kTilePixel;
      multiply_taps<N, 1, kTilePixel>(sums, a, further(b, shift), steps, !first);
      wgmma_wait<1>();  // the tap before
      if (!first) release(buffers.filters_empty, (taps - 1) % kFilterSlots);
      if (!first && tap == 0) release(buffers.empty, (pixels - 1) % kPixelSlots);
      first = false;
    }
  }
  if (hands_over) named_barrier_arrive(next_consumer, kConsumers);
  wgmma_wait<0>();
  pin(sums);
  release(buffers.filters_empty, (taps - 1) % kFilterSlots);
  release(buffers.empty, (pixels - 1) % kPixelSlots);
}

// 5. Epilogue of a work item, by each warp with two buffers of its own: rounds 16 filters of kMatrixPositions at a time
// into one, and stores those that are outputs.
template <class Element, int N, class Value = typename Element::Value>
__device__ __forceinline__ void store_tile(unsigned char* buffers, const typename Element::Sum (&sums)[N / 2],
                                           typename Element::Scale scale, Value* output, const Tiles& g, int k,
                                           const TileOrigin& origin) {
  constexpr int kPositions = kMatrixPositions<Element>, kPitch = kWarpFilters * Element::kBytes;
  constexpr int kChunks = kPitch / kChunkBytes;  // of a position
  const int lane = threadIdx.x % 32;
  const int lane_row = matrix_row<Element, kPitch>(lane, 0);
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
  __syncwarp();  // both buffers are read, of the tile before
  UNROLL
  for (int first = 0; first < N; first += kPositions) {
    unsigned char* const buffer = buffers + first / kPositions % 2 * kOutputBytes;
    store_rounded<Element>(buffer + lane_row, sums + first / 2, scale, first + kPositions <= N);
    __syncwarp();
    if (g.filters % kChunk<Element> == 0) {
      const int position = lane / kChunks, chunk = lane % kChunks, f = chunk * kChunk<Element>;
      Value* const to = output_at(first + position);
      if (to && k + f < g.filters)
        *reinterpret_cast<uint4*>(to + f) =
            *reinterpret_cast<const uint4*>(buffer + swizzled<kPitch>(position, chunk * kChunkBytes));
    } else {
      UNROLL_BY(1)
      for (int position = lane / kWarpFilters; position < kPositions; position += 2) {
        Value* const to = output_at(first + position);
        const int f = lane % kWarpFilters;
        if (to && k + f < g.filters)
          to[f] = *reinterpret_cast<const Value*>(buffer + swizzled<kPitch>(position, f * Element::kBytes));
      }
    }
  }
}

// 5. Two consumers take the block's work items alternately, ping-pong: while one multiplies, the other runs its
// epilogue. The rings hold the loads of both, in this order.
template <class Element, int N>
__device__ __forceinline__ void consume_tiles(const TileBuffers<N>& buffers, const typename Element::Filters& filters,
                                              typename Element::Value* output, const Tiles& g, int warp) {
  const int consumer = warp / 4;
  const int own_products = 1 + consumer, other_products = 2 - consumer;  // named barriers: who may multiply
  typename Element::Sum sums[N / 2];
  int pixels = consumer * g.channel_blocks, taps = pixels * kTaps * kTaps;
  for (int item = blockIdx.x + consumer * gridDim.x; item < g.work_items; item += 2 * gridDim.x) {
    // The other one hands over when it has seen all its loads come. So no wait is for a phase two loads back, which has
    // the same parity.
    if (item != static_cast<int>(blockIdx.x)) named_barrier_sync(own_products, kConsumers);
    multiply_tile<Element>(sums, buffers, g, pixels, taps, other_products,
                           item + static_cast<int>(gridDim.x) < g.work_items);
    pixels += g.channel_blocks;  // the other's
    taps += g.channel_blocks * kTaps * kTaps;
    const TileOrigin origin = tile_origin(g, item);
    const int k = origin.filter_block * kFilters + warp % 4 * kWarpFilters;  // of the warp's 16
    const typename Element::Scale scale = Element::scale_of(filters, k, threadIdx.x % 32);
    store_tile<Element, N>(buffers.outputs + warp * 2 * kOutputBytes, sums, scale, output, g, k, origin);
  }
}

template <class Element, int N>
__global__ void __launch_bounds__(kTileThreads, 1)
    multiply_tiles(const __grid_constant__ TensorMap input,  // [batch][height][width][channels]
                   typename Element::Filters filters,  // packed [filter block][channel block][tap][64][kTilePixel]
                   typename Element::Value* output,    // [batch][out_height][out_width][filters]
                   Tiles g) {
  const TileBuffers<N> buffers(g);
  const int warp = warp_index(), lane = threadIdx.x % 32;
  start_tiles(buffers, g);
  __syncthreads();
  if (warp >= kConsumerWarps) set_max_registers_decrease<40>();
  if (warp == kConsumerWarps) {
    if (lane != 0) return;
    produce_pixels<Element>(buffers, input, g);
    return;
  }
  if (warp == kConsumerWarps + 1) {
    if (lane != 0) return;
    produce_filters(buffers, filters.packed, g);
    return;
  }
  if (warp > kConsumerWarps + 1) return;
  set_max_registers_increase<232>();
  consume_tiles<Element>(buffers, filters, output, g, warp);
}

template <class Element, int First, int... N>
auto tiles_kernel(int positions, Positions<First, N...>) {
  auto kernel = multiply_tiles<Element, First>;
  ((positions == N ? void(kernel = multiply_tiles<Element, N>) : void()), ...);
  return kernel;
}

template <class Element, class Value = typename Element::Value>
void launch_tiles(const ConvProblem& problem, int positions, const Value* input,
                  const typename Element::Filters& filters, Value* output, Stream stream) {
  const Tiles g = tiles_of<Element>(problem, positions);
  const TileMemory memory(positions);
  const TensorMap from =
      map_of<Element>(input, wide_channels<Element>(problem), problem.w, problem.h, problem.n,
                      kTilePixel / Element::kBytes, g.row_pitch, g.image_pitch / g.row_pitch, g.images);
  launch(tiles_kernel<Element>(positions, typename Element::TileSizes{}), dim3(blocks_of(g)), dim3(kTileThreads),
         static_cast<std::size_t>(memory.fixed_bytes + memory.pixel_slots * g.slot * kTilePixel),
         stream)(from, filters, output, g);
}

}  // namespace
}  // namespace convladder
