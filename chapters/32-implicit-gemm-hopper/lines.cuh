// Steps 6 and 7 of stages 32 and 34: a persistent kernel for any filter, in which no position is wasted. The outputs of
// all images are one line, and a tile is N of them. For each tap and 128 bytes of channels TMA brings the pixels that
// these read, a column of im2col's matrix.
#pragma once
#include "chapters/32-implicit-gemm-hopper/multiply_taps.cuh"

namespace convladder {
namespace {

// A block, which takes every gridDim.x-th work item, and its shared memory.
template <class Element, int N, bool kShared>
struct LinesBlock {
  using Value = typename Element::Value;
  using Sum = typename Element::Sum;
  using Sums = Sum[N / 2];
  using Memory = LineMemory<N, kShared>;
  static constexpr int kStreams = kShared ? 2 : 1;  // blocks of filters of a work item
  static constexpr int kChannels = kTilePixel / Element::kBytes, kPixels = N * kTilePixel;
  static constexpr int kGroup = kGroupWarps * 32;                                            // threads of a consumer
  static constexpr int kPitch = kFilters * Element::kBytes, kChunks = kPitch / kChunkBytes;  // of a position of outputs
  static constexpr bool kMaySlice = !kShared && N <= kMostSlicePositions;
  static constexpr int kSteps = N / kSliceStep, kFours = kSliceStep / 8 * kGroup;  // of slices; and of a step's sums
  static constexpr int kSliceOutputs = kSliceStep * kPitch, kMostOwnSteps = kMostSlicePositions / kSliceStep / 2;
  static constexpr int kPart = line_part<Element>(N), kBuffers = 2;
  static_assert(!kMaySlice || (N * kFilters * 4 <= Memory::kSlots * Memory::kSlot &&
                               kMostOwnSteps * kSliceOutputs + (kMostSlices - 1) * kFours * 16 <= Memory::kOutputs),
                "the ring holds what a slice sends, and the buffers its outputs and what it receives");
  static_assert(Memory::kSlots >= 3, "a pass, and the residuals of two consumers");
  static_assert(N % kPart == 0 && kPart % kChunk<Element> == 0, "parts are alike, and whole matrices of stmatrix");

  const Lines& g;
  unsigned char* ring = dynamic_shared_1024<unsigned char>();      // [kSlots][N pixels, and kStreams * 64 filters]
  unsigned char* outputs = ring + Memory::kSlots * Memory::kSlot;  // [consumer][2][kOutputBytes]
  Mbarrier* full = reinterpret_cast<Mbarrier*>(outputs + 2 * kBuffers * kOutputBytes);
  Mbarrier* empty = full + Memory::kSlots;
  Mbarrier* gathered = empty + Memory::kSlots;  // the sums of the other slices
  int warp = warp_index(), thread = threadIdx.x, lane = thread % 32;

  // Of a work item: its first output; its block of filters, or the first of two; and the pass with which its slice
  // begins, or with `next` 1 the next.
  __device__ __forceinline__ int first_of(int item) const {
    return static_cast<int>(static_cast<unsigned>(item) / g.by_slices / g.by_groups) * N;
  }
  __device__ __forceinline__ int filter_block_of(int item) const {
    return static_cast<int>(static_cast<unsigned>(item) / g.by_slices % g.by_groups) * kStreams;
  }
  __device__ __forceinline__ int pass_of(int item, int next) const {
    return static_cast<int>((static_cast<unsigned>(item) % g.by_slices + next) * g.passes / g.by_slices);
  }
  // Of an output, the pixel that the first tap reads.
  __device__ __forceinline__ Origin pixel_of(int output) const {
    const unsigned row = static_cast<unsigned>(output) / g.by_out_width;
    return {static_cast<int>(row / g.by_out_height),
            static_cast<int>(static_cast<unsigned>(output) % g.by_out_width) * g.stride_x - g.pad_x,
            static_cast<int>(row % g.by_out_height) * g.stride_y - g.pad_y};
  }

  // Loads of an item's residual: none without one, nor of slices.
  __device__ __forceinline__ int residuals_of([[maybe_unused]] const typename Element::Filters& filters) const {
    if constexpr (Element::kFused)
      return filters.residual && g.slices == 1 ? kStreams : 0;
    else
      return 0;
  }

  // 6. By one thread, before all others begin.
  __device__ __forceinline__ void start() const {
    init_ring(full, empty, Memory::kSlots, 2, kShared ? kConsumerWarps : kGroupWarps);
    mbarrier_init(gathered, 1);
    fence_mbarrier_init();
  }

  // 6. Two producers, a thread each: of a pass one asks for a column of pixels, and the other for a tap of the filters.
  // Both arrive at one mbarrier. The loops must keep up with four wgmmas, so they divide nothing. Behind an item's
  // passes comes its residual, where an epilogue adds one: a load for each of its blocks of filters, in place of
  // pixels.
  __device__ __forceinline__ void produce_pixels(const TensorMap& input, const TensorMap& residual,
                                                 int residuals) const {
    if (lane != 0) return;
    int slot = 0, parity = 1;  // of an empty slot no phase has passed, which is as if one of parity 1 had
    for (int item = blockIdx.x; item < g.work_items; item += gridDim.x) {
      const int first = first_of(item), end = pass_of(item, 1);
      const Origin origin = pixel_of(first);
      int pass = pass_of(item, 0), tap = static_cast<int>(static_cast<unsigned>(pass) % g.by_taps),
          c = static_cast<int>(static_cast<unsigned>(pass) / g.by_taps) * kChannels;
      for (; pass < end; ++pass) {
        unsigned char* const to = ring + slot * Memory::kSlot;
        Mbarrier* const arrived = full + slot;
        mbarrier_wait(empty + slot, parity);
        mbarrier_expect(arrived, kPixels);
        if (g.pointwise)
          tensor_load(to, input, arrived, c, first);
        else
          im2col_load(to, input, arrived, {g.offsets[tap].x, g.offsets[tap].y}, c, origin.x, origin.y, origin.image);
        if (++tap == g.taps) tap = 0, c += kChannels;
        if (++slot == Memory::kSlots) slot = 0, parity ^= 1;
      }
      for (int i = 0; i < residuals; ++i) {
        mbarrier_wait(empty + slot, parity);
        mbarrier_expect(full + slot, N * kPitch);
        tensor_load(ring + slot * Memory::kSlot, residual, full + slot, (filter_block_of(item) + i) * kFilters, first);
        if (++slot == Memory::kSlots) slot = 0, parity ^= 1;
      }
    }
  }
  __device__ __forceinline__ void produce_filters(const TensorMap& filters, int residuals) const {
    if (lane != 0) return;
    int slot = 0, parity = 1;  // as of pixels
    for (int item = blockIdx.x; item < g.work_items; item += gridDim.x) {
      const int filter_block = filter_block_of(item), end = pass_of(item, 1) * kFilters;
      for (int row = pass_of(item, 0) * kFilters; row < end; row += kFilters) {
        Mbarrier* const arrived = full + slot;
        mbarrier_wait(empty + slot, parity);
        mbarrier_expect(arrived, kStreams * kTileTap);
        tensor_load(ring + slot * Memory::kSlot + kPixels, filters, arrived, 0, row, filter_block);
        if (++slot == Memory::kSlots) slot = 0, parity ^= 1;
      }
      for (int i = 0; i < residuals; ++i) {
        mbarrier_wait(empty + slot, parity);
        mbarrier_arrive(full + slot);
        if (++slot == Memory::kSlots) slot = 0, parity ^= 1;
      }
    }
  }

  // 7. Two consumers take the block's work items alternately, ping-pong, or each has half of the filters of all, as in
  // `tiles`. A pass is four wgmmas, also where its last channels are zeros.
  __device__ __forceinline__ void consume(const typename Element::Filters& filters, const TensorMap& line) const {
    const int residuals = residuals_of(filters), consumer = warp / 4, own_turn = 1 + consumer,
              other_turn = 2 - consumer;  // named barriers
    const std::uint64_t b = swizzled_descriptor(ring, Swizzle::bytes128),
                        a = further(b, kPixels + (kShared ? consumer * kTileTap : 0));
    const bool sliced = kMaySlice && g.slices > 1;
    if constexpr (kMaySlice) {
      if (sliced && consumer == 0) expect_slices();
    }
    // Where it is always all of them, no difference: ptxas would work that out anew in each pass, between two wgmmas.
    const int passes = kMaySlice ? pass_of(blockIdx.x, 1) - pass_of(blockIdx.x, 0) : g.passes;
    Sums sums;
    for (int i = kShared ? 0 : consumer, item; (item = blockIdx.x + i * static_cast<int>(gridDim.x)) < g.work_items;
         i += kShared ? 1 : 2) {
      const int first = first_of(item), filter_block = filter_block_of(item) + (kShared ? consumer : 0);
      if constexpr (Element::kFused) {
        if (sliced) load_residual_of_slice(filters.residual, first, filter_block);
      }
      // The other one hands over when it has seen all its loads come. So no wait is for a phase two loads back, which
      // has the same parity.
      if (!kShared && i > 0) named_barrier_sync(own_turn, kConsumers);
      const typename Element::Scale scale =  // before the products, which hide the load
          Element::scale_of(filters, filter_block * kFilters + warp % 4 * kWarpFilters, lane);
      const unsigned load = static_cast<unsigned>(i) * static_cast<unsigned>(passes + residuals);
      int slot = static_cast<int>(load % Memory::kSlots), parity = static_cast<int>(load / Memory::kSlots % 2),
          read = -1;  // the slot of the pass before, which may still be under way
      for (int pass = 0; pass < passes; ++pass) {
        mbarrier_wait(full + slot, parity);
        multiply_taps<Element, N, 1, kTilePixel>(sums, further(a, slot * Memory::kSlot),
                                                 further(b, slot * Memory::kSlot), kTilePixel / kStepBytes, pass > 0);
        wgmma_wait<1>();
        if (read >= 0 && lane == 0) mbarrier_arrive(empty + read);
        read = slot;
        if (++slot == Memory::kSlots) slot = 0, parity ^= 1;
      }
      int own = slot;  // of the consumer's residual
      for (int residual = 0; residual < residuals; ++residual) {
        mbarrier_wait(full + slot, parity);
        if (kShared && residual == consumer) own = slot;
        if (kShared && residual != consumer && lane == 0) mbarrier_arrive(empty + slot);
        if (++slot == Memory::kSlots) slot = 0, parity ^= 1;
      }
      if (!kShared && item + static_cast<int>(gridDim.x) < g.work_items) named_barrier_arrive(other_turn, kConsumers);
      wgmma_wait<0>();
      pin(sums);
      if (lane == 0) mbarrier_arrive(empty + read);
      if constexpr (kMaySlice) {
        if (sliced) {
          gather(sums);
          store_slice(sums, scale, line, first, filter_block);
          break;  // the block's only item
        }
      }
      store(sums, scale, ring + own * Memory::kSlot, line, first, filter_block);
      if (residuals > 0 && lane == 0) mbarrier_arrive(empty + own);
    }
    if (thread % kGroup == 0) bulk_wait<0>();
    if (sliced && consumer == 0) cluster_wait();  // the others have what this block sent them
  }

  // 7. Of slices, one for each block of a cluster, every g.slices-th step of the epilogue is a block's: the step's
  // number among these, or -1.
  __device__ __forceinline__ int own_step(int step) const {
    return static_cast<unsigned>(step) % g.by_slices == cluster_rank()
               ? static_cast<int>(static_cast<unsigned>(step) / g.by_slices)
               : -1;
  }
  __device__ __forceinline__ unsigned char* outputs_of_step(int own) const { return outputs + own * kSliceOutputs; }
  // What the slice `from`, of those that are not the block's, sends it for one of its steps.
  __device__ __forceinline__ typename Element::FourSums* received(int from, int own) const {
    return reinterpret_cast<typename Element::FourSums*>(outputs + kMostOwnSteps * kSliceOutputs) +
           (from * g.own_steps + own) * kFours;
  }

  // Before the products: says how much will come, and that it may.
  __device__ __forceinline__ void expect_slices() const {
    const int rank = static_cast<int>(cluster_rank()), steps = (kSteps - rank + g.slices - 1) / g.slices;
    if (thread == 0) mbarrier_expect(gathered, steps * (g.slices - 1) * kFours * static_cast<int>(sizeof(uint4)));
    __syncwarp();
    cluster_arrive();
  }

  // Sends the sums of each step to the block whose it is, and adds up those of its own. The ring has no more loads to
  // take, and lends its memory.
  __device__ __forceinline__ void gather(Sums& sums) const {
    using Four = typename Element::FourSums;
    Four* const sent = reinterpret_cast<Four*>(ring);  // [kSteps][kFours]
    const int rank = static_cast<int>(cluster_rank());
    named_barrier_sync(3, kGroup);  // nobody multiplies any more
    UNROLL
    for (int i = 0; i < N / 8; ++i)
      sent[i * kGroup + thread] = Four{sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]};
    fence_async_proxy();
    named_barrier_sync(3, kGroup);
    cluster_wait();  // every block expects them
    if (thread == 0) {
      UNROLL_BY(1)
      for (int step = 0; step < kSteps; ++step) {
        const int to = static_cast<int>(static_cast<unsigned>(step) % g.by_slices),
                  own = static_cast<int>(static_cast<unsigned>(step) / g.by_slices);
        if (to != rank)
          cluster_copy(received(rank < to ? rank : rank - 1, own), to, sent + step * kFours,
                       kFours * static_cast<int>(sizeof(Four)), gathered);
      }
    }
    __syncwarp();
    mbarrier_wait(gathered, 0);
    UNROLL
    for (int step = 0; step < kSteps; ++step) {
      const int own = own_step(step);
      if (own < 0) continue;
      UNROLL_BY(1)
      for (int from = 0; from < g.slices - 1; ++from) {
        UNROLL
        for (int i = 0; i < kSliceStep / 8; ++i) {
          const Four four = received(from, own)[i * kGroup + thread];
          Sum* const to = sums + (step * kSliceStep / 8 + i) * 4;
          to[0] += four.x, to[1] += four.y, to[2] += four.z, to[3] += four.w;
        }
      }
    }
    cluster_arrive_relaxed();
  }

  // Epilogue of a slice: rounds the block's own steps, which TMA stores.
  __device__ __forceinline__ void store_slice(const Sums& sums, const typename Element::Scale& scale,
                                              const TensorMap& line, int first, int filter_block) const {
    const int k = filter_block * kFilters;
    const int lane_row = matrix_row<Element, kPitch>(lane, warp % 4 * kWarpFilters * Element::kBytes);
    if constexpr (Element::kFused) {
      wait_copies<0>();
      named_barrier_sync(3, kGroup);
    }
    UNROLL
    for (int step = 0; step < kSteps; ++step) {
      const int own = own_step(step);
      if (own >= 0)
        store_rounded<Element>(outputs_of_step(own) + lane_row, sums + step * kSliceStep / 2, scale,
                               kMatrixPositions<Element> <= kSliceStep, outputs_of_step(own) + lane_row);
    }
    fence_async_proxy();
    named_barrier_sync(3, kGroup);
    if (thread == 0) {
      for (int step = static_cast<int>(cluster_rank()), own = 0; step < kSteps; step += g.slices, ++own)
        tensor_store(line, outputs_of_step(own), k, first + step * kSliceStep);
      bulk_commit();
    }
  }

  // 7. Epilogue: a consumer rounds a part into one of two buffers, and TMA stores it, up to the end of the line.
  __device__ __forceinline__ void store(const Sums& sums, const typename Element::Scale& scale,
                                        const unsigned char* residual, const TensorMap& line, int first,
                                        int filter_block) const {
    const int consumer = warp / 4, of_group = 3 + consumer, k = filter_block * kFilters;
    const int lane_row = matrix_row<Element, kPitch>(lane, warp % 4 * kWarpFilters * Element::kBytes);
    const bool leads = thread % kGroup == 0;
    UNROLL
    for (int part = 0; part < N; part += kPart) {
      unsigned char* const buffer = outputs + (kBuffers * consumer + part / kPart % kBuffers) * kOutputBytes;
      if (part != kPart) {  // the buffer is read: by the stores of the item before, or of two parts before
        if (leads && part == 0) bulk_wait_read<0>();
        if (leads && part > 0) bulk_wait_read<1>();
        named_barrier_sync(of_group, kGroup);
      }
      UNROLL
      for (int p = 0; p < kPart; p += kMatrixPositions<Element>)
        store_rounded<Element>(buffer + p * kPitch + lane_row, sums + (part + p) / 2, scale,
                               p + kMatrixPositions<Element> <= kPart, residual + (part + p) * kPitch + lane_row);
      fence_async_proxy();
      named_barrier_sync(of_group, kGroup);
      if (leads) {
        tensor_store(line, buffer, k, first + part);
        bulk_commit();
      }
    }
  }

  // 7. Asks for the residual of a slice's own steps, in the buffers in which they will be rounded. A thread copies
  // chunks.
  __device__ __forceinline__ void load_residual_of_slice(const Value* residual, int first, int filter_block) const {
    if (!residual) return;
    const int in_group = thread % kGroup, f = in_group % kChunks * kChunk<Element>, k = filter_block * kFilters + f;
    for (int step = static_cast<int>(cluster_rank()), own = 0; step < kSteps; step += g.slices, ++own) {
      for (int p = in_group / kChunks; p < kSliceStep; p += kGroup / kChunks) {
        const int output = first + step * kSliceStep + p;
        const bool inside = output < g.line && k < g.filters;
        copy_async<kChunkBytes>(outputs_of_step(own) + swizzled<kPitch>(p, f * Element::kBytes),
                                inside ? residual + std::int64_t{output} * g.filters + k : residual, inside);
      }
    }
    commit_copies();
  }
};

template <class Element, int N, bool kShared>
__global__ void __launch_bounds__(kTileThreads, 1)
    multiply_lines(const __grid_constant__ TensorMap input,     // [batch][height][width][channels], by columns
                   const __grid_constant__ TensorMap packed,    // [filter block][channel block, tap, 64][kTilePixel]
                   const __grid_constant__ TensorMap line,      // [batch * out_height * out_width][filters]
                   const __grid_constant__ TensorMap residual,  // the same; or anything, where there is none
                   const typename Element::Filters filters, const __grid_constant__ Lines g) {
  const LinesBlock<Element, N, kShared> block{g};
  if (block.thread == 0) block.start();
  if (block.thread == 32) prefetch_tensor_map(input), prefetch_tensor_map(packed), prefetch_tensor_map(line);
  __syncthreads();
  if (block.warp >= kConsumerWarps) {
    set_max_registers_decrease<40>();
    const int residuals = block.residuals_of(filters);
    if (block.warp == kConsumerWarps) block.produce_pixels(input, residual, residuals);
    if (block.warp == kConsumerWarps + 1) block.produce_filters(packed, residuals);
    return;
  }
  set_max_registers_increase<232>();
  block.consume(filters, line);
}

// The pixels: columns of im2col's matrix; of 1 x 1 filters with stride 1 the pixels are a line themselves.
template <class Element>
TensorMap map_of_columns(const typename Element::Value* tensor, const InputLayout& layout, const Lines& g,
                         int positions) {
  constexpr unsigned kBytes = Element::kBytes;
  const auto size = [](int count) { return static_cast<std::uint64_t>(count); };
  const auto few = [](int count) { return static_cast<unsigned>(count); };
  const std::uint64_t pixel = size(layout.channels) * kBytes, row = size(g.width) * pixel;
  TensorForm form{kBytes == 1 ? TensorElement::int8 : TensorElement::fp16,
                  Swizzle::bytes128,
                  2,
                  {{size(layout.channels), kBytes, kTilePixel / kBytes}}};
  if (g.pointwise) {
    form.dimensions[1] = {size(g.line), pixel, few(positions)};
    return make_tensor_map(tensor, form);
  }
  form.rank = 4;
  form.dimensions[1] = {size(g.width), pixel, 1, few(g.stride_x)};
  form.dimensions[2] = {size(g.height), row, 1, few(g.stride_y)};
  form.dimensions[3] = {size(g.batch), row * size(g.height), 1};
  form.pixels = few(positions);
  form.lower[0] = -g.pad_x, form.upper[0] = g.pad_x - (g.columns - 1) * g.dilation_x;
  form.lower[1] = -g.pad_y, form.upper[1] = g.pad_y - (g.rows - 1) * g.dilation_y;
  return make_tensor_map(tensor, form);
}

template <bool kShared, class Element, int... N, class Value = typename Element::Value>
void launch_lines_of(Positions<N...>, const ConvProblem& problem, const Choice& choice, const Value* input,
                     const typename Element::Filters& filters, Value* output, Stream stream) {
  constexpr unsigned kBytes = Element::kBytes;
  constexpr TensorElement kElement = kBytes == 1 ? TensorElement::int8 : TensorElement::fp16;
  const int positions = choice.positions, stored = choice.slices > 1 ? kSliceStep : line_part<Element>(positions);
  const Lines g = lines_of<Element>(problem, choice);
  const auto rows = static_cast<std::uint64_t>(g.passes) * kFilters, all = static_cast<std::uint64_t>(g.filters);
  const TensorMap packed = make_tensor_map(
      filters.packed, {kElement,
                       Swizzle::none,  // they are packed with it
                       3,
                       {{kTilePixel / kBytes, kBytes, kTilePixel / kBytes},
                        {rows, kTilePixel, kFilters},
                        {static_cast<std::uint64_t>(g.filter_blocks), rows * kTilePixel, kShared ? 2 : 1}}});
  const auto map_of_line = [&](const Value* tensor, int of_box) {
    return make_tensor_map(
        tensor,
        {kElement,
         kBytes == 1 ? Swizzle::bytes64 : Swizzle::bytes128,
         2,
         {{all, kBytes, kFilters}, {static_cast<std::uint64_t>(g.line), kBytes * all, static_cast<unsigned>(of_box)}}});
  };
  const TensorMap line = map_of_line(output, stored);
  TensorMap residual = line;
  if constexpr (Element::kFused) {
    if (filters.residual) residual = map_of_line(filters.residual, positions);
  }
  const auto launch_if = [&](auto size) {
    constexpr int kN = decltype(size)::value;
    if (positions == kN)
      launch(multiply_lines<Element, kN, kShared>, dim3(blocks_of(g)), dim3(kTileThreads),
             static_cast<std::size_t>(LineMemory<kN, kShared>::kBytes), stream, dim3(static_cast<unsigned>(g.slices)))(
          map_of_columns<Element>(input, layout_of<Element>(problem), g, positions), packed, line, residual, filters,
          g);
  };
  (launch_if(std::integral_constant<int, N>{}), ...);
}

template <class Element, class Value = typename Element::Value>
void launch_lines(const ConvProblem& problem, const Choice& choice, const Value* input,
                  const typename Element::Filters& filters, Value* output, Stream stream) {
  constexpr typename Element::LineSizes kSizes;
  if (choice.shared)
    launch_lines_of<true, Element>(kSizes, problem, choice, input, filters, output, stream);
  else
    launch_lines_of<false, Element>(kSizes, problem, choice, input, filters, output, stream);
}

}  // namespace
}  // namespace convladder
