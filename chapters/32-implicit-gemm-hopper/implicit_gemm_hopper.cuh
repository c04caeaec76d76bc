// 32 implicit-gemm-hopper: the product of 31 by wgmma, from rows of pixels that TMA loads.
//
//   [filters][pixels] += [filters][channels] of a tap x [channels][pixels, shifted by the tap]       nine times
//
// Since 31: no tile of im2col's matrix is gathered any more. Pixels lie in shared memory as in the image, 64 channels
// in 128 bytes, one after another. The nine taps read the same pixels, each from another address: for the next column
// 128 bytes further. No thread copies, and none computes an address for each pixel: one asks for a box, and TMA fills
// the part outside of the image with zeros. Four warps together, a warpgroup, multiply 64 filters by up to 256 pixels
// with one instruction, wgmma, which takes both from shared memory.
//
// The kernels are persistent and warp-specialised: producers, one thread each, ask for what two consumers, a warpgroup
// each, multiply. The consumers play ping-pong: while one multiplies, the other runs its epilogue.
//
//   1. In prepare(): the filters as halves, [64 filters][64 channels] for each tap, with TMA's swizzle.
//   2. `rows` (rows.cuh), 3 x 3 filters of up to 64 channels. All taps of 64 filters stay in shared memory. A block
//      goes down strips of N pixels, and its producer asks for each row of pixels once, into a ring.
//   3. The consumers take the rows of outputs alternately: nine taps, of three rows of the ring. The epilogue rounds
//      the sums to halves and hands them to TMA.
//   4. `tiles` (tiles.cuh), large planes of more channels, and folded filters. A tile is several rows of pixels, or
//      several images, with so much padding between that they are one line of N positions: a tap's shift is one number
//      for all of them. For each 64 channels one producer asks for the tile's pixels, and another for the taps of 64
//      filters, one by one. With stride 2 a box has every second row and column, and the taps that read these. Where
//      channels are few, a row of the filter is one tap: TMA takes the pixels that it reads for one pixel (layout_of).
//   5. The consumers take the work items, a tile and 64 filters, alternately; or both have one tile, and 64 filters
//      each. The rings hold the next loads, whichever consumer they are for. Positions between the rows are computed,
//      too, and not stored.
//   6. `lines` (lines.cuh), most other layers. The outputs of all images are one line, and a tile is N of them, so no
//      position is wasted. In return the pixels are loaded for each tap: TMA collects those that it reads, a column of
//      im2col's matrix. One producer asks for these, and another for the tap of 64 filters, or of 128; both arrive
//      together.
//   7. The consumers take work items as in 5. TMA stores the outputs, which are a line in memory, too. Where work items
//      are few, the taps and channels of each are in slices. Those of a tile are a cluster of blocks, which send each
//      other their sums: each adds up and stores a part of the positions.
#pragma once
#include "chapters/32-implicit-gemm-hopper/lines.cuh"
#include "chapters/32-implicit-gemm-hopper/rows.cuh"
#include "chapters/32-implicit-gemm-hopper/tiles.cuh"
//
#include "common/kernel/half_or_bf16.hpp"

namespace convladder {
namespace {

// The element of both kernels: half or bfloat16.
template <class T>
struct TwoBytes {
  static constexpr bool kFused = false;  // whether an epilogue adds a bias and a residual
  using Value = T;                       // of input and output
  using Operand = OperandOf<T>;          // of wgmma
  using Sum = float;                     // of products
  using FourSums = float4;
  using StripSizes = Positions<56, 112, 240>;                   // for which there are kernels
  using TileSizes = Positions<64, 128, 208, 216, 232, 248>;     // the same
  using AnyTileSizes = Positions<64, 96, 104, 128, 192>;        // of other filters, and of shared tiles
  using LineSizes = Positions<32, 64, 96, 112, 128, 192, 224>;  // of `lines`
  static constexpr const char *kStripWords = "56, 112 or 240", *kTileWords = "64, 128, 208, 216, 232 or 248",
                              *kAnyTileWords = "64, 96, 104, 128 or 192",
                              *kLineWords = "32, 64, 96, 112, 128, 192 or 224";
  static constexpr int kBytes = 2;       // of a value
  static constexpr int kTapsOfLoad = 1;  // of `rows`: the first is multiplied while others come
  // Of `rows`: rows of pixels in the ring; the parts in which a row of outputs is stored.
  static constexpr int row_slots(int positions) { return positions > 112 ? 4 : positions > 56 ? 6 : 8; }
  static constexpr int row_stores(int positions) { return positions > 56 ? 2 : 1; }

  struct Filters {
    const T* packed;
  };
  struct Scale {};                       // of sums: none
  static constexpr int kScaleBytes = 0;  // that a lane loads
  static __device__ __forceinline__ Scale scale_of(const Filters&, int, int) { return {}; }
  // A lane's register of a matrix that stmatrix transposes: two sums, rounded.
  static __device__ __forceinline__ unsigned rounded(const float* sums, Scale) {
    return rounded_pair<T>(sums[0], sums[1]);
  }

  // Of a block of `rows`, up to a factor. A wgmma of N pixels takes N / 2 cycles, or as long as its operands pass
  // shared memory at 128 bytes a cycle: 64 filters and N pixels of 32 bytes, and a 36th of a row's pixels and outputs.
  static std::int64_t cycles_of_rows(int rows, int positions) {
    const int products = positions / 2, shared = 16 + positions / 4 + positions / 18;
    return std::int64_t{rows} * (products > shared ? products : shared);
  }
};
using Halves = TwoBytes<half>;

// The same with an epilogue, added in fp32 and rounded once. ReLU is a least output; a NaN stays one.
struct FusedHalves : Halves {
  static constexpr bool kFused = true;
  struct Filters : Halves::Filters {
    const float* bias;     // [filter block][64]
    const half* residual;  // as the output; or null
    float least;           // output: 0 with ReLU, else minus infinity
  };
  struct Scale {
    float bias[2], least;  // of rows i and i + 8 of the warp's product, of which the lane has sums
    bool residual;
  };
  static constexpr int kScaleBytes = 2 * sizeof(float);
  static __device__ __forceinline__ Scale scale_of(const Filters& filters, int k, int lane) {
    const float* const bias = filters.bias + k + lane / 4;
    return {{bias[0], bias[kWarpFilters / 2]}, filters.least, filters.residual != nullptr};
  }
  static __device__ __forceinline__ unsigned finished(const float* sums, const Scale& scale, int matrix,
                                                      unsigned residual) {
    const float2 added = __half22float2(*reinterpret_cast<const half2*>(&residual));
    const auto finish = [&](float sum, float of_residual) {
      const float output = sum + scale.bias[matrix % 2] + of_residual;
      return output < scale.least ? scale.least : output;
    };
    const float outputs[] = {finish(sums[0], added.x), finish(sums[1], added.y)};
    return rounded(outputs, {});
  }
};

// 1. A thread an element. A chunk of 16 bytes is at its number xor the filter's, modulo 8, of its 128 bytes.
template <class T>
__global__ void pack(const float* filter,  // [filters][channels][order.taps][layout.columns]
                     T* packed,            // [filter block][channel block][tap in its order][64][64]
                     TapOrder order, InputLayout layout, int filters, int channels, int channel_blocks, int size) {
  constexpr int kChannels = kTilePixel / Halves::kBytes;  // of `rows` as well
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= size) return;
  const int row = i / kChannels, of_block = row % kFilters, tap = row / kFilters % order.taps;
  const int blocks = row / kFilters / order.taps;
  const int k = blocks / channel_blocks * kFilters + of_block;
  const int in_window = blocks % channel_blocks * kChannels + (i % kChannels ^ of_block % 8 * kChunk<Halves>);
  const int column = in_window / layout.channels, c = in_window % layout.channels;
  const bool inside = k < filters && column < layout.columns && c < channels;
  const int at = ((k * channels + c) * order.taps + order.tap_of[tap]) * layout.columns + column;
  packed[i] = rounded_to<T>(inside ? filter[at] : 0.0f);
}

}  // namespace
}  // namespace convladder
