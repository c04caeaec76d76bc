// Steps 2 and 3 of stages 32 and 34: a persistent kernel for 3 x 3 filters of up to 64 channels. A block keeps all taps
// of 64 filters in shared memory, and goes down strips of N pixels.
#pragma once
#include "chapters/32-implicit-gemm-hopper/multiply_taps.cuh"

namespace convladder {
namespace {

// A block's part of the rows of outputs, begin to end - 1, and its shared memory: all taps, a ring of rows of pixels,
// and a buffer of outputs for each consumer.
template <class Element, int N>
struct RowsBlock {
  using Value = typename Element::Value;
  using Scale = typename Element::Scale;
  using Sums = typename Element::Sum[N / 2];
  static constexpr int kPixel = kRowChannels * Element::kBytes;  // bytes; a pixel of outputs has as many
  static constexpr int kTap = kFilters * kPixel;                 // bytes
  static constexpr Swizzle kSwizzle = kPixel == 64 ? Swizzle::bytes64 : Swizzle::bytes128;
  static constexpr int kTapLoads = kTaps * kTaps / Element::kTapsOfLoad;
  static constexpr int kSlots = Element::row_slots(N);
  static constexpr int kRow = N + kTaps - 1;                  // pixels that the taps of a row reach
  static constexpr int kSlot = (kRow + 7) / 8 * 8 * kPixel;   // bytes
  static constexpr int kStored = N / Element::row_stores(N);  // pixels that are stored at a time
  static constexpr int kBytes =
      kTaps * kTaps * kTap + kSlots * kSlot + 2 * kStored * kPixel + (2 * kSlots + kTapLoads) * sizeof(Mbarrier);

  const Rows& g;
  unsigned char* taps = dynamic_shared_1024<unsigned char>();  // [tap][64 filters][kPixel]
  unsigned char* ring = taps + kTaps * kTaps * kTap;           // [kSlots][kSlot]
  unsigned char* outputs = ring + kSlots * kSlot;              // [consumer][kStored][kPixel]
  Mbarrier* full = reinterpret_cast<Mbarrier*>(outputs + 2 * kStored * kPixel);
  Mbarrier* empty = full + kSlots;
  Mbarrier* taps_full = empty + kSlots;  // [kTapLoads]
  int warp = warp_index(), thread = threadIdx.x, lane = thread % 32;
  int filter_block = static_cast<int>(blockIdx.x) % g.filter_blocks;
  std::int64_t part = blockIdx.x / g.filter_blocks, parts = gridDim.x / g.filter_blocks;
  int begin = static_cast<int>(part * g.all_rows / parts), end = static_cast<int>((part + 1) * g.all_rows / parts);

  __device__ __forceinline__ Origin origin_of(int row) const {
    const unsigned column = static_cast<unsigned>(row) / g.by_height;
    return {static_cast<int>(column / g.by_strips), static_cast<int>(column % g.by_strips) * N,
            static_cast<int>(static_cast<unsigned>(row) % g.by_height)};
  }

  // Asks for row r of the three rows of pixels that a row of outputs needs: y, y + 1 and y + 2, less the padding. It is
  // the block's row of pixels number `entry`.
  __device__ __forceinline__ void load(const TensorMap& input, int entry, const Origin& origin, int r) const {
    mbarrier_expect(full + entry % kSlots, kRow * kPixel);
    tensor_load(ring + entry % kSlots * kSlot, input, full + entry % kSlots, 0, origin.x - g.pad_x,
                origin.y + r - g.pad_y, origin.image);
  }

  // 2. Prologue, by one thread: what the first row of outputs needs is on its way before the warps meet, in the order
  // in which it is needed.
  __device__ __forceinline__ void start(const TensorMap& input, const Value* packed) const {
    init_ring(full, empty, kSlots, 1, kConsumerWarps);
    for (int i = 0; i < kTapLoads; ++i) mbarrier_init(taps_full + i, 1);
    fence_mbarrier_init();
    for (int tap = 0; tap < kTaps * kTaps; tap += Element::kTapsOfLoad) {
      if (tap % kTaps == 0) load(input, tap / kTaps, origin_of(begin), tap / kTaps);
      Mbarrier* const tap_full = taps_full + tap / Element::kTapsOfLoad;
      mbarrier_expect(tap_full, Element::kTapsOfLoad * kTap);
      bulk_load(taps + tap * kTap, packed + (filter_block * kTaps * kTaps + tap) * (kFilters * kRowChannels),
                Element::kTapsOfLoad * kTap, tap_full);
    }
  }

  // 2. Producer, one thread: of the three rows of pixels only the last is new, but at the top of a strip.
  __device__ __forceinline__ void produce(const TensorMap& input) const {
    int entry = kTaps;  // rows of pixels so far
    for (int row = begin + 1; row < end; ++row) {
      const Origin origin = origin_of(row);
      for (int r = origin.y == 0 ? 0 : kTaps - 1; r < kTaps; ++r, ++entry) {
        if (entry >= kSlots) mbarrier_wait(empty + entry % kSlots, (entry / kSlots - 1) & 1);
        load(input, entry, origin, r);
      }
    }
  }

  // 3. Two consumers take the rows of outputs alternately, ping-pong: while one multiplies, the other stores.
  __device__ __forceinline__ void consume(const TensorMap& output, const typename Element::Filters& filters,
                                          Value* unaligned_output) const {
    const int consumer = warp / 4, own_products = 1 + consumer, other_products = 2 - consumer;  // named barriers
    const auto strip_of = [&](int row) { return static_cast<int>(static_cast<unsigned>(row) / g.by_height); };
    const auto wait_full = [&](int entry) { mbarrier_wait(full + entry % kSlots, entry / kSlots & 1); };
    const auto release = [&](int entry) {
      if (lane == 0) mbarrier_arrive(empty + entry % kSlots);
    };
    const int k = filter_block * kFilters;
    const Scale scale = Element::scale_of(filters, k + warp % 4 * kWarpFilters, lane);
    Sums sums;
    int released = 0;
    for (int row = begin + consumer; row < end; row += 2) {
      const Origin origin = origin_of(row);
      if constexpr (Element::kFused) load_residual(filters.residual, k, origin, 0);
      const int entry = row - begin + (kTaps - 1) * (strip_of(row) - strip_of(begin));
      for (; released < entry; ++released) {  // read by the other consumer alone
        wait_full(released);
        release(released);
      }
      if (row > begin) named_barrier_sync(own_products, kConsumers);
      UNROLL
      for (int r = 0; r < kTaps; ++r) {
        wait_full(entry + r);
        if (Element::kTapsOfLoad == kTaps) mbarrier_wait(taps_full + r, 0);
        const std::uint64_t a = swizzled_descriptor(taps + r * kTaps * kTap, kSwizzle);
        const std::uint64_t b = swizzled_descriptor(ring + (entry + r) % kSlots * kSlot, kSwizzle);
        if (Element::kTapsOfLoad == 1 && row < begin + 2) {  // the first: a tap is multiplied as soon as it is there
          UNROLL
          for (int s = 0; s < kTaps; ++s) {
            mbarrier_wait(taps_full + r * kTaps + s, 0);
            multiply_taps<Element, N, 1, kPixel>(sums, further(a, s * kTap), further(b, s * kPixel), g.steps,
                                                 r + s > 0);
          }
        } else {
          multiply_taps<Element, N, kTaps, kPixel>(sums, a, b, g.steps, r > 0);
        }
        if (r == kTaps - 1 && row + 1 < end) named_barrier_arrive(other_products, kConsumers);
        if (r > 0) {
          wgmma_wait<1>();
          release(released++);
        }
      }
      wgmma_wait<0>();
      pin(sums);
      store(sums, scale, output, unaligned_output, filters, k, origin);
    }
    if (thread % 128 == 0) bulk_wait<0>();
  }

  // 3. Asks for the residual of a row's outputs from column `first` on, which goes to where these will be rounded.
  __device__ __forceinline__ void load_residual(const Value* residual, int k, const Origin& origin, int first) const {
    if (!residual) return;
    if (thread % 128 == 0) bulk_wait_read<0>();
    named_barrier_sync(3 + warp / 4, 128);  // the buffer is free
    unsigned char* const buffer = outputs + warp / 4 * kStored * kPixel;
    const int columns = g.out_width - origin.x - first;
    const std::int64_t first_output =
        ((origin.image * g.out_height + origin.y) * g.out_width + origin.x + first) * g.filters + k;
    if (g.filters % kChunk<Element> == 0) {
      constexpr int kChunks = kPixel / kChunkBytes;
      const int f = thread % kChunks * kChunk<Element>;
      for (int i = thread % 128 / kChunks; i < kStored; i += 128 / kChunks)
        copy_async<kChunkBytes>(buffer + swizzled<kPixel>(i, f * Element::kBytes),
                                residual + first_output + i * g.filters + f, i < columns && k + f < g.filters);
    } else {
      const int f = thread % kFilters;
      for (int i = thread % 128 / kFilters; i < kStored; i += 2)
        *reinterpret_cast<Value*>(buffer + swizzled<kPixel>(i, f * Element::kBytes)) =
            i < columns && k + f < g.filters ? residual[first_output + i * g.filters + f] : Value{};
    }
    commit_copies();
  }

  // 3. Epilogue of a row of outputs: a consumer rounds the sums into its buffer, and stores the buffer by TMA.
  __device__ __forceinline__ void store(const Sums& sums, Scale scale, const TensorMap& output, Value* unaligned_output,
                                        const typename Element::Filters& filters, int k, const Origin& origin) const {
    const int of_consumer = 3 + warp / 4;  // a named barrier
    const bool leads = thread % 128 == 0;
    unsigned char* const buffer = outputs + warp / 4 * kStored * kPixel;
    unsigned char* const lane_row =
        buffer + matrix_row<Element, kPixel>(lane, warp % 4 * kWarpFilters * Element::kBytes);
    UNROLL
    for (int first = 0; first < N; first += kStored) {
      if constexpr (Element::kFused) {
        if (first > 0) load_residual(filters.residual, k, origin, first);
        wait_copies<0>();
      }
      if (leads) bulk_wait_read<0>();
      named_barrier_sync(of_consumer, 128);  // the buffer is free, and has the residual
      UNROLL
      for (int i = 0; i < kStored; i += kMatrixPositions<Element>)
        store_rounded<Element>(lane_row + i * kPixel, sums + (first + i) / 2, scale,
                               i + kMatrixPositions<Element> <= kStored, lane_row + i * kPixel);
      fence_async_proxy();
      named_barrier_sync(of_consumer, 128);
      const int x = origin.x + first;
      if (g.filters % kChunk<Element> == 0) {
        if (leads) tensor_store(output, buffer, k, x, origin.y, origin.image);
        if (leads) bulk_commit();
      } else if (const int f = thread % kFilters; k + f < g.filters) {
        for (int i = thread % 128 / kFilters; i < min(kStored, g.out_width - x); i += 2)
          unaligned_output[((origin.image * g.out_height + origin.y) * g.out_width + x + i) * g.filters + k + f] =
              *reinterpret_cast<const Value*>(buffer + swizzled<kPixel>(i, f * Element::kBytes));
      }
    }
  }
};

template <class Element, int N>
__global__ void __launch_bounds__(kRowThreads, 1)
    multiply_rows(const __grid_constant__ TensorMap input,    // [batch][height][width][channels]
                  const __grid_constant__ TensorMap output,   // [batch][out_height][out_width][filters]
                  typename Element::Filters filters,          // packed [filter block][tap][64][64]
                  typename Element::Value* unaligned_output,  // instead of the map, where filters are no whole chunks
                  Rows g) {
  const RowsBlock<Element, N> block{g};
  if (block.thread == 0) prefetch_tensor_map(input), prefetch_tensor_map(output);
  if (block.thread == kConsumers) block.start(input, filters.packed);
  __syncthreads();
  if (block.warp < kConsumerWarps)
    block.consume(output, filters, unaligned_output);
  else if (block.lane == 0)
    block.produce(input);
}

template <class Element, int... N, class Value = typename Element::Value>
void launch_rows(Positions<N...>, int positions, const ConvProblem& problem, const Value* input,
                 const typename Element::Filters& filters, Value* output, Stream stream) {
  const Rows g = rows_of<Element>(problem, positions);
  const int blocks = parts_of(g, device_limits().multiprocessors) * g.filter_blocks;
  const TensorMap from = map_of_rows<Element>(input, wide_channels<Element>(problem), problem.w, problem.h, problem.n,
                                              positions + kTaps - 1);
  // Without whole chunks the output is no tensor that TMA knows, and the map is not used.
  const TensorMap to = problem.k % kChunk<Element> == 0
                           ? map_of_rows<Element>(output, problem.k, problem.q(), problem.p(), problem.n,
                                                  positions / Element::row_stores(positions))
                           : from;
  ((positions == N ? launch(multiply_rows<Element, N>, dim3(static_cast<unsigned>(blocks)), dim3(kRowThreads),
                            RowsBlock<Element, N>::kBytes, stream)(from, to, filters, output, g)
                   : void()),
   ...);
}

}  // namespace
}  // namespace convladder
