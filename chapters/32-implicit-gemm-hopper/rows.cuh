// Steps 2 and 3 of stages 32 and 34: a persistent kernel for up to 64 channels. A block keeps all taps of 64 filters in
// shared memory, and goes down strips of N pixels.
#pragma once
#include "chapters/32-implicit-gemm-hopper/multiply_taps.cuh"

namespace convladder {
namespace {

// Shared memory for strips of so many positions: all taps, a ring of rows of pixels, a buffer of outputs a consumer.
template <class Element>
struct RowMemory {
  static constexpr int kPixel = kRowChannels * Element::kBytes;  // bytes; a pixel of outputs has as many
  static constexpr int kTap = kFilters * kPixel;                 // bytes
  static constexpr int kTapLoads = kTaps * kTaps / Element::kTapsOfLoad;
  int slots;
  int row;     // pixels that the taps of a row reach
  int slot;    // bytes
  int stored;  // pixels of a row of outputs that are stored at a time
  int bytes;

  __host__ __device__ constexpr explicit RowMemory(int positions)
      : slots(Element::row_slots(positions)),
        row(positions + kTaps - 1),
        slot((row + 7) / 8 * 8 * kPixel),
        stored(positions / Element::row_stores(positions)),
        bytes(kTaps * kTaps * kTap + slots * slot + 2 * stored * kPixel +
              (2 * slots + kTapLoads) * static_cast<int>(sizeof(Mbarrier))) {}
};

template <class Element, int N>
struct RowBuffers {
  using Memory = RowMemory<Element>;
  static constexpr int kSlots = Memory(N).slots, kSlot = Memory(N).slot, kStored = Memory(N).stored;
  unsigned char* taps = dynamic_shared_1024<unsigned char>();  // [tap][64 filters][kPixel]
  unsigned char* ring = taps + kTaps * kTaps * Memory::kTap;   // [kSlots][kSlot]
  unsigned char* outputs = ring + kSlots * kSlot;              // [consumer][kStored][kPixel]
  Mbarrier* full = reinterpret_cast<Mbarrier*>(outputs + 2 * kStored * Memory::kPixel);
  Mbarrier* empty = full + kSlots;
  Mbarrier* taps_full = empty + kSlots;  // [kTapLoads]
};

// The rows of outputs that a block makes, and its filters.
struct RowsOfBlock {
  int filter_block, begin, end;
};
__device__ __forceinline__ RowsOfBlock rows_of_block(const Rows& g) {
  const std::int64_t part = blockIdx.x / g.filter_blocks, parts = gridDim.x / g.filter_blocks;
  return {static_cast<int>(blockIdx.x) % g.filter_blocks, static_cast<int>(part * g.rows / parts),
          static_cast<int>((part + 1) * g.rows / parts)};
}

// The first output of a row of a strip.
struct RowOrigin {
  int image, x, y;
};
template <int N>
__device__ __forceinline__ RowOrigin row_origin(const Rows& g, int row) {
  const unsigned column = static_cast<unsigned>(row) / g.by_height;
  return {static_cast<int>(column / g.by_strips), static_cast<int>(column % g.by_strips) * N,
          static_cast<int>(static_cast<unsigned>(row) % g.by_height)};
}

// Asks for row r of the three rows of pixels that a row of outputs needs: y, y + 1 and y + 2, less the padding. It is
// the block's row of pixels number `entry`.
template <class Element, int N>
__device__ __forceinline__ void load_row(const RowBuffers<Element, N>& buffers, const TensorMap& input, const Rows& g,
                                         int entry, const RowOrigin& origin, int r) {
  constexpr RowMemory<Element> kMemory(N);
  Mbarrier* const full = buffers.full + entry % kMemory.slots;
  mbarrier_expect(full, kMemory.row * kMemory.kPixel);
  tensor_load(buffers.ring + entry % kMemory.slots * kMemory.slot, input, full, 0, origin.x - g.pad_x,
              origin.y + r - g.pad_y, origin.image);
}

// 2. Prologue, by one thread: what the first row of outputs needs is on its way before the warps meet, in the order in
// which it is needed.
template <class Element, int N>
__device__ __forceinline__ void start_rows(const RowBuffers<Element, N>& buffers, const TensorMap& input,
                                           const typename Element::Value* packed, const Rows& g,
                                           const RowsOfBlock& block) {
  constexpr int kTapsOfLoad = Element::kTapsOfLoad, kTap = RowMemory<Element>::kTap, kTapSize = kFilters * kRowChannels;
  for (int slot = 0; slot < buffers.kSlots; ++slot) {
    mbarrier_init(buffers.full + slot, 1);
    mbarrier_init(buffers.empty + slot, kConsumerWarps);
  }
  for (int load = 0; load < RowMemory<Element>::kTapLoads; ++load) mbarrier_init(buffers.taps_full + load, 1);
  fence_mbarrier_init();
  for (int tap = 0; tap < kTaps * kTaps; tap += kTapsOfLoad) {
    if (tap % kTaps == 0) load_row(buffers, input, g, tap / kTaps, row_origin<N>(g, block.begin), tap / kTaps);
    Mbarrier* const full = buffers.taps_full + tap / kTapsOfLoad;
    mbarrier_expect(full, kTapsOfLoad * kTap);
    bulk_load(buffers.taps + tap * kTap, packed + (block.filter_block * kTaps * kTaps + tap) * kTapSize,
              kTapsOfLoad * kTap, full);
  }
}

// 2. Producer, one thread: of the three rows of pixels only the last is new, but at the top of a strip.
template <class Element, int N>
__device__ __forceinline__ void produce_rows(const RowBuffers<Element, N>& buffers, const TensorMap& input,
                                             const Rows& g, const RowsOfBlock& block) {
  constexpr int kSlots = RowBuffers<Element, N>::kSlots;
  int entry = kTaps;  // rows of pixels so far
  for (int row = block.begin + 1; row < block.end; ++row) {
    const RowOrigin origin = row_origin<N>(g, row);
    for (int r = origin.y == 0 ? 0 : kTaps - 1; r < kTaps; ++r, ++entry) {
      if (entry >= kSlots) mbarrier_wait(buffers.empty + entry % kSlots, (entry / kSlots - 1) & 1);
      load_row(buffers, input, g, entry, origin, r);
    }
  }
}

// 3. Epilogue of a row of outputs, by a consumer: rounds its sums into its buffer, and stores the buffer by TMA.
template <class Element, int N>
__device__ __forceinline__ void store_row(const RowBuffers<Element, N>& buffers, int warp,
                                          const typename Element::Sum (&sums)[N / 2], typename Element::Scale scale,
                                          const TensorMap& output, typename Element::Value* unaligned_output,
                                          const Rows& g, int k, const RowOrigin& origin) {
  constexpr int kPixel = RowMemory<Element>::kPixel, kStored = RowBuffers<Element, N>::kStored;
  const int thread = threadIdx.x, of_consumer = 3 + warp / 4;  // a named barrier
  const bool leads = thread % 128 == 0;
  unsigned char* const buffer = buffers.outputs + warp / 4 * kStored * kPixel;
  unsigned char* const lane_row =
      buffer + matrix_row<Element, kPixel>(thread % 32, warp % 4 * kWarpFilters * Element::kBytes);
  UNROLL
  for (int begin = 0; begin < N; begin += kStored) {
    if (leads) bulk_wait_read<0>();
    named_barrier_sync(of_consumer, 128);  // the buffer is free
    UNROLL
    for (int i = 0; i < kStored; i += kMatrixPositions<Element>)
      store_rounded<Element>(lane_row + i * kPixel, sums + (begin + i) / 2, scale,
                             i + kMatrixPositions<Element> <= kStored);
    fence_async_proxy();
    named_barrier_sync(of_consumer, 128);
    const int x = origin.x + begin;
    if (g.filters % kChunk<Element> == 0) {
      if (leads) tensor_store(output, buffer, k, x, origin.y, origin.image);
      if (leads) bulk_commit();
    } else if (const int f = thread % kFilters; k + f < g.filters) {
      for (int i = thread % 128 / kFilters; i < min(kStored, g.out_width - x); i += 2)
        unaligned_output[((origin.image * g.out_height + origin.y) * g.out_width + x + i) * g.filters + k + f] =
            *reinterpret_cast<const typename Element::Value*>(buffer + swizzled<kPixel>(i, f * Element::kBytes));
    }
  }
}

// 3. Two consumers take the rows of outputs alternately, ping-pong: while one multiplies, the other runs its epilogue.
template <class Element, int N>
__device__ __forceinline__ void consume_rows(const RowBuffers<Element, N>& buffers, const TensorMap& output,
                                             const typename Element::Filters& filters,
                                             typename Element::Value* unaligned_output, const Rows& g,
                                             const RowsOfBlock& block, int warp) {
  using Memory = RowMemory<Element>;
  constexpr int kPixel = Memory::kPixel, kTap = Memory::kTap, kSlots = RowBuffers<Element, N>::kSlots;
  constexpr Swizzle kSwizzle = swizzle_of(kPixel);
  const int lane = threadIdx.x % 32, consumer = warp / 4;
  const int own_products = 1 + consumer, other_products = 2 - consumer;  // named barriers: who may multiply
  const auto first_entry = [&](int row) {
    return row - block.begin +
           (kTaps - 1) * static_cast<int>(static_cast<unsigned>(row) / g.by_height -
                                          static_cast<unsigned>(block.begin) / g.by_height);
  };
  const auto wait_full = [&](int entry) { mbarrier_wait(buffers.full + entry % kSlots, entry / kSlots & 1); };
  const auto release = [&](int entry) {
    if (lane == 0) mbarrier_arrive(buffers.empty + entry % kSlots);
  };
  const int k = block.filter_block * kFilters;
  const typename Element::Scale scale = Element::scale_of(filters, k + warp % 4 * kWarpFilters, lane);
  typename Element::Sum sums[N / 2];
  int released = 0;
  for (int row = block.begin + consumer; row < block.end; row += 2) {
    const RowOrigin origin = row_origin<N>(g, row);
    const int entry = first_entry(row);
    for (; released < entry; ++released) {  // read by the other consumer alone
      wait_full(released);
      release(released);
    }
    if (row > block.begin) named_barrier_sync(own_products, kConsumers);
    UNROLL
    for (int r = 0; r < kTaps; ++r) {
      wait_full(entry + r);
      if (Element::kTapsOfLoad == kTaps) mbarrier_wait(buffers.taps_full + r, 0);
      const std::uint64_t a = swizzled_descriptor(buffers.taps + r * kTaps * kTap, kSwizzle);
      const std::uint64_t b = swizzled_descriptor(buffers.ring + (entry + r) % kSlots * buffers.kSlot, kSwizzle);
      if (Element::kTapsOfLoad == 1 && row < block.begin + 2) {  // the first: multiplies a tap as soon as it is there
        UNROLL
        for (int s = 0; s < kTaps; ++s) {
          mbarrier_wait(buffers.taps_full + r * kTaps + s, 0);
          multiply_taps<N, 1, kPixel>(sums, further(a, s * kTap), further(b, s * kPixel), g.steps, r + s > 0);
        }
      } else {
        multiply_taps<N, kTaps, kPixel>(sums, a, b, g.steps, r > 0);
      }
      if (r == kTaps - 1 && row + 1 < block.end) named_barrier_arrive(other_products, kConsumers);
      if (r > 0) {
        wgmma_wait<1>();
        release(released++);
      }
    }
    wgmma_wait<0>();
    pin(sums);
    store_row(buffers, warp, sums, scale, output, unaligned_output, g, k, origin);
  }
  if (threadIdx.x % 128 == 0) bulk_wait<0>();
}

template <class Element, int N>
__global__ void __launch_bounds__(kRowThreads, 1)
    multiply_rows(const __grid_constant__ TensorMap input,    // [batch][height][width][channels]
                  const __grid_constant__ TensorMap output,   // [batch][out_height][out_width][filters]
                  typename Element::Filters filters,          // packed [filter block][tap][64][64]
                  typename Element::Value* unaligned_output,  // instead of the map, where filters are no whole chunks
                  Rows g) {
  const RowBuffers<Element, N> buffers;
  const int warp = warp_index();
  const RowsOfBlock block = rows_of_block(g);
  if (threadIdx.x == kConsumers) start_rows(buffers, input, filters.packed, g, block);
  __syncthreads();
  if (warp == kConsumerWarps) {
    if (threadIdx.x % 32 != 0) return;
    produce_rows(buffers, input, g, block);
    return;
  }
  consume_rows(buffers, output, filters, unaligned_output, g, block, warp);
}

template <class Element, int First, int... N>
auto rows_kernel(int positions, Positions<First, N...>) {
  auto kernel = multiply_rows<Element, First>;
  ((positions == N ? void(kernel = multiply_rows<Element, N>) : void()), ...);
  return kernel;
}

// As many blocks as there are multiprocessors.
template <class Element, class Value = typename Element::Value>
void launch_rows(const ConvProblem& problem, int positions, const Value* input,
                 const typename Element::Filters& filters, Value* output, Stream stream) {
  const Rows g = rows_of<Element>(problem, positions);
  const RowMemory<Element> memory(positions);
  const TensorMap from = map_of<Element>(input, wide_channels<Element>(problem), problem.w, problem.h, problem.n,
                                         kRowChannels, memory.row, 1, 1);
  // Without whole chunks the output is no tensor that TMA knows, and the map is not used.
  const TensorMap to = problem.k % kChunk<Element> == 0 ? map_of<Element>(output, problem.k, problem.q(), problem.p(),
                                                                          problem.n, kFilters, memory.stored, 1, 1)
                                                        : from;
  const int blocks = parts_of(g, device_limits().multiprocessors) * g.filter_blocks;
  launch(rows_kernel<Element>(positions, typename Element::StripSizes{}), dim3(static_cast<unsigned>(blocks)),
         dim3(kRowThreads), memory.bytes, stream)(from, to, filters, output, g);
}

}  // namespace
}  // namespace convladder
